//! Distances between the rows of two matrices.
//!
//! The differences of the coordinates are computed directly. The formula |x|² + |y|² - 2 x·y needs only a matrix product, but loses most
//! digits of small distances. A block of the second matrix is transposed, so that one loop computes the distances of a row to many rows.
//! The division of the sums into blocks depends only on shapes, so the bits do not depend on the number of threads.
#![allow(clippy::needless_range_loop)]

use crate::kernel::element::instances::FloatInstances;
use crate::kernel::elementwise::operand::Operand;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::scalar::math::{FloatMath, fma, larger, larger_number};
use crate::thresholds::blocks::MIN_PARALLEL;
pub(crate) use crate::thresholds::distances::PAIR_ROWS;
use crate::thresholds::distances::{COLUMNS, ROWS, TERMS};
use crate::{Float, Unary};

/// The number of rows of the first matrix whose sums are computed at once. Their sums are independent, which hides the latency of the
/// additions.
const ROWS_AT_ONCE: usize = 4;

/// A matrix of terms or sums, with one column for each row of the second matrix. It begins at a cache line, so that no vector of it lies in
/// two cache lines.
#[repr(align(64))]
struct Columns<T, const N: usize>([[T; COLUMNS]; N]);

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

/// Writes the distance of each row of `x` to each row of `y` to `out`, `[m, n]`. `x` and `y` are row-major. Their rows have `terms` terms
/// (coordinates), at least one.
pub(crate) fn distances<T: Float>(norm: RowNorm, x: &[T], y: &[T], terms: usize, out: &mut [T]) {
    let n = y.len() / terms;
    if out.is_empty() {
        return;
    }
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len().saturating_mul(terms));
    partition::chunks(out, ROWS * n, schedule, |task, out| {
        let x = &x[task * ROWS * terms..][..out.len() / n * terms];
        let mut block = Columns([[T::ZERO; COLUMNS]; TERMS]);
        for first in (0..n).step_by(COLUMNS) {
            let count = COLUMNS.min(n - first);
            for start in (0..terms).step_by(TERMS) {
                let end = terms.min(start + TERMS);
                for (column, y) in y[first * terms..][..count * terms].chunks_exact(terms).enumerate() {
                    y[start..end].iter().zip(&mut block.0).for_each(|(&y, row)| row[column] = y);
                }
                for (x, out) in x.chunks(ROWS_AT_ONCE * terms).zip(out.chunks_mut(ROWS_AT_ONCE * n)) {
                    // If fewer than [`ROWS_AT_ONCE`] rows are left, the last row is computed several times.
                    let last = x.len() / terms - 1;
                    let rows = std::array::from_fn(|row| &x[row.min(last) * terms..][start..end]);
                    let mut sums = Columns([[T::ZERO; COLUMNS]; ROWS_AT_ONCE]);
                    T::float_instance::<AddTerms>()(norm, rows, &block, &mut sums);
                    for (sums, out) in sums.0.iter_mut().zip(out.chunks_exact_mut(n)) {
                        let out = &mut out[first..first + count];
                        if start > 0 {
                            add_sums(norm, sums, out);
                        }
                        if norm == RowNorm::Two && end == terms {
                            T::unary(Unary::Sqrt, Operand::Slice(&sums[..count]), out);
                        } else {
                            out.copy_from_slice(&sums[..count]);
                        }
                    }
                }
            }
        }
    });
}

/// Adds the sums `out` of the earlier blocks of terms to `sums`. For [`RowNorm::Largest`], keeps the larger of the two values instead.
fn add_sums<T: Float>(norm: RowNorm, sums: &mut [T; COLUMNS], out: &[T]) {
    let combine = |sum: T, earlier: T| if norm == RowNorm::Largest { larger(earlier, sum) } else { earlier + sum };
    sums.iter_mut().zip(out).for_each(|(sum, &earlier)| *sum = combine(*sum, earlier));
}

/// The type that stands for the function [`add_terms`], so that generic callers find the instance for their element type.
struct AddTerms;

impl FloatInstances for AddTerms {
    type Of<T: Float> = fn(RowNorm, [&[T]; ROWS_AT_ONCE], &Columns<T, TERMS>, &mut Columns<T, ROWS_AT_ONCE>);

    fn f32() -> Self::Of<f32> {
        add_terms::<f32>
    }

    fn f64() -> Self::Of<f64> {
        add_terms::<f64>
    }
}

dispatched! {
    with FMA;
    /// Adds the terms of the distance between row `r` of `x` and column `c` of `block` to `sums[r][c]`, for all `r` and `c`. Term `t` is
    /// the magnitude or the square of `block[t][c] - x[r][t]`. For [`RowNorm::Largest`], keeps the largest term instead of the sum.
    fn add_terms<T: FloatMath>(
        norm: RowNorm,
        x: [&[T]; ROWS_AT_ONCE],
        block: &Columns<T, TERMS>,
        sums: &mut Columns<T, ROWS_AT_ONCE>,
    ) {
        match norm {
            RowNorm::One => add(x, block, sums, #[inline(always)] |sum, d| sum + larger_number(d, -d)),
            RowNorm::Two => add(x, block, sums, #[inline(always)] |sum, d| fma::<FMA, T>(d, d, sum)),
            RowNorm::Largest => add(x, block, sums, #[inline(always)] |sum, d| larger(sum, larger_number(d, -d))),
        }
    }
}

/// Does the same as [`add_terms`]. `step(sum, d)` adds the term of the difference `d` to a sum. Adds eight terms of all rows at a time. So
/// each sum is read and written only once per eight terms, and each element of the block is read once for all rows. The remaining terms,
/// fewer than eight, are added row by row. The loops over columns have a constant length, so that the compiler uses vector instructions for
/// all columns.
#[inline(always)]
fn add<T: FloatMath>(
    x: [&[T]; ROWS_AT_ONCE],
    Columns(block): &Columns<T, TERMS>,
    Columns(sums): &mut Columns<T, ROWS_AT_ONCE>,
    step: impl Fn(T, T) -> T,
) {
    let (count, [first, second, third, fourth]) = (x[0].len(), sums);
    let (eights, rest) = block[..count].as_chunks::<8>();
    for (number, rows) in eights.iter().enumerate() {
        let x = x.map(|x| &x.as_chunks::<8>().0[number]);
        for column in 0..COLUMNS {
            let mut sum = [first[column], second[column], third[column], fourth[column]];
            for term in 0..8 {
                for row in 0..ROWS_AT_ONCE {
                    sum[row] = step(sum[row], rows[term][column] - x[row][term]);
                }
            }
            [first[column], second[column], third[column], fourth[column]] = sum;
        }
    }
    for (term, row) in (count - rest.len()..).zip(rest) {
        for (x, sums) in x.iter().zip([&mut *first, second, third, fourth]) {
            for column in 0..COLUMNS {
                sums[column] = step(sums[column], row[column] - x[term]);
            }
        }
    }
}

/// Writes the distances between all pairs of different rows of `x` to `out`. First come the distances of row 0 to rows 1, 2 and so on, then
/// the distances of row 1 to rows 2, 3 and so on. `scratch` has room for [`PAIR_ROWS`] rows of distances.
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
