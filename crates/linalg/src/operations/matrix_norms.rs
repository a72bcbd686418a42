//! Norms and condition numbers of matrices.

use std::fmt;

use wengert_macros::twins;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Site};

use super::decompositions::Decompositions as _;
use super::least_squares::{LeastSquaresProblems as _, Tolerance};
use crate::array::Array;
use crate::matrices::{argument_error, check_rank};

/// The kind of a matrix norm. A number converts to [`Number`](Self::Number).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixOrder {
    /// The square root of the sum of the squared elements. PyTorch: `"fro"`.
    Frobenius,
    /// The sum of the singular values. PyTorch: `"nuc"`.
    Nuclear,
    /// For 1, the largest sum of the magnitudes in a column. For ∞, the largest sum of the magnitudes in a row. For 2, the largest singular
    /// value. For -1, -∞ and -2, the smallest of these instead of the largest. Other numbers are an error.
    Number(f64),
}

impl From<f64> for MatrixOrder {
    fn from(order: f64) -> Self {
        MatrixOrder::Number(order)
    }
}

impl From<i32> for MatrixOrder {
    fn from(order: i32) -> Self {
        MatrixOrder::Number(f64::from(order))
    }
}

impl fmt::Display for MatrixOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatrixOrder::Frobenius => f.write_str("fro"),
            MatrixOrder::Nuclear => f.write_str("nuc"),
            MatrixOrder::Number(order) => write!(f, "{order}"),
        }
    }
}

/// Norms and condition numbers of matrices.
#[twins(blanket)]
pub trait MatrixNorms: Array {
    /// Returns the norms of matrices whose rows and columns are the two dimensions `dims`. These dimensions are removed, or kept with size
    /// 1 by `matrix_norm_keepdim`.
    ///
    /// For zeros and for equal elements, the derivatives are the ones of the vector norms, of `amax` and `amin`, and of the singular
    /// values. PyTorch: `torch.linalg.matrix_norm`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[3.0, 0.0], [0.0, -4.0]]);
    /// assert_eq!(a.matrix_norm(MatrixOrder::Frobenius, [-2, -1]).item(), 5.0);
    /// assert_eq!(a.matrix_norm(MatrixOrder::Nuclear, [-2, -1]).item(), 7.0);
    /// assert_eq!(a.matrix_norm(f64::INFINITY, [-2, -1]).item(), 4.0);
    /// assert_eq!(a.matrix_norm_keepdim(-2, [0, 1]).to_vec(), [3.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the array has fewer than two dimensions, the two dimensions are equal or do not exist, or `ord` is not a
    /// matrix norm. The orders -1, -∞ and -2 return an error for matrices without columns, rows or elements,
    /// respectively. The orders ±2 and [`Nuclear`](MatrixOrder::Nuclear) return an error for elements that are NaN or
    /// infinite, or if the iteration for the singular values does not converge. Every order returns an error if there
    /// is not enough memory.
    #[keepdim]
    fn try_matrix_norm(&self, ord: impl Into<MatrixOrder>, dims: [isize; 2]) -> Result<Self, Self::Error> {
        matrix_norm(self, ord.into(), dims, keepdim, Site::here("matrix_norm"))
    }

    /// Returns the condition numbers `[…]` of matrices: the norm of A times the norm of A⁻¹. For order 2, this is the largest singular
    /// value divided by the smallest one. For order -2, it is the smallest divided by the largest. These two orders accept matrices that
    /// are not square.
    ///
    /// The result is ∞ if the smallest computed singular value is 0, and 0 for empty matrices. There are two exceptions: order -2 gives 0
    /// for singular matrices, and the orders ±2 give NaN for zero matrices. For a matrix that is singular except for rounding errors, the
    /// result is about 1 / ε. PyTorch gives ∞ for some of these matrices. PyTorch: `torch.linalg.cond`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[4.0, 0.0], [0.0, 0.5]]);
    /// assert_eq!(a.cond(2).item(), 8.0);
    /// ```
    ///
    /// # Errors
    ///
    /// If A has fewer than two dimensions, `ord` is not a matrix norm, an element is NaN or infinite, or there is not enough memory. Also if
    /// the iteration for the singular values does not converge. Orders other than ±2 return an error for
    /// matrices that are not square. If these matrices are empty, only [`Frobenius`](MatrixOrder::Frobenius) and
    /// [`Nuclear`](MatrixOrder::Nuclear) return this error.
    fn try_cond(&self, ord: impl Into<MatrixOrder>) -> Result<Self, Self::Error> {
        condition_number(self, ord.into(), Site::here("cond"))
    }
}

fn matrix_norm<A: Array>(
    x: &A,
    ord: MatrixOrder,
    dims: [isize; 2],
    keepdim: bool,
    at: Site,
) -> Result<A, <A as TensorLike>::Error> {
    let rank = x.shape().rank();
    if let MatrixOrder::Number(order) = ord
        && ![1.0, 2.0, f64::INFINITY].contains(&order.abs())
    {
        return Err(argument_error(at, format!("linalg.matrix_norm: Order {ord} not supported.")).into());
    }
    check_rank("linalg.matrix_norm", "A", &x.shape(), at)?;
    let [rows, columns] = [resolve_dim(dims[0], rank, at)?, resolve_dim(dims[1], rank, at)?];
    if rows == columns {
        let message = format!("linalg.matrix_norm: dims must be different. Got ({}, {})", dims[0], dims[1]);
        return Err(argument_error(at, message).into());
    }
    // Sums the magnitudes along the dimension `inner`, whose size becomes 1.
    let sums = |inner: usize| x.try_abs()?.try_sum_keepdim(inner as isize);
    let norm_of_singular_values = |reduce: &dyn Fn(&A) -> Result<A, <A as TensorLike>::Error>| {
        let values = x.try_movedim([rows as isize, columns as isize], [-2isize, -1])?.try_svdvals()?;
        let norm = reduce(&values)?;
        if !keepdim {
            return Ok(norm);
        }
        let mut shape = x.shape();
        (shape[rows], shape[columns]) = (1, 1);
        norm.try_reshape(&shape)
    };
    let positive_dims = [rows as isize, columns as isize];
    let finish = |x: A| if keepdim { Ok(x) } else { x.try_squeeze(positive_dims) };
    let (largest, shape) = (|x: A, dim: usize| reduce_extremum(&x, dim as isize, true), x.shape());
    let empty = shape[rows].min(shape[columns]) == 0;
    let empty_dim = match ord {
        MatrixOrder::Number(-1.0) => (shape[columns] == 0).then_some(0),
        MatrixOrder::Number(f64::NEG_INFINITY) => (shape[rows] == 0).then_some(0),
        MatrixOrder::Number(-2.0) => empty.then_some(-1),
        _ => None,
    };
    if let Some(dim) = empty_dim {
        let message = format!("amin(): Expected reduction dim {dim} to have non-zero size.");
        return Err(argument_error(at, message).into());
    }
    match ord {
        MatrixOrder::Frobenius => x.try_vector_norm_keepdim(2.0, positive_dims).and_then(finish),
        MatrixOrder::Nuclear => norm_of_singular_values(&|values| values.try_sum(-1)),
        MatrixOrder::Number(2.0) if empty => norm_of_singular_values(&|values| values.try_sum(-1)),
        MatrixOrder::Number(2.0) => norm_of_singular_values(&|values| values.try_amax(-1)),
        MatrixOrder::Number(-2.0) => norm_of_singular_values(&|values| values.try_amin(-1)),
        MatrixOrder::Number(1.0) => finish(largest(sums(rows)?, columns)?),
        MatrixOrder::Number(f64::INFINITY) => finish(largest(sums(columns)?, rows)?),
        MatrixOrder::Number(-1.0) => finish(reduce_extremum(&sums(rows)?, columns as isize, false)?),
        // Only the number -∞ is left here, because all others have been handled.
        MatrixOrder::Number(_) => finish(reduce_extremum(&sums(columns)?, rows as isize, false)?),
    }
}

/// Returns the largest or the smallest element along the dimension `dim`, which is kept with size 1. For an empty
/// dimension, the largest element is 0, and the smallest one is an error.
fn reduce_extremum<A: Array>(x: &A, dim: isize, largest: bool) -> Result<A, <A as TensorLike>::Error> {
    if largest && x.shape()[dim as usize] == 0 {
        return x.try_sum_keepdim(dim);
    }
    if largest { x.try_amax_keepdim(dim) } else { x.try_amin_keepdim(dim) }
}

/// Returns the index of a dimension, which may be negative to count from the end, or an error if the dimension does not exist.
fn resolve_dim(dim: isize, rank: usize, at: Site) -> Result<usize, Error> {
    let index = if dim < 0 { dim + rank as isize } else { dim };
    usize::try_from(index).ok().filter(|&dim| dim < rank).ok_or(Error::DimRange { dim, rank, at })
}

fn condition_number<A: Array>(x: &A, ord: MatrixOrder, at: Site) -> Result<A, <A as TensorLike>::Error> {
    let shape = x.shape();
    if shape.rank() < 2 {
        return Err(argument_error(at, "linalg.cond: The input tensor must have at least 2 dimensions.").into());
    }
    let (rank, matrix_dims) = (shape.rank(), [-2, -1]);
    let (rows, columns) = (shape[rank - 2], shape[rank - 1]);
    let batch = Shape::from(&shape[..rank - 2]);
    let by_singular_values = matches!(ord, MatrixOrder::Number(2.0 | -2.0));
    let is_supported = matches!(ord, MatrixOrder::Frobenius | MatrixOrder::Nuclear)
        || matches!(ord, MatrixOrder::Number(p) if [1.0, 2.0, f64::INFINITY].contains(&p.abs()));
    if !is_supported {
        return Err(argument_error(at, format!("linalg.cond got an invalid norm type: {ord}")).into());
    }
    let is_empty = rows.min(columns) == 0 && matches!(ord, MatrixOrder::Number(_));
    if !by_singular_values && rows != columns && !is_empty {
        let message = format!(
            "linalg.cond(ord={ord}): A must be batches of square matrices, but they are {rows} by {columns} matrices"
        );
        return Err(argument_error(at, message).into());
    }
    if rows.min(columns) == 0 {
        return x.try_constant(&Tensor::try_full(&batch, A::Elem::ZERO)?);
    }
    if by_singular_values {
        let values = x.try_svdvals()?;
        let (largest, smallest) = (values.try_narrow(-1, 0, 1)?, values.try_narrow(-1, rows.min(columns) - 1, 1)?);
        let quotient =
            if ord == MatrixOrder::Number(2.0) { largest.try_div(&smallest)? } else { smallest.try_div(&largest)? };
        return quotient.try_squeeze(-1);
    }
    let inverse = x.try_pinv(Tolerance::new().rtol(0.0))?;
    let product = x.try_matrix_norm(ord, matrix_dims)?.try_mul(&inverse.try_matrix_norm(ord, matrix_dims)?)?;
    let is_singular = x.try_svdvals()?.try_amin(-1)?.try_eq(0.0)?;
    product.try_masked_fill(&is_singular, f64::INFINITY)
}
