//! Fourier transforms of tensors and recorded variables, as PyTorch's `torch.fft`.
//!
//! A complex number is a pair of real numbers in a last dimension of size 2, as in `torch.view_as_real`: a signal of n complex numbers has
//! the shape `[n, 2]`. A transform is a linear map, and its derivative is another transform. So variables have derivatives of every order
//! in both modes, and `vmap` transforms all examples in one operation.
//!
//! | subject | items |
//! |---|---|
//! | one dimension | [`Transforms`]: `fft`, `ifft`, `rfft`, `irfft`, `hfft`, `ihfft` |
//! | several dimensions | [`TransformsOfMany`]: `fft2`, `fftn`, `rfft2`, `irfftn`, `hfftn`, … |
//! | the scale | [`Norm`] |
//! | frequencies, and their order | [`fftfreq`], [`rfftfreq`]; [`Shifts`]: `fftshift`, `ifftshift` |
//! | spectra of frames of a signal | [`ShortTime`]: `stft`, `istft`; [`Stft`]; [`hann_window`], [`hamming_window`], [`blackman_window`], [`bartlett_window`], [`kaiser_window`] |
//! | convolution of long signals | [`Convolves`]: `fft_convolve`; [`ConvolveMode`] |
//! | arithmetic of complex numbers | [`complex`]; [`ComplexNumbers`]: `real`, `imag`, `conj`, `complex_mul`, `complex_abs` |
//! | the arrays that have transforms | [`Array`] |
//!
//! ```
//! # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
//! use wengert::fft::{Norm, prelude::*};
//! use wengert::prelude::*;
//!
//! // A wave of frequency 3 among 16 samples: its spectrum has one peak.
//! let t = Tensor::<f64>::arange(16) * (std::f64::consts::TAU / 16.0);
//! let spectrum = (t * 3.0).cos().rfft(None, -1, Norm::Backward); // [9, 2]
//! let power = spectrum.square().sum(-1);
//! assert_eq!(power.argmax(0), Tensor::scalar(3));
//!
//! // The energy of a signal equals the energy of its spectrum (Parseval), so the gradient is 2x.
//! let tape = Tape::<f64>::new();
//! let x = tape.var(&Tensor::from([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]]));
//! let [slope] = x.fft(None, -1, Norm::Ortho).square().sum(..).grad([x]);
//! assert!((slope - x * 2.0).abs().amax(..).item() < 1e-14);
//! ```

mod array;
mod complex;
mod convolve;
mod frequencies;
mod kernel;
mod length;
mod map;
mod norm;
mod operation;
mod several;
mod short_time;
mod steps;
mod transforms;
mod windows;

use std::fmt;

pub use array::Array;
pub use complex::{ComplexNumbers, complex, try_complex};
pub use convolve::{ConvolveMode, Convolves};
pub use frequencies::{Shifts, fftfreq, rfftfreq, try_fftfreq, try_rfftfreq};
pub use norm::Norm;
pub use several::TransformsOfMany;
pub use short_time::{ShortTime, Stft};
pub use transforms::Transforms;
pub use windows::{
    bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window, try_bartlett_window,
    try_blackman_window, try_hamming_window, try_hann_window, try_kaiser_window,
};

/// The traits of the transforms, imported without their names.
pub mod prelude {
    pub use crate::{
        ComplexNumbers as _, Convolves as _, Shifts as _, ShortTime as _, Transforms as _, TransformsOfMany as _,
    };
}

/// Panics with the full text of `error`. Functions that return no `Result` call this function. The panic names the line that calls `raise`,
/// or the next caller outside of functions with `#[track_caller]`.
#[track_caller]
pub(crate) fn raise(error: impl fmt::Display) -> ! {
    panic!("{error}")
}
