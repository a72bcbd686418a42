//! Computes the gradients of the loss of each single sample.

use std::cell::RefCell;

use wengert_autograd::transforms::Vmap;
use wengert_autograd::{Error, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::{Float, Site, Tensor};

use crate::module::Module;

/// Returns the gradients of `loss` for each sample, with respect to every parameter that is not frozen. JAX: `vmap(grad(loss), (None, 0, 0))`.
/// PyTorch: the same call, with a loss that runs the model by `functional_call`.
///
/// The result has the path of each of these parameters, in the order of [`named_parameters`](Module::named_parameters), and its gradients.
/// The gradients have the shape `[n, …]` for `n` samples and a parameter of shape `[…]`. They are 0 if the loss does not depend on the
/// parameter. The gradients of all samples are computed together, as by [`vmap`](wengert_autograd::transforms::vmap).
///
/// `loss` gets one sample: the part of each tensor of `samples` at one index of the first dimension, without this dimension. Everything that
/// differs between samples must be among `samples`, for example classes as one-hot rows. The tape is not a training tape, so there is no
/// dropout.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor as tensor; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Linear, per_sample_gradients};
/// use wengert::tensor::ops::one_hot;
///
/// let model = Linear::<f64>::new(3, 2, &mut Generator::new(0));
/// let x = Tensor::from([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0], [0.0, 1.0, 0.0], [2.0, 2.0, 2.0]]);
/// let classes = one_hot(&Tensor::from([0i64, 1, 1, 0]), Some(2)).cast::<f64>();
/// let gradients = per_sample_gradients(&model, [&x, &classes], |[x, class]| {
///     -(model.forward(x).log_softmax(-1) * class).sum(..)
/// });
/// let (path, weight) = &gradients[0];
/// assert_eq!((path.as_str(), weight.shape().sizes()), ("weight", &[4, 2, 3][..]));
/// // The norm of each sample's gradient, for clipping.
/// assert_eq!(weight.vector_norm(2.0, [1, 2]).shape(), &[4]);
/// ```
///
/// # Errors
///
/// If the loss is not a single number, an operation in it has no derivative, or there is not enough memory. Also if `samples` is empty, or
/// its tensors have no dimensions or different lengths.
#[twins]
pub fn try_per_sample_gradients<T: Float, const N: usize>(
    model: &(impl Module<T> + ?Sized),
    samples: [&Tensor<T>; N],
    loss: impl for<'t> Fn([Var<'t, T>; N]) -> Var<'t, T>,
) -> Result<Vec<(String, Tensor<T>)>, Error> {
    let at = Site::here("per_sample_gradients");
    let parameters: Vec<(String, &Parameter<T>)> =
        model.named_parameters().into_iter().filter(|(_, parameter)| !parameter.is_frozen()).collect();
    let tape = Tape::new();
    let vars: Vec<Var<'_, T>> =
        parameters.iter().map(|(_, parameter)| tape.try_parameter(parameter)).collect::<Result<_, _>>()?;
    let failure = RefCell::new(None);
    let inputs = samples.map(|sample| tape.constant(sample));
    let gradients = Vmap::new().try_record_slice(
        |sample| {
            let loss = loss(std::array::from_fn(|position| sample[position]));
            loss.try_grad_or_zeros_slice(&vars).unwrap_or_else(|error| {
                failure.replace(Some(error));
                Vec::new()
            })
        },
        &inputs,
    )?;
    if let Some(error) = failure.take() {
        return Err(match error {
            Error::NotScalar { shape, .. } => Error::NotScalar { shape, at },
            Error::NotDifferentiable { operation, recorded, .. } => {
                Error::NotDifferentiable { operation, recorded, at }
            }
            other => other,
        });
    }
    let values = tape.try_values_slice(&gradients)?;
    Ok(parameters.into_iter().map(|(path, _)| path).zip(values).collect())
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::{Conv2d, Generator, Layer as _, LayerNorm, Linear};

    #[derive(Module)]
    struct Model {
        conv: Conv2d<f64>,
        norm: LayerNorm<f64>,
        unused: Linear<f64>,
        head: Linear<f64>,
    }

    impl Model {
        fn loss<'t>(&self, x: Var<'t, f64>, target: Var<'t, f64>) -> Var<'t, f64> {
            let features = self.norm.forward(self.conv.forward(x).tanh().flatten(-3, -1));
            (self.head.forward(features) - target).square().sum(..)
        }
    }

    fn model() -> Model {
        let g = &mut Generator::new(3);
        Model {
            conv: Conv2d::new(2, 3, 2, g),
            norm: LayerNorm::new([12]),
            unused: Linear::new(2, 2, g),
            head: Linear::new(12, 2, g),
        }
    }

    fn samples() -> (Tensor<f64>, Tensor<f64>) {
        let g = &mut Generator::new(4);
        (Tensor::randn([5, 2, 3, 3], g), Tensor::randn([5, 2], g))
    }

    #[test]
    fn they_agree_with_a_loop_over_the_samples() {
        let (mut model, (x, y)) = (model(), samples());
        model.freeze("norm.bias");
        let got = per_sample_gradients(&model, [&x, &y], |[x, y]| model.loss(x, y));
        let paths: Vec<&str> = got.iter().map(|(path, _)| path.as_str()).collect();
        let expected =
            ["conv.weight", "conv.bias", "norm.weight", "unused.weight", "unused.bias", "head.weight", "head.bias"];
        assert_eq!(paths, expected);
        for sample in 0..5 {
            let tape = Tape::new();
            let [x, y] = [&x, &y].map(|all| tape.constant(all.select(0, sample)));
            let gradients = model.loss(x, y).backward();
            for (path, parameter) in model.named_parameters() {
                let Some((_, all)) = got.iter().find(|(known, _)| *known == path) else { continue };
                let (own, want) = (all.select(0, sample), gradients.of_or_zeros(parameter));
                assert!((&own - &want).abs().amax(..).item() < 1e-12, "{path} of sample {sample}");
            }
        }
    }

    #[test]
    fn errors_name_the_callers_line() {
        let (model, (x, y)) = (model(), samples());
        let line = line!() + 1;
        let error = try_per_sample_gradients(&model, [&x, &y], |[x, y]| model.loss(x, y) * y).unwrap_err();
        let Error::NotScalar { shape, at } = &error else { panic!("{error}") };
        assert_eq!((&shape[..], at.operation, at.location.line()), (&[2][..], "per_sample_gradients", line));
    }
}
