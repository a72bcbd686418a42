//! Inspection of the program that a tape has recorded: graphs, and the origin of the first NaN or infinity. Also the list of steps, for
//! code that converts the program to another format.

mod graph;
mod non_finite;
mod program;
mod svg;

pub use graph::Graph;
pub(crate) use non_finite::index_of;
pub use non_finite::{NonFinite, NonFiniteOperand};
pub use program::{Custom, Program, Step};
