//! Distances between the rows of two matrices.
//!
//! The differences of the coordinates are computed directly. The formula |x|² + |y|² - 2 x·y needs only a matrix product, but loses most
//! digits of small distances. A block of the second matrix is transposed, so that one loop computes the distances of a row to many rows.
//! The division of the sums into blocks depends only on shapes, so the bits do not depend on the number of threads.
#![allow(clippy::needless_range_loop)]

use crate::Float;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::scalar::math::{larger, larger_number};
use crate::thresholds::blocks::MIN_PARALLEL;
pub(crate) use crate::thresholds::distances::PAIR_ROWS;
use crate::thresholds::distances::{COLUMNS, ROWS, TERMS};

/// The norm of a difference of two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowNorm {
    /// The sum of the magnitudes.
    One,
    /// The square root of the sum of the squares.
    Two,
    /// The largest magnitude, or NaN if a difference is NaN.
    Largest,
}

/// Writes the distance of each row of `x` to each row of `y` to `out`, `[m, n]`. `x` and `y` are row-major, and have at least one term (one
/// coordinate) in each row of `terms`.
pub(crate) fn distances<T: Float>(norm: RowNorm, x: &[T], y: &[T], terms: usize, out: &mut [T]) {
    let n = y.len() / terms;
    if out.is_empty() {
        return;
    }
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len().saturating_mul(terms));
    partition::chunks(out, ROWS * n, schedule, |task, out| {
        let x = &x[task * ROWS * terms..][..out.len() / n * terms];
        let mut block = [[T::ZERO; COLUMNS]; TERMS];
        for first in (0..n).step_by(COLUMNS) {
            let count = COLUMNS.min(n - first);
            for start in (0..terms).step_by(TERMS) {
                let end = terms.min(start + TERMS);
                for (column, y) in y[first * terms..][..count * terms].chunks_exact(terms).enumerate() {
                    y[start..end].iter().zip(&mut block).for_each(|(&y, row)| row[column] = y);
                }
                for (x, out) in x.chunks_exact(terms).zip(out.chunks_exact_mut(n)) {
                    let mut sums = [T::ZERO; COLUMNS];
                    add_terms(norm, &x[start..end], &block, &mut sums);
                    let out = out[first..first + count].iter_mut().zip(&sums);
                    match norm {
                        _ if start == 0 => out.for_each(|(out, &sum)| *out = sum),
                        RowNorm::Largest => out.for_each(|(out, &sum)| *out = larger(*out, sum)),
                        _ => out.for_each(|(out, &sum)| *out = *out + sum),
                    }
                }
            }
        }
        if norm == RowNorm::Two {
            out.iter_mut().for_each(|out| *out = out.sqrt());
        }
    });
}

dispatched! {
    /// Adds a term for each element of `x` to the sums: the norm's function of the difference between the element and the sum's element in
    /// the corresponding row of `block`.
    fn add_terms<T: Float>(norm: RowNorm, x: &[T], block: &[[T; COLUMNS]; TERMS], sums: &mut [T; COLUMNS]) {
        match norm {
            RowNorm::One => add(x, block, sums, #[inline(always)] |sum, d| sum + larger_number(d, -d)),
            RowNorm::Two => add(x, block, sums, #[inline(always)] |sum, d| sum + d * d),
            RowNorm::Largest => add(x, block, sums, #[inline(always)] |sum, d| larger(sum, larger_number(d, -d))),
        }
    }
}

/// Does the same as [`add_terms`] for the norm whose function is `step`. Adds eight terms at a time, so that each sum is read and written
/// only once per eight terms. The loops over columns have a constant length, so that they have no remainder without vectors.
#[inline(always)]
fn add<T: Float>(x: &[T], block: &[[T; COLUMNS]; TERMS], sums: &mut [T; COLUMNS], step: impl Fn(T, T) -> T) {
    let (eights, rest) = x.as_chunks::<8>();
    for (x, rows) in eights.iter().zip(block.as_chunks::<8>().0) {
        for column in 0..COLUMNS {
            let mut sum = sums[column];
            for term in 0..8 {
                sum = step(sum, x[term] - rows[term][column]);
            }
            sums[column] = sum;
        }
    }
    for (&x, row) in rest.iter().zip(&block[x.len() - rest.len()..]) {
        for column in 0..COLUMNS {
            sums[column] = step(sums[column], x - row[column]);
        }
    }
}

/// Writes the distances between all pairs of different rows of `x`: row 0 with rows 1, 2, …, then row 1 with rows 2, 3, … `scratch` has room
/// for [`PAIR_ROWS`] rows of distances.
pub(crate) fn pair_distances<T: Float>(norm: RowNorm, x: &[T], terms: usize, scratch: &mut [T], out: &mut [T]) {
    let n = x.len() / terms;
    let mut left = out;
    for first in (0..n.saturating_sub(1)).step_by(PAIR_ROWS) {
        let (rows, others) = (PAIR_ROWS.min(n - 1 - first), n - 1 - first);
        let table = &mut scratch[..rows * others];
        distances(norm, &x[first * terms..][..rows * terms], &x[(first + 1) * terms..], terms, table);
        for (row, distances) in table.chunks_exact(others).enumerate() {
            let (now, later) = left.split_at_mut(others - row);
            now.copy_from_slice(&distances[row..]);
            left = later;
        }
    }
}
