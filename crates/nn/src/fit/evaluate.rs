//! Computes the loss and the metrics of a model on a data set.

use wengert_autograd::{Tape, Var};
use wengert_macros::precompiled;
use wengert_tensor::{Float, Tensor};

use crate::data::DataLoader;
use crate::history::Scores;
use crate::metrics::Metric;
use crate::{Error, Result};

/// Resets `metrics`, and returns the loss and the metrics of a model on a data set, without training. `forward` and
/// `loss` are as for [`Fit::run`](crate::Fit::run). The result is the mean of the losses of the batches, each weighted
/// by its number of samples. So `loss` must be a mean over the samples of a batch. A mean with class weights, or over
/// targets that are not ignored, gives another loss than one large batch. Without samples the result is NaN.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::metrics::Accuracy;
/// use wengert::nn::{DataLoader, Generator, Layer, Linear, Samples, cross_entropy, evaluate};
///
/// let model = Linear::<f32>::new(2, 2, &mut Generator::new(0));
/// let data = Samples::new(Tensor::zeros([6, 2]), Tensor::<i64>::zeros([6]))?;
/// let scores = evaluate(
///     &model,
///     &DataLoader::new(data, 4),
///     &mut [("accuracy", &mut Accuracy::new())],
///     |model, tape, x| model.forward(tape.constant(x)),
///     |logits, classes| cross_entropy(&logits, classes),
/// )?;
/// println!("{} {:?}", scores.loss, scores.get("accuracy"));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// Errors of the data, the metrics and the operations. Also if the loss is not a single number, or if a metric has the name `loss` or the
/// name of another metric.
pub fn evaluate<T: Float, X: Send + 'static, Y: Send + 'static, M>(
    model: &M,
    loader: &DataLoader<(X, Y)>,
    metrics: &mut [(&str, &mut (dyn Metric<T, Y> + '_))],
    forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> Var<'t, T>,
    loss: impl for<'t> Fn(Var<'t, T>, &Y) -> Var<'t, T>,
) -> Result<Scores> {
    evaluate_outputs(
        loader,
        metrics,
        |tape, x| [forward(model, tape, x)],
        |[output], y| loss(output, y),
        |[output]| output,
    )
}

/// Does the same as [`evaluate`] for a model with several outputs: `forward` returns an array of variables, and `loss` gets this array. The method
/// `head` of a metric makes it a metric of one output, as for [`Fit::run_heads`](crate::Fit::run_heads).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::metrics::Accuracy;
/// use wengert::nn::{DataLoader, Generator, Layer, Linear, Samples, cross_entropy, evaluate_heads};
///
/// let generator = &mut Generator::new(0);
/// let model = [Linear::<f32>::new(4, 2, generator), Linear::new(4, 3, generator)];
/// let data = Samples::new(Tensor::zeros([6, 4]), (Tensor::<i64>::zeros([6]), Tensor::<i64>::zeros([6])))?;
/// let scores = evaluate_heads(
///     &model,
///     &DataLoader::new(data, 4),
///     &mut [("accuracy", &mut Accuracy::new().head::<0>())],
///     |[first, second], tape, x| [first.forward(tape.constant(x)), second.forward(tape.constant(x))],
///     |[first, second], (a, b)| cross_entropy(&first, a) + cross_entropy(&second, b),
/// )?;
/// println!("{} {:?}", scores.loss, scores.get("accuracy"));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`evaluate`].
#[allow(clippy::type_complexity)]
pub fn evaluate_heads<T: Float, X: Send + 'static, Y: Send + 'static, M, const N: usize>(
    model: &M,
    loader: &DataLoader<(X, Y)>,
    metrics: &mut [(&str, &mut (dyn Metric<T, Y, [Tensor<T>; N]> + '_))],
    forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> [Var<'t, T>; N],
    loss: impl for<'t> Fn([Var<'t, T>; N], &Y) -> Var<'t, T>,
) -> Result<Scores> {
    evaluate_outputs(loader, metrics, |tape, x| forward(model, tape, x), loss, |outputs| outputs)
}

/// Returns the loss and the metrics of a model with `N` outputs. `collect` converts the values of the outputs to the form that the metrics
/// expect.
pub(super) fn evaluate_outputs<T: Float, X: Send + 'static, Y: Send + 'static, O, const N: usize>(
    loader: &DataLoader<(X, Y)>,
    metrics: &mut [(&str, &mut (dyn Metric<T, Y, O> + '_))],
    forward: impl for<'t> Fn(&'t Tape<T>, &X) -> [Var<'t, T>; N],
    loss: impl for<'t> Fn([Var<'t, T>; N], &Y) -> Var<'t, T>,
    collect: fn([Tensor<T>; N]) -> O,
) -> Result<Scores> {
    check_names(metrics.iter().map(|(name, _)| *name))?;
    metrics.iter_mut().for_each(|(_, metric)| metric.reset());
    let mut mean = Mean::default();
    for (batch, samples) in loader.epoch(0).enumerate() {
        let (inputs, targets) = samples?;
        let tape = Tape::new();
        let outputs = forward(&tape, &inputs);
        let (value, outputs) = loss_and_outputs(&tape, loss(outputs, &targets), &outputs)?;
        mean.add(value, loader.batch_len(batch));
        let outputs = collect(to_array(outputs)?);
        for (_, metric) in metrics.iter_mut() {
            metric.update(&outputs, &targets)?;
        }
    }
    let metrics = metrics.iter().map(|(name, metric)| ((*name).to_owned(), metric.value())).collect();
    Ok(Scores { loss: mean.value(), metrics })
}

/// Returns the value of the loss and the values of the outputs.
#[precompiled]
fn loss_and_outputs<'t, T: Float>(
    tape: &'t Tape<T>,
    loss: Var<'t, T>,
    outputs: &[Var<'t, T>],
) -> Result<(f64, Vec<Tensor<T>>)> {
    let mut values = tape.try_values_slice(&[&[loss], outputs].concat())?;
    let outputs = values.split_off(1);
    Ok((values[0].try_item()?.to_f64(), outputs))
}

/// Converts the values of `N` outputs to an array.
pub(super) fn to_array<T: Float, const N: usize>(values: Vec<Tensor<T>>) -> Result<[Tensor<T>; N]> {
    let count = values.len();
    values.try_into().map_err(|_| Error::Argument(format!("expected the values of {N} outputs, but got {count}")))
}

/// Checks that no metric has the name of the loss or of another metric, because the scores are distinguished by their names.
pub(super) fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = Vec::new();
    for name in names {
        if name == "loss" {
            let problem = "a metric cannot be named 'loss', which is the name of the loss";
            return Err(Error::Argument(problem.to_owned()));
        }
        if seen.contains(&name) {
            return Err(Error::Argument(format!("two metrics have the name '{name}'")));
        }
        seen.push(name);
    }
    Ok(())
}

/// A mean over all samples, computed from the means of batches of different sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    /// Adds a batch of `samples` samples with the mean `value`.
    pub(super) fn add(&mut self, value: f64, samples: usize) {
        self.sum += value * samples as f64;
        self.count += samples as f64;
    }

    /// Returns the mean; NaN without samples.
    pub(super) fn value(self) -> f64 {
        self.sum / self.count
    }
}
