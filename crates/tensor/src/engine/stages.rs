//! Totals in two stages. A task adds its blocks to a total; after some blocks, this total is added to another one and starts anew, so that
//! rounding errors stay small.

use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
pub(crate) use crate::thresholds::blocks::STAGE;
use crate::{Float, Reduction};

/// The totals of earlier blocks of a task.
pub(crate) struct Stages<T> {
    op: Reduction,
    /// Blocks after which totals are put aside.
    every: usize,
    /// Empty where the task has no more blocks than that.
    aside: Scratch<T>,
}

impl<T: Float> Stages<T> {
    /// Clears `total`, which collects the blocks of a task of at most `blocks` blocks.
    pub(crate) fn new(op: Reduction, every: usize, blocks: usize, total: &mut [T]) -> Result<Self, AllocationError> {
        let mut aside = Scratch::new(if blocks > every { total.len() } else { 0 })?;
        aside.fill(T::start(op));
        total.fill(T::start(op));
        Ok(Stages { op, every, aside })
    }

    /// Puts `total` aside where block `number` of the task begins a new stage.
    pub(crate) fn begin_block(&mut self, number: usize, total: &mut [T]) {
        if number > 0 && number.is_multiple_of(self.every) {
            T::accumulate(self.op, &mut self.aside, total);
            total.fill(T::start(self.op));
        }
    }

    /// Adds what was put aside to `total`.
    pub(crate) fn finish(&self, total: &mut [T]) {
        if !self.aside.is_empty() {
            T::accumulate(self.op, total, &self.aside);
        }
    }
}
