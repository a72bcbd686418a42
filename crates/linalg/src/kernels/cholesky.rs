//! The Cholesky factor.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::substitution::record_solution;
use super::transposed;
use crate::batches::{ELEMENT_MOVE_COST, cost, count_matrices, for_each_range};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{batch_shape, contiguous, elements, matrix_size};
use crate::numerics::failure::RangeFailure;
use crate::numerics::ranges::cholesky_all;
use crate::numerics::triangular::TriangularPart;

/// The kernel that computes the lower triangular L with A = L Lᵀ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cholesky;

impl Kernel for Cholesky {
    const NAME: &'static str = "cholesky";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (shape, a) = (inputs[0].shape(), contiguous(inputs[0])?);
        let (n, _) = matrix_size(shape);
        let filled = Tensor::from_fill(shape.clone(), at, |l: &mut [T]| {
            l.copy_from_slice(elements(&a));
            let count = count_matrices(l.len(), n, n);
            for_each_range(count, cost(&[n, n, n / 4 + ELEMENT_MOVE_COST]), [l], |first, _, [data]| {
                cholesky_all(data, n, first)
            })
        });
        let (l, ()) = filled.map_err(|failure: RangeFailure| {
            failure.error(&batch_shape(shape, 2), at, |element, order| {
                format!(
                    "linalg.cholesky: {element}The factorization could not be completed because the input is not positive-definite \
                     (the leading minor of order {order} is not positive-definite)."
                )
            })
        })?;
        Ok(vec![l])
    }

    /// The gradient is the symmetric part of L⁻ᵀ Φ(Lᵀ G) L⁻¹, where L is the factor, and G is the gradient with respect to L. Φ(X) is the
    /// lower triangle of X, with half of the diagonal.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let u = transposed(call.outputs[0]);
        let product = u.matmul(gradients[0].try_tril(0)?);
        // `twice` is 2 Φ(Lᵀ G). So the symmetric part of Φ(Lᵀ G) is a quarter of the sum of `twice` and its transpose.
        let twice = product.try_tril(0)? + product.try_tril(-1)?;
        let symmetric = (twice + transposed(twice)) * 0.25;
        let half = record_solution(TriangularPart::UPPER, u, symmetric)?;
        Ok(vec![Some(record_solution(TriangularPart::UPPER, u, transposed(half))?)])
    }
}
