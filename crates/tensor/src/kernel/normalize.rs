//! Normalization of contiguous rows: subtracts a mean from each row, multiplies it by a scale, and applies a weight and a bias.
//!
//! The result has the bits of the separate operations. A row is summed as in a reduction, and each element is rounded in the same steps. One
//! pass over a row that stays in the caches replaces several passes over the whole tensor.

use crate::kernel::elementwise::loops::map_ternary;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::reduce::accumulator::slice_total;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::blocks::{MIN_PARALLEL, TASK};
use crate::{Float, Reduction};

/// The weight and the bias of a normalization. Each of their elements belongs to `elements_per_parameter` adjacent elements of a tensor.
/// After the last element of the weight, the first one follows again.
#[derive(Clone, Copy)]
pub(crate) struct Affine<'a, T> {
    pub(crate) weight: Option<&'a [T]>,
    pub(crate) bias: Option<&'a [T]>,
    pub(crate) elements_per_parameter: usize,
}

impl<'a, T: Float> Affine<'a, T> {
    /// Returns the weights (or biases) of the `len` elements that begin with the row-major index `start`. `neutral` stands for a missing
    /// weight or bias. The `len` elements must share one weight, or have one weight each.
    fn operand(&self, parameters: Option<&'a [T]>, neutral: T, start: usize, len: usize) -> Operand<'a, T> {
        let Some(parameters) = parameters else { return Operand::Splat(neutral) };
        let first = start / self.elements_per_parameter % parameters.len();
        Operand::row(parameters, first, self.elements_per_parameter == 1, len)
    }

    /// Writes (x - `mean`) · `scale` · weight + bias to `out`. `start` is the row-major index of the first element of `x`.
    fn apply(&self, x: &[T], mean: T, scale: T, start: usize, out: &mut [T]) {
        let part_len = if self.elements_per_parameter == 1 { x.len() } else { self.elements_per_parameter };
        for ((x, out), start) in x.chunks(part_len).zip(out.chunks_mut(part_len)).zip((start..).step_by(part_len)) {
            let weight = self.operand(self.weight, T::ONE, start, x.len());
            // A missing bias is -0, because the sum of any number and -0 is this number.
            standardize(x, mean, scale, weight, self.operand(self.bias, -T::ZERO, start, x.len()), out);
        }
    }
}

/// Normalizes each row of `len` elements of `x`. If `centred` is true, subtracts the mean and divides by √(variance + `eps`), as layer
/// normalization does. Otherwise only divides by √(mean square + `eps`), as RMS normalization does.
#[wengert_macros::precompiled]
pub(crate) fn normalize_rows<T: Float>(
    x: &[T],
    len: usize,
    centred: bool,
    eps: T,
    parameters: Affine<'_, T>,
    out: &mut [T],
) {
    let count = T::from_f64(len as f64);
    for_each_row(x, len, out, &|start, x, out| {
        let mean = if centred { slice_total(Reduction::Sum, x) / count } else { T::ZERO };
        // `out` holds the squares until `apply` overwrites them.
        write_squares(x, mean, out);
        let scale = T::ONE / (slice_total(Reduction::Sum, out) / count + eps).sqrt();
        parameters.apply(x, mean, scale, start, out);
    });
}

/// Normalizes each row of `len` elements of `x` by given means and scales. There is one mean and one scale for each channel. Row `i` belongs
/// to channel `i` modulo the number of channels.
#[wengert_macros::precompiled]
pub(crate) fn normalize_rows_by_statistics<T: Float>(
    x: &[T],
    len: usize,
    statistics: (&[T], &[T]),
    parameters: Affine<'_, T>,
    out: &mut [T],
) {
    let (means, scales) = statistics;
    for_each_row(x, len, out, &|start, x, out| {
        let channel = start / len % means.len();
        parameters.apply(x, means[channel], scales[channel], start, out);
    });
}

/// A function that gets the row-major index of a row's first element, the row, and the row of the result.
type RowFn<'a, T> = dyn Fn(usize, &[T], &mut [T]) + Sync + 'a;

fn for_each_row<T: Float>(x: &[T], len: usize, out: &mut [T], f: &RowFn<'_, T>) {
    let task = (TASK / len).max(1) * len;
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::chunks(out, task, schedule, |number, out| {
        let starts = (number * task..).step_by(len);
        out.chunks_exact_mut(len).zip(starts).for_each(|(out, start)| f(start, &x[start..start + len], out));
    });
}

dispatched! {
    fn write_squares<T: Float>(x: &[T], mean: T, out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            let centred = x - mean;
            *out = centred * centred;
        }
    }

    fn standardize<T: Float>(
        x: &[T],
        mean: T,
        scale: T,
        weight: Operand<'_, T>,
        bias: Operand<'_, T>,
        out: &mut [T],
    ) {
        map_ternary(Operand::Slice(x), weight, bias, out, |x, weight, bias| (x - mean) * scale * weight + bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_equal_their_definition() {
        for (rows, len, shared) in [(1, 1, 1), (3, 7, 7), (6, 20, 1), (8, 300, 100), (5, 33, 11), (2, 40_000, 1)] {
            let x: Vec<f64> = (0..rows * len).map(|i| ((i * i) as f64 * 0.37).sin() * 3.0 + 1.0).collect();
            let parameters: Vec<f64> = (0..if shared == 1 { len } else { 4 }).map(|i| 0.25 * i as f64 - 0.7).collect();
            for (weight, bias) in [(false, false), (true, false), (false, true), (true, true)] {
                let own = |given: bool| given.then_some(&parameters[..]);
                let both = Affine { weight: own(weight), bias: own(bias), elements_per_parameter: shared };
                let parameter = |given: bool, i: usize, other: f64| match given {
                    true => parameters[i / shared % parameters.len()],
                    false => other,
                };
                let close = |out: &[f64], mean: &dyn Fn(usize) -> f64, scale: &dyn Fn(usize) -> f64| {
                    out.iter().enumerate().all(|(i, out)| {
                        let z = (x[i] - mean(i)) * scale(i);
                        let expected = z * parameter(weight, i, 1.0) + parameter(bias, i, 0.0);
                        (out - expected).abs() < 1e-9 * (1.0 + expected.abs())
                    })
                };
                let row = |i: usize| &x[i / len * len..][..len];
                let mean = |i: usize| row(i).iter().sum::<f64>() / len as f64;
                let means: Vec<f64> = (0..rows).map(|r| mean(r * len)).collect();
                for centred in [true, false] {
                    let mean = |i: usize| if centred { means[i / len] } else { 0.0 };
                    let square = |i: usize| row(i).iter().map(|x| (x - mean(i)).powi(2)).sum::<f64>() / len as f64;
                    let scales: Vec<f64> = (0..rows).map(|r| 1.0 / (square(r * len) + 0.5).sqrt()).collect();
                    let mut out = vec![7.0; x.len()];
                    normalize_rows(&x, len, centred, 0.5, both, &mut out);
                    assert!(close(&out, &mean, &|i| scales[i / len]), "{rows} {len} {shared} {centred}");
                }
                let (given, scales) = ([0.5, -1.0, 2.0], [1.5, 0.1, -0.7]);
                let mut out = vec![7.0; x.len()];
                normalize_rows_by_statistics(&x, len, (&given, &scales), both, &mut out);
                assert!(close(&out, &|i| given[i / len % 3], &|i| scales[i / len % 3]), "{rows} {len} {shared}");
            }
        }
    }
}
