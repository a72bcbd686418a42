//! The inverse of pooling by the largest element of each window.

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::ops::Pooling as _;
use wengert_tensor::{Float, Sizes, Tensor};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::pooling::window::{Window, padding_setting};
use crate::module::Module;

/// The inverse of [`MaxPool1d`](crate::MaxPool1d), from `[n, c, l']` to `[n, c, l]`. PyTorch: `torch.nn.MaxUnpool1d`.
pub type MaxUnpool1d = MaxUnpool<1>;

/// The inverse of [`MaxPool2d`](crate::MaxPool2d), from `[n, c, h', w']` to `[n, c, h, w]`. PyTorch: `torch.nn.MaxUnpool2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{MaxPool2d, MaxUnpool2d};
///
/// let tape = Tape::new();
/// let image = tape.constant(Tensor::from([[[1.0, 2.0, 0.0], [4.0, 3.0, 0.0]]]));
/// let (maximum, indices) = MaxPool2d::new(2).forward_with_indices(image);
/// let sparse = MaxUnpool2d::new(2).forward(maximum, &indices, Some(&[2, 3]));
/// assert_eq!(sparse.value(), Tensor::from([[[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]]]));
/// ```
pub type MaxUnpool2d = MaxUnpool<2>;

/// The inverse of [`MaxPool3d`](crate::MaxPool3d), from `[n, c, d', h', w']` to `[n, c, d, h, w]`. PyTorch: `torch.nn.MaxUnpool3d`.
pub type MaxUnpool3d = MaxUnpool<3>;

/// The inverse of [`MaxPool`](crate::MaxPool) over `D` dimensions, except that the elements that are no maximum become 0. The types are
/// [`MaxUnpool1d`], [`MaxUnpool2d`] and [`MaxUnpool3d`]. Give the layer the settings of the pooling.
#[derive(Clone, Debug)]
pub struct MaxUnpool<const D: usize> {
    window: Window,
}

impl<const D: usize> MaxUnpool<D> {
    /// Returns a layer for windows of size `kernel`, one number for all dimensions or one for each.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        MaxUnpool { window: Window::new(kernel.into()) }
    }

    /// Sets the distance from one window to the next, one number for all dimensions or one for each. By default it is the size of a window.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.window.stride = Some(stride.into());
        self
    }

    padding_setting!();
}

#[twins]
impl<const D: usize> MaxUnpool<D> {
    /// Returns zeros with each element of `x` at its position in `indices`, which
    /// [`MaxPool::forward_with_indices`](crate::MaxPool::forward_with_indices) returned. `output_size` has the last `D` sizes of the result.
    /// By default, the windows cover the result and its padding exactly. If positions are equal, the last element wins.
    ///
    /// # Errors
    ///
    /// If `x` does not have `D` + 1 or `D` + 2 dimensions, or has no elements in a dimension that is not the batch. If `indices` has another
    /// shape than `x`, or a position outside of the result. If a size of `output_size` differs from the default by the stride or more, or
    /// memory cannot hold the result.
    pub fn try_forward<'t, T: Float>(
        &self,
        x: Var<'t, T>,
        indices: &Tensor<i64>,
        output_size: Option<&[usize]>,
    ) -> Result<Var<'t, T>> {
        let (kernel, options) = self.window.size_and_options();
        let y = match D {
            1 => x.try_max_unpool1d(indices, kernel, &options, output_size),
            2 => x.try_max_unpool2d(indices, kernel, &options, output_size),
            _ => x.try_max_unpool3d(indices, kernel, &options, output_size),
        };
        output_of::<T, _>(self, y, self.window.created_at, || self.window.describe(&format!("MaxUnpool{D}d"), x))
    }
}

impl<T: Float, const D: usize> Module<T> for MaxUnpool<D> {}
