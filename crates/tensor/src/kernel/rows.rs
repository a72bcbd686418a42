//! Slices along one dimension: selection by index, its adjoint (which adds slices), copies to indexed slices, and concatenation.
//!
//! The caller checks the indices. Additions happen in the order of the indices, so that results do not depend on the number of
//! threads.

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill::{copy_strided, spread};
use crate::kernel::source::Source;
use crate::memory::partition::{self, Grid};
use crate::memory::threads::{Schedule, num_threads};
use crate::scalar::cpu;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::blocks::{MAX_CACHED_BYTES, MIN_PARALLEL, MIN_STREAMED_BYTES, TASK};
use crate::thresholds::parts::COLUMNS;
use crate::thresholds::rows::MIN_STREAMED_ROW_BYTES;
use crate::{Element, Reduction, Shape};

/// Copies slices of `x` along the dimension `axis`: sets slice `k` of `out` to slice `index[k]` of `x`.
pub(crate) fn index_select<T: Element>(x: Source<T>, axis: usize, index: &[i64], out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    // All slices have the layout of the first slice. Slice `k` starts `k` strides of the dimension `axis` after the first slice.
    let (first, stride) = (x.layout.slice(axis, 0, 1, 1), x.layout.strides()[axis]);
    let space = IterationSpace::new(first.shape(), [&first]);
    let width = Shape::from(&first.shape()[axis..]).numel();
    let rows = (TASK / width).max(1);
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::chunks(out, rows * width, schedule, |task, mut left| {
        let mut number = task * rows;
        while !left.is_empty() {
            let (outer, from) = (number / index.len(), number % index.len());
            let count = (index.len() - from).min(left.len() / width);
            let (out, later) = left.split_at_mut(count * width);
            let shifted = |position: usize, number: i64| (position as isize + number as isize * stride) as usize;
            let (position, step) = match space.segment(0, outer * width, width) {
                Segment::Slice(position) => (position, 1),
                Segment::Splat(position) => (position, 0),
                Segment::Strided(position, step) => (position, step),
                Segment::Walk => {
                    for (&number, out) in index[from..from + count].iter().zip(out.chunks_exact_mut(width)) {
                        let mut left = out;
                        space.walk(0, outer * width, width, |position, step, count| {
                            let (now, later) = std::mem::take(&mut left).split_at_mut(count);
                            copy_strided(x.data, shifted(position, number), step, now);
                            left = later;
                        });
                    }
                    (number, left) = (number + count, later);
                    continue;
                }
            };
            if width == 1 && stride == 1 {
                let line = &x.data[position..];
                out.iter_mut().zip(&index[from..from + count]).for_each(|(out, &number)| *out = line[number as usize]);
            } else if width == 1 {
                let rows = index[from..from + count].iter().zip(out);
                rows.for_each(|(&number, out)| *out = x.data[shifted(position, number)]);
            } else {
                let rows = index[from..from + count].iter().zip(out.chunks_exact_mut(width));
                rows.for_each(|(&number, out)| copy_strided(x.data, shifted(position, number), step, out));
            }
            (number, left) = (number + count, later);
        }
    });
}

/// Writes the value with index `k` of `count` values that are concatenated row by row. `x` holds its rows, which have `row` elements
/// each. A row of `out` consists of one row of every value.
pub(crate) fn write_concatenated_part<T: Element>(
    x: Operand<'_, T>,
    row: usize,
    (k, count): (usize, usize),
    out: &mut [T],
) {
    let own = out.chunks_exact_mut(count * row).map(|rows| &mut rows[k * row..][..row]);
    match x {
        Operand::Splat(value) => own.for_each(|out| out.fill(value)),
        Operand::Slice(x) => own.zip(x.chunks_exact(row)).for_each(|(out, x)| out.copy_from_slice(x)),
    }
}

/// Returns true if `out`, which is copied from operands of the same total size, is large enough for stores that bypass the caches.
pub(crate) fn is_copy_streamed<T>(out: &[T]) -> bool {
    let bytes = size_of_val(out);
    bytes >= MIN_STREAMED_BYTES && 2 * bytes > MAX_CACHED_BYTES
}

/// Copies `x` to `out` with stores that bypass the caches.
pub(crate) fn copy_streamed<T: Element>(x: &[T], out: &mut [T]) {
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::chunks(out, TASK, schedule, |task, out| {
        cpu::stream(&x[task * TASK..][..out.len()], out);
        cpu::fence_streams();
    });
}

/// Concatenates the tensors `parts` along the dimension `axis` into `out`. Their other sizes are equal, and no part is empty.
pub(crate) fn concatenate<T: Element>(parts: &[Source<T>], axis: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let own = |part: &Source<'_, T>| {
        let shape = part.layout.shape();
        (IterationSpace::new(shape, [part.layout]), Shape::from(&shape[axis..]).numel())
    };
    let spaces: Vec<(IterationSpace<1>, usize)> = parts.iter().map(own).collect();
    let width: usize = spaces.iter().map(|(_, width)| width).sum();
    let rows = (TASK / width).max(1);
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    let is_streamed = is_copy_streamed(out);
    partition::chunks(out, rows * width, schedule, |task, out| {
        let (first, count, mut left) = (task * rows, out.len() / width, 0);
        for (part, &(ref space, own)) in parts.iter().zip(&spaces) {
            let to = out.chunks_exact_mut(width).map(|row| &mut row[left..left + own]);
            match space.segment(0, first * own, count * own) {
                // Loops over single elements are faster than copies of slices of length 1.
                Segment::Slice(at) if own == 1 => to.zip(&part.data[at..]).for_each(|(to, &x)| to[0] = x),
                Segment::Slice(at) if is_streamed && size_of::<T>() * own >= MIN_STREAMED_ROW_BYTES => {
                    to.zip(part.data[at..].chunks_exact(own)).for_each(|(to, x)| cpu::stream(x, to));
                    cpu::fence_streams();
                }
                Segment::Slice(at) => {
                    to.zip(part.data[at..].chunks_exact(own)).for_each(|(to, x)| copy_strided(x, 0, 1, to));
                }
                _ => (first..).zip(to).for_each(|(row, to)| match space.segment(0, row * own, own) {
                    Segment::Slice(at) => copy_strided(part.data, at, 1, to),
                    _ => spread(space, part.data, row * own, to),
                }),
            }
            left += own;
        }
    });
}

/// Sets slice `index[k]` of `out` to slice `k` of `x`, for each `k` in order. The shape of `out` is `[.., size, width]`, and `width` is the
/// number of elements of a slice after the indexed dimension.
pub(crate) fn index_copy<T: Element>(x: Operand<'_, T>, index: &[i64], size: usize, width: usize, out: &mut [T]) {
    for (outer, out) in out.chunks_exact_mut((size * width).max(1)).enumerate() {
        for (k, &number) in index.iter().enumerate() {
            let (from, to) = ((outer * index.len() + k) * width, &mut out[number as usize * width..][..width]);
            match x.part(from, from + width) {
                Operand::Slice(x) if width == 1 => to[0] = x[0],
                Operand::Slice(x) => to.copy_from_slice(x),
                Operand::Splat(x) => to.fill(x),
            }
        }
    }
}

/// Sets slice `i` of `out` to the sum of all slices `x[.., k, ..]` with `index[k] == i`. The sum runs over all pairs `(x, index)` in
/// `terms`. The shape of `out` is `[.., size, width]`, and `width` is the number of elements of a slice after the indexed dimension.
pub(crate) fn index_sum<T: Element>(terms: &[(&[T], &[i64])], size: usize, width: usize, out: &mut [T]) {
    partition::chunks(out, TASK, Schedule::parallel_from(MIN_PARALLEL, out.len()), |_, out| out.fill(T::ZERO));
    index_add(terms, size, width, out);
}

/// Adds the same slices as [`index_sum`] to the current elements of `out`, one slice after the other.
pub(crate) fn index_add<T: Element>(terms: &[(&[T], &[i64])], size: usize, width: usize, out: &mut [T]) {
    let count: usize = terms.iter().map(|(x, _)| x.len()).sum();
    if count == 0 {
        return;
    }
    if width == 1 {
        // Each slice is a single element of the result. The part of each task has whole lines along the indexed dimension.
        let outer = (TASK / size).max(1);
        let schedule = Schedule::parallel_from(MIN_PARALLEL, count);
        return partition::chunks(out, outer * size, schedule, |task, out| {
            for &(x, index) in terms {
                for (row, out) in out.chunks_exact_mut(size).enumerate() {
                    let start = (task * outer + row) * index.len();
                    T::accumulate_at(Reduction::Sum, out, index, &x[start..start + index.len()]);
                }
            }
        });
    }
    let height = out.len() / width;
    let threads = if count < MIN_PARALLEL { 1 } else { num_threads() };
    // The columns of a row are divided evenly among the threads, independently of the indices. If a row is too short for this, the rows are
    // divided instead.
    let (rows, columns) = match width.div_ceil(threads).next_multiple_of(COLUMNS) {
        columns if threads.saturating_mul(COLUMNS) <= width => (height, columns),
        _ => (height.div_ceil(threads), width),
    };
    let parts = height.div_ceil(rows) * width.div_ceil(columns);
    partition::run(parts, Schedule::Parallel, Grid::equal(out, width, (rows, columns)), |_, mut tile| {
        let (top, left) = tile.origin();
        let (bottom, right) = (top + tile.height(), (left + columns).min(width));
        for &(x, index) in terms {
            for outer in top / size..bottom.div_ceil(size) {
                for (k, &number) in index.iter().enumerate() {
                    let row = outer * size + number as usize;
                    if (top..bottom).contains(&row) {
                        let start = (outer * index.len() + k) * width;
                        T::accumulate(Reduction::Sum, tile.row(row - top), &x[start + left..start + right]);
                    }
                }
            }
        }
    });
}
