//! Convolutions and their two derivatives, over contiguous arrays: `x` `[n, c, …]`, `w` `[out, c / groups, …]`,
//! `z` `[n, out, …]`, with up to three dimensions of space.
//!
//! Where they are faster, copied planes are what is summed over: [`direct`]. Elsewhere, and for integers, all three are
//! matrix products with the windows of `x` as columns (Chellapilla, Puri and Simard 2006, "im2col"), written out
//! a tile of windows at a time, so that a tile stays in the second-level cache. What a part is depends on shapes alone, and
//! sums over parts are added up in order: any number of threads gives the same bits.
//!
//! This file does not know padding modes, defaults or what is refused.

use crate::Element;
use crate::kernel::conv::direct;
use crate::kernel::conv::direct::{Kind, Task};
use crate::kernel::matmul::product::{Matrix, Sizes};
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads;
use crate::memory::threads::Schedule;
use crate::memory::threads::Start;
use crate::scalar::cpu::dispatched;

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
    #[inline(always)]
    pub(crate) fn place(&self, number: usize, tap: usize) -> Option<usize> {
        (number * self.stride + tap * self.dilation).checked_sub(self.before).filter(|&place| place < self.input)
    }

    /// The windows, first and one past the last, whose element `tap` is inside.
    #[inline(always)]
    pub(crate) fn inside(&self, tap: usize) -> (usize, usize) {
        let shift = tap * self.dilation;
        let (first, end) = (self.before.saturating_sub(shift), (self.input + self.before).saturating_sub(shift));
        let windows = |places: usize| if self.stride == 1 { places } else { places.div_ceil(self.stride) };
        let end = windows(end).min(self.output);
        (windows(first).min(end), end)
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
    pub(crate) fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Rows of the matrix of columns.
    pub(crate) fn rows(&self) -> usize {
        self.channels * self.taps()
    }

    /// Windows of one image.
    pub(crate) fn windows(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Elements of one channel of `x`.
    pub(crate) fn plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Elements of the weights of a group.
    pub(crate) fn weights(&self) -> usize {
        self.out * self.rows()
    }

    /// Windows of a tile.
    fn tile(&self) -> usize {
        (TILE / self.rows()).max(1).next_multiple_of(64).min(self.windows())
    }

    fn tiles(&self) -> usize {
        self.windows().div_ceil(self.tile())
    }

    /// Channel and tap of a row of the matrix of columns, in a plane.
    fn row(&self, number: usize) -> (usize, usize, usize) {
        let [_, height, width] = &self.axes;
        (number / (height.kernel * width.kernel), number / width.kernel % height.kernel, number % width.kernel)
    }

    /// Whether each channel has results of its own, and few: products over columns would be of a row or two.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.channels == 1 && self.out <= 4
    }

    /// Whether copied planes are faster than columns, as measured, here and below. They lose to products where the kernel is
    /// one element, and where copying the results costs as much as computing them.
    fn is_direct(&self) -> bool {
        let taps = self.taps();
        taps > 1 && (self.is_depthwise() || self.rows() >= 27 && direct::efficiency(self) >= 0.7)
    }

    fn is_direct_for_input(&self) -> bool {
        let taps = self.taps();
        taps > 1 && (self.is_depthwise() || self.channels >= 4 && direct::input_efficiency(self) >= 0.7)
    }

    fn is_direct_for_weight(&self) -> bool {
        let taps = self.taps();
        let steps = self.axes.iter().any(|axis| axis.stride > 1);
        let few = self.channels >= 8 && self.out <= 32 && !steps && direct::efficiency(self) >= 0.7;
        taps > 1 && (self.is_depthwise() && taps >= 5 || few)
    }

    /// Whether lines are short and used several times.
    fn goes_by_lines(&self) -> bool {
        let [depth, height, width] = &self.axes;
        depth.input == 1
            && depth.kernel == 1
            && depth.before == 0
            && depth.output == 1
            && height.kernel > 1
            && height.stride == 1
            && width.stride == 1
            && width.output <= 64
    }

    /// Elements of all lines, shifted for every column of the kernel.
    fn lines(&self) -> usize {
        self.channels * self.axes[2].kernel * self.axes[1].input * self.axes[2].output
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
    if T::CONVOLVES && plan.is_direct() {
        return T::convolve(Task(Kind::Forward(plan, x, w, z)));
    }
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
    if T::CONVOLVES && plan.is_direct_for_input() {
        return T::convolve(Task(Kind::Input(plan, w, z, x)));
    }
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
    // Which multiplies elements that a weight does not see by zero: of ∞ and NaN that would be seen.
    if T::CONVOLVES && plan.is_direct_for_weight() && T::are_finite(x) {
        return T::convolve(Task(Kind::Weight(plan, x, z, w)));
    }
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
    partition::chunks(&mut sums.0, len, Schedule::Parallel, part);
    let (first, others) = sums.0.split_at(len);
    w.copy_from_slice(first);
    for sum in others.chunks_exact(len) {
        w.iter_mut().zip(sum).for_each(|(w, &sum)| *w = w.plus(sum));
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

/// Columns `first .. first + count` of the matrix of columns, row-major: row (c, tap) has what that tap of each window sees of
/// channel c, zero where that is outside.
fn gather<T: Element>(plan: &Plan, x: &[T], first: usize, count: usize, columns: &mut [T]) {
    if plan.goes_by_lines() && count == plan.windows() {
        gather_lines(plan, x, &mut Scratch::new(plan.lines()).0, columns);
    } else {
        gather_runs(plan, x, first, count, columns);
    }
}

/// The adjoint of [`gather`]: adds the columns to `x`.
fn scatter<T: Element>(plan: &Plan, columns: &[T], first: usize, count: usize, x: &mut [T]) {
    if plan.goes_by_lines() && count == plan.windows() {
        scatter_lines(plan, columns, &mut Scratch::new(plan.lines()).0, x);
    } else {
        scatter_runs(plan, columns, first, count, x);
    }
}

// Small images have short lines, and a copy of eight elements costs little more than to find out which. So each line is
// shifted once for each column of the kernel; rows of the kernel are then whole blocks of lines.
dispatched! {
    fn gather_lines<T: Element>(plan: &Plan, x: &[T], lines: &mut [T], columns: &mut [T]) {
        let [_, height, width] = &plan.axes;
        let (size, block) = (width.output, height.input * width.output);
        for (number, lines) in lines.chunks_exact_mut(block).enumerate() {
            let (channel, kw) = (number / width.kernel, number % width.kernel);
            let (left, right) = width.inside(kw);
            let x = &x[channel * plan.plane()..][..plan.plane()];
            for (line, x) in lines.chunks_exact_mut(size).zip(x.chunks_exact(width.input)) {
                if left < right {
                    copy(&x[left + kw * width.dilation - width.before..][..right - left], &mut line[left..right]);
                }
                line[..left].fill(T::ZERO);
                line[right..].fill(T::ZERO);
            }
        }
        for (row, columns) in columns.chunks_exact_mut(plan.windows()).take(plan.rows()).enumerate() {
            let (channel, kh, kw) = plan.row(row);
            let (low, high) = height.inside(kh);
            if low < high {
                let from = (channel * width.kernel + kw) * block + (low + kh * height.dilation - height.before) * size;
                columns[low * size..high * size].copy_from_slice(&lines[from..][..(high - low) * size]);
            }
            columns[..low * size].fill(T::ZERO);
            columns[high * size..].fill(T::ZERO);
        }
    }
}

dispatched! {
    fn scatter_lines<T: Element>(plan: &Plan, columns: &[T], lines: &mut [T], x: &mut [T]) {
        let [_, height, width] = &plan.axes;
        let (size, block) = (width.output, height.input * width.output);
        lines.fill(T::ZERO);
        for (row, columns) in columns.chunks_exact(plan.windows()).take(plan.rows()).enumerate() {
            let (channel, kh, kw) = plan.row(row);
            let (low, high) = height.inside(kh);
            if low < high {
                let to = (channel * width.kernel + kw) * block + (low + kh * height.dilation - height.before) * size;
                add(&columns[low * size..high * size], &mut lines[to..][..(high - low) * size]);
            }
        }
        for (number, lines) in lines.chunks_exact(block).enumerate() {
            let (channel, kw) = (number / width.kernel, number % width.kernel);
            let (left, right) = width.inside(kw);
            let x = &mut x[channel * plan.plane()..][..plan.plane()];
            if left < right {
                for (line, x) in lines.chunks_exact(size).zip(x.chunks_exact_mut(width.input)) {
                    add(&line[left..right], &mut x[left + kw * width.dilation - width.before..][..right - left]);
                }
            }
        }
    }
}

dispatched! {
    fn gather_runs<T: Element>(plan: &Plan, x: &[T], first: usize, count: usize, columns: &mut [T]) {
        walk(plan, first, count, Gather { x, columns });
    }
}

dispatched! {
    fn scatter_runs<T: Element>(plan: &Plan, columns: &[T], first: usize, count: usize, x: &mut [T]) {
        walk(plan, first, count, Scatter { columns, x });
    }
}

/// Runs are short: pieces of a fixed size cost less than a call that copies.
#[inline(always)]
fn copy<T: Element>(from: &[T], to: &mut [T]) {
    let count = from.len();
    match from.last_chunk::<8>() {
        Some(last) if count < 64 => {
            for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.as_chunks::<8>().0) {
                *to = *from;
            }
            to[count - 8..].copy_from_slice(last);
        }
        Some(_) => to.copy_from_slice(from),
        None => to.iter_mut().zip(from).for_each(|(to, &from)| *to = from),
    }
}

/// `to += from`.
#[inline(always)]
fn add<T: Element>(from: &[T], to: &mut [T]) {
    let ((whole, last), (chunks, rest)) = (to.as_chunks_mut::<8>(), from.as_chunks::<8>());
    for (to, from) in whole.iter_mut().zip(chunks) {
        for i in 0..8 {
            to[i] = to[i].plus(from[i]);
        }
    }
    last.iter_mut().zip(rest).for_each(|(to, &from)| *to = to.plus(from));
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
    // Lines of windows, of which the first and the last may lie in the tile in part.
    let (line, within) = (first / width.output, first % width.output);
    let (first_d, first_h) = (line / height.output, line % height.output);
    let mut row = 0;
    for channel in 0..plan.channels {
        for kd in 0..depth.kernel {
            for kh in 0..height.kernel {
                for kw in 0..width.kernel {
                    let (left, right) = width.inside(kw);
                    let shift = left * width.stride + kw * width.dilation - if left < right { width.before } else { 0 };
                    let (mut d, mut h, mut from, mut at) = (first_d, first_h, within, first);
                    while at < end {
                        let to = width.output.min(from + end - at);
                        let column = row * count + at - first;
                        let inside = match (depth.place(d, kd), height.place(h, kh)) {
                            (Some(d), Some(h)) => Some(channel * plane + (d * height.input + h) * width.input),
                            _ => None,
                        };
                        match inside {
                            Some(begin) if left < right => {
                                let (low, high) = (left.clamp(from, to), right.clamp(from, to));
                                if low > from {
                                    runs.outside(column, low - from);
                                }
                                if high > low {
                                    let place = begin + shift + (low - left) * width.stride;
                                    runs.inside(column + low - from, place, width.stride, high - low);
                                }
                                if to > high {
                                    runs.outside(column + high - from, to - high);
                                }
                            }
                            _ => runs.outside(column, to - from),
                        }
                        at += to - from;
                        from = 0;
                        h += 1;
                        if h == height.output {
                            (d, h) = (d + 1, 0);
                        }
                    }
                    row += 1;
                }
            }
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
        copy(&self.x[place..place + count], to);
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
        add(from, &mut self.x[place..place + count]);
    }

    #[inline(always)]
    fn outside(&mut self, _column: usize, _count: usize) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::conv::vector;
    use crate::kernel::conv::vector::Kernels;

    /// Σ x w z over everything that meets, by the definition: `each(x, w, z)` is called with positions in the three.
    fn by_definition(plan: &Plan, mut each: impl FnMut(usize, usize, usize)) {
        let [d, h, w] = &plan.axes;
        for block in 0..plan.batch * plan.groups {
            for (out, channel) in (0..plan.out).flat_map(|out| (0..plan.channels).map(move |channel| (out, channel))) {
                for (window, tap) in (0..plan.windows()).flat_map(|i| (0..plan.taps()).map(move |tap| (i, tap))) {
                    let place = |axis: &Axis, window: usize, tap: usize| {
                        let place = (window * axis.stride + tap * axis.dilation) as isize - axis.before as isize;
                        (place >= 0 && place < axis.input as isize).then_some(place as usize)
                    };
                    let places = (
                        place(d, window / (h.output * w.output), tap / (h.kernel * w.kernel)),
                        place(h, window / w.output % h.output, tap / w.kernel % h.kernel),
                        place(w, window % w.output, tap % w.kernel),
                    );
                    if let (Some(i), Some(j), Some(k)) = places {
                        let x = (block * plan.channels + channel) * plan.plane() + (i * h.input + j) * w.input + k;
                        let weights =
                            (block % plan.groups * plan.out + out) * plan.rows() + channel * plan.taps() + tap;
                        each(x, weights, (block * plan.out + out) * plan.windows() + window);
                    }
                }
            }
        }
    }

    /// Small integers, whose sums and products are exact.
    fn integers<T: Element>(len: usize, seed: usize) -> Vec<T> {
        (0..len).map(|i| T::from_i64(((i + seed) * 7919 / 13 % 9) as i64 - 4)).collect()
    }

    /// `len` sums of what `term` says, at the place that it says, over everything that meets.
    fn twin<T: Element>(plan: &Plan, len: usize, term: impl Fn(usize, usize, usize) -> (usize, T)) -> Vec<T> {
        let mut sums = vec![T::ZERO; len];
        by_definition(plan, |x, w, z| {
            let (place, term) = term(x, w, z);
            sums[place] = sums[place].plus(term);
        });
        sums
    }

    /// Without columns, whether it is faster or not.
    fn check_directly<T: Element>(plan: &Plan, every: &[&Kernels<T>]) {
        let blocks = plan.batch * plan.groups;
        let x = integers::<T>(blocks * plan.channels * plan.plane(), 1);
        let w = integers::<T>(plan.groups * plan.weights(), 5);
        let z = integers::<T>(blocks * plan.out * plan.windows(), 11);
        for kernels in every {
            let mut out = integers::<T>(z.len(), 3);
            direct::run(kernels, Task(Kind::Forward(plan, &x, &w, &mut out)));
            assert_eq!(out, twin(plan, z.len(), |i, j, k| (k, x[i].times(w[j]))), "{plan:?}");
            let mut out = integers::<T>(x.len(), 3);
            direct::run(kernels, Task(Kind::Input(plan, &w, &z, &mut out)));
            assert_eq!(out, twin(plan, x.len(), |i, j, k| (i, w[j].times(z[k]))), "{plan:?}");
            let mut out = integers::<T>(w.len(), 3);
            direct::run(kernels, Task(Kind::Weight(plan, &x, &z, &mut out)));
            assert_eq!(out, twin(plan, w.len(), |i, j, k| (j, x[i].times(z[k]))), "{plan:?}");
        }
    }

    fn check<T: Element>(plan: &Plan) {
        let blocks = plan.batch * plan.groups;
        let x = integers::<T>(blocks * plan.channels * plan.plane(), 1);
        let w = integers::<T>(plan.groups * plan.weights(), 5);
        let z = integers::<T>(blocks * plan.out * plan.windows(), 11);
        let mut out = integers::<T>(z.len(), 3);
        forward(plan, &x, &w, &mut out);
        assert_eq!(out, twin(plan, z.len(), |i, j, k| (k, x[i].times(w[j]))), "{plan:?}");
        let mut out = integers::<T>(x.len(), 3);
        input_gradient(plan, &w, &z, &mut out);
        assert_eq!(out, twin(plan, x.len(), |i, j, k| (i, w[j].times(z[k]))), "{plan:?}");
        let mut out = integers::<T>(w.len(), 3);
        weight_gradient(plan, &x, &z, &mut out);
        assert_eq!(out, twin(plan, w.len(), |i, j, k| (j, x[i].times(z[k]))), "{plan:?}");
    }

    #[test]
    fn what_a_weight_does_not_see_does_not_reach_it() {
        let axis = |input: usize, kernel: usize| Axis {
            input,
            kernel,
            output: input - kernel + 1,
            stride: 1,
            dilation: 1,
            before: 0,
        };
        let axes = [axis(1, 1), axis(12, 3), axis(40, 3)];
        let plan = Plan { batch: 1, groups: 1, channels: 8, out: 8, axes };
        assert!(plan.is_direct_for_weight());
        let z = integers::<f32>(plan.out * plan.windows(), 11);
        for bad in [f32::INFINITY, f32::NAN] {
            let mut x = integers::<f32>(plan.channels * plan.plane(), 1);
            x[40] = bad;
            let mut w = vec![0.0; plan.weights()];
            weight_gradient(&plan, &x, &z, &mut w);
            let expected = twin(&plan, w.len(), |i, j, k| (j, x[i] * z[k]));
            assert!(w.iter().filter(|w| w.is_finite()).count() > w.len() / 2);
            assert!(w.iter().zip(&expected).all(|(w, e)| w == e || (w.is_nan() && e.is_nan())), "{bad}");
        }
    }

    fn axis() -> impl Strategy<Value = Axis> {
        let sizes = (1..5usize, 1..4usize, 1..4usize, 0..4usize, 0..14usize);
        sizes.prop_map(|(kernel, stride, dilation, before, more)| {
            let span = (kernel - 1) * dilation + 1;
            let (input, after) = (1 + more, before / 2);
            let room = (before + input + after).max(span) - span;
            Axis { input, kernel, output: room / stride + 1, stride, dilation, before }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn convolutions_equal_their_twins(
            counts in [1..4usize, 1..4usize, 1..4usize, 1..4usize],
            axes in [axis(), axis(), axis()],
            rank in 1..4usize,
        ) {
            let [batch, groups, channels, out] = counts;
            let axes = std::array::from_fn(|k| if k + rank < 3 { Axis::NONE } else { axes[k] });
            let plan = Plan { batch, groups, channels, out, axes };
            check::<f64>(&plan);
            check::<f32>(&plan);
            check::<i64>(&plan);
            check_directly(&plan, &vector::every_f64());
            check_directly(&plan, &vector::every_f32());
        }
    }

    #[test]
    fn several_tiles_and_parts() {
        let axis = |input, kernel, before| Axis {
            input,
            kernel,
            output: input + 2 * before + 1 - kernel,
            stride: 1,
            dilation: 1,
            before,
        };
        let plan = |batch, channels, out, size, kernel, before| {
            let axes = [Axis::NONE, axis(size, kernel, before), axis(size, kernel, before)];
            Plan { batch, groups: 1, channels, out, axes }
        };
        // Many windows; many images; a kernel of one element; lines of more than one tile; rows of more than a tile.
        for plan in [
            plan(1, 16, 5, 40, 3, 1),
            plan(9, 2, 13, 6, 3, 1),
            plan(1, 3, 40, 12, 3, 1),
            plan(70, 2, 3, 9, 3, 0),
            plan(3, 5, 4, 17, 1, 0),
            plan(2, 90, 2, 8, 4, 2),
        ] {
            check::<f64>(&plan);
            check_directly(&plan, &vector::every_f64());
            check_directly(&plan, &vector::every_f32());
        }
        let line = Axis { input: 5000, kernel: 40, output: 2490, stride: 2, dilation: 1, before: 10 };
        let plan = Plan { batch: 1, groups: 1, channels: 4, out: 2, axes: [Axis::NONE, Axis::NONE, line] };
        assert!(plan.tiles() > 1);
        check::<f64>(&plan);
        check_directly(&plan, &vector::every_f64());
    }
}
