//! Searches in sorted sequences, and counts of values. The results are plain data, through which no gradient flows.

use std::hint::select_unpredictable;

use wengert_macros::twins;

use crate::ops::reduce::quantiles::python_text;
use crate::ops::{ArrayOperand, Result, TensorLike};
use crate::{Element, Error, Float, Number, Shape, Site, Tensor, ensure};

/// Searches and counts.
#[twins(blanket)]
pub trait Search: TensorLike<Elem: Number> {
    /// Returns, for each of `values`, the position in `self` at which an insertion of the value keeps `self` sorted. `self` is a sorted
    /// vector, or sorted lines `[…, n]` with the leading dimensions of `values`. If elements equal the value, the position is before the
    /// first equal element, or after the last one if `right` is true. The position of NaN is after all elements. If `self` is not sorted or
    /// has a NaN, the positions are not specified. Refuses a `self` without dimensions, and leading dimensions that differ. PyTorch:
    /// `searchsorted`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let sorted = Tensor::from([1.0, 3.0, 5.0, 5.0, 7.0]);
    /// assert_eq!(sorted.searchsorted(&Tensor::from([0.0, 5.0, 8.0]), false).to_vec(), [0, 2, 5]);
    /// assert_eq!(sorted.searchsorted(&Tensor::from([0.0, 5.0, 8.0]), true).to_vec(), [0, 4, 5]);
    /// ```
    fn try_searchsorted(&self, values: impl ArrayOperand<Self>, right: bool) -> Result<Tensor<i64>, Self::Error> {
        let values = values.into_array(self)?;
        let at = Site::here("searchsorted");
        check_lines(&self.shape(), &values.shape(), at)?;
        Ok(insertion_positions(&self.to_tensor(at)?, &values.to_tensor(at)?, right, at)?)
    }

    /// Returns the bucket of each element. Bucket i has the elements above boundary i - 1, up to and including boundary i. If `right` is
    /// true, bucket i has the elements from boundary i - 1 (included) up to boundary i (excluded). NaN is in the last bucket. `boundaries`
    /// is a sorted vector. Refuses `boundaries` that are not a vector. PyTorch: `bucketize`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let ages = Tensor::from([3.0, 18.0, 40.0]);
    /// assert_eq!(ages.bucketize(&Tensor::from([18.0, 65.0]), false).to_vec(), [0, 0, 1]);
    /// assert_eq!(ages.bucketize(&Tensor::from([18.0, 65.0]), true).to_vec(), [0, 1, 1]);
    /// ```
    fn try_bucketize(&self, boundaries: &Tensor<Self::Elem>, right: bool) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("bucketize");
        ensure!(
            boundaries.rank() == 1,
            at,
            "boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.rank()
        );
        Ok(insertion_positions(boundaries, &self.to_tensor(at)?, right, at)?)
    }

    /// Returns the number of elements in each of `bins` equal intervals between `min` and `max`. The last interval includes `max`. Elements
    /// outside and NaN do not count. Equal bounds, such as 0 and 0, stand for the smallest and the largest element, if there are elements. If
    /// both are the same number x, the bounds are x - 1 and x + 1. For a large x, the bounds are its neighbours in `f64`, which are farther
    /// away. Refuses 0 bins, a `max` below `min`, and infinite and NaN bounds; with equal bounds, also infinite and NaN elements. PyTorch:
    /// `histc`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([0.5, 1.0, 2.5, 4.0]);
    /// assert_eq!(x.histc(4, 0.0, 4.0).to_vec(), [1.0, 1.0, 1.0, 1.0]);
    /// ```
    #[doc(alias("histogram"))]
    fn try_histc(&self, bins: usize, min: f64, max: f64) -> Result<Tensor<Self::Elem>, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("histc");
        ensure!(bins > 0, at, "torch.histogram(): bins must be > 0, but got 0 for dimension 0");
        let x = self.to_tensor(at)?;
        let (low, high) = bounds(&x, min, max, at)?;
        // The width of the whole range may overflow, so all numbers are scaled by a half in this case.
        let scale = if (high - low).is_finite() { 1.0 } else { 0.5 };
        let width = high * scale - low * scale;
        // The counts are integers, because f32 does not have all integers above 2²⁴.
        let counts = Tensor::build_on_zeros(&[bins].into(), at, |out: &mut [i64]| {
            for value in x.iter() {
                let value = crate::Scalar::to_f64(value);
                if value >= low && value <= high {
                    let bin = ((value * scale - low * scale) / width * bins as f64) as usize;
                    out[bin.min(bins - 1)] += 1;
                }
            }
        })?;
        Ok(counts.try_cast()?)
    }
}

/// Returns the lower and the upper bound of a histogram of `x`: `min` and `max`, or the smallest and the largest element if `min` equals
/// `max` and there are elements. Moves equal bounds apart.
fn bounds<T: Float>(x: &Tensor<T>, min: f64, max: f64, at: Site) -> Result<(f64, f64), Error> {
    let (mut low, mut high) = (min, max);
    if low == high && x.numel() > 0 {
        let nan_wins = |best: f64, value: f64, wins: bool| if wins || value.is_nan() { value } else { best };
        (low, high) =
            x.iter().map(crate::Scalar::to_f64).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (nan_wins(low, value, value < low), nan_wins(high, value, value > high))
            });
    }
    let is_finite = low.is_finite() && high.is_finite();
    ensure!(is_finite, at, "torch.histc: range of [{}, {}] is not finite", python_text(low), python_text(high));
    if low == high {
        // A large number plus 1 is rounded to the number itself. The bound is then the next number.
        (low, high) = ((low - 1.0).min(low.next_down()), (high + 1.0).max(high.next_up()));
    }
    ensure!(low < high, at, "torch.histc: max must be larger than min");
    Ok((low, high))
}

/// Returns the number of occurrences of each number from 0 to the largest element. The result has at least `minlength` elements. Refuses
/// negative numbers, and a rank other than 1. PyTorch: `bincount`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::bincount;
/// use wengert::prelude::*;
///
/// assert_eq!(bincount(&Tensor::from([1i64, 3, 1]), 5).to_vec(), [0, 2, 0, 1, 0]);
/// ```
///
/// For sums of weights, see [`scatter_add`](crate::ops::Scatter::scatter_add).
#[twins]
pub fn try_bincount(input: &Tensor<i64>, minlength: usize) -> Result<Tensor<i64>, Error> {
    let at = Site::here("bincount");
    let numbers = input.row_major_elements(at)?;
    let (least, largest) = numbers.iter().fold((0, -1), |(least, largest), &x| (x.min(least), x.max(largest)));
    ensure!(input.rank() == 1 && least == 0, at, "bincount only supports 1-d non-negative integral inputs.");
    let largest = (largest as usize).wrapping_add(1);
    Tensor::build_on_zeros(&[largest.max(minlength)].into(), at, |out: &mut [i64]| {
        numbers.iter().for_each(|&number| out[number as usize] += 1);
    })
}

fn check_lines(sorted: &Shape, values: &Shape, at: Site) -> Result<(), Error> {
    let (rank, other) = (sorted.rank(), values.rank());
    ensure!(
        rank > 0,
        at,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
    );
    ensure!(
        other > 0 || rank == 1,
        at,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got \
         boundaries tensor dim({rank}) and input value's dim(0) numel(1)"
    );
    ensure!(
        rank == 1 || rank == other && sorted[..rank - 1] == values[..rank - 1],
        at,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor \
         and input value tensor must match, but we got boundaries tensor {sorted} and input value tensor {values}"
    );
    Ok(())
}

/// Returns the position at which each value would be inserted into its line of `sorted`. This line has the same leading indices as the
/// value, or is the only line.
fn insertion_positions<T: Element>(
    sorted: &Tensor<T>,
    values: &Tensor<T>,
    right: bool,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let (lines, searched) = (sorted.row_major_elements(at)?, values.row_major_elements(at)?);
    let length = sorted.shape()[sorted.rank() - 1];
    // The number of values that are searched in the same line of `sorted`.
    let values_per_line = if sorted.rank() == 1 { values.numel() } else { values.shape()[values.rank() - 1] };
    Tensor::build(values.shape(), at, |out| {
        for (number, out) in out.chunks_mut(values_per_line.max(1)).enumerate() {
            let line = &lines[number * length * usize::from(sorted.rank() > 1)..][..length];
            let values = &searched[number * values_per_line..][..out.len()];
            for (out, values) in out.chunks_mut(SEARCHES).zip(values.chunks(SEARCHES)) {
                search(line, values, right, out);
            }
        }
    })
}

/// The number of searches that advance together. Each step of a search waits for memory, so the processor overlaps several searches.
const SEARCHES: usize = 8;

/// Writes the position of each of at most [`SEARCHES`] values in the sorted `line`.
fn search<T: Element>(line: &[T], values: &[T], right: bool, out: &mut [i64]) {
    let (mut first, mut left) = ([0; SEARCHES], line.len());
    // The position is in the range that begins with `first` and has `left` elements, or directly after this range.
    while left > 0 {
        let half = left.div_ceil(2);
        for (first, &value) in first.iter_mut().zip(values) {
            // A selection without a branch, because the processor would often predict the branch wrongly.
            let is_before = is_before(line[*first + half - 1], value, right);
            *first = select_unpredictable(is_before, *first + half, *first);
        }
        left -= half;
    }
    out.iter_mut().zip(first).for_each(|(out, first)| *out = first as i64);
}

/// Returns true if `value` belongs after `own`, an element of the sorted line. This holds for every `own` if `value` is NaN, as in PyTorch.
#[allow(clippy::neg_cmp_op_on_partial_ord)]
fn is_before<T: Element>(own: T, value: T, right: bool) -> bool {
    if right { !(own > value) } else { !(own >= value) }
}

#[cfg(test)]
mod tests {
    use super::try_bincount;
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn places_of_values() {
        let sorted = Tensor::from([1.0, 3.0, 5.0, 5.0, 7.0]);
        let values = Tensor::from([0.0, 1.0, 5.0, 8.0, NAN]);
        assert_eq!(sorted.searchsorted(&values, false).to_vec(), [0, 0, 2, 5, 5]);
        assert_eq!(sorted.searchsorted(&values, true).to_vec(), [0, 1, 4, 5, 5]);
        let lines = Tensor::from([[0.0, 1.0], [10.0, 20.0]]);
        assert_eq!(lines.searchsorted(Tensor::from([[0.5], [15.0]]), false), Tensor::from([[1i64], [1]]));
        assert_eq!(Tensor::<f64>::zeros([0]).searchsorted(&values, false).to_vec(), [0; 5]);
        assert_eq!(sorted.searchsorted(Tensor::scalar(5.0), false), Tensor::scalar(2));
        assert_eq!(Tensor::<f64>::zeros([2, 0]).searchsorted(Tensor::zeros([2, 0]), true).shape(), &[2, 0]);
        let error = lines.try_searchsorted(Tensor::zeros([3, 2]), false).unwrap_err();
        assert_eq!(
            error.sentence(),
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor \
             and input value tensor must match, but we got boundaries tensor [2, 2] and input value tensor [3, 2]"
        );
        let error = values.try_bucketize(&lines, false).unwrap_err();
        assert_eq!(error.sentence(), "boundaries tensor must be 1 dimension, but got dim(2)");
    }

    /// Compares with a linear search, for lines of 0 to 19 elements and for more than [`SEARCHES`] values.
    #[test]
    fn every_length_of_sorted_lines() {
        let values = Tensor::from_fn([3, 19], |i| if i[1] == 7 { NAN } else { (i[0] * 5 + i[1]) as f64 * 0.5 - 1.0 });
        for length in 0..20 {
            let sorted = Tensor::from_fn([3, length], |i| ((i[0] + i[1]) / 2) as f64);
            for right in [false, true] {
                let expected = Tensor::from_fn([3, 19], |i| {
                    let (line, value) = (sorted.select(0, i[0] as isize), values.get(i).unwrap());
                    let before = |own: &f64| value.is_nan() || if right { *own <= value } else { *own < value };
                    line.iter().take_while(before).count() as i64
                });
                assert_eq!(sorted.searchsorted(&values, right), expected, "{length}");
                let line = sorted.select(0, 0);
                assert_eq!(line.searchsorted(values.select(0, 0), right), expected.select(0, 0));
            }
        }
    }

    #[test]
    fn histograms() {
        let inf = f64::INFINITY;
        let x = Tensor::from([1.0, NAN, inf, -1.0, 0.0, 3.0, 2.99]);
        assert_eq!(x.histc(4, 0.0, 3.0).to_vec(), [1.0, 1.0, 0.0, 2.0]);
        assert_eq!(Tensor::from([1.0, 1.0, 1.0]).histc(4, 0.0, 0.0).to_vec(), [0.0, 0.0, 3.0, 0.0]);
        assert_eq!(Tensor::from([1e300]).histc(4, 0.0, 0.0).to_vec(), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(Tensor::from([1.0, 2.0, 1.0]).histc(4, 2.0, 2.0).to_vec(), [2.0, 0.0, 0.0, 1.0]);
        assert_eq!(Tensor::<f64>::zeros([0]).histc(2, 0.0, 0.0).to_vec(), [0.0, 0.0]);
        for (bins, min, max, sentence) in [
            (0, 0.0, 1.0, "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
            (4, 2.0, 1.0, "torch.histc: max must be larger than min"),
            (4, 0.0, inf, "torch.histc: range of [0, inf] is not finite"),
        ] {
            assert_eq!(x.try_histc(bins, min, max).unwrap_err().sentence(), sentence);
        }
        assert!(x.try_histc(3, 0.0, 0.0).is_err());
        let many = (1 << 24) + 2;
        assert_eq!(Tensor::<f32>::ones([1]).expand([many]).histc(1, 0.0, 2.0).to_vec(), [many as f32]);
        // The difference of these bounds overflows.
        assert_eq!(Tensor::from([-1e308, 0.0, 1e308]).histc(2, -1e308, 1e308).to_vec(), [1.0, 2.0]);
    }

    #[test]
    fn counts_of_numbers() {
        assert_eq!(try_bincount(&Tensor::zeros([0]), 3).unwrap().to_vec(), [0, 0, 0]);
        for wrong in [Tensor::from([-1i64, 2]), Tensor::scalar(3)] {
            let error = try_bincount(&wrong, 0).unwrap_err();
            assert_eq!(error.sentence(), "bincount only supports 1-d non-negative integral inputs.");
        }
        assert!(try_bincount(&Tensor::from([i64::MAX]), 0).is_err());
        assert!(try_bincount(&Tensor::from([1i64]), usize::MAX).is_err());
    }
}
