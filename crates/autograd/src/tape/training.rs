//! Training tapes: the random numbers of a step, and the changes of buffers that the step records. On other tapes, layers note instead that
//! they ran in evaluation mode.

use wengert_macros::{precompiled, twins};
use wengert_tensor::plan::NodeIndex;
use wengert_tensor::{Float, Generator, Site};

use crate::parameter::{BlendWeight, Buffer, BufferChange};
use crate::{Error, Tape, Var};

#[twins]
#[precompiled]
impl<T: Float> Tape<T> {
    /// Calls `draw` with the random number generator of a training tape, and returns the result of `draw`. Returns `None` on other tapes.
    pub fn draw<R>(&self, draw: impl FnOnce(&mut Generator) -> R) -> Option<R> {
        self.training.as_ref().map(|training| draw(&mut training.borrow_mut().generator))
    }

    /// Records that the training step moves `buffer` towards `new`. `new` is a statistic of the batch, has the buffer's shape, and is
    /// computed together with the gradients. `weight` is the weight of the batch in the result. If this tape has recorded changes of the
    /// buffer before, their number is added to the number of batches in [`BlendWeight::CumulativeAverage`]. Records nothing on a tape that
    /// does not train.
    ///
    /// # Errors
    ///
    /// If the statistic has another shape than the buffer, or belongs to another tape.
    pub fn try_blend(&self, buffer: &Buffer<T>, new: Var<'_, T>, weight: BlendWeight) -> Result<(), Error> {
        self.check_variable_shape("buffer", buffer.value.shape(), new, Site::here("blend"))?;
        self.record_change(buffer.id(), BufferChange::Blend { new: new.index, weight });
        Ok(())
    }

    /// Records that the training step adds one to `buffer`. Records nothing on a tape that does not train.
    #[inline]
    pub fn count(&self, buffer: &Buffer<i64>) {
        self.record_change(buffer.id(), BufferChange::Count);
    }

    /// Notes that a layer of the kind `layer`, which behaves differently in training, ran in evaluation mode on this tape. An optimiser
    /// warns if it makes a step with gradients of this tape. Only the last note is kept.
    ///
    /// Does nothing on a training tape. Also does nothing while this tape has recorded no parameter, or only frozen parameters, and no
    /// variable is bound to a parameter. Then the layer belongs to a frozen part of the model, which may run in evaluation mode, or it is
    /// before the first trained layer.
    pub fn note_evaluation(&self, layer: &'static str) {
        let may_learn = || {
            let record = self.record.borrow();
            !record.bound_parameters.is_empty() || record.parameters.iter().any(|&(_, index)| record.is_variable(index))
        };
        if !self.is_training() && may_learn() {
            self.evaluated_layer.set(Some(layer));
        }
    }

    /// Returns the state of a training tape's generator, or `None` on other tapes.
    #[inline]
    pub(crate) fn generator(&self) -> Option<Generator> {
        self.draw(|generator| generator.clone())
    }

    /// Sets the generator to a state from [`generator`](Self::generator).
    pub(crate) fn set_generator(&self, state: Option<Generator>) {
        if let Some(state) = state {
            self.draw(|generator| *generator = state);
        }
    }

    fn record_change(&self, buffer: u64, change: BufferChange<NodeIndex>) {
        if let Some(training) = &self.training {
            let changes = &mut training.borrow_mut().changes;
            let earlier = changes.iter().filter(|(earlier, _)| *earlier == buffer).count() as u64;
            changes.push((buffer, change.count_earlier_batches(earlier)));
        }
    }

    /// Keeps only the first `len` recorded changes of buffers.
    pub(crate) fn truncate_changes(&self, len: usize) {
        if let Some(training) = &self.training {
            training.borrow_mut().changes.truncate(len);
        }
    }

    pub(crate) fn changes(&self) -> Vec<(u64, BufferChange<NodeIndex>)> {
        self.training.as_ref().map_or_else(Vec::new, |training| training.borrow().changes.clone())
    }
}
