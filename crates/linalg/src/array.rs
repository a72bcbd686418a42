//! The arrays that the operations of this crate accept. A tensor computes a result immediately; a variable records the operation.

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::TensorLike;
use wengert_tensor::{self as tensor, Float, Site, Tensor};

use crate::kernel::{Computation, Kernel, Recorded};

/// An array of floating-point numbers whose last two dimensions are a matrix: a tensor or a recorded variable.
pub trait Array: TensorLike<Elem: Float> {
    /// Computes or records `kernel` for `inputs`, whose batch dimensions are equal.
    ///
    /// # Errors
    ///
    /// If the kernel has no result for a matrix (for example, the inverse of a singular matrix), or there is not enough memory.
    #[doc(hidden)]
    fn apply_kernel<K: Kernel>(kernel: K, inputs: &[&Self], at: Site) -> Result<Vec<Self>, Self::Error>;

    /// Computes the result of an operation that consists of several kernels. Nothing is recorded. Returns `None` for variables, which record
    /// each kernel instead.
    #[doc(hidden)]
    fn compute_now<C: Computation>(_computation: C, _inputs: &[&Self], _at: Site) -> Option<Result<Self, Self::Error>> {
        None
    }
}

impl<T: Float> Array for Tensor<T> {
    fn apply_kernel<K: Kernel>(kernel: K, inputs: &[&Self], at: Site) -> Result<Vec<Self>, tensor::Error> {
        kernel.run(inputs, at)
    }

    fn compute_now<C: Computation>(computation: C, inputs: &[&Self], at: Site) -> Option<Result<Self, tensor::Error>> {
        Some(computation.compute(inputs, at))
    }
}

impl<T: Float> Array for Var<'_, T> {
    fn apply_kernel<K: Kernel>(kernel: K, inputs: &[&Self], at: Site) -> Result<Vec<Self>, Error> {
        let inputs: Vec<Self> = inputs.iter().map(|&&input| input).collect();
        inputs[0].tape().record_function(Recorded { kernel, at }, &inputs, at)
    }
}

/// Computes or records a kernel with a single result.
pub(crate) fn apply<A: Array>(kernel: impl Kernel, inputs: &[&A], at: Site) -> Result<A, A::Error> {
    let [result] = apply_several(kernel, inputs, at)?;
    Ok(result)
}

/// Computes or records a kernel with `N` results.
pub(crate) fn apply_several<A: Array, const N: usize>(
    kernel: impl Kernel,
    inputs: &[&A],
    at: Site,
) -> Result<[A; N], A::Error> {
    let results = <[A; N]>::try_from(A::apply_kernel(kernel, inputs, at)?);
    Ok(results.unwrap_or_else(|results| unreachable!("the kernel has {} results, not {N}", results.len())))
}
