//! Layers that behave differently in training and were called on a tape that does not train.

use std::cell::Cell;

use wengert_tensor::Float;

use crate::Tape;

thread_local! {
    /// The id of a tape that does not train, and the kind of a layer that noted its evaluation on this tape. This is the last note of the
    /// thread.
    static EVALUATED: Cell<Option<(u64, &'static str)>> = const { Cell::new(None) };
}

impl<T: Float> Tape<T> {
    /// Notes that a layer of the kind `layer`, which behaves differently in training, evaluated on this tape. An optimiser warns if it
    /// makes a step with gradients of this tape. Only the last note of a thread is kept.
    ///
    /// Does nothing on a training tape. Also does nothing if this tape has so far recorded only frozen parameters, and no variable is bound
    /// to a parameter. Then the layer belongs to a frozen part of the model, which may evaluate, or it is before the first trained layer.
    pub fn note_evaluation(&self, layer: &'static str) {
        let may_learn = || {
            let record = self.record.borrow();
            !record.bound.is_empty() || record.parameters.iter().any(|&(_, index)| record.is_variable(index))
        };
        if !self.is_training() && may_learn() {
            EVALUATED.set(Some((self.id, layer)));
        }
    }
}

/// Returns the kind of a layer that [noted](Tape::note_evaluation) its evaluation on the tape with the id `tape`. Returns `None` if no
/// layer did, or if a layer on this thread has noted its evaluation on another tape since then. Notes of other threads are not found.
pub(crate) fn evaluated_layer(tape: u64) -> Option<&'static str> {
    EVALUATED.get().filter(|&(id, _)| id == tape).map(|(_, layer)| layer)
}
