//! The shapes of the two steps of a pooling over volumes. The first step pools planes, and the second step pools along the depth.

use crate::ops::{Compose, Result, TensorLike};
use crate::{Shape, Site};

/// The sizes of volumes `[n, c, d, h, w]`: n examples of c channels, depth d, height h and width w.
pub(super) struct Volume {
    sizes: [usize; 5],
}

impl Volume {
    /// Returns the sizes of an array of five dimensions.
    pub(super) fn new(shape: &Shape) -> Self {
        Volume { sizes: std::array::from_fn(|axis| shape[axis]) }
    }

    /// Returns the volumes `x` as planes, `[n, c·d, h, w]`.
    pub(super) fn to_planes<A: TensorLike>(&self, x: &A, at: Site) -> Result<A> {
        let [n, c, d, h, w] = self.sizes;
        x.reshape_to([n, c.saturating_mul(d), h, w], at)
    }

    /// Returns pooled planes `x` of sizes h' and w' in the shape `[n, c, d, h'·w']`, to pool them along the depth d.
    pub(super) fn to_lines<A: TensorLike>(&self, x: &A, [h, w]: [usize; 2], at: Site) -> Result<A> {
        let [n, c, d, ..] = self.sizes;
        x.reshape_to([n, c, d, area([h, w])], at)
    }

    /// Returns the results `x` of the pooling along the depth as volumes of depth d', height h' and width w'.
    pub(super) fn to_volumes<A: TensorLike>(&self, x: &A, d: usize, [h, w]: [usize; 2], at: Site) -> Result<A> {
        let [n, c, ..] = self.sizes;
        x.reshape_to([n, c, d, h, w], at)
    }
}

/// Returns the number of elements of a plane, or `usize::MAX` if the product overflows. Only an array without elements can have planes of
/// this size.
pub(super) fn area([h, w]: [usize; 2]) -> usize {
    h.saturating_mul(w)
}
