//! Pixel shuffle: channels become pixels.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::Views as _;

use crate::Result;
use crate::layers::forward::{output_of, refused};
use crate::layers::layer::Layer;
use crate::module::Module;

/// A layer that turns each group of r² channels of an image into r times r pixels of one channel. It maps `[…, c·r², h, w]` to
/// `[…, c, h·r, w·r]` (Shi et al. 2016). PyTorch: `torch.nn.PixelShuffle`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, PixelShuffle};
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
    /// Returns a layer with r = `upscale_factor`: the output is r times as high and as wide as the input.
    #[track_caller]
    pub fn new(upscale_factor: usize) -> Self {
        PixelShuffle { upscale_factor, made: Location::caller() }
    }

    /// Returns the elements of `x` in the order and the shape of the layer's output, or an error if the shape of `x`
    /// does not fit.
    #[track_caller]
    fn shuffle<'t, T: Float>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let (shape, r) = (x.shape(), self.upscale_factor);
        let channels = shape.rank().checked_sub(3).map(|axis| shape[axis]);
        let Some(channels) = channels.filter(|channels| r > 0 && channels.is_multiple_of(r * r)) else {
            let message = format!("expected [..., c, h, w] with c divisible by the square of {r}, but got {shape}");
            return Err(refused("pixel_shuffle", message));
        };
        // The last dimensions [c, r, r, h, w] become [c, h, r, w, r].
        let split = x.try_unflatten(-3, [channels / (r * r), r, r])?.try_movedim([-4, -3], [-3, -1])?;
        split.try_flatten(-2, -1)?.try_flatten(-3, -2)
    }
}

impl<T: Float> Module<T> for PixelShuffle {}

impl<T: Float> Layer<T> for PixelShuffle {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.shuffle(x), self.made, || {
            format!("PixelShuffle({}) on an input of shape {}", self.upscale_factor, x.shape())
        })
    }
}
