//! How the elements of a shape are cut into blocks, and blocks into tasks.
//!
//! Both depend on the shape and on what is computed alone, so that any number of threads gives the same bits.

use std::ops::Range;

use crate::kernel::strided::{BLOCK, PARALLEL, TASK, TASKS};

/// Rows at least this long are cut into blocks; of shorter ones several are one block.
const LONG_ROW: usize = 512;

/// Blocks and tasks of so many elements, in row-major order.
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
    blocks: usize,
    /// Blocks of a task.
    each: usize,
}

impl Tiling {
    /// Of `count` elements in rows of `row`, for which as much is done as `cost` additions for each. Where rows are `reduced`,
    /// blocks are whole rows.
    pub(crate) fn new(count: usize, row: usize, reduced: bool, cost: usize) -> Self {
        let (unit, block) = match reduced {
            true if row < LONG_ROW => (BLOCK / row * row, BLOCK / row * row),
            true => (row, row),
            false if count <= BLOCK && row >= count => (count, count),
            false => {
                // As many short rows as there is room for, in blocks of nearly equal length.
                let unit = if row >= LONG_ROW { row } else { BLOCK / row * row };
                (unit, unit.div_ceil(unit.div_ceil(BLOCK)))
            }
        };
        let parts = unit.div_ceil(block);
        let blocks = count / unit * parts + (count % unit).div_ceil(block);
        // Reading costs as much as an addition.
        let work = cost + 1;
        let each = match count.saturating_mul(work) < 2 * PARALLEL {
            true => blocks,
            false => (2 * TASK / work / block).max(blocks.div_ceil(TASKS)).max(1),
        };
        Tiling { count, row: if reduced { row } else { 0 }, unit, parts, block, blocks, each }
    }

    /// The first element and the length of a block.
    pub(crate) fn block(&self, number: usize) -> (usize, usize) {
        let (unit, part) = (number / self.parts, number % self.parts);
        let start = unit * self.unit + part * self.block;
        (start, self.block.min(self.unit - part * self.block).min(self.count - start))
    }

    /// Number of tasks.
    pub(crate) fn tasks(&self) -> usize {
        self.blocks.div_ceil(self.each)
    }

    /// The blocks of a task.
    pub(crate) fn blocks_of(&self, task: usize) -> Range<usize> {
        task * self.each..self.blocks.min((task + 1) * self.each)
    }

    /// The first element of a task; of the one after the last, the number of elements.
    pub(crate) fn start(&self, task: usize) -> usize {
        if task * self.each < self.blocks { self.block(task * self.each).0 } else { self.count }
    }
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

    #[test]
    fn blocks_cover_every_element_once_and_tasks_every_block() {
        for count in [1, 5, 300, 1024, 1025, 70_000, 262_147, 1_000_003] {
            for (row, reduced) in
                [(count, false), (7, false), (500, false), (513, false), (1501, false), (300, true), (5, true)]
            {
                if row > count || reduced && count % row != 0 {
                    continue;
                }
                for cost in [1, 4, 40] {
                    let tiling = Tiling::new(count, row, reduced, cost);
                    let mut next = 0;
                    for task in 0..tiling.tasks() {
                        assert_eq!(tiling.start(task), next);
                        for number in tiling.blocks_of(task) {
                            let (start, len) = tiling.block(number);
                            assert_eq!(start, next, "{count} in rows of {row}");
                            assert!(len > 0 && len <= tiling.block && (!reduced || len % row == 0));
                            next += len;
                        }
                    }
                    assert_eq!((next, tiling.start(tiling.tasks())), (count, count));
                }
            }
        }
    }
}
