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
    /// Returns the options with adjacent windows (the stride is the kernel size), no padding and dilation 1.
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
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// Sets the number of elements added on both sides, at most half the kernel: zeros for means, -∞ for maxima.
    pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
        self.padding = padding.into();
        self
    }

    /// Sets the distance between neighbouring elements of a window. Only for maximum pooling.
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// Sets whether the result includes a last window that starts inside the input but ends outside.
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    /// Sets whether the divisor of a mean includes the padding in its window. Elements beyond the padding never count.
    pub fn count_include_pad(mut self, count_include_pad: bool) -> Self {
        self.count_include_pad = count_include_pad;
        self
    }

    /// Sets the divisor of the means, in place of the number of elements.
    pub fn divisor_override(mut self, divisor: usize) -> Self {
        self.divisor_override = Some(divisor);
        self
    }
}
