//! Systems of linear equations.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, Views as _};
use wengert_tensor::{Error, Shape, Site};

use crate::array::{Array, apply};
use crate::kernels::lu::{EagerSolve, SingularPolicy, SolveWithFactors, lu_factor, permutation};
use crate::kernels::substitution;
use crate::matrices::{
    argument_error, broadcast_batch_shape, broadcast_batches, check_equation, check_rank, check_square, matrix_size,
    transposed, with_core,
};
use crate::numerics::triangular::TriangularPart;
use crate::triangle::{Triangle, TriangularSystem};

/// Systems of linear equations. The last two dimensions are the matrix, and all others are a batch. The batches of several arrays
/// broadcast.
#[twins(blanket)]
pub trait Solving: Array {
    /// Returns the solution X `[…, n, k]` of A X = B. A is `self` and consists of square matrices `[…, n, n]`. The batch dimensions
    /// broadcast. PyTorch: `linalg.solve`.
    ///
    /// B is a vector if `b` is `[n]`, or if `b` is `[…, n]` and has exactly the batch dimensions of A. The result then has vectors too. A
    /// `b` of any other shape consists of matrices `[…, n, k]`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[2.0, 1.0], [0.0, 4.0]]);
    /// assert_eq!(a.solve(Tensor::from([4.0, 8.0])).to_vec(), [1.0, 2.0]);
    /// assert_eq!(a.solve(Tensor::from([[4.0, 2.0], [8.0, 0.0]])), Tensor::from([[1.0, 1.0], [2.0, 0.0]]));
    ///
    /// let error = Tensor::<f64>::zeros([2, 2]).try_solve(Tensor::from([1.0, 1.0])).unwrap_err();
    /// assert_eq!(error.sentence(), "torch.linalg.solve: The solver failed because the input matrix is singular.");
    /// ```
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a matrix is singular, or there is not enough memory. For a variable, the error of a
    /// singular matrix occurs when the variable's value is computed.
    fn try_solve(&self, b: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let (b, at) = (&b.into_array(self)?, Site::here("solve"));
        check_square("linalg.solve", &self.shape(), at)?;
        let (b_shape, a_shape) = (b.shape(), self.shape());
        let is_vector =
            b_shape.rank() == 1 || b_shape.rank() + 1 == a_shape.rank() && b_shape[..] == a_shape[..a_shape.rank() - 1];
        let columns = if is_vector { with_core(&b_shape, &[1]) } else { b_shape.clone() };
        check_rank("linalg.solve", "B", &columns, at)?;
        check_equation("linalg.solve", &a_shape, &columns, true, at)?;
        let batches = [&a_shape[..a_shape.rank() - 2], &columns[..columns.rank() - 2]];
        if batches[0] != batches[1] {
            // Shapes that do not broadcast are reported even if a matrix is also singular.
            broadcast_batch_shape(batches.into_iter(), at)?;
        } else if let Some(x) = Self::compute_now(EagerSolve, &[self, b], at) {
            return x;
        }
        let columns = if is_vector { b.try_unsqueeze(-1)? } else { b.clone() };
        let [lu, pivots] = lu_factor(&self.try_detach()?, SingularPolicy::Solve, at)?;
        let x = if a_shape.rank() == 2 {
            solve_with_one_matrix(&columns, |columns| {
                apply(SolveWithFactors { adjoint: false }, &[self, &lu, &pivots, columns], at)
            })?
        } else {
            let [a, lu, pivots, columns] = broadcast_batches([(self, 2), (&lu, 2), (&pivots, 1), (&columns, 2)], at)?;
            apply(SolveWithFactors { adjoint: false }, &[&*a, &*lu, &*pivots, &*columns], at)?
        };
        if is_vector { x.try_squeeze(-1) } else { Ok(x) }
    }

    /// Returns the solution X of A X = B. A is `self` and consists of triangular matrices `[…, n, n]`. B is `[…, n, k]`. The batch
    /// dimensions broadcast. PyTorch: `linalg.solve_triangular`.
    ///
    /// The [`Triangle`] says which triangle of `self` is A. The other triangle is not read. `Triangle::Lower.right()` solves X A = B, with
    /// B `[…, k, n]`. With `Triangle::Lower.unitriangular()`, the elements on the diagonal count as ones and are not read. A zero on the
    /// diagonal gives ∞ or NaN, without an error.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[2.0, 1.0], [7.0, 4.0]]);
    /// let b = Tensor::from([[4.0], [8.0]]);
    /// assert_eq!(a.solve_triangular(&b, Triangle::Upper), Tensor::from([[1.0], [2.0]]));
    /// assert_eq!(a.solve_triangular(b.t(), Triangle::Upper.right()), Tensor::from([[2.0, 1.5]]));
    /// assert_eq!(a.solve_triangular(&b, Triangle::Upper.unitriangular()), Tensor::from([[-4.0], [8.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or there is not enough memory.
    fn try_solve_triangular(
        &self,
        b: impl ArrayOperand<Self>,
        system: impl Into<TriangularSystem>,
    ) -> Result<Self, Self::Error> {
        let TriangularSystem { triangle, left, unitriangular } = system.into();
        let (b, at, name) = (&b.into_array(self)?, Site::here("solve_triangular"), "linalg.solve_triangular");
        let (a_shape, b_shape) = (self.shape(), b.shape());
        check_square(name, &a_shape, at)?;
        check_rank(name, "B", &b_shape, at)?;
        check_equation(name, &a_shape, &b_shape, left, at)?;
        let [a, b] = &broadcast_batches([(self, 2), (b, 2)], at)?;
        let (a, b): (&Self, &Self) = (a, b);
        let part = TriangularPart { upper: triangle == Triangle::Upper, unit_diagonal: unitriangular };
        if left {
            return substitution::solve(part, a, b, at);
        }
        // X A = B if and only if Aᵀ Xᵀ = Bᵀ.
        transposed(&substitution::solve(part.transposed(), &transposed(a)?, &transposed(b)?, at)?)
    }

    /// Returns the solution X `[…, n, k]` of A X = B. B is `self` `[…, n, k]`, and `factor` is the Cholesky factor of A. The factor is L
    /// with A = L Lᵀ for [`Triangle::Lower`], and U with A = Uᵀ U for [`Triangle::Upper`]. The batch dimensions broadcast. PyTorch:
    /// `cholesky_solve`.
    ///
    /// The other triangle of `factor` is not read, and its gradient is 0, unlike in PyTorch.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let l = Tensor::from([[2.0, 0.0], [1.0, 3.0]]);
    /// let b = Tensor::from([[8.0], [22.0]]);
    /// assert_eq!(b.cholesky_solve(&l, Triangle::Lower), Tensor::from([[1.0], [2.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or there is not enough memory.
    fn try_cholesky_solve(&self, factor: impl ArrayOperand<Self>, triangle: Triangle) -> Result<Self, Self::Error> {
        let (factor, at) = (&factor.into_array(self)?, Site::here("cholesky_solve"));
        for (name, rank) in [("b", self.shape().rank()), ("u", factor.shape().rank())] {
            if rank < 2 {
                let message = format!("{name} should have at least 2 dimensions, but has {rank} dimensions instead");
                return Err(argument_error(at, message).into());
            }
        }
        check_factor(&factor.shape(), &self.shape(), at)?;
        let [b, factor] = &broadcast_batches([(self, 2), (factor, 2)], at)?;
        let (b, factor): (&Self, &Self) = (b, factor);
        let transposed_factor = transposed(factor)?;
        let (l, u) =
            if triangle == Triangle::Lower { (factor, &transposed_factor) } else { (&transposed_factor, factor) };
        let intermediate = substitution::solve(TriangularPart::LOWER, l, b, at)?;
        substitution::solve(TriangularPart::UPPER, u, &intermediate, at)
    }

    /// Returns the solution X `[…, n, k]` of A X = B, where `b` is `[…, n, k]`. The results of [`lu_factor`](crate::Factoring::lu_factor)
    /// for A are `self` and `pivots`. The batch dimensions of `self` and `b` broadcast. `pivots` has the batch dimensions of `self`.
    /// PyTorch: `linalg.lu_solve`.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or there is not enough memory.
    fn try_lu_solve(&self, pivots: impl ArrayOperand<Self>, b: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let (pivots, b) = (&pivots.into_array(self)?, &b.into_array(self)?);
        let (at, name) = (Site::here("lu_solve"), "linalg.lu_solve");
        check_square("torch.linalg.lu_solve", &self.shape(), at)?;
        check_rank(name, "B", &b.shape(), at)?;
        let a_shape = self.shape();
        if pivots.shape()[..] != a_shape[..a_shape.rank() - 1] {
            let message = format!("{name}: Number of pivots per batch should be same as the dimension of the matrix");
            return Err(argument_error(at, message).into());
        }
        check_equation(name, &a_shape, &b.shape(), true, at)?;
        let [lu, pivots, b] = &broadcast_batches([(self, 2), (pivots, 1), (b, 2)], at)?;
        let (lu, pivots, b): (&Self, &Self, &Self) = (lu, pivots, b);
        let (n, _) = matrix_size(&a_shape);
        let exchanged = wengert_tensor::ops::Products::try_matmul(&transposed(&permutation(pivots, n, at)?)?, b)?;
        let intermediate = substitution::solve(TriangularPart::UNIT_LOWER, lu, &exchanged, at)?;
        substitution::solve(TriangularPart::UPPER, lu, &intermediate, at)
    }
}

/// Joins the columns of the batch `[…, n, k]` to a single matrix, and calls `solve` for it. So a coefficient matrix without batch
/// dimensions is not repeated for each matrix of the batch.
fn solve_with_one_matrix<A: Array>(columns: &A, solve: impl FnOnce(&A) -> Result<A, A::Error>) -> Result<A, A::Error> {
    let shape = columns.shape();
    let rank = shape.rank();
    if rank == 2 {
        return solve(columns);
    }
    let moved = columns.try_movedim(-2, 0)?;
    let moved_shape = moved.shape();
    let count = shape.numel().checked_div(moved_shape[0]).unwrap_or_default();
    let x = solve(&moved.try_reshape(Shape::from([moved_shape[0], count]))?)?;
    x.try_reshape(&moved_shape)?.try_movedim(0, -2)
}

/// Returns an error unless the factor `l` is square and has as many rows as `b`.
fn check_factor(l: &[usize], b: &[usize], at: Site) -> Result<(), Error> {
    let ((rows, columns), (n, width)) = (matrix_size(l), matrix_size(b));
    if rows != columns {
        let message = "A must be batches of square matrices, but they are";
        return Err(argument_error(at, format!("{message} {rows} by {columns} matrices")));
    }
    if rows == n {
        return Ok(());
    }
    let message = "Incompatible matrix sizes for cholesky_solve: each A matrix is";
    Err(argument_error(at, format!("{message} {rows} by {rows} but each b matrix is {n} by {width}")))
}
