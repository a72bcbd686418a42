//! Pooling by the mean of each window.

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::{PoolOptions, Pooling as _};
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::{expect_rank, output_of};
use crate::layers::layer::Layer;
use crate::layers::pooling::volume::{to_columns, to_planes, to_volumes};
use crate::layers::pooling::window::{Window, window_settings};
use crate::module::Module;

/// The mean of each window of `[n, c, l]`. PyTorch: `torch.nn.AvgPool1d`.
pub type AvgPool1d = AvgPool<1>;

/// The mean of each window of `[n, c, h, w]`. PyTorch: `torch.nn.AvgPool2d`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{AvgPool2d, Layer};
///
/// let maps = Tensor::<f32>::arange(16).reshape([1, 4, 4]);
/// let tape = Tape::new();
/// let y = AvgPool2d::new([2, 4]).forward(tape.constant(&maps));
/// assert_eq!(y.value().to_vec(), [3.5, 11.5]);
/// ```
pub type AvgPool2d = AvgPool<2>;

/// The mean of each window of `[n, c, d, h, w]`. PyTorch: `torch.nn.AvgPool3d`.
pub type AvgPool3d = AvgPool<3>;

/// The mean of each window over `D` dimensions: [`AvgPool1d`], [`AvgPool2d`], [`AvgPool3d`]. Padding is zeros, which count unless told
/// otherwise. The batch dimension may be left out.
#[derive(Clone, Debug)]
pub struct AvgPool<const D: usize> {
    window: Window,
    count_include_pad: bool,
    divisor_override: Option<usize>,
}

impl<const D: usize> AvgPool<D> {
    /// A layer with windows of the size `kernel`, one number or one for each dimension.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        AvgPool { window: Window::new(kernel.into()), count_include_pad: true, divisor_override: None }
    }

    window_settings!();

    /// With or without the padding in the number of elements that a sum is divided by; with by default.
    #[must_use]
    pub fn count_include_pad(self, count_include_pad: bool) -> Self {
        AvgPool { count_include_pad, ..self }
    }

    /// With a number that sums are divided by instead of the number of elements.
    #[must_use]
    pub fn divisor_override(self, divisor: usize) -> Self {
        AvgPool { divisor_override: Some(divisor), ..self }
    }

    /// The options with the number that sums are divided by, 1 in the second of two steps.
    fn divided(&self, options: PoolOptions, second: bool) -> PoolOptions {
        let options = options.count_include_pad(self.count_include_pad);
        match self.divisor_override {
            Some(divisor) => options.divisor_override(if second { 1 } else { divisor }),
            None => options,
        }
    }

    #[track_caller]
    pub(super) fn pooled<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (kernel, options) = self.window.whole();
        let options = self.divided(options, false);
        match D {
            1 => x.try_avg_pool1d(kernel, &options),
            2 => x.try_avg_pool2d(kernel, &options),
            _ => self.over_volumes(x),
        }
    }

    /// The means of planes, then along the depth: the numbers of elements multiply.
    #[track_caller]
    fn over_volumes<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        expect_rank("avg_pool3d", x, [4, 5])?;
        let [(kernel, options), (depth, along_depth)] = self.window.planes_and_depth()?;
        let planes = to_planes(x)?.try_avg_pool2d(kernel, &self.divided(options, false))?;
        to_volumes(to_columns(planes, x)?.try_avg_pool2d(depth, &self.divided(along_depth, true))?, planes)
    }
}

impl<T: Float, const D: usize> Module<T> for AvgPool<D> {}

impl<T: Float, const D: usize> Layer<T> for AvgPool<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.pooled(x), self.window.made, || self.window.named(&format!("AvgPool{D}d"), x))
    }
}
