//! The settings of convolutional layers, and the initial values of their parameters.

use wengert_autograd::Parameter;
use wengert_tensor::ops::{ConvOptions, PadMode};
use wengert_tensor::{Float, Generator, Sizes, Tensor};

use crate::layers::convolution::conv::Conv;
use crate::layers::convolution::transposed::ConvTranspose;

/// The settings of a [`Conv`], or of a [`ConvTranspose`] if `TRANSPOSED` is true, before the layer is built.
#[derive(Clone, Debug)]
pub struct ConvBuilder<const D: usize, const TRANSPOSED: bool = false> {
    channels: [usize; 2],
    kernel: [usize; D],
    bias: bool,
    groups: usize,
    options: ConvOptions,
}

impl<const D: usize, T: Float> Conv<D, T> {
    /// Returns a layer from `in_channels` to `out_channels`, with windows of size `kernel` in each dimension, stride 1, no padding and one
    /// group. [`builder`](Self::builder) gives a builder for other settings. As in PyTorch, weight and bias are drawn uniformly from -1/√n to
    /// 1/√n, where n is `in_channels` times the number of elements of a window.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize, generator: &mut Generator) -> Self {
        Conv::<D, f32>::builder(in_channels, out_channels, kernel).build(generator)
    }
}

impl<const D: usize> Conv<D, f32> {
    /// Returns the settings of a layer from `in_channels` to `out_channels`, with windows of size `kernel` in each
    /// dimension. [`ConvBuilder::build`] chooses the element type.
    pub fn builder(in_channels: usize, out_channels: usize, kernel: usize) -> ConvBuilder<D> {
        ConvBuilder::new(in_channels, out_channels, kernel)
    }
}

impl<const D: usize, T: Float> ConvTranspose<D, T> {
    /// Returns a layer from `in_channels` to `out_channels`, with windows of size `kernel` in each dimension, stride 1, no padding and one
    /// group. [`builder`](ConvTranspose::builder) gives a builder for other settings. As in PyTorch, weight and bias are drawn uniformly from
    /// -1/√n to 1/√n, where n is `out_channels` times the number of elements of a window.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize, generator: &mut Generator) -> Self {
        ConvTranspose::<D, f32>::builder(in_channels, out_channels, kernel).build(generator)
    }
}

impl<const D: usize> ConvTranspose<D, f32> {
    /// Returns the settings of a layer from `in_channels` to `out_channels`, with windows of size `kernel` in each
    /// dimension. [`ConvBuilder::build`] chooses the element type.
    pub fn builder(in_channels: usize, out_channels: usize, kernel: usize) -> ConvBuilder<D, true> {
        ConvBuilder::new(in_channels, out_channels, kernel)
    }
}

impl<const D: usize, const TRANSPOSED: bool> ConvBuilder<D, TRANSPOSED> {
    /// Returns the default settings for these numbers of channels, and windows of size `kernel` in each dimension.
    pub(crate) fn new(in_channels: usize, out_channels: usize, kernel: usize) -> Self {
        let (channels, options) = ([in_channels, out_channels], ConvOptions::default());
        ConvBuilder { channels, kernel: [kernel; D], bias: true, groups: 1, options }
    }

    /// Sets the size of the window in each dimension.
    #[must_use]
    pub fn kernel(self, kernel: [usize; D]) -> Self {
        ConvBuilder { kernel, ..self }
    }

    /// Sets the distance from one window to the next, in elements of the input (of a transposed convolution: of the output); 1 by default.
    #[must_use]
    pub fn stride(self, stride: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.stride(stride), ..self }
    }

    /// Sets the number of elements that are added on each side of the input; 0 by default. These elements are zeros, unless
    /// [`padding_mode`](ConvBuilder::padding_mode) chooses others. (A transposed convolution removes as many elements from its output.)
    #[must_use]
    pub fn padding(self, padding: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.padding(padding), ..self }
    }

    /// Sets the distance in the input (of a transposed convolution: in the output) from one element of a window to the next; 1 by default.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.dilation(dilation), ..self }
    }

    /// Sets the number of groups of channels; 1 by default. An output channel depends only on the input channels of its group. A convolution
    /// with one group for each input channel is a depthwise convolution. The number must divide the number of input channels and the number
    /// of output channels.
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        ConvBuilder { groups, options: self.options.groups(groups), ..self }
    }

    /// Chooses whether the layer has a bias; true by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        ConvBuilder { bias, ..self }
    }

    /// Returns a random weight and a random bias (or none). The weight has the shape `[first, second / groups,
    /// …window]`. Both are drawn uniformly from -1/√n to 1/√n, where n is the number of weights for each index of the
    /// first dimension. Panics if the number of groups is 0 or does not divide the channels, or if there is not enough
    /// memory.
    #[track_caller]
    fn parameters<T: Float>(
        &self,
        [first, second]: [usize; 2],
        generator: &mut Generator,
    ) -> (Parameter<T>, Option<Parameter<T>>) {
        assert!(self.groups > 0, "groups must be a positive integer");
        for (name, channels) in ["in_channels", "out_channels"].into_iter().zip(self.channels) {
            assert!(channels.is_multiple_of(self.groups), "{name} must be divisible by groups");
        }
        let sizes: Vec<usize> = [first, second / self.groups].into_iter().chain(self.kernel).collect();
        let n = sizes[1..].iter().product::<usize>();
        let bound = if n == 0 { 0.0 } else { 1.0 / (n as f64).sqrt() };
        let weight = Parameter::new(Tensor::uniform(-bound, bound, &sizes[..], generator));
        let bias = Tensor::uniform(-bound, bound, [self.channels[1]], generator);
        (weight, if self.bias { Some(Parameter::new(bias)) } else { None })
    }
}

impl<const D: usize> ConvBuilder<D> {
    /// Pads the input so that the output has the size of the input. The stride must be 1. PyTorch: `padding='same'`.
    #[must_use]
    pub fn same(self) -> Self {
        ConvBuilder { options: self.options.same(), ..self }
    }

    /// Pads with other elements than zeros: the mirrored input, the input's border element, or the input's opposite end. PyTorch:
    /// `padding_mode`, where [`PadMode::Constant`] of 0 is `"zeros"`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Conv1d, Generator, Layer, PadMode};
    ///
    /// let builder = Conv1d::builder(1, 1, 3).padding(1).padding_mode(PadMode::Circular);
    /// let mut ring: Conv1d = builder.bias(false).build(&mut Generator::new(0));
    /// ring.weight.value = Tensor::from([[[1.0, 0.0, 0.0]]]);
    /// let tape = Tape::new();
    /// let y = ring.forward(tape.constant(&Tensor::from([[1.0, 2.0, 3.0]])));
    /// assert_eq!(y.value().to_vec(), [3.0, 1.0, 2.0]);
    /// ```
    #[must_use]
    pub fn padding_mode(self, padding_mode: PadMode) -> Self {
        ConvBuilder { options: self.options.padding_mode(padding_mode), ..self }
    }

    /// Builds the layer.
    ///
    /// # Panics
    ///
    /// If the number of [`groups`](Self::groups) is 0, or does not divide the number of input channels and of output channels. Also if there
    /// is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> Conv<D, T> {
        let [inputs, outputs] = self.channels;
        let (weight, bias) = self.parameters([outputs, inputs], generator);
        Conv { weight, bias, options: self.options }
    }
}

impl<const D: usize> ConvBuilder<D, true> {
    /// Sets the number of elements that are added at the end of each dimension of the output; 0 by default. It must be less than the stride
    /// or the dilation. A strided convolution maps several input sizes to the same output size. `output_padding` selects one of these input
    /// sizes as the output size of the transposed convolution.
    #[must_use]
    pub fn output_padding(self, output_padding: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.output_padding(output_padding), ..self }
    }

    /// Builds the layer.
    ///
    /// # Panics
    ///
    /// If the number of [`groups`](Self::groups) is 0, or does not divide the number of input channels and of output channels. Also if there
    /// is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> ConvTranspose<D, T> {
        let (weight, bias) = self.parameters(self.channels, generator);
        ConvTranspose { weight, bias, options: self.options }
    }
}
