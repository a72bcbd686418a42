//! The fan in and the fan out of a weight, and the gain of the nonlinearity that follows it.

use wengert_macros::twins;
use wengert_tensor::{Error, Shape, Site};

/// What follows a layer, for the factor that keeps the size of its values: the `gain`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Nonlinearity {
    /// Nothing, a sigmoid, or a convolution: 1.
    #[default]
    Linear,
    /// tanh: 5/3.
    Tanh,
    /// ReLU: √2.
    Relu,
    /// Leaky ReLU with this slope: √(2 / (1 + slope²)). √5 is what PyTorch's dense and convolutional layers begin with:
    /// with it, [`kaiming_uniform`] is U(-1/√fan, 1/√fan).
    LeakyRelu(f64),
    /// SELU: 3/4.
    Selu,
}

impl Nonlinearity {
    /// The factor. PyTorch: `torch.nn.init.calculate_gain`.
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::Relu => 2f64.sqrt(),
            Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::Selu => 0.75,
        }
    }
}

/// Whether values keep their size in the forward pass or gradients in the backward pass. PyTorch: `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Values: the fan in. PyTorch: `fan_in`.
    #[default]
    In,
    /// Gradients: the fan out. PyTorch: `fan_out`.
    Out,
}

/// Fan in and fan out of a weight `[out, in, …kernel]`: `in` and `out` times the size of the kernel. PyTorch:
/// `_calculate_fan_in_and_fan_out`.
///
/// ```
/// use wengert_nn::init::fans;
/// use wengert_tensor::Shape;
///
/// assert_eq!(fans(&Shape::from([32, 16, 3, 3])), (144, 288));
/// ```
///
/// # Errors
///
/// Where there are fewer than two dimensions.
#[twins]
pub fn try_fans(shape: &Shape) -> Result<(usize, usize), Error> {
    fans_at(shape, Site::here("fans"))
}

pub(super) fn fans_at(shape: &Shape, at: Site) -> Result<(usize, usize), Error> {
    match *shape.sizes() {
        [outputs, inputs, ref kernel @ ..] => {
            let size: usize = kernel.iter().fold(1, |product, &size| product.saturating_mul(size));
            Ok((inputs.saturating_mul(size), outputs.saturating_mul(size)))
        }
        _ => {
            let message = format!(
                "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: the shape is {shape}"
            );
            Err(Error::Argument { message, at })
        }
    }
}
