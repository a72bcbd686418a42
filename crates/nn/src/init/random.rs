//! Initial values from uniform and normal distributions that do not depend on the shape of the weight.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Shape, Site, Sizes, Tensor};

/// Returns a tensor of `shape` with elements drawn from the uniform distribution from `low` to `high`, `high` excluded. PyTorch: `uniform_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init;
/// use wengert::prelude::*;
///
/// let bias: Tensor<f32> = init::uniform([10], -0.1, 0.1, &mut Generator::new(0));
/// assert!(bias.iter().all(|b| (-0.1..0.1).contains(&b)));
/// ```
///
/// # Errors
///
/// As for [`Tensor::try_uniform`].
#[twins]
pub fn try_uniform<T: Float>(
    shape: impl Into<Sizes>,
    low: f64,
    high: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    Tensor::try_uniform(low, high, shape, generator)
}

/// Returns a tensor of `shape` with elements drawn from the normal distribution with `mean` and standard deviation `std`. PyTorch: `normal_`.
///
/// # Errors
///
/// If `std` is negative or NaN, a size is negative, or there is not enough memory.
#[twins]
pub fn try_normal<T: Float>(
    shape: impl Into<Sizes>,
    mean: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("normal");
    let shape = shape.into().resolve_plain(at)?;
    if std.is_nan() || std < 0.0 {
        return Err(Error::Argument { message: format!("normal expects std >= 0.0, but found std {std}"), at });
    }
    draw_tensor(&shape, || mean + std * generator.normal())
}

/// Returns a tensor of `shape` with elements drawn from a normal distribution that is limited to values from `low` to `high`. These bounds are
/// values, not multiples of `std`. PyTorch: `trunc_normal_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init;
/// use wengert::prelude::*;
///
/// // The initial embedding of vision transformers.
/// let embedding: Tensor<f32> = init::truncated_normal([196, 64], 0.0, 0.02, -2.0, 2.0, &mut Generator::new(0));
/// assert!((embedding.std(.., 1.0).item() - 0.02).abs() < 0.001);
/// ```
///
/// # Errors
///
/// If `low` is not below `high`, `std` is not positive and finite, `mean` is NaN or infinite, a size is negative, or
/// there is not enough memory.
#[twins]
pub fn try_truncated_normal<T: Float>(
    shape: impl Into<Sizes>,
    mean: f64,
    std: f64,
    low: f64,
    high: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("truncated_normal");
    let shape = shape.into().resolve_plain(at)?;
    let [least, most] = [low, high].map(|bound| (bound - mean) / std);
    if std.is_nan() || std <= 0.0 || least.is_nan() || most.is_nan() || least >= most {
        let message = format!(
            "truncated_normal expects std > 0 and low < high, but found mean {mean}, std {std}, low {low}, high {high}"
        );
        return Err(Error::Argument { message, at });
    }
    draw_tensor(&shape, || (mean + std * generator.truncated_normal(least, most)).clamp(low, high))
}

/// Returns a tensor of `shape` with elements that `draw` returns one after the other, in row-major order.
#[track_caller]
pub(super) fn draw_tensor<T: Float>(shape: &Shape, mut draw: impl FnMut() -> f64) -> Result<Tensor<T>, Error> {
    let mut draws = Tensor::try_full(shape, T::ZERO)?;
    draws.make_mut().iter_mut().for_each(|element| *element = T::from_f64(draw()));
    Ok(draws)
}
