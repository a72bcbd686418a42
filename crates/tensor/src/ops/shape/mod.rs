//! Operations that move elements or only look at them another way.

pub(crate) mod diagonals;
pub(crate) mod joining;
pub(crate) mod padding;
pub(crate) mod repetition;
pub(crate) mod splitting;
pub(crate) mod views;
