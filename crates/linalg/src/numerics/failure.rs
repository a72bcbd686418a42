//! The reasons for which a matrix, or a range of a batch, has no result.

use wengert_tensor::{Error, Site};

/// A reason for which a computation with a matrix has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The matrix has an element that is NaN or infinite.
    NonFinite,
    /// The iteration did not converge.
    NoConvergence,
    /// There is not enough memory.
    Memory,
}

/// The reason for which an elimination failed for a range of a batch, at its first matrix without a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RangeFailure {
    /// The matrix with index `matrix` in the batch has no result. Its diagonal element or leading minor with the number `order`, counted
    /// from 1, is the reason.
    Pivot { matrix: usize, order: usize },
    /// An operation on tensors failed.
    Tensor(Error),
}

impl From<Error> for RangeFailure {
    fn from(error: Error) -> Self {
        RangeFailure::Tensor(error)
    }
}

impl RangeFailure {
    /// Returns the error. `sentence` makes the message from two arguments: the text that names the matrix (empty if there is no batch), and
    /// the `order` of [`RangeFailure::Pivot`].
    pub(crate) fn error(self, batch: &[usize], at: Site, sentence: impl FnOnce(String, usize) -> String) -> Error {
        match self {
            RangeFailure::Tensor(error) => error,
            RangeFailure::Pivot { matrix, order } => {
                let element = if batch.is_empty() { String::new() } else { format!("(Batch element {matrix}): ") };
                Error::Argument { message: sentence(element, order), at }
            }
        }
    }
}
