//! Computations on matrices that are stored row by row in slices.
//!
//! Eliminations (`lu`, `cholesky`, `triangular`) divide large problems in halves, so most of the work is in products of matrices. They
//! compute small halves block by block with `tiles`. `lanes` computes small matrices of a batch together. `ranges` chooses between `lanes`
//! and single matrices.
//!
//! Eigenvalues and singular values begin with reflections (`reflectors`, `tridiagonal`, `bidiagonal`). With `parts`, several threads apply
//! them to a large matrix. Small matrices, and large ones without vectors, then use rotations (`eigen`, `implicit_qr`, `rotations`). Large
//! matrices with vectors are divided by `halves`: `symmetric_halves` and `bidiagonal_halves` join two solutions with `secular` and
//! `joined_rows`. Eigenvalues of matrices that are not symmetric (`general`) follow from the Schur form (`schur`). The other files compute
//! one result each (`qr`, `singular`, `pseudoinverse`, `exponential`, `cofactors`), or have operations that several files share
//! (`arithmetic`, `products`, `differences`, `failure`).

pub(crate) mod arithmetic;
mod bidiagonal;
mod bidiagonal_halves;
mod cholesky;
pub(crate) mod cofactors;
mod differences;
pub(crate) mod eigen;
pub(crate) mod exponential;
pub(crate) mod failure;
pub(crate) mod general;
mod halves;
mod implicit_qr;
mod joined_rows;
mod lanes;
pub(crate) mod lu;
mod parts;
mod products;
pub(crate) mod pseudoinverse;
pub(crate) mod qr;
pub(crate) mod ranges;
mod reflectors;
mod rotations;
mod schur;
mod secular;
pub(crate) mod singular;
mod symmetric_halves;
mod tiles;
pub(crate) mod triangular;
mod tridiagonal;
