//! Cuts a shape into blocks, and combines blocks into tasks.
//!
//! Blocks and tasks do not depend on the number of threads, so any number of threads gives the same bits.

use std::ops::Range;

use crate::kernel::transpose::Tiles;
use crate::memory::threads::Schedule;
use crate::thresholds::blocks::{BLOCK, LONG_ROW, LONG_ROW_OF_PROGRAM, MAX_TASKS, MIN_PARALLEL, PART_UNIT, TASK};

/// The blocks and the tasks into which `numel` elements are cut. A task is a range of blocks that one thread runs.
#[derive(Debug, Default)]
pub(crate) struct Tiling {
    pub(crate) numel: usize,
    /// The length of the program's rows, in elements. It is 0 if the program has no rows.
    pub(crate) row_len: usize,
    /// The number of elements of a unit: a long row, or several short rows. Each unit is cut into blocks separately.
    unit_len: usize,
    blocks_per_unit: usize,
    /// The number of elements in a block. The last block of a unit may be shorter. It is 0 if there are tiles.
    pub(crate) block_len: usize,
    /// The number of blocks. If there are tiles, all blocks of one row of tiles count as one block.
    block_count: usize,
    blocks_per_task: usize,
    /// The tiles (rectangles of rows and columns), if the shape is cut into tiles. A block is then one row of a tile, and blocks follow
    /// each other tile by tile. Otherwise, blocks are in row-major order.
    tiles: Option<Tiles>,
}

impl Tiling {
    /// Returns the tiling of `numel` elements for an operation that costs as much as `cost` additions per element. Within a row of
    /// `row_len` elements, each operand has a constant stride.
    pub(crate) fn of_operation(numel: usize, row_len: usize, cost: usize) -> Self {
        Self::in_rows(numel, row_len, LONG_ROW, 2 * cost)
    }

    /// Does the same as [`of_operation`](Self::of_operation), for operands that are all contiguous or single elements, which are read in
    /// place. A block then has up to [`TASK`] elements, so that most tasks consist of one block.
    pub(crate) fn of_contiguous(numel: usize, cost: usize) -> Self {
        let unit_len = numel.clamp(1, TASK);
        Self::cut(numel, unit_len, unit_len, 2 * cost)
    }

    /// Does the same as [`of_operation`](Self::of_operation), for a copy that is written directly into the result. A block has at most
    /// [`TASK`] elements: several whole rows, or a part of a long row.
    pub(crate) fn of_copy(numel: usize, row_len: usize) -> Self {
        let unit_len = (TASK / row_len * row_len).max(row_len);
        Self::cut(numel, unit_len, part_len(unit_len, TASK), 2)
    }

    /// Does the same as [`of_operation`](Self::of_operation), for a program whose instructions together cost as much as `cost` additions
    /// per element.
    pub(crate) fn of_program(numel: usize, row_len: usize, cost: usize) -> Self {
        // Reading the operands costs about one addition per element.
        Self::in_rows(numel, row_len, LONG_ROW_OF_PROGRAM, cost + 1)
    }

    /// Does the same as [`of_program`](Self::of_program), but blocks do not cut rows. Instructions reduce rows of `row_len` elements.
    /// Outputs concatenate values along rows of `concatenated_row_len` elements. One of the two lengths may be 0, which means that there
    /// are no such rows.
    pub(crate) fn of_rows(numel: usize, row_len: usize, concatenated_row_len: usize, cost: usize) -> Self {
        let longest = row_len.max(concatenated_row_len);
        let unit_len = if longest < LONG_ROW_OF_PROGRAM { BLOCK / longest * longest } else { longest };
        Tiling { row_len, ..Self::cut(numel, unit_len, unit_len, cost + 1) }
    }

    /// Returns the tiling of a program that runs lane by lane (a lane has the elements at one position of a short last dimension). The
    /// `numel` elements of each lane are cut into blocks of at most `max_len` elements. Within a row of `row_len` elements, each operand
    /// has a constant stride. One element of all lanes together costs as much as `cost` additions.
    pub(crate) fn of_lanes(numel: usize, row_len: usize, max_len: usize, cost: usize) -> Self {
        Self::cut(numel, row_len, part_len(row_len, max_len), cost)
    }

    /// Returns the tiling of `numel` elements into blocks of whole rows of `row_len` elements, for an operation that costs one addition.
    /// The second innermost loop of the operands has `rows` rows. If `is_streamed` is true, results bypass the caches, and a block has
    /// about [`BLOCK`] elements. Its number of rows is then a multiple of `rows`, or less than `rows`. If `is_streamed` is false, a block
    /// has about [`TASK`] elements.
    pub(crate) fn of_row_broadcast(numel: usize, (rows, row_len): (usize, usize), is_streamed: bool) -> Self {
        let rows = if rows < BLOCK / row_len { BLOCK / row_len / rows * rows } else { BLOCK / row_len };
        let unit_len = if is_streamed { rows * row_len } else { (TASK / row_len * row_len).max(row_len) };
        Self::cut(numel, unit_len, unit_len, 2)
    }

    /// Returns the tiling of `numel` elements into `tiles`, for an operation that reads a transposed operand.
    pub(crate) fn of_tiles(numel: usize, tiles: Tiles) -> Self {
        let (block_count, blocks_per_task) = tiles.bands(numel);
        Tiling { numel, block_count, blocks_per_task, tiles: Some(tiles), ..Tiling::default() }
    }

    fn in_rows(numel: usize, row_len: usize, long_row: usize, work: usize) -> Self {
        if numel <= BLOCK && row_len >= numel {
            return Self::cut(numel, numel, numel, work);
        }
        // A unit is one long row, or consists of several short rows. The blocks of a long row have nearly equal lengths.
        let unit_len = if row_len >= long_row { row_len } else { BLOCK / row_len * row_len };
        Self::cut(numel, unit_len, part_len(unit_len, BLOCK), work)
    }

    /// Returns the tiling into units of `unit_len` elements and blocks of `block_len` elements. `work` is the estimated cost per element, in
    /// additions: 2 for a separate addition, because reading its operands costs as much as adding them.
    fn cut(numel: usize, unit_len: usize, block_len: usize, work: usize) -> Self {
        let blocks_per_unit = unit_len.div_ceil(block_len);
        let block_count = numel / unit_len * blocks_per_unit + (numel % unit_len).div_ceil(block_len);
        let blocks_per_task = match numel.saturating_mul(work) < 2 * MIN_PARALLEL {
            true => block_count,
            false => (2 * TASK / work / block_len).max(block_count.div_ceil(MAX_TASKS)).max(1),
        };
        Tiling { numel, row_len: 0, unit_len, blocks_per_unit, block_len, block_count, blocks_per_task, tiles: None }
    }

    /// Returns the index of the first element of the block with index `number`. Blocks must be in row-major order.
    fn block_start(&self, number: usize) -> usize {
        number / self.blocks_per_unit * self.unit_len + number % self.blocks_per_unit * self.block_len
    }

    /// Returns the tiles, if the shape is cut into tiles.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        self.tiles
    }

    /// Makes the tasks longer, so that each except the last has about `min_len` elements or more. If there are fewer elements, makes a
    /// single task. Blocks must be in row-major order.
    pub(crate) fn lengthen_tasks(&mut self, min_len: usize) {
        self.blocks_per_task = self.blocks_per_task.max(min_len.div_ceil(self.block_len.max(1)).min(self.block_count));
    }

    pub(crate) fn task_count(&self) -> usize {
        self.block_count.div_ceil(self.blocks_per_task)
    }

    /// Returns the largest number of blocks that a task may have.
    pub(crate) fn max_blocks_per_task(&self) -> usize {
        self.blocks_per_task
    }

    /// Returns the index of the first element of a task. If `task` is the number of tasks, returns the number of elements.
    pub(crate) fn task_start(&self, task: usize) -> usize {
        let number = task * self.blocks_per_task;
        match self.tiles {
            _ if number >= self.block_count => self.numel,
            Some(tiles) => tiles.rows(number).start * tiles.width(),
            None => self.block_start(number),
        }
    }

    /// Calls `block` with the index of the first element and the length of each block of a task.
    #[inline]
    pub(crate) fn for_each_block(&self, task: usize, mut block: impl FnMut(usize, usize)) {
        let Range { start, end } = task * self.blocks_per_task..self.block_count.min((task + 1) * self.blocks_per_task);
        let Some(tiles) = self.tiles else {
            let (mut part, mut first) = (start % self.blocks_per_unit, self.block_start(start));
            for _ in start..end {
                let left = self.unit_len - part * self.block_len;
                let len = self.block_len.min(left).min(self.numel - first);
                block(first, len);
                first += len;
                part = if part + 1 == self.blocks_per_unit { 0 } else { part + 1 };
            }
            return;
        };
        for band in start..end {
            for columns in tiles.columns() {
                tiles.rows(band).for_each(|row| block(row * tiles.width() + columns.start, columns.len()));
            }
        }
    }

    /// Returns the schedule of the tasks for outputs of type `T`. Tasks run on several threads. Without tiles, successive operations may
    /// alternate the order of their tasks (see [`Schedule::Sweep`]).
    pub(crate) fn schedule<T>(&self) -> Schedule {
        match self.tiles {
            Some(_) => Schedule::Parallel,
            None => Schedule::Sweep { bytes: self.numel * size_of::<T>() },
        }
    }
}

/// Returns the length of the parts into which a range of `len` elements is cut: at most `max_len`, and nearly equal. The length is a
/// multiple of [`PART_UNIT`] where `max_len` allows it, so that parts begin at whole vectors. The last part may be shorter.
fn part_len(len: usize, max_len: usize) -> usize {
    len.div_ceil(len.div_ceil(max_len)).next_multiple_of(PART_UNIT).min(max_len).min(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::iteration_space::IterationSpace;
    use crate::{Layout, Shape};

    fn check(tiling: &Tiling, longest: usize, row_len: usize) {
        let mut next = 0;
        for task in 0..tiling.task_count() {
            assert_eq!(tiling.task_start(task), next);
            tiling.for_each_block(task, |start, len| {
                assert_eq!(start, next);
                assert!(len > 0 && len <= longest && len % row_len == 0, "{tiling:?}");
                next += len;
            });
        }
        assert_eq!((next, tiling.task_start(tiling.task_count())), (tiling.numel, tiling.numel));
    }

    #[test]
    fn blocks_cover_every_element_once_and_tasks_every_block() {
        for numel in [1, 5, 300, 1024, 1025, 70_000, 262_147, 1_000_003] {
            for row_len in [numel, 7, 500, 513, 1501].into_iter().filter(|&row_len| row_len <= numel) {
                for cost in [1, 4, 40] {
                    check(&Tiling::of_operation(numel, row_len, cost), BLOCK, 1);
                    check(&Tiling::of_program(numel, row_len, cost), BLOCK, 1);
                    check(&Tiling::of_contiguous(numel, cost), TASK, 1);
                    check(&Tiling::of_copy(numel, row_len), TASK, 1);
                }
            }
        }
        for (rows, row_len) in [(1, 3), (50_000, 3), (301, 300), (1000, 700), (40, 40_000)] {
            check(&Tiling::of_rows(rows * row_len, row_len, 0, 3), BLOCK.max(row_len), row_len);
            if row_len <= BLOCK {
                check(&Tiling::of_row_broadcast(rows * row_len, (rows, row_len), row_len % 3 == 0), TASK, row_len);
            }
        }
    }

    /// Compares the blocks and tasks of some shapes with lengths computed by hand. These lengths determine the order in which sums are
    /// added, so other lengths give results with other last bits.
    #[test]
    fn lengths_of_blocks_and_tasks() {
        let lengthened = |least: usize| {
            let mut tiling = Tiling::of_operation(1 << 20, 1 << 20, 1);
            tiling.lengthen_tasks(least);
            tiling
        };
        // For each tiling: the numbers of tasks, of blocks in a whole task and of all blocks. Then the lengths of the first block, of the
        // first task and of the row.
        let table = [
            (Tiling::of_operation(1000, 1000, 1), [1, 1, 1, 1000, 1000, 0]),
            (Tiling::of_operation(1000, 10, 1), [1, 1, 1, 1000, 1000, 0]),
            (Tiling::of_operation(1000, 200, 1), [1, 5, 5, 200, 1000, 0]),
            (Tiling::of_operation(1025, 1025, 1), [1, 2, 2, 576, 1025, 0]),
            // From 65,536 elements on, an operation is cut into several tasks for several threads.
            (Tiling::of_operation(65_535, 65_535, 1), [1, 64, 64, 1024, 65_535, 0]),
            (Tiling::of_operation(65_536, 65_536, 1), [4, 16, 64, 1024, 16_384, 0]),
            // An operation has at most 64 tasks. For more elements, the tasks have more blocks than the usual 16.
            (Tiling::of_operation(1 << 24, 1 << 24, 1), [64, 256, 16_384, 1024, 1 << 18, 0]),
            // Short rows share blocks, and longer rows do not.
            (Tiling::of_operation(65_536, 100, 1), [5, 16, 66, 1000, 16_000, 0]),
            (Tiling::of_operation(65_536, 127, 1), [5, 16, 65, 1016, 16_256, 0]),
            (Tiling::of_operation(65_536, 128, 1), [4, 128, 512, 128, 16_384, 0]),
            (Tiling::of_program(65_536, 511, 1), [5, 16, 65, 1022, 16_352, 0]),
            (Tiling::of_program(65_536, 512, 1), [4, 32, 128, 512, 16_384, 0]),
            // Costly operations have shorter tasks.
            (Tiling::of_operation(32_768, 32_768, 3), [7, 5, 32, 1024, 5120, 0]),
            (Tiling::of_program(16_383, 16_383, 7), [1, 16, 16, 1024, 16_383, 0]),
            (Tiling::of_program(16_384, 16_384, 7), [4, 4, 16, 1024, 4096, 0]),
            (Tiling::of_program(16_384, 16_384, 99_999), [16, 1, 16, 1024, 1024, 0]),
            (Tiling::of_contiguous(100, 1), [1, 1, 1, 100, 100, 0]),
            (Tiling::of_contiguous(24_000, 3), [2, 1, 2, 16_384, 16_384, 0]),
            (Tiling::of_contiguous(1 << 20, 1), [64, 1, 64, 16_384, 16_384, 0]),
            (Tiling::of_contiguous(1 << 22, 1), [64, 4, 256, 16_384, 65_536, 0]),
            (Tiling::of_copy(1 << 20, 100), [33, 2, 65, 16_300, 32_600, 0]),
            (Tiling::of_copy(1 << 20, 1000), [33, 2, 66, 16_000, 32_000, 0]),
            (Tiling::of_copy(1 << 20, 1 << 20), [64, 1, 64, 16_384, 16_384, 0]),
            (Tiling::of_rows(300_000, 300, 0, 3), [38, 9, 334, 900, 8100, 300]),
            (Tiling::of_rows(700_000, 700, 0, 3), [63, 16, 1000, 700, 11_200, 700]),
            (Tiling::of_rows(512_000, 512, 0, 3), [63, 16, 1000, 512, 8192, 512]),
            (Tiling::of_rows(600_000, 0, 600, 3), [63, 16, 1000, 600, 9600, 0]),
            (Tiling::of_rows(600_000, 300, 200, 3), [61, 11, 667, 900, 9900, 300]),
            (Tiling::of_lanes(10_000, 2000, 300, 20), [7, 5, 35, 300, 1500, 0]),
            (Tiling::of_row_broadcast(1 << 20, (3, 100), true), [62, 19, 1166, 900, 17_100, 0]),
            (Tiling::of_row_broadcast(1 << 20, (10, 100), true), [62, 17, 1049, 1000, 17_000, 0]),
            (Tiling::of_row_broadcast(1 << 20, (12, 100), true), [62, 17, 1049, 1000, 17_000, 0]),
            (Tiling::of_row_broadcast(1 << 20, (3, 100), false), [33, 2, 65, 16_300, 32_600, 0]),
            (lengthened(10), [64, 16, 1024, 1024, 16_384, 0]),
            (lengthened(100_000), [11, 98, 1024, 1024, 98 * 1024, 0]),
            (lengthened(1 << 21), [1, 1024, 1024, 1024, 1 << 20, 0]),
        ];
        for (number, (tiling, expected)) in table.into_iter().enumerate() {
            let (mut blocks, mut first) = (0, None);
            for task in 0..tiling.task_count() {
                tiling.for_each_block(task, |_, len| (blocks, first) = (blocks + 1, first.or(Some(len))));
            }
            let [tasks, blocks_per_task] = [tiling.task_count(), tiling.max_blocks_per_task()];
            let got = [tasks, blocks_per_task, blocks, first.unwrap(), tiling.task_start(1), tiling.row_len];
            assert_eq!(got, expected, "{number}");
        }
    }

    #[test]
    fn only_tasks_without_tiles_alternate() {
        let plain = Tiling::of_operation(1000, 1000, 1);
        assert!(matches!(plain.schedule::<f32>(), Schedule::Sweep { bytes: 4000 }));
        let layout = Layout::contiguous(Shape::from([64, 64])).permute(&[1, 0]);
        let space = IterationSpace::new(layout.shape(), [&layout]);
        let tiles = Tiles::new(&space).unwrap();
        let tiling = Tiling::of_tiles(space.numel(), tiles);
        assert!(matches!(tiling.schedule::<f32>(), Schedule::Parallel));
        assert!(tiling.tiles() == Some(tiles) && plain.tiles().is_none());
    }

    #[test]
    fn parts_of_long_rows_begin_at_whole_vectors() {
        for (len, longest) in [(210_000, BLOCK), (1025, BLOCK), (1500, BLOCK), (8191, 8192), (300, 128)] {
            let part = part_len(len, longest);
            assert!(part.is_multiple_of(PART_UNIT) || part == len, "{len}");
            assert!(part <= longest && len.div_ceil(part) == len.div_ceil(longest), "{len}");
        }
        assert_eq!([part_len(40, 100), part_len(300, 100), part_len(1, 1)], [40, 100, 1]);
    }

    #[test]
    fn tiles_cover_every_element_once() {
        for [batch, height, width] in [[1, 64, 64], [3, 47, 271], [2, 1000, 16], [5, 16, 1001]] {
            let layout = Layout::contiguous(Shape::from([batch, width, height])).permute(&[0, 2, 1]);
            let space = IterationSpace::new(layout.shape(), [&layout]);
            let tiling = Tiling::of_tiles(space.numel(), Tiles::new(&space).unwrap());
            let mut seen = vec![0; space.numel()];
            for task in 0..tiling.task_count() {
                tiling.for_each_block(task, |start, len| {
                    assert!(start >= tiling.task_start(task) && start + len <= tiling.task_start(task + 1));
                    seen[start..start + len].iter_mut().for_each(|seen| *seen += 1);
                });
            }
            assert!(seen.iter().all(|&seen| seen == 1));
        }
    }
}
