//! Convolutions and their two derivatives, over contiguous arrays: `x` `[n, c, …]`, `w` `[out, c / groups, …]`,
//! `z` `[n, out, …]`, with up to three dimensions of space.
//!
//! All three are matrix products with the windows of `x` as columns (Chellapilla, Puri and Simard 2006, "im2col"), written out
//! a tile of windows at a time, so that a tile stays in the second-level cache. What a part is depends on shapes alone, and
//! sums over parts are added up in order: any number of threads gives the same bits.
//!
//! This file does not know padding modes, defaults or what is refused.

use super::product::{Matrix, Sizes};
use super::simd::dispatched;
use crate::threads::{self, Start};
use crate::{Element, memory, pool};

/// Elements of a tile of columns, at most, if it has a window or more.
const TILE: usize = 1 << 16;

/// Sums over the batch are made in so many parts at most, each with sums of its own.
const SUMS: usize = 8;

/// One dimension of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Sizes of `x`, `w` and `z`.
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) output: usize,
    /// From one window to the next.
    pub(crate) stride: usize,
    /// From one element of a window to the next.
    pub(crate) dilation: usize,
    /// How many elements before the input the first window begins.
    pub(crate) before: usize,
}

impl Axis {
    /// A dimension of size 1.
    pub(crate) const NONE: Axis = Axis { input: 1, kernel: 1, output: 1, stride: 1, dilation: 1, before: 0 };

    /// Where element `tap` of window `number` is.
    pub(super) fn place(&self, number: usize, tap: usize) -> Option<usize> {
        (number * self.stride + tap * self.dilation).checked_sub(self.before).filter(|&place| place < self.input)
    }

    /// The windows, first and one past the last, whose element `tap` is inside.
    pub(super) fn inside(&self, tap: usize) -> (usize, usize) {
        let shift = tap * self.dilation;
        let first = self.before.saturating_sub(shift).div_ceil(self.stride);
        let end = (self.input + self.before).saturating_sub(shift).div_ceil(self.stride).min(self.output);
        (first.min(end), end)
    }
}

/// A convolution's sizes. None is 0 but, maybe, `batch`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// Channels of a group.
    pub(crate) channels: usize,
    /// Results of a group.
    pub(crate) out: usize,
    pub(crate) axes: [Axis; 3],
}

impl Plan {
    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Rows of the matrix of columns.
    fn rows(&self) -> usize {
        self.channels * self.taps()
    }

    /// Windows of one image.
    fn windows(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Elements of one channel of `x`.
    fn plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Elements of the weights of a group.
    fn weights(&self) -> usize {
        self.out * self.rows()
    }

    /// Windows of a tile.
    fn tile(&self) -> usize {
        (TILE / self.rows()).max(1).next_multiple_of(64).min(self.windows())
    }

    fn tiles(&self) -> usize {
        self.windows().div_ceil(self.tile())
    }

    /// Whether the input is its own matrix of columns.
    fn is_pointwise(&self) -> bool {
        let plain = |axis: &Axis| axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.input == axis.output;
        self.axes.iter().all(plain)
    }

    /// The sizes of a product of weights and columns.
    fn product(&self, windows: usize) -> Sizes {
        Sizes { m: self.out, n: windows, k: self.rows(), add: false }
    }
}

/// `z = conv(x, w)`.
pub(crate) fn forward<T: Element>(plan: &Plan, x: &[T], w: &[T], z: &mut [T]) {
    let (plane, windows, tiles, out) = (plan.channels * plan.plane(), plan.windows(), plan.tiles(), plan.out);
    let blocks = Blocks { start: Start(z.as_mut_ptr()), len: out * windows, all: z.len() };
    // Images of little work go together.
    let together = if tiles > 1 { 1 } else { (TILE / (4 * plan.rows() * windows)).max(1) };
    let units = plan.batch * plan.groups * tiles;
    threads::for_each(units.div_ceil(together), |part| {
        let mut columns = Scratch::new(if plan.is_pointwise() { 0 } else { plan.rows() * plan.tile() });
        let mut product = Scratch::new(if tiles > 1 { out * plan.tile() } else { 0 });
        for unit in part * together..units.min((part + 1) * together) {
            let (block, tile) = (unit / tiles, unit % tiles);
            let weights = Matrix::rows(w, block % plan.groups * plan.weights(), plan.rows());
            let (first, count) = (tile * plan.tile(), plan.tile().min(windows - tile * plan.tile()));
            let right = if plan.is_pointwise() {
                Matrix::rows(x, block * plane + first, windows)
            } else {
                gather(plan, &x[block * plane..][..plane], first, count, &mut columns.0);
                Matrix::rows(&columns.0, 0, count)
            };
            if tiles == 1 {
                T::product(plan.product(count), weights, right, blocks.part(block, 0, out * windows));
            } else {
                T::product(plan.product(count), weights, right, &mut product.0[..out * count]);
                for (row, values) in product.0[..out * count].chunks_exact(count).enumerate() {
                    blocks.part(block, row * windows + first, count).copy_from_slice(values);
                }
            }
        }
    });
}

/// The adjoint of [`forward`] as a function of `x`, for the weights `w`: `x` of `z`.
pub(crate) fn input_gradient<T: Element>(plan: &Plan, w: &[T], z: &[T], x: &mut [T]) {
    let (windows, plane) = (plan.windows(), plan.plane());
    // A few images are shared out by channels too.
    let slices = if plan.batch * plan.groups >= 4 { 1 } else { plan.channels.min(4) };
    let each = plan.channels.div_ceil(slices);
    let slices = plan.channels.div_ceil(each);
    let blocks = Blocks { start: Start(x.as_mut_ptr()), len: plan.channels * plane, all: x.len() };
    threads::for_each(plan.batch * plan.groups * slices, |unit| {
        let (block, first) = (unit / slices, unit % slices * each);
        let part = Plan { channels: each.min(plan.channels - first), ..*plan };
        let x = blocks.part(block, first * plane, part.channels * plane);
        let at = block % plan.groups * plan.weights() + first * plan.taps();
        let weights = Matrix::rows(w, at, plan.rows()).transposed();
        let sizes = |count| Sizes { m: part.rows(), n: count, k: plan.out, add: false };
        if plan.is_pointwise() {
            return T::product(sizes(windows), weights, Matrix::rows(z, block * plan.out * windows, windows), x);
        }
        x.fill(T::ZERO);
        let mut columns = Scratch::new(part.rows() * part.tile());
        for from in (0..windows).step_by(part.tile()) {
            let count = part.tile().min(windows - from);
            let columns = &mut columns.0[..part.rows() * count];
            let right = Matrix::rows(z, block * plan.out * windows + from, windows);
            T::product(sizes(count), weights, right, columns);
            scatter(&part, columns, from, count, x);
        }
    });
}

/// The adjoint of [`forward`] as a function of `w`, for the input `x`: `w` of `z`.
pub(crate) fn weight_gradient<T: Element>(plan: &Plan, x: &[T], z: &[T], w: &mut [T]) {
    let (windows, plane, tiles) = (plan.windows(), plan.channels * plan.plane(), plan.tiles());
    let units = plan.batch * tiles;
    let most = if w.len() <= TILE { SUMS } else { 2 };
    let parts = units.min(most);
    let (each, len) = (units.div_ceil(parts), w.len());
    let parts = units.div_ceil(each);
    let part = |number: usize, w: &mut [T]| {
        let mut columns = Scratch::new(if plan.is_pointwise() { 0 } else { plan.rows() * plan.tile() });
        for unit in number * each..units.min((number + 1) * each) {
            let (image, tile) = (unit / tiles, unit % tiles);
            let (first, count) = (tile * plan.tile(), plan.tile().min(windows - tile * plan.tile()));
            for (group, w) in w.chunks_exact_mut(plan.weights()).enumerate() {
                let block = image * plan.groups + group;
                let columns = if plan.is_pointwise() {
                    Matrix::rows(x, block * plane + first, windows)
                } else {
                    gather(plan, &x[block * plane..][..plane], first, count, &mut columns.0);
                    Matrix::rows(&columns.0, 0, count)
                };
                let left = Matrix::rows(z, block * plan.out * windows + first, windows);
                let sizes = Sizes { m: plan.out, n: plan.rows(), k: count, add: unit > number * each };
                T::product(sizes, left, columns.transposed(), w);
            }
        }
    };
    if parts == 1 {
        return part(0, w);
    }
    let mut sums = Scratch::new(parts * len);
    threads::for_chunks(&mut sums.0, len, part);
    let (first, others) = sums.0.split_at(len);
    w.copy_from_slice(first);
    for sum in others.chunks_exact(len) {
        w.iter_mut().zip(sum).for_each(|(w, &sum)| *w = w.plus(sum));
    }
}

/// Memory for a moment: its elements are anything.
struct Scratch<T: Element>(Vec<T>);

impl<T: Element> Scratch<T> {
    fn new(len: usize) -> Self {
        Scratch(memory::scratch(len).unwrap_or_else(|_| vec![T::ZERO; len]))
    }
}

impl<T: Element> Drop for Scratch<T> {
    fn drop(&mut self) {
        pool::give(std::mem::take(&mut self.0));
    }
}

/// An array in blocks of `len`, parts of which threads write to.
struct Blocks<T> {
    start: Start<T>,
    len: usize,
    all: usize,
}

impl<T> Blocks<T> {
    /// `count` elements of block `number` from `first` on. Every part is asked for by one thread, and parts do not overlap:
    /// those who call this see to it.
    #[allow(unsafe_code, clippy::mut_from_ref)]
    fn part(&self, number: usize, first: usize, count: usize) -> &mut [T] {
        let from = number * self.len + first;
        assert!(from + count <= self.all, "a part lies inside");
        // SAFETY: inside the array, which is borrowed mutably while threads are at it, and disjoint from what others hold.
        unsafe { std::slice::from_raw_parts_mut(self.start.at(from), count) }
    }
}

dispatched! {
    /// Columns `first .. first + count` of the matrix of columns, row-major: row (c, tap) has what that tap of each window sees
    /// of channel c, zero where that is outside.
    fn gather<T: Element>(plan: &Plan, x: &[T], first: usize, count: usize, columns: &mut [T]) {
        walk(plan, first, count, Gather { x, columns });
    }
}

dispatched! {
    /// The adjoint of [`gather`]: adds the columns to `x`.
    fn scatter<T: Element>(plan: &Plan, columns: &[T], first: usize, count: usize, x: &mut [T]) {
        walk(plan, first, count, Scatter { columns, x });
    }
}

/// What is done with runs of a row of the matrix of columns.
trait Runs {
    /// `count` elements from `column` on are those at `place`, `place + step`, … of `x`.
    fn inside(&mut self, column: usize, place: usize, step: usize, count: usize);
    /// `count` elements from `column` on are outside of `x`.
    fn outside(&mut self, column: usize, count: usize);
}

#[inline(always)]
fn walk(plan: &Plan, first: usize, count: usize, mut runs: impl Runs) {
    let [depth, height, width] = &plan.axes;
    let (end, plane) = (first + count, plan.plane());
    let mut row = 0;
    for channel in 0..plan.channels {
        for tap in 0..plan.taps() {
            let (kd, kh, kw) =
                (tap / (height.kernel * width.kernel), tap / width.kernel % height.kernel, tap % width.kernel);
            let (left, right) = width.inside(kw);
            // Lines of windows, of which the first and the last may lie in the tile in part.
            let (mut line, mut at) = (first / width.output, first);
            while at < end {
                let start = line * width.output;
                let stop = (start + width.output).min(end);
                let column = row * count + at - first;
                let place = |line: usize| {
                    let d = depth.place(line / height.output, kd)?;
                    Some((d * height.input + height.place(line % height.output, kh)?) * width.input)
                };
                match place(line) {
                    None => runs.outside(column, stop - at),
                    Some(begin) => {
                        let (low, high) = ((start + left).clamp(at, stop), (start + right).clamp(at, stop));
                        if low > at {
                            runs.outside(column, low - at);
                        }
                        if high > low {
                            let x = (low - start) * width.stride + kw * width.dilation - width.before;
                            runs.inside(column + low - at, channel * plane + begin + x, width.stride, high - low);
                        }
                        let rest = high.max(low);
                        if stop > rest {
                            runs.outside(column + rest - at, stop - rest);
                        }
                    }
                }
                at = stop;
                line += 1;
            }
            row += 1;
        }
    }
}

struct Gather<'a, T> {
    x: &'a [T],
    columns: &'a mut [T],
}

impl<T: Element> Runs for Gather<'_, T> {
    #[inline(always)]
    fn inside(&mut self, column: usize, place: usize, step: usize, count: usize) {
        let to = &mut self.columns[column..column + count];
        if step != 1 {
            let from = self.x[place..].iter().step_by(step);
            return to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
        }
        // Runs are short: pieces of a fixed size cost less than a call that copies.
        let from = &self.x[place..place + count];
        if let (Some(last), true) = (from.last_chunk::<8>(), count < 64) {
            let (chunks, _) = from.as_chunks::<8>();
            for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(chunks) {
                *to = *from;
            }
            to[count - 8..].copy_from_slice(last);
        } else if count < 8 {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
        } else {
            to.copy_from_slice(from);
        }
    }

    #[inline(always)]
    fn outside(&mut self, column: usize, count: usize) {
        self.columns[column..column + count].fill(T::ZERO);
    }
}

struct Scatter<'a, T> {
    columns: &'a [T],
    x: &'a mut [T],
}

impl<T: Element> Runs for Scatter<'_, T> {
    #[inline(always)]
    fn inside(&mut self, column: usize, place: usize, step: usize, count: usize) {
        let from = &self.columns[column..column + count];
        if step != 1 {
            let to = self.x[place..].iter_mut().step_by(step);
            return to.zip(from).for_each(|(to, &from)| *to = to.plus(from));
        }
        let to = &mut self.x[place..place + count];
        let (chunks, rest) = from.as_chunks::<8>();
        let (whole, last) = to.as_chunks_mut::<8>();
        for (to, from) in whole.iter_mut().zip(chunks) {
            for i in 0..8 {
                to[i] = to[i].plus(from[i]);
            }
        }
        last.iter_mut().zip(rest).for_each(|(to, &from)| *to = to.plus(from));
    }

    #[inline(always)]
    fn outside(&mut self, _column: usize, _count: usize) {}
}
