//! Inspection of the program that a tape has recorded: graphs, and the origin of the first NaN or infinity.

mod graph;
mod non_finite;
mod svg;

pub use graph::Graph;
pub(crate) use non_finite::index_of;
pub use non_finite::{NonFinite, NonFiniteOperand};
