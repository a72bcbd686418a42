//! The kernels. Each kernel computes the results of a batch with tensors, and has a derivative rule.
//!
//! The rules are formulas over recorded variables, so they can be differentiated again. If a rule names no other source and no derivation,
//! its source is M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation"
//! (2008).

pub(crate) mod cholesky;
pub(crate) mod determinants;
pub(crate) mod eig;
pub(crate) mod eigh;
pub(crate) mod exponential;
pub(crate) mod inverse;
pub(crate) mod lu;
pub(crate) mod pseudoinverse;
pub(crate) mod qr;
pub(crate) mod substitution;
pub(crate) mod svd;

use wengert_autograd::{Error, Var};
use wengert_tensor::Site;
use wengert_tensor::prelude::*;

use crate::array::apply_several;
use crate::kernel::Kernel;

/// Records a kernel with a single result. Derivative rules call this function.
fn apply_kernel<'t, T: Float>(kernel: impl Kernel, inputs: &[Var<'t, T>]) -> Result<Var<'t, T>, Error> {
    let [result] = apply_kernel_all(kernel, inputs)?;
    Ok(result)
}

/// Records a kernel with `N` results. Derivative rules call this function.
fn apply_kernel_all<'t, T: Float, K: Kernel, const N: usize>(
    kernel: K,
    inputs: &[Var<'t, T>],
) -> Result<[Var<'t, T>; N], Error> {
    let inputs: Vec<&Var<'t, T>> = inputs.iter().collect();
    apply_several(kernel, &inputs, Site::here(K::NAME))
}

/// Returns the transposes of the matrices in `x`.
pub(crate) fn transposed<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    x.transpose(-2, -1)
}

/// Returns 1 / x, and 0 where x is 0. The derivative is 0 there too.
pub(crate) fn inverse_or_zero<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    let zero = x.eq(0.0);
    (x + zero).reciprocal() * (zero * -1.0 + 1.0)
}

/// Returns the matrix of the differences xⱼ - xᵢ, where i is the row and j is the column.
pub(crate) fn differences<'t, T: Float>(x: Var<'t, T>) -> Var<'t, T> {
    x.unsqueeze(-2) - x.unsqueeze(-1)
}
