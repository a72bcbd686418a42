//! The frequencies of a transform's elements, and the rotations that move frequency 0 to the middle for a plot.

use wengert_macros::twins;
use wengert_tensor::ops::{Result, TensorLike};
use wengert_tensor::{Dims, Error, Float, Site, Tensor, axis};

use crate::steps::Steps;

/// Returns the frequencies `[n]` of the elements of a transform of `n` elements: first the non-negative frequencies, then the negative
/// ones. `d` is the distance between two samples of the signal, and the frequencies are in cycles per unit of `d`. PyTorch:
/// `torch.fft.fftfreq`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::fftfreq;
/// use wengert::prelude::*;
///
/// assert_eq!(fftfreq::<f64>(5, 0.5).to_vec(), [0.0, 0.4, 0.8, -0.8, -0.4]);
/// ```
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_fftfreq<T: Float>(n: usize, d: f64) -> Result<Tensor<T>, Error> {
    let positive = n.div_ceil(2);
    let number = |k: usize| if k < positive { k as f64 } else { -((n - k) as f64) };
    frequencies(n, n, d, number)
}

/// Returns the frequencies `[n/2 + 1]` of the elements of a transform of `n` real elements. For `n` = 0, the single element is NaN. `d` is
/// the distance between two samples of the signal, and the frequencies are in cycles per unit of `d`. PyTorch: `torch.fft.rfftfreq`.
///
/// # Errors
///
/// If memory cannot hold the result.
#[twins]
pub fn try_rfftfreq<T: Float>(n: usize, d: f64) -> Result<Tensor<T>, Error> {
    frequencies(n, n / 2 + 1, d, |k| k as f64)
}

fn frequencies<T: Float>(n: usize, count: usize, d: f64, number: impl Fn(usize) -> f64) -> Result<Tensor<T>, Error> {
    let mut out = Tensor::try_full([count], T::ZERO)?;
    for (k, out) in out.make_mut().iter_mut().enumerate() {
        *out = T::from_f64(number(k) / (n as f64 * d));
    }
    Ok(out)
}

/// Rotations that move frequency 0 to the middle of a dimension, and their inverses.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::{fftfreq, prelude::*};
/// use wengert::prelude::*;
///
/// let frequencies = fftfreq::<f64>(4, 0.25);
/// assert_eq!(frequencies.fftshift(..).to_vec(), [-2.0, -1.0, 0.0, 1.0]);
/// assert_eq!(frequencies.fftshift(..).ifftshift(..), frequencies);
/// ```
#[twins(blanket)]
pub trait Shifts: TensorLike {
    /// Rotates the array so that element 0 of each of the dimensions `dims` moves to index n/2, where n is the size of the dimension. The
    /// last dimension of complex numbers, which has size 2, is a dimension too, and must not be among `dims`: for `[h, w, 2]`, pass `[0, 1]`.
    /// PyTorch: `torch.fft.fftshift`.
    ///
    /// # Errors
    ///
    /// If a dimension does not exist, or memory cannot hold the result.
    fn try_fftshift(&self, dims: impl Into<Dims>) -> Result<Self> {
        rotate_axes(self, &dims.into(), |n| n / 2, Site::here("fftshift"))
    }

    /// Rotates the array so that element n/2 of each of the dimensions `dims` moves to index 0: the inverse of
    /// [`fftshift`](Self::fftshift). PyTorch: `torch.fft.ifftshift`.
    ///
    /// # Errors
    ///
    /// If a dimension does not exist, or memory cannot hold the result.
    fn try_ifftshift(&self, dims: impl Into<Dims>) -> Result<Self> {
        rotate_axes(self, &dims.into(), |n| n.div_ceil(2), Site::here("ifftshift"))
    }
}

/// Rotates the elements of `x` along each of the dimensions `dims`, by `step(n)` places for a dimension of size n. Elements that leave at
/// the end return at the start.
fn rotate_axes<A: TensorLike>(x: &A, dims: &Dims, step: impl Fn(usize) -> usize, at: Site) -> Result<A> {
    let rank = x.shape().rank();
    let mut axes: Vec<usize> = if dims.is_all() { (0..rank).collect() } else { Vec::new() };
    for &dim in dims.as_slice() {
        axes.push(axis(dim, rank, at)?);
    }
    let mut x = x.clone();
    for axis in axes.into_iter().filter(|_| rank > 0) {
        let n = x.shape()[axis];
        let step = step(n);
        if n > 1 {
            x = A::apply_cat(
                &[x.slice_axis(axis, n - step, step, at)?, x.slice_axis(axis, 0, n - step, at)?],
                axis,
                at,
            )?;
        }
    }
    Ok(x)
}
