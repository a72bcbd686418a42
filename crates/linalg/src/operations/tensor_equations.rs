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

#[cfg(test)]
mod tests {
    use wengert_autograd::{Tape, gradcheck};
    use wengert_tensor::Tensor;
    use wengert_tensor::ops::Products as _;
    use wengert_tensor::prelude::*;

    use super::*;

    /// Returns the well-conditioned `n` by `n` matrix 4 I + R as an array of the shape `shape`. All elements of R differ.
    fn coefficients(shape: &[usize], n: usize) -> Tensor<f64> {
        let noise = Tensor::from_vec((0..n * n).map(|i| ((i * 7919 % 101) as f64).sin()).collect(), [n, n]);
        (Tensor::eye(n) * 4.0 + noise).reshape(shape)
    }

    #[test]
    fn the_product_with_the_inverse_is_the_identity() {
        for (shape, ind) in [(&[2, 3, 6][..], 2), (&[4, 2, 2], 1), (&[6, 2, 3], 1), (&[2, 2, 2, 2], 2), (&[1], 1)] {
            let n: usize = shape[..ind].iter().product();
            let a = coefficients(shape, n);
            let inverse = a.tensorinv(ind);
            let expected: Vec<usize> = shape[ind..].iter().chain(&shape[..ind]).copied().collect();
            assert_eq!(inverse.shape()[..], expected[..]);
            let product = a.reshape([n, n]).matmul(inverse.reshape([n, n]));
            assert!((product - Tensor::eye(n)).abs().amax(..).item() < 1e-13, "{shape:?}");
        }
        assert_eq!(Tensor::<f64>::zeros([0, 0]).tensorinv(1).shape(), &[0, 0]);
    }

    #[test]
    fn the_solution_fulfils_the_equation() {
        for (shape, b) in [(&[2, 3, 6][..], &[2, 3][..]), (&[4, 2, 2], &[4]), (&[2, 2, 2, 2], &[2, 2]), (&[1], &[])] {
            let n: usize = b.iter().product();
            let (a, b) = (coefficients(shape, n), Tensor::<f64>::randn(b, &mut wengert_tensor::Generator::new(1)));
            let x = a.tensorsolve(&b);
            assert_eq!(x.shape()[..], shape[b.rank()..]);
            let back = a.reshape([n, n]).matmul(x.reshape([n]));
            assert!((back - b.reshape([n])).abs().amax(..).item() < 1e-13, "{shape:?}");
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let (a, b) = (coefficients(&[2, 2, 4], 4), Tensor::from([[1.0, -2.0], [0.5, 3.0]]));
        gradcheck(|[a, b]| a.tensorsolve(b).square().sum(..), [&a, &b]).unwrap();
        gradcheck(|[a]| a.tensorinv(2).square().sum(..), [&a]).unwrap();
    }

    /// The error messages equal the messages of PyTorch 2.15 for the same calls.
    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        let ones = |shape: &[usize]| Tensor::<f64>::ones(shape);
        let inverse = |shape: &[usize], ind| ones(shape).try_tensorinv(ind).unwrap_err().sentence();
        assert_eq!(inverse(&[2, 3, 6], 0), "Expected a strictly positive integer for 'ind', but got 0");
        assert_eq!(inverse(&[2, 3, 6], 5), "ArrayRef: invalid slice, N = 5; size = 3");
        let expected = "Expected self to satisfy the requirement";
        assert_eq!(
            inverse(&[2, 3, 5], 2),
            format!("{expected} prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 5 != 6")
        );
        let solution = |a: &[usize], b: &[usize]| ones(a).try_tensorsolve(ones(b)).unwrap_err().sentence();
        let expected = format!("{expected} prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got");
        assert_eq!(solution(&[2, 3, 6], &[2]), format!("{expected} 18 != 2"));
        assert_eq!(solution(&[2, 2], &[2, 2, 2]), format!("{expected} 1 != 4"));
        // PyTorch names the sizes of `self` in this error too, which hides that `other` has the wrong number of elements.
        let expected = "tensorsolve(): Expected other to satisfy the requirement prod(other.shape) == prod(self.shape[:other.ndim]), but got";
        assert_eq!(solution(&[2, 3, 6], &[2, 2]), format!("{expected} 4 != 6"));
        assert_eq!(solution(&[6, 6], &[5]), format!("{expected} 5 != 6"));
        let singular = "torch.linalg.solve: The solver failed because the input matrix is singular.";
        assert_eq!(solution(&[2, 2], &[2]), singular);
        let tape = Tape::<f64>::new();
        assert_eq!(tape.var(&ones(&[2, 2])).tensorsolve(ones(&[2])).try_value().unwrap_err().sentence(), singular);
        // The sizes of an empty array may have a product that is larger than any number.
        let huge = Tensor::<f64>::zeros([0usize, 1 << 40, 1 << 40]);
        assert!(huge.try_tensorinv(1).is_err() && huge.try_tensorsolve(ones(&[1])).is_err());
    }
}
