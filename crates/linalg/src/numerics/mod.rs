//! Computations on one matrix, which lies row by row in a slice.
//!
//! Eliminations (`lu`, `cholesky`, `triangular`) divide large problems in halves, so most of the work is in products of matrices. They compute
//! the parts block by block with `tiles`. `lanes` computes small matrices of a batch together, and `ranges` chooses between the two. The
//! other files decompose by reflections and rotations.

pub(crate) mod arithmetic;
mod bidiagonal;
mod bidiagonal_halves;
mod cholesky;
pub(crate) mod cofactors;
mod differences;
pub(crate) mod eigen;
pub(crate) mod exponential;
pub(crate) mod failure;
mod implicit_qr;
mod joined_rows;
mod lanes;
pub(crate) mod lu;
mod products;
pub(crate) mod pseudoinverse;
pub(crate) mod qr;
pub(crate) mod ranges;
mod reflectors;
mod rotations;
mod secular;
pub(crate) mod singular;
mod symmetric_halves;
mod tiles;
pub(crate) mod triangular;
mod tridiagonal;

#[cfg(test)]
mod tests;
