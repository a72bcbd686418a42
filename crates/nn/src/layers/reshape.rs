//! Layers that move elements and compute nothing, or little: for [`Sequential`](crate::Sequential).

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::{InterpolateMode, Interpolation as _, PadMode, Padding as _, Views as _};
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::activation::functions_with_settings;
use crate::layers::layer::{Layer, output_of, refused};
use crate::module::Module;

/// The input itself. PyTorch: `torch.nn.Identity`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl<T: Float> Module<T> for Identity {}

impl<T: Float> Layer<T> for Identity {
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(x)
    }
}

functions_with_settings! {
    /// The dimensions from `start_dim` to `end_dim`, both included, made one; by default all but the batch. PyTorch:
    /// `torch.nn.Flatten`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Flatten, Layer};
    ///
    /// let maps = Tensor::<f32>::zeros([32, 16, 5, 5]);
    /// assert_eq!(Flatten::default().forward(Tape::new().constant(&maps)).shape(), [32, 400]);
    /// ```
    Flatten {
        /// The first of them; negative numbers count from the end.
        start_dim: isize,
        /// The last of them.
        end_dim: isize
    } = try_flatten, default(1, -1);
}

/// One dimension made several. PyTorch: `torch.nn.Unflatten`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, Unflatten};
///
/// let x = Tensor::<f32>::zeros([32, 400]);
/// assert_eq!(Unflatten::new(1, [16, 5, 5]).forward(Tape::new().constant(&x)).shape(), [32, 16, 5, 5]);
/// ```
#[derive(Clone, Debug)]
pub struct Unflatten {
    dim: isize,
    sizes: Sizes,
    made: &'static Location<'static>,
}

impl Unflatten {
    /// A layer that gives dimension `dim` these sizes, one of which may be -1.
    #[track_caller]
    pub fn new(dim: isize, sizes: impl Into<Sizes>) -> Self {
        Unflatten { dim, sizes: sizes.into(), made: Location::caller() }
    }
}

impl<T: Float> Module<T> for Unflatten {}

impl<T: Float> Layer<T> for Unflatten {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, x.try_unflatten(self.dim, self.sizes.clone()), self.made, || {
            format!("Unflatten({}, {:?}) on an input of shape {}", self.dim, self.sizes.as_slice(), x.shape())
        })
    }
}

/// Padding of the last dimensions. PyTorch: `torch.nn.ZeroPad2d`, `ConstantPad2d`, `ReflectionPad2d`, `ReplicationPad2d`,
/// `CircularPad2d` and their kin, by the mode and the number of sizes.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, Pad, PadMode};
///
/// let pad = Pad::new(&[2, 1], PadMode::Reflect);
/// let tape = Tape::new();
/// let y = pad.forward(tape.constant(&Tensor::from([[1.0, 2.0, 3.0]])));
/// assert_eq!(y.value().to_vec(), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Pad {
    sizes: Vec<isize>,
    mode: PadMode,
    made: &'static Location<'static>,
}

impl Pad {
    /// A layer that pads by `sizes`, two numbers for each dimension, the last one first: `[left, right, top, bottom]`. A negative
    /// size crops.
    #[track_caller]
    pub fn new(sizes: &[isize], mode: PadMode) -> Self {
        Pad { sizes: sizes.to_vec(), mode, made: Location::caller() }
    }
}

impl<T: Float> Module<T> for Pad {}

impl<T: Float> Layer<T> for Pad {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, x.try_pad(&self.sizes, self.mode), self.made, || {
            format!("Pad({:?}, {:?}) on an input of shape {}", self.sizes, self.mode, x.shape())
        })
    }
}

/// `[n, c, …]` resampled to a size, or to a multiple of its size. PyTorch: `torch.nn.Upsample`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{InterpolateMode, Layer, Upsample};
///
/// let x = Tensor::from([[[0.0, 10.0]]]);
/// let tape = Tape::new();
/// let y = Upsample::by(2, InterpolateMode::Nearest).forward(tape.constant(&x));
/// assert_eq!(y.value().to_vec(), [0.0, 0.0, 10.0, 10.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Upsample {
    to: Target,
    mode: InterpolateMode,
    made: &'static Location<'static>,
}

#[derive(Clone, Debug)]
enum Target {
    Size(Sizes),
    Multiple(usize),
}

impl Upsample {
    /// A layer whose result has these sizes after the first two, one number for all or one for each. PyTorch: `size`.
    #[track_caller]
    pub fn to_size(size: impl Into<Sizes>, mode: InterpolateMode) -> Self {
        Upsample { to: Target::Size(size.into()), mode, made: Location::caller() }
    }

    /// A layer whose result has `factor` times the sizes of the input after the first two. PyTorch: `scale_factor`.
    #[track_caller]
    pub fn by(factor: usize, mode: InterpolateMode) -> Self {
        Upsample { to: Target::Multiple(factor), mode, made: Location::caller() }
    }
}

impl<T: Float> Module<T> for Upsample {}

impl<T: Float> Layer<T> for Upsample {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let size = match &self.to {
            Target::Size(size) => size.clone(),
            Target::Multiple(factor) => {
                x.shape().iter().skip(2).map(|size| size.saturating_mul(*factor) as isize).collect::<Vec<_>>().into()
            }
        };
        output_of(self, x.try_interpolate(size, self.mode), self.made, || {
            format!("Upsample({:?}, {:?}) on an input of shape {}", self.to, self.mode, x.shape())
        })
    }
}

/// Channels made pixels: `[…, c·r², h, w]` to `[…, c, h·r, w·r]` (Shi et al. 2016). PyTorch: `torch.nn.PixelShuffle`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Layer, PixelShuffle};
///
/// let x = Tensor::<f64>::arange(8).reshape([4, 1, 2]);
/// let tape = Tape::new();
/// let y = PixelShuffle::new(2).forward(tape.constant(&x)).value();
/// assert_eq!(y, Tensor::from([[[0.0, 2.0, 1.0, 3.0], [4.0, 6.0, 5.0, 7.0]]]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PixelShuffle {
    upscale_factor: usize,
    made: &'static Location<'static>,
}

impl PixelShuffle {
    /// A layer that makes an image this many times as high and wide.
    #[track_caller]
    pub fn new(upscale_factor: usize) -> Self {
        PixelShuffle { upscale_factor, made: Location::caller() }
    }

    #[track_caller]
    fn shuffled<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, wengert_autograd::Error> {
        let (shape, r) = (x.shape(), self.upscale_factor);
        let channels = shape.rank().checked_sub(3).map(|axis| shape[axis]);
        let Some(channels) = channels.filter(|channels| r > 0 && channels.is_multiple_of(r * r)) else {
            let message = format!("expected [..., c, h, w] with c divisible by the square of {r}, but got {shape}");
            return Err(refused("pixel_shuffle", message));
        };
        // [c, r, r, h, w] becomes [c, h, r, w, r].
        let apart = x.try_unflatten(-3, [channels / (r * r), r, r])?.try_movedim([-4, -3], [-3, -1])?;
        apart.try_flatten(-2, -1)?.try_flatten(-3, -2)
    }
}

impl<T: Float> Module<T> for PixelShuffle {}

impl<T: Float> Layer<T> for PixelShuffle {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.shuffled(x), self.made, || {
            format!("PixelShuffle({}) on an input of shape {}", self.upscale_factor, x.shape())
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::check::{input, layer_gradients};

    #[test]
    fn shapes() {
        let tape = Tape::new();
        let x = tape.constant(&input([2, 3, 4, 5]));
        let shape = |layer: &dyn Layer<f64>| layer.forward(x).shape().to_vec();
        assert_eq!(shape(&Identity), [2, 3, 4, 5]);
        assert_eq!(shape(&Flatten::default()), [2, 60]);
        assert_eq!(shape(&Flatten::new(0, 1)), [6, 4, 5]);
        assert_eq!(shape(&Unflatten::new(2, [2, -1])), [2, 3, 2, 2, 5]);
        assert_eq!(shape(&Pad::new(&[1, 0, 0, -2], PadMode::Constant(0.0))), [2, 3, 2, 6]);
        assert_eq!(shape(&Upsample::to_size([8, 3], InterpolateMode::Nearest)), [2, 3, 8, 3]);
        assert_eq!(shape(&Upsample::by(3, InterpolateMode::Linear { align_corners: false })), [2, 3, 12, 15]);
        assert_eq!(PixelShuffle::new(2).forward(x.reshape([2, 12, 1, 5])).shape(), [2, 3, 2, 10]);
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        layer_gradients(PixelShuffle::new(2), &input([4, 1, 2]));
        layer_gradients(Upsample::by(2, InterpolateMode::Linear { align_corners: false }), &input([1, 1, 2, 3]));
        layer_gradients(Pad::new(&[1, 2], PadMode::Circular), &input([1, 1, 3]));
    }

    #[test]
    fn errors_name_the_layer() {
        let tape = Tape::new();
        let x = tape.constant(&input([2, 3]));
        let text = |layer: &dyn Layer<f64>| layer.try_forward(x).unwrap_err().to_string();
        assert!(
            text(&Flatten::new(1, 2)).contains("Flatten(start_dim=1, end_dim=2) on an input of shape [2, 3], made at")
        );
        assert!(text(&Unflatten::new(1, [2, 2])).contains("in the layer Unflatten(1, [2, 2])"));
        assert!(text(&Pad::new(&[1], PadMode::Replicate)).contains("in the layer Pad([1], Replicate)"));
        assert!(
            text(&Upsample::by(2, InterpolateMode::Nearest)).contains("in the layer Upsample(Multiple(2), Nearest)")
        );
        assert!(text(&PixelShuffle::new(2)).contains("expected [..., c, h, w] with c divisible by the square of 2"));
    }
}
