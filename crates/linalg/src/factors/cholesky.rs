//! The Cholesky factor by recursion on halves: Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra
//! algorithms" (1997).

use wengert_tensor::{Error, Float};

use super::products::{Block, dot, subtract_product};
use super::simd::vectorized;

/// The largest matrix that is factored row by row.
const LARGEST_LEAF: usize = 32;

/// Replaces the lower triangle of an `n` by `n` matrix by its Cholesky factor, and the rest by zeros. Returns the order of the first
/// leading minor that is not positive, or `None` if all are positive.
pub(crate) fn cholesky<T: Float>(a: &mut [T], n: usize) -> Result<Option<usize>, Error> {
    let failed = factor(a, n, 0, n)?;
    for row in 0..n {
        a[row * n + row + 1..(row + 1) * n].fill(T::ZERO);
    }
    Ok(failed)
}

/// Factors the square of size `count` on the diagonal that begins at `first`.
fn factor<T: Float>(a: &mut [T], n: usize, first: usize, count: usize) -> Result<Option<usize>, Error> {
    if count <= LARGEST_LEAF {
        return Ok(vectorized(|| factor_rows(a, n, first, count)));
    }
    let half = count / 2;
    if let Some(order) = factor(a, n, first, half)? {
        return Ok(Some(order));
    }
    solve_right(a, n, (first, half), Block { row: first + half, column: first, rows: count - half, columns: half })?;
    subtract_square(a, n, (first + half, count - half), (first, half))?;
    factor(a, n, first + half, count - half)
}

#[inline(always)]
fn factor_rows<T: Float>(a: &mut [T], n: usize, first: usize, count: usize) -> Option<usize> {
    for row in first..first + count {
        let (before, own) = a.split_at_mut(row * n);
        for column in first..row {
            let other = &before[column * n..][..n];
            let sum = own[column] - dot(&own[first..column], &other[first..column]);
            own[column] = sum / other[column];
        }
        let square = own[row] - dot(&own[first..row], &own[first..row]);
        // NaN is not positive either.
        if !(square > T::ZERO) {
            return Some(row + 1);
        }
        own[row] = square.sqrt();
    }
    None
}

/// Replaces the part `b` by the solution X of X Lᵀ = B, where L is the square of size `count` on the diagonal that begins at `first`.
fn solve_right<T: Float>(a: &mut [T], n: usize, (first, count): (usize, usize), b: Block) -> Result<(), Error> {
    if count <= LARGEST_LEAF {
        vectorized(|| solve_right_rows(a, n, (first, count), b));
        return Ok(());
    }
    let half = count / 2;
    let (left, right) = (Block { columns: half, ..b }, Block { column: b.column + half, columns: count - half, ..b });
    solve_right(a, n, (first, half), left)?;
    let below = Block { row: first + half, column: first, rows: count - half, columns: half };
    subtract_product(a, n, right, left, (below, true))?;
    solve_right(a, n, (first + half, count - half), right)
}

#[inline(always)]
fn solve_right_rows<T: Float>(a: &mut [T], n: usize, (first, count): (usize, usize), b: Block) {
    let (square, rows) = a.split_at_mut(b.row * n);
    for own in rows.chunks_mut(n).take(b.rows) {
        let own = &mut own[b.column..][..count];
        for column in 0..count {
            let other = &square[(first + column) * n + first..][..count];
            let sum = own[column] - dot(&own[..column], &other[..column]);
            own[column] = sum / other[column];
        }
    }
}

/// Subtracts X Xᵀ from the lower triangle of a square on the diagonal. X is the part of the square's rows in the columns `x`.
fn subtract_square<T: Float>(
    a: &mut [T],
    n: usize,
    (first, count): (usize, usize),
    x: (usize, usize),
) -> Result<(), Error> {
    let rows = |row, rows| Block { row, column: x.0, rows, columns: x.1 };
    if count <= 2 * LARGEST_LEAF {
        let square = Block { row: first, column: first, rows: count, columns: count };
        return subtract_product(a, n, square, rows(first, count), (rows(first, count), true));
    }
    let half = count / 2;
    subtract_square(a, n, (first, half), x)?;
    let corner = Block { row: first + half, column: first, rows: count - half, columns: half };
    subtract_product(a, n, corner, rows(first + half, count - half), (rows(first, half), true))?;
    subtract_square(a, n, (first + half, count - half), x)
}
