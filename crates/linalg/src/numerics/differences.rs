//! Differences C - A B of parts of one matrix.

use wengert_tensor::ops::Products as _;
use wengert_tensor::{Error, Float, Shape, Tensor};

use crate::simd::vectorized;

/// The least number of multiplications for which a call of the tensor's product is faster than a plain loop, in spite of its copies.
const LEAST_PRODUCT: usize = 131_072;

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
pub(crate) fn copied_transposed<T: Float>(data: &[T], width: usize, of: Block) -> Vec<T> {
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
        vectorized(
            #[inline(always)]
            || subtract_small(data, width, c, &a, &b, inner),
        );
        return Ok(());
    }
    let a = Tensor::try_from_vec(a, Shape::from([c.rows, inner]))?;
    let product = a.try_matmul(&Tensor::try_from_vec(b, Shape::from([inner, c.columns]))?)?;
    if let Some(product) = product.as_slice() {
        vectorized(
            #[inline(always)]
            || {
                for (row, product) in product.chunks_exact(c.columns).enumerate() {
                    let to = &mut data[(c.row + row) * width + c.column..][..c.columns];
                    for (to, &product) in to.iter_mut().zip(product) {
                        *to = *to - product;
                    }
                }
            },
        );
    }
    Ok(())
}

/// The sizes of a tile of C whose sums stay in registers: 4 rows of 16 columns are 8 vectors of f64 with AVX-512.
const TILE: (usize, usize) = (4, 16);

/// Subtracts A B tile by tile. Each sum runs over the terms in their order.
#[inline(always)]
fn subtract_small<T: Float>(data: &mut [T], width: usize, c: Block, a: &[T], b: &[T], inner: usize) {
    let mut row = 0;
    while row < c.rows {
        let rows = TILE.0.min(c.rows - row);
        let mut column = 0;
        while column < c.columns {
            let columns = TILE.1.min(c.columns - column);
            let mut sums = [[T::ZERO; TILE.1]; TILE.0];
            if (rows, columns) == TILE {
                let [a0, a1, a2, a3] = [0, 1, 2, 3].map(|next| &a[(row + next) * inner..][..inner]);
                for position in 0..inner {
                    let from = &b[position * c.columns + column..][..TILE.1];
                    let factors = [a0[position], a1[position], a2[position], a3[position]];
                    for (sums, factor) in sums.iter_mut().zip(factors) {
                        for (sum, &x) in sums.iter_mut().zip(from) {
                            *sum = *sum + factor * x;
                        }
                    }
                }
            } else {
                for (next, sums) in sums.iter_mut().enumerate().take(rows) {
                    for (position, &factor) in a[(row + next) * inner..][..inner].iter().enumerate() {
                        for (sum, &x) in sums.iter_mut().zip(&b[position * c.columns + column..][..columns]) {
                            *sum = *sum + factor * x;
                        }
                    }
                }
            }
            for (next, sums) in sums.iter().enumerate().take(rows) {
                let to = &mut data[(c.row + row + next) * width + c.column + column..][..columns];
                for (to, &sum) in to.iter_mut().zip(sums) {
                    *to = *to - sum;
                }
            }
            column += columns;
        }
        row += rows;
    }
}
