//! Optimisers: what a step along the gradients does to each parameter.

mod adam;
mod archive;
mod optimizer;
mod sgd;

pub use adam::{Adam, AdamW};
pub use archive::{Archive, Resume};
pub(crate) use archive::{Entry, Key};
pub use optimizer::{Common, Optimizer, Range, Setting, States};
pub use sgd::Sgd;
