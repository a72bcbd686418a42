//! Convolutions: by columns and a matrix product, or directly.

pub(crate) mod direct;
pub(crate) mod im2col;
pub(crate) mod vector;
