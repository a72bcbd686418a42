//! Convolutional layers.

use wengert_autograd::{Parameter, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{ConvOptions, Convolution as _};

use crate::Result;
use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;

/// A convolution over sequences, from `[n, in, l]` to `[n, out, l']`, for n sequences with `in` input and `out` output channels. The length
/// is l before and l' after the layer. PyTorch: `torch.nn.Conv1d`.
pub type Conv1d<T = f32> = Conv<1, T>;

/// A convolution over images, from `[n, in, h, w]` to `[n, out, h', w']`, for n images with `in` input and `out` output channels. The
/// height and width are h and w before, and h' and w' after the layer. PyTorch: `torch.nn.Conv2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Conv2d, Generator, Layer};
///
/// let generator = &mut Generator::new(0);
/// let layer = Conv2d::<f32>::new(1, 8, 5, generator);
/// let halving: Conv2d = Conv2d::builder(8, 16, 3).stride(2).padding(1).build(generator);
/// let tape = Tape::new();
/// let maps = halving.forward(layer.forward(tape.constant(&Tensor::zeros([64, 1, 28, 28]))));
/// assert_eq!(maps.shape(), [64, 16, 12, 12]);
/// ```
pub type Conv2d<T = f32> = Conv<2, T>;

/// A convolution over volumes, from `[n, in, d, h, w]` to `[n, out, d', h', w']`, for n volumes with `in` input and `out` output channels.
/// Depth, height and width are d, h and w before, and d', h' and w' after the layer. PyTorch: `torch.nn.Conv3d`.
pub type Conv3d<T = f32> = Conv<3, T>;

/// A convolution over `D` dimensions (1 to 3): [`Conv1d`], [`Conv2d`], [`Conv3d`]. An input may also lack the batch dimension. The layout of the
/// weight and the distribution of the initial parameters are PyTorch's.
#[derive(Clone, Debug, Module)]
pub struct Conv<const D: usize, T: Float = f32> {
    /// The weight, `[out, in / groups, …window]`, for `in` input and `out` output channels.
    pub weight: Parameter<T>,
    /// The bias, `[out]`, for `out` output channels. `None` if the layer has no bias.
    pub bias: Option<Parameter<T>>,
    /// The stride, padding, padding mode, dilation and groups of the convolution.
    #[module(skip)]
    pub options: ConvOptions,
}

impl<const D: usize, T: Float> Layer<T> for Conv<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        let weight = tape.try_parameter(&self.weight)?;
        let bias = optional_parameter(tape, self.bias.as_ref())?;
        let (bias, options) = (bias.as_ref(), &self.options);
        let y = match D {
            1 => x.try_conv1d(&weight, bias, options),
            2 => x.try_conv2d(&weight, bias, options),
            _ => x.try_conv3d(&weight, bias, options),
        };
        output_of(self, y, self.weight.created_at(), || {
            format!("Conv{D}d with a weight of shape {} on an input of shape {}", self.weight.value.shape(), x.shape())
        })
    }
}
