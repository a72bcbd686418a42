//! Matrix products.

use wengert_macros::twins;

use crate::ops::pair::expanded;
use crate::ops::{ArrayOperand, TensorLike};
use crate::shape::broadcast;
use crate::{Error, Number, Shape, Site, View};

/// Matrix products.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let images = Tensor::<f32>::ones([8, 2, 3]);
/// let weight = Tensor::<f32>::ones([3, 4]);
/// assert_eq!(images.matmul(&weight), Tensor::full([8, 2, 4], 3.0)); // batches broadcast
/// ```
#[twins]
pub trait Products: TensorLike {
    /// The matrix product, with batch dimensions that broadcast. PyTorch: `matmul`.
    ///
    /// | `self` | `other` | result |
    /// |---|---|---|
    /// | `[k]` | `[k]` | `[]` |
    /// | `[m, k]` | `[k]` | `[m]` |
    /// | `[k]` | `[k, n]` | `[n]` |
    /// | `[…, m, k]` | `[…, k, n]` | `[…, m, n]`, the batch dimensions broadcast |
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let batch = Tensor::<f64>::ones([5, 2, 3]);
    /// let matrix = Tensor::from([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
    /// assert_eq!(batch.matmul(&matrix), Tensor::full([5, 2, 2], 2.0));
    /// ```
    fn try_matmul(&self, other: impl ArrayOperand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let other = &other.into_array(self);
        product(self, other, Site::here("matmul"))
    }
}

impl<A: TensorLike> Products for A {}

pub(crate) fn product<A: TensorLike>(x: &A, y: &A, at: Site) -> Result<A, A::Error> {
    let (left, right) = (x.shape(), y.shape());
    if left.rank() == 2 && right.rank() == 2 && left[1] == right[0] {
        return x.apply_matmul(y, at);
    }
    let refuse = |message: String| Err(A::Error::from(Error::MatmulShape { message, at }));
    if left.rank() == 0 || right.rank() == 0 {
        return refuse(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            left.rank(),
            right.rank()
        ));
    }
    // A vector is a matrix of one row (left) or one column (right); the added dimension is removed at the end.
    let (rows, columns) = (left.rank() == 1, right.rank() == 1);
    let inner = (left[left.rank() - 1], right[right.rank().saturating_sub(2)]);
    let (m, n) = (if rows { 1 } else { left[left.rank() - 2] }, if columns { 1 } else { right[right.rank() - 1] });
    let batch = {
        let of = |shape: &Shape| Shape::from(&shape[..shape.rank().saturating_sub(2)]);
        let (first, second) = (of(&left), of(&right));
        broadcast::join(&[&first, &second]).map_err(|mismatch| Error::Broadcast(mismatch, at))?
    };
    if inner.0 != inner.1 {
        return refuse(match (rows, columns) {
            (true, true) => return Err(unequal_vectors(&left, &right, at).into()),
            (false, true) if batch.rank() == 0 => {
                format!("size mismatch, got input ({m}), mat ({m}x{}), vec ({})", inner.0, inner.1)
            }
            _ if right.rank() <= 2 || left.rank() <= 2 => {
                let folded = Shape::from(&left[..left.rank() - 1]).numel();
                format!("mm: mat1 and mat2 shapes cannot be multiplied ({folded}x{} and {}x{n})", inner.0, inner.1)
            }
            _ => {
                let count = batch.numel();
                format!(
                    "Expected size for first two dimensions of batch2 tensor to be: [{count}, {}] but got: [{count}, {}].",
                    inner.0, inner.1
                )
            }
        });
    }
    let k = inner.0;
    let x = if rows { x.apply_view(View::Reshape(Shape::from([1, k])), at)? } else { x.clone() };
    let y = if columns { y.apply_view(View::Reshape(Shape::from([k, 1])), at)? } else { y.clone() };
    let mut result = batch.clone();
    if !rows {
        result.push(m);
    }
    if !columns {
        result.push(n);
    }
    let with = |rows: usize, columns: usize| {
        let mut shape = batch.clone();
        shape.push(rows);
        shape.push(columns);
        shape
    };
    // A batch times one matrix is one product, of all rows of the batch.
    let folds = right.rank() <= 2 && left.rank() > 2;
    let z = match with(m, 1).checked_numel() {
        Some(rows) if folds => {
            let folded = x.apply_view(View::Reshape(Shape::from([rows, k])), at)?;
            folded.apply_matmul(&y, at)?
        }
        _ => expanded(&x, &with(m, k), at)?.apply_matmul(&expanded(&y, &with(k, n), at)?, at)?,
    };
    if z.shape() == result { Ok(z) } else { z.apply_view(View::Reshape(result), at) }
}

/// Two vectors of different lengths.
pub(crate) fn unequal_vectors(left: &Shape, right: &Shape, at: Site) -> Error {
    let message = format!(
        "inconsistent tensor size, expected tensor {left} and src {right} to have the same number of elements, but got {} \
         and {} elements respectively",
        left.numel(),
        right.numel()
    );
    Error::MatmulShape { message, at }
}
