//! Reverse mode, forward mode and batching: all three only append nodes.

mod batching;
mod forward;
mod gradients;
mod joined;
mod path;
mod reverse;

pub use gradients::{Gradients, Key};
pub use reverse::LossWith;
