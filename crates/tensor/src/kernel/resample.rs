//! Weighted sums along one or two dimensions of matrices, for interpolation.
//!
//! For each row of the result, first the weighted sum of a few rows of the matrix is computed. It stays in the first-level cache, and then
//! the weighted sums of its elements are computed. The terms of a sum are added in order. The results have the bits of two separate passes,
//! one for each dimension, in which every product and every sum is rounded.

use crate::Float;
use crate::memory::available::AllocationError;
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::blocks::{MIN_PARALLEL, TASK};

/// A weighted sum of `N` elements of a line: their indices, and their weights.
pub(crate) type WeightedSum<T, const N: usize> = ([usize; N], [T; N]);

/// Computes weighted sums along the columns of each matrix of `x`, and then along the rows of the results. A matrix has `height` rows of
/// `width` elements. `down` has the sum for each new row, and `across` the sum for each new column. If one of them is `None`, the matrices
/// do not change along its dimension.
///
/// # Errors
///
/// If there is not enough memory for one row.
pub(crate) fn resample<T: Float, const N: usize>(
    x: &[T],
    (height, width): (usize, usize),
    down: Option<&[WeightedSum<T, N>]>,
    across: Option<&[WeightedSum<T, N>]>,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let (rows, columns) = (down.map_or(height, <[_]>::len), across.map_or(width, <[_]>::len));
    let each = (TASK / columns.max(1)).max(1);
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::try_chunks(out, each * columns.max(1), schedule, |task, out: &mut [T]| {
        let mut scratch = Scratch::new(if down.is_some() && across.is_some() { width } else { 0 })?;
        for (number, out) in (task * each..).zip(out.chunks_exact_mut(columns)) {
            let first = number / rows * height;
            let row = |index: usize| &x[(first + index) * width..][..width];
            let sum_of_rows = |(indices, weights): WeightedSum<T, N>, out: &mut [T]| {
                sum_rows::<T, N>(indices.map(row), weights, out);
            };
            match (down.map(|down| down[number % rows]), across) {
                (None, None) => out.copy_from_slice(row(number % rows)),
                (None, Some(across)) => sum_elements(row(number % rows), across, out),
                (Some(sum), None) => sum_of_rows(sum, out),
                (Some(sum), Some(across)) => {
                    sum_of_rows(sum, &mut scratch);
                    sum_elements(&scratch, across, out);
                }
            }
        }
        Ok(())
    })
}

dispatched! {
    /// Sets each element of `out` to the weighted sum of the elements with the same index in `rows`.
    fn sum_rows<T: Float; const N: usize>(rows: [&[T]; N], weights: [T; N], out: &mut [T]) {
        let rows = rows.map(|row| &row[..out.len()]);
        for i in 0..out.len() {
            let mut sum = rows[0][i] * weights[0];
            for k in 1..N {
                sum = sum + rows[k][i] * weights[k];
            }
            out[i] = sum;
        }
    }
}

/// Sets each element of `out` to a weighted sum of elements of `x`.
fn sum_elements<T: Float, const N: usize>(x: &[T], sums: &[WeightedSum<T, N>], out: &mut [T]) {
    for (out, (indices, weights)) in out.iter_mut().zip(sums) {
        let mut sum = x[indices[0]] * weights[0];
        for k in 1..N {
            sum = sum + x[indices[k]] * weights[k];
        }
        *out = sum;
    }
}
