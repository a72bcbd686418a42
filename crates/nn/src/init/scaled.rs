//! Initial values from distributions whose width depends on the fan in and the fan out (the number of inputs and outputs of a unit). So values
//! or gradients keep their size from layer to layer.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Shape, Site, Sizes, Tensor};

use crate::init::fan::{Fan, Nonlinearity, fans_at};
use crate::init::random::draw_tensor;

/// Returns a weight with elements drawn uniformly from -b to b, where b = `gain` √(6 / (fan in + fan out)). This bound is a compromise: √(3 / fan in)
/// keeps the size of the values from layer to layer, and √(3 / fan out) keeps the size of the gradients (X. Glorot and Y. Bengio, "Understanding the
/// difficulty of training deep feedforward neural networks", 2010). PyTorch: `xavier_uniform_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init::{self, Nonlinearity};
/// use wengert::prelude::*;
///
/// let weight: Tensor<f32> = init::xavier_uniform([10, 20], Nonlinearity::Tanh.gain(), &mut Generator::new(0));
/// assert!(weight.abs().amax(..).item() <= 5.0 / 3.0 * 0.2f32.sqrt());
/// ```
///
/// # Errors
///
/// If `shape` has fewer than two dimensions or a negative size, or there is not enough memory.
#[twins]
pub fn try_xavier_uniform<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("xavier_uniform");
    let shape = shape.into().resolve_plain(at)?;
    let (inputs, outputs) = fans_at(&shape, at)?;
    symmetric_uniform(&shape, gain * (6.0 / inputs.saturating_add(outputs) as f64).sqrt(), generator)
}

/// Returns a weight with elements drawn from the normal distribution with mean 0 and standard deviation `gain` √(2 / (fan in + fan out)); see
/// [`xavier_uniform`]. PyTorch: `xavier_normal_`.
///
/// # Errors
///
/// If `shape` has fewer than two dimensions or a negative size, or there is not enough memory.
#[twins]
pub fn try_xavier_normal<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("xavier_normal");
    let shape = shape.into().resolve_plain(at)?;
    let (inputs, outputs) = fans_at(&shape, at)?;
    let std = gain * (2.0 / inputs.saturating_add(outputs) as f64).sqrt();
    draw_tensor(&shape, || std * generator.normal())
}

/// Returns a weight with elements drawn uniformly from -b to b, where b = gain √(3 / fan). The gain belongs to `nonlinearity`, and `fan` selects
/// the fan in or the fan out. Values (or gradients) then keep their size through a layer and its nonlinearity (K. He, X. Zhang, S. Ren and J.
/// Sun, "Delving deep into rectifiers", 2015). PyTorch: `kaiming_uniform_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init::{self, Fan, Nonlinearity};
/// use wengert::prelude::*;
///
/// let weight: Tensor<f32> =
///     init::kaiming_uniform([32, 16, 3, 3], Fan::In, Nonlinearity::Relu, &mut Generator::new(0));
/// assert!(weight.abs().amax(..).item() <= (6.0f32 / 144.0).sqrt());
/// ```
///
/// # Errors
///
/// If `shape` has fewer than two dimensions or a negative size, or there is not enough memory.
#[twins]
pub fn try_kaiming_uniform<T: Float>(
    shape: impl Into<Sizes>,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("kaiming_uniform");
    let shape = shape.into().resolve_plain(at)?;
    let std = kaiming_std(&shape, fan, nonlinearity, at)?;
    symmetric_uniform(&shape, 3f64.sqrt() * std, generator)
}

/// Returns a weight with elements drawn from the normal distribution with mean 0 and standard deviation gain / √fan; see [`kaiming_uniform`].
/// PyTorch: `kaiming_normal_`.
///
/// # Errors
///
/// If `shape` has fewer than two dimensions or a negative size, or there is not enough memory.
#[twins]
pub fn try_kaiming_normal<T: Float>(
    shape: impl Into<Sizes>,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("kaiming_normal");
    let shape = shape.into().resolve_plain(at)?;
    let std = kaiming_std(&shape, fan, nonlinearity, at)?;
    draw_tensor(&shape, || std * generator.normal())
}

/// Returns the standard deviation gain / √fan of a weight, with the gain of `nonlinearity` and the fan that `fan` selects.
fn kaiming_std(shape: &Shape, fan: Fan, nonlinearity: Nonlinearity, at: Site) -> Result<f64, Error> {
    let (inputs, outputs) = fans_at(shape, at)?;
    let fan = if fan == Fan::In { inputs } else { outputs };
    Ok(nonlinearity.gain() / (fan as f64).sqrt())
}

/// Returns a tensor of `shape` with elements drawn uniformly from -`bound` to `bound`.
fn symmetric_uniform<T: Float>(shape: &Shape, bound: f64, generator: &mut Generator) -> Result<Tensor<T>, Error> {
    draw_tensor(shape, || bound * (2.0 * generator.uniform() - 1.0))
}
