//! Solutions of triangular systems by substitution.

use std::ops::Range;

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
    /// The lower triangle, as a Cholesky factor has it.
    pub(crate) const LOWER: Self = Coefficients { upper: false, unit: false };
    /// The lower triangle with ones on the diagonal: the factor L of P L U.
    pub(crate) const UNIT_LOWER: Self = Coefficients { upper: false, unit: true };
    /// The upper triangle: the factor U.
    pub(crate) const UPPER: Self = Coefficients { upper: true, unit: false };
    /// The upper triangle with ones on the diagonal.
    pub(crate) const UNIT_UPPER: Self = Coefficients { upper: true, unit: true };

    /// Returns the triangle of the transposed matrix.
    pub(crate) fn transposed(self) -> Self {
        Coefficients { upper: !self.upper, ..self }
    }

    /// Returns the row among `first..first + count` that is solved after `step` other rows, and the rows solved before it.
    #[inline(always)]
    pub(crate) fn row(self, (first, count): (usize, usize), step: usize) -> (usize, Range<usize>) {
        if self.upper {
            let row = first + count - 1 - step;
            (row, row + 1..first + count)
        } else {
            (first + step, first..first + step)
        }
    }
}

/// A triangular matrix as a part of a larger one: the first elements of each row of `data`, whose rows have `stride` elements.
#[derive(Clone, Copy)]
pub(crate) struct Triangular<'a, T> {
    pub(crate) coefficients: Coefficients,
    pub(crate) data: &'a [T],
    pub(crate) stride: usize,
}

impl<T: Float> Triangular<'_, T> {
    /// Replaces `b`, `n` rows of `width` elements, by the solution X of A X = B.
    pub(crate) fn solve(self, b: &mut [T], (n, width): (usize, usize)) -> Result<(), Error> {
        if n == 0 || width == 0 {
            return Ok(());
        }
        self.solve_range(b, width, (0, n))
    }

    /// Solves the rows `first..first + count`, from which the rows solved before are already subtracted.
    fn solve_range(self, b: &mut [T], width: usize, (first, count): (usize, usize)) -> Result<(), Error> {
        if count <= LARGEST_LEAF || width == 1 {
            vectorized(
                #[inline(always)]
                || match width {
                    1 => self.solve_vector(b, (first, count)),
                    _ => self.solve_rows(b, width, (first, count)),
                },
            );
            return Ok(());
        }
        let half = count / 2;
        let (top, bottom) = ((first, half), (first + half, count - half));
        let (now, later) = if self.coefficients.upper { (bottom, top) } else { (top, bottom) };
        self.solve_range(b, width, now)?;
        let part = |(row, rows): (usize, usize)| Block { row, column: 0, rows, columns: width };
        let factor = Block { row: later.0, column: now.0, rows: later.1, columns: now.1 };
        subtract_product_of(b, width, part(later), (self.data, self.stride, factor), part(now))?;
        self.solve_range(b, width, later)
    }

    #[inline(always)]
    fn solve_rows(self, b: &mut [T], width: usize, range: (usize, usize)) {
        for step in 0..range.1 {
            let (row, known) = self.coefficients.row(range, step);
            let coefficients = &self.data[row * self.stride..];
            let (before, rest) = b.split_at_mut(row * width);
            let (own, after) = rest.split_at_mut(width);
            for other in known {
                let x = if other > row { &after[(other - row - 1) * width..] } else { &before[other * width..] };
                subtract_scaled(own, coefficients[other], &x[..width]);
            }
            if !self.coefficients.unit {
                let diagonal = coefficients[row];
                for element in own {
                    *element = *element / diagonal;
                }
            }
        }
    }

    #[inline(always)]
    fn solve_vector(self, b: &mut [T], range: (usize, usize)) {
        for step in 0..range.1 {
            let (row, known) = self.coefficients.row(range, step);
            let coefficients = &self.data[row * self.stride..];
            let value = b[row] - dot(&coefficients[known.clone()], &b[known]);
            b[row] = if self.coefficients.unit { value } else { value / coefficients[row] };
        }
    }
}
