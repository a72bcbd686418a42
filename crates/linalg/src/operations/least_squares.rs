//! Least squares, the pseudoinverse and the rank.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, Result};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Site};

use crate::array::{Array, apply, apply_several};
use crate::kernels::pseudoinverse::{Lstsq, Pinv};
use crate::matrices::{argument_error, broadcast_batches, check_square};
use crate::numerics::pseudoinverse::Cutoff;
use crate::triangle::Triangle;

use super::decompositions::Decompositions as _;

/// The rule that says which singular values count as zeros: the ones up to a bound. The bound is the larger of `atol`, and `rtol` times the
/// largest singular value. PyTorch: the keyword arguments of `pinv` and `matrix_rank`.
///
/// The default of `rtol` is max(m, n) ε for matrices `[m, n]`, where ε is the distance from 1 to the next number. If only `atol` is given
/// and is above 0, then `rtol` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Tolerance {
    atol: Option<f64>,
    rtol: Option<f64>,
    hermitian: bool,
}

impl Tolerance {
    /// Returns the default tolerance.
    pub fn new() -> Self {
        Tolerance::default()
    }

    /// Sets the absolute bound up to which singular values count as zeros.
    pub fn atol(mut self, atol: f64) -> Self {
        self.atol = Some(atol);
        self
    }

    /// Sets the bound up to which singular values count as zeros, relative to the largest singular value.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = Some(rtol);
        self
    }

    /// Declares that the matrices are symmetric. Eigenvalues then replace singular values, and only the lower triangle of a matrix is read.
    pub fn hermitian(mut self) -> Self {
        self.hermitian = true;
        self
    }

    /// Returns the absolute and the relative bound up to which singular values count as zeros, for matrices of the shape `shape`.
    fn cutoff<T: Float>(self, shape: &Shape) -> Cutoff {
        let sizes = &shape[shape.rank() - 2..];
        let default = match self.atol {
            Some(atol) if atol > 0.0 => 0.0,
            _ => sizes[0].max(sizes[1]) as f64 * T::EPSILON.to_f64(),
        };
        Cutoff { absolute: self.atol.unwrap_or(0.0), relative: self.rtol.unwrap_or(default) }
    }
}

/// The result of a least-squares problem with matrices `[m, n]` and right sides `[m, k]`.
#[derive(Clone, Debug)]
pub struct LeastSquares<A> {
    /// The solutions `[…, n, k]`, or `[…, n]` for a vector on the right side.
    pub solution: A,
    /// The squared lengths `[…, k]` of the columns of A X - B, where k is 1 for vectors. An empty array `[0]` if m ≤ n. PyTorch gives an
    /// empty array for matrices without full rank too.
    pub residuals: A,
    /// The ranks `[…]` of the matrices, as numbers of the element type. The ranks have no derivative.
    pub rank: A,
}

/// Least squares, the pseudoinverse and the rank.
#[twins(blanket)]
pub trait LeastSquaresProblems: Array {
    /// Returns the X that minimizes |A X - B|. If several X minimize it, returns the one with the smallest norm. The matrices A are
    /// `[…, m, n]`, and the right sides B are `[…, m, k]` or `[…, m]`. The batch dimensions broadcast.
    ///
    /// The right sides are vectors if B is `[m]`, or if B is `[…, m]` and has exactly the batch dimensions of A. A B of any other shape
    /// consists of matrices `[…, m, k]`.
    ///
    /// Singular values up to `rcond` times the largest one count as zeros. The default of `rcond` is max(m, n) ε, where ε is the distance
    /// from 1 to the next number. A matrix with m ≥ n, whose rank is full by a safe margin, is solved by QR with column pivoting. Other
    /// matrices are solved by singular values. The derivative assumes that the rank does not change. PyTorch: `torch.linalg.lstsq`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// // The line through (0, 1), (1, 3) and (2, 5).
    /// let a = Tensor::from([0.0, 1.0, 2.0]).vander(2);
    /// let line = a.lstsq(&Tensor::from([1.0, 3.0, 5.0]), None).solution;
    /// assert!((line - Tensor::from([1.0, 2.0])).abs().amax(..).item() < 1e-14);
    /// ```
    ///
    /// # Errors
    ///
    /// If the sizes do not match, or an element of A is NaN or infinite. Also if the iteration for the singular values
    /// does not converge, or there is not enough memory. For a variable, the errors of the elements and of the
    /// iteration occur when the variable's value is computed.
    fn try_lstsq(&self, b: impl ArrayOperand<Self>, rcond: Option<f64>) -> Result<LeastSquares<Self>, Self::Error> {
        let at = Site::here("lstsq");
        let b = b.into_array(self)?;
        let (a_shape, b_shape) = (self.shape(), b.shape());
        let is_vector = check_shapes(&a_shape, &b_shape).map_err(|message| argument_error(at, message))?;
        let b = if is_vector { b.try_unsqueeze(-1)? } else { b };
        let ([a, b], rank) = (broadcast_batches([(self, 2), (&b, 2)], at)?, a_shape.rank());
        let (a, b) = (&*a, &*b);
        let mut tolerance = Tolerance::new();
        tolerance.rtol = rcond;
        let kernel = Lstsq { cutoff: tolerance.cutoff::<Self::Elem>(&a_shape) };
        let [solution, matrix_rank] = apply_several(kernel, &[a, b], at)?;
        let residuals = if a_shape[rank - 2] > a_shape[rank - 1] {
            a.try_matmul(&solution)?.try_sub(b)?.try_square()?.try_sum(-2)?
        } else {
            self.try_constant(&Tensor::zeros([0]))?
        };
        let solution = if is_vector { solution.try_squeeze(-1)? } else { solution };
        Ok(LeastSquares { solution, residuals, rank: matrix_rank.apply_detach(at)? })
    }

    /// Returns the Moore-Penrose pseudoinverse `[…, n, m]` of matrices `[…, m, n]`. The [`Tolerance`] says which singular values count as
    /// zeros. The derivative assumes that the rank does not change. It exists even if singular values are equal. PyTorch:
    /// `torch.linalg.pinv`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]]);
    /// assert_eq!(a.pinv(Tolerance::new()), Tensor::from([[0.5, 0.0, 0.0], [0.0, 0.0, 0.25]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, or a matrix that is declared symmetric is not square. Also if an element is
    /// NaN or infinite, the iteration for the singular values does not converge, or there is not enough memory. For a
    /// variable, the errors of the elements and of the iteration occur when the variable's value is computed.
    #[doc(alias("pinverse"))]
    fn try_pinv(&self, tolerance: Tolerance) -> Result<Self> {
        let at = Site::here("pinv");
        let shape = self.shape();
        if shape.rank() < 2 {
            let dtype = if size_of::<Self::Elem>() == 8 { "Double" } else { "Float" };
            let types = "expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types";
            let message = format!("linalg.pinv({dtype}{{{shape}}}): {types}");
            return Err(argument_error(at, message).into());
        }
        check_hermitian(tolerance, &shape, at)?;
        let kernel = Pinv { cutoff: tolerance.cutoff::<Self::Elem>(&shape), hermitian: tolerance.hermitian };
        apply(kernel, &[self], at)
    }

    /// Returns the rank `[…]` of each matrix: the number of singular values that do not count as zeros. If the matrices are a variable,
    /// computes its value. PyTorch: `torch.linalg.matrix_rank`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[1.0, 2.0], [2.0, 4.0]]);
    /// assert_eq!(a.matrix_rank(Tolerance::new()).item(), 1);
    /// ```
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, or a matrix that is declared symmetric is not square. Also if an element is
    /// NaN or infinite, the iteration for the singular values does not converge, or there is not enough memory.
    fn try_matrix_rank(&self, tolerance: Tolerance) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("matrix_rank");
        let shape = self.shape();
        if shape.rank() < 2 {
            let message = "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.";
            return Err(argument_error(at, message).into());
        }
        check_hermitian(tolerance, &shape, at)?;
        let a = self.to_tensor(at)?;
        let values = if tolerance.hermitian { a.try_eigvalsh(Triangle::Lower)?.try_abs()? } else { a.try_svdvals()? };
        let batch = Shape::from(&shape[..shape.rank() - 2]);
        if values.numel() == 0 {
            return Ok(Tensor::try_full(&batch, 0)?);
        }
        let Cutoff { absolute, relative } = tolerance.cutoff::<Self::Elem>(&shape);
        let bound = values
            .try_amax_keepdim(-1)?
            .try_mul(relative)?
            .try_maximum(Tensor::full([1], Self::Elem::from_f64(absolute)))?;
        let is_above_bound = values.try_gt(&bound)?.try_cast::<i64>()?;
        Ok(is_above_bound.try_sum(-1)?)
    }
}

/// Returns an error if matrices that are declared symmetric are not square.
fn check_hermitian(tolerance: Tolerance, shape: &Shape, at: Site) -> std::result::Result<(), Error> {
    if !tolerance.hermitian {
        return Ok(());
    }
    check_square("linalg.eigh", shape, at)
}

/// Returns true if B consists of vectors, and false if it consists of matrices. `a_shape` is the shape of A, and `b_shape` is the shape of B.
/// Returns PyTorch's error message if the sizes do not match.
fn check_shapes(a_shape: &Shape, b_shape: &Shape) -> std::result::Result<bool, String> {
    let name = "torch.linalg.lstsq";
    if a_shape.rank() < 2 {
        return Err(format!("{name}: input must have at least 2 dimensions."));
    }
    if b_shape.rank() < 1 {
        return Err(format!("{name}: other must have at least 1 dimension."));
    }
    if b_shape.rank() > a_shape.rank() || a_shape.rank() - b_shape.rank() > 1 {
        return Err(format!(
            "{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        ));
    }
    let is_vector = b_shape.rank() == 1 || b_shape[..] == a_shape[..a_shape.rank() - 1];
    let dim = if is_vector { 1 } else { 2 };
    if a_shape[a_shape.rank() - 2] != b_shape[b_shape.rank() - dim] {
        return Err(format!("{name}: input.size(-2) should match other.size(-{dim})"));
    }
    Ok(is_vector)
}
