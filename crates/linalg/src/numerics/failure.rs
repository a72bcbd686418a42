//! The reasons for which a matrix, or a range of a batch, has no result.

use wengert_tensor::{Error, Site};

/// A reason for which a decomposition has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The matrix has an element that is NaN or infinite.
    NonFinite,
    /// The iteration did not converge.
    NoConvergence,
    /// There is not enough memory.
    Memory,
}

/// The first matrix of a range of a batch for which an elimination has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RangeFailure {
    /// The matrix with this index in the batch fails at the diagonal element or leading minor with this number, counted from 1.
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
    /// Returns the error. `sentence` makes it from the text that names the matrix, empty if there is no batch, and the order.
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
