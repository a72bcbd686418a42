//! Splits buffers among the tasks of an operation, so that no two parts overlap. All operations of this crate split buffers among threads
//! by this file, except for the parallel sort in `kernel/scan/lanes.rs`.
//!
//! A [`Partition`] splits a buffer into consecutive ranges. A [`Grid`] splits a matrix into rectangles. Tuples, arrays and lists of
//! partitions or grids split several buffers at once. [`run`] passes every task its own parts. The caller chooses the boundaries between
//! parts. Parts never overlap, whatever the boundaries are, because each part ends where the next one begins.
//!
//! Most callers choose boundaries only from shapes. Three also use the number of threads: [`try_ranges`], the tiles of matrix products
//! (`kernel/matmul/batched.rs`), and the sums of slices by index (`kernel/rows.rs`). In all three, an element's result does not depend on the
//! part that contains the element. So the boundaries do not change results.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::memory::available::AllocationError;
use crate::memory::threads::{self, Schedule};

/// The boundaries between parts of a buffer.
#[derive(Clone, Copy)]
enum Boundaries<'a> {
    /// Parts of equal length, which is given in elements. The last part may be shorter.
    Equal(usize),
    /// The position of the end of each part. The ends are in ascending order.
    Ends(&'a [usize]),
}

impl<'a> Boundaries<'a> {
    fn from_ends(ends: &'a [usize]) -> Self {
        assert!(ends.is_sorted(), "parts come in order");
        Boundaries::Ends(ends)
    }

    /// Returns the range of the part with index `number` in a buffer of `len` elements: `start(n) <= end(n) == start(n + 1) <= len`. Parts
    /// after the last one are empty.
    fn range(self, number: usize, len: usize) -> Range<usize> {
        let start = |number: usize| match self {
            Boundaries::Equal(size) => number.saturating_mul(size).min(len),
            Boundaries::Ends(ends) => {
                number.checked_sub(1).map_or(0, |before| ends.get(before).copied().unwrap_or(len).min(len))
            }
        };
        start(number)..start(number + 1)
    }
}

/// One or more buffers split into numbered parts.
pub(crate) trait Split: Sync {
    /// The part passed to a task.
    type Part;

    /// Returns the part with index `number`.
    ///
    /// Each part may be requested only once.
    unsafe fn part(&self, number: usize) -> Self::Part;
}

/// A pointer to the memory of a mutably borrowed slice, which several threads share.
struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: threads access the elements only through parts, and each part goes to one thread. A `&mut [T]` may be sent to a thread if
// `T: Send`.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    fn new(buffer: &'a mut [T]) -> Self {
        SharedSlice { start: buffer.as_mut_ptr(), len: buffer.len(), borrowed: PhantomData }
    }
}

/// A buffer split into consecutive ranges.
pub(crate) struct Partition<'a, T> {
    buffer: SharedSlice<'a, T>,
    boundaries: Boundaries<'a>,
}

impl<'a, T: Send> Partition<'a, T> {
    /// Splits `buffer` into parts of `size` elements. The last part may be shorter, and parts after it are empty.
    pub(crate) fn chunks(buffer: &'a mut [T], size: usize) -> Self {
        Partition { buffer: SharedSlice::new(buffer), boundaries: Boundaries::Equal(size) }
    }

    /// Splits `buffer` at the positions in `ends`, which are in ascending order. The part after the last end has the remaining elements.
    pub(crate) fn ends(buffer: &'a mut [T], ends: &'a [usize]) -> Self {
        Partition { buffer: SharedSlice::new(buffer), boundaries: Boundaries::from_ends(ends) }
    }
}

impl<'a, T: Send> Split for Partition<'a, T> {
    type Part = &'a mut [T];

    unsafe fn part(&self, number: usize) -> &'a mut [T] {
        let Range { start, end } = self.boundaries.range(number, self.buffer.len);
        // SAFETY: `start <= end <= len`, so the range is inside the buffer, which is mutably borrowed for `'a`. It begins at the
        // end of the part before it, and each part is requested once: no two overlap.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start.add(start), end - start) }
    }
}

/// A row-major matrix split into rectangles, numbered row by row.
pub(crate) struct Grid<'a, T> {
    buffer: SharedSlice<'a, T>,
    row_len: usize,
    rows: Boundaries<'a>,
    columns: Boundaries<'a>,
    /// The number of rectangles side by side in the matrix.
    tiles_per_row: usize,
}

impl<'a, T: Send> Grid<'a, T> {
    /// Splits a matrix with rows of `row_len` elements into rectangles of `rows` rows and `columns` columns. The rectangles at the right
    /// and at the bottom may be smaller.
    pub(crate) fn equal(buffer: &'a mut [T], row_len: usize, (rows, columns): (usize, usize)) -> Self {
        let tiles_per_row = row_len.div_ceil(columns.max(1));
        let (rows, columns) = (Boundaries::Equal(rows), Boundaries::Equal(columns));
        Grid { buffer: SharedSlice::new(buffer), row_len, rows, columns, tiles_per_row }
    }

    /// Splits a matrix with rows of `row_len` elements into rectangles. `rows` has the end of each range of rows, and `columns` the end of
    /// each range of columns, both in ascending order.
    pub(crate) fn ends(buffer: &'a mut [T], row_len: usize, rows: &'a [usize], columns: &'a [usize]) -> Self {
        let tiles_per_row = columns.len();
        let (rows, columns) = (Boundaries::from_ends(rows), Boundaries::from_ends(columns));
        Grid { buffer: SharedSlice::new(buffer), row_len, rows, columns, tiles_per_row }
    }
}

impl<'a, T: Send> Split for Grid<'a, T> {
    type Part = Tile<'a, T>;

    unsafe fn part(&self, number: usize) -> Tile<'a, T> {
        let (height, row_len) = (self.buffer.len / self.row_len.max(1), self.row_len);
        let (tile_row, tile_column) = (number / self.tiles_per_row.max(1), number % self.tiles_per_row.max(1));
        let (rows, columns) = (self.rows.range(tile_row, height), self.columns.range(tile_column, row_len));
        Tile { start: self.buffer.start, row_len, rows, columns, borrowed: PhantomData }
    }
}

/// A rectangle of a row-major matrix.
pub struct Tile<'a, T> {
    /// A pointer to the matrix's first element.
    start: *mut T,
    /// The number of elements in a row of the matrix.
    row_len: usize,
    /// The rows of the matrix that belong to the tile.
    rows: Range<usize>,
    /// The columns of the matrix that belong to the tile. Only this tile may access these elements.
    columns: Range<usize>,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T> Tile<'a, T> {
    /// Returns a tile that covers the whole matrix.
    pub(crate) fn whole(buffer: &'a mut [T], row_len: usize) -> Self {
        let rows = 0..buffer.len() / row_len.max(1);
        Tile { start: buffer.as_mut_ptr(), row_len, rows, columns: 0..row_len, borrowed: PhantomData }
    }

    /// Returns the tile's first row and first column in the matrix.
    pub(crate) fn origin(&self) -> (usize, usize) {
        (self.rows.start, self.columns.start)
    }

    /// Returns the number of rows of the tile.
    pub(crate) fn height(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of columns of the tile.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns the part of this tile with the columns in `columns`, which are counted from the tile's first column.
    pub(crate) fn columns(&mut self, columns: Range<usize>) -> Tile<'_, T> {
        assert!(columns.start <= columns.end && columns.end <= self.columns.len(), "columns {columns:?} of a tile");
        let columns = self.columns.start + columns.start..self.columns.start + columns.end;
        Tile { start: self.start, row_len: self.row_len, rows: self.rows.clone(), columns, borrowed: PhantomData }
    }

    /// Returns a pointer to the tile's first element, and the distance between its rows in elements. The pointer may access only the tile's
    /// elements, and only while the tile is borrowed.
    pub(crate) fn start_and_stride(&mut self) -> (*mut T, usize) {
        (self.start.wrapping_add(self.rows.start * self.row_len + self.columns.start), self.row_len)
    }

    /// Returns the elements of the tile's row with index `number`.
    pub(crate) fn row(&mut self, number: usize) -> &mut [T] {
        assert!(number < self.rows.len(), "row {number} of {}", self.rows.len());
        let first = (self.rows.start + number) * self.row_len + self.columns.start;
        // SAFETY: the tile's rows and columns lie within the matrix, and no other tile contains them (`Grid::part`, `whole`). The matrix is
        // borrowed mutably for `'a`. The tile is borrowed as long as the returned row.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), self.columns.len()) }
    }
}

impl<A: Split, B: Split> Split for (A, B) {
    type Part = (A::Part, B::Part);

    unsafe fn part(&self, number: usize) -> Self::Part {
        // SAFETY: the caller requests each part once, so each component's part is requested once.
        unsafe { (self.0.part(number), self.1.part(number)) }
    }
}

impl<S: Split, const N: usize> Split for [S; N] {
    type Part = [S::Part; N];

    unsafe fn part(&self, number: usize) -> Self::Part {
        // SAFETY: the caller requests each part once, so each component's part is requested once.
        self.each_ref().map(|split| unsafe { split.part(number) })
    }
}

impl<S: Split> Split for SmallVec<[S; 4]> {
    type Part = SmallVec<[S::Part; 4]>;

    unsafe fn part(&self, number: usize) -> Self::Part {
        // SAFETY: the caller requests each part once, so each component's part is requested once.
        self.iter().map(|split| unsafe { split.part(number) }).collect()
    }
}

/// Calls `task` once for each index in `0 .. count`, with the index and the parts of `split` that have this index.
pub(crate) fn run<S: Split>(count: usize, schedule: Schedule, split: S, task: impl Fn(usize, S::Part) + Sync) {
    threads::run(count, schedule, |number| {
        // SAFETY: `threads::run` calls this once for each number, and only this function owns `split`.
        task(number, unsafe { split.part(number) });
    });
}

/// Splits `out` into chunks of `size` elements (the last may be shorter). Calls `task` with the index of each chunk and the chunk.
pub(crate) fn chunks<T: Send>(out: &mut [T], size: usize, schedule: Schedule, task: impl Fn(usize, &mut [T]) + Sync) {
    if (1..=size).contains(&out.len()) {
        return task(0, out);
    }
    run(out.len().div_ceil(size), schedule, Partition::chunks(out, size), task);
}

/// Does the same as [`run`], for tasks that may return errors. If a task fails, the remaining tasks still run, and then an error is
/// returned.
pub(crate) fn try_run<S: Split>(
    count: usize,
    schedule: Schedule,
    split: S,
    task: impl Fn(usize, S::Part) -> Result<(), AllocationError> + Sync,
) -> Result<(), AllocationError> {
    let failed = AtomicBool::new(false);
    run(count, schedule, split, |number, part| {
        if task(number, part).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    });
    if failed.into_inner() { Err(AllocationError) } else { Ok(()) }
}

/// Does the same as [`chunks`], for tasks that may return errors.
pub(crate) fn try_chunks<T: Send>(
    out: &mut [T],
    size: usize,
    schedule: Schedule,
    task: impl Fn(usize, &mut [T]) -> Result<(), AllocationError> + Sync,
) -> Result<(), AllocationError> {
    try_run(out.len().div_ceil(size), schedule, Partition::chunks(out, size), task)
}

/// Splits `out` into units of `size` elements (the last may be shorter). Calls `task` with ranges of at least `least` consecutive units, or
/// with one range of all units if there are fewer. `task` gets the index of the first unit of its range, and the elements of the range.
///
/// There is at most one range for each thread, so `task` must compute each unit in the same way in every range.
pub(crate) fn try_ranges<T: Send>(
    out: &mut [T],
    size: usize,
    least: usize,
    task: impl Fn(usize, &mut [T]) -> Result<(), AllocationError> + Sync,
) -> Result<(), AllocationError> {
    let starts = threads::even_range_starts(out.len().div_ceil(size), least);
    let ends: SmallVec<[usize; 16]> = starts.iter().skip(1).map(|&start| start * size).chain([out.len()]).collect();
    try_run(starts.len(), Schedule::Parallel, Partition::ends(out, &ends), |number, part| task(starts[number], part))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn chunks_cover_everything() {
        for schedule in [Schedule::Serial, Schedule::Parallel, Schedule::Sweep { bytes: 100 }] {
            let mut out = vec![0; 1003];
            chunks(&mut out, 10, schedule, |number, chunk| chunk.fill(number + 1));
            assert!(out.iter().enumerate().all(|(i, &x)| x == i / 10 + 1));
        }
    }

    #[test]
    fn several_buffers_are_split_at_once() {
        let (mut x, mut y, mut z) = (vec![0; 100], vec![0; 25], vec![0; 7]);
        let ends = [1, 1, 5];
        let split = ([Partition::chunks(&mut x, 30), Partition::chunks(&mut y, 7)], Partition::ends(&mut z, &ends));
        run(4, Schedule::Parallel, split, |number, ([x, y], z)| {
            x.fill(number);
            y.fill(number);
            z.fill(number);
        });
        assert!(x.iter().enumerate().all(|(i, &x)| x == i / 30));
        assert!(y.iter().enumerate().all(|(i, &y)| y == i / 7));
        assert_eq!(z, [0, 2, 2, 2, 2, 3, 3]);
        let (mut x, mut y) = (vec![0; 10], vec![0; 4]);
        let split: SmallVec<[_; 4]> =
            [Partition::chunks(&mut x, 5), Partition::chunks(&mut y, 2)].into_iter().collect();
        run(2, Schedule::Parallel, split, |number, parts| parts.into_iter().for_each(|part| part.fill(number)));
        assert_eq!((x[4], x[5], y[1], y[2]), (0, 1, 0, 1));
    }

    #[test]
    fn a_tile_has_parts_of_columns() {
        let mut out = vec![0; 55];
        let mut tile = Tile::whole(&mut out, 11);
        tile.columns(2..9).columns(1..4).row(3).fill(1);
        assert!(tile.columns(11..11).row(0).is_empty());
        assert!(catch_unwind(AssertUnwindSafe(|| tile.columns(9..12).width())).is_err());
        assert!(out.iter().enumerate().all(|(i, &x)| x == i32::from((36..39).contains(&i))));
    }

    #[test]
    fn tiles_of_a_grid_have_each_element_once() {
        for (rows, columns) in [(vec![2, 2, 5], vec![0, 3, 11]), (vec![5], vec![11]), (vec![1, 9], vec![4, 40])] {
            let mut out = vec![0; 55];
            let grid = Grid::ends(&mut out, 11, &rows, &columns);
            run(rows.len() * columns.len(), Schedule::Parallel, grid, |number, mut tile| {
                let (top, left) = tile.origin();
                for row in 0..tile.height() {
                    for (column, out) in tile.row(row).iter_mut().enumerate() {
                        *out += (number + 1) * 10_000 + (top + row) * 100 + left + column;
                    }
                }
            });
            for (i, &x) in out.iter().enumerate() {
                let (row, column) = (i / 11, i % 11);
                let down = rows.iter().position(|&end| row < end).unwrap();
                let along = columns.iter().position(|&end| column < end).unwrap();
                assert_eq!(x, (down * columns.len() + along + 1) * 10_000 + row * 100 + column);
            }
        }
        let mut out = vec![0; 6 * 7];
        run(3 * 2, Schedule::Serial, Grid::equal(&mut out, 7, (2, 4)), |number, mut tile| {
            (0..tile.height()).for_each(|row| tile.row(row).fill(number));
        });
        assert!(out.iter().enumerate().all(|(i, &x)| x == i / 14 * 2 + i % 7 / 4));
    }

    #[test]
    #[should_panic(expected = "parts come in order")]
    fn descending_boundaries_are_refused() {
        Partition::ends(&mut [0; 9], &[3, 2]);
    }

    #[test]
    fn parts_never_leave_the_buffer() {
        let mut out = [0u8; 9];
        let ends = [4, usize::MAX];
        let split = (Partition::chunks(&mut out, usize::MAX / 2), Grid::equal(&mut [], 0, (0, 0)));
        run(5, Schedule::Serial, split, |number, (part, tile): (&mut [u8], Tile<u8>)| {
            assert_eq!((part.len(), tile.height()), (if number == 0 { 9 } else { 0 }, 0));
        });
        run(3, Schedule::Serial, Partition::ends(&mut out, &ends), |number, part| {
            assert_eq!(part.len(), [4, 5, 0][number]);
        });
    }

    #[test]
    #[should_panic(expected = "row 3 of 3")]
    fn rows_of_others_are_refused() {
        Tile::whole(&mut [0; 12], 4).row(3);
    }

    #[test]
    fn a_tile_points_to_its_first_element() {
        for schedule in [Schedule::Serial, Schedule::Parallel] {
            let mut out: Vec<usize> = (0..55).collect();
            let grid = Grid::ends(&mut out, 11, &[2, 5], &[3, 11]);
            run(4, schedule, grid, |number, mut tile| {
                let (first, widths) = ([0, 3, 22, 25][number], [3, 8, 3, 8]);
                let (pointer, stride) = tile.start_and_stride();
                assert_eq!((tile.row(0)[0], tile.width(), stride), (first, widths[number], 11));
                assert_eq!(tile.row(0).as_mut_ptr(), pointer);
                assert_eq!(tile.row(1)[0], first + 11);
            });
        }
    }

    #[test]
    fn every_part_runs_and_an_error_is_returned() {
        let failing = |number: usize| if number == 2 { Err(AllocationError) } else { Ok(()) };
        let mut out = [0; 23];
        let result = try_chunks(&mut out, 5, Schedule::Parallel, |number, part| {
            part.fill(number + 1);
            failing(number)
        });
        assert_eq!(result, Err(AllocationError));
        assert!(out.iter().enumerate().all(|(i, &x)| x == i / 5 + 1));
        assert_eq!(try_chunks(&mut out, 12, Schedule::Serial, |number, _| failing(number)), Ok(()));

        // The buffer has 1001 units of 7 elements (the last one is shorter), so that several threads get ranges of units.
        let mut out = vec![0; 1000 * 7 + 3];
        let done = try_ranges(&mut out, 7, 1, |first, part| {
            part.iter_mut().enumerate().for_each(|(i, x)| *x = first * 7 + i + 1);
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert!(out.iter().enumerate().all(|(i, &x)| x == i + 1));
        assert_eq!(try_ranges(&mut out, 7, 1, |_, _| Err(AllocationError)), Err(AllocationError));
    }
}
