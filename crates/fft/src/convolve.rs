//! Convolution by Fourier transforms: the spectrum of a convolution is the product of the spectra.
//!
//! Both signals are extended by zeros to at least n + m - 1 elements. A shorter transform would add the end of the convolution to its
//! start. The cost is (n + m) log (n + m) instead of n m.

use wengert_macros::twins;
use wengert_tensor::ops::Result;
use wengert_tensor::{Shape, Site};

use crate::array::Array;
use crate::complex::multiply;
use crate::length::fast_length;
use crate::norm::Norm;
use crate::steps::{Steps, argument_error, broadcast_shapes};
use crate::transforms::{transform_half_line, transform_real_line};

/// The elements that a convolution of a signal of n elements with a signal of m elements returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConvolveMode {
    /// All n + m - 1 elements.
    #[default]
    Full,
    /// The n elements in the middle of all n + m - 1 elements.
    Same,
    /// The elements to which all elements of the shorter operand contribute: max(n, m) - min(n, m) + 1.
    Valid,
}

/// Convolution by Fourier transforms.
#[twins(blanket)]
pub trait Convolves: Array {
    /// Returns the convolutions z_k = Σ x_j y_(k-j) of real signals, summed over j, along the last dimension. `self` has the signals x, and
    /// `other` has the signals y. The other dimensions broadcast. The error of each element is relative to the largest elements of its
    /// signal, because rounding errors spread over the spectrum. A NaN makes its whole signal NaN. PyTorch:
    /// `torchaudio.functional.fftconvolve`; SciPy: `signal.fftconvolve`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
    /// use wengert::fft::{ConvolveMode, prelude::*};
    /// use wengert::prelude::*;
    ///
    /// let (x, y) = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from([0.0, 1.0, 0.5]));
    /// let full = x.fft_convolve(&y, ConvolveMode::Full);
    /// let expected = Tensor::from([0.0, 1.0, 2.5, 4.0, 1.5]);
    /// assert!((full - expected).abs().amax(..).item() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If an operand has no dimension, the last dimension of an operand has no element, the other dimensions do not
    /// broadcast, or memory cannot hold the result.
    fn try_fft_convolve(&self, other: &Self, mode: ConvolveMode) -> Result<Self> {
        let at = Site::here("fft_convolve");
        let (left, right) = (self.shape(), other.shape());
        let (Some(&n), Some(&m)) = (left.last(), right.last()) else {
            return Err(argument_error::<Self>(at, "The operands must have at least one dimension."));
        };
        if n == 0 || m == 0 {
            let message =
                format!("The operands must have elements along the last dimension, but got {left} and {right}.");
            return Err(argument_error::<Self>(at, message));
        }
        let leading_shape = |shape: &Shape| Shape::from(&shape[..shape.rank() - 1]);
        let rank = broadcast_shapes(&leading_shape(&left), &leading_shape(&right), at)?.rank();
        let full_len = n.saturating_add(m) - 1;
        let fft_len = fast_length(full_len);
        let spectrum = |x: &Self| transform_real_line(x, Some(fft_len), -1, Norm::Backward, at);
        let product = multiply(&spectrum(self)?, &spectrum(other)?, at)?;
        let full = transform_half_line(&product, Some(fft_len), -1, Norm::Backward, at)?;
        let len = match mode {
            ConvolveMode::Full => full_len,
            ConvolveMode::Same => n,
            ConvolveMode::Valid => n.max(m) - n.min(m) + 1,
        };
        full.slice_axis(rank, (full_len - len) / 2, len, at)
    }
}
