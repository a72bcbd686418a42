//! The kernels around the factors P L U.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::ops::{Arithmetic as _, Diagonals as _, Products as _, Views as _};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::substitution;
use crate::array::{Array, apply, apply_pair};
use crate::batches::for_each_range;
use crate::factors::{self, Coefficients, Failure};
use crate::kernel::Kernel;
use crate::matrices::{batch_of, copy_of, sizes, transposed, with_core, zeros};

/// The lower triangle with ones on the diagonal: the factor L.
pub(super) const L: Coefficients = Coefficients { upper: false, unit: true };
/// The upper triangle: the factor U.
pub(super) const U: Coefficients = Coefficients { upper: true, unit: false };

/// The operation that refuses matrices without an inverse, for its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Singular {
    Accepted,
    LuFactor,
    Solve,
    Inv,
}

impl Singular {
    /// Returns PyTorch's sentence. `element` names the matrix of a batch, and `order` the first zero on the diagonal.
    pub(super) fn sentence(self, element: &str, order: usize) -> String {
        match self {
            Singular::Solve => {
                format!("torch.linalg.solve: {element}The solver failed because the input matrix is singular.")
            }
            Singular::Inv | Singular::Accepted => format!(
                "linalg.inv: {element}The diagonal element {order} is zero, the inversion could not be completed because the input \
                 matrix is singular."
            ),
            Singular::LuFactor => format!(
                "torch.linalg.lu_factor: {element}U[{order},{order}] is zero and using it on lu_solve would result in a division by \
                 zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or \
                 linalg.lu_factor_ex(A, pivot)"
            ),
        }
    }
}

/// The matrices L and U in one matrix, and the row exchanges, counted from 1 as in LAPACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor(pub(super) Singular);

impl Kernel for Factor {
    const NAME: &'static str = "lu_factor";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        let (rows, columns) = sizes(&inputs[0]);
        vec![inputs[0].clone(), with_core(&batch_of(&inputs[0], 2), &[rows.min(columns)])]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shapes = self.shapes(&[inputs[0].shape().clone()]);
        let (mut lu, mut pivots) = (copy_of(&inputs[0])?, zeros::<T>(&shapes[1])?);
        let (rows, columns) = sizes(lu.shape());
        let least = rows.min(columns);
        if lu.numel() > 0 {
            let count = lu.numel() / (rows * columns);
            let cost = rows * columns * least / 2;
            let done = for_each_range(count, cost, [lu.make_mut(), pivots.make_mut()], |first, _, [lu, pivots]| {
                let refuse = self.0 != Singular::Accepted;
                factors::factor_all(lu, (rows, columns), pivots, (first, refuse))
            });
            done.map_err(|failure| {
                failure.error(&batch_of(&shapes[0], 2), at, |element, order| self.0.sentence(&element, order))
            })?;
        }
        Ok(vec![lu, pivots])
    }

    /// For A = P L U and X = L⁻¹ Pᵀ dA U⁻¹: dL = L tril(X, -1), dU = triu(X) U. If A has more columns than rows, or more rows than
    /// columns, the other part of the longer factor is a product with the square part of A.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let result = factor_rule(&call.outputs[0], &call.outputs[1], &gradients[0], Site::here(Self::NAME));
        vec![Some(result.unwrap_or_else(|error| crate::raise(error)))]
    }
}

/// Returns the gradient with respect to A from the gradient `g` with respect to L and U in one matrix.
fn factor_rule<A: Array>(lu: &A, pivots: &A, g: &A, at: Site) -> Result<A, A::Error> {
    let (rows, columns) = sizes(&lu.shape());
    let least = rows.min(columns);
    let part = |x: &A, row: usize, height: usize, column: usize, width: usize| {
        x.try_narrow(-2, row, height)?.try_narrow(-1, column, width)
    };
    let square = part(lu, 0, least, 0, least)?;
    let (unit, upper) = (with_unit_diagonal(&square)?, square.try_triu(0)?);
    let own = part(g, 0, least, 0, least)?;
    let mut lower = transposed(&unit)?.try_matmul(&own.try_tril(-1)?)?;
    let mut diagonal = own.try_triu(0)?.try_matmul(&transposed(&upper)?)?;
    if columns > least {
        let (beside, g) = (part(lu, 0, least, least, columns - least)?, part(g, 0, least, least, columns - least)?);
        lower = lower.try_sub(&g.try_matmul(&transposed(&beside)?)?)?;
    }
    if rows > least {
        let (below, g) = (part(lu, least, rows - least, 0, least)?, part(g, least, rows - least, 0, least)?);
        diagonal = diagonal.try_sub(&transposed(&below)?.try_matmul(&g)?)?;
    }
    let both = lower.try_tril(-1)?.try_add(&diagonal.try_triu(0)?)?;
    // Y U⁻ᵀ = (U⁻¹ Yᵀ)ᵀ.
    let divided = |y: &A| transposed(&substitution::solve(U, &square, &transposed(y)?, at)?);
    let by_unit = |y: &A| substitution::solve(L.transposed(), &transposed(&square)?, y, at);
    let mut whole = by_unit(&divided(&both)?)?;
    if columns > least {
        whole = wengert_tensor::ops::try_cat(&[whole, by_unit(&part(g, 0, least, least, columns - least)?)?], -1)?;
    }
    if rows > least {
        whole = wengert_tensor::ops::try_cat(&[whole, divided(&part(g, least, rows - least, 0, least)?)?], -2)?;
    }
    permutation(pivots, rows, at)?.try_matmul(&whole)
}

/// Returns the lower triangle of square matrices with ones on the diagonal.
pub(super) fn with_unit_diagonal<A: Array>(square: &A) -> Result<A, A::Error> {
    let (n, _) = sizes(&square.shape());
    square.try_tril(-1)?.try_add(&square.constant(&Tensor::eye(n)))
}

/// The permutation matrix P of the row exchanges.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    rows: usize,
}

impl Kernel for Permutation {
    const NAME: &'static str = "permutation";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![with_core(&batch_of(&inputs[0], 1), &[self.rows, self.rows])]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], _at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (n, pivots) = (self.rows, inputs[0].try_contiguous()?);
        let shape = self.shapes(&[pivots.shape().clone()]).swap_remove(0);
        let mut matrices = zeros::<T>(&shape)?;
        let width = pivots.shape().last().copied().unwrap_or_default();
        if let Some(pivots) = pivots.as_slice().filter(|_| n > 0) {
            for (example, matrix) in matrices.make_mut().chunks_exact_mut(n * n).enumerate() {
                for row in 0..n {
                    matrix[row * n + row] = T::ONE;
                }
                factors::exchange_rows(&pivots[example * width..][..width], matrix, n, true);
            }
        }
        Ok(vec![matrices])
    }

    fn vjp<'t, T: Float>(&self, _call: &FunctionCall<'t, T>, _gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        vec![None]
    }
}

/// Returns the permutation matrices P of row exchanges, with `rows` rows.
pub(super) fn permutation<A: Array>(pivots: &A, rows: usize, at: Site) -> Result<A, A::Error> {
    apply(Permutation { rows }, &[pivots], at)
}

/// Returns the matrices L and U in one matrix, and the row exchanges.
pub(super) fn factor<A: Array>(a: &A, singular: Singular, at: Site) -> Result<[A; 2], A::Error> {
    apply_pair(Factor(singular), &[a], at)
}

/// X = A⁻¹ B, or A⁻ᵀ B if `adjoint` is true. The inputs are A, its factors, its row exchanges, and B.
///
/// The derivative is the derivative with respect to A and B. The factors are known numbers that save the work.
#[derive(Clone, Copy, Debug)]
pub(super) struct SolveWith {
    pub(super) adjoint: bool,
}

impl Kernel for SolveWith {
    const NAME: &'static str = "solve";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[3].clone()]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let lu = if self.adjoint { transposed(&inputs[1])?.try_contiguous()? } else { inputs[1].try_contiguous()? };
        let (pivots, mut x) = (inputs[2].try_contiguous()?, copy_of(&inputs[3])?);
        let (n, width) = sizes(x.shape());
        if x.numel() == 0 {
            return Ok(vec![x]);
        }
        let (Some(lu), Some(pivots)) = (lu.as_slice(), pivots.as_slice()) else { return Ok(vec![x]) };
        let count = x.numel() / (n * width);
        let solved = for_each_range(count, n * n * width, [x.make_mut()], |first, count, [x]| {
            let (lu, pivots) = (&lu[first * n * n..][..count * n * n], &pivots[first * n..][..count * n]);
            if !self.adjoint {
                return Ok(factors::lu_solve_all(lu, pivots, x, (n, width))?);
            }
            factors::solve_triangular_all(Coefficients { upper: false, unit: false }, lu, x, (n, width))?;
            factors::solve_triangular_all(Coefficients { upper: true, unit: true }, lu, x, (n, width))?;
            for (pivots, x) in pivots.chunks_exact(n).zip(x.chunks_exact_mut(n * width)) {
                factors::exchange_rows(pivots, x, width, true);
            }
            Ok(())
        });
        solved.map_err(|failure: Failure| failure.error(&[], at, |_, _| String::new()))?;
        Ok(vec![x])
    }

    /// The gradient with respect to B is Y = A⁻ᵀ G. With respect to A it is -Y Xᵀ.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let at = Site::here(Self::NAME);
        let result = || -> Result<_, wengert_autograd::Error> {
            let [a, lu, pivots] = [call.inputs[0], call.inputs[1], call.inputs[2]];
            let y = apply(SolveWith { adjoint: !self.adjoint }, &[&a, &lu, &pivots, &gradients[0]], at)?;
            let (left, right) = if self.adjoint { (call.outputs[0], y) } else { (y, call.outputs[0]) };
            Ok(vec![Some(-left.try_matmul(transposed(&right)?)?), None, None, Some(y)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}
