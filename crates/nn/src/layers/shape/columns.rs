//! Layers that copy the sliding windows of images to columns, and layers that add columns to images.

use std::panic::Location;

use wengert_autograd::Var;
use wengert_tensor::ops::Columns as _;
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::output_of;
use crate::layers::layer::Layer;
use crate::module::Module;

/// The settings of sliding windows: the size of a window, the distance between its elements, the padding, and the distance between windows.
#[derive(Clone, Debug)]
struct Windows {
    kernel: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
    created_at: &'static Location<'static>,
}

impl Windows {
    #[track_caller]
    fn new(kernel: Sizes) -> Self {
        Windows { kernel, dilation: 1.into(), padding: 0.into(), stride: 1.into(), created_at: Location::caller() }
    }
}

/// Defines the builder methods of [`Unfold`] and [`Fold`].
macro_rules! settings {
    () => {
        /// Sets the distance in the image from one element of a window to the next; 1 by default.
        #[must_use]
        pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
            self.windows.dilation = dilation.into();
            self
        }

        /// Sets the number of zeros on each side of the image; 0 by default.
        #[must_use]
        pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
            self.windows.padding = padding.into();
            self
        }

        /// Sets the distance from one window to the next; 1 by default.
        #[must_use]
        pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
            self.windows.stride = stride.into();
            self
        }
    };
}

/// The layer that copies the sliding windows of images `[n, c, h, w]` to columns, `[n, c · kh · kw, windows]`. The windows have the height kh
/// and the width kw. A setting is one number for both dimensions or one for each. PyTorch: `torch.nn.Unfold`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Layer, Unfold};
///
/// let images = Tensor::<f32>::zeros([8, 3, 32, 32]);
/// assert_eq!(Unfold::new(4).stride(4).forward(&images).shape(), &[8, 48, 64]); // patches
/// ```
#[derive(Clone, Debug)]
pub struct Unfold {
    windows: Windows,
}

impl Unfold {
    /// Returns a layer with windows of size `kernel`.
    #[track_caller]
    pub fn new(kernel: impl Into<Sizes>) -> Self {
        Unfold { windows: Windows::new(kernel.into()) }
    }

    settings!();
}

impl<T: Float> Module<T> for Unfold {}

impl<T: Float> Layer<T> for Unfold {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let Windows { kernel, dilation, padding, stride, created_at } = self.windows.clone();
        output_of(self, x.try_im2col(kernel, dilation, padding, stride), created_at, || {
            format!("Unfold({:?}) on an input of shape {}", self.windows.kernel.as_slice(), x.shape())
        })
    }
}

/// The layer that adds columns `[n, c · kh · kw, windows]` to images `[n, c, h, w]`, the adjoint of [`Unfold`]. The windows have the height
/// kh and the width kw. An element of an image is the sum of the elements of all windows at its position. PyTorch: `torch.nn.Fold`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Fold, Layer, Unfold};
///
/// let images = Tensor::<f32>::ones([2, 3, 8, 8]);
/// let patches = Unfold::new(4).stride(4).forward(&images);
/// assert_eq!(Fold::new(8, 4).stride(4).forward(&patches), images);
/// ```
#[derive(Clone, Debug)]
pub struct Fold {
    output_size: Sizes,
    windows: Windows,
}

impl Fold {
    /// Returns a layer for images of height and width `output_size` and windows of size `kernel`.
    #[track_caller]
    pub fn new(output_size: impl Into<Sizes>, kernel: impl Into<Sizes>) -> Self {
        Fold { output_size: output_size.into(), windows: Windows::new(kernel.into()) }
    }

    settings!();
}

impl<T: Float> Module<T> for Fold {}

impl<T: Float> Layer<T> for Fold {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let Windows { kernel, dilation, padding, stride, created_at } = self.windows.clone();
        output_of(self, x.try_col2im(self.output_size.clone(), kernel, dilation, padding, stride), created_at, || {
            let (size, kernel) = (self.output_size.as_slice(), self.windows.kernel.as_slice());
            format!("Fold({size:?}, {kernel:?}) on an input of shape {}", x.shape())
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{input, layer_gradients};

    #[test]
    fn gradients_agree_with_differences() {
        layer_gradients(Unfold::new([2, 3]).padding(1).stride(2).dilation([2, 1]), &input([1, 2, 4, 5]));
        layer_gradients(Fold::new([4, 3], 2).stride([2, 1]).padding([1, 0]), &input([1, 8, 6]));
    }

    #[test]
    fn errors_name_the_layer() {
        let x = Tensor::<f64>::ones([2, 3]);
        let tape = Tape::new();
        let text = |layer: &dyn Layer<f64>| layer.try_forward(tape.constant(&x)).unwrap_err().to_string();
        let unfold = text(&Unfold::new([2, 3]));
        assert!(unfold.contains("in the layer Unfold([2, 3]) on an input of shape [2, 3], made at"), "{unfold}");
        let fold = text(&Fold::new(4, 3));
        assert!(fold.contains("in the layer Fold([4], [3]) on an input of shape [2, 3], made at"), "{fold}");
    }
}
