//! Convolutional layers.

use wengert_autograd::{Parameter, Var};
use wengert_tensor::ops::{ConvOptions, Convolution as _};
use wengert_tensor::{Float, Sizes, Tensor};

use crate::layers::layer::{Layer, in_layer, optional};
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

/// The settings of a convolutional layer before it is built.
#[derive(Clone, Debug)]
pub struct ConvBuilder<const D: usize> {
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
        let (channels, options) = ([in_channels, out_channels], ConvOptions::default());
        ConvBuilder { channels, kernel: [kernel; D], bias: true, groups: 1, options }
    }
}

impl<const D: usize> ConvBuilder<D> {
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

    /// With this many zeros on both sides; 0 by default.
    #[must_use]
    pub fn padding(self, padding: impl Into<Sizes>) -> Self {
        ConvBuilder { options: self.options.padding(padding), ..self }
    }

    /// With as many zeros as make the result as large as the input; stride 1 only. PyTorch: `padding='same'`.
    #[must_use]
    pub fn same(self) -> Self {
        ConvBuilder { options: self.options.same(), ..self }
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

    /// The layer.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn build<T: Float>(self, generator: &mut Generator) -> Conv<D, T> {
        let [inputs, outputs] = self.channels;
        let per_group = inputs / self.groups.max(1);
        let sizes: Vec<usize> = [outputs, per_group].into_iter().chain(self.kernel).collect();
        let n = sizes[1..].iter().product::<usize>();
        let bound = if n == 0 { 0.0 } else { 1.0 / (n as f64).sqrt() };
        let weight = Parameter::new(Tensor::uniform(-bound, bound, &sizes[..], generator));
        let bias = Tensor::uniform(-bound, bound, [outputs], generator);
        let bias = if self.bias { Some(Parameter::new(bias)) } else { None };
        Conv { weight, bias, options: self.options }
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
        in_layer(y, self.weight.made(), || {
            format!("Conv{D}d with a weight of shape {} on an input of shape {}", self.weight.value.shape(), x.shape())
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;

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
}
