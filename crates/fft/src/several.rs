//! Transforms along several dimensions. They are computed along one of these dimensions, then along the next, and so on.

use wengert_macros::twins;
use wengert_tensor::ops::Result;
use wengert_tensor::{Dims, Site};

use crate::array::Array;
use crate::complex::{check_pairs, conjugate};
use crate::norm::Norm;
use crate::steps::argument_error;
use crate::transforms::{resolve_dim, transform_complex_line, transform_half_line, transform_real_line};

/// Fourier transforms along several dimensions.
///
/// `dims` is one dimension, several dimensions, or all dimensions (`..`). The last dimension of complex numbers, which has size 2, does not
/// count. `sizes` has the number of elements for each of the dimensions `dims`. Signals are cut or extended by zeros to this number of
/// elements. If `dims` is `..`, the sizes are for the last dimensions, and only these dimensions are transformed.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::{Norm, prelude::*};
/// use wengert::prelude::*;
///
/// let image = Tensor::<f64>::from_fn([4, 6], |i| (i[0] * i[1]) as f64);
/// let spectrum = image.rfft2(Norm::Backward);
/// assert_eq!(spectrum.shape(), &[4, 4, 2]);
/// let back = spectrum.irfftn(Some(&[4, 6]), .., Norm::Backward);
/// assert!((back - image).abs().amax(..).item() < 1e-13);
/// ```
///
/// # Errors
///
/// All transforms return an error for the reasons of [`Transforms`](crate::Transforms). They also return an error if a dimension appears
/// twice, or `sizes` and `dims` differ in length. For `..`, there may be fewer sizes than dimensions, but not more.
#[twins(blanket)]
pub trait TransformsOfMany: Array {
    /// Returns the transforms of complex numbers `[…, 2]` along `dims`. If `dims` is empty, the result is the array itself. PyTorch:
    /// `torch.fft.fftn`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_fftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_complex_lines(self, sizes, &dims.into(), false, norm, Site::here("fftn"))
    }

    /// Returns the inverse transforms of complex numbers `[…, 2]` along `dims`. PyTorch: `torch.fft.ifftn`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_ifftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_complex_lines(self, sizes, &dims.into(), true, norm, Site::here("ifftn"))
    }

    /// Returns the transforms of real numbers along `dims`, as complex numbers with a new last dimension of size 2. The
    /// last dimension of `dims` gets size n/2 + 1, where n is the last of `sizes`. Without `sizes`, n is the size of
    /// this dimension. PyTorch: `torch.fft.rfftn`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`]. `dims` must have at least one dimension.
    fn try_rfftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_real_lines(self, sizes, &dims.into(), norm, Site::here("rfftn"))
    }

    /// Returns the real signals of half spectra: the inverse of [`rfftn`](Self::rfftn). In the result, the last dimension of `dims` has the
    /// last of `sizes` as its size. The default is 2 (m - 1), where m is the dimension's size in the half spectra. PyTorch:
    /// `torch.fft.irfftn`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`]. `dims` must have at least one dimension.
    fn try_irfftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_half_lines(self, sizes, &dims.into(), norm, Site::here("irfftn"))
    }

    /// Returns the transforms of complex numbers `[…, h, w, 2]` along h and w. PyTorch: `torch.fft.fft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_fft2(&self, norm: Norm) -> Result<Self> {
        transform_complex_lines(self, None, &Dims::from([-2, -1]), false, norm, Site::here("fft2"))
    }

    /// Returns the inverse transforms of complex numbers `[…, h, w, 2]` along h and w. PyTorch: `torch.fft.ifft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_ifft2(&self, norm: Norm) -> Result<Self> {
        transform_complex_lines(self, None, &Dims::from([-2, -1]), true, norm, Site::here("ifft2"))
    }

    /// Returns the transforms `[…, h, w/2 + 1, 2]` of real numbers `[…, h, w]`. PyTorch: `torch.fft.rfft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_rfft2(&self, norm: Norm) -> Result<Self> {
        transform_real_lines(self, None, &Dims::from([-2, -1]), norm, Site::here("rfft2"))
    }

    /// Returns the real numbers `[…, h, 2 (m - 1)]` that belong to half spectra `[…, h, m, 2]`. PyTorch: `torch.fft.irfft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_irfft2(&self, norm: Norm) -> Result<Self> {
        transform_half_lines(self, None, &Dims::from([-2, -1]), norm, Site::here("irfft2"))
    }

    /// Returns the real spectra of signals that are given by their first halves along the last dimension of `dims`: complex numbers with a
    /// last dimension of size 2. The other half of a signal is its conjugate, mirrored along all of `dims`. In the result, the last dimension
    /// of `dims` has the last of `sizes` as its size. The default is 2 (m - 1), where m is the dimension's size in the halves. So halves
    /// `[…, h, m, 2]` give `[…, h, 2 (m - 1)]`. PyTorch: `torch.fft.hfftn`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
    /// use wengert::fft::{Norm, prelude::*};
    /// use wengert::prelude::*;
    ///
    /// let spectrum = Tensor::<f64>::from_fn([4, 6], |i| (i[0] * i[1]) as f64);
    /// let half = spectrum.ihfftn(None, .., Norm::Backward);
    /// assert_eq!(half.shape(), &[4, 4, 2]);
    /// let back = half.hfftn(Some(&[4, 6]), .., Norm::Backward);
    /// assert!((back - spectrum).abs().amax(..).item() < 1e-13);
    /// ```
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`]. `dims` must have at least one dimension. Halves of one element need `sizes`, because 2 (m - 1) is 0.
    fn try_hfftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_hermitian_lines(self, sizes, &dims.into(), norm, Site::here("hfftn"))
    }

    /// Returns the first halves of the inverse transforms of real spectra, as complex numbers with a new last dimension of size 2. This is
    /// the inverse of [`hfftn`](Self::hfftn). The last dimension of `dims` gets size n/2 + 1, where n is the last of `sizes`. Without
    /// `sizes`, n is the size of this dimension. PyTorch: `torch.fft.ihfftn`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`]. `dims` must have at least one dimension.
    fn try_ihfftn(&self, sizes: Option<&[usize]>, dims: impl Into<Dims>, norm: Norm) -> Result<Self> {
        transform_to_hermitian_halves(self, sizes, &dims.into(), norm, Site::here("ihfftn"))
    }

    /// Returns the real spectra `[…, h, 2 (m - 1)]` of signals that are given by their halves `[…, h, m, 2]`; see [`hfftn`](Self::hfftn).
    /// PyTorch: `torch.fft.hfft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_hfft2(&self, norm: Norm) -> Result<Self> {
        transform_hermitian_lines(self, None, &Dims::from([-2, -1]), norm, Site::here("hfft2"))
    }

    /// Returns the halves `[…, h, w/2 + 1, 2]` of the inverse transforms of real spectra `[…, h, w]`; see [`ihfftn`](Self::ihfftn). PyTorch:
    /// `torch.fft.ihfft2`.
    ///
    /// # Errors
    ///
    /// See [`TransformsOfMany`].
    fn try_ihfft2(&self, norm: Norm) -> Result<Self> {
        transform_to_hermitian_halves(self, None, &Dims::from([-2, -1]), norm, Site::here("ihfft2"))
    }
}

/// A dimension, and the number of elements to which signals along it are cut or extended. `None` selects the default: the size of the
/// dimension, or 2 (m - 1) for half spectra of m elements.
type Line = (usize, Option<usize>);

/// Returns pairs of a dimension and its size for an array with `rank` dimensions, in the caller's order. Returns an
/// error if `dims` or `sizes` do not fit the array or each other.
fn resolve_lines<A: Array>(sizes: Option<&[usize]>, dims: &Dims, rank: usize, at: Site) -> Result<Vec<Line>, A::Error> {
    let size = |k: usize| sizes.map(|sizes| sizes[k]);
    if dims.is_all() {
        let count = sizes.map_or(rank, <[usize]>::len);
        if count > rank {
            let message = format!("Got shape with {count} values but input tensor only has {rank} dimensions.");
            return Err(argument_error::<A>(at, message));
        }
        return Ok((0..count).map(|k| (rank - count + k, size(k))).collect());
    }
    let dims = dims.as_slice();
    if sizes.is_some_and(|sizes| sizes.len() != dims.len()) {
        return Err(argument_error::<A>(at, "When given, dim and shape arguments must have the same length"));
    }
    let mut lines: Vec<Line> = Vec::with_capacity(dims.len());
    for (k, &dim) in dims.iter().enumerate() {
        let axis = resolve_dim::<A>(dim, rank, at)?;
        if lines.iter().any(|&(other, _)| other == axis) {
            return Err(argument_error::<A>(at, "FFT dims must be unique"));
        }
        lines.push((axis, size(k)));
    }
    Ok(lines)
}

/// Returns the last entry of `lines` (pairs of a dimension and a size) and the entries before it, or PyTorch's error if `lines` is empty.
fn split_last_line<A: Array>(lines: &[Line], at: Site) -> Result<(Line, &[Line]), A::Error> {
    let message = || format!("{} must transform at least one axis", at.operation.replace("fft2", "fftn"));
    let (&last, others) = lines.split_last().ok_or_else(|| argument_error::<A>(at, message()))?;
    Ok((last, others))
}

fn transform_complex_lines<A: Array>(
    x: &A,
    sizes: Option<&[usize]>,
    dims: &Dims,
    inverse: bool,
    norm: Norm,
    at: Site,
) -> Result<A> {
    let lines = resolve_lines::<A>(sizes, dims, check_pairs(x, at)?.rank() - 1, at)?;
    lines.iter().try_fold(x.clone(), |x, &(axis, n)| transform_complex_line(&x, n, axis, inverse, norm, at))
}

fn transform_real_lines<A: Array>(x: &A, sizes: Option<&[usize]>, dims: &Dims, norm: Norm, at: Site) -> Result<A> {
    let lines = resolve_lines::<A>(sizes, dims, x.shape().rank(), at)?;
    let ((axis, n), others) = split_last_line::<A>(&lines, at)?;
    let half = transform_real_line(x, n, axis, norm, at)?;
    others.iter().try_fold(half, |x, &(axis, n)| transform_complex_line(&x, n, axis, false, norm, at))
}

fn transform_half_lines<A: Array>(x: &A, sizes: Option<&[usize]>, dims: &Dims, norm: Norm, at: Site) -> Result<A> {
    let lines = resolve_lines::<A>(sizes, dims, check_pairs(x, at)?.rank() - 1, at)?;
    let ((axis, n), others) = split_last_line::<A>(&lines, at)?;
    let half =
        others.iter().try_fold(x.clone(), |x, &(axis, n)| transform_complex_line(&x, n, axis, true, norm, at))?;
    transform_half_line(&half, n, axis, norm, at)
}

/// Computes [`hfftn`](TransformsOfMany::hfftn): forward transforms along the other dimensions, and then `hfft` along the last one. `hfft` is
/// the real inverse transform of the conjugate, with the other normalization.
fn transform_hermitian_lines<A: Array>(x: &A, sizes: Option<&[usize]>, dims: &Dims, norm: Norm, at: Site) -> Result<A> {
    let lines = resolve_lines::<A>(sizes, dims, check_pairs(x, at)?.rank() - 1, at)?;
    let ((axis, n), others) = split_last_line::<A>(&lines, at)?;
    let half =
        others.iter().try_fold(x.clone(), |x, &(axis, n)| transform_complex_line(&x, n, axis, false, norm, at))?;
    transform_half_line(&conjugate(&half, at)?, n, axis, norm.swapped(), at)
}

/// Computes [`ihfftn`](TransformsOfMany::ihfftn): `ihfft` along the last dimension, and then inverse transforms along the other dimensions.
fn transform_to_hermitian_halves<A: Array>(
    x: &A,
    sizes: Option<&[usize]>,
    dims: &Dims,
    norm: Norm,
    at: Site,
) -> Result<A> {
    let lines = resolve_lines::<A>(sizes, dims, x.shape().rank(), at)?;
    let ((axis, n), others) = split_last_line::<A>(&lines, at)?;
    let half = conjugate(&transform_real_line(x, n, axis, norm.swapped(), at)?, at)?;
    others.iter().try_fold(half, |x, &(axis, n)| transform_complex_line(&x, n, axis, true, norm, at))
}
