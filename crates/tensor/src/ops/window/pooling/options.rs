//! The options of pooling.

use crate::Sizes;

/// The options of a pooling. A size is one value for all dimensions, or one per dimension.
#[derive(Clone, Debug)]
#[must_use]
pub struct PoolOptions {
    pub(crate) stride: Option<Sizes>,
    pub(crate) padding: Sizes,
    pub(crate) dilation: Sizes,
    pub(crate) ceil_mode: bool,
    pub(crate) count_include_pad: bool,
    pub(crate) divisor_override: Option<usize>,
}

impl Default for PoolOptions {
    /// Returns the options with adjacent windows (the stride is the kernel size), no padding and dilation 1. The divisor of a mean includes
    /// the padding.
    fn default() -> Self {
        PoolOptions {
            stride: None,
            padding: Sizes::from(0),
            dilation: Sizes::from(1),
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

impl PoolOptions {
    /// Sets the distance between neighbouring windows.
    pub fn stride(self, stride: impl Into<Sizes>) -> Self {
        PoolOptions { stride: Some(stride.into()), ..self }
    }

    /// Sets the number of elements added at each end of each pooled dimension: zeros for means, -∞ for maxima. The number is at most half the
    /// kernel size k. In two and three dimensions with dilation d, it is at most half of d (k - 1) + 1.
    pub fn padding(self, padding: impl Into<Sizes>) -> Self {
        PoolOptions { padding: padding.into(), ..self }
    }

    /// Sets the distance between neighbouring elements of a window. Mean pooling and the inverse of maximum pooling ignore it.
    pub fn dilation(self, dilation: impl Into<Sizes>) -> Self {
        PoolOptions { dilation: dilation.into(), ..self }
    }

    /// Sets whether the result includes a last window that starts inside the input, or in the padding before it, but ends beyond the
    /// padding after it.
    pub fn ceil_mode(self, ceil_mode: bool) -> Self {
        PoolOptions { ceil_mode, ..self }
    }

    /// Sets whether the divisor of a mean includes the padding in its window. Elements of a window that lie beyond the padding never count.
    pub fn count_include_pad(self, count_include_pad: bool) -> Self {
        PoolOptions { count_include_pad, ..self }
    }

    /// Sets the divisor of the means, in place of the number of elements of each window. Mean pooling refuses 0.
    pub fn divisor_override(self, divisor: usize) -> Self {
        PoolOptions { divisor_override: Some(divisor), ..self }
    }
}
