//! Sums the gradients of several batches for one step.

use wengert_autograd::Gradients;
use wengert_tensor::Float;

use crate::Result;

/// The gradients of a step that takes several batches: the mean over the samples of all its batches.
pub(super) struct Accumulated<T: Float> {
    /// The number of batches in a step.
    batches: usize,
    /// The sum of the gradients of the batches so far. The gradients of each batch are multiplied by its number of samples.
    sum: Option<Gradients<T>>,
    samples: usize,
    added: usize,
}

impl<T: Float> Accumulated<T> {
    /// Returns an empty sum for steps of `batches` batches.
    pub(super) fn new(batches: usize) -> Self {
        Accumulated { batches, sum: None, samples: 0, added: 0 }
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
        if self.batches == 1 {
            return Ok(Some(gradients));
        }
        gradients.try_scale(samples as f64)?;
        match &mut self.sum {
            Some(sum) => *sum += gradients,
            None => self.sum = Some(gradients),
        }
        (self.samples, self.added) = (self.samples + samples, self.added + 1);
        if self.added < self.batches && !is_last {
            return Ok(None);
        }
        let mut step = self.sum.take();
        if let Some(step) = &mut step {
            step.try_scale(1.0 / self.samples as f64)?;
        }
        (self.samples, self.added) = (0, 0);
        Ok(step)
    }
}
