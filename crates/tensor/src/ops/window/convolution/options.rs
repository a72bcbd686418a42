//! How a convolution's window moves.

use crate::Sizes;
use crate::ops::shape::padding::PadMode;

/// How the window moves. Sizes are one number for all dimensions or one for each.
///
/// ```
/// use wengert_tensor::ops::ConvOptions;
///
/// let halving = ConvOptions::default().stride(2).padding([1, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct ConvOptions {
    pub(crate) stride: Sizes,
    /// `None` keeps the size of the input.
    pub(crate) padding: Option<Sizes>,
    pub(crate) padding_mode: PadMode,
    pub(crate) dilation: Sizes,
    pub(crate) groups: usize,
    pub(crate) output_padding: Sizes,
}

impl Default for ConvOptions {
    /// Stride 1, no padding, dilation 1, one group.
    fn default() -> Self {
        ConvOptions {
            stride: Sizes::from(1),
            padding: Some(Sizes::from(0)),
            padding_mode: PadMode::Constant(0.0),
            dilation: Sizes::from(1),
            groups: 1,
            output_padding: Sizes::from(0),
        }
    }
}

impl ConvOptions {
    /// The distance from one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.stride = stride.into();
        self
    }

    /// Zeros, or what [`padding_mode`](Self::padding_mode) says, on both sides.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
        self.padding = Some(padding.into());
        self
    }

    /// As many zeros as make the result as large as the input; where they are odd in number, one more at the end. Stride 1
    /// only. PyTorch: `padding='same'`.
    #[must_use]
    pub fn same(mut self) -> Self {
        self.padding = None;
        self
    }

    /// What the padding is; zeros by default. Transposed convolutions take zeros only. PyTorch: `padding_mode` of the layers.
    ///
    /// ```
    /// use wengert_tensor::ops::{ConvOptions, Convolution, PadMode};
    /// use wengert_tensor::prelude::*;
    ///
    /// let (signal, sums) = (Tensor::from([[1.0, 2.0, 4.0]]), Tensor::from([[[1.0, 1.0, 1.0]]]));
    /// let circular = ConvOptions::default().padding(1).padding_mode(PadMode::Circular);
    /// assert_eq!(signal.conv1d(&sums, None, &circular).to_vec(), [7.0, 7.0, 7.0]);
    /// ```
    #[must_use]
    pub fn padding_mode(mut self, padding_mode: PadMode) -> Self {
        self.padding_mode = padding_mode;
        self
    }

    /// The distance from one element of a window to the next.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// Groups of channels that do not see each other; as many as channels make a depthwise convolution.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }

    /// Of a transposed convolution: how much larger the result is at the end. Smaller than stride or dilation.
    #[must_use]
    pub fn output_padding(mut self, output_padding: impl Into<Sizes>) -> Self {
        self.output_padding = output_padding.into();
        self
    }
}
