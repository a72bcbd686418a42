//! Matrix products and products of vectors.

pub(crate) mod blas;
pub(crate) mod contraction;
pub(crate) mod equation;
pub(crate) mod linear;
pub(crate) mod products;
pub(crate) mod vectors;
