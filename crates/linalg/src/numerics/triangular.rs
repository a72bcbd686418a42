//! Solutions of triangular systems by substitution.

use std::ops::Range;

use wengert_tensor::{Error, Float};

use super::arithmetic::{dot, four_dots};
use super::differences::{contiguous_copy, subtract_product};
use super::tiles::{DEPTH, Rows, copy_short, copy_transposed, first_elements, subtract_outer};
use crate::simd::vectorized;

/// The largest system, in rows, that is solved block by block. A larger system is divided in halves if B has enough columns.
const LARGEST_BLOCKED: usize = 128;

/// The number of columns of B from which a large system A X = B is divided in halves. With fewer columns, the copies of A take more time
/// than they save.
const MIN_COLUMNS: usize = 16;

/// The part of a square matrix that a triangular system reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriangularPart {
    /// True for the upper triangle, false for the lower one.
    pub(crate) upper: bool,
    /// True if the elements on the diagonal count as ones and are not read.
    pub(crate) unit_diagonal: bool,
}

impl TriangularPart {
    /// The lower triangle, as a Cholesky factor has it.
    pub(crate) const LOWER: Self = TriangularPart { upper: false, unit_diagonal: false };
    /// The lower triangle with ones on the diagonal: the factor L of P L U.
    pub(crate) const UNIT_LOWER: Self = TriangularPart { upper: false, unit_diagonal: true };
    /// The upper triangle: the factor U.
    pub(crate) const UPPER: Self = TriangularPart { upper: true, unit_diagonal: false };
    /// The upper triangle with ones on the diagonal.
    pub(crate) const UNIT_UPPER: Self = TriangularPart { upper: true, unit_diagonal: true };

    /// Returns the triangle of the transposed matrix.
    pub(crate) fn transposed(self) -> Self {
        TriangularPart { upper: !self.upper, ..self }
    }

    /// Returns the row among the rows `first..first + count` that is solved after `step` of them, and the range of the rows that are solved
    /// before it.
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

/// A triangular matrix that is a part of a larger matrix. Row i consists of the elements of `data` from index i · `stride` on.
#[derive(Clone, Copy)]
pub(crate) struct Triangular<'a, T> {
    pub(crate) part: TriangularPart,
    pub(crate) data: &'a [T],
    pub(crate) stride: usize,
}

impl<T: Float> Triangular<'_, T> {
    /// Replaces `b`, which has `n` rows of `width` elements, by the solution X of A X = B, where A is this matrix.
    pub(crate) fn solve(self, b: &mut [T], (n, width): (usize, usize)) -> Result<(), Error> {
        if n == 0 || width == 0 {
            return Ok(());
        }
        self.solve_range(b, width, (0, n))
    }

    /// Solves the rows `first..first + count`. The products with all rows that are solved before must have been subtracted from them.
    fn solve_range(self, b: &mut [T], width: usize, (first, count): (usize, usize)) -> Result<(), Error> {
        if count <= LARGEST_BLOCKED || width < MIN_COLUMNS {
            vectorized(
                #[inline(always)]
                || match width {
                    1 => self.solve_vector(b, (first, count)),
                    _ => self.solve_blocks(b, width, (first, count)),
                },
            );
            return Ok(());
        }
        let half = count / 2;
        let (top, bottom) = ((first, half), (first + half, count - half));
        let (now, later) = if self.part.upper { (bottom, top) } else { (top, bottom) };
        self.solve_range(b, width, now)?;
        let a = Rows { data: &self.data[later.0 * self.stride + now.0..], stride: self.stride };
        let (solved, rest) = self.split(b, width, now, later.0);
        subtract_product(
            rest,
            width,
            &contiguous_copy(a, (later.1, now.1))?,
            &contiguous_copy(solved, (now.1, width))?,
        )?;
        self.solve_range(b, width, later)
    }

    /// Splits B into the rows `solved`, given by their first row and their number, and the rows that begin with row `later`. The rows
    /// from `later` on come before the solved rows if the matrix is upper triangular, and after the solved rows otherwise.
    #[inline(always)]
    fn split<'b>(
        self,
        b: &'b mut [T],
        width: usize,
        solved: (usize, usize),
        later: usize,
    ) -> (Rows<'b, T>, &'b mut [T]) {
        let (data, rest) = if self.part.upper {
            let (rest, solved) = b.split_at_mut(solved.0 * width);
            (&*solved, &mut rest[later * width..])
        } else {
            let (before, rest) = b.split_at_mut(later * width);
            (&before[solved.0 * width..], rest)
        };
        (Rows { data, stride: width }, rest)
    }

    /// Solves rows block by block. Subtracts the products with each solved block from the rows that are solved later.
    #[inline(always)]
    fn solve_blocks(self, b: &mut [T], width: usize, (first, count): (usize, usize)) {
        let mut transposed = vec![T::ZERO; if count > DEPTH { DEPTH * (count - DEPTH) } else { 0 }];
        for done in (0..count).step_by(DEPTH) {
            let size = DEPTH.min(count - done);
            let rest = count - done - size;
            let upper = self.part.upper;
            let (start, later) = if upper { (first + rest, first) } else { (first + done, first + done + size) };
            let a = &self.data[start * self.stride + start..];
            let coefficient = |row: usize, column: usize| a[row * self.stride + column];
            solve_strips(self.part, coefficient, &mut b[start * width..], width, (size, width));
            if rest > 0 {
                let below = Rows { data: &self.data[later * self.stride + start..], stride: self.stride };
                let transposed = &mut transposed[..size * rest];
                copy_transposed(below, (rest, size), transposed, rest);
                let (solved, to) = self.split(b, width, (start, size), later);
                subtract_outer(to, width, (rest, width), Rows { data: transposed, stride: rest }, solved, size);
            }
        }
    }

    /// Solves for a single column of B, by blocks of rows. For each block, first subtracts the products with all elements of earlier blocks.
    /// This step computes several rows at once, because the rows do not depend on each other. Then solves the elements of the block one
    /// after the other, and subtracts the products with each solved element from the elements that are not yet solved.
    #[inline(always)]
    fn solve_vector(self, b: &mut [T], (first, count): (usize, usize)) {
        let upper = self.part.upper;
        for done in (0..count).step_by(DEPTH) {
            let size = DEPTH.min(count - done);
            let (start, solved_rows) = if upper {
                (first + count - done - size, first + count - done..first + count)
            } else {
                (first + done, first..first + done)
            };
            let mut x = [T::ZERO; DEPTH];
            copy_short(&b[start..start + size], &mut x);
            if done > 0 {
                self.subtract_known(&mut x[..size], start, solved_rows.clone(), &b[solved_rows]);
            }
            let a = Rows { data: &self.data[start * self.stride + start..], stride: self.stride };
            for step in 0..size {
                let (row, _) = self.part.row((0, size), step);
                if !self.part.unit_diagonal {
                    x[row] = x[row] / a.part(row, row, 1)[0];
                }
                let (solved, later) = (x[row], if upper { 0..row } else { row + 1..size });
                for other in later {
                    x[other] = x[other] - a.part(other, row, 1)[0] * solved;
                }
            }
            copy_short(&x[..size], &mut b[start..start + size]);
        }
    }

    /// Subtracts the products of the coefficients and the solved elements from `x`. Element k of `x` belongs to row `first + k`. `solved`
    /// has the solved elements, which belong to the columns `solved_columns`. Several rows are computed at once, because in a single sum each
    /// addition waits for the one before.
    #[inline(always)]
    fn subtract_known(self, x: &mut [T], first: usize, solved_columns: Range<usize>, solved: &[T]) {
        let row = |row: usize| &self.data[(first + row) * self.stride..][solved_columns.clone()];
        let mut next = 0;
        while next + 4 <= x.len() {
            let sums = four_dots([row(next), row(next + 1), row(next + 2), row(next + 3)], solved);
            for (x, sum) in x[next..].iter_mut().zip(sums) {
                *x = *x - sum;
            }
            next += 4;
        }
        for (k, x) in x.iter_mut().enumerate().skip(next) {
            *x = *x - dot(row(k), solved);
        }
    }
}

/// Replaces `b` by the solution X of A X = B. `b` has `n` rows of `width` elements, which begin `stride` elements apart. `a(row, column)`
/// returns an element of A. `n` is at most [`DEPTH`].
#[inline(always)]
pub(crate) fn solve_strips<T: Float>(
    part: TriangularPart,
    a: impl Fn(usize, usize) -> T,
    b: &mut [T],
    stride: usize,
    (n, width): (usize, usize),
) {
    let mut column = 0;
    while column + WIDE_STRIP <= width {
        solve_strip::<T, WIDE_STRIP>(part, &a, &mut b[column..], stride, n, WIDE_STRIP);
        column += WIDE_STRIP;
    }
    for column in (column..width).step_by(NARROW_STRIP) {
        let count = NARROW_STRIP.min(width - column);
        solve_strip::<T, NARROW_STRIP>(part, &a, &mut b[column..], stride, n, count);
    }
}

/// The number of columns of B that are solved together. In one column, each operation waits for the one before, so several columns keep the
/// processor busy. More columns than this do not fit the registers.
const WIDE_STRIP: usize = 32;
/// The number of columns that are solved together if fewer than [`WIDE_STRIP`] columns remain.
const NARROW_STRIP: usize = 8;

/// Solves for `count` columns of B. `count` is at most `COLUMNS`.
#[inline(always)]
fn solve_strip<T: Float, const COLUMNS: usize>(
    part: TriangularPart,
    a: &impl Fn(usize, usize) -> T,
    b: &mut [T],
    stride: usize,
    n: usize,
    count: usize,
) {
    let mut x = [[T::ZERO; COLUMNS]; DEPTH];
    for (row, x) in x.iter_mut().enumerate().take(n) {
        if count == COLUMNS {
            *x = first_elements(&b[row * stride..]);
        } else {
            copy_short(&b[row * stride..][..count], x);
        }
    }
    for step in 0..n {
        let (row, solved_columns) = part.row((0, n), step);
        let mut current = x[row];
        for other in solved_columns {
            let factor = a(row, other);
            for (current, &x) in current.iter_mut().zip(&x[other]) {
                *current = *current - factor * x;
            }
        }
        if !part.unit_diagonal {
            let diagonal = a(row, row);
            for current in &mut current {
                *current = *current / diagonal;
            }
        }
        x[row] = current;
    }
    for (row, x) in x.iter().enumerate().take(n) {
        if count == COLUMNS {
            b[row * stride..][..COLUMNS].copy_from_slice(x);
        } else {
            copy_short(x, &mut b[row * stride..][..count]);
        }
    }
}
