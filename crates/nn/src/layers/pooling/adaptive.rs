//! Pooling to an output of a given size.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::AdaptivePooling as _;
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::module::Module;

/// Defines layers that pool to an output of a given size. Each row of the macro's input has a doc comment, the layer's name, and the operations
/// over one, two and three dimensions.
macro_rules! adaptive_pooling {
    ($($(#[$doc:meta])* $name:ident = $line:ident, $plane:ident, $volume:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<const D: usize> {
            output_size: Sizes,
            created_at: &'static Location<'static>,
        }

        impl<const D: usize> $name<D> {
            /// Returns a layer whose output has the size `output_size`, one value for all pooled dimensions or one for each. Where PyTorch takes
            /// `None`, pass the size of the input.
            #[track_caller]
            pub fn new(output_size: impl Into<Sizes>) -> Self {
                $name { output_size: output_size.into(), created_at: Location::caller() }
            }
        }

        impl<T: Float, const D: usize> Module<T> for $name<D> {}

        impl<T: Float, const D: usize> Layer<T> for $name<D> {
            #[track_caller]
            fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
                let y = match D {
                    1 => x.$line(self.output_size.clone()),
                    2 => x.$plane(self.output_size.clone()),
                    _ => x.$volume(self.output_size.clone()),
                };
                output_of(self, y, self.created_at, || {
                    let (name, size) = (stringify!($name), self.output_size.as_slice());
                    format!("{name}{D}d({size:?}) on an input of shape {}", x.shape())
                })
            }
        }
    )*};
}

adaptive_pooling! {
    /// Means of windows over `D` dimensions, with windows that give an output of a given size: [`AdaptiveAvgPool1d`], [`AdaptiveAvgPool2d`],
    /// [`AdaptiveAvgPool3d`].
    ///
    /// If a dimension has the size s and the output size m, window i contains the elements from ⌊i·s/m⌋ up to, but not including, ⌈(i+1)·s/m⌉.
    /// An input may also lack the batch dimension.
    AdaptiveAvgPool = try_adaptive_avg_pool1d, try_adaptive_avg_pool2d, try_adaptive_avg_pool3d;
    /// Maxima of windows over `D` dimensions, with windows that give an output of a given size: [`AdaptiveMaxPool1d`], [`AdaptiveMaxPool2d`],
    /// [`AdaptiveMaxPool3d`].
    ///
    /// The windows are the same as in [`AdaptiveAvgPool`]. If several elements of a window are the largest, the gradient goes to the first of
    /// them.
    AdaptiveMaxPool = try_adaptive_max_pool1d, try_adaptive_max_pool2d, try_adaptive_max_pool3d;
}

/// Means of windows of n sequences with c channels and length l, from `[n, c, l]` to `[n, c, l']`. Here l' is the length of the output.
/// PyTorch: `torch.nn.AdaptiveAvgPool1d`.
pub type AdaptiveAvgPool1d = AdaptiveAvgPool<1>;

/// Means of windows of n images with c channels, height h and width w, from `[n, c, h, w]` to `[n, c, h', w']`. Here h' and w' are the
/// height and width of the output. PyTorch: `torch.nn.AdaptiveAvgPool2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{AdaptiveAvgPool2d, Layer};
///
/// let maps = Tensor::<f32>::ones([16, 32, 7, 5]);
/// let tape = Tape::new();
/// let y = AdaptiveAvgPool2d::new(1).forward(tape.constant(&maps));
/// assert_eq!(y.shape(), [16, 32, 1, 1]);
/// ```
pub type AdaptiveAvgPool2d = AdaptiveAvgPool<2>;

/// Means of windows, from `[n, c, d, h, w]` to `[n, c, d', h', w']`. Here d', h' and w' are the depth, height and width of the output.
/// There are n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.AdaptiveAvgPool3d`.
pub type AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

/// Maxima of windows of n sequences with c channels and length l, from `[n, c, l]` to `[n, c, l']`. Here l' is the length of the output.
/// PyTorch: `torch.nn.AdaptiveMaxPool1d`.
pub type AdaptiveMaxPool1d = AdaptiveMaxPool<1>;

/// Maxima of windows of n images with c channels, height h and width w, from `[n, c, h, w]` to `[n, c, h', w']`. Here h' and w' are the
/// height and width of the output. PyTorch: `torch.nn.AdaptiveMaxPool2d`.
pub type AdaptiveMaxPool2d = AdaptiveMaxPool<2>;

/// Maxima of windows, from `[n, c, d, h, w]` to `[n, c, d', h', w']`. Here d', h' and w' are the depth, height and width of the output.
/// There are n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.AdaptiveMaxPool3d`.
pub type AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, input, layer_gradients};

    /// The expected values come from PyTorch 2.15. The input `[1, 2, 3, 4]` has the values 0 to 23 in a mixed order.
    #[test]
    fn pooled_volumes_are_pytorchs() {
        let x = Tensor::from_fn([1, 2, 3, 4], |i| ((i[1] * 12 + i[2] * 4 + i[3]) * 7 % 24) as f64);
        let tape = Tape::new();
        let x = tape.constant(&x);
        close(&AdaptiveAvgPool3d::new([1, 2, 3]).forward(x).value(), &[11.5, 12.5, 10.5, 12.5, 13.5, 11.5], 1e-14);
        close(
            &AdaptiveMaxPool3d::new([3, 2, 3]).forward(x.unsqueeze(0)).value(),
            &[
                11.0, 18.0, 21.0, 15.0, 22.0, 22.0, 23.0, 23.0, 21.0, 23.0, 23.0, 22.0, 23.0, 23.0, 13.0, 23.0, 23.0,
                17.0,
            ],
            0.0,
        );
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        layer_gradients(AdaptiveAvgPool1d::new(3), &input([2, 5]));
        layer_gradients(AdaptiveMaxPool1d::new(3), &input([1, 2, 5]));
        layer_gradients(AdaptiveMaxPool2d::new([2, 1]), &input([2, 3, 2]));
        layer_gradients(AdaptiveAvgPool3d::new(2), &input([1, 3, 2, 3]));
    }

    #[test]
    fn errors_name_the_layer() {
        let x = Tape::new();
        let x = x.constant(Tensor::<f64>::ones([3]));
        let text = AdaptiveMaxPool2d::new(1).try_forward(x).unwrap_err().to_string();
        assert!(text.contains("in the layer AdaptiveMaxPool2d([1]) on an input of shape [3], made at"), "{text}");
        assert!(AdaptiveAvgPool3d::new(1).try_forward(x).is_err());
    }
}
