//! The factors P L U with row exchanges, by recursion on halves of the columns: Toledo, "Locality of reference in LU decomposition with
//! partial pivoting" (1997).

use wengert_macros::precompiled;
use wengert_tensor::{Error, Float};

use super::arithmetic::{abs, maximum, subtract_scaled};
use super::differences::{contiguous_copy, subtract_product};
use super::tiles::{DEPTH, Rows, copy_transposed, subtract_outer};
use super::triangular::{Triangular, TriangularPart, solve_strips};
use crate::simd::vectorized;

/// The largest number of columns that are factored panel by panel (in groups of [`DEPTH`] columns). More columns are divided into two
/// halves.
const LARGEST_BLOCKED: usize = 128;

/// The largest number of elements of a panel that is stored on the stack. An allocation takes as long as the factorization of a matrix of
/// this size.
const MAX_STACK_PANEL: usize = 64;

/// Replaces a matrix of `rows` rows and `columns` columns by its factors L (below the diagonal) and U. Writes to `pivots`, for each of the
/// first min(`rows`, `columns`) rows, the row with which it was exchanged, counted from 1. If U has a zero on its diagonal, returns the
/// number of the first one, counted from 1. Otherwise returns `None`. Returns an error if there is not enough memory.
pub(crate) fn lu_factor<T: Float>(
    a: &mut [T],
    (rows, columns): (usize, usize),
    pivots: &mut [T],
) -> Result<Option<usize>, Error> {
    let count = rows.min(columns);
    let mut zero_pivot = None;
    factor_columns(a, (rows, columns), (0, count), pivots, &mut zero_pivot)?;
    if columns > count {
        apply_elimination(a, (rows, columns), (0, count), (count, columns - count))?;
    }
    Ok(zero_pivot)
}

/// Factors the columns `first..first + count`. All earlier columns must be factored, and their products subtracted from these columns.
/// Exchanges whole rows of the matrix, and writes the exchanges to `pivots`. If `zero_pivot` is `None`, sets it to the number of the first
/// zero on the diagonal in these columns of U, counted from 1.
fn factor_columns<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero_pivot: &mut Option<usize>,
) -> Result<(), Error> {
    if count <= LARGEST_BLOCKED {
        vectorized(
            #[inline(always)]
            || factor_panels(a, (rows, width), (first, count), pivots, zero_pivot),
        );
        return Ok(());
    }
    let half = (count / 2).next_multiple_of(DEPTH);
    factor_columns(a, (rows, width), (first, half), pivots, zero_pivot)?;
    apply_elimination(a, (rows, width), (first, half), (first + half, count - half))?;
    factor_columns(a, (rows, width), (first + half, count - half), pivots, zero_pivot)
}

/// Applies the elimination of the factored columns `first..first + count` to the columns `next..next + remaining`. Computes their rows of
/// U, and subtracts the product of L and these rows from the rows below.
fn apply_elimination<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    (next, remaining): (usize, usize),
) -> Result<(), Error> {
    let offset = |row: usize, column: usize| row * width + column;
    let mut top = contiguous_copy(Rows { data: &a[offset(first, next)..], stride: width }, (count, remaining))?;
    let l = Triangular { part: TriangularPart::UNIT_LOWER, data: &a[offset(first, first)..], stride: width };
    l.solve(top.make_mut(), (count, remaining))?;
    if let Some(top) = top.as_slice() {
        for (row, top) in top.chunks_exact(remaining).enumerate() {
            a[offset(first + row, next)..][..remaining].copy_from_slice(top);
        }
    }
    let (below, rows_below) = (first + count, rows - first - count);
    if rows_below == 0 {
        return Ok(());
    }
    let left = contiguous_copy(Rows { data: &a[offset(below, first)..], stride: width }, (rows_below, count))?;
    subtract_product(&mut a[offset(below, next)..], width, &left, &top)
}

/// Factors columns by panels of [`DEPTH`] columns. Each panel is factored in a transposed copy, in which its columns are contiguous. Then
/// its product with the rows of U is subtracted from the columns after it. `pivots` and `zero_pivot` are as in [`factor_columns`].
#[inline(always)]
fn factor_panels<T: Float>(
    a: &mut [T],
    (rows, width): (usize, usize),
    (first, count): (usize, usize),
    pivots: &mut [T],
    zero_pivot: &mut Option<usize>,
) {
    let (mut stack, mut heap) = ([T::ZERO; MAX_STACK_PANEL], Vec::new());
    let len = DEPTH.min(count) * (rows - first);
    let panel: &mut [T] = if len <= MAX_STACK_PANEL {
        &mut stack
    } else {
        heap.resize(len, T::ZERO);
        &mut heap
    };
    let end = first + count;
    for start in (first..end).step_by(DEPTH) {
        let (size, height) = (DEPTH.min(end - start), rows - start);
        let panel = &mut panel[..size * height];
        copy_transposed(Rows { data: &a[start * width + start..], stride: width }, (height, size), panel, height);
        if let Some(number) = factor_panel(panel, height, start, &mut pivots[start..start + size]) {
            zero_pivot.get_or_insert(start + number);
        }
        exchange_rows_from(&pivots[start..start + size], a, width, start);
        copy_transposed(Rows { data: panel, stride: height }, (size, height), &mut a[start * width + start..], width);
        let (next, remaining) = (start + size, end - start - size);
        if remaining == 0 {
            break;
        }
        let (top, below) = a.split_at_mut(next * width);
        let top = &mut top[start * width + next..];
        let unit_lower = |row: usize, column: usize| panel[column * height + row];
        solve_strips(TriangularPart::UNIT_LOWER, unit_lower, top, width, (size, remaining));
        if next < rows {
            let (p, b) = (Rows { data: &panel[size..], stride: height }, Rows { data: top, stride: width });
            subtract_outer(&mut below[next..], width, (rows - next, remaining), p, b, size);
        }
    }
}

/// Factors the columns of a panel, which are contiguous and have `height` elements. Row 0 of the panel is row `first`
/// of the matrix. Writes the row exchanges to `pivots`. Returns the number of the first zero on the diagonal, counted
/// from 1, or `None`.
#[inline(always)]
fn factor_panel<T: Float>(panel: &mut [T], height: usize, first: usize, pivots: &mut [T]) -> Option<usize> {
    let mut zero_pivot = None;
    for (column, pivot) in pivots.iter_mut().enumerate() {
        let (before, current) = panel.split_at_mut(column * height);
        let current = &mut current[..height];
        for (k, l) in before.chunks_exact(height).enumerate() {
            let factor = current[k];
            subtract_scaled(&mut current[k + 1..], factor, &l[k + 1..]);
        }
        let row = column + index_of_largest(&current[column..]);
        *pivot = T::from_f64((first + row + 1) as f64);
        if row != column {
            panel.chunks_exact_mut(height).for_each(|elements| elements.swap(column, row));
        }
        let current = &mut panel[column * height..][..height];
        let diagonal = current[column];
        if diagonal == T::ZERO {
            zero_pivot = zero_pivot.or(Some(column + 1));
            continue;
        }
        for x in &mut current[column + 1..] {
            *x = *x / diagonal;
        }
    }
    zero_pivot
}

/// Returns the index of the first element with the largest magnitude. If the first element is NaN, returns 0. Other NaNs are ignored.
#[inline(always)]
fn index_of_largest<T: Float>(x: &[T]) -> usize {
    const LANES: usize = 16;
    let (mut lanes, parts) = ([T::ZERO; LANES], x.chunks_exact(LANES));
    let rest = parts.remainder();
    for part in parts {
        for (largest, &x) in lanes.iter_mut().zip(part) {
            *largest = maximum(*largest, abs(x));
        }
    }
    let largest = lanes.iter().chain(rest).fold(T::ZERO, |largest, &x| maximum(largest, abs(x)));
    if abs(x[0]) < largest { x.iter().position(|&x| abs(x) == largest).unwrap_or(0) } else { 0 }
}

/// Applies the row exchanges `pivots` to the matrix `a`, whose rows have `width` elements. The first of `pivots` belongs to the row `first`,
/// and is the number of the row, counted from 1, with which this row is exchanged.
#[inline(always)]
fn exchange_rows_from<T: Float>(pivots: &[T], a: &mut [T], width: usize, first: usize) {
    for (row, pivot) in (first..).zip(pivots) {
        let pivot_row = pivot.to_f64() as usize - 1;
        if pivot_row != row {
            let (before, after) = a.split_at_mut(pivot_row * width);
            before[row * width..][..width].swap_with_slice(&mut after[..width]);
        }
    }
}

/// Exchanges the rows of `b`, which have `width` elements, as a factorization has exchanged the rows of its matrix. If `undo` is true,
/// undoes these exchanges. Ignores pivots that are not the number of a later row of `b`.
#[precompiled]
pub(crate) fn exchange_rows<T: Float>(pivots: &[T], b: &mut [T], width: usize, undo: bool) {
    if width == 0 {
        return;
    }
    let rows = b.len() / width;
    for step in 0..pivots.len() {
        let row = if undo { pivots.len() - 1 - step } else { step };
        let pivot_number = pivots[row].to_f64() as usize;
        if (row + 2..=rows).contains(&pivot_number) {
            let (before, after) = b.split_at_mut((pivot_number - 1) * width);
            before[row * width..][..width].swap_with_slice(&mut after[..width]);
        }
    }
}

/// Replaces `b`, which has `n` rows of `width` elements, by the solution X of A X = B. `lu` and `pivots` are the factors of A.
pub(crate) fn lu_solve<T: Float>(lu: &[T], pivots: &[T], b: &mut [T], (n, width): (usize, usize)) -> Result<(), Error> {
    exchange_rows(pivots, b, width, false);
    for part in [TriangularPart::UNIT_LOWER, TriangularPart::UPPER] {
        Triangular { part, data: lu, stride: n }.solve(b, (n, width))?;
    }
    Ok(())
}
