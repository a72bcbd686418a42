//! The settings of convolutional layers, and the initial values of their parameters.

use wengert_autograd::Parameter;
use wengert_tensor::ops::{ConvOptions, PadMode};
use wengert_tensor::{Float, Generator, Sizes, Tensor};

use crate::layers::convolution::conv::Conv;
use crate::layers::convolution::transposed::ConvTranspose;

/// The settings of a convolutional layer, a [`Conv`] or a `TRANSPOSED` one, before it is built.
#[derive(Clone, Debug)]
pub struct ConvBuilder<const D: usize, const TRANSPOSED: bool = false> {
    channels: [usize; 2],
    kernel: [usize; D],
    bias: bool,
    groups: usize,
    options: ConvOptions,
}

impl<const D: usize, T: Float> Conv<D, T> {
    /// A layer from `in_channels` to `out_channels` by windows of `kernel` in each dimension, with stride 1, no padding and one
    /// group; [`builder`](Self::builder) has the rest. Weight and bias are drawn from U(-1/√n, 1/√n), n = in / groups times the
    /// size of the window, as in PyTorch.
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
    /// The settings of a layer from `in_channels` to `out_channels` by windows of `kernel` in each dimension, of
    /// any element type: [`ConvBuilder::build`] decides.
    pub fn builder(in_channels: usize, out_channels: usize, kernel: usize) -> ConvBuilder<D> {
        ConvBuilder::new(in_channels, out_channels, kernel)
    }
}

impl<const D: usize, T: Float> ConvTranspose<D, T> {
    /// A layer from `in_channels` to `out_channels` by windows of `kernel` in each dimension, with stride 1, no padding and one
    /// group; [`builder`](ConvTranspose::builder) has the rest. Weight and bias are drawn from U(-1/√n, 1/√n), n = out / groups
    /// times the size of the window, as in PyTorch.
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
    /// The settings of a layer from `in_channels` to `out_channels` by windows of `kernel` in each dimension, of
    /// any element type: [`ConvBuilder::build`] decides.
    pub fn builder(in_channels: usize, out_channels: usize, kernel: usize) -> ConvBuilder<D, true> {
        ConvBuilder::new(in_channels, out_channels, kernel)
    }
}

impl<const D: usize, const TRANSPOSED: bool> ConvBuilder<D, TRANSPOSED> {
    pub(crate) fn new(in_channels: usize, out_channels: usize, kernel: usize) -> Self {
        let (channels, options) = ([in_channels, out_channels], ConvOptions::default());
        ConvBuilder { channels, kernel: [kernel; D], bias: true, groups: 1, options }
    }

    /// With a window of these sizes.
    #[must_use]
    pub fn kernel(self, kernel: [usize; D]) -> Self {
        ConvBuilder { kernel, ..self }
    }

    /// With this distance from one window to the next; 1 by default.
    #[must_use]
    pub fn stride(self, stride: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.stride(stride), ..self }
    }

    /// With this many zeros on both sides, or as many of what the padding mode says; 0 by default.
    #[must_use]
    pub fn padding(self, padding: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.padding(padding), ..self }
    }

    /// With this distance from one element of a window to the next; 1 by default.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.dilation(dilation), ..self }
    }

    /// With groups of channels that do not see each other; as many as channels make a depthwise convolution. Both numbers of
    /// channels must be divisible by it, or the first forward pass is an error.
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        ConvBuilder { groups, options: self.options.groups(groups), ..self }
    }

    /// With or without a bias; with by default.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        ConvBuilder { bias, ..self }
    }

    /// Weight and bias for the channels `[own, other]` of the weight, of which the second is divided by the groups: from
    /// U(-1/√n, 1/√n), n being the number of weights of each of the first.
    #[track_caller]
    fn drawn<T: Float>(
        &self,
        [own, other]: [usize; 2],
        generator: &mut Generator,
    ) -> (Parameter<T>, Option<Parameter<T>>) {
        let sizes: Vec<usize> = [own, other / self.groups.max(1)].into_iter().chain(self.kernel).collect();
        let n = sizes[1..].iter().product::<usize>();
        let bound = if n == 0 { 0.0 } else { 1.0 / (n as f64).sqrt() };
        let weight = Parameter::new(Tensor::uniform(-bound, bound, &sizes[..], generator));
        let bias = Tensor::uniform(-bound, bound, [self.channels[1]], generator);
        (weight, if self.bias { Some(Parameter::new(bias)) } else { None })
    }
}

impl<const D: usize> ConvBuilder<D> {
    /// With as many zeros as make the result as large as the input; stride 1 only. PyTorch: `padding='same'`.
    #[must_use]
    pub fn same(self) -> Self {
        ConvBuilder { options: self.options.same(), ..self }
    }

    /// With another padding than zeros: the input mirrored, its border element, or its other end. PyTorch: `padding_mode`, where
    /// [`PadMode::Constant`] of 0 is `"zeros"`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Conv1d, Generator, Layer, PadMode};
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

    /// The layer.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> Conv<D, T> {
        let [inputs, outputs] = self.channels;
        let (weight, bias) = self.drawn([outputs, inputs], generator);
        Conv { weight, bias, options: self.options }
    }
}

impl<const D: usize> ConvBuilder<D, true> {
    /// With so much more at the end of each dimension of the result, less than the stride or the dilation; 0 by default. It tells
    /// apart the sizes that a convolution maps to one.
    #[must_use]
    pub fn output_padding(self, output_padding: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.output_padding(output_padding), ..self }
    }

    /// The layer.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> ConvTranspose<D, T> {
        let (weight, bias) = self.drawn(self.channels, generator);
        ConvTranspose { weight, bias, options: self.options }
    }
}
