//! Matrix products under their BLAS names: the ranks of operands are fixed and nothing broadcasts; with the forms that add
//! the product to a tensor.
//!
//! The general product, with batches that broadcast, is [`Products::matmul`](crate::ops::Products::matmul).

use wengert_macros::twins;

use crate::ops::compose::Compose;
use crate::ops::pair::{expanded, number};
use crate::ops::{ArrayOperand, InPlace, TensorLike};
use crate::{Binary, Error, Number, Reduction, Scalar, Shape, Site, Sizes, View};

/// `mm`, `bmm`, `mv`, `dot`, and `addmm` and its kin.
///
/// The latter give `beta` * `self` + `alpha` * product, where `self` expands to the product's shape. With `beta` = 0, `self`
/// is ignored, NaN included; with `alpha` = 0, the product is.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// let x = Tensor::from([1.0, 1.0]);
/// assert_eq!(a.mv(&x).to_vec(), [3.0, 7.0]);
/// assert_eq!(x.dot(&x).item(), 2.0);
/// assert_eq!(x.addmm(&a, &a, 1.0, 1.0), Tensor::from([[8.0, 11.0], [16.0, 23.0]])); // x + a a
/// ```
#[twins]
pub trait Blas: TensorLike<Elem: Number> {
    /// The product of two matrices, `[m, k]` and `[k, n]`. PyTorch: `mm`.
    fn try_mm(&self, other: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let other = &other.into_array(self);
        let at = Site::here("mm");
        matrices("mm", "self", self, other, at)?;
        self.apply_matmul(other, at)
    }

    /// The products of two batches of as many matrices, `[b, m, k]` and `[b, k, n]`. PyTorch: `bmm`.
    fn try_bmm(&self, other: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let other = &other.into_array(self);
        let at = Site::here("bmm");
        batches(&self.shape(), &other.shape(), at)?;
        self.apply_matmul(other, at)
    }

    /// The product of a matrix, `[m, k]`, and a vector, `[k]`. PyTorch: `mv`.
    fn try_mv(&self, vector: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let vector = &vector.into_array(self);
        let at = Site::here("mv");
        let rows = self.shape().first().copied().unwrap_or(1);
        matrix_by_vector(self, vector, &Shape::from([rows]), at)
    }

    /// The sum of products of two vectors of one length. PyTorch: `dot`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// assert_eq!(Tensor::from([1.0, 2.0]).dot(&Tensor::from([3.0, 4.0])).item(), 11.0);
    /// ```
    fn try_dot(&self, other: impl ArrayOperand<Self>) -> Result<Self, Self::Error> {
        let other = &other.into_array(self);
        let at = Site::here("dot");
        let (left, right) = (self.shape(), other.shape());
        if left.rank() != 1 || right.rank() != 1 {
            let message = format!("1D tensors expected, but got {}D and {}D tensors", left.rank(), right.rank());
            return Err(Error::argument(at, message).into());
        }
        if left != right {
            return Err(crate::ops::linalg::products::unequal_vectors(&left, &right, at).into());
        }
        let product = self.apply_binary(Binary::Mul, other, at)?;
        product.apply_reduce(Reduction::Sum, &[0], at)?.apply_view(View::Reshape(Shape::scalar()), at)
    }

    /// `beta` * `self` + `alpha` * (`first` x `second`), of matrices `[m, k]` and `[k, n]`; `self` expands to `[m, n]`.
    /// PyTorch: `addmm`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, 2.0]]);
    /// let weight = Tensor::from([[3.0], [4.0]]);
    /// assert_eq!(Tensor::from([0.5]).addmm(&x, &weight, 1, 1), Tensor::from([[11.5]]));
    /// ```
    fn try_addmm(
        &self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self, Self::Error> {
        let (first, second) = (&first.into_array(self), &second.into_array(self));
        let at = Site::here("addmm");
        let shape = matrices("addmm", "mat1", first, second, at)?;
        let own = grown(self, &shape, at)?;
        sum(&own, beta.into(), first.apply_matmul(second, at)?, alpha.into(), at)
    }

    /// `self` = `beta` * `self` + `alpha` * (`first` x `second`), of matrices `[m, k]` and `[k, n]`; `self` is `[m, n]`.
    /// PyTorch: `addmm_`.
    ///
    /// # Errors
    ///
    /// Where the matrices do not multiply, their product does not have the shape of `self`, or `self` is expanded.
    fn try_addmm_(
        &mut self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<(), Self::Error>
    where
        Self: InPlace,
    {
        let (first, second) = (&first.into_array(self), &second.into_array(self));
        let at = Site::here("addmm_");
        self.check_write(None, at)?;
        let (shape, own) = (matrices("addmm_", "mat1", first, second, at)?, self.shape());
        if shape != own {
            let message =
                format!("Bad in-place call: input tensor size {own} and output tensor size {shape} should match");
            return Err(Error::argument(at, message).into());
        }
        let value = sum(self, beta.into(), first.apply_matmul(second, at)?, alpha.into(), at)?;
        self.put(value, at)
    }

    /// `beta` * `self` + `alpha` * (`matrix` x `vector`), of `[m, k]` and `[k]`; `self` expands to `[m]`. PyTorch:
    /// `addmv`.
    #[in_place(reads())]
    fn try_addmv(
        &self,
        matrix: impl ArrayOperand<Self>,
        vector: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self, Self::Error> {
        let (matrix, vector) = (&matrix.into_array(self), &vector.into_array(self));
        let at = Site::here("addmv");
        let shape = self.shape();
        let product = matrix_by_vector(matrix, vector, &shape, at)?;
        sum(&grown(self, &product.shape(), at)?, beta.into(), product, alpha.into(), at)
    }

    /// `beta` * `self` + `alpha` * (`first` x `second`), of batches `[b, m, k]` and `[b, k, n]`; `self` expands to
    /// `[b, m, n]`. PyTorch: `baddbmm`.
    #[in_place(reads())]
    fn try_baddbmm(
        &self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self, Self::Error> {
        let (first, second) = (&first.into_array(self), &second.into_array(self));
        let at = Site::here("baddbmm");
        let shape = batches(&first.shape(), &second.shape(), at)?;
        let own = grown(self, &shape, at)?;
        sum(&own, beta.into(), first.apply_matmul(second, at)?, alpha.into(), at)
    }

    /// `beta` * `self` + `alpha` * the sum over the batch of `first` x `second`, of `[b, m, k]` and `[b, k, n]`; `self`
    /// expands to `[m, n]`. PyTorch: `addbmm`.
    #[in_place(reads())]
    fn try_addbmm(
        &self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self, Self::Error> {
        let (first, second) = (&first.into_array(self), &second.into_array(self));
        let at = Site::here("addbmm");
        let mut shape = batches(&first.shape(), &second.shape(), at)?;
        shape.remove(0);
        let own = grown(self, &shape, at)?;
        let all = first.apply_matmul(second, at)?.apply_reduce(Reduction::Sum, &[0], at)?;
        let product = all.apply_view(View::Reshape(shape), at)?;
        sum(&own, beta.into(), product, alpha.into(), at)
    }

    /// `beta` * `self` + `alpha` * the outer product of `column`, `[m]`, and `row`, `[n]`; `self` expands to `[m, n]`.
    /// PyTorch: `addr`.
    #[in_place(reads())]
    fn try_addr(
        &self,
        column: impl ArrayOperand<Self>,
        row: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self, Self::Error> {
        let (column, row) = (&column.into_array(self), &row.into_array(self));
        let at = Site::here("addr");
        let (left, right) = (column.shape(), row.shape());
        for (name, shape) in [("vec1", &left), ("vec2", &right)] {
            if shape.rank() != 1 {
                let message = format!("addr: Expected 1-D argument {name}, but got {}-D", shape.rank());
                return Err(Error::argument(at, message).into());
            }
        }
        let own = grown(self, &Shape::from([left[0], right[0]]), at)?;
        sum(&own, beta.into(), outer(column, row, at)?, alpha.into(), at)
    }
}

impl<A: TensorLike<Elem: Number>> Blas for A {}

/// The outer product of two vectors: `[m, n]`.
pub(crate) fn outer<A: TensorLike>(column: &A, row: &A, at: Site) -> Result<A, A::Error> {
    let (m, n) = (column.shape()[0], row.shape()[0]);
    let shape = Shape::from([m, n]);
    let column = expanded(&column.apply_view(View::Reshape(Shape::from([m, 1])), at)?, &shape, at)?;
    column.apply_binary(Binary::Mul, &expanded(row, &shape, at)?, at)
}

/// The shape of the product of two matrices, or an error; `first` is the name of the first in the error of `operation`.
pub(crate) fn matrices<A: TensorLike>(operation: &str, first: &str, x: &A, y: &A, at: Site) -> Result<Shape, Error> {
    let (left, right) = (x.shape(), y.shape());
    for (name, shape) in [(first, &left), ("mat2", &right)] {
        if shape.rank() != 2 {
            let message = format!("{operation}: {name} must be a matrix, got {}-D tensor", shape.rank());
            return Err(Error::argument(at, message));
        }
    }
    if left[1] != right[0] {
        let message = format!(
            "{operation}: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            left[0], left[1], right[0], right[1]
        );
        return Err(Error::MatmulShape { message, at });
    }
    Ok(Shape::from([left[0], right[1]]))
}

/// The shape of the products of two batches of matrices, or an error.
fn batches(left: &Shape, right: &Shape, at: Site) -> Result<Shape, Error> {
    for (name, shape) in [("batch1", left), ("batch2", right)] {
        if shape.rank() != 3 {
            return Err(Error::MatmulShape { message: format!("{name} must be a 3D tensor"), at });
        }
    }
    if (left[0], left[2]) != (right[0], right[1]) {
        let message = format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            left[0], left[2], right[0], right[1]
        );
        return Err(Error::MatmulShape { message, at });
    }
    Ok(Shape::from([left[0], left[1], right[2]]))
}

/// The product of a matrix and a vector; `own` is the shape of what it is added to.
fn matrix_by_vector<A: TensorLike>(matrix: &A, vector: &A, own: &Shape, at: Site) -> Result<A, A::Error> {
    let (left, right) = (matrix.shape(), vector.shape());
    let refuse = |message: String| Err(A::Error::from(Error::MatmulShape { message, at }));
    if left.rank() != 2 || right.rank() != 1 || own.rank() > 1 {
        return refuse(format!(
            "vector + matrix @ vector expected, got {}, {}, {}",
            own.rank(),
            left.rank(),
            right.rank()
        ));
    }
    let fits = own.numel() == 1 || own.numel() == left[0];
    if left[1] != right[0] || !fits {
        return refuse(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            own.numel(),
            left[0],
            left[1],
            right[0]
        ));
    }
    let column = vector.apply_view(View::Reshape(Shape::from([right[0], 1])), at)?;
    matrix.apply_matmul(&column, at)?.apply_view(View::Reshape(Shape::from([left[0]])), at)
}

/// `x` expanded to `shape`, with the errors of `expand`.
pub(crate) fn grown<A: TensorLike>(x: &A, shape: &Shape, at: Site) -> Result<A, A::Error> {
    let shape = Sizes::from(shape).resolve_expand(A::Elem::DTYPE, &x.shape(), at)?;
    expanded(x, &shape, at)
}

/// `beta` * `own` + `alpha` * the product; a term with the factor 0 is left out.
fn sum<A: TensorLike>(own: &A, beta: f64, product: A, alpha: f64, at: Site) -> Result<A, A::Error> {
    let scaled = |x: A, by: f64| if by == 1.0 { Ok(x) } else { x.times(by, at) };
    let mut product = scaled(product, alpha)?;
    if alpha == 0.0 {
        // Only the value is 0: PyTorch multiplies the gradient by 0, so that a NaN among the factors stays NaN.
        product = product.with_value(&number(&product, A::Elem::ZERO, &product.shape(), at)?, at)?;
    }
    if beta == 0.0 { Ok(product) } else { scaled(own.clone(), beta)?.apply_binary(Binary::Add, &product, at) }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    fn sentence<T: std::fmt::Debug>(result: Result<T, crate::Error>) -> String {
        result.unwrap_err().sentence()
    }

    #[test]
    fn products_of_fixed_rank() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(x.mm(x.t()), Tensor::from([[5.0, 11.0], [11.0, 25.0]]));
        assert_eq!(x.mv(Tensor::from([1.0, -1.0])).to_vec(), [-1.0, -1.0]);
        assert_eq!(x.unsqueeze(0).bmm(x.unsqueeze(0)).to_vec(), [7.0, 10.0, 15.0, 22.0]);
        assert_eq!(Tensor::<f64>::zeros([2, 0]).mm(Tensor::zeros([0, 3])), Tensor::zeros([2, 3]));
    }

    #[test]
    fn what_is_added_expands_and_what_is_multiplied_by_zero_is_left_out() {
        let x = Tensor::from([[1.0, 2.0]]);
        let y = Tensor::from([[3.0], [4.0]]);
        let nan = Tensor::scalar(NAN);
        assert_eq!(nan.addmm(&x, &y, 0, 2).item(), 22.0);
        assert_eq!(Tensor::scalar(3.0).addmm(&x, nan.expand([2, 1]), 2, 0).item(), 6.0);
        assert_eq!(nan.addmm(&x, &y, 0, 0).item(), 0.0);
        assert!(Tensor::scalar(3.0).addmm(&x, nan.expand([2, 1]), 2, 1).item().is_nan());
        let column = Tensor::from([1.0, 10.0]);
        assert_eq!(Tensor::from([1.0, 2.0]).addr(&column, &column, 1, 1), Tensor::from([[2.0, 12.0], [11.0, 102.0]]));
        assert_eq!(Tensor::scalar(1.0).addmv(y.t(), &column, 1, 0.5).to_vec(), [22.5]);
        let batch = Tensor::<f64>::ones([3, 2, 2]);
        assert_eq!(Tensor::from([0.0, 1.0]).addbmm(&batch, &batch, 1, 1), Tensor::from([[6.0, 7.0], [6.0, 7.0]]));
        assert_eq!(Tensor::scalar(1.0).baddbmm(&batch, &batch, 1, 1), Tensor::full([3, 2, 2], 3.0));
    }

    #[test]
    fn in_place() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let mut sum = Tensor::eye(2);
        sum.addmm_(&x, &x, 2, 1);
        assert_eq!(sum, Tensor::from([[9.0, 10.0], [15.0, 24.0]]));
        assert_eq!(
            sentence(Tensor::ones([1, 2]).try_addmm_(&x, &x, 1, 1)),
            "Bad in-place call: input tensor size [1, 2] and output tensor size [2, 2] should match"
        );
        assert!(Tensor::scalar(1.0).expand([2, 2]).try_addmm_(&x, &x, 1, 1).is_err());
    }

    #[test]
    fn refusals() {
        let (x, y) = (Tensor::<f64>::ones([2, 3]), Tensor::<f64>::ones([4, 2]));
        assert_eq!(sentence(x.try_mm(&y)), "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)");
        assert_eq!(sentence(Tensor::ones([2, 2, 3]).try_mm(&y)), "mm: self must be a matrix, got 3-D tensor");
        assert_eq!(sentence(x.try_bmm(&y)), "batch1 must be a 3D tensor");
        assert_eq!(sentence(x.try_mv(Tensor::ones([4]))), "size mismatch, got input (2), mat (2x3), vec (4)");
        assert_eq!(sentence(x.try_dot(&y)), "1D tensors expected, but got 2D and 2D tensors");
        assert_eq!(
            sentence(Tensor::ones([3]).try_addmm(&x, Tensor::ones([3, 4]), 1, 1)),
            "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  \
             Target sizes: [2, 4].  Tensor sizes: [3]"
        );
        assert_eq!(
            sentence(Tensor::ones([3]).try_addmv(&x, Tensor::ones([3]), 1, 1)),
            "size mismatch, got input (3), mat (2x3), vec (3)"
        );
    }
}
