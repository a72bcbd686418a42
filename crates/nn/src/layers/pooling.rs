//! Largest elements and means of windows of a given size. Over volumes they are taken of planes first.

use std::panic::Location;

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::{PoolOptions, Pooling as _, Views as _};
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::layer::{Layer, expect_rank, output_of, refused};
use crate::module::Module;

/// The largest of each window of `[n, c, l]`. PyTorch: `torch.nn.MaxPool1d`.
pub type MaxPool1d = MaxPool<1>;

/// The largest of each window of `[n, c, h, w]`. PyTorch: `torch.nn.MaxPool2d`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, MaxPool2d};
///
/// let tape = Tape::new();
/// let maps = tape.constant(&Tensor::<f32>::arange(64).reshape([1, 1, 8, 8]));
/// assert_eq!(MaxPool2d::new(4).forward(maps).value().to_vec(), [27.0, 31.0, 59.0, 63.0]);
/// assert_eq!(MaxPool2d::new(3).stride(2).padding(1).forward(maps).shape(), [1, 1, 4, 4]);
/// ```
pub type MaxPool2d = MaxPool<2>;

/// The largest of each window of `[n, c, d, h, w]`. PyTorch: `torch.nn.MaxPool3d`.
pub type MaxPool3d = MaxPool<3>;

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

/// A window and how it moves.
#[derive(Clone, Debug)]
struct Window {
    kernel: Sizes,
    stride: Option<Sizes>,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    made: &'static Location<'static>,
}

impl Window {
    #[track_caller]
    fn new(kernel: Sizes) -> Self {
        let made = Location::caller();
        Window { kernel, stride: None, padding: 0.into(), dilation: 1.into(), ceil_mode: false, made }
    }

    /// The window of one or two dimensions.
    fn whole(&self) -> (Sizes, PoolOptions) {
        let options = PoolOptions::default().padding(self.padding.clone()).dilation(self.dilation.clone());
        let stride = self.stride.as_ref().unwrap_or(&self.kernel);
        (self.kernel.clone(), options.stride(stride.clone()).ceil_mode(self.ceil_mode))
    }

    /// The window of three dimensions as one over planes, then one along the depth.
    #[track_caller]
    fn planes_and_depth(&self) -> Result<[(Sizes, PoolOptions); 2], Error> {
        let kernel = three(&self.kernel, "kernel_size")?;
        let stride = three(self.stride.as_ref().unwrap_or(&self.kernel), "stride")?;
        let (padding, dilation) = (three(&self.padding, "padding")?, three(&self.dilation, "dilation")?);
        let part = |sizes: fn([isize; 3], isize) -> [isize; 2]| {
            let options = PoolOptions::default().stride(sizes(stride, 1)).padding(sizes(padding, 0));
            (sizes(kernel, 1).into(), options.dilation(sizes(dilation, 1)).ceil_mode(self.ceil_mode))
        };
        Ok([part(|[_, h, w], _| [h, w]), part(|[d, ..], none| [d, none])])
    }

    /// The layer in an error.
    fn named<T: Float>(&self, name: &str, x: Var<'_, T>) -> String {
        format!("{name}({:?}) on an input of shape {}", self.kernel.as_slice(), x.shape())
    }
}

/// The settings that both poolings have.
macro_rules! window_settings {
    () => {
        /// With this distance from one window to the next, one number or one for each dimension; by default that of windows side
        /// by side.
        #[must_use]
        pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
            self.window.stride = Some(stride.into());
            self
        }

        /// With this much on both sides, one number or one for each dimension: at most half a window, 0 by default.
        #[must_use]
        pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
            self.window.padding = padding.into();
            self
        }

        /// With or without a last window that begins inside and ends outside; without by default.
        #[must_use]
        pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
            self.window.ceil_mode = ceil_mode;
            self
        }
    };
}

/// The largest element of each window over `D` dimensions: [`MaxPool1d`], [`MaxPool2d`], [`MaxPool3d`]. Padding is less than any
/// number; the gradient goes to the first of several that are equal. The batch dimension may be left out.
#[derive(Clone, Debug)]
pub struct MaxPool<const D: usize> {
    window: Window,
}

impl<const D: usize> MaxPool<D> {
    /// A layer with windows of the size `kernel`, one number or one for each dimension.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        MaxPool { window: Window::new(kernel.into()) }
    }

    window_settings!();

    /// With this distance from one element of a window to the next, one number or one for each dimension; 1 by default.
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
        output_of(self, self.pooled(x), self.window.made, || self.window.named(&format!("MaxPool{D}d"), x))
    }
}

impl<const D: usize> MaxPool<D> {
    #[track_caller]
    pub(crate) fn pooled<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let (kernel, options) = self.window.whole();
        match D {
            1 => x.try_max_pool1d(kernel, &options),
            2 => x.try_max_pool2d(kernel, &options),
            _ => self.over_volumes(x),
        }
    }

    /// The largest of planes, then along the depth: the first of several that are equal is the same as in one go.
    #[track_caller]
    fn over_volumes<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        expect_rank("max_pool3d", x, [4, 5])?;
        let [(kernel, options), (depth, along_depth)] = self.window.planes_and_depth()?;
        let planes = to_planes(x)?.try_max_pool2d(kernel, &options)?;
        to_volumes(to_columns(planes, x)?.try_max_pool2d(depth, &along_depth)?, planes)
    }
}

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
    pub(crate) fn pooled<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
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

/// A size for each of three dimensions.
#[track_caller]
pub(crate) fn three(sizes: &Sizes, what: &str) -> Result<[isize; 3], Error> {
    match *sizes.as_slice() {
        [size] => Ok([size; 3]),
        [d, h, w] => Ok([d, h, w]),
        ref other => Err(refused("pool3d", format!("{what} must be one number or three, but got {other:?}"))),
    }
}

/// `[…, d, h, w]` with the depth among the channels: `[…, c·d, h, w]`.
#[track_caller]
pub(crate) fn to_planes<'t, T: Float>(x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    x.try_flatten(-4, -3)
}

/// The planes of the volumes `x` as lines: `[…, c, d, h·w]`.
#[track_caller]
pub(crate) fn to_columns<'t, T: Float>(planes: Var<'t, T>, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    let [channels, depth] = [4, 3].map(|from_last| x.shape()[x.shape().rank() - from_last]);
    planes.try_flatten(-2, -1)?.try_unflatten(-2, [channels, depth])
}

/// `[…, c, d, h·w]` with the sizes of `planes` for the last two dimensions.
#[track_caller]
pub(crate) fn to_volumes<'t, T: Float>(columns: Var<'t, T>, planes: Var<'t, T>) -> Result<Var<'t, T>, Error> {
    let shape = planes.shape();
    columns.try_unflatten(-1, &shape[shape.rank() - 2..])
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::check::{close, input, layer_gradients};

    /// 0 to 23 in an order without a pattern, `[1, 2, 3, 4]`.
    fn volume() -> Tensor<f64> {
        Tensor::from_fn([1, 2, 3, 4], |i| ((i[1] * 12 + i[2] * 4 + i[3]) * 7 % 24) as f64)
    }

    /// The values are PyTorch 2.15's.
    #[test]
    fn volumes_as_in_pytorch() {
        let tape = Tape::new();
        let x = tape.constant(&volume());
        let max = MaxPool3d::new([2, 2, 3]).stride([1, 2, 2]).padding([0, 1, 1]);
        close(&max.forward(x).value(), &[19.0, 21.0, 23.0, 23.0], 0.0);
        close(&max.clone().ceil_mode(true).forward(x.unsqueeze(0)).value(), &[19.0, 21.0, 21.0, 23.0, 23.0, 17.0], 0.0);
        let mean = AvgPool3d::new(2).stride([1, 2, 2]).padding([1, 0, 1]);
        close(&mean.forward(x).value(), &[0.5, 6.25, 2.75, 4.0, 12.5, 5.5, 3.5, 6.25, 2.75], 1e-14);
        close(
            &mean.clone().count_include_pad(false).forward(x).value(),
            &[2.0, 12.5, 11.0, 8.0, 12.5, 11.0, 14.0, 12.5, 11.0],
            1e-14,
        );
        close(&mean.divisor_override(5).forward(x).value(), &[0.8, 10.0, 4.4, 6.4, 20.0, 8.8, 5.6, 10.0, 4.4], 1e-14);
    }

    #[test]
    fn lines_and_images() {
        let tape = Tape::new();
        let x = tape.constant(&Tensor::from([[1.0, 5.0, 2.0, 4.0]]));
        assert_eq!(MaxPool1d::new(2).forward(x).value().to_vec(), [5.0, 4.0]);
        assert_eq!(MaxPool1d::new(2).stride(1).dilation(2).forward(x).value().to_vec(), [2.0, 5.0]);
        assert_eq!(AvgPool1d::new(2).stride(1).forward(x).value().to_vec(), [3.0, 3.5, 3.0]);
        assert_eq!(MaxPool2d::new([1, 2]).forward(x.unsqueeze(0)).value().to_vec(), [5.0, 4.0]);
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        layer_gradients(MaxPool2d::new(2).stride(1), &input([1, 2, 3, 3]));
        layer_gradients(MaxPool3d::new(2).stride(1), &input([2, 3, 2, 3]));
        layer_gradients(AvgPool1d::new(3).padding(1), &input([1, 2, 5]));
        layer_gradients(AvgPool3d::new(2).padding(1).count_include_pad(false), &input([1, 1, 3, 2, 3]));
        // All equal: to the first.
        let tape = Tape::new();
        let x = tape.var(&Tensor::<f64>::ones([1, 2, 2, 2]));
        let gradient = MaxPool3d::new(2).forward(x).sum(..).backward().of(x).to_vec();
        assert_eq!(gradient, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn errors_name_the_layer() {
        let tape = Tape::new();
        let text =
            |layer: &dyn Layer<f64>, x: Tensor<f64>| layer.try_forward(tape.constant(&x)).unwrap_err().to_string();
        let small = text(&MaxPool2d::new(4), Tensor::ones([1, 2, 2]));
        assert!(small.contains("Output size is too small"), "{small}");
        assert!(small.contains("in the layer MaxPool2d([4]) on an input of shape [1, 2, 2], made at"), "{small}");
        assert!(text(&AvgPool3d::new(2), Tensor::ones([2, 2])).contains("expected 4D or 5D input (got 2D input)"));
        let sizes = text(&AvgPool3d::new([2, 2]), Tensor::ones([1, 2, 2, 2]));
        assert!(sizes.contains("kernel_size must be one number or three, but got [2, 2]"), "{sizes}");
    }
}
