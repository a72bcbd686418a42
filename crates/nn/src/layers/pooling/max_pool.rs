//! Pooling by the largest element of each window.

use wengert_autograd::{Error, Var};
use wengert_macros::twins;
use wengert_tensor::ops::Pooling as _;
use wengert_tensor::{Float, Sizes, Tensor};

use crate::Result;
use crate::layers::forward::{add_layer_context, output_of, pass_output};
use crate::layers::layer::Layer;
use crate::layers::pooling::window::{Window, padding_setting, window_settings};
use crate::module::Module;

/// The maximum of each window of n sequences with c channels and length l, from `[n, c, l]` to `[n, c, l']`. Here l' is the length of the
/// output. PyTorch: `torch.nn.MaxPool1d`.
pub type MaxPool1d = MaxPool<1>;

/// The maximum of each window of n images with c channels, height h and width w, from `[n, c, h, w]` to `[n, c, h', w']`. Here h' and w' are
/// the height and width of the output. PyTorch: `torch.nn.MaxPool2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, MaxPool2d};
///
/// let tape = Tape::new();
/// let maps = tape.constant(&Tensor::<f32>::arange(64).reshape([1, 1, 8, 8]));
/// assert_eq!(MaxPool2d::new(4).forward(maps).value().to_vec(), [27.0, 31.0, 59.0, 63.0]);
/// assert_eq!(MaxPool2d::new(3).stride(2).padding(1).forward(maps).shape(), [1, 1, 4, 4]);
/// ```
pub type MaxPool2d = MaxPool<2>;

/// The maximum of each window, from `[n, c, d, h, w]` to `[n, c, d', h', w']`. Here d', h' and w' are the depth, height and width of the
/// output. There are n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.MaxPool3d`.
pub type MaxPool3d = MaxPool<3>;

/// The maximum of each window over `D` dimensions: [`MaxPool1d`], [`MaxPool2d`], [`MaxPool3d`].
///
/// Padding elements count as -∞. If several elements of a window are the largest, the gradient goes to the first of them. An input may also lack
/// the batch dimension.
#[derive(Clone, Debug)]
pub struct MaxPool<const D: usize> {
    window: Window,
}

impl<const D: usize> MaxPool<D> {
    /// Returns a layer with windows of size `kernel`, one number for all dimensions or one for each.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        MaxPool::with_window(Window::new(kernel.into()))
    }

    /// Returns a layer with the given window and the default settings.
    pub(super) fn with_window(window: Window) -> Self {
        MaxPool { window }
    }

    window_settings!();
    padding_setting!();

    /// Sets the distance in the input from one element of a window to the next; 1 by default. It is one number for all dimensions or one for
    /// each.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.window.dilation = dilation.into();
        self
    }
}

impl<T: Float, const D: usize> Module<T> for MaxPool<D> {}

impl<T: Float, const D: usize> Layer<T> for MaxPool<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.pool(x), self.window.created_at, || self.window.describe(&format!("MaxPool{D}d"), x))
    }
}

#[twins]
impl<const D: usize> MaxPool<D> {
    /// Returns the maximum of each window, and the row-major position of each maximum in the last `D` dimensions of `x`, for
    /// [`MaxUnpool`](crate::MaxUnpool). A window of padding alone has position 0. `x` is evaluated at once, because the positions are not
    /// recorded. PyTorch: `return_indices=True`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::MaxPool1d;
    ///
    /// let tape = Tape::new();
    /// let x = tape.constant(Tensor::from([[1.0, 4.0, 3.0, 2.0]]));
    /// let (maximum, indices) = MaxPool1d::new(2).forward_with_indices(x);
    /// assert_eq!((maximum.value().to_vec(), indices.to_vec()), (vec![4.0, 3.0], vec![1, 2]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the shape of `x` does not fit, `x` cannot be evaluated, or there is not enough memory. The error names the layer.
    pub fn try_forward_with_indices<'t, T: Float>(&self, x: Var<'t, T>) -> Result<(Var<'t, T>, Tensor<i64>)> {
        let (kernel, options) = self.window.size_and_options();
        let pooled = match D {
            1 => x.try_max_pool1d_with_indices(kernel, &options),
            2 => x.try_max_pool2d_with_indices(kernel, &options),
            _ => x.try_max_pool3d_with_indices(kernel, &options),
        };
        let describe = || self.window.describe(&format!("MaxPool{D}d"), x);
        let (maximum, indices) = add_layer_context(pooled, self.window.created_at, describe)?;
        Ok((pass_output::<T, _>(self, maximum), indices))
    }
}

impl<const D: usize> MaxPool<D> {
    /// Returns the maximum of each window over the last `D` dimensions of `x`.
    #[track_caller]
    pub(super) fn pool<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (kernel, options) = self.window.size_and_options();
        match D {
            1 => x.try_max_pool1d(kernel, &options),
            2 => x.try_max_pool2d(kernel, &options),
            _ => x.try_max_pool3d(kernel, &options),
        }
    }
}
