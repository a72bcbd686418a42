//! The Cholesky factor. Large matrices are divided in halves (Gustavson, "Recursion leads to automatic variable blocking for dense
//! linear-algebra algorithms", 1997). Smaller ones are factored by blocks of columns.

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Error, Float, Shape, Tensor};

use super::differences::subtract_product;
use super::tiles::{DEPTH, Rows, copy_transposed, subtract_outer};
use super::triangular::{Triangular, TriangularPart, solve_strips};
use crate::simd::vectorized;

/// The largest matrix, in rows, that is factored block by block. A larger matrix is divided in halves.
const LARGEST_BLOCKED: usize = 256;

/// The largest square on the diagonal, in rows, that is factored in a short buffer. Each update has the length of the buffer, whose unused
/// elements are zeros.
const SMALL_LEAF: usize = 8;

/// The number of rows of a square that are updated together, as a strip. A strip ends at the diagonal of its last row. So with fewer rows,
/// fewer unused elements above the diagonal are computed.
const STRIP: usize = 16;

/// The number of rows in a strip that is updated by products of tensors, which are slow for few rows.
const LARGE_STRIP: usize = 128;

/// Replaces the lower triangle of an `n` by `n` matrix by its Cholesky factor, and the other elements by zeros. Returns the order of the
/// first leading minor that is not positive, or `None` if all are positive.
pub(crate) fn cholesky<T: Float>(a: &mut [T], n: usize) -> Result<Option<usize>, Error> {
    let failed_order = factor(a, n, 0, n)?;
    for row in 0..n {
        a[row * n + row + 1..(row + 1) * n].fill(T::ZERO);
    }
    Ok(failed_order)
}

/// Factors a square on the diagonal: `count` rows and columns, beginning with row `first`. Returns the same as
/// [`cholesky`].
fn factor<T: Float>(a: &mut [T], n: usize, first: usize, count: usize) -> Result<Option<usize>, Error> {
    if count <= LARGEST_BLOCKED {
        return Ok(vectorized(
            #[inline(always)]
            || factor_blocks(a, n, first, count),
        ));
    }
    let half = count / 2;
    let next = first + half;
    if let Some(order) = factor(a, n, first, half)? {
        return Ok(Some(order));
    }
    // The part X below the factor L of the first half solves X Lᵀ = B, which is equivalent to L Xᵀ = Bᵀ. The rows of Bᵀ are long, which
    // suits vector instructions.
    let rows = count - half;
    let mut transposed = vec![T::ZERO; half * rows];
    copy_transposed(Rows { data: &a[next * n + first..], stride: n }, (rows, half), &mut transposed, rows);
    let l = Triangular { part: TriangularPart::LOWER, data: &a[first * n + first..], stride: n };
    l.solve(&mut transposed, (half, rows))?;
    copy_transposed(Rows { data: &transposed, stride: rows }, (half, rows), &mut a[next * n + first..], n);
    let x = Tensor::try_from_vec(transposed, Shape::from([half, rows]))?;
    for top in (0..rows).step_by(LARGE_STRIP) {
        let (height, width) = (LARGE_STRIP.min(rows - top), rows.min(top + LARGE_STRIP));
        let (p, b) = (x.try_narrow(1, top, height)?.try_t()?, x.try_narrow(1, 0, width)?);
        subtract_product(&mut a[(next + top) * n + next..], n, &p, &b)?;
    }
    factor(a, n, next, rows)
}

/// Factors a square on the diagonal by blocks of columns. After a block is factored, its product with its transpose is subtracted from the
/// columns after it. Returns the same as [`cholesky`].
#[inline(always)]
fn factor_blocks<T: Float>(a: &mut [T], n: usize, first: usize, count: usize) -> Option<usize> {
    let mut transposed = vec![T::ZERO; if count > DEPTH { DEPTH * (count - DEPTH) } else { 0 }];
    let end = first + count;
    for start in (first..end).step_by(DEPTH) {
        let size = DEPTH.min(end - start);
        let (next, rows) = (start + size, end - start - size);
        let failed_order = match size {
            ..=SMALL_LEAF => factor_leaf::<T, SMALL_LEAF>(a, n, start, size),
            _ => factor_leaf::<T, DEPTH>(a, n, start, size),
        };
        if failed_order.is_some() || rows == 0 {
            return failed_order;
        }
        let transposed = &mut transposed[..size * rows];
        copy_transposed(Rows { data: &a[next * n + start..], stride: n }, (rows, size), transposed, rows);
        let l = &a[start * n + start..];
        solve_strips(TriangularPart::LOWER, |row, column| l[row * n + column], transposed, rows, (size, rows));
        copy_transposed(Rows { data: transposed, stride: rows }, (size, rows), &mut a[next * n + start..], n);
        for top in (0..rows).step_by(STRIP) {
            let (height, width) = (STRIP.min(rows - top), rows.min(top + STRIP));
            let (p, b) = (Rows { data: &transposed[top..], stride: rows }, Rows { data: transposed, stride: rows });
            subtract_outer(&mut a[(next + top) * n + next..], n, (height, width), p, b, size);
        }
    }
    None
}

/// Factors a square of at most `SIZE` rows. The transposed factor is computed row by row, so that each update is a
/// vector operation of fixed length. Returns the same as [`cholesky`].
#[inline(always)]
fn factor_leaf<T: Float, const SIZE: usize>(a: &mut [T], n: usize, first: usize, count: usize) -> Option<usize> {
    let mut u = [[T::ZERO; SIZE]; SIZE];
    for row in 0..count {
        for (column, u) in u.iter_mut().enumerate().take(row + 1) {
            u[row] = a[(first + row) * n + first + column];
        }
    }
    let mut failed_order = None;
    for row in 0..count {
        let square = u[row][row];
        if square <= T::ZERO || square.is_nan() {
            failed_order = Some(first + row + 1);
            break;
        }
        let root = square.sqrt();
        u[row][row] = root;
        for x in &mut u[row][row + 1..count] {
            *x = *x / root;
        }
        let pivot_row = u[row];
        for (other, u) in u.iter_mut().enumerate().take(count).skip(row + 1) {
            for (x, &y) in u.iter_mut().zip(&pivot_row) {
                *x = *x - pivot_row[other] * y;
            }
        }
    }
    for row in 0..count {
        for (column, u) in u.iter().enumerate().take(row + 1) {
            a[(first + row) * n + first + column] = u[row];
        }
    }
    failed_order
}
