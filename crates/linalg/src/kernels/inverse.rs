//! The inverse of matrices.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::lu::Singular;
use super::transposed;
use crate::array::{Array, apply};
use crate::batches::for_each_range;
use crate::kernel::Kernel;
use crate::matrices::{batch_of, sizes, zeros};
use crate::numerics::ranges::invert_all;

/// Returns the inverses of the matrices `a`. `singular` says whether a singular matrix is an error, and selects its message.
pub(crate) fn inverse<A: Array>(a: &A, singular: Singular, at: Site) -> Result<A, A::Error> {
    apply(Inverse(singular), &[a], at)
}

/// The kernel that computes Y = A⁻¹.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inverse(pub(super) Singular);

impl Kernel for Inverse {
    const NAME: &'static str = "inv";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shape = inputs[0].shape();
        let (n, _) = sizes(shape);
        let (mut lu, mut result) = (inputs[0].try_to_vec()?, zeros::<T>(shape)?);
        if lu.is_empty() {
            return Ok(vec![result]);
        }
        let refuse = self.0 != Singular::Accepted;
        let outputs = [lu.as_mut_slice(), result.make_mut()];
        let done = for_each_range(inputs[0].numel() / (n * n), n * n * n, outputs, |first, _, [lu, result]| {
            invert_all(lu, result, n, (first, refuse))
        });
        done.map_err(|failure| {
            failure.error(&batch_of(shape, 2), at, |element, order| self.0.sentence(&element, order))
        })?;
        Ok(vec![result])
    }

    /// The gradient is -Yᵀ G Yᵀ, where G is the gradient with respect to Y.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let y = transposed(call.outputs[0]);
        vec![Some(-y.matmul(gradients[0]).matmul(y))]
    }
}
