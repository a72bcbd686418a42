//! Dropout: on a training tape some elements or channels are dropped, on any other these layers are the identity.
//!
//! What is dropped is drawn from the tape's generator, anew for each layer and step.

use wengert_autograd::{Error, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Dropout as _};
use wengert_tensor::{Float, Generator, Shape, Tensor};

use crate::Result;
use crate::layers::layer::{Layer, dropout, expect_rank};
use crate::module::Module;

/// The settings and the constructor of a layer that drops: documentation and name.
macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $(<const $d:ident: usize>)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name $(<const $d: usize>)? {
            p: f64,
        }

        #[twins]
        impl $(<const $d: usize>)? $name $(<$d>)? {
            /// A layer that drops with the probability `p`. PyTorch: 0.5 unless told otherwise.
            ///
            /// # Errors
            ///
            /// If `p` is not from 0 to 1.
            pub fn try_new(p: f64) -> Result<Self> {
                if (0.0..=1.0).contains(&p) {
                    return Ok($name { p });
                }
                Err(crate::Error::Setting { name: "p", value: p, expected: "a probability from 0 to 1" })
            }
        }

        impl<T: Float, $(const $d: usize)?> Module<T> for $name $(<$d>)? {}
    )*};
}

dropouts! {
    /// Each element made 0 with probability p, the others divided by 1 - p. PyTorch: `torch.nn.Dropout`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    /// use wengert_nn::{Dropout, Layer};
    ///
    /// let dropout = Dropout::new(0.5);
    /// let x = Tensor::<f32>::ones([100]);
    /// let tape = Tape::training(&mut Generator::new(0));
    /// let y = dropout.forward(tape.constant(&x)).value();
    /// assert!(y.iter().all(|y| y == 0.0 || y == 2.0));
    /// assert_eq!(dropout.forward(Tape::new().constant(&x)).value(), x); // evaluation
    /// ```
    Dropout;
    /// Each channel of each example of `[n, c, …]` made 0 with probability p, the others divided by 1 - p: [`Dropout1d`],
    /// [`Dropout2d`], [`Dropout3d`]. The batch dimension may be left out. (PyTorch's `Dropout2d` takes `[c, h, w]` for
    /// `[n, c, l]`, and warns.)
    DropoutChannels<const D: usize>;
    /// Dropout that keeps mean 0 and variance 1, for layers after [`SELU`](crate::SELU): what is dropped becomes SELU's limit at -∞,
    /// then everything is scaled and shifted (Klambauer et al., "Self-Normalizing Neural Networks", 2017). With p = 1 everything
    /// is multiplied by 0. PyTorch: `torch.nn.AlphaDropout`.
    AlphaDropout;
    /// [`AlphaDropout`] of whole channels of each example of `[n, c, …]`. PyTorch: `torch.nn.FeatureAlphaDropout`.
    FeatureAlphaDropout;
}

/// Dropout of channels of `[n, c, l]`. PyTorch: `torch.nn.Dropout1d`.
pub type Dropout1d = DropoutChannels<1>;

/// Dropout of channels of `[n, c, h, w]`. PyTorch: `torch.nn.Dropout2d`.
pub type Dropout2d = DropoutChannels<2>;

/// Dropout of channels of `[n, c, d, h, w]`. PyTorch: `torch.nn.Dropout3d`.
pub type Dropout3d = DropoutChannels<3>;

impl<T: Float> Layer<T> for Dropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        Ok(dropout(x, self.p)?)
    }
}

impl<T: Float, const D: usize> Layer<T> for DropoutChannels<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let rank = expect_rank("dropout", x, [D + 1, D + 2])?;
        let Some(mut generator) = x.tape().draw(Generator::fork) else { return Ok(x) };
        let channels = channels(&x.shape(), rank - D);
        Ok(x.try_mul(&Tensor::try_full(channels, T::ONE)?.try_dropout(self.p, true, &mut generator)?)?)
    }
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

/// The shape of what is dropped together: the sizes up to `first`, then ones.
fn channels(shape: &Shape, first: usize) -> Shape {
    shape.iter().enumerate().map(|(axis, &size)| if axis < first { size } else { 1 }).collect()
}

/// Alpha dropout of the pieces of `x` that a tensor of shape `pieces` has (ATen: `_dropout_impl`).
#[track_caller]
fn alpha_dropout<'t, T: Float>(x: Var<'t, T>, pieces: Shape, p: f64) -> Result<Var<'t, T>, Error> {
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

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::check::{input, layer_gradients};
    use crate::layers::dropout::Dropout;

    fn trained(layer: &impl Layer<f64>, x: &Tensor<f64>) -> Tensor<f64> {
        layer.forward(Tape::training(&mut Generator::new(3)).constant(x)).value()
    }

    #[test]
    fn evaluation_is_the_identity() {
        let x = input([2, 3, 4]);
        let layers: [&dyn Layer<f64>; 4] =
            [&Dropout::new(0.5), &Dropout1d::new(0.5), &AlphaDropout::new(0.5), &FeatureAlphaDropout::new(0.5)];
        for layer in layers {
            assert_eq!(layer.forward(Tape::new().constant(&x)).value(), x);
        }
    }

    #[test]
    fn channels_are_dropped_together() {
        let ones = Tensor::ones([20, 10, 3]);
        let y = trained(&Dropout1d::new(0.75), &ones);
        assert_eq!(y, y.select(2, 0).unsqueeze(-1).expand([20, 10, 3]));
        assert!(y.iter().all(|y| y == 0.0 || y == 4.0));
        // 200 channels, four standard deviations: √(200 · 0.25 · 0.75) = 6.1.
        let kept = y.iter().filter(|&y| y > 0.0).count() / 3;
        assert!(kept.abs_diff(50) < 25, "{kept}");
        let without_batch = trained(&Dropout2d::new(0.5), &Tensor::ones([10, 3, 2]));
        assert_eq!(without_batch, without_batch.select(2, 0).select(1, 0).reshape([10, 1, 1]).expand([10, 3, 2]));
        let y = trained(&FeatureAlphaDropout::new(0.5), &ones);
        assert_eq!(y, y.select(2, 0).unsqueeze(-1).expand([20, 10, 3]));
        assert_eq!(trained(&Dropout1d::new(0.0), &ones), ones);
    }

    #[test]
    fn alpha_dropout_keeps_mean_and_variance() {
        let x = Tensor::<f64>::randn([20_000], &mut Generator::new(5));
        for p in [0.1, 0.5, 0.9] {
            let y = trained(&AlphaDropout::new(p), &x);
            // Four standard deviations of the mean: 4 / √20000 = 0.028; of the variance, at most about 2.5 times that.
            assert!(y.mean(..).item().abs() < 0.03 && (y.var(.., 1.0).item() - 1.0).abs() < 0.08, "{p}");
        }
        assert_eq!(trained(&AlphaDropout::new(1.0), &x), Tensor::zeros([20_000]));
    }

    #[test]
    fn each_layer_and_each_step_draws_anew() {
        let x = Tensor::<f64>::ones([100]);
        let layer = Dropout::new(0.5);
        let generator = &mut Generator::new(0);
        let tape = Tape::training(generator);
        let first = layer.forward(tape.constant(&x)).value();
        assert_ne!(first, layer.forward(tape.constant(&x)).value());
        assert_ne!(first, layer.forward(Tape::training(generator).constant(&x)).value());
        assert_eq!(first, layer.forward(Tape::training(&mut Generator::new(0)).constant(&x)).value());
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        layer_gradients(Dropout::new(0.5), &input([5]));
        layer_gradients(Dropout3d::new(0.5), &input([2, 3, 1, 2, 1]));
        layer_gradients(AlphaDropout::new(0.3), &input([5]));
        layer_gradients(FeatureAlphaDropout::new(0.3), &input([2, 3, 2]));
    }

    #[test]
    fn what_is_refused() {
        let text = Dropout::try_new(1.5).unwrap_err().to_string();
        assert_eq!(text, "Invalid p value: 1.5; expected a probability from 0 to 1");
        assert!(AlphaDropout::try_new(f64::NAN).is_err());
        let tape = Tape::<f64>::new();
        let error = Dropout2d::new(0.5).try_forward(tape.constant(&Tensor::ones([3]))).unwrap_err().to_string();
        assert!(error.contains("expected 3D or 4D input (got 1D input)"), "{error}");
    }
}
