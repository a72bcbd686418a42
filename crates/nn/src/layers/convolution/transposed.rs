//! Transposed convolutions: the adjoints of the convolutional layers.

use wengert_autograd::{Parameter, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{ConvOptions, Convolution as _};

use crate::Result;
use crate::layers::forward::{optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;

/// A transposed convolution over sequences, from `[n, in, l]` to `[n, out, l']`, for n sequences with `in` input and `out` output channels.
/// The length is l before and l' after the layer. PyTorch: `torch.nn.ConvTranspose1d`.
pub type ConvTranspose1d<T = f32> = ConvTranspose<1, T>;

/// A transposed convolution over images, from `[n, in, h, w]` to `[n, out, h', w']`, for n images with `in` input and `out` output
/// channels. The height and width are h and w before, and h' and w' after the layer. PyTorch: `torch.nn.ConvTranspose2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{ConvTranspose2d, Generator, Layer};
///
/// let builder = ConvTranspose2d::builder(16, 8, 3).stride(2).padding(1).output_padding(1);
/// let doubling: ConvTranspose2d = builder.build(&mut Generator::new(0));
/// let tape = Tape::new();
/// let maps = doubling.forward(tape.constant(&Tensor::zeros([64, 16, 7, 7])));
/// assert_eq!(maps.shape(), [64, 8, 14, 14]);
/// ```
pub type ConvTranspose2d<T = f32> = ConvTranspose<2, T>;

/// A transposed convolution over volumes, from `[n, in, d, h, w]` to `[n, out, d', h', w']`, for n volumes with `in` input and `out` output
/// channels. Depth, height and width are d, h and w before, and d', h' and w' after the layer. PyTorch: `torch.nn.ConvTranspose3d`.
pub type ConvTranspose3d<T = f32> = ConvTranspose<3, T>;

/// A transposed convolution, the adjoint of a convolution, over `D` dimensions (1 to 3): [`ConvTranspose1d`], [`ConvTranspose2d`],
/// [`ConvTranspose3d`]. An input may also lack the batch dimension. The layout of the weight and the distribution of the initial parameters are
/// PyTorch's.
#[derive(Clone, Debug, Module)]
pub struct ConvTranspose<const D: usize, T: Float = f32> {
    /// The weight, `[in, out / groups, …window]`, for `in` input and `out` output channels.
    pub weight: Parameter<T>,
    /// The bias, `[out]`, for `out` output channels. `None` if the layer has no bias.
    pub bias: Option<Parameter<T>>,
    /// The stride, padding, dilation, groups and output padding of the convolution.
    #[module(skip)]
    pub options: ConvOptions,
}

impl<const D: usize, T: Float> Layer<T> for ConvTranspose<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let weight = x.tape().try_parameter(&self.weight)?;
        let bias = optional_parameter(x.tape(), self.bias.as_ref())?;
        let (bias, options) = (bias.as_ref(), &self.options);
        let y = match D {
            1 => x.try_conv_transpose1d(&weight, bias, options),
            2 => x.try_conv_transpose2d(&weight, bias, options),
            _ => x.try_conv_transpose3d(&weight, bias, options),
        };
        output_of(self, y, self.weight.created_at(), || {
            let weight = self.weight.value.shape();
            format!("ConvTranspose{D}d with a weight of shape {weight} on an input of shape {}", x.shape())
        })
    }
}
