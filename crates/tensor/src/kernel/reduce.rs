//! Reductions over some dimensions of a tensor of any layout.
//!
//! A sum is pairwise: runs of at most [`RUN`] elements are added in eight chains, the runs in a balanced tree, so that
//! the rounding error grows with log n instead of n (N. J. Higham, "The accuracy of floating point summation", 1993).
//! The tree depends on the shape alone: any number of threads gives the same bits.
#![allow(unsafe_code)]

use super::instruction::Reduction;
use super::map::{self, Source};
use crate::nest::{Nest, Run};
use crate::threads::Start;
use crate::{Element, Layout, threads};

/// Elements added without a tree.
const RUN: usize = 512;

/// Elements of a slice that are added without a tree, in 64 chains.
const LONG_RUN: usize = 4096;

/// Results computed together where the innermost loop runs over results.
const COLUMNS: usize = 512;

/// Work below this many elements is not worth a second thread.
const PARALLEL: usize = 1 << 16;

/// `out[i] = op over j of x[i, j]`: `kept` and `reduced` are the layout's kept and reduced dimensions, both over
/// `data`.
///
/// Where nothing is reduced (`reduced` is empty of elements), `out` keeps what the caller filled it with.
pub(crate) fn reduce<T: Element>(op: Reduction, data: &[T], kept: &Layout, reduced: &Layout, out: &mut [T]) {
    let count = reduced.numel();
    if count == 0 || out.is_empty() {
        return;
    }
    let rows = Nest::new(kept.shape(), [kept]);
    let columns = Nest::new(reduced.shape(), [reduced]);
    let base = kept.offset() as isize;
    // A thread that goes on where it was reads faster than one that jumps.
    let task = (PARALLEL / 4 / count.min(PARALLEL / 4)).max(out.len().div_ceil(map::TASKS));

    // Results that lie next to one another in memory are computed together, a block of them at a time.
    let together = rows.row() >= 8 && matches!(rows.run(0, 0, rows.row()), Run::Slice(_));
    let inner_run = columns.row() >= 8 && matches!(columns.run(0, 0, columns.row()), Run::Slice(_));
    if together && !inner_run {
        let row = rows.row();
        let block = |start: usize, out: &mut [T]| {
            let (position, len) = (rows.position(0, start) as isize, out.len());
            let row_at = |j: usize| {
                let at = (position + columns.position(0, j) as isize - base) as usize;
                &data[at..at + len]
            };
            block_of_columns(op, 0, count, &row_at, out);
        };
        if out.len().saturating_mul(count) < PARALLEL {
            for (r, line) in out.chunks_mut(row).enumerate() {
                line.chunks_mut(COLUMNS).enumerate().for_each(|(c, out)| block(r * row + c * COLUMNS, out));
            }
        } else {
            let (parts, shared) = (row.div_ceil(COLUMNS), Start(out.as_mut_ptr()));
            threads::for_each(out.len() / row * parts, |part| {
                let (r, c) = (part / parts, part % parts);
                let start = r * row + c * COLUMNS;
                // SAFETY: each part is a piece of one row of results, within `out`; no two overlap; `out` is borrowed
                // mutably until all are done.
                let out = unsafe { std::slice::from_raw_parts_mut(shared.at(start), COLUMNS.min(row - c * COLUMNS)) };
                block(start, out);
            });
        }
        return;
    }

    let one = |i: usize, scratch: &mut Vec<T>| {
        let position = rows.position(0, i) as isize - base;
        tree(op, &columns, data, position, 0, count, scratch)
    };
    if out.len().saturating_mul(count) < PARALLEL {
        let scratch = &mut Vec::new();
        out.iter_mut().enumerate().for_each(|(i, out)| *out = one(i, scratch));
    } else if out.len() >= 4 {
        threads::for_chunks(out, task, |t, part| {
            let scratch = &mut Vec::new();
            part.iter_mut().enumerate().for_each(|(i, out)| *out = one(t * task + i, scratch));
        });
    } else {
        for (i, out) in out.iter_mut().enumerate() {
            let position = rows.position(0, i) as isize - base;
            *out = parallel_tree(op, &columns, data, position, count);
        }
    }
}

/// Where a balanced tree over `start .. end` splits: at a multiple of [`RUN`] from the start.
fn middle(start: usize, end: usize) -> usize {
    start + ((end - start) / 2).div_ceil(RUN) * RUN
}

fn combine<T: Element>(op: Reduction, left: T, right: T) -> T {
    let mut total = [left];
    T::accumulate(op, &mut total, &[right]);
    total[0]
}

/// Elements that are one slice, or whole rows that are slices.
struct Slices<'a> {
    columns: &'a Nest<1>,
    start: usize,
    row: usize,
    rows: usize,
}

impl<'a> Slices<'a> {
    fn new(columns: &'a Nest<1>, start: usize, end: usize) -> Option<Self> {
        let (row, len) = (columns.row(), end - start);
        if let Run::Slice(_) = columns.run(0, start, len) {
            return Some(Slices { columns, start, row: len, rows: 1 });
        }
        let whole = row >= 64 && start.is_multiple_of(row) && len.is_multiple_of(row);
        let slices = whole && matches!(columns.run(0, start, row), Run::Slice(_));
        slices.then_some(Slices { columns, start, row, rows: len / row })
    }

    fn total<T: Element>(&self, op: Reduction, data: &[T], moved: isize) -> T {
        self.rows_between(op, data, moved, 0, self.rows)
    }

    /// Rows `from .. to`, in a balanced tree.
    fn rows_between<T: Element>(&self, op: Reduction, data: &[T], moved: isize, from: usize, to: usize) -> T {
        if to - from > 1 {
            let middle = from + (to - from) / 2;
            let left = self.rows_between(op, data, moved, from, middle);
            return combine(op, left, self.rows_between(op, data, moved, middle, to));
        }
        let position = (self.columns.position(0, self.start + from * self.row) as isize + moved) as usize;
        slice_total(op, &data[position..position + self.row])
    }
}

/// The reduction of a slice, in a balanced tree of runs of at most [`LONG_RUN`] elements.
pub(super) fn slice_total<T: Element>(op: Reduction, x: &[T]) -> T {
    if x.len() > LONG_RUN {
        let (left, right) = x.split_at((x.len() / 2).next_multiple_of(LONG_RUN));
        return combine(op, slice_total(op, left), slice_total(op, right));
    }
    T::reduce(op, x).expect("the operation was checked against the element type")
}

/// The reduction of elements `start .. end` of one result's column.
fn tree<T: Element>(
    op: Reduction,
    columns: &Nest<1>,
    data: &[T],
    moved: isize,
    start: usize,
    end: usize,
    scratch: &mut Vec<T>,
) -> T {
    if let Some(slices) = Slices::new(columns, start, end) {
        return slices.total(op, data, moved);
    }
    if end - start > RUN {
        let middle = middle(start, end);
        let left = tree(op, columns, data, moved, start, middle, scratch);
        let right = tree(op, columns, data, moved, middle, end, scratch);
        return combine(op, left, right);
    }
    let at = |position: usize| (position as isize + moved) as usize;
    let reduced = match columns.run(0, start, end - start) {
        Run::Slice(position) => T::reduce(op, &data[at(position)..at(position) + (end - start)]),
        _ => {
            scratch.clear();
            columns.walk(0, start, end - start, |position, stride, count| {
                let first = at(position) as isize;
                scratch.extend((0..count as isize).map(|i| data[(first + i * stride) as usize]));
            });
            T::reduce(op, scratch)
        }
    };
    reduced.expect("the operation was checked against the element type")
}

/// [`tree`], its lower parts on several threads.
fn parallel_tree<T: Element>(op: Reduction, columns: &Nest<1>, data: &[T], moved: isize, count: usize) -> T {
    let mut ends = vec![0, count];
    while ends[1] > (PARALLEL / 4).max(count / map::TASKS) {
        let halves = ends.windows(2).flat_map(|part| [part[0], middle(part[0], part[1]).min(part[1])]);
        ends = halves.chain([count]).collect();
        ends.dedup();
    }
    let parts: Vec<(usize, usize)> = ends.windows(2).map(|part| (part[0], part[1])).collect();
    let mut totals = vec![T::ZERO; parts.len()];
    threads::for_chunks(&mut totals, 1, |number, total| {
        let (start, end) = parts[number];
        total[0] = tree(op, columns, data, moved, start, end, &mut Vec::new());
    });
    while totals.len() > 1 {
        let pairs =
            totals.chunks(2).map(|pair| pair[1..].iter().fold(pair[0], |left, &right| combine(op, left, right)));
        totals = pairs.collect();
    }
    totals[0]
}

/// Results next to one another: rows `start .. end` are accumulated elementwise, in a balanced tree of runs.
fn block_of_columns<'a, T: Element>(
    op: Reduction,
    start: usize,
    end: usize,
    row_at: &impl Fn(usize) -> &'a [T],
    out: &mut [T],
) {
    const ROWS: usize = 64;
    if end - start <= ROWS {
        // From 0, as PyTorch does: a sum of -0 is 0.
        let first = match T::identity(op) {
            Some(identity) => {
                out.fill(identity);
                start
            }
            None => {
                out.copy_from_slice(row_at(start));
                start + 1
            }
        };
        for j in first..end {
            T::accumulate(op, out, row_at(j));
        }
        return;
    }
    let middle = start + ((end - start) / 2).div_ceil(ROWS) * ROWS;
    block_of_columns(op, start, middle, row_at, out);
    let mut right = vec![T::ZERO; out.len()];
    block_of_columns(op, middle, end, row_at, &mut right);
    T::accumulate(op, out, &right);
}

/// Position of the first largest (or smallest) element along a dimension for every result; a NaN wins, the first of
/// several.
pub(crate) fn arg<T: Element>(largest: bool, data: &[T], kept: &Layout, reduced: &Layout, out: &mut [i64]) {
    let rows = Nest::new(kept.shape(), [kept]);
    let columns = Nest::new(reduced.shape(), [reduced]);
    let count = reduced.numel();
    let base = kept.offset() as isize;
    for (i, out) in out.iter_mut().enumerate() {
        let moved = rows.position(0, i) as isize - base;
        let at = |j: usize| data[(columns.position(0, j) as isize + moved) as usize];
        let mut best = 0;
        for j in 1..count {
            let (old, new) = (at(best), at(j));
            let old_is_nan = old.partial_cmp(&old).is_none();
            let wins = new.partial_cmp(&new).is_none() || if largest { new > old } else { new < old };
            if wins && !old_is_nan {
                best = j;
            }
        }
        *out = best as i64;
    }
}

/// Calls `visit` with the elements of each line of `x` along its last dimension, in row-major order of the others.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) fn lines<T: Element>(x: Source<T>, mut visit: impl FnMut(usize, &[T])) {
    let rank = x.layout.shape().rank();
    let len = x.layout.shape()[rank - 1];
    let nest = Nest::new(x.layout.shape(), [x.layout]);
    let mut line = Vec::with_capacity(len);
    let count = nest.numel().checked_div(len).unwrap_or(0);
    for i in 0..count {
        line.clear();
        nest.walk(0, i * len, len, |position, stride, count| {
            line.extend((0..count as isize).map(|k| x.data[(position as isize + k * stride) as usize]));
        });
        visit(i, &line);
    }
}
