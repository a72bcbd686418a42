//! Batch normalization with the statistics of all ranks.

use std::panic::Location;

use wengert_autograd::prelude::*;
use wengert_autograd::{BlendWeight, Buffer};
use wengert_nn::{Error, Layer, Module};
use wengert_tensor::Site;
use wengert_tensor::ops::{BatchNormed, try_stack};

use crate::sync::{SyncScope, record_moments, sync_scope};

/// A layer that normalizes `[n, c, …]` by the mean and variance of the whole batch, over all ranks. PyTorch: `torch.nn.SyncBatchNorm`.
///
/// In [`DataParallel::step_recorded`](crate::DataParallel::step_recorded) the shards of a batch wait for each other at
/// this layer, in the forward and the backward pass. In the forward pass, they exchange 2 values for each channel, and a count. In the
/// backward pass, they exchange 3 values for each channel. Up to rounding, outputs, gradients and running statistics equal the results of
/// one rank that computes the whole batch. They have the same bits on any number of ranks.
///
/// Outside of a step, the layer computes the same as [`BatchNorm`](wengert_nn::BatchNorm). Its parameters and buffers have the same names,
/// and its settings the same defaults. On a training tape it uses the statistics of its input, on any other tape the running statistics. In
/// [`step`](crate::DataParallel::step) the layer returns an error on a training tape, because that function computes one shard after the
/// other.
///
/// The activations before the layer stay in memory until the step ends, for all shards of a rank.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert_distributed::{DataParallel, Group, SyncBatchNorm};
/// use wengert::nn::{Generator, Layer, Linear, Sequential, Sgd};
///
/// let group = Group::world()?;
/// let generator = &mut Generator::new(0);
/// let mut model: Sequential = Sequential::new().add(Linear::new(4, 3, generator)).add(SyncBatchNorm::new(3));
/// let mut parallel = DataParallel::new(&group, &mut model, Sgd::new(0.1))?;
/// let x = Tensor::randn([16, 4], generator);
/// parallel.step_recorded(&mut model, 16, generator, |model, tape, shard| {
///     Ok(model.forward(tape.constant(&shard.of(&x))).square().mean(..))
/// })?;
/// # Ok::<(), wengert_distributed::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct SyncBatchNorm<T: Float = f32> {
    /// The scale of each channel, `[c]`; initially ones.
    pub weight: Option<Parameter<T>>,
    /// The shift of each channel, `[c]`; initially zeros.
    pub bias: Option<Parameter<T>>,
    /// The running mean of each channel, `[c]`; initially zeros.
    pub running_mean: Buffer<T>,
    /// The running variance of each channel, `[c]`; initially ones.
    pub running_var: Buffer<T>,
    /// The number of batches in training so far. A batch without values counts too, although it does not change the running statistics.
    pub num_batches_tracked: Buffer<i64>,
    #[module(skip)]
    num_features: usize,
    #[module(skip)]
    momentum: Option<f64>,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<T: Float> SyncBatchNorm<T> {
    /// Returns a layer for `num_features` channels, with a momentum of 0.1 and an `eps` of 1e-5.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(num_features: usize) -> Self {
        SyncBatchNorm {
            weight: Some(Parameter::new(Tensor::ones([num_features]))),
            bias: Some(Parameter::new(Tensor::zeros([num_features]))),
            running_mean: Buffer::new(Tensor::zeros([num_features])),
            running_var: Buffer::new(Tensor::ones([num_features])),
            num_batches_tracked: Buffer::new(Tensor::scalar(0)),
            num_features,
            momentum: Some(0.1),
            eps: 1e-5,
            created_at: Location::caller(),
        }
    }

    /// Sets the constant that is added to the variance before its root is taken; 1e-5 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        SyncBatchNorm { eps, ..self }
    }

    /// Sets the weight of each new batch in the running statistics, from 0 to 1; 0.1 by default. With `None`, the running statistics are
    /// the plain average over all batches.
    #[must_use]
    pub fn momentum(self, momentum: impl Into<Option<f64>>) -> Self {
        SyncBatchNorm { momentum: momentum.into(), ..self }
    }

    /// Removes weight and bias. PyTorch: `affine=False`.
    #[must_use]
    pub fn without_affine(self) -> Self {
        SyncBatchNorm { weight: None, bias: None, ..self }
    }

    #[track_caller]
    fn normalize<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, wengert_autograd::Error> {
        let (tape, shape) = (x.tape(), x.shape());
        let argument_error =
            |message: String| wengert_tensor::Error::Argument { message, at: Site::here("sync_batch_norm") };
        if shape.rank() < 2 || shape[1] != self.num_features {
            let message = format!("expected an input [n, {}, …], but got {shape}", self.num_features);
            return Err(argument_error(message).into());
        }
        let parameter = |own: &Option<Parameter<T>>| own.as_ref().map(|own| tape.try_parameter(own)).transpose();
        let (weight, bias) = (parameter(&self.weight)?, parameter(&self.bias)?);
        if !tape.is_training() {
            if self.weight.as_ref().is_none_or(|weight| !weight.is_frozen()) {
                tape.note_evaluation("SyncBatchNorm");
            }
            let (mean, variance) =
                (tape.try_constant(&self.running_mean.value)?, tape.try_constant(&self.running_var.value)?);
            return x.try_batch_norm(&mean, &variance, weight.as_ref(), bias.as_ref(), self.eps);
        }
        let BatchNormed { output, mean, variance } = match sync_scope() {
            SyncScope::Alone => x.try_batch_norm_training(weight.as_ref(), bias.as_ref(), self.eps)?,
            SyncScope::OneByOne => {
                let message = "`step` computes one shard of the batch after the other, so the statistics of all shards \
                               are unknown: use `step_recorded`";
                return Err(argument_error(message.to_owned()).into());
            }
            SyncScope::Together => {
                let axes: Vec<isize> = (0..shape.rank() as isize).filter(|&axis| axis != 1).collect();
                let by_channel: Vec<usize> =
                    (0..shape.rank()).map(|axis| if axis == 1 { self.num_features } else { 1 }).collect();
                let count = shape.numel() / self.num_features.max(1);
                let own = x.try_mean(&axes[..])?;
                let squares = x.try_sub(&own.try_reshape(&by_channel[..])?)?.try_square()?.try_sum(&axes[..])?;
                let all = record_moments(x, try_stack(&[own, squares], 0)?, count)?;
                let row = |row: isize| all.try_select(0, row);
                let (mean, variance, part) = (row(0)?, row(1)?, row(2)?);
                // The running variance is unbiased: its divisor is the number of values over all shards minus 1. The number of values over
                // all shards is `count` / `part`: this shard's number of values, divided by this shard's fraction of all values.
                let unbiased = variance.try_div(&(part / -(count as f64) + 1.0))?;
                let output = x.try_batch_norm(&mean, &variance, weight.as_ref(), bias.as_ref(), self.eps)?;
                BatchNormed { output, mean, variance: unbiased }
            }
        };
        let blend_weight = match self.momentum {
            Some(momentum) => BlendWeight::Fixed(momentum),
            None => {
                BlendWeight::CumulativeAverage((self.num_batches_tracked.value.try_item()? as u64).saturating_add(1))
            }
        };
        // Outside of a step, a batch without values has no mean and no variance, so the running statistics stay.
        if shape.numel() > 0 {
            tape.try_blend(&self.running_mean, mean, blend_weight)?;
            tape.try_blend(&self.running_var, variance, blend_weight)?;
        }
        tape.count(&self.num_batches_tracked);
        Ok(output)
    }
}

impl<T: Float> Layer<T> for SyncBatchNorm<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let describe = || format!("SyncBatchNorm({}) on an input of shape {}", self.num_features, x.shape());
        self.normalize(x).map_err(|source| Error::Layer {
            layer: describe(),
            created_at: self.created_at,
            source: Box::new(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Generator;
    use wengert_nn::{Optimizer as _, Sgd, update_buffers};
    use wengert_tensor::compat;

    use super::*;

    #[test]
    fn a_batch_without_values_outside_of_a_step_keeps_the_statistics() {
        let mut layer = SyncBatchNorm::<f64>::new(2);
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(Tensor::zeros([0, 2, 3])));
        update_buffers(&mut layer, &y.sum(..).backward());
        assert_eq!(layer.running_mean.value.to_vec(), [0.0, 0.0]);
        assert_eq!(layer.running_var.value.to_vec(), [1.0, 1.0]);
        assert_eq!(layer.num_batches_tracked.value.item(), 1);
    }

    #[test]
    fn a_step_with_gradients_of_an_evaluating_tape_is_reported() {
        let mut layer = SyncBatchNorm::<f64>::new(2);
        let reported = |layer: &mut SyncBatchNorm<f64>, tape: Tape<f64>| {
            let warnings = compat::collect();
            let x = Tensor::from([[1.0, 2.0], [3.0, 5.0]]);
            let (_, gradients) = tape.value_and_gradients(|tape| {
                let free = tape.var(&Tensor::scalar(1.0));
                layer.forward(tape.constant(&x) * free).square().sum(..)
            });
            Sgd::new(0.1).step(layer, &gradients);
            let of = |warning: &compat::Warning| match warning {
                compat::Warning::Evaluating { layer, .. } => *layer,
                other => panic!("{other}"),
            };
            warnings.warnings().iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(reported(&mut layer, Tape::training(&mut Generator::new(0))), [""; 0]);
        assert_eq!(reported(&mut layer, Tape::new()), ["SyncBatchNorm"]);
        layer.freeze("");
        assert_eq!(reported(&mut layer, Tape::new()), [""; 0]);
    }

    #[test]
    fn a_layer_without_weight_and_bias_only_normalizes() {
        let layer = SyncBatchNorm::<f64>::new(1).without_affine().eps(0.0);
        assert_eq!(layer.parameters().len(), 0);
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(Tensor::from([[1.0], [3.0]])));
        assert_eq!(y.value().to_vec(), [-1.0, 1.0]);
    }

    #[test]
    fn several_batches_of_one_tape_are_averaged() {
        let mut layer = SyncBatchNorm::<f64>::new(1).momentum(None);
        let tape = Tape::training(&mut Generator::new(0));
        let batches = [Tensor::from([[1.0], [3.0]]), Tensor::from([[2.0], [8.0]])];
        let [first, second] = batches.map(|batch| layer.forward(tape.constant(&batch)).sum(..));
        let gradients = (first + second).backward();
        update_buffers(&mut layer, &gradients);
        // The means of the batches are 2 and 5, and the variances 2 and 18.
        assert_eq!(layer.running_mean.value.to_vec(), [3.5]);
        assert_eq!(layer.running_var.value.to_vec(), [10.0]);
        assert_eq!(layer.num_batches_tracked.value.item(), 2);
    }
}
