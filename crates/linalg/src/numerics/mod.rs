//! Decompositions of one matrix, which lies row by row in a slice.

pub(crate) mod arithmetic;
mod bidiagonal;
pub(crate) mod eigen;
pub(crate) mod exponential;
mod implicit_qr;
mod products;
pub(crate) mod pseudoinverse;
pub(crate) mod qr;
mod reflectors;
mod rotations;
pub(crate) mod singular;
mod tridiagonal;

#[cfg(test)]
mod tests;
