//! Convolutional layers.

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::{ConvOptions, Convolution as _, PadMode};
use wengert_tensor::{Float, Sizes, Tensor};

use crate::layers::layer::{Layer, optional, output_of};
use crate::module::Module;
use crate::{Generator, Result};

/// Convolution over sequences, `[n, in, l]` to `[n, out, l']`. PyTorch: `torch.nn.Conv1d`.
pub type Conv1d<T = f32> = Conv<1, T>;

/// Convolution over images, `[n, in, h, w]` to `[n, out, h', w']`. PyTorch: `torch.nn.Conv2d`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Conv2d, Generator, Layer};
///
/// let generator = &mut Generator::new(0);
/// let layer = Conv2d::<f32>::new(1, 8, 5, generator);
/// let halving: Conv2d = Conv2d::builder(8, 16, 3).stride(2).padding(1).build(generator);
/// let tape = Tape::new();
/// let maps = halving.forward(layer.forward(tape.constant(&Tensor::zeros([64, 1, 28, 28]))));
/// assert_eq!(maps.shape(), [64, 16, 12, 12]);
/// ```
pub type Conv2d<T = f32> = Conv<2, T>;

/// Convolution over volumes, `[n, in, d, h, w]` to `[n, out, d', h', w']`. PyTorch: `torch.nn.Conv3d`.
pub type Conv3d<T = f32> = Conv<3, T>;

/// Convolution over `D` dimensions (1 to 3): [`Conv1d`], [`Conv2d`], [`Conv3d`]. The batch dimension of an input may be left out.
/// Layout of the weight and initial distribution are PyTorch's.
#[derive(Clone, Debug, Module)]
pub struct Conv<const D: usize, T: Float = f32> {
    /// `[out, in / groups, …]` and the sizes of the window.
    pub weight: Parameter<T>,
    /// `[out]`.
    pub bias: Option<Parameter<T>>,
    /// Stride, padding, dilation and groups.
    #[module(skip)]
    pub options: ConvOptions,
}

/// The adjoint of a convolution over sequences, `[n, in, l]` to `[n, out, l']`. PyTorch: `torch.nn.ConvTranspose1d`.
pub type ConvTranspose1d<T = f32> = ConvTranspose<1, T>;

/// The adjoint of a convolution over images, `[n, in, h, w]` to `[n, out, h', w']`. PyTorch: `torch.nn.ConvTranspose2d`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{ConvTranspose2d, Generator, Layer};
///
/// let builder = ConvTranspose2d::builder(16, 8, 3).stride(2).padding(1).output_padding(1);
/// let doubling: ConvTranspose2d = builder.build(&mut Generator::new(0));
/// let tape = Tape::new();
/// let maps = doubling.forward(tape.constant(&Tensor::zeros([64, 16, 7, 7])));
/// assert_eq!(maps.shape(), [64, 8, 14, 14]);
/// ```
pub type ConvTranspose2d<T = f32> = ConvTranspose<2, T>;

/// The adjoint of a convolution over volumes, `[n, in, d, h, w]` to `[n, out, d', h', w']`. PyTorch: `torch.nn.ConvTranspose3d`.
pub type ConvTranspose3d<T = f32> = ConvTranspose<3, T>;

/// The adjoint of a convolution over `D` dimensions (1 to 3): [`ConvTranspose1d`], [`ConvTranspose2d`], [`ConvTranspose3d`]. The batch
/// dimension of an input may be left out. Layout of the weight and initial distribution are PyTorch's.
#[derive(Clone, Debug, Module)]
pub struct ConvTranspose<const D: usize, T: Float = f32> {
    /// `[in, out / groups, …]` and the sizes of the window.
    pub weight: Parameter<T>,
    /// `[out]`.
    pub bias: Option<Parameter<T>>,
    /// Stride, padding, dilation, groups and output padding.
    #[module(skip)]
    pub options: ConvOptions,
}

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

impl<const D: usize, T: Float> Layer<T> for Conv<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        let weight = tape.try_parameter(&self.weight)?;
        let bias = optional(tape, self.bias.as_ref())?;
        let (bias, options) = (bias.as_ref(), &self.options);
        let y = match D {
            1 => x.try_conv1d(&weight, bias, options),
            2 => x.try_conv2d(&weight, bias, options),
            _ => x.try_conv3d(&weight, bias, options),
        };
        output_of(self, y, self.weight.made(), || {
            format!("Conv{D}d with a weight of shape {} on an input of shape {}", self.weight.value.shape(), x.shape())
        })
    }
}

impl<const D: usize, T: Float> Layer<T> for ConvTranspose<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let weight = x.tape().try_parameter(&self.weight)?;
        let bias = optional(x.tape(), self.bias.as_ref())?;
        let (bias, options) = (bias.as_ref(), &self.options);
        let y = match D {
            1 => x.try_conv_transpose1d(&weight, bias, options),
            2 => x.try_conv_transpose2d(&weight, bias, options),
            _ => x.try_conv_transpose3d(&weight, bias, options),
        };
        output_of(self, y, self.weight.made(), || {
            let weight = self.weight.value.shape();
            format!("ConvTranspose{D}d with a weight of shape {weight} on an input of shape {}", x.shape())
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::check::{input, layer_gradients};

    #[test]
    fn values_and_gradients_are_those_of_the_definition() {
        let layer = Conv2d::<f64> {
            weight: Parameter::new(Tensor::from([[[[1.0, 2.0], [3.0, 4.0]]]])),
            bias: Some(Parameter::new(Tensor::from([10.0]))),
            options: ConvOptions::default().stride(2).padding(1),
        };
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([[[1.0, 2.0], [3.0, 5.0]]]));
        let y = layer.forward(x);
        assert_eq!(y.value(), Tensor::from([[[14.0, 16.0], [16.0, 15.0]]]));
        let gradients = (y * &Tensor::from([[[1.0, 10.0], [100.0, 1000.0]]])).sum(..).backward();
        // Each corner of the image lies under one tap of one window.
        assert_eq!(gradients.of(x), &Tensor::from([[[4.0, 30.0], [200.0, 1000.0]]]));
        assert_eq!(gradients.of(&layer.weight).to_vec(), [5000.0, 300.0, 20.0, 1.0]);
        assert_eq!(gradients.of(layer.bias.as_ref().unwrap()).to_vec(), [1111.0]);
    }

    #[test]
    fn names_shapes_and_bounds() {
        let builder = Conv2d::builder(4, 6, 3).kernel([3, 5]).groups(2).dilation(2);
        let layer: Conv2d = builder.clone().build(&mut Generator::new(1));
        let paths: Vec<String> = layer.named_parameters().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight", "bias"]);
        assert_eq!(layer.weight.value.shape(), &[6, 2, 3, 5]);
        // Two channels of 15 taps.
        let bound = 1.0 / 30f32.sqrt();
        let values = || layer.weight.value.iter().chain(layer.bias.as_ref().unwrap().value.iter());
        assert!(
            values().all(|w| w.abs() <= bound)
                && values().any(|w| w < -0.8 * bound)
                && values().any(|w| w > 0.8 * bound)
        );
        let tape = Tape::new();
        assert_eq!(layer.forward(tape.constant(&Tensor::zeros([4, 9, 9]))).shape(), [6, 5, 1]);
        let without: Conv2d = builder.bias(false).build(&mut Generator::new(1));
        assert_eq!(without.parameters().len(), 1);
    }

    #[test]
    fn transposed_ones_spread_each_element_over_a_window() {
        let mut layer: ConvTranspose1d<f64> = ConvTranspose1d::builder(1, 1, 3).stride(2).build(&mut Generator::new(1));
        layer.weight.value = Tensor::from([[[1.0, 10.0, 100.0]]]);
        layer.bias.as_mut().unwrap().value = Tensor::from([0.5]);
        let y = layer.forward(Tape::new().constant(&Tensor::from([[1.0, 2.0]]))).value();
        assert_eq!(y.to_vec(), [1.5, 10.5, 102.5, 20.5, 200.5]);
    }

    #[test]
    fn transposed_shapes_bounds_and_gradients() {
        let builder = ConvTranspose2d::builder(4, 6, 3).groups(2).stride(2).padding(1).output_padding([1, 0]);
        let layer: ConvTranspose2d<f64> = builder.clone().build(&mut Generator::new(1));
        assert_eq!(layer.weight.value.shape(), &[4, 3, 3, 3]);
        // Three channels of 9 taps.
        let bound = 1.0 / 27f64.sqrt();
        let values = layer.to_vector();
        assert!(values.iter().all(|w| w.abs() <= bound));
        assert!(values.iter().any(|w| w < -0.8 * bound) && values.iter().any(|w| w > 0.8 * bound));
        let tape = Tape::new();
        let y = layer.forward(tape.constant(&input([4, 2, 3])));
        assert_eq!(y.shape(), [6, 4, 5]);
        assert_eq!(builder.bias(false).build::<f32>(&mut Generator::new(1)).parameters().len(), 1);
        let generator = &mut Generator::new(1);
        layer_gradients(ConvTranspose2d::builder(2, 2, 2).groups(2).build(generator), &input([1, 2, 2, 3]));
        layer_gradients(ConvTranspose3d::new(2, 1, 2, generator), &input([2, 2, 1, 2]));
        for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
            layer_gradients(Conv2d::builder(2, 1, 3).padding(1).padding_mode(mode).build(generator), &input([2, 2, 3]));
        }
    }

    #[test]
    fn errors_name_the_transposed_layer() {
        let layer = ConvTranspose1d::<f64>::new(2, 3, 2, &mut Generator::new(1));
        let text = layer.try_forward(Tape::new().constant(&Tensor::ones([1, 3, 4]))).unwrap_err().to_string();
        let named =
            "in the layer ConvTranspose1d with a weight of shape [2, 3, 2] on an input of shape [1, 3, 4], made at";
        assert!(text.contains(named), "{text}");
    }
}
