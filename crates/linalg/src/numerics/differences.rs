//! Computes differences C - A B, where C is a large part of a matrix, with the matrix product of tensors.

use wengert_tensor::ops::Products as _;
use wengert_tensor::{Error, Float, Shape, Tensor};

use super::tiles::Rows;
use crate::simd::vectorized;

/// Returns a contiguous copy of a part of a matrix, with `rows` rows and `columns` columns.
pub(crate) fn contiguous_copy<T: Float>(from: Rows<T>, (rows, columns): (usize, usize)) -> Result<Tensor<T>, Error> {
    let mut copy = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        copy.extend_from_slice(from.part(row, 0, columns));
    }
    Tensor::try_from_vec(copy, Shape::from([rows, columns]))
}

/// Subtracts the product A B from C. The rows of C begin `stride` elements apart.
pub(crate) fn subtract_product<T: Float>(
    c: &mut [T],
    stride: usize,
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(), Error> {
    let product = a.try_matmul(b)?.try_contiguous()?;
    let columns = b.shape()[1];
    if let Some(product) = product.as_slice() {
        vectorized(
            #[inline(always)]
            || {
                for (c, product) in c.chunks_mut(stride).zip(product.chunks_exact(columns)) {
                    for (c, &product) in c.iter_mut().zip(product) {
                        *c = *c - product;
                    }
                }
            },
        );
    }
    Ok(())
}
