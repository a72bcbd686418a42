//! The solution of triangular systems.

use wengert_autograd::{Error as RuleError, FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::{apply_kernel, transposed};
use crate::array::{Array, apply};
use crate::batches::{ELEMENT_MOVE_COST, cost, count_matrices, for_each_range};
use crate::kernel::{Gradients, Kernel};
use crate::matrices::{contiguous, elements, matrix_size};
use crate::numerics::failure::RangeFailure;
use crate::numerics::ranges::solve_triangular_all;
use crate::numerics::triangular::TriangularPart;

/// The kernel that computes X = A⁻¹ B for a triangular A.
#[derive(Clone, Copy, Debug)]
pub(super) struct Substitute(pub(super) TriangularPart);

impl Kernel for Substitute {
    const NAME: &'static str = "solve_triangular";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[1].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let [a, b] = [contiguous(inputs[0])?, contiguous(inputs[1])?];
        let (n, width) = matrix_size(b.shape());
        let filled = Tensor::from_fill(b.shape().clone(), at, |x: &mut [T]| {
            x.copy_from_slice(elements(&b));
            let (matrices, count) = (elements(&a), count_matrices(x.len(), n, width));
            for_each_range(count, cost(&[n, n, width.saturating_add(ELEMENT_MOVE_COST)]), [x], |first, count, [x]| {
                Ok(solve_triangular_all(self.0, &matrices[first * n * n..][..count * n * n], x, (n, width))?)
            })
        });
        let (x, ()) = filled.map_err(|failure: RangeFailure| failure.error(&[], at, |_, _| String::new()))?;
        Ok(vec![x])
    }

    /// For X = A⁻¹ B, the gradient with respect to B is A⁻ᵀ G, where G is the gradient with respect to X. The gradient with respect to A is
    /// -(A⁻ᵀ G) Xᵀ, restricted to A's triangle (without the diagonal if its elements count as ones).
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let right = record_solution(self.0.transposed(), transposed(call.inputs[0]), gradients[0])?;
        let whole = -right.matmul(transposed(call.outputs[0]));
        let offset = isize::from(self.0.unit_diagonal);
        let left = if self.0.upper { whole.try_triu(offset)? } else { whole.try_tril(-offset)? };
        Ok(vec![Some(left), Some(right)])
    }
}

/// Computes or records the solution X of A X = B with a triangular A. The batch dimensions of A and B are equal.
pub(crate) fn solve<A: Array>(part: TriangularPart, a: &A, b: &A, at: Site) -> Result<A, A::Error> {
    apply(Substitute(part), &[a, b], at)
}

/// Records the solution X of A X = B with a triangular A. Derivative rules call this function.
pub(super) fn record_solution<'t, T: Float>(
    part: TriangularPart,
    a: Var<'t, T>,
    b: Var<'t, T>,
) -> Result<Var<'t, T>, RuleError> {
    apply_kernel(Substitute(part), &[a, b])
}
