//! Operations that rearrange elements: views, joining, splitting, padding, repetition, diagonals.

pub(crate) mod diagonals;
pub(crate) mod joining;
pub(crate) mod padding;
pub(crate) mod repetition;
pub(crate) mod shuffles;
pub(crate) mod splitting;
pub(crate) mod views;
