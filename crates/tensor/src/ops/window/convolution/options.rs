//! The options of a convolution.

use crate::Sizes;
use crate::ops::PadMode;

/// The options of a convolution. A size is one value for all dimensions, or one per dimension.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let half_size = ConvOptions::default().stride(2).padding([1, 1]);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ConvOptions {
    pub(crate) stride: Sizes,
    /// The padding on both sides. `None` means the padding that keeps the size of the input.
    pub(crate) padding: Option<Sizes>,
    pub(crate) padding_mode: PadMode,
    pub(crate) dilation: Sizes,
    pub(crate) groups: usize,
    pub(crate) output_padding: Sizes,
}

impl Default for ConvOptions {
    /// Returns the options with stride 1, no padding, dilation 1 and one group.
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
    /// Sets the distance between neighbouring windows.
    pub fn stride(self, stride: impl Into<Sizes>) -> Self {
        ConvOptions { stride: stride.into(), ..self }
    }

    /// Sets the number of elements added at each end of each convolved dimension of the input. The added elements are zeros unless
    /// [`padding_mode`](Self::padding_mode) is set. A transposed convolution instead removes as many elements at each end of the result.
    pub fn padding(self, padding: impl Into<Sizes>) -> Self {
        ConvOptions { padding: Some(padding.into()), ..self }
    }

    /// Pads so that the result has the size of the input. If the total padding of a dimension is odd, the end of the dimension gets one
    /// element more. Requires stride 1. Transposed convolutions refuse this padding. PyTorch: `padding='same'`.
    pub fn same(self) -> Self {
        ConvOptions { padding: None, ..self }
    }

    /// Sets the values of the padding; zeros by default. Transposed convolutions only support zeros. PyTorch: `padding_mode`
    /// of the layers.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::{ConvOptions, Convolution, PadMode};
    /// use wengert::prelude::*;
    ///
    /// let (signal, sums) = (Tensor::from([[1.0, 2.0, 4.0]]), Tensor::from([[[1.0, 1.0, 1.0]]]));
    /// let circular = ConvOptions::default().padding(1).padding_mode(PadMode::Circular);
    /// assert_eq!(signal.conv1d(&sums, None, &circular).to_vec(), [7.0, 7.0, 7.0]);
    /// ```
    pub fn padding_mode(self, padding_mode: PadMode) -> Self {
        ConvOptions { padding_mode, ..self }
    }

    /// Sets the distance between neighbouring elements of a window.
    pub fn dilation(self, dilation: impl Into<Sizes>) -> Self {
        ConvOptions { dilation: dilation.into(), ..self }
    }

    /// Sets the number of groups of channels, which are convolved separately. One group per channel is a depthwise convolution.
    pub fn groups(self, groups: usize) -> Self {
        ConvOptions { groups, ..self }
    }

    /// Sets the number of elements that a transposed convolution adds at the end of each dimension of the result. The number must be smaller
    /// than the larger of stride and dilation. Other convolutions ignore it.
    pub fn output_padding(self, output_padding: impl Into<Sizes>) -> Self {
        ConvOptions { output_padding: output_padding.into(), ..self }
    }
}
