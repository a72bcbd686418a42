//! Differences C - A B of parts of one matrix.

use wengert_tensor::ops::Products as _;
use wengert_tensor::{Error, Float, Shape, Tensor};

use super::simd::vectorized;

/// The least number of multiplications for which a call of the tensor's product is faster than a plain loop, in spite of its copies.
const LEAST_PRODUCT: usize = 32_768;

/// A part of a matrix: the row and column of its first element, and its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Block {
    /// Returns the part in which the rows `first..first + count` remain.
    pub(crate) fn of_rows(self, first: usize, count: usize) -> Self {
        Block { row: self.row + first, rows: count, ..self }
    }
}

/// Returns a copy of a part of a matrix whose rows have `width` elements.
fn copied<T: Float>(data: &[T], width: usize, of: Block) -> Vec<T> {
    let mut copy = Vec::with_capacity(of.rows * of.columns);
    for row in of.row..of.row + of.rows {
        copy.extend_from_slice(&data[row * width + of.column..][..of.columns]);
    }
    copy
}

/// Returns a transposed copy of a part of a matrix whose rows have `width` elements.
fn copied_transposed<T: Float>(data: &[T], width: usize, of: Block) -> Vec<T> {
    let mut copy = vec![T::ZERO; of.rows * of.columns];
    for row in 0..of.rows {
        let from = &data[(of.row + row) * width + of.column..][..of.columns];
        for (column, &element) in from.iter().enumerate() {
            copy[column * of.rows + row] = element;
        }
    }
    copy
}

/// Subtracts the product of the parts `a` and `b` of the same matrix from the part `c`. If `transpose` is true, `b` is transposed first.
pub(crate) fn subtract_product<T: Float>(
    data: &mut [T],
    width: usize,
    c: Block,
    a: Block,
    (b, transpose): (Block, bool),
) -> Result<(), Error> {
    let a_copy = copied(data, width, a);
    let b_copy = if transpose { copied_transposed(data, width, b) } else { copied(data, width, b) };
    subtract(data, width, c, a_copy, b_copy, a.columns)
}

/// Subtracts the product of the part `a` of another matrix and the part `b` of this matrix from the part `c` of this matrix.
pub(crate) fn subtract_product_of<T: Float>(
    data: &mut [T],
    width: usize,
    c: Block,
    (other, other_width, a): (&[T], usize, Block),
    b: Block,
) -> Result<(), Error> {
    let (a_copy, b_copy) = (copied(other, other_width, a), copied(data, width, b));
    subtract(data, width, c, a_copy, b_copy, a.columns)
}

/// Subtracts the product of the matrices `a` and `b` from the part `c`. `inner` is the number of columns of `a`.
fn subtract<T: Float>(data: &mut [T], width: usize, c: Block, a: Vec<T>, b: Vec<T>, inner: usize) -> Result<(), Error> {
    if c.rows * c.columns * inner < LEAST_PRODUCT {
        vectorized(|| subtract_small(data, width, c, &a, &b, inner));
        return Ok(());
    }
    let a = Tensor::try_from_vec(a, Shape::from([c.rows, inner]))?;
    let product = a.try_matmul(&Tensor::try_from_vec(b, Shape::from([inner, c.columns]))?)?;
    if let Some(product) = product.as_slice() {
        vectorized(|| {
            for (row, product) in product.chunks_exact(c.columns).enumerate() {
                let to = &mut data[(c.row + row) * width + c.column..][..c.columns];
                for (to, &product) in to.iter_mut().zip(product) {
                    *to = *to - product;
                }
            }
        });
    }
    Ok(())
}

#[inline(always)]
fn subtract_small<T: Float>(data: &mut [T], width: usize, c: Block, a: &[T], b: &[T], inner: usize) {
    for row in 0..c.rows {
        let to = &mut data[(c.row + row) * width + c.column..][..c.columns];
        let factors = &a[row * inner..][..inner];
        let mut position = 0;
        while position + 4 <= inner {
            let [f0, f1, f2, f3] = [0, 1, 2, 3].map(|next| factors[position + next]);
            let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|next| &b[(position + next) * c.columns..][..c.columns]);
            for column in 0..c.columns {
                to[column] = to[column] - (f0 * b0[column] + f1 * b1[column] + f2 * b2[column] + f3 * b3[column]);
            }
            position += 4;
        }
        for position in position..inner {
            subtract_scaled(to, factors[position], &b[position * c.columns..][..c.columns]);
        }
    }
}

/// Subtracts `factor` times `x` from `y`.
#[inline(always)]
pub(crate) fn subtract_scaled<T: Float>(y: &mut [T], factor: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y - factor * x;
    }
}

/// The number of partial sums of [`dot`].
const LANES: usize = 16;

/// Returns the sum of the products of the elements.
#[inline(always)]
pub(crate) fn dot<T: Float>(x: &[T], y: &[T]) -> T {
    let mut sums = [T::ZERO; LANES];
    let (mut left, mut right) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    for (x, y) in left.by_ref().zip(right.by_ref()) {
        for lane in 0..LANES {
            sums[lane] = sums[lane] + x[lane] * y[lane];
        }
    }
    let mut rest = T::ZERO;
    for (&x, &y) in left.remainder().iter().zip(right.remainder()) {
        rest = rest + x * y;
    }
    if x.len() < LANES {
        return rest;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] = sums[lane] + sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + rest
}
