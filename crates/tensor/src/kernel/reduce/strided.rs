//! Reductions over some dimensions of a tensor of any layout.
//!
//! Loops follow the order of the dimensions in memory. If the innermost dimension is reduced, each of its lines is reduced first, and then
//! the results of the lines. If the innermost dimension is kept, adjacent results are accumulated together, row by row. Elements that are
//! not contiguous, and the elements of short rows and of most short lines, are first copied into contiguous rows (see
//! [`LoopReduction::reduce_gathered`]).
//!
//! Elements are added in a balanced tree. Its leaves are the sums that the [accumulator](crate::kernel::reduce::accumulator) computes. The
//! tree depends only on the layout and the element type, so any number of threads gives the same bits.

use std::ops::Range;

use smallvec::SmallVec;

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill;
use crate::kernel::reduce::accumulator::{
    MAX_RUN, NARROW_WIDTH, accumulate_rows, combine_parts, rows_per_wide_row, slice_total,
};
use crate::kernel::reduce::lines::SHORT_LEN;
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Partition};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::shape::layout::sort_few;
use crate::shape::shape::INLINE_RANK;
use crate::thresholds::blocks::{MAX_TASKS, TASK};
use crate::{Binary, Element, Layout, Reduction};

/// The approximate length, in elements, of the pieces into which a long line is cut. Lines of up to twice this length are not cut.
const PIECE_LEN: usize = 1 << 15;

/// The approximate maximum size of a strip, in bytes. A strip is a group of adjacent results that are accumulated together.
const MAX_STRIP_BYTES: usize = 1 << 14;

/// The size of a block of elements that are copied into rows together: the number of rows, and the number of elements in each row. The
/// elements of a row belong to different results.
const GATHERED_BLOCK: (usize, usize) = (16, 256);

/// The size and the stride of each dimension.
type Dimensions = SmallVec<[(usize, usize); INLINE_RANK]>;

/// The smallest number of bytes that several threads reduce together. One thread reads fewer bytes from its second-level cache as fast as
/// several threads.
const MIN_PARALLEL_BYTES: usize = 1 << 18;

/// A list of loops over dimensions, in memory order. Loops with stride 0 come first, and then loops with descending strides. No stride is
/// negative.
type Loops = IterationSpace<1>;

/// Returns loops from pairs of a size and a stride, the outermost first. The function is inlined, so that the result is built in the
/// caller's memory.
#[inline(always)]
fn loops(loops: &[(usize, usize)]) -> Loops {
    Loops::of_loops([0], loops.iter().map(|&(size, stride)| (size, [stride as isize])))
}

/// Sorts loops by descending stride. Loops with stride 0 become the outermost ones.
fn sort<L>(loops: &mut [L], stride: impl Fn(&L) -> usize) {
    sort_few(loops, |own| stride(own).wrapping_sub(1));
}

/// Returns the size and the stride of the innermost loop. If the loop has a single element, returns `single` as the stride.
fn innermost(loops: &Loops, single: usize) -> (usize, usize) {
    match loops.loop_of(loops.depth() - 1) {
        (1, _) => (1, single),
        (size, [stride]) => (size, stride as usize),
    }
}

/// Computes a reduction of `x` over the dimensions `axes`. Result `out[i]` combines the elements `x[i, j]` for all `j`. Here `j` runs over
/// the dimensions `axes`, and `i` over the other dimensions.
///
/// If `x` is empty, `out` is not changed, because the caller has already filled it.
pub(crate) fn reduce<T: Element>(
    op: Reduction,
    x: Source<T>,
    axes: &[usize],
    out: &mut [T],
) -> Result<(), AllocationError> {
    let layout = x.layout;
    if out.is_empty() || layout.numel() == 0 {
        return Ok(());
    }
    if out.len() == 1 && layout.is_contiguous() && layout.numel() <= PIECE_LEN {
        out[0] = slice_total(op, &x.data[layout.offset()..][..layout.numel()]);
        return Ok(());
    }
    // Negative strides are replaced by positive ones, so that every loop starts at its lowest position.
    let mut base = layout.offset() as isize;
    let (mut kept, mut reduced) = (Dimensions::new(), Dimensions::new());
    // True if the results are computed in the row-major order of `out`. Then they are written directly to `out`.
    let mut in_order = true;
    let mut outer = usize::MAX;
    for (axis, (&size, &stride)) in layout.shape().iter().zip(layout.strides()).enumerate() {
        if size == 1 {
            continue;
        }
        base += stride.min(0) * (size as isize - 1);
        let own = (size, stride.unsigned_abs());
        if axes.contains(&axis) {
            reduced.push(own);
        } else {
            in_order &= stride > 0 && own.1 <= outer;
            outer = own.1;
            kept.push(own);
        }
    }
    sort(&mut reduced, |own| own.1);
    let data = &x.data[base as usize..];
    let reduced = loops(&reduced);
    match in_order {
        true => LoopReduction { op, data, kept: &loops(&kept), reduced: &reduced }.run(out),
        false => reduce_and_permute(op, data, &layout.keep_axes(|axis| !axes.contains(&axis)), &reduced, out),
    }
}

/// Reduces like [`LoopReduction::run`], for results whose order in memory differs from the order of the dimensions of `kept`. Computes the
/// results in memory order, and then rearranges them.
fn reduce_and_permute<T: Element>(
    op: Reduction,
    data: &[T],
    kept: &Layout,
    reduced: &Loops,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let strides = kept.strides();
    let mut order = kept.axes_by_stride();
    // A dimension with stride 0 repeats results. Each of these results is computed once.
    let size = |axis: usize| if strides[axis] == 0 { 1 } else { kept.shape()[axis] };
    let mut results = Layout::contiguous(order.iter().map(|&axis| size(axis)).collect());
    let mut totals = Scratch::new(results.numel())?;
    let in_memory: Dimensions = order.iter().map(|&axis| (size(axis), strides[axis].unsigned_abs())).collect();
    LoopReduction { op, data, kept: &loops(&in_memory), reduced }.run(&mut totals)?;
    // The results are permuted to the order of the dimensions, flipped for negative strides, and repeated for strides of 0.
    results = results.unpermute(&order);
    order.retain(|&mut axis| strides[axis] < 0);
    results = results.flip(&order);
    let Some(layout) = results.expand(kept.shape()) else { unreachable!("what repeats has size 1") };
    fill::spread(&IterationSpace::new(layout.shape(), [&layout]), &totals, 0, out);
    Ok(())
}

/// A reduction of the elements of `data` that `kept` and `reduced` visit. Each iteration of `kept` gives a result, which combines the
/// elements of all iterations of `reduced`. The elements of one iteration of `reduced` are a *row*, with one element for each result.
#[derive(Clone, Copy)]
struct LoopReduction<'a, T> {
    op: Reduction,
    data: &'a [T],
    kept: &'a Loops,
    reduced: &'a Loops,
}

impl<T: Element> LoopReduction<'_, T> {
    fn run(self, out: &mut [T]) -> Result<(), AllocationError> {
        let (width, step) = innermost(self.kept, usize::MAX);
        let (len, stride) = innermost(self.reduced, 0);
        let few = self.reduced.numel() <= NARROW_WIDTH;
        if stride < step {
            if out.len() == 1 && self.reduced.depth() == 1 && stride == 1 && len <= PIECE_LEN {
                out[0] = slice_total(self.op, &self.data[..len]);
            } else if len < SHORT_LEN && (few || self.reduced.depth() == 1) {
                self.reduce_gathered(out);
            } else {
                return self.reduce_lines_first(out);
            }
        } else if step > 1 || width < SHORT_LEN && few && stride != width {
            self.reduce_gathered(out);
        } else {
            return self.reduce_columns(out);
        }
        Ok(())
    }

    /// Reduces each line of the innermost dimension first, and then reduces the results of the lines over the other reduced dimensions.
    fn reduce_lines_first(self, out: &mut [T]) -> Result<(), AllocationError> {
        let LoopReduction { op, data, kept, reduced } = self;
        let (len, stride) = innermost(reduced, 0);
        let piece =
            if len > 2 * PIECE_LEN { len.div_ceil(len.div_ceil(PIECE_LEN)).next_multiple_of(MAX_RUN) } else { len };
        let pieces = len.div_ceil(piece);
        if reduced.depth() == 1 && pieces == 1 {
            totals_of_lines(op, data, kept, (len, stride), piece, out);
            return Ok(());
        }
        // The dimensions other than the innermost reduced one, in memory order. The flag is true for reduced dimensions, over which the
        // totals of the lines are reduced again.
        let mut all = SmallVec::<[_; INLINE_RANK]>::new();
        for (loops, count, again) in [(kept, kept.depth(), false), (reduced, reduced.depth() - 1, true)] {
            for (size, [stride]) in loops.loops().take(count).filter(|&(size, _)| size > 1) {
                all.push(((size, stride as usize), again));
            }
        }
        sort(&mut all, |own| own.0.1);
        let lines = Loops::of_loops([0], all.iter().map(|&((size, stride), _)| (size, [stride as isize])));
        let mut totals = Scratch::new(lines.numel() * pieces)?;
        totals_of_lines(op, data, &lines, (len, stride), piece, &mut totals);
        let mut step = totals.len();
        let (mut kept, mut reduced) = (Dimensions::new(), Dimensions::new());
        for &((size, _), again) in &all {
            step /= size;
            if again { &mut reduced } else { &mut kept }.push((size, step));
        }
        reduced.push((pieces, 1));
        LoopReduction { op, data: &totals, kept: &loops(&kept), reduced: &loops(&reduced) }.run(out)
    }

    /// Computes reductions whose elements or results are not adjacent in memory, or whose lines or rows are short. Reads short contiguous
    /// lines without a copy. Otherwise accumulates rows for a block of results, and first copies the elements of the rows unless they are
    /// contiguous.
    fn reduce_gathered(self, out: &mut [T]) {
        let LoopReduction { op, data, kept, reduced } = self;
        let count = reduced.numel();
        let each = (TASK / count).max(out.len().div_ceil(MAX_TASKS)).next_multiple_of(GATHERED_BLOCK.1);
        // Reading single elements costs several times as much as reading slices. The factor 8 accounts for this.
        let work = out.len() * count * size_of::<T>() * 8;
        let in_lines = reduced.depth() == 1 && matches!(innermost(reduced, 0), (..SHORT_LEN, 1));
        partition::chunks(out, each, schedule(work), |task, out| {
            let start = task * each;
            if in_lines {
                return for_each_line_range(kept, start, out, |position, apart, out| {
                    T::reduce_short(op, &data[position..], count, apart, out);
                });
            }
            for (block, out) in out.chunks_mut(GATHERED_BLOCK.1).enumerate() {
                self.compute_totals(start + block * GATHERED_BLOCK.1, 0..count, 64, out);
            }
        });
    }

    /// Computes adjacent results together, strip by strip (a strip is a group of adjacent results). If there are few strips and many rows,
    /// the rows are also divided into parts, so that several threads have work. The totals of the parts are combined at the end.
    fn reduce_columns(self, out: &mut [T]) -> Result<(), AllocationError> {
        let blocks = ColumnBlocks::new(self.kept, self.reduced, out.len(), size_of::<T>());
        if blocks.part_count > 1 {
            let mut totals = Scratch::new(blocks.part_count * out.len())?;
            blocks.run(self, &mut totals);
            combine_parts(self.op, &mut totals, out.len());
            out.copy_from_slice(&totals[..out.len()]);
        } else if blocks.strip_count > 1 {
            blocks.run(self, out);
        } else {
            self.compute_totals(0, 0..self.reduced.numel(), blocks.rows_per_leaf, out);
        }
        Ok(())
    }

    /// Accumulates the elements of the rows `rows` into `totals`, which begins with the total of result `first`. Callers limit the number
    /// of these rows, because groups of eight rows are added in sequence and not in a tree.
    fn accumulate(self, first: usize, rows: Range<usize>, totals: &mut [T]) {
        let LoopReduction { op, data, kept, reduced } = self;
        let width = totals.len();
        if let Segment::Slice(position) = kept.segment(0, first, width) {
            return reduced.walk(0, rows.start, rows.len(), |start, stride, count| {
                accumulate_rows(op, totals, &data[position + start..], stride as usize, count);
            });
        }
        let mut gathered = vec![T::ZERO; GATHERED_BLOCK.0.min(rows.len()) * width];
        for start in rows.clone().step_by(GATHERED_BLOCK.0) {
            let count = GATHERED_BLOCK.0.min(rows.end - start);
            for (out, row) in gathered.chunks_exact_mut(width).zip(start..start + count) {
                fill::spread(kept, &data[reduced.position(0, row)..], first, out);
            }
            T::accumulate_rows(op, totals, &gathered, width, count);
        }
    }

    /// Sets `totals` to the totals of the rows `rows`, combined in a balanced tree. `totals` begins with the total of result `first`. Each
    /// leaf of the tree accumulates at most `leaf` rows.
    fn compute_totals(self, first: usize, rows: Range<usize>, leaf: usize, totals: &mut [T]) {
        if rows.len() <= leaf {
            totals.fill(T::start(self.op));
            return self.accumulate(first, rows, totals);
        }
        let middle = rows.start + (rows.len() / 2).next_multiple_of(leaf);
        self.compute_totals(first, rows.start..middle, leaf, totals);
        let mut right = vec![T::ZERO; totals.len()];
        self.compute_totals(first, middle..rows.end, leaf, &mut right);
        T::accumulate(self.op, totals, &right);
    }
}

/// Returns the schedule for a reduction that reads `work` bytes: a single thread if `work` is less than [`MIN_PARALLEL_BYTES`].
fn schedule(work: usize) -> Schedule {
    if work < MIN_PARALLEL_BYTES { Schedule::Serial } else { Schedule::Sweep { bytes: work } }
}

/// Computes the totals of the pieces of all lines. A line has `len` elements that are `stride` apart, in pieces of `piece` elements.
/// `lines` gives the position of each line's first element.
fn totals_of_lines<T: Element>(
    op: Reduction,
    data: &[T],
    lines: &Loops,
    (len, stride): (usize, usize),
    piece: usize,
    out: &mut [T],
) {
    if len < SHORT_LEN {
        return LoopReduction { op, data, kept: lines, reduced: &loops(&[(len, stride)]) }.reduce_gathered(out);
    }
    let pieces = len.div_ceil(piece);
    let each = (TASK / piece).max(out.len().div_ceil(MAX_TASKS)).max(1);
    let work = out.len() * piece * size_of::<T>();
    partition::chunks(out, each, schedule(work), |task, out| {
        let first = task * each;
        if stride == 1 && len <= MAX_RUN {
            return for_each_line_range(lines, first, out, |position, apart, out| {
                T::reduce_each(op, &data[position..], len, apart, out);
            });
        }
        let mut line = Vec::new();
        for (number, out) in (first..).zip(out) {
            let from = number % pieces * piece;
            let count = piece.min(len - from);
            let x = &data[lines.position(0, number / pieces) + from * stride..];
            *out = match stride {
                1 => slice_total(op, &x[..count]),
                _ => {
                    line.resize(count, T::ZERO);
                    fill::copy_strided(x, 0, stride as isize, &mut line);
                    slice_total(op, &line)
                }
            };
        }
    });
}

/// Calls `visit` with ranges of `out` whose lines are evenly spaced. Element `i` of `out` is the result of line `first + i`. The other
/// arguments of `visit` are the position of the range's first line, and the distance between its lines.
fn for_each_line_range<T>(lines: &Loops, first: usize, out: &mut [T], mut visit: impl FnMut(usize, usize, &mut [T])) {
    let mut rest = out;
    lines.walk(0, first, rest.len(), |position, apart, count| {
        let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
        visit(position, apart as usize, now);
        rest = later;
    });
}

/// The division of the work of [`LoopReduction::reduce_columns`] into blocks. A block computes a strip of adjacent results from a part of
/// the rows.
struct ColumnBlocks {
    /// The number of results in a group. The results of a group are adjacent in memory.
    group_width: usize,
    /// The number of results in a strip. The last strip of each group of adjacent results may have fewer.
    strip_width: usize,
    /// The number of strips in a group of `group_width` adjacent results. A strip is a range of a group's results that are computed at
    /// once.
    strips_per_group: usize,
    /// The number of strips in total.
    strip_count: usize,
    /// The number of rows that a block accumulates. The last part of the rows may have fewer.
    rows_per_part: usize,
    part_count: usize,
    /// The rows are added in a balanced tree. This is the maximum number of rows that a leaf of the tree adds.
    rows_per_leaf: usize,
    blocks_per_task: usize,
}

impl ColumnBlocks {
    /// Divides a reduction with `results` results into blocks. An element has `size` bytes.
    fn new(kept: &Loops, reduced: &Loops, results: usize, size: usize) -> Self {
        let (width, count) = (kept.run_length(), reduced.numel());
        let (inner, stride) = innermost(reduced, 0);
        let wide_row_count = if width < NARROW_WIDTH && stride == width { rows_per_wide_row(width) } else { 1 };
        let leaf = match inner {
            _ if wide_row_count > 1 => (64 * inner).min(256 * wide_row_count),
            64.. => 256,
            _ => 64,
        };
        let pieces = (width * size).div_ceil(MAX_STRIP_BYTES);
        let strip = if pieces == 1 { width } else { width.div_ceil(pieces).next_multiple_of(16) };
        let strips_per_group = width.div_ceil(strip);
        let strips = results / width * strips_per_group;
        let total = results.saturating_mul(count);
        let little = total.saturating_mul(size) < MIN_PARALLEL_BYTES;
        let parts = if little { 1 } else { (32 / strips).min(count / 64).min(total / TASK).max(1) };
        let unit = if wide_row_count > 1 { leaf } else { 64 };
        let part = if parts == 1 { count } else { count.div_ceil(parts).next_multiple_of(unit) };
        let parts = if parts == 1 { 1 } else { count.div_ceil(part) };
        let each = match strips * parts {
            1 => 1,
            all => (TASK * all).div_ceil(total).max(all.div_ceil(MAX_TASKS)),
        };
        ColumnBlocks {
            group_width: width,
            strip_width: strip,
            strips_per_group,
            strip_count: strips,
            rows_per_part: part,
            part_count: parts,
            rows_per_leaf: leaf,
            blocks_per_task: each,
        }
    }

    /// Returns the position of the first result of the strip with index `strip`. Strips are numbered in the order of their results.
    fn strip_start(&self, strip: usize) -> usize {
        strip / self.strips_per_group * self.group_width + strip % self.strips_per_group * self.strip_width
    }

    /// Computes the totals of all parts of the rows, in tasks of several blocks. The totals of each part of the rows are stored after the
    /// totals of the part before it.
    fn run<T: Element>(&self, reduction: LoopReduction<T>, out: &mut [T]) {
        let (count, blocks) = (reduction.reduced.numel(), self.strip_count * self.part_count);
        let tasks = blocks.div_ceil(self.blocks_per_task);
        let mut ends = [0; MAX_TASKS];
        (1..)
            .zip(&mut ends[..tasks])
            .for_each(|(task, end)| *end = self.strip_start(blocks.min(task * self.blocks_per_task)));
        let work = out.len() / self.part_count * count * size_of::<T>();
        partition::run(tasks, schedule(work), Partition::ends(out, &ends[..tasks]), |task, out| {
            let mut rest = out;
            for block in task * self.blocks_per_task..blocks.min((task + 1) * self.blocks_per_task) {
                let (from, strip) = (block / self.strip_count * self.rows_per_part, block % self.strip_count);
                let (start, left) = (self.strip_start(strip), strip % self.strips_per_group * self.strip_width);
                let (out, later) = rest.split_at_mut(self.strip_width.min(self.group_width - left));
                rest = later;
                let rows = from..count.min(from + self.rows_per_part);
                reduction.compute_totals(start, rows, self.rows_per_leaf, out);
            }
        });
    }
}

/// Replaces each total x by the reduction of `times` elements that are all equal to x.
pub(crate) fn repeat_totals<T: Element>(op: Reduction, totals: &mut [T], times: usize) {
    let Some(function) = op.repeated() else { return };
    let combined = |function: Binary, x: T, y: T| {
        let mut z = x;
        T::binary(function, Operand::Splat(x), Operand::Splat(y), std::slice::from_mut(&mut z));
        z
    };
    for total in totals {
        let x = *total;
        *total = match op {
            // `times` may be rounded when it is converted to type `T`. Then an odd `times` could become even, which would change the sign
            // of the power. So this code squares the power of `times / 2`, and multiplies it by x if `times` is odd.
            Reduction::Prod => {
                let half = combined(function, x, T::from_i64((times / 2) as i64));
                let square = combined(Binary::Mul, half, half);
                if times % 2 == 1 { combined(Binary::Mul, square, x) } else { square }
            }
            _ => combined(function, x, T::from_i64(times as i64)),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{num_threads, set_num_threads};

    /// Shapes and reduced dimensions. The shapes are so large that lines are cut into pieces, rows are divided into parts, and several
    /// threads run.
    const LARGE: [(&[usize], &[isize]); 14] = [
        (&[1, 300_000], &[1]),
        (&[5, 70_001], &[1]),
        (&[70_001, 3], &[0]),
        (&[70_001, 3], &[1]),
        (&[300, 700], &[0]),
        (&[3, 100_003], &[0]),
        (&[64, 8, 300], &[0, 2]),
        (&[64, 8, 300], &[1]),
        (&[7, 900, 20], &[0, 1]),
        (&[9000, 20], &[1]),
        (&[2, 9000, 10], &[1]),
        (&[9000, 3, 7], &[0, 2]),
        (&[20, 3, 900, 2], &[0, 2]),
        (&[5000, 4, 5], &[1]),
    ];

    /// Returns tensors that have the values of `x` and different layouts.
    fn layouts(x: &Tensor<f32>) -> Vec<Tensor<f32>> {
        let back: Vec<isize> = (0..x.rank() as isize).rev().collect();
        let around: Vec<isize> = (0..x.rank() as isize).chain([0]).skip(1).collect();
        let mut home = vec![x.rank() as isize - 1];
        home.extend(0..x.rank() as isize - 1);
        let wide = crate::ops::stack(&[x.clone(), x.clone()], -1);
        vec![
            x.clone(),
            x.permute(back.clone()).contiguous().permute(back.clone()),
            x.permute(around).contiguous().permute(home),
            x.flip(back.clone()).contiguous().flip(back),
            wide.select(-1, 1),
        ]
    }

    #[test]
    fn large_reductions_equal_loops() {
        for (sizes, dims) in LARGE {
            let x = Tensor::<f32>::from_fn(sizes, |index| {
                let mix = index.iter().fold(17usize, |mix, &i| (mix * 31 + i * 7) % 8191);
                (mix % 17) as f32 - 8.0
            });
            let kept = x.sum_keepdim(dims).shape().to_vec();
            let mut expected = vec![(0.0, f32::NEG_INFINITY, f32::INFINITY); kept.iter().product()];
            let mut index = vec![0; sizes.len()];
            for value in x.iter() {
                let place =
                    index.iter().zip(&kept).fold(0, |place, (&i, &size)| place * size + if size == 1 { 0 } else { i });
                let (sum, largest, smallest) = &mut expected[place];
                (*sum, *largest, *smallest) = (*sum + value, value.max(*largest), value.min(*smallest));
                for axis in (0..sizes.len()).rev() {
                    index[axis] += 1;
                    if index[axis] < sizes[axis] {
                        break;
                    }
                    index[axis] = 0;
                }
            }
            for (number, x) in layouts(&x).iter().enumerate() {
                let what = format!("{sizes:?} {dims:?} {number}");
                let column = |f: fn(&(f32, f32, f32)) -> f32| expected.iter().map(f).collect::<Vec<_>>();
                assert_eq!(x.sum(dims).to_vec(), column(|e| e.0), "{what}");
                assert_eq!(x.amax(dims).to_vec(), column(|e| e.1), "{what}");
                assert_eq!(x.amin(dims).to_vec(), column(|e| e.2), "{what}");
                assert_eq!(x.cast::<i64>().sum(dims).cast::<f32>().to_vec(), column(|e| e.0), "{what}");
            }
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let before = num_threads();
        for (sizes, dims) in LARGE {
            let x = Tensor::<f32>::from_fn(sizes, |index| {
                let mix = index.iter().fold(17usize, |mix, &i| (mix * 31 + i * 7) % 8191);
                (mix as f32 * 0.37).sin()
            });
            let sums = [1, 2, 5].map(|threads| {
                set_num_threads(threads);
                layouts(&x).iter().map(|x| x.sum(dims).to_vec()).collect::<Vec<_>>()
            });
            assert!(sums[0] == sums[1] && sums[0] == sums[2], "{sizes:?} {dims:?}");
        }
        set_num_threads(before);
    }

    /// Checks that the maximum and minimum of a row are NaN if the row has a NaN at any position. The results of other rows must stay the
    /// same.
    #[test]
    fn a_nan_wins_at_every_place() {
        for size in [1usize, 7, 15, 16, 63, 64, 65, 100, 128, 200, 5000] {
            let places = [0, 1, 8, 62, 63, 64, 70, size / 2, size - 1];
            for place in places.into_iter().filter(|&place| place < size) {
                let x = Tensor::from_fn([3, size], |i| if i == [1, place] { f64::NAN } else { -1.0 });
                for x in [x.cast::<f64>(), x.cast::<f32>().cast::<f64>(), x.t().contiguous().t()] {
                    for extreme in [x.amax(1), x.amin(1)] {
                        let got = extreme.to_vec();
                        assert!(got[0] == -1.0 && got[1].is_nan() && got[2] == -1.0, "{size} {place}: {got:?}");
                    }
                }
            }
        }
    }
}
