//! Totals of reductions on two levels. A task adds its blocks to a total of the current stage. A stage is a fixed number of blocks. After
//! each stage, its total is added to the total of all earlier stages and cleared, so that rounding errors stay small.

use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::{Float, Reduction};

/// The totals of the earlier stages of a task. The caller holds the totals of the current stage.
pub(crate) struct Stages<T> {
    op: Reduction,
    /// The number of blocks in a stage.
    every: usize,
    /// The totals of all earlier stages, one for each result of the reduction. This is empty if no task has more than one stage.
    aside: Scratch<T>,
}

impl<T: Float> Stages<T> {
    /// Starts a task of at most `blocks` blocks. Clears `total`, to which the caller adds the blocks. Returns an error if there is not
    /// enough memory.
    pub(crate) fn new(op: Reduction, every: usize, blocks: usize, total: &mut [T]) -> Result<Self, AllocationError> {
        let mut aside = Scratch::new(if blocks > every { total.len() } else { 0 })?;
        aside.fill(T::start(op));
        total.fill(T::start(op));
        Ok(Stages { op, every, aside })
    }

    /// If the block with index `number` begins a new stage, adds `total` to the totals of the earlier stages, and clears `total`. On entry,
    /// `total` is the total of the stage that has ended.
    pub(crate) fn begin_block(&mut self, number: usize, total: &mut [T]) {
        if number > 0 && number.is_multiple_of(self.every) {
            T::accumulate(self.op, &mut self.aside, total);
            total.fill(T::start(self.op));
        }
    }

    /// Adds the totals of earlier stages to `total`.
    pub(crate) fn finish(&self, total: &mut [T]) {
        if !self.aside.is_empty() {
            T::accumulate(self.op, total, &self.aside);
        }
    }
}
