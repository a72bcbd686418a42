//! The errors of models, data and files, as values.

#[allow(clippy::module_inception)]
mod error;
mod mismatch;
mod text;

pub(crate) use error::raise;
pub use error::{Error, Result};
pub use mismatch::{KeyMismatch, Place};
pub(crate) use mismatch::{key_differences, similar_names};
