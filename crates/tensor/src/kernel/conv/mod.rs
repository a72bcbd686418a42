//! Convolutions.

pub(crate) mod convolution;
pub(crate) mod direct;
pub(crate) mod geometry;
pub(crate) mod im2col;
pub(crate) mod planes;
