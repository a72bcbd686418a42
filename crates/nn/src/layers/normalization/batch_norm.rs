//! Batch normalization, with running statistics for evaluation.

use std::panic::Location;

use wengert_autograd::{Buffer, Parameter, Share, Var};
use wengert_tensor::ops::{BatchNormed, Normalization as _};
use wengert_tensor::{Float, Tensor};

use crate::Result;
use crate::layers::forward::{expect_rank, in_layer, optional, output_of, refused};
use crate::layers::layer::Layer;
use crate::layers::normalization::affine::set_affine;
use crate::module::Module;

/// Batch normalization of `[n, c]` or `[n, c, l]`. PyTorch: `torch.nn.BatchNorm1d`.
pub type BatchNorm1d<T = f32> = BatchNorm<1, T>;

/// Batch normalization of `[n, c, h, w]`. PyTorch: `torch.nn.BatchNorm2d`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{BatchNorm2d, Layer, Optimizer, Sgd};
///
/// let mut norm = BatchNorm2d::<f32>::new(3);
/// let images = Tensor::full([4, 3, 8, 8], 5.0);
/// // Training: normalized by the batch, whose statistics a step adds to the running ones.
/// let tape = Tape::training(&mut Generator::new(0));
/// let (_, gradients) = tape.value_and_gradients(|tape| norm.forward(tape.constant(&images)).sum(..));
/// Sgd::new(0.1).step(&mut norm, &gradients);
/// assert_eq!(norm.running_mean.as_ref().unwrap().value, Tensor::full([3], 0.5));
/// // Evaluation: normalized by the running statistics.
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&images));
/// assert_eq!(y.shape(), [4, 3, 8, 8]);
/// ```
pub type BatchNorm2d<T = f32> = BatchNorm<2, T>;

/// Batch normalization of `[n, c, d, h, w]`. PyTorch: `torch.nn.BatchNorm3d`.
pub type BatchNorm3d<T = f32> = BatchNorm<3, T>;

/// Each channel shifted and scaled to mean 0 and variance 1, then by a weight and a bias: [`BatchNorm1d`], [`BatchNorm2d`],
/// [`BatchNorm3d`] (Ioffe and Szegedy 2015).
///
/// On a training tape the statistics are those of the batch and all positions, and the optimiser's step moves the running
/// statistics towards them; `running_var` takes the variance divided by count - 1. On any other tape the running statistics are
/// used, or those of the batch where there are none. One value per channel has no variance: an error where the batch is used.
#[derive(Clone, Debug, Module)]
pub struct BatchNorm<const D: usize, T: Float = f32> {
    /// Scale of each channel, `[c]`; ones to begin with.
    pub weight: Option<Parameter<T>>,
    /// Shift of each channel, `[c]`; zeros to begin with.
    pub bias: Option<Parameter<T>>,
    /// Mean of each channel, `[c]`; zeros to begin with.
    pub running_mean: Option<Buffer<T>>,
    /// Variance of each channel, `[c]`; ones to begin with.
    pub running_var: Option<Buffer<T>>,
    /// Training steps so far.
    pub num_batches_tracked: Option<Buffer<i64>>,
    #[module(skip)]
    num_features: usize,
    #[module(skip)]
    momentum: Option<f64>,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    made: &'static Location<'static>,
}

impl<const D: usize, T: Float> BatchNorm<D, T> {
    /// A layer for `num_features` channels, with a momentum of 0.1 and an eps of 1e-5.
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
            made: Location::caller(),
        };
        layer.affine(true).track_running_stats(true)
    }

    /// With another number that is added to the variance.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        BatchNorm { eps, ..self }
    }

    /// With another share of the batch in the running statistics, or with `None` their plain average over all batches.
    #[must_use]
    pub fn momentum(self, momentum: impl Into<Option<f64>>) -> Self {
        BatchNorm { momentum: momentum.into(), ..self }
    }

    /// With or without weight and bias; with by default.
    #[must_use]
    #[track_caller]
    pub fn affine(mut self, affine: bool) -> Self {
        set_affine(&mut self.weight, &mut self.bias, &[self.num_features].into(), affine);
        self
    }

    /// Without a bias. PyTorch: `bias=False`.
    #[must_use]
    pub fn without_bias(self) -> Self {
        BatchNorm { bias: None, ..self }
    }

    /// With or without running statistics, new ones; with by default.
    #[must_use]
    #[track_caller]
    pub fn track_running_stats(mut self, track: bool) -> Self {
        (self.running_mean, self.running_var, self.num_batches_tracked) = (None, None, None);
        if track {
            self.running_mean = Some(Buffer::new(Tensor::zeros([self.num_features])));
            self.running_var = Some(Buffer::new(Tensor::ones([self.num_features])));
            self.num_batches_tracked = Some(Buffer::new(Tensor::scalar(0)));
        }
        self
    }

    #[track_caller]
    fn checked(&self, x: Var<'_, T>) -> Result<(), wengert_autograd::Error> {
        expect_rank("batch_norm", x, [if D == 1 { 2 } else { D + 2 }, D + 2])?;
        let (channels, features) = (x.shape()[1], self.num_features);
        if channels == features {
            return Ok(());
        }
        Err(refused("batch_norm", format!("expected {features} channels in dimension 1, but got {channels}")))
    }

    /// The share of a batch in the running statistics.
    fn share(&self) -> Share {
        let batches = || self.num_batches_tracked.as_ref().map_or(0, |count| count.value.item());
        self.momentum.map_or_else(|| Share::Nth(batches() as u64 + 1), Share::Fixed)
    }
}

impl<const D: usize, T: Float> Layer<T> for BatchNorm<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        let (weight, bias) = (optional(tape, self.weight.as_ref())?, optional(tape, self.bias.as_ref())?);
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let name = || format!("BatchNorm{D}d({}) on an input of shape {}", self.num_features, x.shape());
        in_layer(self.checked(x), self.made, name)?;
        let running = self.running_mean.as_ref().zip(self.running_var.as_ref());
        if let Some((mean, variance)) = running.filter(|_| !tape.is_training()) {
            let (mean, variance) = (tape.constant(&mean.value), tape.constant(&variance.value));
            return output_of(self, x.try_batch_norm(&mean, &variance, weight, bias, self.eps), self.made, name);
        }
        let normed = in_layer(x.try_batch_norm_training(weight, bias, self.eps), self.made, name)?;
        let BatchNormed { output, mean, variance } = normed;
        if let Some((running_mean, running_var)) = running {
            tape.try_blend(running_mean, mean, self.share())?;
            tape.try_blend(running_var, variance, self.share())?;
        }
        if let Some(count) = &self.num_batches_tracked {
            tape.count(count);
        }
        output_of(self, Ok(output), self.made, name)
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, input, layer_gradients};
    use crate::module::update_buffers;

    /// One training step of the statistics on `x`.
    fn step<const D: usize>(layer: &mut BatchNorm<D, f64>, x: &Tensor<f64>) -> Tensor<f64> {
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(x));
        let (output, gradients) = (y.value(), y.sum(..).backward());
        update_buffers(layer, &gradients);
        output
    }

    /// Batches [1, 3] and [2, 8] of one channel: means 2 and 5, variances 2 and 18 divided by count - 1.
    fn batches() -> [Tensor<f64>; 2] {
        [Tensor::from([[1.0], [3.0]]), Tensor::from([[2.0], [8.0]])]
    }

    #[test]
    fn training_uses_the_batch_and_moves_the_statistics() {
        let mut layer = BatchNorm1d::<f64>::new(1).eps(0.0);
        for batch in batches() {
            close(&step(&mut layer, &batch), &[-1.0, 1.0], 1e-15);
        }
        close(&layer.running_mean.as_ref().unwrap().value, &[0.9 * 0.2 + 0.5], 1e-15);
        close(&layer.running_var.as_ref().unwrap().value, &[0.9 * (0.9 + 0.2) + 1.8], 1e-15);
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 2);
    }

    #[test]
    fn without_a_momentum_they_are_averages() {
        let mut layer = BatchNorm1d::<f64>::new(1).momentum(None);
        for batch in batches() {
            step(&mut layer, &batch);
        }
        close(&layer.running_mean.as_ref().unwrap().value, &[3.5], 1e-15);
        close(&layer.running_var.as_ref().unwrap().value, &[10.0], 1e-15);
    }

    #[test]
    fn evaluation_uses_the_statistics_and_changes_nothing() {
        let mut layer = BatchNorm1d::<f64>::new(1).eps(0.0).momentum(1.0);
        step(&mut layer, &batches()[1]);
        let tape = Tape::new();
        let y = layer.forward(tape.constant(&Tensor::from([[5.0], [5.0 + 18f64.sqrt()]])));
        close(&y.value(), &[0.0, 1.0], 1e-15);
        update_buffers(&mut layer, &y.sum(..).backward());
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 1);
        // Without statistics, that of the batch.
        let layer = BatchNorm1d::<f64>::new(1).eps(0.0).track_running_stats(false);
        close(&layer.forward(tape.constant(&batches()[0])).value(), &[-1.0, 1.0], 1e-15);
        assert!(layer.named_buffers().is_empty());
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
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
    fn what_is_refused() {
        let layer = BatchNorm2d::<f64>::new(3);
        let training = Tape::training(&mut Generator::new(0));
        let sentence = |x: Tensor<f64>| layer.try_forward(training.constant(&x)).unwrap_err().to_string();
        let text = sentence(Tensor::ones([5, 3]));
        assert!(text.contains("expected 4D input (got 2D input)"), "{text}");
        assert!(text.contains("in the layer BatchNorm2d(3) on an input of shape [5, 3], made at"), "{text}");
        assert!(sentence(Tensor::ones([1, 4, 2, 2])).contains("expected 3 channels in dimension 1, but got 4"));
        assert!(sentence(Tensor::ones([1, 3, 1, 1])).contains("Expected more than 1 value per channel when training"));
    }
}
