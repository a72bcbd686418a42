//! Reductions over some dimensions.

pub(crate) mod accumulator;
pub(crate) mod arg;
pub(crate) mod kernels;
mod lines;
mod rows;
pub(crate) mod strided;
