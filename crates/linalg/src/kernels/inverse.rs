//! The inverse of matrices.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::lu::SingularPolicy;
use super::transposed;
use crate::array::{Array, apply};
use crate::batches::{cost, count_matrices, for_each_range};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, contiguous, elements, matrix_size};
use crate::numerics::failure::RangeFailure;
use crate::numerics::ranges::invert_all;

/// Returns the inverses of the matrices `a`. `policy` says whether a singular matrix is an error, and selects its message.
pub(crate) fn inverse<A: Array>(a: &A, policy: SingularPolicy, at: Site) -> Result<A, A::Error> {
    apply(Inverse(policy), &[a], at)
}

/// The kernel that computes Y = A⁻¹.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inverse(pub(super) SingularPolicy);

impl Kernel for Inverse {
    const NAME: &'static str = "inv";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (shape, a) = (inputs[0].shape(), contiguous(inputs[0])?);
        let (n, _) = matrix_size(shape);
        let refuse_singular = self.0 != SingularPolicy::Accepted;
        let filled = Tensor::from_fill(shape.clone(), at, |inverses: &mut [T]| {
            let (a, count) = (elements(&a), count_matrices(inverses.len(), n, n));
            for_each_range(count, cost(&[n, n, n]), [inverses], |first, count, [inverses]| {
                invert_all(&a[first * n * n..][..count * n * n], inverses, n, (first, refuse_singular))
            })
        });
        let (result, ()) = filled.map_err(|failure: RangeFailure| {
            failure.error(&batch_shape(shape, 2), at, |element, order| self.0.sentence(&element, order))
        })?;
        Ok(vec![result])
    }

    /// The gradient is -Yᵀ G Yᵀ, where Y is the inverse, and G is the gradient with respect to Y.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let y = transposed(call.outputs[0]);
        Ok(vec![Some(-y.matmul(gradients[0]).matmul(y))])
    }
}
