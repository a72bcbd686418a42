//! Layers that pad, crop or resample their input.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::{InterpolateMode, Interpolation as _, PadMode, Padding as _};
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::module::Module;

/// A layer that pads the last dimensions of its input. PyTorch: `torch.nn.ZeroPad2d`, `ConstantPad2d`, `ReflectionPad2d`, `ReplicationPad2d`,
/// `CircularPad2d` and their 1d and 3d versions, which correspond to different modes and numbers of sizes of this layer.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, Pad, PadMode};
///
/// let pad = Pad::new(&[2, 1], PadMode::Reflect);
/// let tape = Tape::new();
/// let y = pad.forward(tape.constant(&Tensor::from([[1.0, 2.0, 3.0]])));
/// assert_eq!(y.value().to_vec(), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
/// ```
#[doc(alias("ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d"))]
#[doc(alias("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"))]
#[doc(alias("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"))]
#[doc(alias("CircularPad1d", "CircularPad2d", "CircularPad3d"))]
#[derive(Clone, Debug)]
pub struct Pad {
    sizes: Vec<isize>,
    mode: PadMode,
    created_at: &'static Location<'static>,
}

impl Pad {
    /// Returns a layer that pads by `sizes`. `sizes` has two sizes for each padded dimension, beginning with the last dimension, for example
    /// `[left, right, top, bottom]`. A negative size removes elements.
    #[track_caller]
    pub fn new(sizes: &[isize], mode: PadMode) -> Self {
        Pad { sizes: sizes.to_vec(), mode, created_at: Location::caller() }
    }
}

impl<T: Float> Module<T> for Pad {}

impl<T: Float> Layer<T> for Pad {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, x.try_pad(&self.sizes, self.mode), self.created_at, || {
            format!("Pad({:?}, {:?}) on an input of shape {}", self.sizes, self.mode, x.shape())
        })
    }
}

/// A layer that resamples an input `[n, c, …]` (n examples, c channels) to a given size, or to a multiple of the input's size. PyTorch:
/// `torch.nn.Upsample`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{InterpolateMode, Layer, Upsample};
///
/// let x = Tensor::from([[[0.0, 10.0]]]);
/// let tape = Tape::new();
/// let y = Upsample::by(2, InterpolateMode::Nearest).forward(tape.constant(&x));
/// assert_eq!(y.value().to_vec(), [0.0, 0.0, 10.0, 10.0]);
/// ```
#[doc(alias("UpsamplingBilinear2d", "UpsamplingNearest2d"))]
#[derive(Clone, Debug)]
pub struct Upsample {
    output_size: OutputSize,
    mode: InterpolateMode,
    created_at: &'static Location<'static>,
}

/// The output size of an [`Upsample`]: a given size, or a multiple of the input's size.
#[derive(Clone, Debug)]
enum OutputSize {
    Size(Sizes),
    Multiple(usize),
}

impl Upsample {
    /// Returns a layer that resamples all dimensions after the first two to `size`, one value for each of these dimensions or one value for all.
    /// PyTorch: `size`.
    #[track_caller]
    pub fn to_size(size: impl Into<Sizes>, mode: InterpolateMode) -> Self {
        Upsample { output_size: OutputSize::Size(size.into()), mode, created_at: Location::caller() }
    }

    /// Returns a layer that multiplies the size of each dimension after the first two by `factor`. PyTorch: `scale_factor`.
    #[track_caller]
    pub fn by(factor: usize, mode: InterpolateMode) -> Self {
        Upsample { output_size: OutputSize::Multiple(factor), mode, created_at: Location::caller() }
    }
}

impl<T: Float> Module<T> for Upsample {}

impl<T: Float> Layer<T> for Upsample {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let size = match &self.output_size {
            OutputSize::Size(size) => size.clone(),
            OutputSize::Multiple(factor) => {
                x.shape().iter().skip(2).map(|size| size.saturating_mul(*factor) as isize).collect::<Vec<_>>().into()
            }
        };
        output_of(self, x.try_interpolate(size, self.mode), self.created_at, || {
            format!("Upsample({:?}, {:?}) on an input of shape {}", self.output_size, self.mode, x.shape())
        })
    }
}
