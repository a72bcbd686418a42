//! Adaptive pooling: pooling to a result of the requested size. As in PyTorch, window `i` of `m` over `n` elements starts at element
//! ⌊i n / m⌋ and ends before element ⌈(i + 1) n / m⌉.

use wengert_macros::twins;

use crate::kernel::pool::mean::WindowSpans;
use crate::memory::reserve;
use crate::ops::window::pooling::maximum::prefers_second;
use crate::ops::window::pooling::mean::average;
use crate::ops::window::pooling::plan::check_nonempty;
use crate::ops::window::windowed::Windowed;
use crate::ops::window::windows::{add_batch, per_dimension_at_least, remove_batch};
use crate::ops::{Compose, Result, TensorLike};
use crate::{Error, Float, Reduction, Scalar, Site, Sizes, View, ensure};

/// Pooling to a result of the requested size. This size determines the windows. The methods refuse other ranks, and pooled dimensions of size
/// 0. The maxima also refuse 0 channels in a batch.
#[twins(blanket)]
pub trait AdaptivePooling: Windowed<Elem: Float> {
    /// Returns the means of `size` windows of `[n, c, l]` (or `[c, l]`). PyTorch: `nn.functional.adaptive_avg_pool1d`.
    fn try_adaptive_avg_pool1d(&self, size: impl Into<Sizes>) -> Result<Self> {
        avg_pool(self, 1, &size.into(), Site::here("adaptive_avg_pool1d"))
    }

    /// Returns the means of the windows of `[n, c, h, w]` (or `[c, h, w]`). `size` is the number of windows along h and along w. PyTorch:
    /// `nn.functional.adaptive_avg_pool2d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let image = Tensor::<f64>::arange(6).reshape([1, 2, 3]);
    /// assert_eq!(image.adaptive_avg_pool2d(1).item(), 2.5);
    /// assert_eq!(image.adaptive_avg_pool2d([1, 2]).to_vec(), [2.0, 3.0]);
    /// ```
    fn try_adaptive_avg_pool2d(&self, size: impl Into<Sizes>) -> Result<Self> {
        avg_pool(self, 2, &size.into(), Site::here("adaptive_avg_pool2d"))
    }

    /// Returns the means of the windows of `[n, c, d, h, w]` (or `[c, d, h, w]`). `size` is the number of windows along each of d, h and w.
    /// PyTorch: `nn.functional.adaptive_avg_pool3d`.
    fn try_adaptive_avg_pool3d(&self, size: impl Into<Sizes>) -> Result<Self> {
        avg_pool(self, 3, &size.into(), Site::here("adaptive_avg_pool3d"))
    }

    /// Returns the largest element of each of `size` windows of `[n, c, l]` (or `[c, l]`). The gradient flows to the first of several equal
    /// elements, or to the last NaN. PyTorch: `nn.functional.adaptive_max_pool1d`.
    fn try_adaptive_max_pool1d(&self, size: impl Into<Sizes>) -> Result<Self> {
        max_pool(self, 1, &size.into(), Site::here("adaptive_max_pool1d"))
    }

    /// Returns the largest element of each window of `[n, c, h, w]` (or `[c, h, w]`). `size` is the number of windows along h and along w.
    /// The gradient flows to the first of several equal elements, or to the last NaN. PyTorch: `nn.functional.adaptive_max_pool2d`.
    fn try_adaptive_max_pool2d(&self, size: impl Into<Sizes>) -> Result<Self> {
        max_pool(self, 2, &size.into(), Site::here("adaptive_max_pool2d"))
    }

    /// Returns the largest element of each window of `[n, c, d, h, w]` (or `[c, d, h, w]`). `size` is the number of windows along each of
    /// d, h and w. The gradient flows to the first of several equal elements, or to the last NaN. PyTorch:
    /// `nn.functional.adaptive_max_pool3d`.
    fn try_adaptive_max_pool3d(&self, size: impl Into<Sizes>) -> Result<Self> {
        max_pool(self, 3, &size.into(), Site::here("adaptive_max_pool3d"))
    }
}

pub(in crate::ops::window) fn avg_pool<A: Windowed<Elem: Float>>(
    x: &A,
    rank: usize,
    size: &Sizes,
    at: Site,
) -> Result<A> {
    let counts = check(x, rank, size, None, at)?;
    let (x, added) = add_batch(x, rank + 2, at)?;
    let shape = x.shape();
    let spans = counts.iter().zip(&shape[2..]).map(|(&count, &size)| WindowSpans::to_size(size, count));
    remove_batch(average(&x, spans.collect(), at)?, added, at)
}

/// Returns the largest element of each window. Reduces the windows in one dimension after the other.
fn max_pool<A: TensorLike>(x: &A, rank: usize, size: &Sizes, at: Site) -> Result<A> {
    let counts = check(x, rank, size, Some(1), at)?;
    let (mut x, added) = add_batch(x, rank + 2, at)?;
    // An expanded array may have more elements than memory can hold. The result of the first reduction may have as many elements.
    reserve::check_fits::<A::Elem>(&x.shape(), at)?;
    for (k, &count) in counts.iter().enumerate().rev() {
        let (axis, shape) = (2 + k, x.shape());
        let size = shape[axis];
        x = if count == 0 {
            x.slice_axis(axis, 0, 0, at)?
        } else if size.is_multiple_of(count) {
            // Windows of equal length without overlap become a dimension, which is then reduced.
            let split = shape.replaced(axis..axis + 1, &[count, size / count]);
            max(&x.reshape_to(split, at)?, axis + 1, at)?.reshape_to(shape.with_size(axis, count), at)?
        } else {
            let (spans, mut parts) = (WindowSpans::to_size(size, count), Vec::with_capacity(count));
            for number in 0..count {
                let (start, end) = spans.span(number);
                parts.push(max(&x.slice_axis(axis, start, end - start, at)?, axis, at)?);
            }
            A::apply_cat(&parts, axis, at)?
        };
    }
    remove_batch(x, added, at)
}

/// Returns the number of windows along each of the `rank` pooled dimensions, which are the last dimensions of `x`. Refuses a pooled
/// dimension of size 0. If `nonempty_from` is given, refuses size 0 in every dimension from this one on instead.
fn check<A: TensorLike>(
    x: &A,
    rank: usize,
    size: &Sizes,
    nonempty_from: Option<usize>,
    at: Site,
) -> Result<Vec<usize>, A::Error> {
    let (shape, name, unbatched, batched) = (x.shape(), at.operation, rank + 1, rank + 2);
    let lead = shape.rank().saturating_sub(rank);
    // PyTorch's error message has this colon only for maximum pooling.
    let colon = if name.contains("max") { ":" } else { "" };
    ensure!(
        (1..=2).contains(&lead),
        at,
        "{name}(): Expected {unbatched}D or {batched}D tensor, but got{colon} {shape}"
    );
    check_nonempty(&shape, nonempty_from.unwrap_or(lead), at)?;
    let counts = per_dimension_at_least(size, rank, ("output_size", 0), at)?;
    // Maximum pooling makes a list with an array for each window. The reservation checks that memory can hold this list.
    let largest = counts.iter().copied().max().unwrap_or_default();
    let refused = |_| Error::out_of_memory(&counts[..], A::Elem::DTYPE, at);
    reserve::check_list::<A>(largest, at).map_err(refused)?;
    Ok(counts)
}

/// Returns the maximum along `axis`, which stays with size 1. For a recorded variable, compares neighbours pairwise, in a tree, and selects the
/// larger one, so that the gradient flows to a single element.
fn max<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A> {
    if x.is_plain() {
        return x.apply_reduce(Reduction::Amax, &[axis], at);
    }
    let mut x = x.clone();
    let mut size = x.shape()[axis];
    while size > 1 {
        let half = size / 2;
        let every_second = |start: usize| x.apply_view(View::Slice { axis, start, len: half, step: 2 }, at);
        let (first, second) = (every_second(0)?, every_second(1)?);
        let larger = A::apply_select(&prefers_second(&first, &second, at)?, &second, &first, at)?;
        x = match size.is_multiple_of(2) {
            true => larger,
            false => A::apply_cat(&[larger, x.slice_axis(axis, size - 1, 1, at)?], axis, at)?,
        };
        size = x.shape()[axis];
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    use crate::ops::window::pooling::adaptive::AdaptivePooling;
    use crate::prelude::*;

    #[test]
    fn windows_overlap_if_the_size_is_not_a_multiple() {
        let x = Tensor::from([[1.0, 2.0, 3.0, 4.0, 5.0]]);
        assert_eq!(x.adaptive_avg_pool1d(3).to_vec(), [1.5, 3.0, 4.5]);
        assert_eq!(x.adaptive_max_pool1d(3).to_vec(), [2.0, 4.0, 5.0]);
        assert_eq!(x.adaptive_avg_pool1d(7).to_vec(), [1.0, 1.5, 2.5, 3.0, 3.5, 4.5, 5.0]);
        assert_eq!(x.adaptive_max_pool1d(1).item(), 5.0);
        assert_eq!(x.adaptive_avg_pool1d(0).shape(), &[1, 0]);
        assert!(Tensor::<f64>::zeros([3]).try_adaptive_avg_pool1d(1).is_err());
    }

    /// Compares the maxima with the definition, for numbers with ties and NaN.
    #[test]
    fn maxima_are_the_largest_elements_of_windows() {
        let x = Tensor::<f64>::from_fn([2, 3, 13], |i| match (i[0] * 39 + i[1] * 13 + i[2]) * 7 % 19 {
            5 => f64::NAN,
            k => (k / 2) as f64,
        });
        for count in [1usize, 2, 5, 12, 13, 20] {
            let got = x.adaptive_max_pool1d(count as isize);
            for (plane, k) in (0..6).flat_map(|plane| (0..count).map(move |k| (plane, k))) {
                let (start, end) = (k * 13 / count, ((k + 1) * 13).div_ceil(count));
                let window = (start..end).map(|i| x.get(&[plane / 3, plane % 3, i]).unwrap());
                let expected = window.reduce(|a, b| if a.is_nan() || a > b { a } else { b }).unwrap();
                let got = got.get(&[plane / 3, plane % 3, k]).unwrap();
                assert!(got == expected || got.is_nan() && expected.is_nan(), "{count} {plane} {k}: {got} {expected}");
            }
        }
    }

    #[test]
    fn planes_are_pooled_to_rectangles() {
        let x = Tensor::<f64>::arange(12).reshape([1, 1, 3, 4]);
        assert_eq!(x.adaptive_avg_pool2d([2, 2]).to_vec(), [2.5, 4.5, 6.5, 8.5]);
        assert_eq!(x.adaptive_max_pool2d([3, 1]).to_vec(), [3.0, 7.0, 11.0]);
    }
}
