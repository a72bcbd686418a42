//! Sums the gradients of several batches for one step.

use wengert_autograd::Gradients;
use wengert_tensor::Float;

use crate::Result;

/// The gradients of a step that takes several batches: the mean over the samples of all its batches.
pub(super) struct GradientAccumulator<T: Float> {
    /// The number of batches in a step.
    batches_per_step: usize,
    /// The sum of the gradients of the batches so far. The gradients of each batch are multiplied by its number of samples.
    sum: Option<Gradients<T>>,
    n_samples: usize,
    n_batches: usize,
}

impl<T: Float> GradientAccumulator<T> {
    /// Returns an empty sum for steps of `batches` batches.
    pub(super) fn new(batches: usize) -> Self {
        GradientAccumulator { batches_per_step: batches, sum: None, n_samples: 0, n_batches: 0 }
    }

    /// Adds the gradients of a batch of `samples` samples. They are gradients of the mean loss over the samples of the batch. Returns the gradients
    /// of the step if the step is complete, or if this is the last batch. Returns an error if there is not enough memory to scale the gradients.
    pub(super) fn add(
        &mut self,
        mut gradients: Gradients<T>,
        samples: usize,
        is_last: bool,
    ) -> Result<Option<Gradients<T>>> {
        // If a step has one batch, its gradients are returned unchanged: a multiplication and a division would change their bits.
        if self.batches_per_step == 1 {
            return Ok(Some(gradients));
        }
        gradients.try_scale(samples as f64)?;
        match &mut self.sum {
            Some(sum) => *sum += gradients,
            None => self.sum = Some(gradients),
        }
        (self.n_samples, self.n_batches) = (self.n_samples + samples, self.n_batches + 1);
        if self.n_batches < self.batches_per_step && !is_last {
            return Ok(None);
        }
        let mut step = self.sum.take();
        if let Some(step) = &mut step {
            step.try_scale(1.0 / self.n_samples as f64)?;
        }
        (self.n_samples, self.n_batches) = (0, 0);
        Ok(step)
    }
}
