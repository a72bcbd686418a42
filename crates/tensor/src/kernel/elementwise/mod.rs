//! Elementwise operations over a block of elements.

pub(crate) mod block;
pub(crate) mod loops;
pub(crate) mod operand;
