//! Reverse and forward mode: both only append nodes.

mod forward;
mod gradients;
mod path;
mod reverse;

pub use gradients::{Gradients, Key};
pub use reverse::LossWith;
