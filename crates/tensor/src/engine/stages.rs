//! Totals of reductions. A task adds its blocks to the total of the current stage. A stage is a fixed number of blocks. The totals of the
//! stages are combined in a balanced tree, so that rounding errors stay small.

use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::{Float, Reduction};

/// The totals of the earlier stages of a task. The caller holds the totals of the current stage.
pub(crate) struct Stages<T> {
    op: Reduction,
    blocks_per_stage: usize,
    ended_stages: usize,
    /// A set of totals for each bit of `ended_stages`. If the bit 2ᵏ is 1, the set with index k has the totals of 2ᵏ consecutive stages.
    sets: Scratch<T>,
}

impl<T: Float> Stages<T> {
    /// Starts a task of at most `blocks` blocks. Clears `total`, to which the caller adds the blocks. Returns an error if there is not
    /// enough memory.
    pub(crate) fn new(
        op: Reduction,
        blocks_per_stage: usize,
        blocks: usize,
        total: &mut [T],
    ) -> Result<Self, AllocationError> {
        // The last stage is not counted, because its totals are in `total`.
        let count = blocks.saturating_sub(1) / blocks_per_stage;
        let sets = Scratch::new(count.checked_ilog2().map_or(0, |log| log as usize + 1).saturating_mul(total.len()))?;
        total.fill(T::start(op));
        Ok(Stages { op, blocks_per_stage, ended_stages: 0, sets })
    }

    /// If the block with index `number` begins a new stage, stores the totals of the stage that has ended, which are in `total`. Then
    /// clears `total`.
    pub(crate) fn begin_block(&mut self, number: usize, total: &mut [T]) {
        if number == 0 || !number.is_multiple_of(self.blocks_per_stage) {
            return;
        }
        // The addition of 1 to `ended_stages` carries through its lowest bits that are 1. The sets of these bits are combined with the new
        // stage.
        let level = self.ended_stages.trailing_ones() as usize;
        for set in self.sets.chunks_exact(total.len().max(1)).take(level) {
            T::accumulate(self.op, total, set);
        }
        self.sets[level * total.len()..][..total.len()].copy_from_slice(total);
        self.ended_stages += 1;
        total.fill(T::start(self.op));
    }

    /// Combines `total` with the totals of all earlier stages.
    pub(crate) fn finish(&self, total: &mut [T]) {
        for (level, set) in self.sets.chunks_exact(total.len().max(1)).enumerate() {
            if self.ended_stages >> level & 1 == 1 {
                T::accumulate(self.op, total, set);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two totals over `blocks` blocks. In the first, every block adds 0.1. In the second, the block with index `k` adds `k`.
    fn totals(blocks_per_stage: usize, blocks: usize) -> [f32; 2] {
        let mut total = [7.0; 2];
        let mut stages = Stages::new(Reduction::Sum, blocks_per_stage, blocks, &mut total).unwrap();
        for number in 0..blocks {
            stages.begin_block(number, &mut total);
            total[0] += 0.1;
            total[1] += number as f32;
        }
        stages.finish(&mut total);
        total
    }

    #[test]
    fn every_block_is_counted_once() {
        for blocks_per_stage in [1, 2, 3, 16] {
            for blocks in 1..100 {
                assert_eq!(
                    totals(blocks_per_stage, blocks)[1],
                    (blocks * (blocks - 1) / 2) as f32,
                    "{blocks_per_stage} {blocks}"
                );
            }
        }
    }

    #[test]
    fn many_stages_have_the_error_of_a_tree() {
        let blocks = 1 << 20;
        let [tenths, _] = totals(16, blocks);
        let exact = blocks as f64 * f64::from(0.1f32);
        assert!((f64::from(tenths) / exact - 1.0).abs() < 1e-6, "{tenths} {exact}");
    }
}
