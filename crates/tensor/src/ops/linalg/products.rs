//! The matrix product of operands of any rank.

use wengert_macros::twins;

use crate::ops::primitive::pair::{broadcast_shape, expand};
use crate::ops::{Compose, Result, TensorLike};
use crate::{Element, Error, Number, Shape, Site, Tensor, ensure};

/// The right operand of [`matmul`](Products::matmul) if the left operand is an `A`: another `A`, by reference or by value, a tensor if `A` is
/// a variable, or a variable if `A` is a tensor. The product is a variable if one operand is a variable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no right operand of a matrix product after `{A}`",
    label = "write a tensor or a variable of the same element type",
    note = "the element type of a tensor is converted with `x.cast::<f32>()`; a parameter is put on the tape with `tape.parameter(&p)`"
)]
pub trait ProductOperand<A: TensorLike> {
    /// The type of the product: a variable if one operand is a variable.
    type Product: TensorLike;

    /// Returns the matrix product of `left` and this operand. Returns an error if the shapes do not fit, the operands belong to different
    /// tapes, or memory cannot hold the result.
    #[doc(hidden)]
    fn product_after(self, left: &A, at: Site) -> Result<Self::Product, <Self::Product as TensorLike>::Error>;
}

impl<A: TensorLike> ProductOperand<A> for &A {
    type Product = A;

    fn product_after(self, left: &A, at: Site) -> Result<A> {
        product(left, self, at)
    }
}

impl<T: Element> ProductOperand<Tensor<T>> for Tensor<T> {
    type Product = Tensor<T>;

    fn product_after(self, left: &Tensor<T>, at: Site) -> Result<Tensor<T>, Error> {
        product(left, &self, at)
    }
}

/// The matrix product.
#[twins(blanket)]
pub trait Products: TensorLike {
    /// Returns the matrix product. Batch dimensions broadcast. A tensor times a variable is a variable. Refuses rank 0, and sizes k that
    /// differ. PyTorch: `matmul`.
    ///
    /// | `self` | `other` | result |
    /// |---|---|---|
    /// | `[k]` | `[k]` | `[]` |
    /// | `[…, m, k]` | `[k]` | `[…, m]` |
    /// | `[k]` | `[…, k, n]` | `[…, n]` |
    /// | `[…, m, k]` | `[…, k, n]` | `[…, m, n]`, the batch dimensions broadcast |
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let batch = Tensor::<f64>::ones([5, 2, 3]);
    /// let matrix = Tensor::from([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
    /// assert_eq!(batch.matmul(&matrix), Tensor::full([5, 2, 2], 2.0));
    /// ```
    #[doc(alias("mm", "dot", "@", "__matmul__"))]
    fn try_matmul<O: ProductOperand<Self>>(&self, other: O) -> Result<O::Product>
    where
        Self::Elem: Number,
    {
        other.product_after(self, Site::here("matmul"))
    }
}

/// Returns the matrix product of `x` and `y`, as [`Products::matmul`] describes it, with its errors.
pub fn product<A: TensorLike>(x: &A, y: &A, at: Site) -> Result<A> {
    let (left, right) = (x.shape(), y.shape());
    if left.rank() == 2 && right.rank() == 2 && left[1] == right[0] {
        return x.apply_matmul(y, at);
    }
    ensure!(
        left.rank() > 0 && right.rank() > 0,
        at,
        MatmulShape,
        "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
        left.rank(),
        right.rank()
    );
    // A vector counts as a matrix of one row (on the left) or one column (on the right). The added dimension is removed at the end.
    let (is_row, is_column) = (left.rank() == 1, right.rank() == 1);
    let inner = (left[left.rank() - 1], right[right.rank().saturating_sub(2)]);
    let m = if is_row { 1 } else { left[left.rank() - 2] };
    let n = if is_column { 1 } else { right[right.rank() - 1] };
    let batch_of = |shape: &Shape| Shape::from(&shape[..shape.rank().saturating_sub(2)]);
    let batch = broadcast_shape(&batch_of(&left), &batch_of(&right), at)?;
    if inner.0 != inner.1 {
        return Err(inner_mismatch(&left, &right, (m, n), inner, &batch, at).into());
    }
    let k = inner.0;
    let x = if is_row { x.reshape_to([1, k], at)? } else { x.clone() };
    let y = if is_column { y.reshape_to([k, 1], at)? } else { y.clone() };
    let batch_and = |sizes: &[usize]| batch.replaced(batch.rank()..batch.rank(), sizes);
    // If only the left operand has batch dimensions, all its rows form one matrix, so that a single matrix product is enough.
    let folds = right.rank() <= 2 && left.rank() > 2;
    let z = match batch_and(&[m]).checked_numel() {
        Some(rows) if folds => x.reshape_to([rows, k], at)?.apply_matmul(&y, at)?,
        _ => expand(&x, &batch_and(&[m, k]), at)?.apply_matmul(&expand(&y, &batch_and(&[k, n]), at)?, at)?,
    };
    z.reshape_to(
        match (is_row, is_column) {
            (true, true) => batch,
            (true, false) => batch_and(&[n]),
            (false, true) => batch_and(&[m]),
            (false, false) => batch_and(&[m, n]),
        },
        at,
    )
}

/// Returns PyTorch's error for operands whose contracted dimensions have the different sizes `inner`.
fn inner_mismatch(
    left: &Shape,
    right: &Shape,
    (m, n): (usize, usize),
    inner: (usize, usize),
    batch: &Shape,
    at: Site,
) -> Error {
    let (k, other) = inner;
    let message = match (left.rank(), right.rank()) {
        (1, 1) => return unequal_vectors(left, right, at),
        (_, 1) if batch.rank() == 0 => format!("size mismatch, got input ({m}), mat ({m}x{k}), vec ({other})"),
        (rank, other_rank) if rank.min(other_rank) <= 2 => {
            let rows = Shape::from(&left[..rank - 1]).numel();
            format!("mm: mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {other}x{n})")
        }
        _ => {
            let count = batch.numel();
            format!(
                "Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: [{count}, {other}]."
            )
        }
    };
    Error::MatmulShape { message, at }.with_hint_if_any(transposed_hint(left, right))
}

/// Returns a hint for two matrices that can be multiplied if one of them is transposed.
pub(crate) fn transposed_hint(left: &Shape, right: &Shape) -> Option<&'static str> {
    match (&left[..], &right[..]) {
        ([_, k], [_, n]) if k == n => Some("the second matrix fits if it is transposed: `mat2.t()`"),
        ([m, _], [other, _]) if m == other => Some("the first matrix fits if it is transposed: `mat1.t()`"),
        _ => None,
    }
}

/// Returns PyTorch's error for vectors of different lengths.
pub(crate) fn unequal_vectors(left: &Shape, right: &Shape, at: Site) -> Error {
    let message = format!(
        "inconsistent tensor size, expected tensor {left} and src {right} to have the same number of elements, but got {} \
         and {} elements respectively",
        left.numel(),
        right.numel()
    );
    Error::MatmulShape { message, at }
}
