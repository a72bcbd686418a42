//! Windows: weights that fade a frame of a signal out at both ends, so that its spectrum has less leakage.

use std::f64::consts::TAU;

use wengert_macros::twins;
use wengert_tensor::ops::Result;
use wengert_tensor::{Error, Float, Tensor};

/// Returns the window `[n]` with the weights 0.5 - 0.5 cos(2πk/m). If `periodic` is true, m is n, which suits the frames of a transform.
/// Otherwise m is n - 1, so that the window is symmetric. The only weight of a window of size 1 is 1. PyTorch: `torch.hann_window`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::hann_window;
/// use wengert::prelude::*;
///
/// let window = hann_window::<f64>(4, true);
/// assert!((window - Tensor::from([0.0, 0.5, 1.0, 0.5])).abs().amax(..).item() < 1e-15);
/// ```
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_hann_window<T: Float>(n: usize, periodic: bool) -> Result<Tensor<T>, Error> {
    window(n, periodic, |x| 0.5 - 0.5 * (TAU * x).cos())
}

/// Returns the window `[n]` with the weights 0.54 - 0.46 cos(2πk/m). [`hann_window`] explains m and `periodic`. PyTorch:
/// `torch.hamming_window`.
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_hamming_window<T: Float>(n: usize, periodic: bool) -> Result<Tensor<T>, Error> {
    window(n, periodic, |x| 0.54 - 0.46 * (TAU * x).cos())
}

/// Returns the window `[n]` with the weights 0.42 - 0.5 cos(2πk/m) + 0.08 cos(4πk/m). [`hann_window`] explains m and `periodic`. PyTorch:
/// `torch.blackman_window`.
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_blackman_window<T: Float>(n: usize, periodic: bool) -> Result<Tensor<T>, Error> {
    window(n, periodic, |x| 0.42 - 0.5 * (TAU * x).cos() + 0.08 * (2.0 * TAU * x).cos())
}

/// Returns the window `[n]` with the weights 1 - |2k/m - 1|, a triangle. [`hann_window`] explains m and `periodic`. PyTorch:
/// `torch.bartlett_window`.
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_bartlett_window<T: Float>(n: usize, periodic: bool) -> Result<Tensor<T>, Error> {
    window(n, periodic, |x| 1.0 - (2.0 * x - 1.0).abs())
}

/// Returns the window `[n]` with the weights I₀(β √(1 - (2k/m - 1)²)) / I₀(β), where I₀ is a modified Bessel function. A larger `beta` makes
/// the window narrower. [`hann_window`] explains m and `periodic`. PyTorch: `torch.kaiser_window`, where `beta` is 12 by default.
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_kaiser_window<T: Float>(n: usize, periodic: bool, beta: f64) -> Result<Tensor<T>, Error> {
    window(n, periodic, |x| {
        let distance = 2.0 * x - 1.0;
        bessel_ratio(beta * (1.0 - distance * distance).max(0.0).sqrt(), beta)
    })
}

/// Returns the weights `weight(k / m)` for k from 0 to `n` - 1. m is `n` if `periodic` is true, and `n` - 1 otherwise.
fn window<T: Float>(n: usize, periodic: bool, weight: impl Fn(f64) -> f64) -> Result<Tensor<T>, Error> {
    let mut out = Tensor::try_full([n], T::ONE)?;
    if n > 1 {
        let m = if periodic { n } else { n - 1 } as f64;
        for (k, out) in out.make_mut().iter_mut().enumerate() {
            *out = T::from_f64(weight(k as f64 / m));
        }
    }
    Ok(out)
}

/// Returns I₀(x) / I₀(y) for |x| ≤ |y|, by the power series Σ (x²/4)ᵏ / (k!)². All terms are positive, so no digits cancel. Both sums are
/// divided by the same number when the terms of y become large, so that no sum overflows.
fn bessel_ratio(x: f64, y: f64) -> f64 {
    let (x, y) = (x * x / 4.0, y * y / 4.0);
    let (mut terms, mut sums) = ((1.0, 1.0), (1.0, 1.0));
    let mut k = 0.0;
    // Each term is y / k² times the term before it. So the terms of y fall when k is larger than √y, and end the sum when they are small.
    while terms.1 > sums.1 * f64::EPSILON / 16.0 {
        k += 1.0;
        terms = (terms.0 * (x / (k * k)), terms.1 * (y / (k * k)));
        sums = (sums.0 + terms.0, sums.1 + terms.1);
        if sums.1 > 1e200 {
            let rescale = |(x, y): (f64, f64)| (x * 1e-200, y * 1e-200);
            (terms, sums) = (rescale(terms), rescale(sums));
        }
    }
    sums.0 / sums.1
}
