//! The kernels that compute and use the factors P L U of a matrix.

use std::borrow::Cow;

use wengert_autograd::{Error as RuleError, FunctionCall, Var};
use wengert_tensor::ops::try_cat;
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::substitution::record_solution;
use super::{apply_kernel, transposed};
use crate::array::{Array, apply, apply_several};
use crate::batches::{cost, count_matrices, for_each_range};
use crate::kernel::{Computation, Gradients, Kernel};
use crate::matrices::{batch_shape, contiguous, elements, matrix_size, with_core, zeros};
use crate::numerics::failure::RangeFailure;
use crate::numerics::lu::exchange_rows;
use crate::numerics::ranges::{lu_factor_all, lu_solve_all, solve_all, solve_triangular_all};
use crate::numerics::triangular::TriangularPart;

/// The operation that refuses singular matrices. The error message depends on it. `Accepted` means that a singular matrix is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SingularPolicy {
    Accepted,
    LuFactor,
    Solve,
    Inv,
}

impl SingularPolicy {
    /// Returns PyTorch's error message. `element` is the text that names the matrix of a batch. `order` is the position of the first zero
    /// on the diagonal of U, counted from 1.
    pub(crate) fn sentence(self, element: &str, order: usize) -> String {
        match self {
            SingularPolicy::Solve => {
                format!("torch.linalg.solve: {element}The solver failed because the input matrix is singular.")
            }
            SingularPolicy::Inv | SingularPolicy::Accepted => format!(
                "linalg.inv: {element}The diagonal element {order} is zero, the inversion could not be completed because the input \
                 matrix is singular."
            ),
            SingularPolicy::LuFactor => format!(
                "torch.linalg.lu_factor: {element}U[{order},{order}] is zero and using it on lu_solve would result in a division by \
                 zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or \
                 linalg.lu_factor_ex(A, pivot)"
            ),
        }
    }
}

/// The kernel that factors A = P L U. It computes L and U, stored in one matrix, and the row exchanges, counted from 1 as in LAPACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LuFactor(pub(crate) SingularPolicy);

impl Kernel for LuFactor {
    const NAME: &'static str = "lu_factor";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (rows, columns) = matrix_size(&inputs[0]);
        vec![inputs[0].clone(), with_core(&batch_shape(&inputs[0], 2), &[rows.min(columns)])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (shape, a) = (inputs[0].shape(), contiguous(inputs[0])?);
        let (rows, columns) = matrix_size(shape);
        let (k, batch) = (rows.min(columns), batch_shape(shape, 2));
        let refuse_singular = self.0 != SingularPolicy::Accepted;
        let filled = Tensor::from_fill(shape.clone(), at, |lu: &mut [T]| {
            lu.copy_from_slice(elements(&a));
            let (pivots, ()) = Tensor::from_fill(with_core(&batch, &[k]), at, |pivots: &mut [T]| {
                let count = count_matrices(lu.len(), rows, columns);
                let cost = cost(&[rows, columns, k]) / 2;
                for_each_range(count, cost, [lu, pivots], |first, _, [lu, pivots]| {
                    lu_factor_all(lu, (rows, columns), pivots, (first, refuse_singular))
                })
            })?;
            Ok(pivots)
        });
        let (lu, pivots) = filled.map_err(|failure: RangeFailure| {
            failure.error(&batch, at, |element, order| self.0.sentence(&element, order))
        })?;
        Ok(vec![lu, pivots])
    }

    /// For A = P L U, let X = L⁻¹ Pᵀ dA U⁻¹. Then dL = L tril(X, -1) and dU = triu(X) U. If A is not square, this rule applies to the
    /// leading square block of Pᵀ A. Its remaining rows are the product of the remaining rows of L with U. Its remaining columns are the
    /// product of L with the remaining columns of U.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        Ok(vec![Some(lu_gradient(call.outputs[0], call.outputs[1], gradients[0])?)])
    }
}

/// Returns the gradient with respect to A = P L U. `lu` has L and U in one matrix, and `g` is the gradient with respect to this matrix.
fn lu_gradient<'t, T: Float>(lu: Var<'t, T>, pivots: Var<'t, T>, g: Var<'t, T>) -> Result<Var<'t, T>, RuleError> {
    let (rows, columns) = matrix_size(&lu.shape());
    let k = rows.min(columns);
    let leading_square = |x: Var<'t, T>| x.narrow(-2, 0, k).narrow(-1, 0, k);
    let remaining_columns = |x: Var<'t, T>| x.narrow(-1, k, columns - k);
    let remaining_rows = |x: Var<'t, T>| x.narrow(-2, k, rows - k);
    let (factors, square_gradient) = (leading_square(lu), leading_square(g));
    let (unit_lower, upper) = (factors.try_tril(-1)?.try_add(Tensor::try_eye(k)?)?, factors.try_triu(0)?);
    let mut lower = transposed(unit_lower).matmul(square_gradient.try_tril(-1)?);
    let mut diagonal = square_gradient.try_triu(0)?.matmul(transposed(upper));
    if columns > k {
        lower -= remaining_columns(g).matmul(transposed(remaining_columns(lu)));
    }
    if rows > k {
        diagonal -= transposed(remaining_rows(lu)).matmul(remaining_rows(g));
    }
    // Returns Y U⁻ᵀ. The solver multiplies by an inverse from the left, so this is computed as (U⁻¹ Yᵀ)ᵀ.
    let divide_by_upper =
        |y: Var<'t, T>| Ok::<_, RuleError>(transposed(record_solution(TriangularPart::UPPER, factors, transposed(y))?));
    let divide_by_unit_lower = |y: Var<'t, T>| record_solution(TriangularPart::UNIT_UPPER, transposed(factors), y);
    let mut permuted_gradient = divide_by_unit_lower(divide_by_upper(lower.try_tril(-1)? + diagonal.try_triu(0)?)?)?;
    if columns > k {
        permuted_gradient = try_cat(&[permuted_gradient, divide_by_unit_lower(remaining_columns(g))?], -1)?;
    }
    if rows > k {
        permuted_gradient = try_cat(&[permuted_gradient, divide_by_upper(remaining_rows(g))?], -2)?;
    }
    apply_kernel(Permutation { rows }, &[pivots])?.try_matmul(permuted_gradient)
}

/// The kernel that computes the permutation matrix P from the row exchanges.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    rows: usize,
}

impl Kernel for Permutation {
    const NAME: &'static str = "permutation";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![with_core(&batch_shape(&inputs[0], 1), &[self.rows, self.rows])]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], _at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (n, pivots) = (self.rows, inputs[0].try_contiguous()?);
        let shape = self.shapes(&[pivots.shape().clone()]).swap_remove(0);
        let mut matrices = zeros::<T>(&shape)?;
        let width = pivots.shape().last().copied().unwrap_or_default();
        if let Some(pivots) = pivots.as_slice().filter(|_| matrices.numel() > 0) {
            for (example, matrix) in matrices.make_mut().chunks_exact_mut(n * n).enumerate() {
                for row in 0..n {
                    matrix[row * n + row] = T::ONE;
                }
                exchange_rows(&pivots[example * width..][..width], matrix, n, true);
            }
        }
        Ok(vec![matrices])
    }

    fn vjp<'t, T: Float>(&self, _call: &FunctionCall<'t, T>, _gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        Ok(vec![None])
    }
}

/// Returns the permutation matrices P for the row exchanges `pivots` of matrices with `rows` rows.
pub(crate) fn permutation<A: Array>(pivots: &A, rows: usize, at: Site) -> Result<A, A::Error> {
    apply(Permutation { rows }, &[pivots], at)
}

/// Factors matrices A = P L U. Returns L and U in one matrix, and the row exchanges. `policy` says whether a singular matrix is an error,
/// and selects its message.
pub(crate) fn lu_factor<A: Array>(a: &A, policy: SingularPolicy, at: Site) -> Result<[A; 2], A::Error> {
    apply_several(LuFactor(policy), &[a], at)
}

/// The kernel that computes X = A⁻¹ B, or A⁻ᵀ B if `adjoint` is true. The inputs are A, its factors, its row exchanges, and B.
///
/// Only A and B have gradients. The factors and row exchanges are inputs so that they are not computed again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolveWithFactors {
    pub(crate) adjoint: bool,
}

impl Kernel for SolveWithFactors {
    const NAME: &'static str = "solve";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[3].clone()]
    }

    fn run<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let lu = if self.adjoint {
            Cow::Owned(inputs[1].try_transpose(-2, -1)?.try_contiguous()?)
        } else {
            contiguous(inputs[1])?
        };
        let [pivots, b] = [contiguous(inputs[2])?, contiguous(inputs[3])?];
        let (n, width) = matrix_size(b.shape());
        let filled = Tensor::from_fill(b.shape().clone(), at, |x: &mut [T]| {
            x.copy_from_slice(elements(&b));
            let (lu, pivots) = (elements(&lu), elements(&pivots));
            let count = count_matrices(x.len(), n, width);
            for_each_range(count, cost(&[n, n, width]), [x], |first, count, [x]| {
                let (lu, pivots) = (&lu[first * n * n..][..count * n * n], &pivots[first * n..][..count * n]);
                if !self.adjoint {
                    return Ok(lu_solve_all(lu, pivots, x, (n, width))?);
                }
                solve_triangular_all(TriangularPart::LOWER, lu, x, (n, width))?;
                solve_triangular_all(TriangularPart::UNIT_UPPER, lu, x, (n, width))?;
                for (pivots, x) in pivots.chunks_exact(n).zip(x.chunks_exact_mut(n * width)) {
                    exchange_rows(pivots, x, width, true);
                }
                Ok(())
            })
        });
        let (x, ()) = filled.map_err(|failure: RangeFailure| failure.error(&[], at, |_, _| String::new()))?;
        Ok(vec![x])
    }

    /// For X = A⁻¹ B, the gradient with respect to B is Y = A⁻ᵀ G, where G is the gradient with respect to X. The gradient with respect to
    /// A is -Y Xᵀ. For X = A⁻ᵀ B, Y is A⁻¹ G, and the gradient with respect to A is -X Yᵀ.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Gradients<'t, T> {
        let [a, lu, pivots] = [call.inputs[0], call.inputs[1], call.inputs[2]];
        let y = apply_kernel(SolveWithFactors { adjoint: !self.adjoint }, &[a, lu, pivots, gradients[0]])?;
        let (left, right) = if self.adjoint { (call.outputs[0], y) } else { (y, call.outputs[0]) };
        Ok(vec![Some(-left.matmul(transposed(right))), None, None, Some(y)])
    }
}

/// The computation of X = A⁻¹ B for tensors with equal batch dimensions. B is a batch of matrices, or of vectors with as many elements as A
/// has rows. It needs no memory for the factors of all matrices A.
pub(crate) struct EagerSolve;

impl Computation for EagerSolve {
    fn compute<T: Float>(&self, inputs: &[&Tensor<T>], at: Site) -> Result<Tensor<T>, Error> {
        let [a, b] = [contiguous(inputs[0])?, contiguous(inputs[1])?];
        let (n, _) = matrix_size(a.shape());
        let width = if b.rank() < a.rank() { 1 } else { matrix_size(b.shape()).1 };
        let filled = Tensor::from_fill(b.shape().clone(), at, |x: &mut [T]| {
            x.copy_from_slice(elements(&b));
            let (a, count) = (elements(&a), count_matrices(a.numel(), n, n));
            for_each_range(count, cost(&[n, n, n / 2 + width]), [x], |first, count, [x]| {
                solve_all(&a[first * n * n..][..count * n * n], x, (n, width), first)
            })
        });
        let (x, ()) = filled.map_err(|failure: RangeFailure| {
            let batch = batch_shape(a.shape(), 2);
            failure.error(&batch, at, |element, order| SingularPolicy::Solve.sentence(&element, order))
        })?;
        Ok(x)
    }
}
