//! Reverse mode, forward mode and batching: all three only append nodes.

mod batching;
mod forward;
mod gradients;
mod joined;
mod path;
mod recorded;
mod reverse;

pub use gradients::{Gradients, Key};
pub use recorded::{Follow, RecordedGradients};
pub use reverse::LossWith;
