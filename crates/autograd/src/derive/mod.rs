//! Reverse mode, forward mode and batching: all three only append nodes.

mod batching;
mod forward;
mod gradients;
mod path;
mod recorded;
mod reverse;
#[cfg(test)]
mod tests;

pub use gradients::{Gradients, Key};
pub use recorded::{GradientSink, RecordedGradients};
pub use reverse::LossWith;
