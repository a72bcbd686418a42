//! How the elements of a shape are cut into blocks, and blocks into tasks: the thresholds of every elementwise computation.
//!
//! Both depend on the shape and on what is computed alone, so that any number of threads gives the same bits.

use std::ops::Range;

use crate::kernel::strided::{BLOCK, LAST_LEVEL, PARALLEL, STREAM, TASK, TASKS};
use crate::kernel::transpose::Tiles;
use crate::memory::threads::Schedule;

/// Rows at least this long are cut into blocks, so that operands need not be gathered; of shorter ones several are one block.
/// A program of several instructions gathers an operand once and reads it more often.
const LONG_ROW: usize = 128;
const LONG_ROW_OF_PROGRAM: usize = 512;

/// Blocks and tasks of so many elements.
#[derive(Debug, Default)]
pub(crate) struct Tiling {
    pub(crate) count: usize,
    /// Elements of a row that instructions reduce; 0 where none does.
    pub(crate) row: usize,
    /// Elements that are cut into blocks together: a long row, or several short ones.
    unit: usize,
    /// Blocks of a unit, and elements of each but the last.
    parts: usize,
    pub(crate) block: usize,
    /// Of tiles, those of a band count as one.
    blocks: usize,
    /// Blocks of a task.
    each: usize,
    /// In place of blocks in row-major order: the rows of one tile, then those of the next.
    tiles: Option<Tiles>,
}

impl Tiling {
    /// Of `count` elements, of which operands are read in one way for rows of `row`, for an operation that costs as much as
    /// `cost` additions.
    pub(crate) fn of_operation(count: usize, row: usize, cost: usize) -> Self {
        Self::in_rows(count, row, LONG_ROW, 2 * cost)
    }

    /// As [`of_operation`](Self::of_operation), for instructions that cost as much as `cost` additions in all.
    pub(crate) fn of_program(count: usize, row: usize, cost: usize) -> Self {
        // Reading costs as much as an addition.
        Self::in_rows(count, row, LONG_ROW_OF_PROGRAM, cost + 1)
    }

    /// As [`of_program`](Self::of_program), in blocks of whole rows, which are reduced, and of whole rows of `together` elements, if
    /// they are longer.
    pub(crate) fn of_rows(count: usize, row: usize, together: usize, cost: usize) -> Self {
        let longest = row.max(together);
        let unit = if longest < LONG_ROW_OF_PROGRAM { BLOCK / longest * longest } else { longest };
        Tiling { row, ..Self::cut(count, unit, unit, cost + 1) }
    }

    /// Of `count` elements of each of several lanes, which are read in one way for rows of `row`, in blocks of at most `longest`;
    /// `cost` is that of an element of all lanes.
    pub(crate) fn of_lanes(count: usize, row: usize, longest: usize, cost: usize) -> Self {
        Self::cut(count, row, row.div_ceil(row.div_ceil(longest)), cost)
    }

    /// For planes of `rows` rows of up to [`BLOCK`] elements and an operation that costs an addition: blocks are whole rows, as
    /// many as a task has where results are not streamed, else whole planes, or rows of one.
    pub(crate) fn of_planes(count: usize, (rows, row): (usize, usize), streams: bool) -> Self {
        let rows = if rows < BLOCK / row { BLOCK / row / rows * rows } else { BLOCK / row };
        let unit = if streams { rows * row } else { (TASK / row * row).max(row) };
        Self::cut(count, unit, unit, 2)
    }

    /// By tiles.
    pub(crate) fn of_tiles(count: usize, tiles: Tiles) -> Self {
        let (blocks, each) = tiles.bands(count);
        Tiling { count, blocks, each, tiles: Some(tiles), ..Tiling::default() }
    }

    fn in_rows(count: usize, row: usize, long_row: usize, work: usize) -> Self {
        if count <= BLOCK && row >= count {
            return Self::cut(count, count, count, work);
        }
        // As many short rows as there is room for, in blocks of nearly equal length.
        let unit = match row {
            usize::MAX => count.min(1 << 30).next_multiple_of(BLOCK),
            row if row >= long_row => row,
            row => BLOCK / row * row,
        };
        Self::cut(count, unit, unit.div_ceil(unit.div_ceil(BLOCK)), work)
    }

    /// Units of `unit` elements, cut into blocks of `block`; as much is done for an element as two times `work` additions.
    fn cut(count: usize, unit: usize, block: usize, work: usize) -> Self {
        let parts = unit.div_ceil(block);
        let blocks = count / unit * parts + (count % unit).div_ceil(block);
        let each = match count.saturating_mul(work) < 2 * PARALLEL {
            true => blocks,
            false => (2 * TASK / work / block).max(blocks.div_ceil(TASKS)).max(1),
        };
        Tiling { count, row: 0, unit, parts, block, blocks, each, tiles: None }
    }

    /// The first element of block number `number`, where blocks are in row-major order.
    fn first(&self, number: usize) -> usize {
        number / self.parts * self.unit + number % self.parts * self.block
    }

    /// The tiles that blocks are rows of.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        self.tiles
    }

    /// Makes tasks of so many elements at least, where blocks are in row-major order.
    pub(crate) fn lengthen_tasks(&mut self, least: usize) {
        self.each = self.each.max(least.div_ceil(self.block.max(1)).min(self.blocks));
    }

    /// Number of tasks.
    pub(crate) fn tasks(&self) -> usize {
        self.blocks.div_ceil(self.each)
    }

    /// Blocks of a task, at most.
    pub(crate) fn longest_task(&self) -> usize {
        self.each
    }

    /// The first element of a task; of the one after the last, the number of elements.
    pub(crate) fn start(&self, task: usize) -> usize {
        let number = task * self.each;
        match self.tiles {
            _ if number >= self.blocks => self.count,
            Some(tiles) => tiles.rows(number).start * tiles.width(),
            None => self.first(number),
        }
    }

    /// Calls `block` with the first element and the length of each block of a task.
    #[inline]
    pub(crate) fn for_each_block(&self, task: usize, mut block: impl FnMut(usize, usize)) {
        let Range { start, end } = task * self.each..self.blocks.min((task + 1) * self.each);
        let Some(tiles) = self.tiles else {
            let (mut part, mut first) = (start % self.parts, self.first(start));
            for _ in start..end {
                let left = self.unit - part * self.block;
                let len = self.block.min(left).min(self.count - first);
                block(first, len);
                first += len;
                part = if part + 1 == self.parts { 0 } else { part + 1 };
            }
            return;
        };
        for band in start..end {
            for columns in tiles.columns() {
                tiles.rows(band).for_each(|row| block(row * tiles.width() + columns.start, columns.len()));
            }
        }
    }

    /// The schedule of the tasks, for outputs of `T`.
    pub(crate) fn schedule<T>(&self) -> Schedule {
        match self.tiles {
            Some(_) => Schedule::Parallel,
            None => Schedule::Sweep { bytes: self.count * size_of::<T>() },
        }
    }
}

/// Whether results of so many bytes, for which so many are read, are written past the caches.
pub(crate) fn is_streamed(written: usize, read: usize) -> bool {
    written >= STREAM && written + read > LAST_LEVEL
}

/// Bytes of a vector, the longest that there are.
pub(crate) const VECTOR: usize = 64;

/// Vectors of a line, at most. Lines are of 1, 2 or 4.
pub(crate) const LONGEST: usize = 4;

/// Bytes of all lines of a program, at most: what a second-level cache holds.
const MEMORY: usize = 1 << 18;

/// Elements of a line, where a program of so many values over `count` elements is run by lines; else `None`.
pub(crate) fn line<T>(count: usize, values: usize) -> Option<usize> {
    let line = (count * size_of::<T>()).next_power_of_two().max(VECTOR);
    (line <= LONGEST * VECTOR && line * values <= MEMORY).then_some(line / size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::iteration_space::IterationSpace;
    use crate::{Layout, Shape};

    fn check(tiling: &Tiling, longest: usize, rows_of: usize) {
        let mut next = 0;
        for task in 0..tiling.tasks() {
            assert_eq!(tiling.start(task), next);
            tiling.for_each_block(task, |start, len| {
                assert_eq!(start, next);
                assert!(len > 0 && len <= longest && len % rows_of == 0, "{tiling:?}");
                next += len;
            });
        }
        assert_eq!((next, tiling.start(tiling.tasks())), (tiling.count, tiling.count));
    }

    #[test]
    fn blocks_cover_every_element_once_and_tasks_every_block() {
        for count in [1, 5, 300, 1024, 1025, 70_000, 262_147, 1_000_003] {
            for row in [count, 7, 500, 513, 1501].into_iter().filter(|&row| row <= count) {
                for cost in [1, 4, 40] {
                    check(&Tiling::of_operation(count, row, cost), BLOCK, 1);
                    check(&Tiling::of_program(count, row, cost), BLOCK, 1);
                }
            }
        }
        for (rows, row) in [(1, 3), (50_000, 3), (301, 300), (1000, 700), (40, 40_000)] {
            check(&Tiling::of_rows(rows * row, row, 0, 3), BLOCK.max(row), row);
            if row <= BLOCK {
                check(&Tiling::of_planes(rows * row, (rows, row), row % 3 == 0), TASK, row);
            }
        }
    }

    #[test]
    fn tiles_cover_every_element_once() {
        for [batch, height, width] in [[1, 64, 64], [3, 47, 271], [2, 1000, 16], [5, 16, 1001]] {
            let layout = Layout::contiguous(Shape::from([batch, width, height])).permute(&[0, 2, 1]);
            let space = IterationSpace::new(layout.shape(), [&layout]);
            let tiling = Tiling::of_tiles(space.numel(), Tiles::new(&space).unwrap());
            let mut seen = vec![0; space.numel()];
            for task in 0..tiling.tasks() {
                tiling.for_each_block(task, |start, len| {
                    assert!(start >= tiling.start(task) && start + len <= tiling.start(task + 1));
                    seen[start..start + len].iter_mut().for_each(|seen| *seen += 1);
                });
            }
            assert!(seen.iter().all(|&seen| seen == 1));
        }
    }
}
