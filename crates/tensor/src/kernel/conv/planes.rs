//! Planes copied with their padding, for convolutions without columns, and where windows are in them.
//!
//! Where windows move by more than one element, planes are split: element `i` of an axis of stride `s` lies in part `i mod s`.
//! Then what a tap of the kernel sees of all windows is one run of memory, over the ends of rows too.

use crate::kernel::conv::geometry::WindowAxis;

/// One axis of planes, copied.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// The parts that are seen: which elements, modulo `step`.
    pub(crate) parts: Vec<usize>,
    step: usize,
    /// Elements of a part.
    pub(crate) len: usize,
    /// How far before the first element of the plane a part begins, in elements of the plane.
    before: usize,
    /// Elements of the plane.
    input: usize,
}

impl Packed {
    /// The input of a convolution.
    pub(crate) fn input(axis: &WindowAxis) -> Packed {
        let mut parts: Vec<usize> = (0..axis.kernel).map(|tap| tap * axis.dilation % axis.stride).collect();
        parts.sort_unstable();
        parts.dedup();
        let len = axis.output + reach(axis);
        Packed { parts, step: axis.stride, len, before: axis.before, input: axis.input }
    }

    /// The result of a convolution, in one part.
    pub(crate) fn output(axis: &WindowAxis) -> Packed {
        let (room, last) = (reach(axis), (axis.input - 1 + axis.before) / axis.stride);
        let len = room + axis.output.max(last + 1);
        Packed { parts: vec![0], step: 1, len, before: room, input: axis.output }
    }

    /// The elements of a part that lie inside, first and one past the last, and where the first is.
    pub(crate) fn inside(&self, part: usize) -> (usize, usize, usize) {
        let first = self.before.saturating_sub(part).div_ceil(self.step);
        let end = (self.input + self.before).saturating_sub(part).div_ceil(self.step).min(self.len);
        let first = first.min(end);
        (first, end, (first * self.step + part).saturating_sub(self.before))
    }
}

/// Elements of a part from what the first tap sees to what the last sees.
pub(crate) fn reach(axis: &WindowAxis) -> usize {
    (axis.kernel - 1) * axis.dilation / axis.stride
}

/// All axes of planes, copied.
pub(crate) struct Planes(pub(crate) [Packed; 3]);

impl Planes {
    /// Elements of one part.
    pub(crate) fn part(&self) -> usize {
        self.0.iter().map(|axis| axis.len).product()
    }

    /// Elements of all parts of a plane.
    pub(crate) fn len(&self) -> usize {
        self.part() * self.0.iter().map(|axis| axis.parts.len()).product::<usize>()
    }

    /// Elements from one place to the next, by axis.
    pub(crate) fn strides(&self) -> [usize; 3] {
        [self.0[1].len * self.0[2].len, self.0[2].len, 1]
    }

    /// Copies one plane, its parts `pitch` elements apart, to where all is zero but, maybe, another plane's elements.
    pub(crate) fn copy<T: Copy>(&self, x: &[T], to: &mut [T], pitch: usize) {
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
pub(crate) struct WindowRun {
    pub(crate) counts: [usize; 3],
    /// In the runs: from one window to the next, by axis; the last is 1.
    pub(crate) strides: [usize; 3],
    /// In the result: the first, and from one to the next.
    pub(crate) start: usize,
    pub(crate) steps: [usize; 3],
}

impl WindowRun {
    /// Elements of a run.
    pub(crate) fn run(&self) -> usize {
        (0..3).map(|k| (self.counts[k] - 1) * self.strides[k]).sum::<usize>() + 1
    }

    /// Calls `visit` with each piece of a row among elements `first .. end` of a run: where in the run, where in the result,
    /// how many.
    pub(crate) fn segments(&self, first: usize, end: usize, mut visit: impl FnMut(usize, usize, usize)) {
        let [_, height, width] = self.counts;
        let mut at = first;
        while at < end {
            let (d, rest) = (at / self.strides[0], at % self.strides[0]);
            let (h, w) = (rest / self.strides[1], rest % self.strides[1]);
            let start = at - w;
            if h < height && w < width {
                let count = (width - w).min(end - at);
                visit(at, self.start + d * self.steps[0] + h * self.steps[1] + w * self.steps[2], count);
            }
            at = start + self.strides[1];
        }
    }

    /// Where the first window at element `at` of the run or behind it is in the result; `None` where there is none.
    pub(crate) fn place_from(&self, at: usize) -> Option<usize> {
        let [depth, height, width] = self.counts;
        let (mut d, rest) = (at / self.strides[0], at % self.strides[0]);
        let (mut h, mut w) = (rest / self.strides[1], rest % self.strides[1]);
        if w >= width {
            (h, w) = (h + 1, 0);
        }
        if h >= height {
            (d, h, w) = (d + 1, 0, 0);
        }
        (d < depth).then(|| self.start + d * self.steps[0] + h * self.steps[1] + w * self.steps[2])
    }
}

/// Rows are short: pieces of a fixed size cost less than a call that copies.
pub(crate) fn copy<T: Copy>(from: &[T], to: &mut [T]) {
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
