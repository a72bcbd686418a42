//! Short-time Fourier transforms: the spectra of overlapping frames of a signal, and the signal of these spectra.

use wengert_macros::twins;
use wengert_tensor::ops::{PadMode, Padding, Result, TensorLike};
use wengert_tensor::{Binary, Error, Float, Scalar, Shape, Site, Tensor, View};

use crate::array::Array;
use crate::complex::check_pairs;
use crate::norm::Norm;
use crate::steps::{Steps, argument_error, check_size, join_parts};
use crate::transforms::{transform_complex_line, transform_half_line, transform_real_line};

/// The smallest sum of squared windows by which [`ShortTime::istft`] divides, as in PyTorch.
const MIN_SQUARED_WINDOW_SUM: f64 = 1e-11;

/// The settings of a short-time Fourier transform. The setters are named like the arguments of PyTorch's `torch.stft`.
#[derive(Clone, Debug)]
pub struct Stft<T: Float = f32> {
    n_fft: usize,
    hop_length: usize,
    window: Option<Tensor<T>>,
    center: bool,
    pad_mode: PadMode,
    normalized: bool,
    onesided: bool,
}

impl<T: Float> Stft<T> {
    /// Returns the settings for frames of `n_fft` elements, with PyTorch's defaults: neighbouring frames begin `n_fft` / 4 elements apart,
    /// no window, and centred frames.
    pub fn new(n_fft: usize) -> Self {
        Self {
            n_fft,
            hop_length: n_fft / 4,
            window: None,
            center: true,
            pad_mode: PadMode::Reflect,
            normalized: false,
            onesided: true,
        }
    }

    /// Sets the distance between the first elements of neighbouring frames, at least 1.
    #[must_use]
    pub fn hop_length(mut self, hop_length: usize) -> Self {
        self.hop_length = hop_length;
        self
    }

    /// Sets the weights `[win_length]` of the elements of a frame, for example [`hann_window`](crate::hann_window). A window of fewer than
    /// `n_fft` elements is extended by zeros on both sides. Without a window, all weights are 1.
    #[must_use]
    pub fn window(mut self, window: &Tensor<T>) -> Self {
        self.window = Some(window.clone());
        self
    }

    /// Sets whether the signal is padded by `n_fft` / 2 elements on both sides, so that frame t is centred at element t · `hop_length`. The
    /// default is true. Otherwise frame t begins at this element.
    #[must_use]
    pub fn center(mut self, center: bool) -> Self {
        self.center = center;
        self
    }

    /// Sets the values of the padding of centred frames. The default is [`PadMode::Reflect`].
    #[must_use]
    pub fn pad_mode(mut self, pad_mode: PadMode) -> Self {
        self.pad_mode = pad_mode;
        self
    }

    /// Sets whether the spectra are divided by √`n_fft`. The default is false.
    #[must_use]
    pub fn normalized(mut self, normalized: bool) -> Self {
        self.normalized = normalized;
        self
    }

    /// Sets whether a spectrum has only its first `n_fft` / 2 + 1 frequencies, which determine the others. The default is true.
    #[must_use]
    pub fn onesided(mut self, onesided: bool) -> Self {
        self.onesided = onesided;
        self
    }

    /// Returns the normalization of the transform of each frame.
    fn norm(&self) -> Norm {
        if self.normalized { Norm::Ortho } else { Norm::Backward }
    }

    /// Returns the number of elements that centred frames add on each side of the signal.
    fn center_padding(&self) -> usize {
        if self.center { self.n_fft / 2 } else { 0 }
    }

    /// Returns the number of frequencies in a spectrum.
    fn frequency_count(&self) -> usize {
        if self.onesided { self.n_fft / 2 + 1 } else { self.n_fft }
    }

    /// Returns the frames of the signals `[…, total]`: windows along the dimension `axis`.
    fn frame_view(&self, axis: usize) -> View {
        View::Unfold { axis, size: self.n_fft, step: self.hop_length }
    }

    /// Returns the window, padded with zeros on both sides to `[n_fft]`. Returns `None` if no window is set; all weights are then 1.
    ///
    /// # Errors
    ///
    /// If a setting is out of its range.
    #[track_caller]
    fn padded_window<A: Array<Elem = T>>(&self, at: Site) -> Result<Option<Tensor<T>>, A::Error> {
        let n = self.n_fft;
        if n == 0 || self.hop_length == 0 {
            let message = format!("n_fft and hop_length must be positive, but got {n} and {}", self.hop_length);
            return Err(argument_error::<A>(at, message));
        }
        let Some(window) = &self.window else { return Ok(None) };
        let shape = window.shape();
        if shape.rank() != 1 || !(1..=n).contains(&shape[0]) {
            let message =
                format!("The window must have the shape [win_length] with 1 to {n} elements, but has {shape}");
            return Err(argument_error::<A>(at, message));
        }
        let left = (n - shape[0]) / 2;
        let right = n - shape[0] - left;
        let padded =
            window.try_pad(&[left as isize, right as isize], PadMode::Constant(0.0)).map_err(A::Error::from)?;
        Ok(Some(padded))
    }
}

/// Short-time Fourier transforms of audio and other long signals.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::{Stft, hann_window, prelude::*};
/// use wengert::prelude::*;
///
/// // A wave whose frequency rises: frame after frame, its peak moves to higher frequencies.
/// let t = Tensor::<f64>::arange(512) / 512.0;
/// let wave = (t.square() * 300.0).sin();
/// let options = Stft::new(64).hop_length(16).window(&hann_window(64, true));
/// let spectrum = wave.stft(&options); // [33 frequencies, 33 frames, 2]
/// let peaks = spectrum.complex_abs().argmax(0);
/// assert!(peaks.get(&[8]) < peaks.get(&[24]));
///
/// // The inverse restores the signal.
/// let restored = spectrum.istft(&options, Some(512));
/// assert!((restored - wave).abs().amax(..).item() < 1e-12);
/// ```
#[twins(blanket)]
pub trait ShortTime: Array {
    /// Returns the spectra `[…, f, t, 2]` of the frames of signals `[…, n]`, as complex numbers: f frequencies, and t frames. With centred
    /// frames, t is n / `hop_length` + 1 if `n_fft` is even. PyTorch: `view_as_real` of `torch.stft`, which takes `[n]` and `[b, n]`.
    ///
    /// # Errors
    ///
    /// If the array has no dimension, `n_fft` or `hop_length` is 0, or the window does not have the shape `[w]` with 1 to `n_fft` elements.
    /// If the signals with their padding are shorter than a frame, or too short for the padding mode. If memory cannot hold the result.
    fn try_stft(&self, options: &Stft<Self::Elem>) -> Result<Self> {
        let at = Site::here("stft");
        let weights = options.padded_window::<Self>(at)?;
        let Some(axis) = self.shape().rank().checked_sub(1) else {
            return Err(argument_error::<Self>(at, "The signals must have at least one dimension."));
        };
        let signals = pad_signals(self, options, at)?;
        let (n, len) = (options.n_fft, signals.shape()[axis]);
        if n > len {
            return Err(argument_error::<Self>(
                at,
                format!("A frame of n_fft = {n} elements is longer than the signals of {len}"),
            ));
        }
        let frames = apply_window(&signals.apply_view(options.frame_view(axis), at)?, weights.as_ref(), at)?;
        let spectra = if options.onesided {
            transform_real_line(&frames, None, -1, options.norm(), at)?
        } else {
            let zeros = frames.try_number(Self::Elem::ZERO)?.expand_to(&frames.shape(), at)?;
            transform_complex_line(&join_parts(&frames, &zeros, at)?, None, -1, false, options.norm(), at)?
        };
        spectra.move_axis(axis, axis + 1, at)
    }

    /// Returns the signals `[…, n]` of spectra `[…, f, t, 2]`: the inverse of [`stft`](Self::stft) with the same options. Overlapping frames
    /// are weighted, added and divided by the sum of the squared windows (Griffin and Lim, 1984). So the result is the signal whose
    /// spectra are nearest to the given spectra. Only the first `n_fft` / 2 + 1 frequencies are read. With `length`, the signals are cut or
    /// extended by zeros to this length. PyTorch: `torch.istft`.
    ///
    /// # Errors
    ///
    /// If the spectra do not have the number of frequencies of the options, or no frame. If the sum of the squared windows is below 1e-11
    /// at an element, as for frames without overlap whose windows begin with 0. If `length` is 0, a setting is out of its range, or memory
    /// cannot hold the result.
    fn try_istft(&self, options: &Stft<Self::Elem>, length: Option<usize>) -> Result<Self> {
        let at = Site::here("istft");
        let weights = options.padded_window::<Self>(at)?;
        let shape = check_pairs(self, at)?;
        let (n, count) = (options.n_fft, options.frequency_count());
        let axis = match shape.rank().checked_sub(3) {
            Some(axis) if shape[axis] == count && shape[axis + 1] > 0 => axis,
            _ => {
                let message = format!("Expected spectra […, {count}, t, 2] with at least one frame, but got {shape}");
                return Err(argument_error::<Self>(at, message));
            }
        };
        let spectra = self.move_axis(axis, axis + 1, at)?;
        let frames = transform_half_line(&spectra, Some(n), -1, options.norm(), at)?;
        let frames = apply_window(&frames, weights.as_ref(), at)?;
        let total = (shape[axis + 1] - 1).saturating_mul(options.hop_length).saturating_add(n);
        let signals: Shape = shape[..axis].iter().copied().chain([total]).collect();
        check_size::<Self>(&signals, at)?;
        let sums = frames.apply_embed(options.frame_view(axis), &signals, at)?;
        let start = options.center_padding();
        let len = length.unwrap_or(total - 2 * start);
        let kept_len = len.min(total - start);
        let squares =
            sum_squared_windows(options, weights, total, shape[axis + 1], at)?.slice_axis(0, start, kept_len, at)?;
        let smallest = squares.iter().fold(f64::INFINITY, |smallest, square| smallest.min(square.to_f64()));
        if kept_len == 0 || smallest < MIN_SQUARED_WINDOW_SUM {
            let message = if kept_len == 0 {
                "The signals must have at least one element.".to_owned()
            } else {
                format!(
                    "The sum of the squared windows must be at least 1e-11, but its minimum is {smallest:.2e}. A smaller hop_length helps."
                )
            };
            return Err(argument_error::<Self>(at, message));
        }
        let sums = sums.slice_axis(axis, start, kept_len, at)?;
        let divisor = sums.try_constant(&squares)?.expand_to(&sums.shape(), at)?;
        sums.apply_binary(Binary::Div, &divisor, at)?.resize_axis(axis, len, at)
    }
}

/// Returns the signals `[…, n]` with the padding of centred frames.
#[track_caller]
fn pad_signals<A: Array>(x: &A, options: &Stft<A::Elem>, at: Site) -> Result<A> {
    let center_padding = options.center_padding();
    if center_padding == 0 {
        return Ok(x.clone());
    }
    let shape = x.shape();
    let last = shape.rank() - 1;
    // Except for constant padding, `pad` accepts only one or two dimensions before the last one. So all dimensions before the last one are
    // joined to one.
    let count = Shape::from(&shape[..last]).numel();
    let lines = x.apply_view(View::Reshape(Shape::from([count, shape[last]])), at)?;
    let padded = lines.try_pad(&[center_padding as isize; 2], options.pad_mode)?;
    let size = padded.shape()[1];
    padded.apply_view(View::Reshape(shape.replaced(last..last + 1, &[size])), at)
}

/// Returns the frames `[…, t, n]`, times the weights `[n]`.
fn apply_window<A: Array>(frames: &A, weights: Option<&Tensor<A::Elem>>, at: Site) -> Result<A> {
    let Some(weights) = weights else { return Ok(frames.clone()) };
    let weights = frames.try_constant(weights)?.expand_to(&frames.shape(), at)?;
    frames.apply_binary(Binary::Mul, &weights, at)
}

/// Returns, for each of the `total` elements of a signal, the sum of the squared weights that it has in the `count` frames.
fn sum_squared_windows<T: Float>(
    options: &Stft<T>,
    weights: Option<Tensor<T>>,
    total: usize,
    count: usize,
    at: Site,
) -> Result<Tensor<T>, Error> {
    let squares = match weights {
        Some(weights) => weights.apply_binary(Binary::Mul, &weights, at)?,
        None => Tensor::try_full([options.n_fft], T::ONE)?,
    };
    let frames = squares.expand_to(&Shape::from([count, options.n_fft]), at)?;
    frames.apply_embed(options.frame_view(0), &Shape::from([total]), at)
}
