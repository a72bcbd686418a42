//! Transforms along one dimension.

use wengert_macros::twins;
use wengert_tensor::ops::Result;
use wengert_tensor::{Position, Site, axis};

use crate::array::Array;
use crate::complex::{check_pairs, conjugate};
use crate::map::{LineMap, MapKind};
use crate::norm::Norm;
use crate::steps::{Steps, argument_error, check_size};

/// Fourier transforms along one dimension.
///
/// `dim` does not count the last dimension of complex numbers, which has size 2: for `[t, n, 2]`, both `1` and `-1` are the dimension of
/// size n. If the argument `n` is `Some(n)`, the signal is cut or extended by zeros to n elements. For `irfft` and `hfft`, n is the size of
/// the result, and the half spectrum is cut or extended to n/2 + 1 elements. The formulas are for [`Norm::Backward`].
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::{Norm, prelude::*};
/// use wengert::prelude::*;
///
/// let x = Tensor::from([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]);
/// let z = x.fft(None, -1, Norm::Backward);
/// assert_eq!(z, Tensor::from([[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0], [-2.0, -2.0]]));
/// assert_eq!(z.ifft(None, -1, Norm::Backward), x);
/// ```
///
/// # Errors
///
/// All transforms return an error if the dimension `dim` does not exist, the number of elements to transform is 0, or
/// memory cannot hold the result. The transforms of complex numbers also return an error if the last dimension does not
/// have size 2.
#[twins(blanket)]
pub trait Transforms: Array {
    /// Returns the transforms X_k = Σ x_j e^(-2πi jk/n), summed over j, of complex numbers `[…, n, 2]` along `dim`. Without `n`, the shape
    /// stays the same. If an element is NaN or infinite, every number of the transform is NaN or infinite in its real part, its imaginary
    /// part or both. PyTorch: `torch.fft.fft`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
    /// use wengert::fft::{Norm, prelude::*};
    /// use wengert::prelude::*;
    ///
    /// let impulse = Tensor::from([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]);
    /// assert_eq!(impulse.fft(None, -1, Norm::Backward).real().to_vec(), [1.0, 1.0, 1.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Transforms`].
    fn try_fft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        transform_complex_line(self, n, dim, false, norm, Site::here("fft"))
    }

    /// Returns the inverse transforms x_j = Σ X_k e^(2πi jk/n) / n, summed over k, of complex numbers `[…, n, 2]` along `dim`. Without `n`,
    /// the shape stays the same. PyTorch: `torch.fft.ifft`.
    ///
    /// # Errors
    ///
    /// See [`Transforms`].
    fn try_ifft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        transform_complex_line(self, n, dim, true, norm, Site::here("ifft"))
    }

    /// Returns the transforms of real numbers `[…, n]` along `dim`, as complex numbers `[…, n/2 + 1, 2]`. The other half of the
    /// spectrum mirrors this half: X_(n-k) is the conjugate of X_k. PyTorch: `torch.fft.rfft`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
    /// use wengert::fft::{Norm, prelude::*};
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// let z = x.rfft(None, -1, Norm::Backward);
    /// assert_eq!(z, Tensor::from([[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0]]));
    /// assert_eq!(z.irfft(Some(4), -1, Norm::Backward), x);
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Transforms`].
    fn try_rfft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        transform_real_line(self, n, dim, norm, Site::here("rfft"))
    }

    /// Returns the real signals `[…, n]` of half spectra `[…, m, 2]`: the inverse of [`rfft`](Self::rfft). The default of `n` is 2 (m - 1).
    /// If the signals have an odd number of elements, `n` must be given. The imaginary part of frequency 0 is ignored. If `n` is even, the
    /// imaginary part of the highest frequency is ignored too. PyTorch: `torch.fft.irfft`.
    ///
    /// # Errors
    ///
    /// See [`Transforms`]. If `n` is not given, the half spectra must also have at least two frequencies.
    fn try_irfft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        transform_half_line(self, n, dim, norm, Site::here("irfft"))
    }

    /// Returns the real spectra `[…, n]` of signals that are given by their first halves `[…, m, 2]`. The other half of each signal is the
    /// mirrored conjugate of this half. `n` is 2 (m - 1) by default. PyTorch: `torch.fft.hfft`.
    ///
    /// # Errors
    ///
    /// See [`Transforms`]. If `n` is not given, the half spectra must also have at least two frequencies.
    fn try_hfft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        let at = Site::here("hfft");
        transform_half_line(&conjugate(self, at)?, n, dim, norm.swapped(), at)
    }

    /// Returns the first halves `[…, n/2 + 1, 2]` of the inverse transforms of real spectra `[…, n]`. This is the inverse of
    /// [`hfft`](Self::hfft). PyTorch: `torch.fft.ihfft`.
    ///
    /// # Errors
    ///
    /// See [`Transforms`].
    fn try_ihfft(&self, n: Option<usize>, dim: impl Position, norm: Norm) -> Result<Self> {
        let at = Site::here("ihfft");
        conjugate(&transform_real_line(self, n, dim, norm.swapped(), at)?, at)
    }
}

/// Returns the index of the dimension `dim`, which may be negative, in a shape of `rank` dimensions. Returns an error
/// if there is no such dimension.
pub(crate) fn resolve_dim<A: Array>(dim: impl Position, rank: usize, at: Site) -> Result<usize, A::Error> {
    if rank == 0 {
        let dim = dim.position();
        return Err(argument_error::<A>(at, format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    Ok(axis(dim, rank, at)?)
}

/// Returns the number `n` of elements to transform, or PyTorch's error if `n` is 0.
fn check_point_count<A: Array>(n: usize, at: Site) -> Result<usize, A::Error> {
    if n > 0 { Ok(n) } else { Err(argument_error::<A>(at, "Invalid number of data points (0) specified")) }
}

pub(crate) fn transform_complex_line<A: Array>(
    x: &A,
    n: Option<usize>,
    dim: impl Position,
    inverse: bool,
    norm: Norm,
    at: Site,
) -> Result<A> {
    let shape = check_pairs(x, at)?;
    let last = shape.rank().saturating_sub(2);
    let axis = resolve_dim::<A>(dim, shape.rank() - 1, at)?;
    let n = check_point_count::<A>(n.unwrap_or(shape[axis]), at)?;
    let kind = if inverse { MapKind::Inverse } else { MapKind::Forward };
    let map = LineMap { kind, n, factor: norm.factor(n, inverse) };
    x.resize_axis(axis, n, at)?.move_axis(axis, last, at)?.apply_map(map, at)?.move_axis(last, axis, at)
}

pub(crate) fn transform_real_line<A: Array>(
    x: &A,
    n: Option<usize>,
    dim: impl Position,
    norm: Norm,
    at: Site,
) -> Result<A> {
    let shape = x.shape();
    let axis = resolve_dim::<A>(dim, shape.rank(), at)?;
    let (n, last) = (check_point_count::<A>(n.unwrap_or(shape[axis]), at)?, shape.rank() - 1);
    let map = LineMap { kind: MapKind::RealToHalf, n, factor: norm.factor(n, false) };
    let lines = x.resize_axis(axis, n, at)?.move_axis(axis, last, at)?;
    check_size::<A>(&map.shape(&lines.shape()), at)?;
    lines.apply_map(map, at)?.move_axis(last, axis, at)
}

pub(crate) fn transform_half_line<A: Array>(
    x: &A,
    n: Option<usize>,
    dim: impl Position,
    norm: Norm,
    at: Site,
) -> Result<A> {
    let shape = check_pairs(x, at)?;
    let last = shape.rank().saturating_sub(2);
    let axis = resolve_dim::<A>(dim, shape.rank() - 1, at)?;
    if n.is_none() && shape[axis] == 0 {
        return Err(argument_error::<A>(at, "Invalid number of data points (-2) specified"));
    }
    let n = check_point_count::<A>(n.unwrap_or_else(|| 2 * (shape[axis] - 1)), at)?;
    let map = LineMap { kind: MapKind::HalfToReal, n, factor: norm.factor(n, true) };
    x.resize_axis(axis, n / 2 + 1, at)?.move_axis(axis, last, at)?.apply_map(map, at)?.move_axis(last, axis, at)
}
