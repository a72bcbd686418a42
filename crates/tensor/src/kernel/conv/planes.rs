//! The planes (channels of an image) that direct convolutions copy together with their padding, and the positions of windows in these
//! copies.
//!
//! If the stride `s` is greater than one, planes are split into parts. Element `i` of an axis, counted from the start of the padding, belongs
//! to part `i mod s`. Then the elements that a tap (a position in the window) multiplies over all windows form one contiguous *run*. The run
//! continues past the ends of rows.

use crate::kernel::conv::geometry::{Geometry, WindowAxis};

/// One axis of a plane (a channel of an image) that is copied with its padding, and split into parts by the stride.
#[derive(Clone, Debug)]
pub(crate) struct PackedAxis {
    /// The parts that a tap (a position in the window) reads. Part `i` has the elements whose padded position has the remainder `i` modulo
    /// `stride`.
    pub(crate) parts: Vec<usize>,
    stride: usize,
    /// The number of elements in a part, with padding.
    pub(crate) part_len: usize,
    /// The padding before the first element of the plane, in elements.
    padding_before: usize,
    /// The number of elements of the plane along the axis, without padding.
    plane_size: usize,
}

impl PackedAxis {
    /// Describes one axis of the planes of a convolution's input, which are copied with their padding.
    pub(crate) fn of_input(axis: &WindowAxis) -> PackedAxis {
        let mut parts: Vec<usize> = (0..axis.kernel).map(|tap| tap * axis.dilation % axis.stride).collect();
        parts.sort_unstable();
        parts.dedup();
        let part_len = axis.output + reach(axis);
        PackedAxis { parts, stride: axis.stride, part_len, padding_before: axis.padding_before, plane_size: axis.input }
    }

    /// Describes one axis of the planes of a convolution's result. The planes are copied with zeros around them. They are not split by the
    /// stride, so they have a single part.
    pub(crate) fn of_output(axis: &WindowAxis) -> PackedAxis {
        let (padding_before, last) = (reach(axis), (axis.input - 1 + axis.padding_before) / axis.stride);
        let part_len = padding_before + axis.output.max(last + 1);
        PackedAxis { parts: vec![0], stride: 1, part_len, padding_before, plane_size: axis.output }
    }

    /// Returns the start and the end of the half-open range of a part's elements that are inside the plane, not in the padding. The third
    /// number is the position of the first of these elements in the plane.
    pub(crate) fn range_inside(&self, part: usize) -> (usize, usize, usize) {
        let first = self.padding_before.saturating_sub(part).div_ceil(self.stride);
        let end = (self.plane_size + self.padding_before).saturating_sub(part).div_ceil(self.stride).min(self.part_len);
        let first = first.min(end);
        (first, end, (first * self.stride + part).saturating_sub(self.padding_before))
    }
}

/// Returns the distance between the elements that the first tap and the last tap of a window read. The distance is in elements of a part of
/// the plane, rounded down. A part has every `stride`-th element along the axis.
pub(crate) fn reach(axis: &WindowAxis) -> usize {
    (axis.kernel - 1) * axis.dilation / axis.stride
}

pub(crate) fn row_major_strides([_, height, width]: [usize; 3]) -> [usize; 3] {
    [height * width, width, 1]
}

/// The three axes of planes that are copied with their padding: depth, height and width.
pub(crate) struct PackedPlanes(pub(crate) [PackedAxis; 3]);

impl PackedPlanes {
    /// Returns the number of elements in a part of a copied plane. A part has the elements with one remainder modulo the stride, along each
    /// axis.
    pub(crate) fn part_len(&self) -> usize {
        self.0.iter().map(|axis| axis.part_len).product()
    }

    /// Returns the number of elements in all parts of a copied plane.
    pub(crate) fn plane_len(&self) -> usize {
        self.part_len() * self.0.iter().map(|axis| axis.parts.len()).product::<usize>()
    }

    /// Returns the stride of each axis within a part of a copied plane.
    pub(crate) fn strides(&self) -> [usize; 3] {
        row_major_strides([0, 1, 2].map(|k| self.0[k].part_len))
    }

    /// Copies a plane `x` to `to`, split into the parts that the stride separates. The parts begin `pitch` elements apart in `to`. The
    /// padding in `to` must already be zero.
    pub(crate) fn copy<T: Copy>(&self, x: &[T], to: &mut [T], pitch: usize) {
        let [depth, height, width] = &self.0;
        let mut parts = (0..).step_by(pitch);
        for &d in &depth.parts {
            for &h in &height.parts {
                for &w in &width.parts {
                    let (left, right, column) = width.range_inside(w);
                    let (low, high, row) = height.range_inside(h);
                    let (near, far, slab) = depth.range_inside(d);
                    let first = parts.next().unwrap_or(0);
                    if left == right {
                        continue;
                    }
                    for i in near..far {
                        for j in low..high {
                            let (d, h) = (slab + (i - near) * depth.stride, row + (j - low) * height.stride);
                            let x = &x[(d * height.plane_size + h) * width.plane_size..][column..width.plane_size];
                            let row = &mut to[first + (i * height.part_len + j) * width.part_len..][left..right];
                            if width.stride == 1 {
                                copy_row(&x[..row.len()], row);
                            } else {
                                row.iter_mut().zip(x.iter().step_by(width.stride)).for_each(|(to, &x)| *to = x);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The positions of the windows of a convolution, each both in a run (a contiguous range of a copied plane) and in the result itself.
pub(crate) struct WindowRun {
    pub(crate) counts: [usize; 3],
    /// The distance between neighbouring windows in a run, by axis. The last stride is 1.
    pub(crate) run_strides: [usize; 3],
    /// The position of the first window's value in the result.
    pub(crate) result_start: usize,
    /// The distance between the values of neighbouring windows in the result, by axis.
    pub(crate) result_strides: [usize; 3],
}

impl WindowRun {
    /// Returns the positions of all windows of a convolution. The values of the windows are stored in row-major order in the result.
    pub(crate) fn of_all_windows(geometry: &Geometry, planes: &PackedPlanes) -> Self {
        let counts = geometry.axes.map(|axis| axis.output);
        WindowRun { counts, run_strides: planes.strides(), result_start: 0, result_strides: row_major_strides(counts) }
    }

    /// Returns the length of a run: the number of elements of a copied plane from the first window to the last.
    pub(crate) fn len(&self) -> usize {
        (0..3).map(|k| (self.counts[k] - 1) * self.run_strides[k]).sum::<usize>() + 1
    }

    /// Splits the elements `first .. end` of a run (a contiguous range of a copied plane) into rows of windows, without the elements
    /// between rows. Calls `visit` for each row or part of a row, with its position in the run, its position in the result, and its length.
    pub(crate) fn segments(&self, first: usize, end: usize, mut visit: impl FnMut(usize, usize, usize)) {
        let [_, height, width] = self.counts;
        let mut at = first;
        while at < end {
            let (d, rest) = (at / self.run_strides[0], at % self.run_strides[0]);
            let (h, w) = (rest / self.run_strides[1], rest % self.run_strides[1]);
            let start = at - w;
            if h < height && w < width {
                let count = (width - w).min(end - at);
                visit(
                    at,
                    self.result_start
                        + d * self.result_strides[0]
                        + h * self.result_strides[1]
                        + w * self.result_strides[2],
                    count,
                );
            }
            at = start + self.run_strides[1];
        }
    }

    /// Finds the first window that begins at or after element `at` of the run (a contiguous range of a copied plane). Returns the position
    /// of this window's value in the result, or `None` if no window begins there.
    pub(crate) fn result_position_from(&self, at: usize) -> Option<usize> {
        let [depth, height, width] = self.counts;
        let (mut d, rest) = (at / self.run_strides[0], at % self.run_strides[0]);
        let (mut h, mut w) = (rest / self.run_strides[1], rest % self.run_strides[1]);
        if w >= width {
            (h, w) = (h + 1, 0);
        }
        if h >= height {
            (d, h, w) = (d + 1, 0, 0);
        }
        (d < depth).then(|| {
            self.result_start + d * self.result_strides[0] + h * self.result_strides[1] + w * self.result_strides[2]
        })
    }
}

/// Copies a row. For a short row, copies of chunks of a fixed size cost less than a call of `memcpy`.
#[inline(always)]
pub(crate) fn copy_row<T: Copy>(from: &[T], to: &mut [T]) {
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
