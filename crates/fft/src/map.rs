//! The four linear maps from which all transforms are made. Each map is applied to lines. A line is one signal or spectrum: the last
//! dimension for real numbers, or the last two dimensions for complex numbers.

use wengert_tensor::{Float, Shape, Tensor};

/// The kind of a map between signals x and spectra X, for signals of n numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// The spectrum X_k = Σ x_j e^(-2πi jk/n), summed over j: from `[…, n, 2]` to `[…, n, 2]`.
    Forward,
    /// The signal x_j = Σ X_k e^(2πi jk/n), summed over k: from `[…, n, 2]` to `[…, n, 2]`.
    Inverse,
    /// The first half of the spectrum of real numbers, which determines the other half: from `[…, n]` to `[…, n/2 + 1, 2]`.
    RealToHalf,
    /// The real signal of a spectrum with conjugate symmetry, given its first half: from `[…, n/2 + 1, 2]` to `[…, n]`.
    HalfToReal,
}

/// A linear map that is applied to each line of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LineMap {
    pub(crate) kind: MapKind,
    /// The number of elements of the signal, at least 1.
    pub(crate) n: usize,
    /// The factor that multiplies every element of the result.
    pub(crate) factor: f64,
}

impl LineMap {
    /// Returns the number of real numbers in a line of the operand, and in a line of the result.
    pub(crate) fn lengths(self) -> (usize, usize) {
        let (whole, half) = (2 * self.n, 2 * (self.n / 2 + 1));
        match self.kind {
            MapKind::Forward | MapKind::Inverse => (whole, whole),
            MapKind::RealToHalf => (self.n, half),
            MapKind::HalfToReal => (half, self.n),
        }
    }

    /// Returns the shape of the map's result for an operand of shape `shape`.
    pub(crate) fn shape(self, shape: &Shape) -> Shape {
        let leading = |dropped: usize| shape[..shape.rank() - dropped].iter().copied();
        match self.kind {
            MapKind::Forward | MapKind::Inverse => shape.clone(),
            MapKind::RealToHalf => leading(1).chain([self.n / 2 + 1, 2]).collect(),
            MapKind::HalfToReal => leading(2).chain([self.n]).collect(),
        }
    }

    /// Returns a tensor `[n/2 + 1, 1]` with a factor for each frequency of half a spectrum. The factor is `mirrored_weight` for a frequency
    /// that has a mirror image in the other half. It is 1 for frequency 0, and for the highest frequency if n is even.
    pub(crate) fn mirror_weights<T: Float>(self, mirrored_weight: f64) -> Tensor<T> {
        Tensor::from_fn([self.n / 2 + 1, 1], |index| {
            let is_single = index[0] == 0 || 2 * index[0] == self.n;
            T::from_f64(if is_single { 1.0 } else { mirrored_weight })
        })
    }
}
