//! Reductions over some dimensions of a tensor of any layout.
//!
//! Dimensions are taken in the order in which they lie in memory. Where the innermost one is reduced, its lines are, one after
//! the other, and then their totals; where it is kept, results that lie next to one another are accumulated together, row
//! by row. What is neither, or too short for either, is gathered first.
//!
//! A sum is pairwise: no more than 64 elements are added one after the other, to totals that are added in a balanced tree, so
//! that the rounding error grows with log n instead of n (N. J. Higham, "The accuracy of floating point summation", 1993).
//! The tree depends on the layout alone: any number of threads gives the same bits.
use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::kernel::fill;
use crate::kernel::reduce::short::SHORT;
use crate::kernel::strided::{Source, TASK, TASKS};
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Partition};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::shape::iteration_space::IterationSpace;
use crate::{Element, Layout, Reduction, Strides};

/// Elements of a slice that are added without a tree, in 64 chains.
const LONG_RUN: usize = 4096;

/// Longer lines are cut into pieces of about so many elements.
const PIECE: usize = 1 << 15;

/// Bytes of results that are accumulated together.
const STRIP: usize = 1 << 14;

/// Rows narrower than this are accumulated several side by side.
const NARROW: usize = 64;

/// Elements of narrow rows side by side.
const WIDE: usize = 256;

/// Rows that are gathered together, and results in each.
const GATHERED: (usize, usize) = (16, 256);

/// Work below this many bytes is not worth a second thread: one reads them from its second-level cache as fast.
const PARALLEL: usize = 1 << 18;

/// Dimensions as (size, stride), the longest stride first.
type Loops = SmallVec<[(usize, usize); 6]>;

fn numel(loops: &Loops) -> usize {
    loops.iter().map(|&(size, _)| size).product()
}

/// Where element number `index` of the row-major order lies.
fn position(loops: &Loops, index: usize) -> usize {
    let (mut rest, mut position) = (index, 0);
    for &(size, stride) in loops.iter().skip(1).rev() {
        position += rest % size * stride;
        rest /= size;
    }
    position + rest * loops.first().map_or(0, |&(_, stride)| stride)
}

/// Calls `visit` with (position, stride, number of the first, length) of stretches that cover elements `start .. end`.
fn stretches(loops: &Loops, start: usize, end: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
    let (row, stride) = loops.last().copied().unwrap_or((1, 0));
    let mut at = start;
    while at < end {
        let len = (row - at % row).min(end - at);
        visit(position(loops, at), stride, at, len);
        at += len;
    }
}

/// Loops of which one goes on where the next one ends are one.
fn merged(loops: impl Iterator<Item = (usize, usize)>) -> Loops {
    let mut merged = Loops::new();
    for own in loops.filter(|&(size, _)| size > 1) {
        merge(&mut merged, own);
    }
    merged
}

/// Another loop inside `loops`.
fn merge(loops: &mut Loops, (size, stride): (usize, usize)) {
    match loops.last_mut() {
        Some(outer) if outer.1 == size * stride => *outer = (outer.0 * size, stride),
        _ => loops.push((size, stride)),
    }
}

/// `out[i] = op over j of x[i, j]`: `j` are the dimensions `axes` of `x`, `i` the others.
///
/// Where nothing is reduced (there is no `j`), `out` keeps what the caller filled it with.
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
    // Every loop goes forward, from the lowest element.
    let mut base = layout.offset() as isize;
    let (mut kept, mut lines) = (Loops::new(), Loops::new());
    // Whether results that follow one another lie so: then where they are found is where they belong.
    let mut in_order = true;
    let mut outer = usize::MAX;
    for (axis, (&size, &stride)) in layout.shape().iter().zip(layout.strides()).enumerate() {
        if size == 1 {
            continue;
        }
        base += stride.min(0) * (size as isize - 1);
        let own = (size, stride.unsigned_abs());
        if axes.contains(&axis) {
            lines.push(own);
        } else {
            in_order &= stride > 0 && own.1 <= outer;
            outer = own.1;
            merge(&mut kept, own);
        }
    }
    if lines.len() > 1 {
        // What repeats may be the outermost loop.
        lines.sort_by_key(|&(_, stride)| Reverse(stride.wrapping_sub(1)));
        lines = merged(lines.into_iter());
    }
    let data = &x.data[base as usize..];
    match in_order {
        true => run(op, data, kept, lines, out),
        false => run_in_order(op, data, &layout.of_axes(|axis| !axes.contains(&axis)), lines, out),
    }
}

/// [`run`], where the results lie in another order than that of the dimensions `kept`: in that of memory, first.
fn run_in_order<T: Element>(
    op: Reduction,
    data: &[T],
    kept: &Layout,
    lines: Loops,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let sizes = kept.shape().iter().zip(kept.strides());
    let kept_loops: Loops = sizes.map(|(&size, &stride)| (size, stride.unsigned_abs())).collect();
    let mut order: SmallVec<[usize; 6]> = (0..kept_loops.len()).collect();
    order.retain(|&mut axis| kept_loops[axis].0 > 1 && kept_loops[axis].1 > 0);
    order.sort_by_key(|&axis| Reverse(kept_loops[axis].1));
    let results = || order.iter().map(|&axis| kept_loops[axis]);
    let count = results().map(|(size, _)| size).product();
    let mut totals = Scratch::new(count)?;
    run(op, data, merged(results()), lines, &mut totals)?;
    // Brought into the order of the dimensions, turned round and repeated as they are.
    let (mut strides, mut offset, mut next) = (Strides::from_elem(0, kept_loops.len()), 0, 1);
    for &axis in order.iter().rev() {
        let backward = kept.strides()[axis] < 0;
        strides[axis] = if backward { -(next as isize) } else { next as isize };
        offset += if backward { next * (kept_loops[axis].0 - 1) } else { 0 };
        next *= kept_loops[axis].0;
    }
    let Some(layout) = Layout::strided(kept.shape().clone(), &strides, offset, count) else {
        unreachable!("the strides were made from the sizes")
    };
    fill::spread(&IterationSpace::new(layout.shape(), [&layout]), &totals, 0, out);
    Ok(())
}

fn run<T: Element>(
    op: Reduction,
    data: &[T],
    kept: Loops,
    mut reduced: Loops,
    out: &mut [T],
) -> Result<(), AllocationError> {
    if reduced.is_empty() {
        reduced.push((1, 0));
    }
    let (width, step) = kept.last().copied().unwrap_or((1, usize::MAX));
    let (len, stride) = reduced[reduced.len() - 1];
    let few = numel(&reduced) <= NARROW;
    if stride < step {
        if kept.is_empty() && reduced.len() == 1 && stride == 1 && len <= PIECE {
            out[0] = slice_total(op, &data[..len]);
        } else if len < SHORT && (few || reduced.len() == 1) {
            gathered(op, data, &kept, reduced, out);
        } else {
            return lines_first(op, data, &kept, reduced, out);
        }
    } else if step > 1 || width < SHORT && few && stride != width {
        gathered(op, data, &kept, reduced, out);
    } else {
        return columns(op, data, kept, reduced, out);
    }
    Ok(())
}

/// One thread where `work` bytes are not worth more.
fn schedule(work: usize) -> Schedule {
    Schedule::sweep_from(PARALLEL, work, work)
}

/// Reduces the innermost dimension, of which the lines lie in `data` as they come, and then their totals.
fn lines_first<T: Element>(
    op: Reduction,
    data: &[T],
    kept: &Loops,
    mut reduced: Loops,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let Some((len, stride)) = reduced.pop() else { return Ok(()) };
    let piece = if len > 2 * PIECE { len.div_ceil(len.div_ceil(PIECE)).next_multiple_of(LONG_RUN) } else { len };
    let pieces = len.div_ceil(piece);
    if reduced.is_empty() && pieces == 1 {
        totals_of_lines(op, data, kept, (len, stride), piece, out);
        return Ok(());
    }
    // All other dimensions in the order of memory; of which of them the totals are reduced again.
    let mut all: SmallVec<[(usize, usize, bool); 6]> = SmallVec::new();
    all.extend(kept.iter().map(|&(size, stride)| (size, stride, false)));
    all.extend(reduced.iter().map(|&(size, stride)| (size, stride, true)));
    all.sort_by_key(|&(_, stride, _)| Reverse(stride.wrapping_sub(1)));
    let lines = merged(all.iter().map(|&(size, stride, _)| (size, stride)));
    let mut totals = Scratch::new(numel(&lines) * pieces)?;
    totals_of_lines(op, data, &lines, (len, stride), piece, &mut totals);
    let mut step = totals.len();
    let mut again = [Loops::new(), Loops::new()];
    for (size, _, is_reduced) in all {
        step /= size;
        again[usize::from(is_reduced)].push((size, step));
    }
    let [kept, mut reduced] = again;
    reduced.push((pieces, 1));
    run(op, &totals, merged(kept.into_iter()), merged(reduced.into_iter()), out)
}

/// The totals of the pieces of all lines, `len` elements each, `stride` apart; lines begin where `lines` says.
fn totals_of_lines<T: Element>(
    op: Reduction,
    data: &[T],
    lines: &Loops,
    (len, stride): (usize, usize),
    piece: usize,
    out: &mut [T],
) {
    if len < SHORT {
        return gathered(op, data, lines, Loops::from_slice(&[(len, stride)]), out);
    }
    let pieces = len.div_ceil(piece);
    let each = (TASK / piece).max(out.len().div_ceil(TASKS)).max(1);
    let work = out.len() * piece * size_of::<T>();
    partition::chunks(out, each, schedule(work), |task, out| {
        let first = task * each;
        if stride == 1 && len <= LONG_RUN {
            stretches(lines, first, first + out.len(), |position, apart, number, count| {
                T::reduce_each(op, &data[position..], len, apart, &mut out[number - first..][..count]);
            });
            return;
        }
        let mut line = Vec::new();
        for (number, out) in (first..).zip(out) {
            let from = number % pieces * piece;
            let count = piece.min(len - from);
            let x = &data[position(lines, number / pieces) + from * stride..];
            *out = match stride {
                1 => slice_total(op, &x[..count]),
                _ => {
                    line.resize(count, T::ZERO);
                    pick(x, stride, &mut line);
                    slice_total(op, &line)
                }
            };
        }
    });
}

/// `out[i] = x[i * stride]`; short strides by vectors.
fn pick<T: Element>(x: &[T], stride: usize, out: &mut [T]) {
    match stride {
        0 => out.fill(x[0]),
        1 => out.copy_from_slice(&x[..out.len()]),
        2 => pick_every_second(x, out),
        3 => pick_every_third(x, out),
        4 => pick_every_fourth(x, out),
        _ => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, &x)| *out = x),
    }
}

dispatched! {
    fn pick_every_second<T: Element>(x: &[T], out: &mut [T]) {
        pick_every::<T, 2>(x, out);
    }

    fn pick_every_third<T: Element>(x: &[T], out: &mut [T]) {
        pick_every::<T, 3>(x, out);
    }

    fn pick_every_fourth<T: Element>(x: &[T], out: &mut [T]) {
        pick_every::<T, 4>(x, out);
    }
}

#[inline(always)]
fn pick_every<T: Element, const S: usize>(x: &[T], out: &mut [T]) {
    let (chunks, last) = x.as_chunks::<S>();
    for (out, chunk) in out.iter_mut().zip(chunks) {
        *out = chunk[0];
    }
    // The last element may have no whole chunk.
    if let (Some(out), Some(&x)) = (out.get_mut(chunks.len()), last.first()) {
        *out = x;
    }
}

/// The reduction of a slice, in a balanced tree of runs of at most [`LONG_RUN`] elements.
pub(crate) fn slice_total<T: Element>(op: Reduction, x: &[T]) -> T {
    if x.len() > LONG_RUN {
        let (left, right) = x.split_at((x.len() / 2).next_multiple_of(LONG_RUN));
        let mut total = [slice_total(op, left)];
        T::accumulate(op, &mut total, &[slice_total(op, right)]);
        return total[0];
    }
    T::reduce(op, x).expect("the operation was checked against the element type")
}

/// Rows of what belongs to results that lie next to one another.
trait Rows<T> {
    /// `total = row`.
    fn copy(&self, row: usize, total: &mut [T]);

    /// `total = op(total, rows start .. end)`, a few dozen of them.
    fn add(&self, op: Reduction, start: usize, end: usize, total: &mut [T]);
}

/// Rows that are slices of `data`, which begin where `loops` says.
struct Slices<'a, T> {
    data: &'a [T],
    loops: &'a Loops,
}

impl<T: Element> Rows<T> for Slices<'_, T> {
    fn copy(&self, row: usize, total: &mut [T]) {
        total.copy_from_slice(&self.data[position(self.loops, row)..][..total.len()]);
    }

    fn add(&self, op: Reduction, start: usize, end: usize, total: &mut [T]) {
        stretches(self.loops, start, end, |position, stride, _, rows| {
            let (x, width) = (&self.data[position..], total.len());
            let beside = side_by_side(width);
            if width >= NARROW || stride != width || rows < 2 * beside {
                return T::accumulate_rows(op, total, x, stride, rows);
            }
            // One after the other in memory: as wide rows, whose parts are then folded into one.
            let wide = beside * width;
            let mut totals = [T::ZERO; WIDE];
            let (x, rest) = x[..rows * width].split_at(rows / beside * wide);
            totals[..wide].copy_from_slice(&x[..wide]);
            T::accumulate_rows(op, &mut totals[..wide], &x[wide..], wide, rows / beside - 1);
            T::accumulate(op, &mut totals[..rest.len()], rest);
            let mut half = wide / 2;
            while half >= width {
                let (left, right) = totals.split_at_mut(half);
                T::accumulate(op, left, &right[..half]);
                half /= 2;
            }
            T::accumulate(op, total, &totals[..width]);
        });
    }
}

/// How many rows of `width` elements go side by side: a power of two.
fn side_by_side(width: usize) -> usize {
    1 << (WIDE / width).max(1).ilog2()
}

/// Rows of results `start ..` of `kept`, gathered.
struct Gathered<'a, T> {
    data: &'a [T],
    kept: &'a Loops,
    start: usize,
    reduced: &'a Loops,
}

impl<T: Element> Gathered<'_, T> {
    /// Appends `width` elements of a row.
    fn gather(&self, row: usize, width: usize, to: &mut Vec<T>) {
        let x = &self.data[position(self.reduced, row)..];
        stretches(self.kept, self.start, self.start + width, |position, stride, _, len| {
            let start = to.len();
            to.resize(start + len, T::ZERO);
            pick(&x[position..], stride, &mut to[start..]);
        });
    }
}

impl<T: Element> Rows<T> for Gathered<'_, T> {
    fn copy(&self, row: usize, total: &mut [T]) {
        let mut line = Vec::with_capacity(total.len());
        self.gather(row, total.len(), &mut line);
        total.copy_from_slice(&line);
    }

    fn add(&self, op: Reduction, start: usize, end: usize, total: &mut [T]) {
        let width = total.len();
        let mut rows = Vec::with_capacity(GATHERED.0.min(end - start) * width);
        for first in (start..end).step_by(GATHERED.0) {
            let count = GATHERED.0.min(end - first);
            rows.clear();
            (first..first + count).for_each(|row| self.gather(row, width, &mut rows));
            T::accumulate_rows(op, total, &rows, width, count);
        }
    }
}

/// Rows `start .. end`, accumulated in a balanced tree with `leaf` rows at most in one place.
fn tree<T: Element>(op: Reduction, rows: &impl Rows<T>, start: usize, end: usize, leaf: usize, out: &mut [T]) {
    if end - start <= leaf {
        match T::identity(op) {
            // From 0, as PyTorch does: a sum of -0 is 0.
            Some(identity) => out.fill(identity),
            // Once more does not matter to the largest.
            None => rows.copy(start, out),
        }
        return rows.add(op, start, end, out);
    }
    let middle = start + ((end - start) / 2).next_multiple_of(leaf);
    tree(op, rows, start, middle, leaf, out);
    let mut right = vec![T::ZERO; out.len()];
    tree(op, rows, middle, end, leaf, &mut right);
    T::accumulate(op, out, &right);
}

/// Results are computed in blocks, whose elements are gathered.
fn gathered<T: Element>(op: Reduction, data: &[T], kept: &Loops, reduced: Loops, out: &mut [T]) {
    let (count, reduced) = (numel(&reduced), &reduced);
    let each = (TASK / count).max(out.len().div_ceil(TASKS)).next_multiple_of(GATHERED.1);
    // Elements one by one cost several times as much as slices.
    let work = out.len() * count * size_of::<T>() * 8;
    let in_lines = matches!(reduced[..], [(..SHORT, 1)]) && T::reduce_short(op, &[], 1, 1, &mut []);
    partition::chunks(out, each, schedule(work), |task, out| {
        if in_lines {
            let first = task * each;
            return stretches(kept, first, first + out.len(), |position, apart, number, lines| {
                T::reduce_short(op, &data[position..], count, apart, &mut out[number - first..][..lines]);
            });
        }
        for (block, out) in out.chunks_mut(GATHERED.1).enumerate() {
            let start = task * each + block * GATHERED.1;
            tree(op, &Gathered { data, kept, start, reduced }, 0, count, 64, out);
        }
    });
}

/// Results that lie next to one another are computed together, strip by strip; where that gives few tasks, rows are shared
/// out too, in parts whose totals are accumulated in the end.
fn columns<T: Element>(
    op: Reduction,
    data: &[T],
    mut kept: Loops,
    reduced: Loops,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let Some((width, _)) = kept.pop() else { return Ok(()) };
    let (count, outer) = (numel(&reduced), numel(&kept));
    let (inner, stride) = reduced[reduced.len() - 1];
    let beside = if width < NARROW && stride == width { side_by_side(width) } else { 1 };
    let leaf = if beside > 1 {
        (64 * inner).min(256 * beside)
    } else if inner >= 64 {
        256
    } else {
        64
    };
    let strips = (width * size_of::<T>()).div_ceil(STRIP);
    let strip = if strips == 1 { width } else { width.div_ceil(strips).next_multiple_of(16) };
    let strips = width.div_ceil(strip);
    let blocks = outer * strips;
    let total = out.len().saturating_mul(count);
    let work = total.saturating_mul(size_of::<T>());
    let parts = if work < PARALLEL { 1 } else { (32 / blocks).min(count / 64).min(total / TASK).max(1) };
    let part =
        if parts == 1 { count } else { count.div_ceil(parts).next_multiple_of(if beside > 1 { leaf } else { 64 }) };
    let parts = count.div_ceil(part);

    // Strips are numbered as they lie in the totals: `strips` to a line of `width`, `outer` lines to a part.
    let number = blocks * parts;
    let each = (TASK * number).div_ceil(total).max(number.div_ceil(TASKS));
    let start = |number: usize| number / strips * width + number % strips * strip;
    let tasks = number.div_ceil(each);
    let ends: SmallVec<[usize; TASKS]> = (1..=tasks).map(|task| start(number.min(task * each))).collect();
    let all = |out: &mut [T]| {
        partition::run(tasks, schedule(work), Partition::ends(out, &ends), |task, out| {
            let mut rest = out;
            for number in task * each..number.min((task + 1) * each) {
                let (line, left) = (number / strips % outer, number % strips * strip);
                let from = number / blocks * part;
                let (out, later) = rest.split_at_mut(strip.min(width - left));
                rest = later;
                let rows = Slices { data: &data[position(&kept, line) + left..], loops: &reduced };
                tree(op, &rows, from, count.min(from + part), leaf, out);
            }
        });
    };
    if parts == 1 {
        all(out);
        return Ok(());
    }
    let width = out.len();
    let mut totals = Scratch::new(parts * width)?;
    all(&mut totals);
    columns(op, &totals, Loops::from_slice(&[(width, 1)]), Loops::from_slice(&[(parts, width)]), out)
}

/// Calls `visit` with the elements of each line of `x` along its last dimension, in row-major order of the others.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) fn lines<T: Element>(x: Source<T>, mut visit: impl FnMut(usize, &[T])) {
    let rank = x.layout.shape().rank();
    let len = x.layout.shape()[rank - 1];
    let space = IterationSpace::new(x.layout.shape(), [x.layout]);
    let mut line = Vec::with_capacity(len);
    let count = space.numel().checked_div(len).unwrap_or(0);
    for i in 0..count {
        line.clear();
        space.walk(0, i * len, len, |position, stride, count| {
            line.extend((0..count as isize).map(|k| x.data[(position as isize + k * stride) as usize]));
        });
        visit(i, &line);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{num_threads, set_num_threads};

    /// Long enough for pieces, parts and several threads.
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

    /// The same values, lying otherwise.
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

    #[test]
    fn strided_elements_are_all_there() {
        for (stride, count) in (0..7).flat_map(|stride| [1, 2, 7, 16, 63].map(|count| (stride, count))) {
            for more in [0, 1, 9] {
                let x: Vec<i64> = (0..(count - 1) * stride + 1 + more).map(|i| i as i64).collect();
                let mut got = vec![-1; count];
                crate::kernel::reduce::strided::pick(&x, stride, &mut got);
                assert!((0..count).all(|i| got[i] == (i * stride) as i64), "{stride} {count} {more}: {got:?}");
            }
        }
    }

    /// A NaN is found wherever it is, and nowhere else.
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
