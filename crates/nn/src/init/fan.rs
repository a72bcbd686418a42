//! The fan in and the fan out (numbers of inputs and outputs) of a weight, and the gain (scale factor) for the nonlinearity after its layer.

use wengert_macros::twins;
use wengert_tensor::{Error, Shape, Site};

/// The nonlinearity after a layer. It determines the gain, the factor by which the layer's weights are scaled so that values keep their size
/// from layer to layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Nonlinearity {
    /// No nonlinearity, or a sigmoid: the gain is 1.
    #[default]
    Linear,
    /// For tanh, the gain is 5/3.
    Tanh,
    /// For ReLU, the gain is √2.
    Relu,
    /// For a leaky ReLU with this slope, the gain is √(2 / (1 + slope²)). PyTorch's linear and convolutional layers use a slope of √5, with
    /// which [`kaiming_uniform`](crate::init::kaiming_uniform) draws from -1/√fan to 1/√fan.
    LeakyRelu(f64),
    /// For SELU, the gain is 3/4.
    Selu,
}

impl Nonlinearity {
    /// Returns the factor by which weights before this nonlinearity are scaled. PyTorch: `torch.nn.init.calculate_gain`.
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

/// The quantity that keeps its size from layer to layer: the values of the forward pass or the gradients of the backward pass. PyTorch:
/// `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Values keep their size, because the weights are divided by the root of the fan in. PyTorch: `fan_in`.
    #[default]
    In,
    /// Gradients keep their size, because the weights are divided by the root of the fan out. PyTorch: `fan_out`.
    Out,
}

/// Returns the fan in and the fan out of a weight `[out, in, …kernel]`. The fan in is `in`, and the fan out is `out`, each times the number
/// of elements of the kernel. PyTorch: `_calculate_fan_in_and_fan_out`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor as tensor; }
/// use wengert::nn::init::fans;
/// use wengert::tensor::Shape;
///
/// assert_eq!(fans(&Shape::from([32, 16, 3, 3])), (144, 288));
/// ```
///
/// # Errors
///
/// If `shape` has fewer than two dimensions.
#[twins]
pub fn try_fans(shape: &Shape) -> Result<(usize, usize), Error> {
    fans_at(shape, Site::here("fans"))
}

/// Returns the fan in and the fan out of a weight of this shape; see [`try_fans`]. `at` names the operation in errors.
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
