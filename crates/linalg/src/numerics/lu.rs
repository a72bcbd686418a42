//! The factors P L U with row exchanges, by recursion on halves of the columns: Toledo, "Locality of reference in LU decomposition with
//! partial pivoting" (1997).

use wengert_tensor::{Error, Float};

use super::arithmetic::{abs, subtract_scaled};
use super::differences::{Block, subtract_product};
use super::triangular::{Coefficients, Triangular};
use crate::simd::vectorized;

/// The largest number of columns that are factored in sequence. More columns are divided into two halves.
const LARGEST_LEAF: usize = 16;

/// Replaces a matrix of `rows` by `columns` elements by its factors L, below the diagonal, and U. Writes to `pivots` the row with which each
/// row was exchanged, counted from 1. Returns the number of the first zero on the diagonal of U, counted from 1, if there is one.
pub(crate) fn factor<T: Float>(
    a: &mut [T],
    (rows, columns): (usize, usize),
    pivots: &mut [T],
) -> Result<Option<usize>, Error> {
    let count = rows.min(columns);
    let mut zero = None;
    factor_columns(a, (rows, columns), (0, count), pivots, &mut zero)?;
    if columns > count {
        finish_columns(a, (rows, columns), (0, count), (count, columns - count))?;
    }
    Ok(zero)
}

/// Factors the columns `first..first + count`. The columns before are factored, and their effect on these columns is computed.
fn factor_columns<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero: &mut Option<usize>,
) -> Result<(), Error> {
    if count <= LARGEST_LEAF {
        vectorized(
            #[inline(always)]
            || factor_leaf(a, (rows, width), (first, count), pivots, zero),
        );
        return Ok(());
    }
    let half = (count / 2).next_multiple_of(LARGEST_LEAF);
    factor_columns(a, (rows, width), (first, half), pivots, zero)?;
    finish_columns(a, (rows, width), (first, half), (first + half, count - half))?;
    factor_columns(a, (rows, width), (first + half, count - half), pivots, zero)
}

/// Computes the effect of the factored columns `first..first + count` on the columns `next..next + others`.
fn finish_columns<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    (next, others): (usize, usize),
) -> Result<(), Error> {
    let top = Block { row: first, column: next, rows: count, columns: others };
    solve_unit_lower(a, width, (first, count), top)?;
    let below = rows - first - count;
    if below == 0 {
        return Ok(());
    }
    let left = Block { row: first + count, column: first, rows: below, columns: count };
    let rest = Block { row: first + count, column: next, rows: below, columns: others };
    subtract_product(a, width, rest, left, (top, false))
}

/// Replaces the part `b` by L⁻¹ B, where L is the unit lower triangle of size `count` on the diagonal that begins at `first`.
fn solve_unit_lower<T: Float>(
    a: &mut [T],
    width: usize,
    (first, count): (usize, usize),
    b: Block,
) -> Result<(), Error> {
    if count > LARGEST_LEAF {
        let half = count / 2;
        let (top, bottom) = (b.of_rows(0, half), b.of_rows(half, count - half));
        solve_unit_lower(a, width, (first, half), top)?;
        let below = Block { row: first + half, column: first, rows: count - half, columns: half };
        subtract_product(a, width, bottom, below, (top, false))?;
        return solve_unit_lower(a, width, (first + half, count - half), bottom);
    }
    vectorized(
        #[inline(always)]
        || {
            for row in 1..count {
                let (before, own) = a.split_at_mut((b.row + row) * width);
                let (coefficients, own) = own[..width].split_at_mut(b.column);
                for other in 0..row {
                    let x = &before[(b.row + other) * width + b.column..][..b.columns];
                    subtract_scaled(&mut own[..b.columns], coefficients[first + other], x);
                }
            }
        },
    );
    Ok(())
}

#[inline(always)]
fn factor_leaf<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero: &mut Option<usize>,
) {
    let end = first + count;
    for column in first..end {
        let (mut pivot, mut largest) = (column, abs(a[column * width + column]));
        for row in column + 1..rows {
            let candidate = abs(a[row * width + column]);
            if candidate > largest {
                (pivot, largest) = (row, candidate);
            }
        }
        pivots[column] = T::from_f64((pivot + 1) as f64);
        if pivot != column {
            let (before, after) = a.split_at_mut(pivot * width);
            before[column * width..][..width].swap_with_slice(&mut after[..width]);
        }
        let (before, after) = a.split_at_mut((column + 1) * width);
        let own = &before[column * width..][..width];
        let diagonal = own[column];
        if diagonal == T::ZERO {
            zero.get_or_insert(column + 1);
            continue;
        }
        if count == LARGEST_LEAF {
            // The leading zeros keep the length fixed.
            let mut tail = [T::ZERO; LARGEST_LEAF];
            tail[column + 1 - first..].copy_from_slice(&own[column + 1..end]);
            for other in after.chunks_exact_mut(width).take(rows - column - 1) {
                let part = &mut other[first..][..LARGEST_LEAF];
                let factor = part[column - first] / diagonal;
                for (x, &y) in part.iter_mut().zip(&tail) {
                    *x = *x - factor * y;
                }
                part[column - first] = factor;
            }
            continue;
        }
        for other in after.chunks_exact_mut(width).take(rows - column - 1) {
            let factor = other[column] / diagonal;
            other[column] = factor;
            subtract_scaled(&mut other[column + 1..end], factor, &own[column + 1..end]);
        }
    }
}

/// Exchanges the rows of `b`, which have `width` elements, as a factorization did, or undoes that if `back` is true. Pivots that are no
/// row of `b` are left out.
pub(crate) fn exchange_rows<T: Float>(pivots: &[T], b: &mut [T], width: usize, back: bool) {
    if width == 0 {
        return;
    }
    let rows = b.len() / width;
    for step in 0..pivots.len() {
        let row = if back { pivots.len() - 1 - step } else { step };
        let other = pivots[row].to_f64() as usize;
        if (row + 2..=rows).contains(&other) {
            let (before, after) = b.split_at_mut((other - 1) * width);
            before[row * width..][..width].swap_with_slice(&mut after[..width]);
        }
    }
}

/// Replaces `b`, `n` rows of `width` elements, by the solution X of A X = B, where `lu` and `pivots` are the factors of A.
pub(crate) fn lu_solve<T: Float>(lu: &[T], pivots: &[T], b: &mut [T], (n, width): (usize, usize)) -> Result<(), Error> {
    exchange_rows(pivots, b, width, false);
    for coefficients in [Coefficients::UNIT_LOWER, Coefficients::UPPER] {
        Triangular { coefficients, data: lu, stride: n }.solve(b, (n, width))?;
    }
    Ok(())
}
