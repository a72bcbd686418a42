//! Poolings to a size: window `i` of `m` over `n` elements goes from ⌊i n / m⌋ to ⌈(i + 1) n / m⌉, as PyTorch has it.

use wengert_macros::twins;

use crate::kernel::pool::mean::WindowSpans;
use crate::memory::reserve;
use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::ops::window::pooling::maximum::later_wins;
use crate::ops::window::pooling::mean::averaged;
use crate::ops::window::windowed::Windowed;
use crate::ops::window::windows::{at_least, batched, unbatched};
use crate::{Error, Float, Scalar, Site, Sizes, View};

/// Poolings to a size.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let images = Tensor::<f64>::arange(16).reshape([1, 1, 4, 4]);
/// assert_eq!(images.adaptive_avg_pool2d(1).item(), 7.5);
/// ```
#[twins]
pub trait AdaptivePooling: Windowed<Elem: Float> {
    /// Means of `[n, c, l]` (or `[c, l]`) over `size` windows. PyTorch: `nn.functional.adaptive_avg_pool1d`.
    fn try_adaptive_avg_pool1d(&self, size: impl Into<Sizes>) -> Result<Self, Self::Error> {
        mean(self, 1, &size.into(), Site::here("adaptive_avg_pool1d"))
    }

    /// Means of `[n, c, h, w]` (or `[c, h, w]`) over `size` windows. PyTorch: `nn.functional.adaptive_avg_pool2d`.
    ///
    /// ```
    /// use wengert_tensor::ops::AdaptivePooling;
    /// use wengert_tensor::prelude::*;
    ///
    /// let image = Tensor::<f64>::arange(6).reshape([1, 2, 3]);
    /// assert_eq!(image.adaptive_avg_pool2d(1).item(), 2.5);
    /// assert_eq!(image.adaptive_avg_pool2d([1, 2]).to_vec(), [2.0, 3.0]);
    /// ```
    fn try_adaptive_avg_pool2d(&self, size: impl Into<Sizes>) -> Result<Self, Self::Error> {
        mean(self, 2, &size.into(), Site::here("adaptive_avg_pool2d"))
    }

    /// The largest of each of `size` windows of `[n, c, l]` (or `[c, l]`); the gradient goes to the first of several that
    /// are equal. PyTorch: `nn.functional.adaptive_max_pool1d`.
    fn try_adaptive_max_pool1d(&self, size: impl Into<Sizes>) -> Result<Self, Self::Error> {
        let at = Site::here("adaptive_max_pool1d");
        pooled(self, 1, &size.into(), Some(1), at, |part, axis| largest(part, axis, at))
    }

    /// The largest of each of `size` windows of `[n, c, h, w]` (or `[c, h, w]`); the gradient goes to the first of
    /// several that are equal. PyTorch: `nn.functional.adaptive_max_pool2d`.
    fn try_adaptive_max_pool2d(&self, size: impl Into<Sizes>) -> Result<Self, Self::Error> {
        let at = Site::here("adaptive_max_pool2d");
        pooled(self, 2, &size.into(), Some(1), at, |part, axis| largest(part, axis, at))
    }
}

impl<A: Windowed<Elem: Float>> AdaptivePooling for A {}

/// Start and length of window `number` of `count` over `size` elements.
fn window(number: usize, count: usize, size: usize) -> (usize, usize) {
    let (number, count, whole) = (number as u128, count as u128, size as u128);
    let start = number * whole / count;
    (start as usize, (((number + 1) * whole).div_ceil(count) - start) as usize)
}

fn mean<A: Windowed<Elem: Float>>(x: &A, rank: usize, size: &Sizes, at: Site) -> Result<A, A::Error> {
    let counts = checked(x, rank, size, None, at)?;
    let (x, added) = batched(x, rank + 2, at)?;
    let shape = x.shape();
    let along = counts.iter().zip(&shape[2..]).map(|(&count, &size)| {
        let windows = || (0..count).map(|number| window(number, count, size));
        let spans = windows().map(|(start, len)| (start, start + len));
        WindowSpans::new(size, spans.collect(), windows().map(|(_, len)| len as f64).collect())
    });
    unbatched(averaged(&x, along.collect(), at)?, added, at)
}

/// Each window along each dimension reduced to one element by `fold`. The dimensions from number `filled_from` on, and those
/// that are pooled, must not be empty.
fn pooled<A: TensorLike>(
    x: &A,
    rank: usize,
    size: &Sizes,
    filled_from: Option<usize>,
    at: Site,
    fold: impl Fn(&A, usize) -> Result<A, A::Error>,
) -> Result<A, A::Error> {
    let counts = checked(x, rank, size, filled_from, at)?;
    let (mut x, added) = batched(x, rank + 2, at)?;
    for (k, &count) in counts.iter().enumerate().rev() {
        let axis = 2 + k;
        let size = x.shape()[axis];
        x = if count == 0 {
            x.sliced(axis, 0, 0, at)?
        } else if size.is_multiple_of(count) {
            // Windows of equal length are a dimension.
            let mut apart = x.shape();
            apart[axis] = count;
            apart.insert(axis + 1, size / count);
            let mut joined = x.shape();
            joined[axis] = count;
            fold(&x.reshaped(apart, at)?, axis + 1)?.reshaped(joined, at)?
        } else {
            let mut parts = Vec::with_capacity(count);
            for number in 0..count {
                let (start, len) = window(number, count, size);
                parts.push(fold(&x.sliced(axis, start, len, at)?, axis)?);
            }
            A::apply_cat(&parts, axis, at)?
        };
    }
    unbatched(x, added, at)
}

/// How many windows each dimension has.
fn checked<A: TensorLike>(
    x: &A,
    rank: usize,
    size: &Sizes,
    filled_from: Option<usize>,
    at: Site,
) -> Result<Vec<usize>, A::Error> {
    let shape = x.shape();
    let lead = shape.rank().saturating_sub(rank);
    if !(1..=2).contains(&lead) || shape[filled_from.unwrap_or(lead)..].contains(&0) {
        let message = format!(
            "{}: Expected {}D or {}D tensor that is not empty but for the batch, but got {shape}",
            at.operation,
            rank + 1,
            rank + 2
        );
        return Err(Error::argument(at, message).into());
    }
    let counts = at_least(size, rank, ("output_size", 0), at)?;
    // Windows are made one by one.
    let most = counts.iter().copied().max().unwrap_or_default();
    let refused = |_| Error::OutOfMemory { shape: counts.as_slice().into(), dtype: A::Elem::DTYPE, at };
    reserve::with_capacity::<u8>(most.saturating_mul(size_of::<A>())).map_err(refused)?;
    Ok(counts)
}

/// The largest along `axis`, which stays with size 1: of neighbours, of neighbouring pairs, and so on.
fn largest<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A, A::Error> {
    let mut x = x.clone();
    let mut size = x.shape()[axis];
    while size > 1 {
        let half = size / 2;
        let every_second = |start: usize| x.apply_view(View::Slice { axis, start, len: half, step: 2 }, at);
        let (first, second) = (every_second(0)?, every_second(1)?);
        let best = A::apply_select(&later_wins(&first, &second, at)?, &second, &first, at)?;
        x = if size.is_multiple_of(2) {
            best
        } else {
            A::apply_cat(&[best, x.sliced(axis, size - 1, 1, at)?], axis, at)?
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
    fn windows_overlap_where_they_must() {
        let x = Tensor::from([[1.0, 2.0, 3.0, 4.0, 5.0]]);
        assert_eq!(x.adaptive_avg_pool1d(3).to_vec(), [1.5, 3.0, 4.5]);
        assert_eq!(x.adaptive_max_pool1d(3).to_vec(), [2.0, 4.0, 5.0]);
        assert_eq!(x.adaptive_avg_pool1d(7).to_vec(), [1.0, 1.5, 2.5, 3.0, 3.5, 4.5, 5.0]);
        assert_eq!(x.adaptive_max_pool1d(1).item(), 5.0);
        assert_eq!(x.adaptive_avg_pool1d(0).shape(), &[1, 0]);
        assert!(Tensor::<f64>::zeros([3]).try_adaptive_avg_pool1d(1).is_err());
    }

    #[test]
    fn rectangles() {
        let x = Tensor::<f64>::arange(12).reshape([1, 1, 3, 4]);
        assert_eq!(x.adaptive_avg_pool2d([2, 2]).to_vec(), [2.5, 4.5, 6.5, 8.5]);
        assert_eq!(x.adaptive_max_pool2d([3, 1]).to_vec(), [3.0, 7.0, 11.0]);
    }
}
