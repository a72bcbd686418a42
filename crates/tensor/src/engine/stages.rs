//! Totals of reductions, in two stages. A task adds its blocks to a first total. After some blocks, the first total is added to a second
//! one and cleared, so that rounding errors stay small.

use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
pub(crate) use crate::thresholds::blocks::STAGE;
use crate::{Float, Reduction};

/// The second totals of a task: the sums of the first totals of its earlier stages. A stage is a fixed number of blocks.
pub(crate) struct Stages<T> {
    op: Reduction,
    /// The number of blocks in a stage, after which the first totals are added to the second ones.
    every: usize,
    /// The second totals: the sum of earlier stages. This is empty if the task has a single stage.
    aside: Scratch<T>,
}

impl<T: Float> Stages<T> {
    /// Starts a task of at most `blocks` blocks. Clears `total`, to which the caller adds the blocks.
    pub(crate) fn new(op: Reduction, every: usize, blocks: usize, total: &mut [T]) -> Result<Self, AllocationError> {
        let mut aside = Scratch::new(if blocks > every { total.len() } else { 0 })?;
        aside.fill(T::start(op));
        total.fill(T::start(op));
        Ok(Stages { op, every, aside })
    }

    /// If the block with index `number` begins a new stage, adds `total` to the second totals and clears `total`.
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
