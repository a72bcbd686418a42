//! The factors P L U with row exchanges, by recursion on halves of the columns: Toledo, "Locality of reference in LU decomposition with
//! partial pivoting" (1997).

use wengert_tensor::{Error, Float};

use super::arithmetic::{abs, larger, subtract_scaled};
use super::differences::{copied, subtract_product};
use super::tiles::{DEPTH, Rows, copy_transposed, subtract_outer};
use super::triangular::{Coefficients, Triangular, solve_strips};
use crate::simd::vectorized;

/// The largest number of columns that are factored panel by panel (in groups of [`DEPTH`] columns). More columns are divided into two
/// halves.
const LARGEST_BLOCKED: usize = 128;

/// The largest number of elements of a panel that is stored on the stack. An allocation takes as long as the factorization of a matrix of
/// this size.
const FEW: usize = 64;

/// Replaces a matrix of `rows` rows and `columns` columns by its factors L (below the diagonal) and U. Writes to `pivots`, for each of the
/// first min(`rows`, `columns`) rows, the row with which it was exchanged, counted from 1. If U has a zero on its diagonal, returns the
/// number of the first one, counted from 1.
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

/// Factors the columns `first..first + count`. All earlier columns must be factored, and their products subtracted from these columns.
/// Exchanges whole rows of the matrix, and writes the exchanges to `pivots`. If `zero` is `None`, sets it to the number of the first zero on
/// the diagonal in these columns of U, counted from 1.
fn factor_columns<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero: &mut Option<usize>,
) -> Result<(), Error> {
    if count <= LARGEST_BLOCKED {
        vectorized(
            #[inline(always)]
            || factor_panels(a, (rows, width), (first, count), pivots, zero),
        );
        return Ok(());
    }
    let half = (count / 2).next_multiple_of(DEPTH);
    factor_columns(a, (rows, width), (first, half), pivots, zero)?;
    finish_columns(a, (rows, width), (first, half), (first + half, count - half))?;
    factor_columns(a, (rows, width), (first + half, count - half), pivots, zero)
}

/// Applies the elimination of the factored columns `first..first + count` to the columns `next..next + others`. Computes their rows of U, and
/// subtracts the product of L and these rows from the rows below.
fn finish_columns<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    (next, others): (usize, usize),
) -> Result<(), Error> {
    let part = |row: usize, column: usize| row * width + column;
    let mut top = copied(Rows { data: &a[part(first, next)..], stride: width }, (count, others))?;
    let l = Triangular { coefficients: Coefficients::UNIT_LOWER, data: &a[part(first, first)..], stride: width };
    l.solve(top.make_mut(), (count, others))?;
    if let Some(top) = top.as_slice() {
        for (row, top) in top.chunks_exact(others).enumerate() {
            a[part(first + row, next)..][..others].copy_from_slice(top);
        }
    }
    let (below, later) = (first + count, rows - first - count);
    if later == 0 {
        return Ok(());
    }
    let left = copied(Rows { data: &a[part(below, first)..], stride: width }, (later, count))?;
    subtract_product(&mut a[part(below, next)..], width, &left, &top)
}

/// Factors columns by panels of [`DEPTH`] columns. Each panel is factored in a transposed copy, in which its columns are contiguous. Then
/// its product with the rows of U is subtracted from the columns after it. `pivots` and `zero` are as in [`factor_columns`].
#[inline(always)]
fn factor_panels<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero: &mut Option<usize>,
) {
    let (mut few, mut many) = ([T::ZERO; FEW], Vec::new());
    let len = DEPTH.min(count) * (rows - first);
    let panel: &mut [T] = if len <= FEW {
        &mut few
    } else {
        many.resize(len, T::ZERO);
        &mut many
    };
    let end = first + count;
    for start in (first..end).step_by(DEPTH) {
        let (size, height) = (DEPTH.min(end - start), rows - start);
        let panel = &mut panel[..size * height];
        copy_transposed(Rows { data: &a[start * width + start..], stride: width }, (height, size), panel, height);
        if let Some(number) = factor_panel(panel, height, start, &mut pivots[start..start + size]) {
            zero.get_or_insert(start + number);
        }
        exchange_rows_from(&pivots[start..start + size], a, width, start);
        copy_transposed(Rows { data: panel, stride: height }, (size, height), &mut a[start * width + start..], width);
        let (next, others) = (start + size, end - start - size);
        if others == 0 {
            break;
        }
        let (top, below) = a.split_at_mut(next * width);
        let top = &mut top[start * width + next..];
        let unit_lower = |row: usize, column: usize| panel[column * height + row];
        solve_strips(Coefficients::UNIT_LOWER, unit_lower, top, width, (size, others));
        if next < rows {
            let (p, b) = (Rows { data: &panel[size..], stride: height }, Rows { data: top, stride: width });
            subtract_outer(&mut below[next..], width, (rows - next, others), p, b, size);
        }
    }
}

/// Factors the columns of a panel, which are contiguous and have `height` elements. Row 0 of the panel is row `first`
/// of the matrix. Writes the row exchanges to `pivots`. Returns the number of the first zero on the diagonal, counted
/// from 1, or `None`.
#[inline(always)]
fn factor_panel<T: Float>(panel: &mut [T], height: usize, first: usize, pivots: &mut [T]) -> Option<usize> {
    let mut zero = None;
    for (column, pivot) in pivots.iter_mut().enumerate() {
        let (before, own) = panel.split_at_mut(column * height);
        let own = &mut own[..height];
        for (k, l) in before.chunks_exact(height).enumerate() {
            let factor = own[k];
            subtract_scaled(&mut own[k + 1..], factor, &l[k + 1..]);
        }
        let row = column + index_of_largest(&own[column..]);
        *pivot = T::from_f64((first + row + 1) as f64);
        if row != column {
            panel.chunks_exact_mut(height).for_each(|column_of| column_of.swap(column, row));
        }
        let own = &mut panel[column * height..][..height];
        let diagonal = own[column];
        if diagonal == T::ZERO {
            zero = zero.or(Some(column + 1));
            continue;
        }
        for x in &mut own[column + 1..] {
            *x = *x / diagonal;
        }
    }
    zero
}

/// Returns the index of the first element with the largest magnitude. If the first element is NaN, returns 0. Other NaNs are ignored.
#[inline(always)]
fn index_of_largest<T: Float>(x: &[T]) -> usize {
    const LANES: usize = 16;
    let (mut lanes, parts) = ([T::ZERO; LANES], x.chunks_exact(LANES));
    let rest = parts.remainder();
    for part in parts {
        for (largest, &x) in lanes.iter_mut().zip(part) {
            *largest = larger(*largest, abs(x));
        }
    }
    let largest = lanes.iter().chain(rest).fold(T::ZERO, |largest, &x| larger(largest, abs(x)));
    if abs(x[0]) < largest { x.iter().position(|&x| abs(x) == largest).unwrap_or(0) } else { 0 }
}

/// Applies the row exchanges `pivots` to the matrix `a`, whose rows have `width` elements. The first of `pivots` belongs to the row `first`,
/// and is the number of the row, counted from 1, with which this row is exchanged.
#[inline(always)]
fn exchange_rows_from<T: Float>(pivots: &[T], a: &mut [T], width: usize, first: usize) {
    for (row, pivot) in (first..).zip(pivots) {
        let other = pivot.to_f64() as usize - 1;
        if other != row {
            let (before, after) = a.split_at_mut(other * width);
            before[row * width..][..width].swap_with_slice(&mut after[..width]);
        }
    }
}

/// Exchanges the rows of `b`, which have `width` elements, as a factorization has exchanged the rows of its matrix. If `back` is true,
/// undoes these exchanges. Ignores pivots that are not the number of a later row of `b`.
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

/// Replaces `b`, which has `n` rows of `width` elements, by the solution X of A X = B. `lu` and `pivots` are the factors of A.
pub(crate) fn lu_solve<T: Float>(lu: &[T], pivots: &[T], b: &mut [T], (n, width): (usize, usize)) -> Result<(), Error> {
    exchange_rows(pivots, b, width, false);
    for coefficients in [Coefficients::UNIT_LOWER, Coefficients::UPPER] {
        Triangular { coefficients, data: lu, stride: n }.solve(b, (n, width))?;
    }
    Ok(())
}
