//! Batch normalization, with running statistics for evaluation.

use std::panic::Location;

use wengert_autograd::{BlendWeight, Buffer, Parameter, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{BatchNormed, Normalization as _};

use crate::Result;
use crate::layers::forward::{add_layer_context, expect_rank, layer_error, optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::layers::normalization::affine::set_affine;
use crate::layers::normalization::channels::{channel_norm_settings, normalize_by_running_stats, running_statistics};
use crate::module::Module;

/// Batch normalization of `[n, c]` or `[n, c, l]`: n examples with c channels, and sequences of length l. PyTorch: `torch.nn.BatchNorm1d`.
pub type BatchNorm1d<T = f32> = BatchNorm<1, T>;

/// Batch normalization of `[n, c, h, w]`: n images with c channels, height h and width w. PyTorch: `torch.nn.BatchNorm2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{BatchNorm2d, Layer, Optimizer, Sgd};
///
/// let mut norm = BatchNorm2d::<f32>::new(3);
/// let images = Tensor::full([4, 3, 8, 8], 5.0);
/// // Training normalizes by the batch. The step then updates the running statistics.
/// let tape = Tape::training(&mut Generator::new(0));
/// let (_, gradients) = tape.value_and_gradients(|tape| norm.forward(tape.constant(&images)).sum(..));
/// Sgd::new(0.1).step(&mut norm, &gradients);
/// assert_eq!(norm.running_mean.as_ref().unwrap().value, Tensor::full([3], 0.5));
/// // Evaluation normalizes by the running statistics.
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&images));
/// assert_eq!(y.shape(), [4, 3, 8, 8]);
/// ```
pub type BatchNorm2d<T = f32> = BatchNorm<2, T>;

/// Batch normalization of `[n, c, d, h, w]`: n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.BatchNorm3d`.
pub type BatchNorm3d<T = f32> = BatchNorm<3, T>;

/// Batch normalization (Ioffe and Szegedy 2015): shifts and scales each channel to mean 0 and variance 1, then multiplies the channel by a
/// weight and adds a bias. `D` is the number of dimensions after the channels: [`BatchNorm1d`], [`BatchNorm2d`], [`BatchNorm3d`].
///
/// On a training tape, the mean and the variance of a channel are taken over the batch and all positions. The optimiser's step moves the running
/// statistics towards these values. For `running_var`, the sum of squares is divided by the number of values minus 1. The forward pass returns
/// an error if a channel has only one value. A batch without values is counted in `num_batches_tracked`, and keeps the running statistics.
///
/// On any other tape, the layer normalizes with its running statistics. If it has no running statistics, it normalizes with the statistics
/// of the batch.
#[derive(Clone, Debug, Module)]
pub struct BatchNorm<const D: usize, T: Float = f32> {
    /// The weight of each of c channels, `[c]`; initially 1.
    pub weight: Option<Parameter<T>>,
    /// The bias of each of c channels, `[c]`; initially 0.
    pub bias: Option<Parameter<T>>,
    /// The running mean of each of c channels, `[c]`; initially 0.
    pub running_mean: Option<Buffer<T>>,
    /// The running variance of each of c channels, `[c]`; initially 1.
    pub running_var: Option<Buffer<T>>,
    /// The number of batches in training so far. A batch without values counts too, although it does not change the running statistics.
    pub num_batches_tracked: Option<Buffer<i64>>,
    #[module(skip)]
    num_features: usize,
    #[module(skip)]
    momentum: Option<f64>,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<const D: usize, T: Float> BatchNorm<D, T> {
    /// Returns a layer for `num_features` channels, with a [`momentum`](Self::momentum) of 0.1 and an [`eps`](Self::eps) of 1e-5.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the parameters.
    #[track_caller]
    pub fn new(num_features: usize) -> Self {
        let layer = BatchNorm {
            weight: None,
            bias: None,
            running_mean: None,
            running_var: None,
            num_batches_tracked: None,
            num_features,
            momentum: Some(0.1),
            eps: 1e-5,
            created_at: Location::caller(),
        };
        layer.affine(true).track_running_stats(true)
    }

    channel_norm_settings!("true");

    /// Sets the weight of each new batch in the running statistics, from 0 to 1; 0.1 by default. With `None`, the running statistics are the
    /// plain average over all batches.
    #[must_use]
    pub fn momentum(self, momentum: impl Into<Option<f64>>) -> Self {
        BatchNorm { momentum: momentum.into(), ..self }
    }

    /// Removes the bias of the layer. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        BatchNorm { bias: None, ..self }
    }

    /// Checks that `x` has the rank and the number of channels that the layer expects.
    #[track_caller]
    fn check(&self, x: Var<'_, T>) -> Result<(), wengert_autograd::Error> {
        expect_rank("batch_norm", x, [if D == 1 { 2 } else { D + 2 }, D + 2])?;
        let (channels, features) = (x.shape()[1], self.num_features);
        if channels == features {
            return Ok(());
        }
        Err(layer_error("batch_norm", format!("expected {features} channels in dimension 1, but got {channels}")))
    }

    /// Returns the weight of the next batch in the running statistics: the momentum, or 1/n for the n-th batch without
    /// a momentum. Returns an error if the count of batches is not a single number.
    #[track_caller]
    fn blend_weight(&self) -> Result<BlendWeight> {
        if let Some(momentum) = self.momentum {
            return Ok(BlendWeight::Fixed(momentum));
        }
        let batches = self.num_batches_tracked.as_ref().map_or(Ok(0), |count| count.value.try_item())?;
        Ok(BlendWeight::CumulativeAverage((batches as u64).saturating_add(1)))
    }
}

impl<const D: usize, T: Float> Layer<T> for BatchNorm<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        let (weight, bias) =
            (optional_parameter(tape, self.weight.as_ref())?, optional_parameter(tape, self.bias.as_ref())?);
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let describe = || format!("BatchNorm{D}d({}) on an input of shape {}", self.num_features, x.shape());
        add_layer_context(self.check(x), self.created_at, describe)?;
        let running = self.running_mean.as_ref().zip(self.running_var.as_ref());
        if let Some(running) = running.filter(|_| !tape.is_training()) {
            if self.weight.as_ref().is_none_or(|weight| !weight.is_frozen()) {
                tape.note_evaluation("BatchNorm");
            }
            return output_of(
                self,
                normalize_by_running_stats(x, running, weight, bias, self.eps),
                self.created_at,
                describe,
            );
        }
        let normed = add_layer_context(x.try_batch_norm_training(weight, bias, self.eps), self.created_at, describe)?;
        let BatchNormed { output, mean, variance } = normed;
        // A batch without values has no mean and no variance, so the running statistics stay.
        if let Some((running_mean, running_var)) = running.filter(|_| x.shape().numel() > 0) {
            let blend_weight = self.blend_weight()?;
            tape.try_blend(running_mean, mean, blend_weight)?;
            tape.try_blend(running_var, variance, blend_weight)?;
        }
        if let Some(count) = &self.num_batches_tracked {
            tape.count(count);
        }
        output_of(self, Ok(output), self.created_at, describe)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, input, layer_gradients};
    use crate::module::update_buffers;

    /// Updates the running statistics of `layer` by a training pass over `x`, and returns the output.
    fn step<const D: usize>(layer: &mut BatchNorm<D, f64>, x: &Tensor<f64>) -> Tensor<f64> {
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(x));
        let (output, gradients) = (y.value(), y.sum(..).backward());
        update_buffers(layer, &gradients);
        output
    }

    /// Returns two batches of one channel, [1, 3] and [2, 8]. Their means are 2 and 5. Their variances (the sums of squares divided by 2 - 1)
    /// are 2 and 18.
    fn batches() -> [Tensor<f64>; 2] {
        [Tensor::from([[1.0], [3.0]]), Tensor::from([[2.0], [8.0]])]
    }

    #[test]
    fn training_normalizes_by_the_batch_and_updates_the_statistics() {
        let mut layer = BatchNorm1d::<f64>::new(1).eps(0.0);
        for batch in batches() {
            close(&step(&mut layer, &batch), &[-1.0, 1.0], 1e-15);
        }
        close(&layer.running_mean.as_ref().unwrap().value, &[0.9 * 0.2 + 0.5], 1e-15);
        close(&layer.running_var.as_ref().unwrap().value, &[0.9 * (0.9 + 0.2) + 1.8], 1e-15);
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 2);
    }

    #[test]
    fn without_a_momentum_the_statistics_are_averages() {
        let mut layer = BatchNorm1d::<f64>::new(1).momentum(None);
        for batch in batches() {
            step(&mut layer, &batch);
        }
        close(&layer.running_mean.as_ref().unwrap().value, &[3.5], 1e-15);
        close(&layer.running_var.as_ref().unwrap().value, &[10.0], 1e-15);
    }

    #[test]
    fn several_batches_of_one_tape_are_averaged() {
        let mut layer = BatchNorm1d::<f64>::new(1).momentum(None);
        for _ in 0..2 {
            let tape = Tape::training(&mut Generator::new(0));
            let [first, second] = batches().map(|batch| layer.forward(tape.constant(&batch)).sum(..));
            update_buffers(&mut layer, &(first + second).backward());
            close(&layer.running_mean.as_ref().unwrap().value, &[3.5], 1e-15);
            close(&layer.running_var.as_ref().unwrap().value, &[10.0], 1e-14);
        }
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 4);
    }

    #[test]
    fn evaluation_normalizes_by_the_statistics_and_changes_nothing() {
        let mut layer = BatchNorm1d::<f64>::new(1).eps(0.0).momentum(1.0);
        step(&mut layer, &batches()[1]);
        let tape = Tape::new();
        let y = layer.forward(tape.constant(Tensor::from([[5.0], [5.0 + 18f64.sqrt()]])));
        close(&y.value(), &[0.0, 1.0], 1e-15);
        update_buffers(&mut layer, &y.sum(..).backward());
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 1);
        // A layer without running statistics normalizes with the statistics of the batch.
        let layer = BatchNorm1d::<f64>::new(1).eps(0.0).track_running_stats(false);
        close(&layer.forward(tape.constant(&batches()[0])).value(), &[-1.0, 1.0], 1e-15);
        assert!(layer.named_buffers().is_empty());
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        layer_gradients(BatchNorm1d::new(3), &input([4, 3]));
        layer_gradients(BatchNorm2d::new(2).without_bias(), &input([2, 2, 3, 2]));
        layer_gradients(BatchNorm3d::new(2).affine(false), &input([2, 2, 1, 2, 2]));
    }

    #[test]
    fn paths_are_pytorchs() {
        let layer = BatchNorm2d::<f32>::new(4);
        let paths: Vec<String> = layer.leaves().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]);
        assert_eq!(layer.to_vector().to_vec(), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(BatchNorm2d::<f32>::new(4).affine(false).num_parameters(), 0);
        assert_eq!(BatchNorm2d::<f32>::new(4).without_bias().affine(true).num_parameters(), 4);
    }

    #[test]
    fn wrong_shapes_are_errors() {
        let layer = BatchNorm2d::<f64>::new(3);
        let training = Tape::training(&mut Generator::new(0));
        let sentence = |x: Tensor<f64>| layer.try_forward(training.constant(&x)).unwrap_err().to_string();
        let text = sentence(Tensor::ones([5, 3]));
        assert!(text.contains("expected 4D input (got 2D input)"), "{text}");
        assert!(text.contains("in the layer BatchNorm2d(3) on an input of shape [5, 3], made at"), "{text}");
        assert!(!text.contains("unsqueeze"), "{text}");
        let unbatched = sentence(Tensor::ones([3, 2, 2]));
        assert!(unbatched.contains("hint: a batch of one sample is `x.unsqueeze(0)`"), "{unbatched}");
        assert!(sentence(Tensor::ones([1, 4, 2, 2])).contains("expected 3 channels in dimension 1, but got 4"));
        assert!(sentence(Tensor::ones([1, 3, 1, 1])).contains("Expected more than 1 value per channel when training"));
    }

    #[test]
    fn a_step_with_gradients_of_an_evaluating_tape_is_reported() {
        use crate::{Optimizer as _, Sgd};
        let mut norm: BatchNorm1d = BatchNorm1d::new(2);
        let warnings_of = |norm: &mut BatchNorm1d, tape: Tape| {
            let warnings = wengert_tensor::compat::collect();
            let x = Tensor::from([[1.0, 2.0], [3.0, 5.0]]);
            let (_, gradients) = tape.value_and_gradients(|tape| {
                let free = tape.var(&Tensor::scalar(1.0));
                (norm.forward(tape.constant(&x)) * free).square().sum(..)
            });
            Sgd::new(0.1).step(norm, &gradients);
            warnings.warnings().iter().map(|warning| warning.details()).collect::<Vec<String>>()
        };
        assert!(warnings_of(&mut norm, Tape::training(&mut Generator::new(0))).is_empty());
        let [warning] = &warnings_of(&mut norm, Tape::new())[..] else { panic!("one warning") };
        assert!(warning.contains("`BatchNorm` ran as in evaluation"), "{warning}");
        assert!(warning.contains("hint: make the tape by `Tape::training(generator)`"), "{warning}");
        norm.freeze("");
        assert!(warnings_of(&mut norm, Tape::new()).is_empty());
    }

    #[test]
    fn a_frozen_part_before_the_trained_part_is_not_reported() {
        use crate::{Linear, Optimizer as _, Sgd};
        let generator = &mut Generator::new(0);
        let norm: BatchNorm1d = BatchNorm1d::new(2).affine(false);
        let mut head: Linear = Linear::new(2, 1, generator);
        let warnings_of = |head: &mut Linear, trained_first: bool| {
            let warnings = wengert_tensor::compat::collect();
            let (_, gradients) = Tape::new().value_and_gradients(|tape| {
                let scale = if trained_first {
                    head.forward(tape.constant(Tensor::ones([3, 2]))).mean(..)
                } else {
                    tape.constant(1.0)
                };
                head.forward(norm.forward(tape.constant(Tensor::ones([3, 2])) * scale)).sum(..)
            });
            Sgd::new(0.1).step(head, &gradients);
            warnings.warnings().len()
        };
        assert_eq!([warnings_of(&mut head, false), warnings_of(&mut head, true)], [0, 1]);
    }

    /// PyTorch gives the same results.
    #[test]
    fn an_empty_batch_is_counted_and_keeps_the_statistics() {
        for shape in [&[0usize, 2][..], &[0, 2, 5], &[3, 2, 0]] {
            let mut layer = BatchNorm1d::<f64>::new(2).momentum(None);
            let tape = Tape::training(&mut Generator::new(0));
            let x = tape.var(&Tensor::zeros(shape));
            let y = layer.forward(x);
            assert_eq!(y.value().shape(), shape);
            let gradients = y.sum(..).backward();
            assert_eq!(gradients.of(x).shape(), shape);
            assert_eq!(gradients.of(layer.weight.as_ref().unwrap()).to_vec(), [0.0, 0.0]);
            update_buffers(&mut layer, &gradients);
            let of = |buffer: &Option<Buffer<f64>>| buffer.as_ref().unwrap().value.to_vec();
            assert_eq!([of(&layer.running_mean), of(&layer.running_var)], [[0.0, 0.0], [1.0, 1.0]]);
            assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 1);
        }
    }

    #[test]
    fn a_count_of_batches_that_is_not_a_number_is_an_error() {
        let mut layer = BatchNorm1d::<f64>::new(1).momentum(None);
        layer.num_batches_tracked.as_mut().unwrap().value = Tensor::from([1, 2]);
        let tape = Tape::training(&mut Generator::new(0));
        let x = tape.constant(Tensor::from([[1.0], [2.0]]));
        assert!(layer.try_forward(x).is_err());
        // A count of -1 is wrong, and is `u64::MAX` as an unsigned number. The number of the next batch, the count plus 1, must not overflow.
        layer.num_batches_tracked.as_mut().unwrap().value = Tensor::scalar(-1);
        assert!(layer.try_forward(x).is_ok());
    }
}
