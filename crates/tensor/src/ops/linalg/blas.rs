//! Matrix products under their BLAS names. The factors have fixed ranks and do not broadcast. Some of the operations add the product to an
//! array, which expands to the shape of the product.
//!
//! The general product, with batches that broadcast, is [`Products::matmul`](crate::ops::Products::matmul).

use wengert_macros::twins;

use crate::ops::linalg::products::{transposed_hint, unequal_vectors};
use crate::ops::primitive::pair::{expand, expand_number};
use crate::ops::shape::views::squeeze;
use crate::ops::{ArrayOperand, Compose, InPlace, Result, TensorLike};
use crate::{Binary, Error, Number, Scalar, Shape, Site, Sizes, ensure};

/// `mm`, `bmm`, `mv`, `dot`, `addmm` and related operations.
///
/// Methods whose names begin with `add` or `badd` return `beta` * `self` + `alpha` * product. `self` expands to the shape of the product.
/// If `beta` is 0, `self` is ignored, even if it is NaN. If `alpha` is 0, the value of the product is ignored, and the gradient of the
/// product is multiplied by 0, as in PyTorch.
#[twins(blanket)]
pub trait Blas: TensorLike<Elem: Number> {
    /// Returns the product of two matrices, `[m, k]` and `[k, n]`. PyTorch: `mm`.
    fn try_mm(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        multiply_matrices("mm", "self", self, &other.into_array(self)?, Site::here("mm"))
    }

    /// Returns the products of two batches of matrices, `[b, m, k]` and `[b, k, n]`. PyTorch: `bmm`.
    #[doc(alias("batch_matmul"))]
    fn try_bmm(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        multiply_batches(self, &other.into_array(self)?, Site::here("bmm"))
    }

    /// Returns the product of a matrix, `[m, k]`, and a vector, `[k]`. PyTorch: `mv`.
    fn try_mv(&self, vector: impl ArrayOperand<Self>) -> Result<Self> {
        let at = Site::here("mv");
        let rows = self.shape().first().copied().unwrap_or(1);
        multiply_by_vector(self, &vector.into_array(self)?, &Shape::from([rows]), at)
    }

    /// Returns the dot product: the sum of `self[i] * other[i]` for two vectors of the same length. PyTorch: `dot`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).dot(&Tensor::from([3.0, 4.0])).item(), 11.0);
    /// ```
    #[doc(alias("vdot"))]
    fn try_dot(&self, other: impl ArrayOperand<Self>) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("dot");
        let (left, right) = (self.shape(), other.shape());
        let (rank, other_rank) = (left.rank(), right.rank());
        if rank != 1 || other_rank != 1 {
            let sentence = format!("1D tensors expected, but got {rank}D and {other_rank}D tensors");
            let hint = "`dot` is for two vectors; `x.matmul(&y)` is the product of matrices and vectors";
            return Err(Error::argument(at, sentence).with_hint(hint).into());
        }
        if left != right {
            return Err(unequal_vectors(&left, &right, at).into());
        }
        self.apply_product_sum(other, &[0], at)?.reshape_to(Shape::scalar(), at)
    }

    /// Returns `beta` * `self` + `alpha` * (`first` x `second`) for matrices `[m, k]` and `[k, n]`. `self` expands to `[m, n]`.
    /// PyTorch: `addmm`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
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
    ) -> Result<Self> {
        let at = Site::here("addmm");
        let product = multiply_matrices("addmm", "mat1", &first.into_array(self)?, &second.into_array(self)?, at)?;
        add_product(self, beta.into(), product, alpha.into(), at)
    }

    /// Sets `self` to `beta` * `self` + `alpha` * (`first` x `second`) for matrices `[m, k]` and `[k, n]`. `self` is `[m, n]`.
    /// PyTorch: `addmm_`.
    ///
    /// # Errors
    ///
    /// If the matrices do not multiply, their product does not have the shape of `self`, or several elements of `self` share one position
    /// in memory. If memory cannot hold the result.
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
        let at = Site::here("addmm_");
        self.check_write(None, at)?;
        let (first, second) = (&first.into_array(self)?, &second.into_array(self)?);
        let (own, shape) = (self.shape(), check_matrices("addmm_", "mat1", first, second, at)?);
        ensure!(
            shape == own,
            at,
            "Bad in-place call: input tensor size {own} and output tensor size {shape} should match"
        );
        let value = add_product(self, beta.into(), first.apply_matmul(second, at)?, alpha.into(), at)?;
        self.put(value, at)
    }

    /// Returns `beta` * `self` + `alpha` * (`matrix` x `vector`) for `[m, k]` and `[k]`. `self` expands to `[m]`. PyTorch:
    /// `addmv`.
    #[in_place(reads())]
    fn try_addmv(
        &self,
        matrix: impl ArrayOperand<Self>,
        vector: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self> {
        let at = Site::here("addmv");
        let product = multiply_by_vector(&matrix.into_array(self)?, &vector.into_array(self)?, &self.shape(), at)?;
        add_product(self, beta.into(), product, alpha.into(), at)
    }

    /// Returns `beta` * `self` + `alpha` * (`first` x `second`) for batches `[b, m, k]` and `[b, k, n]`. `self` expands to
    /// `[b, m, n]`. PyTorch: `baddbmm`.
    #[in_place(reads())]
    fn try_baddbmm(
        &self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self> {
        let at = Site::here("baddbmm");
        let product = multiply_batches(&first.into_array(self)?, &second.into_array(self)?, at)?;
        add_product(self, beta.into(), product, alpha.into(), at)
    }

    /// Returns `beta` * `self` + `alpha` * the sum over the batch of `first` x `second`, for `[b, m, k]` and `[b, k, n]`.
    /// `self` expands to `[m, n]`. PyTorch: `addbmm`.
    #[in_place(reads())]
    fn try_addbmm(
        &self,
        first: impl ArrayOperand<Self>,
        second: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self> {
        let at = Site::here("addbmm");
        let products = multiply_batches(&first.into_array(self)?, &second.into_array(self)?, at)?;
        let product = squeeze(&products.sum_over(&[0], at)?, 0, at)?;
        add_product(self, beta.into(), product, alpha.into(), at)
    }

    /// Returns `beta` * `self` + `alpha` * the outer product of `column`, `[m]`, and `row`, `[n]`. `self` expands to `[m, n]`.
    /// PyTorch: `addr`.
    #[in_place(reads())]
    fn try_addr(
        &self,
        column: impl ArrayOperand<Self>,
        row: impl ArrayOperand<Self>,
        beta: impl Into<f64>,
        alpha: impl Into<f64>,
    ) -> Result<Self> {
        let at = Site::here("addr");
        let product = outer(&column.into_array(self)?, &row.into_array(self)?, ["vec1", "vec2"], at)?;
        add_product(self, beta.into(), product, alpha.into(), at)
    }
}

/// Returns the outer product `[m, n]` of two vectors. `names` are their names in PyTorch's error messages.
pub(crate) fn outer<A: TensorLike>(column: &A, row: &A, names: [&str; 2], at: Site) -> Result<A> {
    for (x, name) in [column, row].into_iter().zip(names) {
        let (rank, operation) = (x.shape().rank(), at.operation);
        ensure!(rank == 1, at, "{operation}: Expected 1-D argument {name}, but got {rank}-D");
    }
    column.reshape_to([column.shape()[0], 1], at)?.times(row, at)
}

/// Checks that two matrices can be multiplied, and returns the shape of the product. `operation` and `first`, the name of `x`, appear in
/// PyTorch's error messages.
pub(crate) fn check_matrices<A: TensorLike>(
    operation: &str,
    first: &str,
    x: &A,
    y: &A,
    at: Site,
) -> Result<Shape, Error> {
    let (left, right) = (x.shape(), y.shape());
    for (name, rank) in [(first, left.rank()), ("mat2", right.rank())] {
        ensure!(rank == 2, at, "{operation}: {name} must be a matrix, got {rank}-D tensor");
    }
    let (m, k, other, n) = (left[0], left[1], right[0], right[1]);
    if k != other {
        let message = format!("{operation}: mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {other}x{n})");
        return Err(Error::MatmulShape { message, at }.with_hint_if_any(transposed_hint(&left, &right)));
    }
    Ok(Shape::from([m, n]))
}

fn multiply_matrices<A: TensorLike>(operation: &str, first: &str, x: &A, y: &A, at: Site) -> Result<A> {
    check_matrices(operation, first, x, y, at)?;
    x.apply_matmul(y, at)
}

fn multiply_batches<A: TensorLike>(x: &A, y: &A, at: Site) -> Result<A> {
    let (left, right) = (x.shape(), y.shape());
    for (name, shape) in [("batch1", &left), ("batch2", &right)] {
        ensure!(shape.rank() == 3, at, MatmulShape, "{name} must be a 3D tensor");
    }
    let (expected, got) = (Shape::from([left[0], left[2]]), Shape::from([right[0], right[1]]));
    ensure!(
        expected == got,
        at,
        MatmulShape,
        "Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {got}."
    );
    x.apply_matmul(y, at)
}

/// Returns the product of a matrix and a vector. `own` is the shape of the array to which the caller adds the product.
fn multiply_by_vector<A: TensorLike>(matrix: &A, vector: &A, own: &Shape, at: Site) -> Result<A> {
    let (left, right) = (matrix.shape(), vector.shape());
    let (own_rank, rank, vector_rank) = (own.rank(), left.rank(), right.rank());
    ensure!(
        rank == 2 && vector_rank == 1 && own_rank <= 1,
        at,
        MatmulShape,
        "vector + matrix @ vector expected, got {own_rank}, {rank}, {vector_rank}"
    );
    let (own, m, k, len) = (own.numel(), left[0], left[1], right[0]);
    ensure!(
        k == len && (own == 1 || own == m),
        at,
        MatmulShape,
        "size mismatch, got input ({own}), mat ({m}x{k}), vec ({len})"
    );
    matrix.apply_matmul(&vector.reshape_to([k, 1], at)?, at)?.reshape_to([m], at)
}

/// Returns `x` expanded to `shape`. If `x` does not expand, returns the error of `expand`.
pub(crate) fn expand_term<A: TensorLike>(x: &A, shape: &Shape, at: Site) -> Result<A> {
    let shape = Sizes::from(shape).resolve_expand(A::Elem::DTYPE, &x.shape(), at)?;
    expand(x, &shape, at)
}

/// Returns `beta` * `own` + `alpha` * `product`. `own` expands to the shape of the product. The value of a term with factor 0 is left out.
fn add_product<A: TensorLike>(own: &A, beta: f64, product: A, alpha: f64, at: Site) -> Result<A> {
    let own = expand_term(own, &product.shape(), at)?;
    let scale = |x: A, by: f64| if by == 1.0 { Ok(x) } else { x.times(by, at) };
    let mut product = scale(product, alpha)?;
    if alpha == 0.0 {
        // With `alpha` 0 the value of the product is ignored. PyTorch still multiplies the gradient of the product by 0, so that a NaN in a
        // factor gives a NaN gradient. So only the value is replaced by 0, and the derivative stays.
        product = product.with_value(&expand_number(&product, A::Elem::ZERO, &product.shape(), at)?, at)?;
    }
    // With `beta` 0, the values of `own` are not read, and its gradient is zeros.
    if beta == 0.0 {
        product.with_zero_gradients(&[&own], at)
    } else {
        scale(own, beta)?.apply_binary(Binary::Add, &product, at)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    fn sentence<T: std::fmt::Debug>(result: Result<T, crate::Error>) -> String {
        result.unwrap_err().sentence()
    }

    /// All values are small whole numbers, so every order of summation gives the same result.
    #[test]
    fn sums_of_products_of_large_vectors() {
        let x = Tensor::<i64>::from_fn([90, 70], |i| (i[0] * 31 + i[1] * 17) as i64 % 13 - 6);
        let y = Tensor::<i64>::from_fn([90, 70], |i| (i[0] * 7 + i[1] * 3) as i64 % 11 - 5);
        let (product, flat) = (&x * &y, |x: &Tensor<i64>| x.reshape([-1]));
        let (rows, floats) = (product.sum(1), |x: &Tensor<i64>| x.cast::<f32>());
        assert_eq!(flat(&x).dot(flat(&y)), product.sum(..));
        assert_eq!(floats(&flat(&x)).dot(floats(&flat(&y))), floats(&product.sum(..)));
        assert_eq!(crate::ops::einsum("ij,ij->i", &[&x, &y]), rows);
        assert_eq!(crate::ops::einsum("ij,ij->i", &[&floats(&x), &floats(&y)]), floats(&rows));
        let (x, y) = (floats(&x.t()), floats(&y.t()));
        assert_eq!(crate::ops::einsum("ij,ij->j", &[&x, &y]), floats(&rows));
        assert_eq!(crate::ops::einsum("ij,ij->", &[&x, &y]), floats(&product.sum(..)));
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
    fn the_added_term_expands_and_terms_with_factor_zero_are_left_out() {
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
        // The hint proposes a transposed matrix if it fits.
        for (y, hint) in [([5, 3], Some("`mat2.t()`")), ([2, 5], Some("`mat1.t()`")), ([4, 5], None)] {
            let y = Tensor::ones(y);
            for error in [x.try_mm(&y).unwrap_err(), x.try_matmul(&y).unwrap_err()] {
                let text = error.to_string();
                assert_eq!(text.split_once("fits if it is transposed: ").map(|(_, code)| code), hint, "{text}");
            }
        }
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
