//! Pooling by the mean of each window.

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::Pooling as _;
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::layers::pooling::window::{Window, padding_setting, window_settings};
use crate::module::Module;

/// The mean of each window of n sequences with c channels and length l, from `[n, c, l]` to `[n, c, l']`. Here l' is the length of the
/// output. PyTorch: `torch.nn.AvgPool1d`.
pub type AvgPool1d = AvgPool<1>;

/// The mean of each window of n images with c channels, height h and width w, from `[n, c, h, w]` to `[n, c, h', w']`. Here h' and w' are
/// the height and width of the output. PyTorch: `torch.nn.AvgPool2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AvgPool2d, Layer};
///
/// let maps = Tensor::<f32>::arange(16).reshape([1, 4, 4]);
/// let tape = Tape::new();
/// let y = AvgPool2d::new([2, 4]).forward(tape.constant(&maps));
/// assert_eq!(y.value().to_vec(), [3.5, 11.5]);
/// ```
pub type AvgPool2d = AvgPool<2>;

/// The mean of each window, from `[n, c, d, h, w]` to `[n, c, d', h', w']`. Here d', h' and w' are the depth, height and width of the
/// output. There are n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.AvgPool3d`.
pub type AvgPool3d = AvgPool<3>;

/// The mean of each window over `D` dimensions: [`AvgPool1d`], [`AvgPool2d`], [`AvgPool3d`].
///
/// Padding elements are zeros. They count as elements of a window, unless [`count_include_pad`](Self::count_include_pad) is false. An input may
/// also lack the batch dimension.
#[derive(Clone, Debug)]
pub struct AvgPool<const D: usize> {
    window: Window,
    count_include_pad: bool,
    divisor_override: Option<usize>,
}

impl<const D: usize> AvgPool<D> {
    /// Returns a layer with windows of size `kernel`, one number for all dimensions or one for each.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        AvgPool::with_window(Window::new(kernel.into()))
    }

    /// Returns a layer with the given window and the default settings.
    pub(super) fn with_window(window: Window) -> Self {
        AvgPool { window, count_include_pad: true, divisor_override: None }
    }

    window_settings!();
    padding_setting!();

    /// Sets whether the padding elements of a window count in the number by which the sum of the window is divided; true by default.
    #[must_use]
    pub fn count_include_pad(self, count_include_pad: bool) -> Self {
        AvgPool { count_include_pad, ..self }
    }

    /// Divides the sum of each window by `divisor` and not by the number of its elements.
    #[must_use]
    pub fn divisor_override(self, divisor: usize) -> Self {
        AvgPool { divisor_override: Some(divisor), ..self }
    }

    /// Returns the mean of each window over the last `D` dimensions of `x`.
    #[track_caller]
    pub(super) fn pool<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (kernel, mut options) = self.window.size_and_options();
        options = options.count_include_pad(self.count_include_pad);
        if let Some(divisor) = self.divisor_override {
            options = options.divisor_override(divisor);
        }
        match D {
            1 => x.try_avg_pool1d(kernel, &options),
            2 => x.try_avg_pool2d(kernel, &options),
            _ => x.try_avg_pool3d(kernel, &options),
        }
    }
}

impl<T: Float, const D: usize> Module<T> for AvgPool<D> {}

impl<T: Float, const D: usize> Layer<T> for AvgPool<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.pool(x), self.window.created_at, || self.window.describe(&format!("AvgPool{D}d"), x))
    }
}
