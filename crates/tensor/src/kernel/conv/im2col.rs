//! The matrix of columns of a convolution: each column holds the elements of one window (Chellapilla, Puri and Simard 2006, "im2col"). It
//! is computed for one tile of windows at a time.

use crate::kernel::conv::geometry::Geometry;
use crate::kernel::conv::planes::copy_row;
use crate::kernel::matmul::product::Products;
use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::scalar::cpu::dispatched;

impl Geometry {
    /// Returns the channel, and the row and the column in the window, to which the row `number` of the matrix of columns belongs. The
    /// window must have depth 1.
    fn row_position(&self, number: usize) -> (usize, usize, usize) {
        let [_, height, width] = &self.axes;
        (number / (height.kernel * width.kernel), number / width.kernel % height.kernel, number % width.kernel)
    }

    /// Returns whether [`gather_rows`] can be used: images have a depth of 1 and short rows, and windows with stride 1 use each row several
    /// times.
    fn has_short_rows(&self) -> bool {
        let [depth, height, width] = &self.axes;
        depth.input == 1
            && depth.kernel == 1
            && depth.padding_before == 0
            && depth.output == 1
            && height.kernel > 1
            && height.stride == 1
            && width.stride == 1
            && width.output <= 64
    }

    /// Returns the number of elements in the shifted copies of all image rows of a group. There is one copy of each row for each column of
    /// the window.
    fn shifted_rows_len(&self) -> usize {
        self.channels * self.axes[2].kernel * self.axes[1].input * self.axes[2].output
    }
}

/// Writes the columns `first .. first + count` of the matrix of columns, in row-major order. The matrix has one row for each channel and
/// tap (a position in the window). Column `i` of the row holds the element of window `i` at this tap. Elements in the padding are zero.
pub(crate) fn gather<T: Products>(
    geometry: &Geometry,
    x: &[T],
    first: usize,
    count: usize,
    columns: &mut [T],
) -> Result<(), AllocationError> {
    if geometry.has_short_rows() && count == geometry.window_count() {
        gather_rows(geometry, x, &mut Scratch::new(geometry.shifted_rows_len())?, columns);
    } else {
        gather_segments(geometry, x, first, count, columns);
    }
    Ok(())
}

/// Adds each element of the matrix of columns to the element of `x` from which [`gather`] reads it: the adjoint of [`gather`].
pub(crate) fn scatter<T: Products>(
    geometry: &Geometry,
    columns: &[T],
    first: usize,
    count: usize,
    x: &mut [T],
) -> Result<(), AllocationError> {
    if geometry.has_short_rows() && count == geometry.window_count() {
        scatter_rows(geometry, columns, &mut Scratch::new(geometry.shifted_rows_len())?, x);
    } else {
        scatter_segments(geometry, columns, first, count, x);
    }
    Ok(())
}

// Small images have short rows, and finding the elements to copy costs about as much as copying them. So each image row is first stored
// once for each column of the window, shifted by the column's offset. The rows of the matrix then consist of whole stored rows.
dispatched! {
    fn gather_rows<T: Products>(geometry: &Geometry, x: &[T], rows: &mut [T], columns: &mut [T]) {
        let [_, height, width] = &geometry.axes;
        let (size, block) = (width.output, height.input * width.output);
        for (number, rows) in rows.chunks_exact_mut(block).enumerate() {
            let (channel, kw) = (number / width.kernel, number % width.kernel);
            let (left, right) = width.windows_inside(kw);
            let x = &x[channel * geometry.input_plane_len()..][..geometry.input_plane_len()];
            for (row, x) in rows.chunks_exact_mut(size).zip(x.chunks_exact(width.input)) {
                if left < right {
                    copy_row(&x[left + kw * width.dilation - width.padding_before..][..right - left], &mut row[left..right]);
                }
                row[..left].fill(T::ZERO);
                row[right..].fill(T::ZERO);
            }
        }
        for (row, columns) in columns.chunks_exact_mut(geometry.window_count()).take(geometry.column_rows()).enumerate() {
            let (channel, kh, kw) = geometry.row_position(row);
            let (low, high) = height.windows_inside(kh);
            if low < high {
                let from = (channel * width.kernel + kw) * block + (low + kh * height.dilation - height.padding_before) * size;
                columns[low * size..high * size].copy_from_slice(&rows[from..][..(high - low) * size]);
            }
            columns[..low * size].fill(T::ZERO);
            columns[high * size..].fill(T::ZERO);
        }
    }
}

dispatched! {
    fn scatter_rows<T: Products>(geometry: &Geometry, columns: &[T], rows: &mut [T], x: &mut [T]) {
        let [_, height, width] = &geometry.axes;
        let (size, block) = (width.output, height.input * width.output);
        rows.fill(T::ZERO);
        for (row, columns) in columns.chunks_exact(geometry.window_count()).take(geometry.column_rows()).enumerate() {
            let (channel, kh, kw) = geometry.row_position(row);
            let (low, high) = height.windows_inside(kh);
            if low < high {
                let to = (channel * width.kernel + kw) * block + (low + kh * height.dilation - height.padding_before) * size;
                add(&columns[low * size..high * size], &mut rows[to..][..(high - low) * size]);
            }
        }
        for (number, rows) in rows.chunks_exact(block).enumerate() {
            let (channel, kw) = (number / width.kernel, number % width.kernel);
            let (left, right) = width.windows_inside(kw);
            let x = &mut x[channel * geometry.input_plane_len()..][..geometry.input_plane_len()];
            if left < right {
                for (row, x) in rows.chunks_exact(size).zip(x.chunks_exact_mut(width.input)) {
                    add(&row[left..right], &mut x[left + kw * width.dilation - width.padding_before..][..right - left]);
                }
            }
        }
    }
}

dispatched! {
    fn gather_segments<T: Products>(geometry: &Geometry, x: &[T], first: usize, count: usize, columns: &mut [T]) {
        for_each_segment(geometry, first, count, Gather { x, columns });
    }
}

dispatched! {
    fn scatter_segments<T: Products>(geometry: &Geometry, columns: &[T], first: usize, count: usize, x: &mut [T]) {
        for_each_segment(geometry, first, count, Scatter { columns, x });
    }
}

/// Adds each element of `from` to the element of `to` at the same position.
#[inline(always)]
fn add<T: Products>(from: &[T], to: &mut [T]) {
    let ((whole, last), (chunks, rest)) = (to.as_chunks_mut::<8>(), from.as_chunks::<8>());
    for (to, from) in whole.iter_mut().zip(chunks) {
        for i in 0..8 {
            to[i] = to[i].plus(from[i]);
        }
    }
    last.iter_mut().zip(rest).for_each(|(to, &from)| *to = to.plus(from));
}

/// The operations that [`for_each_segment`] calls for each piece of a row of the matrix of columns. All elements of a piece are either
/// inside the convolution's input or in its padding.
trait SegmentVisitor {
    /// Handles `count` elements of the input `x`, at the positions `place`, `place + step` and so on. `position` is the position of the
    /// first of these elements in the matrix of columns, which is row-major.
    fn visit_input(&mut self, position: usize, place: usize, step: usize, count: usize);
    /// Handles `count` elements of the padding. `position` is the position of the first of these elements in the matrix of columns, which
    /// is row-major.
    fn visit_padding(&mut self, position: usize, count: usize);
}

#[inline(always)]
fn for_each_segment(geometry: &Geometry, first: usize, count: usize, mut visitor: impl SegmentVisitor) {
    let [depth, height, width] = &geometry.axes;
    let (end, plane) = (first + count, geometry.input_plane_len());
    // Loops over the rows of windows. The windows `first .. first + count` may cover only a part of the first row and of the last row.
    let (row, within) = (first / width.output, first % width.output);
    let (first_d, first_h) = (row / height.output, row % height.output);
    let mut row = 0;
    for channel in 0..geometry.channels {
        for kd in 0..depth.kernel {
            for kh in 0..height.kernel {
                for kw in 0..width.kernel {
                    let (left, right) = width.windows_inside(kw);
                    let shift =
                        left * width.stride + kw * width.dilation - if left < right { width.padding_before } else { 0 };
                    let (mut d, mut h, mut from, mut at) = (first_d, first_h, within, first);
                    while at < end {
                        let to = width.output.min(from + end - at);
                        let position = row * count + at - first;
                        let inside = match (depth.input_position(d, kd), height.input_position(h, kh)) {
                            (Some(d), Some(h)) => Some(channel * plane + (d * height.input + h) * width.input),
                            _ => None,
                        };
                        match inside {
                            Some(begin) if left < right => {
                                let (low, high) = (left.clamp(from, to), right.clamp(from, to));
                                if low > from {
                                    visitor.visit_padding(position, low - from);
                                }
                                if high > low {
                                    let place = begin + shift + (low - left) * width.stride;
                                    visitor.visit_input(position + low - from, place, width.stride, high - low);
                                }
                                if to > high {
                                    visitor.visit_padding(position + high - from, to - high);
                                }
                            }
                            _ => visitor.visit_padding(position, to - from),
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

impl<T: Products> SegmentVisitor for Gather<'_, T> {
    #[inline(always)]
    fn visit_input(&mut self, position: usize, place: usize, step: usize, count: usize) {
        let to = &mut self.columns[position..position + count];
        if step != 1 {
            let from = self.x[place..].iter().step_by(step);
            return to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
        }
        copy_row(&self.x[place..place + count], to);
    }

    #[inline(always)]
    fn visit_padding(&mut self, position: usize, count: usize) {
        self.columns[position..position + count].fill(T::ZERO);
    }
}

struct Scatter<'a, T> {
    columns: &'a [T],
    x: &'a mut [T],
}

impl<T: Products> SegmentVisitor for Scatter<'_, T> {
    #[inline(always)]
    fn visit_input(&mut self, position: usize, place: usize, step: usize, count: usize) {
        let from = &self.columns[position..position + count];
        if step != 1 {
            let to = self.x[place..].iter_mut().step_by(step);
            return to.zip(from).for_each(|(to, &from)| *to = to.plus(from));
        }
        add(from, &mut self.x[place..place + count]);
    }

    #[inline(always)]
    fn visit_padding(&mut self, _position: usize, _count: usize) {}
}
