//! Factors of one matrix, and solutions with them. A matrix is a slice, row by row.
//!
//! Large problems are divided in halves until the parts fit the caches. So most of the work is in products of matrices.

mod batches;
mod cholesky;
mod cofactors;
mod failure;
mod lanes;
mod lu;
mod products;
mod triangular;

pub(crate) use batches::{cholesky_all, factor_all, invert_all, lu_solve_all, solve_triangular_all};
pub(crate) use cofactors::cofactors;
pub(crate) use failure::Failure;
pub(crate) use lu::exchange_rows;
pub(crate) use triangular::Coefficients;
