//! Instance normalization, with optional running statistics.

use std::panic::Location;

use wengert_autograd::{BlendWeight, Buffer, Error, Parameter, Var};
use wengert_tensor::Float;
use wengert_tensor::ops::{BatchNormed, Normalization as _, Reductions as _, Repetition as _, Views as _};

use crate::Result;
use crate::layers::forward::{add_layer_context, expect_rank, optional_parameter, output_of};
use crate::layers::layer::Layer;
use crate::layers::normalization::affine::set_affine;
use crate::layers::normalization::channels::{channel_norm_settings, normalize_by_running_stats, running_statistics};
use crate::module::Module;

/// Instance normalization of `[n, c, l]`: n sequences with c channels and length l. PyTorch: `torch.nn.InstanceNorm1d`.
pub type InstanceNorm1d<T = f32> = InstanceNorm<1, T>;

/// Instance normalization of `[n, c, h, w]`: n images with c channels, height h and width w. PyTorch: `torch.nn.InstanceNorm2d`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{InstanceNorm2d, Layer};
///
/// let norm = InstanceNorm2d::<f64>::new(1).eps(0.0).affine(true);
/// let tape = Tape::new();
/// let y = norm.forward(tape.constant(&Tensor::from([[[1.0, 3.0]], [[10.0, 30.0]]]).unsqueeze(1)));
/// assert_eq!(y.value().to_vec(), [-1.0, 1.0, -1.0, 1.0]);
/// ```
pub type InstanceNorm2d<T = f32> = InstanceNorm<2, T>;

/// Instance normalization of `[n, c, d, h, w]`: n volumes with c channels, depth d, height h and width w. PyTorch: `torch.nn.InstanceNorm3d`.
pub type InstanceNorm3d<T = f32> = InstanceNorm<3, T>;

/// Instance normalization: shifts and scales each channel of each example to mean 0 and variance 1 over its positions. `D` is the number of
/// dimensions after the channels: [`InstanceNorm1d`], [`InstanceNorm2d`], [`InstanceNorm3d`]. An input may also lack the batch dimension.
///
/// By default there are no parameters and no running statistics, as in PyTorch. If there are running statistics, a training step moves them
/// towards the mean of the statistics of all examples of the batch. Evaluation then normalizes with the running statistics.
/// `num_batches_tracked` is always 0, as in PyTorch. A batch without values keeps the running statistics. If a channel of an example has only
/// one position, the forward pass returns an error, except with running statistics in evaluation.
#[derive(Clone, Debug, Module)]
pub struct InstanceNorm<const D: usize, T: Float = f32> {
    /// The weight of each of c channels, `[c]`; initially 1.
    pub weight: Option<Parameter<T>>,
    /// The bias of each of c channels, `[c]`; initially 0.
    pub bias: Option<Parameter<T>>,
    /// The running mean of each of c channels, `[c]`; initially 0.
    pub running_mean: Option<Buffer<T>>,
    /// The running variance of each of c channels, `[c]`; initially 1.
    pub running_var: Option<Buffer<T>>,
    /// This count is always 0. It exists because PyTorch's files have it.
    pub num_batches_tracked: Option<Buffer<i64>>,
    #[module(skip)]
    num_features: usize,
    #[module(skip)]
    momentum: f64,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    created_at: &'static Location<'static>,
}

impl<const D: usize, T: Float> InstanceNorm<D, T> {
    /// Returns a layer for `num_features` channels, with a [`momentum`](Self::momentum) of 0.1 and an [`eps`](Self::eps) of 1e-5.
    #[track_caller]
    pub fn new(num_features: usize) -> Self {
        InstanceNorm {
            weight: None,
            bias: None,
            running_mean: None,
            running_var: None,
            num_batches_tracked: None,
            num_features,
            momentum: 0.1,
            eps: 1e-5,
            created_at: Location::caller(),
        }
    }

    channel_norm_settings!("false");

    /// Sets the weight of each new batch in the running statistics, from 0 to 1; 0.1 by default.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        InstanceNorm { momentum, ..self }
    }

    /// Normalizes an input `x` of shape `[n, c, …]`. With running statistics, a training tape records their change, and any other tape
    /// normalizes with these statistics.
    #[track_caller]
    fn normalize<'t>(
        &self,
        x: Var<'t, T>,
        weight: Option<Var<'t, T>>,
        bias: Option<Var<'t, T>>,
    ) -> Result<Var<'t, T>, Error> {
        let (tape, shape) = (x.tape(), x.shape());
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let Some(running) = self.running_mean.as_ref().zip(self.running_var.as_ref()) else {
            return x.try_instance_norm(weight, bias, self.eps);
        };
        if !tape.is_training() {
            if self.weight.as_ref().is_none_or(|weight| !weight.is_frozen()) {
                tape.note_evaluation("InstanceNorm");
            }
            return normalize_by_running_stats(x, running, weight, bias, self.eps);
        }
        // The channels of all examples become the channels of a single example. Weight and bias are repeated for each example.
        let [examples, channels] = [shape[0], shape[1]];
        let mut joined = shape.clone();
        (joined[0], joined[1]) = (1, examples * channels);
        let (weight, bias) = (repeat_for_examples(weight, examples)?, repeat_for_examples(bias, examples)?);
        let normed = x.try_reshape(&joined)?.try_batch_norm_training(weight.as_ref(), bias.as_ref(), self.eps)?;
        let BatchNormed { output, mean, variance } = normed;
        if shape.numel() == 0 {
            // A batch without values has no mean and no variance, so the running statistics stay.
            return output.try_reshape(&shape);
        }
        for (running, statistic) in [(running.0, mean), (running.1, variance)] {
            let statistic = statistic.try_reshape([examples, channels])?.try_mean(0)?;
            tape.try_blend(running, statistic, BlendWeight::Fixed(self.momentum))?;
        }
        output.try_reshape(&shape)
    }
}

impl<const D: usize, T: Float> Layer<T> for InstanceNorm<D, T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let (weight, bias) =
            (optional_parameter(x.tape(), self.weight.as_ref())?, optional_parameter(x.tape(), self.bias.as_ref())?);
        let describe = || format!("InstanceNorm{D}d({}) on an input of shape {}", self.num_features, x.shape());
        let rank = add_layer_context(expect_rank("instance_norm", x, [D + 1, D + 2]), self.created_at, describe)?;
        if rank == D + 2 {
            return output_of(self, self.normalize(x, weight, bias), self.created_at, describe);
        }
        let y = add_layer_context(self.normalize(x.try_unsqueeze(0)?, weight, bias), self.created_at, describe)?;
        output_of(self, y.try_squeeze(0), self.created_at, describe)
    }
}

/// Returns `parameter`, `[c]`, repeated for each example, as `[examples · c]`.
#[track_caller]
fn repeat_for_examples<'t, T: Float>(
    parameter: Option<&Var<'t, T>>,
    examples: usize,
) -> Result<Option<Var<'t, T>>, Error> {
    match parameter {
        Some(parameter) => Ok(Some(parameter.try_repeat(examples)?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::layers::testing::{close, input, layer_gradients};
    use crate::module::update_buffers;

    #[test]
    fn an_input_may_have_no_batch_dimension() {
        let layer = InstanceNorm1d::<f64>::new(2).eps(0.0);
        let tape = Tape::new();
        let x = tape.constant(Tensor::from([[1.0, 3.0], [10.0, 30.0]]));
        assert_eq!(layer.forward(x).value(), Tensor::from([[-1.0, 1.0], [-1.0, 1.0]]));
        assert_eq!(layer.forward(x.unsqueeze(0)).value(), Tensor::from([[[-1.0, 1.0], [-1.0, 1.0]]]));
        assert!(layer.leaves().is_empty());
    }

    #[test]
    fn running_statistics_are_averages_over_the_batch() {
        let mut layer = InstanceNorm1d::<f64>::new(1).eps(0.0).affine(true).track_running_stats(true);
        layer.weight.as_mut().unwrap().value = Tensor::from([2.0]);
        // The two examples have the means 2 and 5, and the variances (the sums of squares divided by 2 - 1) 2 and 18.
        let batch = Tensor::from([[[1.0, 3.0]], [[2.0, 8.0]]]);
        let tape = Tape::training(&mut Generator::new(0));
        let y = layer.forward(tape.constant(&batch));
        close(&y.value(), &[-2.0, 2.0, -2.0, 2.0], 1e-15);
        update_buffers(&mut layer, &y.sum(..).backward());
        close(&layer.running_mean.as_ref().unwrap().value, &[0.35], 1e-15);
        close(&layer.running_var.as_ref().unwrap().value, &[1.9], 1e-15);
        assert_eq!(layer.num_batches_tracked.as_ref().unwrap().value.item(), 0);
        let y = layer.forward(Tape::new().constant(&batch)).value();
        close(&y, &[0.65, 2.65, 1.65, 7.65].map(|x| 2.0 * x / 1.9f64.sqrt()), 1e-14);
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        layer_gradients(InstanceNorm1d::new(2), &input([2, 2, 3]));
        layer_gradients(InstanceNorm2d::new(2).affine(true), &input([2, 2, 3, 2]));
        layer_gradients(InstanceNorm3d::new(2).affine(true).track_running_stats(true), &input([2, 2, 3, 1, 2]));
    }

    #[test]
    fn errors_name_the_layer() {
        let layer = InstanceNorm2d::<f64>::new(2).affine(true);
        let text = |x: Tensor<f64>| layer.try_forward(Tape::new().constant(&x)).unwrap_err().to_string();
        let wrong = text(Tensor::ones([2, 3]));
        assert!(
            wrong.contains("expected 3D or 4D input (got 2D input)") && wrong.contains("InstanceNorm2d(2)"),
            "{wrong}"
        );
        assert!(text(Tensor::ones([1, 3, 2, 2])).contains("weight should contain 3 elements"));
    }

    #[test]
    fn an_empty_batch_keeps_the_statistics() {
        for shape in [[0usize, 2, 5], [3, 2, 0]] {
            let mut layer = InstanceNorm1d::<f64>::new(2).affine(true).track_running_stats(true);
            let tape = Tape::training(&mut Generator::new(0));
            let y = layer.forward(tape.constant(Tensor::zeros(shape)));
            assert_eq!(y.value().shape(), &shape);
            update_buffers(&mut layer, &y.sum(..).backward());
            let of = |buffer: &Option<Buffer<f64>>| buffer.as_ref().unwrap().value.to_vec();
            assert_eq!([of(&layer.running_mean), of(&layer.running_var)], [[0.0, 0.0], [1.0, 1.0]]);
        }
    }

    #[test]
    fn another_number_of_channels_is_an_error_with_running_statistics() {
        let layer = InstanceNorm1d::<f64>::new(3).track_running_stats(true);
        let x = Tensor::ones([2, 4, 5]);
        assert!(layer.try_forward(Tape::new().constant(&x)).is_err());
        assert!(layer.try_forward(Tape::training(&mut Generator::new(0)).constant(&x)).is_err());
    }
}
