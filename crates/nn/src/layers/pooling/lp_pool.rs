//! Pooling by the norm of each window.

use wengert_autograd::{Error, Var};
use wengert_tensor::ops::{Arithmetic as _, Comparison as _, Masking as _};
use wengert_tensor::{Float, Sizes};

use crate::Result;
use crate::layers::forward::{layer_error, output_of};
use crate::layers::layer::Layer;
use crate::layers::pooling::avg_pool::AvgPool;
use crate::layers::pooling::max_pool::MaxPool;
use crate::layers::pooling::window::{Window, window_settings};
use crate::module::Module;

/// The norm of each window of n sequences with c channels and length l, from `[n, c, l]` to `[n, c, l']`. Here l' is the length of the
/// output. PyTorch: `torch.nn.LPPool1d`.
pub type LPPool1d = LPPool<1>;

/// The norm of each window of n images with c channels, height h and width w, from `[n, c, h, w]` to `[n, c, h', w']`. Here h' and w' are
/// the height and width of the output. PyTorch: `torch.nn.LPPool2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{LPPool2d, Layer};
///
/// let tape = Tape::new();
/// let maps = tape.constant(&Tensor::from([[[3.0f32, 4.0], [0.0, 0.0]]]));
/// assert_eq!(LPPool2d::new(2.0, [1, 2]).forward(maps).value().to_vec(), [5.0, 0.0]);
/// ```
pub type LPPool2d = LPPool<2>;

/// The norm of each window, from `[n, c, d, h, w]` to `[n, c, d', h', w']`. Here d', h' and w' are the depth, height and width of the
/// output. There are n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.LPPool3d`.
pub type LPPool3d = LPPool<3>;

/// The norm of each window over `D` dimensions, (Σ xᵖ)^(1/p) over the elements x of the window: [`LPPool1d`], [`LPPool2d`], [`LPPool3d`].
///
/// As in PyTorch, the formula uses x and not |x|. So the norm is NaN if the sum is negative and 1/p is not an integer, for example if p is
/// 3. If p is not an integer, any negative element makes it NaN. Where the sum is 0, the norm and the gradient are 0. With p = ∞ the norm
/// is the largest absolute value of the window, and with p = -∞ the smallest. An input may also lack the batch dimension.
#[derive(Clone, Debug)]
pub struct LPPool<const D: usize> {
    norm_type: f64,
    window: Window,
}

impl<const D: usize> LPPool<D> {
    /// Returns a layer with p = `norm_type`, which must not be 0, and windows of size `kernel`, one number for all dimensions or one for each.
    #[track_caller]
    pub fn new(norm_type: f64, kernel: impl Into<Sizes>) -> Self {
        LPPool { norm_type, window: Window::new(kernel.into()) }
    }

    window_settings!();

    /// Returns the norm of each window of `x`, or an error if `norm_type` is 0 or the shape of `x` does not fit.
    #[track_caller]
    fn norms<'t, T: Float>(&self, x: Var<'t, T>) -> std::result::Result<Var<'t, T>, Error> {
        let p = self.norm_type;
        if p == 0.0 {
            return Err(layer_error("lp_pool", format!("norm_type must be a non-zero value, but got {p}")));
        }
        let largest = || MaxPool::<D>::with_window(self.window.clone());
        if p == f64::INFINITY {
            return largest().pool(x.try_abs()?);
        }
        if p == f64::NEG_INFINITY {
            return largest().pool(x.try_abs()?.try_neg()?)?.try_neg();
        }
        let elements: f64 = match *self.window.kernel.as_slice() {
            [size] => [size as f64; D].iter().product(),
            ref sizes => sizes.iter().map(|&size| size as f64).product(),
        };
        // As in PyTorch, the sum of a window is its mean times the number of elements of a whole window. This also holds for windows that end
        // outside of the input.
        let sums = AvgPool::<D>::with_window(self.window.clone()).pool(x.try_pow(p)?)?.try_mul(elements)?;
        // The root has no derivative at 0. So where the sum is 0, it is replaced by 1 before the root, and the root is replaced by 0.
        let zero = sums.try_eq(0.0)?;
        sums.try_masked_fill(&zero, 1.0)?.try_pow(1.0 / p)?.try_masked_fill(&zero, 0.0)
    }
}

impl<T: Float, const D: usize> Module<T> for LPPool<D> {}

impl<T: Float, const D: usize> Layer<T> for LPPool<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.norms(x), self.window.created_at, || {
            let kernel = self.window.kernel.as_slice();
            format!("LPPool{D}d({}, {kernel:?}) on an input of shape {}", self.norm_type, x.shape())
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, layer_gradients};

    /// The expected values come from PyTorch 2.15.
    #[test]
    fn norms_of_sequences_and_volumes_are_pytorchs() {
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([[[1.0, -2.0, 3.0, -4.0, 5.0, 0.5]]]));
        let value = |pool: LPPool1d| pool.forward(x).value();
        close(&value(LPPool1d::new(2.0, 2)), &[2.23606797749979, 5.0, 5.024937810560445], 1e-14);
        let halves = LPPool1d::new(2.0, 3).stride(2);
        close(&value(halves.clone()), &[3.7416573867739413, 7.0710678118654755], 1e-14);
        close(&value(halves.ceil_mode(true)), &[3.7416573867739413, 7.0710678118654755, 6.154266812545585], 1e-14);
        close(&value(LPPool1d::new(f64::INFINITY, 2)), &[2.0, 4.0, 5.0], 0.0);
        close(&value(LPPool1d::new(f64::NEG_INFINITY, 2)), &[1.0, 3.0, 0.5], 0.0);
        let cubes = value(LPPool1d::new(3.0, 2)).to_vec();
        assert!(cubes[0].is_nan() && cubes[1].is_nan() && (cubes[2] - 5.001666111419547).abs() < 1e-14, "{cubes:?}");
        let volume = tape.constant(Tensor::from_fn([1, 1, 2, 2, 3], |i| (i[2] * 6 + i[3] * 3 + i[4]) as f64 - 5.0));
        close(&LPPool3d::new(2.0, 2).stride(1).forward(volume).value(), &[9.591663046625438, 10.0], 1e-14);
    }

    #[test]
    fn gradients_agree_with_differences_and_are_0_where_the_root_has_none() {
        let x = Tensor::from_fn([2, 3, 4], |i| 0.5 + ((i[0] * 12 + i[1] * 4 + i[2]) * 7 % 24) as f64 / 10.0);
        layer_gradients(LPPool2d::new(3.0, [2, 2]), &x);
        layer_gradients(LPPool2d::new(1.5, [2, 3]).ceil_mode(true), &x);
        let tape = Tape::new();
        let zeros = tape.var(&Tensor::<f64>::zeros([1, 4]));
        let y = LPPool1d::new(2.0, 2).forward(zeros);
        assert_eq!(y.value().to_vec(), [0.0; 2]);
        assert_eq!(y.sum(..).backward().of(zeros).to_vec(), [0.0; 4]);
    }

    #[test]
    fn a_wrong_norm_or_window_is_an_error() {
        let x = Tape::new();
        let x = x.constant(Tensor::<f64>::ones([1, 4]));
        let text = |pool: LPPool1d| pool.try_forward(x).unwrap_err().to_string();
        let zero = text(LPPool1d::new(0.0, 2));
        assert!(zero.contains("norm_type must be a non-zero value, but got 0"), "{zero}");
        assert!(zero.contains("in the layer LPPool1d(0, [2]) on an input of shape [1, 4], made at"), "{zero}");
        assert!(text(LPPool1d::new(2.0, 5)).contains("Output size is too small"));
    }

    #[test]
    fn a_window_with_too_many_elements_to_count_is_an_error() {
        let tape = Tape::new();
        let x = tape.constant(Tensor::<f64>::ones([1, 4, 4]));
        assert!(LPPool2d::new(2.0, 1isize << 32).try_forward(x).is_err());
        assert!(LPPool2d::new(2.0, [1isize << 32; 2]).try_forward(x).is_err());
    }
}
