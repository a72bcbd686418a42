//! Reverse mode, forward mode and batching. All three append nodes to the tape, and never change existing nodes.

// A comment in `lib.rs` explains the order of the modules.
mod reverse;

mod batching;
mod forward;
mod gradients;
mod path;
mod recorded;
mod replay;
mod slots;
#[cfg(test)]
mod tests;

pub use gradients::{Gradients, Key};
pub(crate) use path::{Sources, Traversal};
pub use recorded::{GradientSink, RecordedGradients};
pub use reverse::LossWith;
