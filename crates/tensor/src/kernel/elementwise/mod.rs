//! Elementwise operations over a block of elements.

pub(crate) mod block;
mod bool;
mod float;
mod int;
pub(crate) mod loops;
pub(crate) mod operand;
