//! Layers that move elements between channels and pixels, or between groups of channels.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::Float;
use wengert_tensor::ops::Shuffling as _;

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::layers::operation_layer::functions_with_settings;
use crate::module::Module;

functions_with_settings! {
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
    PixelShuffle {
        /// The factor r by which the output is higher and wider than the input.
        upscale_factor: usize
    } = try_pixel_shuffle;

    /// A layer that turns each block of r times r pixels into r² channels, the inverse of [`PixelShuffle`]. It maps `[…, c, h·r, w·r]` to
    /// `[…, c·r², h, w]`. PyTorch: `torch.nn.PixelUnshuffle`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Layer, PixelUnshuffle};
    ///
    /// let images = Tensor::<f32>::zeros([8, 3, 32, 32]);
    /// assert_eq!(PixelUnshuffle::new(4).forward(Tape::new().constant(&images)).shape(), [8, 48, 8, 8]);
    /// ```
    PixelUnshuffle {
        /// The factor r by which the output is lower and narrower than the input.
        downscale_factor: usize
    } = try_pixel_unshuffle;

    /// A layer that divides the channels of `[n, c, …]` into groups. The output has the first channel of each group, then the second
    /// channel of each group, and so on. PyTorch: `torch.nn.ChannelShuffle`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{ChannelShuffle, Layer};
    ///
    /// let x = Tensor::<f64>::arange(4).reshape([1, 4, 1]);
    /// let y = ChannelShuffle::new(2).forward(Tape::new().constant(&x)).value();
    /// assert_eq!(y.to_vec(), [0.0, 2.0, 1.0, 3.0]);
    /// ```
    ChannelShuffle {
        /// The number of groups, which must divide the number of channels.
        groups: usize
    } = try_channel_shuffle;
}
