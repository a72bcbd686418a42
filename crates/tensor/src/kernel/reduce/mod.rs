//! Reductions over some dimensions.

pub(crate) mod accumulator;
pub(crate) mod arg;
pub(crate) mod fold;
pub(crate) mod short;
pub(crate) mod strided;
