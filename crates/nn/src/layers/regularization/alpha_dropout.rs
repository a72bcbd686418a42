//! Alpha dropout, which keeps the mean and the variance of its input.

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::Arithmetic as _;
use wengert_tensor::{Float, Generator, Shape, Tensor};

use crate::Result;
use crate::layers::layer::Layer;
use crate::layers::regularization::dropout::{channels, dropouts};
use crate::module::Module;

dropouts! {
    /// Dropout that keeps mean 0 and variance 1, for layers after [`SELU`](crate::SELU): what is dropped becomes SELU's limit at -∞,
    /// then everything is scaled and shifted (Klambauer et al., "Self-Normalizing Neural Networks", 2017). With p = 1 everything
    /// is multiplied by 0. PyTorch: `torch.nn.AlphaDropout`.
    AlphaDropout;
    /// [`AlphaDropout`] of whole channels of each example of `[n, c, …]`. PyTorch: `torch.nn.FeatureAlphaDropout`.
    FeatureAlphaDropout;
}

impl<T: Float> Layer<T> for AlphaDropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(alpha_dropout(x, x.shape(), self.p)?)
    }
}

impl<T: Float> Layer<T> for FeatureAlphaDropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(alpha_dropout(x, channels(&x.shape(), 2), self.p)?)
    }
}

/// Alpha dropout of the pieces of `x` that a tensor of shape `pieces` has (ATen: `_dropout_impl`).
#[track_caller]
fn alpha_dropout<'t, T: Float>(x: Var<'t, T>, pieces: Shape, p: f64) -> Result<Var<'t, T>, TapeError> {
    /// Minus SELU's limit at -∞.
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let Some(mut generator) = x.tape().draw(Generator::fork) else { return Ok(x) };
    if p == 1.0 {
        return x.try_mul(0.0);
    }
    let kept = Tensor::<T>::try_full(pieces, T::from_f64(1.0 - p))?.try_bernoulli(&mut generator)?;
    let scale = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    // Of what is kept: scale · x + scale · ALPHA · p. Of what is dropped: that with -ALPHA for x.
    let shift = kept.try_add(p - 1.0)?.try_mul(ALPHA * scale)?;
    x.try_mul(&kept.try_mul(scale)?)?.try_add(&shift)
}
