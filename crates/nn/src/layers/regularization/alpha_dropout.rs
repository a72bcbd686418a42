//! Alpha dropout, which keeps the mean and the variance of its input.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::Arithmetic as _;
use wengert_tensor::{Float, Shape, Tensor};

use crate::Result;
use crate::layers::forward::{fork_generator, output_of};
use crate::layers::layer::Layer;
use crate::layers::regularization::dropout::{check_probability, describe, dropouts, mask_shape};
use crate::module::Module;

dropouts! {
    /// Dropout that keeps the mean 0 and the variance 1 of its input, for use after [`SELU`](crate::SELU) (Klambauer et al., "Self-Normalizing
    /// Neural Networks", 2017). PyTorch: `torch.nn.AlphaDropout`.
    ///
    /// On a training tape, dropped elements become SELU's limit at -∞. Then all elements are scaled and shifted to restore mean and
    /// variance. If the probability p is 1, all elements are multiplied by 0. On any other tape, and
    /// if p is 0, the layer returns its input.
    AlphaDropout;
    /// An [`AlphaDropout`] that drops whole channels of each example of an input `[n, c, …]` (n examples, c channels). PyTorch:
    /// `torch.nn.FeatureAlphaDropout`.
    FeatureAlphaDropout;
}

impl<T: Float> Layer<T> for AlphaDropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, alpha_dropout(x, x.shape(), self.p), self.created_at, || describe("AlphaDropout", self.p, x))
    }
}

impl<T: Float> Layer<T> for FeatureAlphaDropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let y = alpha_dropout(x, mask_shape(&x.shape(), 2), self.p);
        output_of(self, y, self.created_at, || describe("FeatureAlphaDropout", self.p, x))
    }
}

/// Applies alpha dropout with probability `p` to `x`. The random mask of kept elements has the shape `mask` and is broadcast to `x`.
/// PyTorch: `_dropout_impl` of the library ATen.
#[track_caller]
fn alpha_dropout<'t, T: Float>(x: Var<'t, T>, mask: Shape, p: f64) -> Result<Var<'t, T>, TapeError> {
    /// The negative of SELU's limit at -∞.
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let generator = fork_generator(x.tape(), "AlphaDropout", p != 0.0);
    let Some(mut generator) = generator.filter(|_| p != 0.0) else { return Ok(x) };
    if p == 1.0 {
        return x.try_mul(0.0);
    }
    let kept = Tensor::<T>::try_full(mask, T::from_f64(1.0 - p))?.try_bernoulli(&mut generator)?;
    let scale = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    // A kept element x becomes scale · (x + ALPHA · p). A dropped element becomes scale · (-ALPHA + ALPHA · p).
    let shift = kept.try_add(p - 1.0)?.try_mul(ALPHA * scale)?;
    x.try_mul(&kept.try_mul(scale)?)?.try_add(&shift)
}
