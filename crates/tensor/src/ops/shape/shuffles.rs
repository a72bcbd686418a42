//! Moves elements between channels and pixels, or between groups of channels: a split of dimensions, a permutation, and a merge.

use std::ops::Range;

use wengert_macros::twins;

use crate::memory::reserve::addressable;
use crate::ops::{Compose, Result, TensorLike};
use crate::{Site, ensure};

/// Shuffles of channels and pixels.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::<i64>::arange(8).reshape([4, 1, 2]);
/// let image = x.pixel_shuffle(2);
/// assert_eq!(image, Tensor::from([[[0i64, 2, 1, 3], [4, 6, 5, 7]]]));
/// assert_eq!(image.pixel_unshuffle(2), x);
/// assert_eq!(Tensor::<i64>::arange(6).reshape([1, 6, 1]).channel_shuffle(3).to_vec(), [0, 2, 4, 1, 3, 5]);
/// ```
#[twins(blanket)]
pub trait Shuffling: TensorLike {
    /// Turns each group of r² channels into r times r pixels of one channel, where r is `upscale_factor`: `[…, c · r², h, w]` becomes
    /// `[…, c, h · r, w · r]` (Shi et al. 2016). Refuses fewer than three dimensions, factor 0, and a number of channels that is no
    /// multiple of the square of the factor. PyTorch: `nn.functional.pixel_shuffle`.
    fn try_pixel_shuffle(&self, upscale_factor: usize) -> Result<Self> {
        let (shape, r, at) = (self.shape(), upscale_factor, Site::here("pixel_shuffle"));
        let rank = shape.rank();
        ensure!(
            rank >= 3,
            at,
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with {rank} dimension(s)"
        );
        ensure!(r > 0, at, "pixel_shuffle expects a positive upscale_factor, but got 0");
        let (channels, square) = (shape[rank - 3], r.saturating_mul(r));
        ensure!(
            channels.is_multiple_of(square),
            at,
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
             input.size(-3)={channels} is not divisible by {square}"
        );
        let (c, h, w) = (channels / square, shape[rank - 2], shape[rank - 1]);
        let merged = [c, h.saturating_mul(r), w.saturating_mul(r)];
        rearrange(self, rank - 3..rank, &[c, r, r, h, w], &[0, 3, 1, 4, 2], &merged, at)
    }

    /// Turns each block of r times r pixels of one channel into r² channels, where r is `downscale_factor`: `[…, c, h · r, w · r]` becomes
    /// `[…, c · r², h, w]`. This is the inverse of [`pixel_shuffle`](Self::pixel_shuffle). Refuses fewer than three dimensions, factor 0,
    /// and a height or a width that is no multiple of the factor. PyTorch: `nn.functional.pixel_unshuffle`.
    fn try_pixel_unshuffle(&self, downscale_factor: usize) -> Result<Self> {
        let (shape, r, at) = (self.shape(), downscale_factor, Site::here("pixel_unshuffle"));
        let rank = shape.rank();
        ensure!(
            rank >= 3,
            at,
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {rank} dimension(s)"
        );
        ensure!(r > 0, at, "pixel_unshuffle expects a positive downscale_factor, but got 0");
        for (name, back) in [("height", 2), ("width", 1)] {
            let size = shape[rank - back];
            ensure!(
                size.is_multiple_of(r),
                at,
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size(-{back})={size} is not \
                 divisible by {r}"
            );
        }
        let (c, h, w) = (shape[rank - 3], shape[rank - 2] / r, shape[rank - 1] / r);
        let merged = [c.saturating_mul(r).saturating_mul(r), h, w];
        rearrange(self, rank - 3..rank, &[c, h, r, w, r], &[0, 2, 4, 1, 3], &merged, at)
    }

    /// Divides the channels of `[n, c, …]` into `groups`. Returns the first channels of all groups, then all second channels, and so on.
    /// Refuses fewer than three dimensions, 0 groups, and a number of channels that is no multiple of `groups`. PyTorch:
    /// `nn.functional.channel_shuffle`.
    fn try_channel_shuffle(&self, groups: usize) -> Result<Self> {
        let (shape, at) = (self.shape(), Site::here("channel_shuffle"));
        ensure!(shape.rank() > 2, at, "channel_shuffle expects input with > 2 dims, but got input with sizes {shape}");
        ensure!(groups > 0, at, "Number of groups to divide channels in must be positive. Value of groups:0");
        let channels = shape[1];
        ensure!(
            channels.is_multiple_of(groups),
            at,
            "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        );
        rearrange(self, 1..2, &[groups, channels / groups], &[1, 0], &[channels], at)
    }
}

/// Splits the dimensions `range` into dimensions of sizes `split`, permutes these by `order`, and merges them into dimensions of sizes
/// `merged`.
fn rearrange<A: TensorLike>(
    x: &A,
    range: Range<usize>,
    split: &[usize],
    order: &[usize],
    merged: &[usize],
    at: Site,
) -> Result<A> {
    let (shape, start) = (x.shape(), range.start);
    let target = shape.replaced(range.clone(), merged);
    addressable::<A::Elem>(&target, at)?;
    let split = shape.replaced(range, split);
    let moved = start..start + order.len();
    let order: Vec<usize> =
        (0..start).chain(order.iter().map(|axis| start + axis)).chain(moved.end..split.rank()).collect();
    x.reshape_to(split, at)?.permute_to(&order, at)?.reshape_to(target, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn shuffles_of_batches_and_of_nothing() {
        let x = Tensor::<f64>::arange(16).reshape([2, 2, 2, 2]);
        let channels = x.pixel_unshuffle(2);
        assert_eq!(channels, Tensor::<f64>::arange(16).reshape([2, 8, 1, 1]));
        assert_eq!(channels.pixel_shuffle(2), x);
        assert_eq!(Tensor::<f64>::zeros([0, 4, 1, 2]).pixel_shuffle(2).shape(), &[0, 1, 2, 4]);
        assert_eq!(Tensor::<f64>::zeros([1, 0, 2, 1]).channel_shuffle(3).shape(), &[1, 0, 2, 1]);
        let x = Tensor::<f64>::arange(12).reshape([1, 6, 2, 1]);
        assert_eq!(x.channel_shuffle(3).to_vec(), [0., 1., 4., 5., 8., 9., 2., 3., 6., 7., 10., 11.]);
        assert!(Tensor::<f64>::zeros([0, 1, 1]).try_pixel_shuffle(usize::MAX).is_err());
    }
}
