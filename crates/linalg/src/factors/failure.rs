//! The reasons for which an operation on a batch of matrices has no result.

use wengert_tensor::{Error, Site};

/// A matrix of a batch for which an operation has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// The matrix with this index in the batch fails at the diagonal element or leading minor with this number, counted from 1.
    Pivot { matrix: usize, order: usize },
    /// An operation on tensors failed.
    Tensor(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Tensor(error)
    }
}

impl Failure {
    /// Returns the error. `sentence` makes it from the text that names the matrix, empty if there is no batch, and the order.
    pub(crate) fn error(self, batch: &[usize], at: Site, sentence: impl FnOnce(String, usize) -> String) -> Error {
        match self {
            Failure::Tensor(error) => error,
            Failure::Pivot { matrix, order } => {
                let element = if batch.is_empty() { String::new() } else { format!("(Batch element {matrix}): ") };
                Error::Argument { message: sentence(element, order), at }
            }
        }
    }
}
