//! Kernels, each beside its derivative.
//!
//! The rules are formulas over recorded variables, so they can be differentiated again.

pub(crate) mod eigh;
pub(crate) mod exponential;
pub(crate) mod pseudoinverse;
pub(crate) mod qr;
pub(crate) mod svd;

use wengert_autograd::Var;
use wengert_tensor::prelude::*;

/// Returns the matrices with rows and columns exchanged.
pub(crate) fn transposed<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    x.transpose(-2, -1)
}

/// Returns 1 / x, and 0 where x is 0. The derivative is 0 there too.
pub(crate) fn inverse_or_zero<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    let zero = x.eq(0.0);
    (x + zero).reciprocal() * (zero * -1.0 + 1.0)
}

/// Returns the matrix of the differences xⱼ - xᵢ, with i for the rows.
pub(crate) fn differences<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    x.unsqueeze(-2) - x.unsqueeze(-1)
}
