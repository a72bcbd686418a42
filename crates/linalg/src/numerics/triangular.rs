//! Solutions of triangular systems by substitution.

use wengert_tensor::{Error, Float};

use super::arithmetic::{dot, subtract_scaled};
use super::differences::{Block, subtract_product_of};
use crate::simd::vectorized;

/// The largest system that is solved row by row.
const LARGEST_LEAF: usize = 32;

/// The part of a square matrix that has the coefficients of a triangular system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coefficients {
    /// True for the upper triangle, false for the lower one.
    pub(crate) upper: bool,
    /// True if the diagonal is taken as ones and not read.
    pub(crate) unit: bool,
}

impl Coefficients {
    /// Returns the triangle of the transposed matrix.
    pub(crate) fn transposed(self) -> Self {
        Coefficients { upper: !self.upper, ..self }
    }
}

/// Replaces `b`, `n` rows of `width` elements, by the solution X of A X = B. The rows of `a` have `stride` elements.
/// The first `n` elements of each row are the triangular matrix.
pub(crate) fn solve_triangular<T: Float>(
    triangle: Coefficients,
    a: &[T],
    stride: usize,
    b: &mut [T],
    (n, width): (usize, usize),
) -> Result<(), Error> {
    if n == 0 || width == 0 {
        return Ok(());
    }
    solve_range(triangle, a, stride, b, width, (0, n))
}

/// Solves the rows `first..first + count`, from which the rows solved before are already subtracted.
fn solve_range<T: Float>(
    triangle: Coefficients,
    a: &[T],
    stride: usize,
    b: &mut [T],
    width: usize,
    (first, count): (usize, usize),
) -> Result<(), Error> {
    if count <= LARGEST_LEAF || width == 1 {
        vectorized(
            #[inline(always)]
            || match width {
                1 => solve_vector(triangle, a, stride, b, (first, count)),
                _ => solve_rows(triangle, a, stride, b, width, (first, count)),
            },
        );
        return Ok(());
    }
    let half = count / 2;
    let (top, bottom) = ((first, half), (first + half, count - half));
    let (now, later) = if triangle.upper { (bottom, top) } else { (top, bottom) };
    solve_range(triangle, a, stride, b, width, now)?;
    let part = |(row, rows): (usize, usize)| Block { row, column: 0, rows, columns: width };
    let factor = Block { row: later.0, column: now.0, rows: later.1, columns: now.1 };
    subtract_product_of(b, width, part(later), (a, stride, factor), part(now))?;
    solve_range(triangle, a, stride, b, width, later)
}

#[inline(always)]
fn solve_rows<T: Float>(
    triangle: Coefficients,
    a: &[T],
    stride: usize,
    b: &mut [T],
    width: usize,
    (first, count): (usize, usize),
) {
    for step in 0..count {
        let row = if triangle.upper { first + count - 1 - step } else { first + step };
        let known = if triangle.upper { row + 1..first + count } else { first..row };
        let coefficients = &a[row * stride..];
        let (before, rest) = b.split_at_mut(row * width);
        let (own, after) = rest.split_at_mut(width);
        for other in known {
            let x = if triangle.upper { &after[(other - row - 1) * width..] } else { &before[other * width..] };
            subtract_scaled(own, coefficients[other], &x[..width]);
        }
        if !triangle.unit {
            let diagonal = coefficients[row];
            for element in own {
                *element = *element / diagonal;
            }
        }
    }
}

#[inline(always)]
fn solve_vector<T: Float>(triangle: Coefficients, a: &[T], stride: usize, b: &mut [T], (first, count): (usize, usize)) {
    for step in 0..count {
        let row = if triangle.upper { first + count - 1 - step } else { first + step };
        let known = if triangle.upper { row + 1..first + count } else { first..row };
        let coefficients = &a[row * stride..];
        let value = b[row] - dot(&coefficients[known.clone()], &b[known]);
        b[row] = if triangle.unit { value } else { value / coefficients[row] };
    }
}
