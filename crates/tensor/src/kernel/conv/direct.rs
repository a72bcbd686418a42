//! Convolutions without columns, for floating-point numbers.
//!
//! The planes are copied once, with their padding, and split where windows move by more than one element: element `i` of an
//! axis of stride `s` lies in part `i mod s`. Then what a tap of the kernel sees of all windows is one run of memory, the
//! same run for every tap but for where it begins, over the ends of lines too: what is computed there is thrown away. So
//! - a convolution sums, for some rows of the result and some vectors of windows at once, weights times runs;
//! - its adjoint for the input is the same over the result's gradient, once for each part of the input;
//! - its adjoint for the weights is made of dot products of runs.
//!
//! Sums stay in registers throughout. What a part is depends on shapes alone. This file does not know when this is faster
//! than products over columns: [`convolution`](crate::kernel::conv::im2col) does.
#![allow(unsafe_code)]

use crate::Element;
use crate::kernel::conv::im2col::{Axis, Plan};
use crate::kernel::conv::vector::Kernels;
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads;
use crate::memory::threads::Schedule;
use crate::memory::threads::Start;

/// Windows that are computed before they are copied to their places: a multiple of what every kernel does at once.
const CHUNK: usize = 384;

/// Windows that kernels compute at once, about.
const VECTORS: usize = 48;

/// What kernels may read after the last element that counts.
const SLACK: usize = 128;

/// Elements of a run whose dot products are taken before the next run's.
const SEGMENT: usize = 2048;

/// Elements of the planes that dot products are taken of at once, about.
const TOGETHER: usize = 1 << 17;

/// Sums over the batch are made in so many parts at most.
const SUMS: usize = 8;

/// One axis of planes, copied.
#[derive(Clone, Debug)]
struct Packed {
    /// The parts that are seen: which elements, modulo `step`.
    parts: Vec<usize>,
    step: usize,
    /// Elements of a part.
    len: usize,
    /// How far before the first element of the plane a part begins, in elements of the plane.
    before: usize,
    /// Elements of the plane.
    input: usize,
}

impl Packed {
    /// The input of a convolution.
    fn input(axis: &Axis) -> Packed {
        let mut parts: Vec<usize> = (0..axis.kernel).map(|tap| tap * axis.dilation % axis.stride).collect();
        parts.sort_unstable();
        parts.dedup();
        let len = axis.output + reach(axis);
        Packed { parts, step: axis.stride, len, before: axis.before, input: axis.input }
    }

    /// The result of a convolution, in one part.
    fn output(axis: &Axis) -> Packed {
        let (room, last) = (reach(axis), (axis.input - 1 + axis.before) / axis.stride);
        let len = room + axis.output.max(last + 1);
        Packed { parts: vec![0], step: 1, len, before: room, input: axis.output }
    }

    /// The elements of a part that lie inside, first and one past the last, and where the first is.
    fn inside(&self, part: usize) -> (usize, usize, usize) {
        let first = self.before.saturating_sub(part).div_ceil(self.step);
        let end = (self.input + self.before).saturating_sub(part).div_ceil(self.step).min(self.len);
        let first = first.min(end);
        (first, end, (first * self.step + part).saturating_sub(self.before))
    }
}

/// Elements of a part from what the first tap sees to what the last sees.
fn reach(axis: &Axis) -> usize {
    (axis.kernel - 1) * axis.dilation / axis.stride
}

/// All axes of planes, copied.
struct Planes([Packed; 3]);

impl Planes {
    /// Elements of one part.
    fn part(&self) -> usize {
        self.0.iter().map(|axis| axis.len).product()
    }

    /// Elements of all parts of a plane.
    fn len(&self) -> usize {
        self.part() * self.0.iter().map(|axis| axis.parts.len()).product::<usize>()
    }

    /// Elements from one place to the next, by axis.
    fn strides(&self) -> [usize; 3] {
        [self.0[1].len * self.0[2].len, self.0[2].len, 1]
    }

    /// Copies one plane, its parts `pitch` elements apart, to where all is zero but, maybe, another plane's elements.
    fn copy<T: Element>(&self, x: &[T], to: &mut [T], pitch: usize) {
        let [depth, height, width] = &self.0;
        let mut parts = (0..).step_by(pitch);
        for &d in &depth.parts {
            for &h in &height.parts {
                for &w in &width.parts {
                    let (left, right, column) = width.inside(w);
                    let (low, high, row) = height.inside(h);
                    let (near, far, slab) = depth.inside(d);
                    let first = parts.next().unwrap_or(0);
                    if left == right {
                        continue;
                    }
                    for i in near..far {
                        for j in low..high {
                            let (d, h) = (slab + (i - near) * depth.step, row + (j - low) * height.step);
                            let x = &x[(d * height.input + h) * width.input..][column..width.input];
                            let line = &mut to[first + (i * height.len + j) * width.len..][left..right];
                            if width.step == 1 {
                                copy(&x[..line.len()], line);
                            } else {
                                line.iter_mut().zip(x.iter().step_by(width.step)).for_each(|(to, &x)| *to = x);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where the windows of a result lie in the runs, and where they belong.
struct Windows {
    counts: [usize; 3],
    /// In the runs: from one window to the next, by axis; the last is 1.
    strides: [usize; 3],
    /// In the result: the first, and from one to the next.
    start: usize,
    steps: [usize; 3],
}

impl Windows {
    /// Elements of a run.
    fn run(&self) -> usize {
        (0..3).map(|k| (self.counts[k] - 1) * self.strides[k]).sum::<usize>() + 1
    }

    /// Calls `line` with each piece of a line among elements `first .. end` of a run: where in the run, where in the result,
    /// how many.
    fn lines(&self, first: usize, end: usize, mut line: impl FnMut(usize, usize, usize)) {
        let [_, height, width] = self.counts;
        let mut at = first;
        while at < end {
            let (d, rest) = (at / self.strides[0], at % self.strides[0]);
            let (h, w) = (rest / self.strides[1], rest % self.strides[1]);
            let start = at - w;
            if h < height && w < width {
                let count = (width - w).min(end - at);
                line(at, self.start + d * self.steps[0] + h * self.steps[1] + w * self.steps[2], count);
            }
            at = start + self.strides[1];
        }
    }
}

/// Weights as the kernels read them: groups of rows, and in each the factors of all rows tap by tap.
struct Weights<T: Element> {
    data: Scratch<T>,
    /// First row, rows that count, rows that are computed, where the factors are.
    groups: Vec<(usize, usize, usize, usize)>,
    len: usize,
}

impl<T: Element> Weights<T> {
    /// For each of `blocks` blocks of `w`: `rows` rows `strides[0]` apart, of `inputs` planes `strides[1]` apart, of `taps`.
    fn new(
        kernels: &Kernels<T>,
        w: &[T],
        blocks: usize,
        rows: usize,
        inputs: usize,
        strides: [usize; 2],
        taps: &[usize],
    ) -> Self {
        let (mut groups, mut len, mut row) = (Vec::new(), 0, 0);
        while row < rows {
            let computed = (kernels.rows)(rows - row);
            groups.push((row, computed.min(rows - row), computed, len));
            (row, len) = (row + computed, len + computed * inputs * taps.len());
        }
        let mut data = Scratch::new((blocks * len).max(1));
        let each = w.len() / blocks;
        for (block, w) in w.chunks_exact(each).enumerate() {
            for &(first, count, computed, at) in &groups {
                let factors = data.0[block * len + at..].chunks_exact_mut(computed);
                let places = (0..inputs).flat_map(|input| taps.iter().map(move |tap| input * strides[1] + tap));
                for (factors, place) in factors.zip(places) {
                    factors[count..].fill(T::ZERO);
                    for (r, factor) in factors[..count].iter_mut().enumerate() {
                        *factor = w[place + (first + r) * strides[0]];
                    }
                }
            }
        }
        Weights { data, groups, len }
    }
}

/// Planes that are copied and summed up, and how.
struct Sum<'a, T: Element> {
    kernels: &'a Kernels<T>,
    /// Elements of a plane, and how many planes go into a result.
    plane: usize,
    inputs: usize,
    /// Where the run of each tap begins.
    taps: Vec<usize>,
    weights: Weights<T>,
    windows: Windows,
    /// Elements of a plane of the result.
    result: usize,
}

impl<T: Element> Sum<'_, T> {
    /// Parts that a block may be cut into.
    fn chunks(&self) -> usize {
        self.windows.run().div_ceil(CHUNK)
    }

    /// Windows of chunks `chunks` and groups of rows `groups`, of the planes in `source`, to the planes from `to` on.
    fn compute(
        &self,
        block: usize,
        source: &[T],
        (chunks, groups): (std::ops::Range<usize>, std::ops::Range<usize>),
        results: &mut [T],
        to: &Start<T>,
        room: usize,
    ) {
        let run = self.windows.run();
        let reach = (self.inputs - 1) * self.plane + self.taps.iter().max().copied().unwrap_or(0);
        assert!(reach + run + SLACK <= source.len() && results.len() >= 8 * CHUNK, "runs lie inside");
        for chunk in chunks {
            let (first, end) = (chunk * CHUNK, run.min((chunk + 1) * CHUNK));
            for &(row, count, computed, at) in &self.weights.groups[groups.clone()] {
                let factors =
                    &self.weights.data.0[block * self.weights.len + at..][..computed * self.inputs * self.taps.len()];
                // SAFETY: the runs of all taps and planes, with as much after them as a kernel reads beyond, lie inside
                // `source` (asserted above), the factors are as many as computed rows, planes and taps, and `results` holds
                // as many rows of `CHUNK` elements.
                unsafe {
                    (self.kernels.tile)(
                        computed,
                        source.as_ptr().add(first),
                        (self.inputs, self.plane),
                        &self.taps,
                        factors.as_ptr(),
                        (results.as_mut_ptr(), CHUNK),
                        end - first,
                    );
                }
                for (r, results) in results.chunks_exact(CHUNK).take(count).enumerate() {
                    self.windows.lines(first, end, |from, place, count| {
                        let (from, step) = (&results[from - first..][..count], self.windows.steps[2]);
                        let place = (row + r) * self.result + place;
                        assert!(place + (count - 1) * step < room, "results lie inside");
                        // SAFETY: inside (asserted above); every result is computed once, by one thread.
                        unsafe {
                            if step == 1 {
                                copy(from, std::slice::from_raw_parts_mut(to.at(place), count));
                            } else {
                                from.iter().enumerate().for_each(|(k, &value)| *to.at(place + k * step) = value);
                            }
                        }
                    });
                }
            }
        }
    }
}

/// Lines are short: pieces of a fixed size cost less than a call that copies.
fn copy<T: Element>(from: &[T], to: &mut [T]) {
    let count = from.len();
    match from.last_chunk::<8>() {
        Some(last) if count < 128 => {
            for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.as_chunks::<8>().0) {
                *to = *from;
            }
            to[count - 8..].copy_from_slice(last);
        }
        Some(_) => to.copy_from_slice(from),
        None => to.iter_mut().zip(from).for_each(|(to, &from)| *to = from),
    }
}

/// Sums over blocks of planes `x`, copied, to blocks of planes `out`.
fn summed<T: Element>(blocks: usize, groups: usize, planes: &Planes, x: &[T], sums: &[Sum<T>], out: &mut [T]) {
    let (inputs, plane, rows) = (sums[0].inputs, planes.len(), out.len() / blocks);
    let from = x.len() / blocks / inputs;
    let start = Start(out.as_mut_ptr());
    let target = |block: usize| {
        // SAFETY: the block lies inside.
        Start(unsafe { start.at(block * rows) })
    };
    let fill = |x: &[T], source: &mut [T]| {
        x.chunks_exact(from).zip(source.chunks_exact_mut(plane)).for_each(|(x, to)| planes.copy(x, to, planes.part()));
    };
    if blocks >= 4 {
        // Blocks of little work go together.
        let work: usize = sums.iter().map(|sum| sum.windows.run() * sum.weights.len).sum();
        let together = ((1 << 18) / work.max(1)).clamp(1, blocks.div_ceil(4));
        return threads::for_each(blocks.div_ceil(together), |part| {
            let mut source = Scratch::new(inputs * plane + SLACK);
            source.0.fill(T::ZERO);
            let mut results = Scratch::new(8 * CHUNK);
            for block in part * together..blocks.min((part + 1) * together) {
                fill(&x[block * inputs * from..][..inputs * from], &mut source.0);
                for sum in sums {
                    let all = (0..sum.chunks(), 0..sum.weights.groups.len());
                    sum.compute(block % groups, &source.0, all, &mut results.0, &target(block), rows);
                }
            }
        });
    }
    let mut source = Scratch::new(inputs * plane + SLACK);
    source.0.fill(T::ZERO);
    for block in 0..blocks {
        let x = &x[block * inputs * from..][..inputs * from];
        let together = inputs.div_ceil(8);
        partition::chunks(&mut source.0[..inputs * plane], together * plane, Schedule::Parallel, |part, source| {
            fill(&x[part * together * from..], source);
        });
        for sum in sums {
            let (chunks, all) = (sum.chunks(), sum.weights.groups.len());
            let slices = if chunks >= 4 { 1 } else { all.min(4) };
            let each = all.div_ceil(slices);
            threads::for_each(chunks * slices, |unit| {
                let (chunk, slice) = (unit / slices, unit % slices);
                let part = (chunk..chunk + 1, (slice * each).min(all)..all.min((slice + 1) * each));
                let mut results = Scratch::new(8 * CHUNK);
                sum.compute(block % groups, &source.0, part, &mut results.0, &target(block), rows);
            });
        }
    }
}

/// A convolution or one of its adjoints, to be computed into what is borrowed mutably.
pub struct Task<'a, T>(pub(crate) Kind<'a, T>);

/// Which, and of what.
pub(crate) enum Kind<'a, T> {
    /// `z` of `x` and `w`.
    Forward(&'a Plan, &'a [T], &'a [T], &'a mut [T]),
    /// `x` of `w` and `z`.
    Input(&'a Plan, &'a [T], &'a [T], &'a mut [T]),
    /// `w` of `x` and `z`.
    Weight(&'a Plan, &'a [T], &'a [T], &'a mut [T]),
}

/// Computes it.
pub(crate) fn run<T: Element>(kernels: &Kernels<T>, task: Task<T>) {
    match task.0 {
        Kind::Forward(plan, x, w, z) => forward(kernels, plan, x, w, z),
        Kind::Input(plan, w, z, x) => input_gradient(kernels, plan, w, z, x),
        Kind::Weight(plan, x, z, w) => weight_gradient(kernels, plan, x, z, w),
    }
}

/// `z = conv(x, w)`.
fn forward<T: Element>(kernels: &Kernels<T>, plan: &Plan, x: &[T], w: &[T], z: &mut [T]) {
    let planes = Planes(std::array::from_fn(|k| Packed::input(&plan.axes[k])));
    let counts = plan.axes.map(|axis| axis.output);
    let all: Vec<usize> = (0..plan.taps()).collect();
    let sum = Sum {
        kernels,
        plane: planes.len(),
        inputs: plan.channels,
        taps: input_taps(plan, &planes, planes.part()),
        weights: Weights::new(kernels, w, plan.groups, plan.out, plan.channels, [plan.rows(), plan.taps()], &all),
        windows: Windows { counts, strides: planes.strides(), start: 0, steps: [counts[1] * counts[2], counts[2], 1] },
        result: plan.windows(),
    };
    summed(plan.batch * plan.groups, plan.groups, &planes, x, &[sum], z);
}

/// Where the run of each tap begins in the input's planes, whose parts are `pitch` elements apart.
fn input_taps(plan: &Plan, planes: &Planes, pitch: usize) -> Vec<usize> {
    let strides = planes.strides();
    let taps = |k: usize| {
        let (axis, packed) = (&plan.axes[k], &planes.0[k]);
        (0..axis.kernel).map(move |tap| {
            let part = tap * axis.dilation % axis.stride;
            let number = packed.parts.iter().position(|&other| other == part).unwrap_or(0);
            (number, tap * axis.dilation / axis.stride * strides[k])
        })
    };
    let counts = [1, 2].map(|k| planes.0[k].parts.len());
    let mut all = Vec::with_capacity(plan.taps());
    for (d, i) in taps(0) {
        for (h, j) in taps(1) {
            for (w, k) in taps(2) {
                all.push(((d * counts[0] + h) * counts[1] + w) * pitch + i + j + k);
            }
        }
    }
    all
}

/// How much of what [`forward`] computes is results.
pub(crate) fn efficiency(plan: &Plan) -> f64 {
    let [_, height, width] = [0, 1, 2].map(|k| plan.axes[k].output + reach(&plan.axes[k]));
    let strides = [height * width, width, 1];
    let run = (0..3).map(|k| (plan.axes[k].output - 1) * strides[k]).sum::<usize>() + 1;
    plan.windows() as f64 / run.next_multiple_of(VECTORS) as f64
}

/// Of a convolution's multiplications to what [`input_gradient`] makes, about.
pub(crate) fn input_efficiency(plan: &Plan) -> f64 {
    let [_, height, width] = plan.axes.map(|axis| Packed::output(&axis).len);
    let strides = [height * width, width, 1];
    let rows = |axis: &Axis| axis.input.div_ceil(axis.stride);
    let run = (0..3).map(|k| (rows(&plan.axes[k]) - 1) * strides[k]).sum::<usize>() + 1;
    plan.windows() as f64 / run.next_multiple_of(VECTORS) as f64
}

/// The adjoint of [`forward`] as a function of `x`.
fn input_gradient<T: Element>(kernels: &Kernels<T>, plan: &Plan, w: &[T], z: &[T], x: &mut [T]) {
    let planes = Planes(std::array::from_fn(|k| Packed::output(&plan.axes[k])));
    let strides = planes.strides();
    let size = plan.axes.map(|axis| axis.input);
    let step = [size[1] * size[2], size[2], 1];
    let mut sums = Vec::new();
    // The elements of the input that lie at one place of the windows' steps see the same taps.
    let [depth, height, width] = plan.axes.map(|axis| axis.stride);
    for number in 0..depth * height * width {
        let part = [number / (height * width), number / width % height, number % width];
        let first: [usize; 3] = std::array::from_fn(|k| {
            let axis = &plan.axes[k];
            axis.before.saturating_sub(part[k]).div_ceil(axis.stride)
        });
        let end: [usize; 3] = std::array::from_fn(|k| {
            let axis = &plan.axes[k];
            (axis.input + axis.before).saturating_sub(part[k]).div_ceil(axis.stride)
        });
        if (0..3).any(|k| end[k] <= first[k]) {
            continue;
        }
        let seen = |k: usize| {
            let axis = plan.axes[k];
            let (part, room, from) = (part[k], reach(&axis), first[k]);
            let taps = (0..axis.kernel).filter(move |tap| tap * axis.dilation % axis.stride == part);
            taps.map(move |tap| (tap, (room + from - tap * axis.dilation / axis.stride) * strides[k]))
        };
        let (mut numbers, mut taps) = (Vec::new(), Vec::new());
        for (d, i) in seen(0) {
            for (h, j) in seen(1) {
                for (w, k) in seen(2) {
                    numbers.push((d * plan.axes[1].kernel + h) * plan.axes[2].kernel + w);
                    taps.push(i + j + k);
                }
            }
        }
        let place = |k: usize| (first[k] * plan.axes[k].stride + part[k] - plan.axes[k].before) * step[k];
        let windows = Windows {
            counts: std::array::from_fn(|k| end[k] - first[k]),
            strides,
            start: (0..3).map(place).sum(),
            steps: std::array::from_fn(|k| plan.axes[k].stride * step[k]),
        };
        let rows = [plan.taps(), plan.rows()];
        let weights = Weights::new(kernels, w, plan.groups, plan.channels, plan.out, rows, &numbers);
        let (plane, result) = (planes.len(), plan.plane());
        sums.push(Sum { kernels, plane, inputs: plan.out, taps, weights, windows, result });
    }
    summed(plan.batch * plan.groups, plan.groups, &planes, z, &sums, x);
}

/// The adjoint of [`forward`] as a function of `w`. Where a line of windows ends, elements of the next are multiplied by
/// zeros.
fn weight_gradient<T: Element>(kernels: &Kernels<T>, plan: &Plan, x: &[T], z: &[T], w: &mut [T]) {
    let planes = Planes(std::array::from_fn(|k| Packed::input(&plan.axes[k])));
    let counts = plan.axes.map(|axis| axis.output);
    let windows = Windows { counts, strides: planes.strides(), start: 0, steps: [counts[1] * counts[2], counts[2], 1] };
    let parts = plan.batch.min(if plan.groups >= 8 {
        1
    } else if w.len() <= 1 << 16 {
        SUMS
    } else {
        4
    });
    let each = plan.batch.div_ceil(parts);
    let parts = plan.batch.div_ceil(each);
    // Several small images make one run.
    let (part, run) = (planes.part(), windows.run());
    let together = (TOGETHER / (plan.channels * planes.len())).clamp(1, each);
    let plane = together * planes.len();
    // Runs end with zeros up to a whole vector.
    let long = |images: usize| ((images - 1) * part + run).next_multiple_of(kernels.lanes);
    let length = long(together);
    let taps = input_taps(plan, &planes, together * part);
    let runs: Vec<usize> = (0..plan.channels).flat_map(|c| taps.iter().map(move |tap| c * plane + tap)).collect();
    let slices = if parts * plan.groups >= 4 { 1 } else { plan.out.min(4) };
    let height = plan.out.div_ceil(slices);
    let slices = plan.out.div_ceil(height);
    let len = w.len();
    let sum = |unit: usize, start: &Start<T>| {
        let (number, group, slice) = (unit / slices / plan.groups, unit / slices % plan.groups, unit % slices);
        let rows = slice * height..plan.out.min((slice + 1) * height);
        let at = number * len + group * plan.weights() + rows.start * plan.rows();
        // SAFETY: units are numbered parts, groups and slices, each once: what they write lies inside and does not overlap.
        let sums = unsafe { std::slice::from_raw_parts_mut(start.at(at), rows.len() * plan.rows()) };
        sums.fill(T::ZERO);
        let mut source = Scratch::new(plan.channels * plane + SLACK);
        source.0.fill(T::ZERO);
        let mut results = Scratch::new(rows.len() * length);
        results.0.fill(T::ZERO);
        let end = plan.batch.min((number + 1) * each);
        for first in (number * each..end).step_by(together) {
            let images = together.min(end - first);
            if images < together {
                results.0.fill(T::ZERO);
            }
            for number in 0..images {
                let block = (first + number) * plan.groups + group;
                let x = &x[block * plan.channels * plan.plane()..][..plan.channels * plan.plane()];
                let pairs = x.chunks_exact(plan.plane()).zip(source.0.chunks_exact_mut(plane));
                pairs.for_each(|(x, to)| planes.copy(x, &mut to[number * part..], together * part));
                for (row, to) in rows.clone().zip(results.0.chunks_exact_mut(length)) {
                    let z = &z[(block * plan.out + row) * plan.windows()..][..plan.windows()];
                    let to = &mut to[number * part..];
                    windows.lines(0, run, |at, place, count| copy(&z[place..][..count], &mut to[at..][..count]));
                }
            }
            let whole = long(images);
            for from in (0..whole).step_by(SEGMENT) {
                dots(kernels, (&source.0, &runs), (&results.0, length), (from, SEGMENT.min(whole - from)), sums);
            }
        }
    };
    if parts == 1 {
        let start = Start(w.as_mut_ptr());
        return threads::for_each(plan.groups * slices, |unit| sum(unit, &start));
    }
    let mut sums = Scratch::new(parts * len);
    let start = Start(sums.0.as_mut_ptr());
    threads::for_each(parts * plan.groups * slices, |unit| sum(unit, &start));
    let (first, others) = sums.0.split_at(len);
    w.copy_from_slice(first);
    for sum in others.chunks_exact(len) {
        w.iter_mut().zip(sum).for_each(|(w, &sum)| *w = w.plus(sum));
    }
}

/// Adds the dot products of rows of `z` and runs of `x`, over `count` elements from `first` on, to `sums`.
fn dots<T: Element>(
    kernels: &Kernels<T>,
    (x, runs): (&[T], &[usize]),
    (z, length): (&[T], usize),
    (first, count): (usize, usize),
    sums: &mut [T],
) {
    let rows = z.len() / length;
    assert!(runs.iter().all(|run| run + first + count <= x.len()) && first + count <= length, "runs lie inside");
    assert!(sums.len() == rows * runs.len() && count.is_multiple_of(kernels.lanes), "a sum for each row and run");
    let mut row = 0;
    while row < rows {
        let computed = (kernels.dot_rows)(rows - row);
        // SAFETY: the rows and runs lie inside for `count` elements from `first` on (asserted above), and a kernel takes no
        // more rows than there are.
        unsafe {
            (kernels.dots)(
                computed,
                (z.as_ptr().add(row * length + first), length),
                x.as_ptr().add(first),
                runs,
                count,
                &mut sums[row * runs.len()..][..computed * runs.len()],
            );
        }
        row += computed;
    }
}
