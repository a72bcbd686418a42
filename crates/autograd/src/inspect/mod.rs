//! The recorded program, shown; where its first NaN was made.

mod graph;
mod non_finite;

pub use graph::Graph;
pub use non_finite::{NonFinite, NonFiniteOperand};
