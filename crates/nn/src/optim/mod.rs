//! Optimisers: what a step along the gradients does to each parameter.

mod adam;
mod optimizer;
mod sgd;

pub use adam::{Adam, AdamW};
pub use optimizer::{Memory, Optimizer, States};
pub use sgd::Sgd;
