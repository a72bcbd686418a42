//! Linear equations whose coefficients are an array of any number of dimensions.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, Views as _};
use wengert_tensor::{Shape, Site};

use crate::array::Array;
use crate::matrices::argument_error;
use crate::operations::inverting::Inverting as _;
use crate::operations::solving::Solving as _;

/// Linear equations between arrays. The coefficients become a square matrix if the first dimensions are joined to one dimension, and the
/// other dimensions to another one.
#[twins(blanket)]
pub trait TensorEquations: Array {
    /// Returns the inverse of the linear map with the coefficients `self`. The first `ind` dimensions of `self` are the dimensions of the
    /// map's results. The products of the first `ind` sizes and of the other sizes must be equal. The result has the other sizes first.
    /// PyTorch: `torch.linalg.tensorinv`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::<f64>::eye(6).reshape([2, 3, 6]);
    /// let inverse = a.tensorinv(2);
    /// assert_eq!(inverse.shape(), &[6, 2, 3]);
    /// assert_eq!(inverse, Tensor::eye(6).reshape([6, 2, 3]));
    /// ```
    ///
    /// # Errors
    ///
    /// If `ind` is 0 or larger than the number of dimensions, the products of the sizes differ, the matrix is singular, or there is not
    /// enough memory. For a variable, the error of a singular matrix occurs when the variable's value is computed.
    fn try_tensorinv(&self, ind: usize) -> Result<Self, Self::Error> {
        let (at, shape) = (Site::here("tensorinv"), self.shape());
        if ind == 0 {
            return Err(argument_error(at, "Expected a strictly positive integer for 'ind', but got 0").into());
        }
        if ind > shape.rank() {
            return Err(
                argument_error(at, format!("ArrayRef: invalid slice, N = {ind}; size = {}", shape.rank())).into()
            );
        }
        let (first, last) = (saturating_numel(&shape[..ind]), saturating_numel(&shape[ind..]));
        if first != last {
            let message =
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got";
            return Err(argument_error(at, format!("{message} {last} != {first}")).into());
        }
        let inverse = self.try_reshape(Shape::from([first, last]))?.try_inv()?;
        let sizes: Shape = shape[ind..].iter().chain(&shape[..ind]).copied().collect();
        inverse.try_reshape(sizes)
    }

    /// Returns the array X with A X = B. B is `b`, and A is `self`. A has more dimensions than B, and its additional last dimensions are
    /// the dimensions of X. The product A X sums over these dimensions. The product of their sizes must equal the product of A's other sizes,
    /// and the number of elements of B. If other dimensions of A belong to X, move them to the end with `movedim` (PyTorch's argument `dims`).
    /// PyTorch: `torch.linalg.tensorsolve`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = (Tensor::<f64>::eye(6) * 2.0).reshape([2, 3, 6]);
    /// let b = Tensor::from([[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]);
    /// assert_eq!(a.tensorsolve(&b).to_vec(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the sizes do not fit, the matrix is singular, or there is not enough memory. For a variable, the error of a singular matrix
    /// occurs when the variable's value is computed.
    fn try_tensorsolve(&self, b: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let (b, at, shape) = (&b.into_array(self)?, Site::here("tensorsolve"), self.shape());
        let b_shape = b.shape();
        let (first, last) = shape.split_at(b_shape.rank().min(shape.rank()));
        let (rows, columns) = (saturating_numel(first), saturating_numel(last));
        if rows != columns {
            let message = "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got";
            return Err(argument_error(at, format!("{message} {columns} != {rows}")).into());
        }
        let count = saturating_numel(&b_shape);
        if count != rows {
            let message = "tensorsolve(): Expected other to satisfy the requirement prod(other.shape) == prod(self.shape[:other.ndim]), but got";
            return Err(argument_error(at, format!("{message} {count} != {rows}")).into());
        }
        let elements = b.try_reshape(Shape::from([count]))?;
        self.try_reshape(Shape::from([rows, columns]))?.try_solve(&elements)?.try_reshape(Shape::from(last))
    }
}

/// Returns the product of the sizes. If no number can hold it, which is possible for empty arrays, returns `usize::MAX`, which fits no
/// equation.
fn saturating_numel(sizes: &[usize]) -> usize {
    Shape::from(sizes).checked_numel().unwrap_or(usize::MAX)
}
