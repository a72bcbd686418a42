//! How a pooling's window moves.

use crate::Sizes;

/// How the window moves. Sizes are one number for all dimensions or one for each.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub(crate) stride: Option<Sizes>,
    pub(crate) padding: Sizes,
    pub(crate) dilation: Sizes,
    pub(crate) ceil_mode: bool,
    pub(crate) count_include_pad: bool,
    pub(crate) divisor_override: Option<usize>,
}

impl Default for PoolOptions {
    /// Windows side by side (stride = kernel), no padding, dilation 1.
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
    /// The distance from one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// Elements put on both sides, at most half a kernel: zeros for means, -∞ for maxima.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
        self.padding = padding.into();
        self
    }

    /// From one element of a window to the next; maxima only.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// Whether a last window that begins inside counts though it ends outside.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    /// Whether a mean divides by the padded elements of its window too (what lies beyond the padding never counts).
    #[must_use]
    pub fn count_include_pad(mut self, count_include_pad: bool) -> Self {
        self.count_include_pad = count_include_pad;
        self
    }

    /// What a mean divides by instead of the number of elements.
    #[must_use]
    pub fn divisor_override(mut self, divisor: usize) -> Self {
        self.divisor_override = Some(divisor);
        self
    }
}
