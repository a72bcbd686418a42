//! Reads elements at arbitrary positions (gather), adds or writes elements at arbitrary positions (scatter), and writes elements to a view
//! ([`embed`]).
//!
//! The caller checks that the positions are in bounds. All loops but [`sample`] and [`sample_nearest`] run on the calling thread. Additions
//! happen in the order of the source's elements.
#![allow(clippy::needless_range_loop)]

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill::{self, copy_strided, write_strided};
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::memory::partition;
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::blocks::{BLOCK, MIN_PARALLEL, TASK};
use crate::thresholds::grid::MAX_COPIED_PER_POINT;
use crate::{Axes, Element, Float, Layout, Reduction};

/// The number of zeros on each side of a copied plane. A neighbour of a [`GridPoint`] is at most two rows and two columns outside of a plane.
const MARGIN: usize = 2;

/// Sets `out[i]` to `x[positions[i]]`. A position is an index into the row-major order of `x`.
pub(crate) fn gather<T: Element>(x: Source<T>, positions: Source<i64>, out: &mut [T]) {
    let from = IterationSpace::new(x.layout.shape(), [x.layout]);
    let at = IterationSpace::new(positions.layout.shape(), [positions.layout]);
    let start = x.layout.offset();
    let contiguous = x.layout.is_contiguous();
    if let (true, Some(Operand::Slice(positions))) = (contiguous && !out.is_empty(), positions.as_operand()) {
        let elements = &x.data[start..];
        return out.iter_mut().zip(positions).for_each(|(out, &position)| *out = elements[position as usize]);
    }
    for (i, out) in out.iter_mut().enumerate() {
        let position = positions.data[at.position(0, i)] as usize;
        *out = x.data[if contiguous { start + position } else { from.position(0, position) }];
    }
}

/// The planes that [`sample`] and [`sample_nearest`] read. A plane is a matrix in row-major order, with 0 outside of its rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Planes {
    height: usize,
    width: usize,
    /// The number of planes of an image. These planes share the points of the image.
    channels: usize,
    /// The number of points of an image.
    count: usize,
    /// The number of zeros on each side of the rows and columns of a copy of the plane, or 0 if the plane is read without a copy.
    margin: usize,
}

impl Planes {
    /// Returns the planes of images `[.., channels, height, width]`, which are read at `count` points per plane. If `has_neighbours` is true,
    /// a point reads several elements. Only then may the planes be copied, because a single element needs only one check.
    pub(crate) fn new([channels, height, width]: [usize; 3], count: usize, has_neighbours: bool) -> Self {
        let is_copied = has_neighbours && height.saturating_mul(width) <= count.saturating_mul(MAX_COPIED_PER_POINT);
        Planes { height, width, channels, count, margin: if is_copied { MARGIN } else { 0 } }
    }

    /// Returns the height and the width of a plane with its margins.
    fn sizes(&self) -> (usize, usize) {
        (self.height + 2 * self.margin, self.width + 2 * self.margin)
    }

    /// Returns the position of the element in row `row` and column `column`, which must be inside of the plane, in a plane with margins.
    fn position(&self, row: usize, column: usize) -> usize {
        (row + self.margin) * self.sizes().1 + column + self.margin
    }

    /// Returns the position of the element in row `row` and column `column` in a plane with margins. For an element outside of the plane,
    /// returns the position of a zero in the margin, or `usize::MAX` if there are no margins.
    pub(crate) fn nearest<T: Float>(&self, row: T, column: T) -> usize {
        let is_index = |place: T, size: usize| (0.0..size as f64).contains(&place.to_f64());
        if is_index(row, self.height) && is_index(column, self.width) {
            return self.position(row.to_f64() as usize, column.to_f64() as usize);
        }
        if self.margin > 0 { 0 } else { usize::MAX }
    }

    /// Calls `f` for each plane of `x`, with the index of its image, the plane with its margins, and the slice of `out` for the plane's
    /// results.
    fn for_each<T: Float>(
        &self,
        x: &[T],
        out: &mut [T],
        f: impl Fn(usize, &[T], &mut [T]) + Sync,
    ) -> Result<(), AllocationError> {
        let Planes { height, width, channels, count, margin } = *self;
        let planes = (TASK / count.max(1)).max(1);
        let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
        partition::try_chunks(out, planes * count.max(1), schedule, |task, out| {
            let (rows, columns) = self.sizes();
            let mut copy = Scratch::zeroed(if margin > 0 { rows * columns } else { 0 })?;
            for (number, out) in (task * planes..).zip(out.chunks_exact_mut(count)) {
                let plane = &x[number * height * width..][..height * width];
                if margin == 0 {
                    f(number / channels, plane, out);
                    continue;
                }
                let inside = copy.chunks_exact_mut(columns).skip(margin);
                inside.zip(plane.chunks_exact(width)).for_each(|(to, row)| to[margin..][..width].copy_from_slice(row));
                f(number / channels, &copy, out);
            }
            Ok(())
        })
    }
}

/// A point between the elements of a plane.
#[derive(Clone, Copy)]
pub(crate) struct GridPoint<T> {
    /// The row and the column of the neighbour above and to the left of the point. Either may be outside of the plane.
    corner: [isize; 2],
    /// The position of this neighbour in a plane with margins if all four neighbours are inside of it, and `usize::MAX` otherwise.
    inside: usize,
    /// The weights of the four neighbours, in row-major order.
    weights: [T; 4],
}

impl<T: Float> GridPoint<T> {
    /// Returns the point in column `x` and row `y` of the planes. `left` and `top` are `x` and `y`, rounded down. A neighbour's weight is
    /// the area of the rectangle between the point and the opposite neighbour. A coordinate that is not finite gives weights of NaN.
    pub(crate) fn new([x, y]: [T; 2], [left, top]: [T; 2], planes: &Planes) -> Self {
        let (right, bottom) = (x - left, y - top);
        let (rest, below) = (T::ONE - right, T::ONE - bottom);
        let corner = [whole_coordinate(top, planes.height), whole_coordinate(left, planes.width)];
        let (height, width) = planes.sizes();
        let [row, column] = corner.map(|place| place + planes.margin as isize);
        let fits = |place: isize, size: usize| (0..size as isize - 1).contains(&place);
        let inside =
            if fits(row, height) && fits(column, width) { row as usize * width + column as usize } else { usize::MAX };
        GridPoint { corner, inside, weights: [below * rest, below * right, bottom * rest, bottom * right] }
    }

    /// Returns the elements of the four neighbours of the point in a plane without margins. A neighbour outside of the plane counts as 0.
    fn neighbours(&self, plane: &[T], (height, width): (usize, usize)) -> [T; 4] {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(down, across)| {
            let (row, column) = (self.corner[0] + down, self.corner[1] + across);
            let inside = (0..height as isize).contains(&row) && (0..width as isize).contains(&column);
            if inside { plane[row as usize * width + column as usize] } else { T::ZERO }
        })
    }
}

/// Converts a whole coordinate to an integer. Coordinates below -2 and NaN become -2. Coordinates above `size` become `size`.
fn whole_coordinate<T: Float>(place: T, size: usize) -> isize {
    // A conversion of a number that is out of range gives the nearest integer.
    if place >= T::from_f64(-2.0) { (place.to_f64() as isize).min(size as isize) } else { -2 }
}

/// Interpolates `x`: writes, for each plane of `x` and each point, the weighted sum of the point's four neighbours in the plane. `points` has
/// the points of all images.
pub(crate) fn sample<T: Float>(
    x: &[T],
    planes: &Planes,
    points: &[GridPoint<T>],
    out: &mut [T],
) -> Result<(), AllocationError> {
    let sizes = planes.sizes();
    planes.for_each(x, out, |image, plane, out| {
        let width = sizes.1;
        for (out, point) in out.iter_mut().zip(&points[image * planes.count..]) {
            let near = plane.get(point.inside..).and_then(|rest| rest.get(..width + 2));
            let [a, b, c, d] = match near {
                Some(near) => [near[0], near[1], near[width], near[width + 1]],
                None => point.neighbours(plane, sizes),
            };
            let [e, f, g, h] = point.weights;
            *out = a * e + b * f + c * g + d * h;
        }
    })
}

/// Writes, for each plane of `x` and each position of [`Planes::nearest`], the element at this position. `positions` has the positions of
/// all images.
pub(crate) fn sample_nearest<T: Float>(
    x: &[T],
    planes: &Planes,
    positions: &[usize],
    out: &mut [T],
) -> Result<(), AllocationError> {
    planes.for_each(x, out, |image, plane, out| {
        for (out, &position) in out.iter_mut().zip(&positions[image * planes.count..]) {
            *out = plane.get(position).copied().unwrap_or(T::ZERO);
        }
    })
}

/// Adds `x[i]` to `out[positions[i]]` for every `i`. `out` is row-major.
pub(crate) fn scatter_add<T: Element>(x: Source<T>, positions: Source<i64>, out: &mut [T]) {
    if positions.layout.numel() == 0 {
        return;
    }
    if let (Some(Operand::Slice(x)), Some(Operand::Slice(positions))) = (x.as_operand(), positions.as_operand()) {
        return T::accumulate_at(Reduction::Sum, out, positions, x);
    }
    let space = IterationSpace::new(x.layout.shape(), [x.layout]);
    let at = IterationSpace::new(positions.layout.shape(), [positions.layout]);
    for i in 0..positions.layout.numel() {
        let position = positions.data[at.position(0, i)] as usize;
        T::accumulate(Reduction::Sum, &mut out[position..=position], &[x.data[space.position(0, i)]]);
    }
}

/// The values that [`scatter`] reads: a slice, or one number for all positions.
pub(crate) type Values<'a, T> = Operand<'a, T>;

/// Combines `out[positions[i]]` with `x[i]` by `op` for every `i`, in order. If `op` is `None`, sets `out[positions[i]]` to `x[i]`.
pub(crate) fn scatter<T: Element>(op: Option<Reduction>, x: Operand<T>, positions: &[i64], out: &mut [T]) {
    match (op, x) {
        (None, Operand::Slice(x)) => positions.iter().zip(x).for_each(|(&position, &x)| out[position as usize] = x),
        (None, Operand::Splat(x)) => positions.iter().for_each(|&position| out[position as usize] = x),
        (Some(op), Operand::Slice(x)) => T::accumulate_at(op, out, positions, x),
        (Some(op), Operand::Splat(x)) => {
            let row = [x; 64];
            positions.chunks(row.len()).for_each(|positions| T::accumulate_at(op, out, positions, &row));
        }
    }
}

crate::scalar::cpu::dispatched! {
    /// Sets `out[i]` to `first + i * step + index[i] * stride`.
    pub(crate) fn positions_of_row(first: i64, step: i64, stride: i64, index: &[i64], out: &mut [i64]) {
        let index = &index[..out.len()];
        for i in 0..out.len() {
            out[i] = first + i as i64 * step + index[i] * stride;
        }
    }

    /// Returns true if all indices are in `0 .. size`.
    pub(crate) fn all_within(index: &[i64], size: usize) -> bool {
        // A negative index becomes a large unsigned number. The loop has no early exit, so that the compiler vectorizes it.
        let mut within = true;
        for i in 0..index.len() {
            within &= (index[i] as u64) < size as u64;
        }
        within
    }
}

/// Writes `x` to a part of `out`: along dimension `axis`, to the indices from `start` on. Writes zeros to the other elements of `out`, which is
/// row-major and has `size` indices along this dimension. In the other dimensions, it has the sizes of `x`.
pub(crate) fn embed_slice<T: Element>(x: Source<T>, (axis, start, size): (usize, usize, usize), out: &mut [T]) {
    let shape = x.layout.shape();
    let inner: usize = shape[axis + 1..].iter().product();
    let (first, end) = (start * inner, (start + shape[axis]) * inner);
    for row in out.chunks_exact_mut((size * inner).max(1)) {
        row[..first].fill(T::ZERO);
        row[end..].fill(T::ZERO);
    }
    let window = Layout::contiguous(shape.with_size(axis, size)).slice(axis, start, shape[axis], 1);
    embed(x, &window, false, out);
}

/// Writes each element of `x` to its position in `window`, a layout over `out` with the shape of `x`. The elements of `out` outside the
/// window are not written. If `shared` is true, several elements may have the same position. Then all elements are added to `out`, and
/// callers pass zeros or addends in `out`. Otherwise the elements are stored, because the sum of 0 and an element -0 would be 0.
pub(crate) fn embed<T: Element>(x: Source<T>, window: &Layout, shared: bool, out: &mut [T]) {
    if window.numel() == 0 {
        return;
    }
    let space = IterationSpace::new(window.shape(), [x.layout, window]);
    if !shared && fill::has_adjacent_elements(&space) {
        return fill::copy_rows(&space, x.data, out);
    }
    let (run, [from_step, to_step]) = space.loop_of(space.depth() - 1);
    let (mut terms, mut sums) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
    let place = |position: usize, i: usize, step: isize| (position as isize + i as isize * step) as usize;
    space.for_each_row(&mut |[from, to]| {
        for first in (0..run).step_by(BLOCK) {
            let (terms, sums) = (&mut terms[..BLOCK.min(run - first)], &mut sums[..BLOCK.min(run - first)]);
            let (to, from) = (place(to, first, to_step), place(from, first, from_step));
            copy_strided(x.data, from, from_step, terms);
            match (shared, to_step) {
                (true, 1) => T::accumulate(Reduction::Sum, &mut out[to..to + terms.len()], terms),
                (true, 0) => {
                    terms.iter().for_each(|term| T::accumulate(Reduction::Sum, &mut out[to..=to], &[*term]));
                }
                (true, _) => {
                    copy_strided(out, to, to_step, sums);
                    T::accumulate(Reduction::Sum, sums, terms);
                    write_strided(sums, to, to_step, out);
                }
                (false, _) => write_strided(terms, to, to_step, out),
            }
        }
    });
}

/// Does the same as [`embed`], with the same order of additions, if `x` consists of windows that may overlap. The windows are numbered
/// along dimension `axis`, and the last dimension has the elements of a window. The inner loop is over the elements of a window, or over
/// the windows if that loop is longer. In the second case, the outer loop goes from the last element of a window to the first, because this
/// keeps the order of additions.
pub(crate) fn embed_windows<T: Element>(x: Source<T>, window: &Layout, axis: usize, out: &mut [T]) {
    let last = window.shape().rank() - 1;
    let order: Axes = (0..axis).chain([last]).chain(axis..last).collect();
    let (turned, own) = (window.flip(&[last]).permute(&order), x.layout.flip(&[last]).permute(&order));
    let run = |window: &Layout, own: &Layout| IterationSpace::new(window.shape(), [window, own]).run_length();
    if run(&turned, &own) > run(window, x.layout) {
        embed(x.with_layout(&own), &turned, true, out);
    } else {
        embed(x, window, true, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn a_slice_is_written_with_zeros_around_it() {
        let data: Vec<f32> = (0..4 * 5 * 6).map(|k| k as f32 - 7.5).collect();
        let whole = Layout::contiguous(Shape::from([4, 5, 6]));
        for layout in [whole.permute(&[2, 0, 1]), whole.slice(2, 1, 3, 1), whole.flip(&[1]), whole] {
            let x = Source { data: &data, layout: &layout };
            for (axis, start, more) in [(0, 0, 0), (0, 2, 3), (1, 0, 1), (1, 4, 4), (2, 1, 2), (2, 3, 3)] {
                let size = layout.shape()[axis] + more;
                let result = Layout::contiguous(layout.shape().with_size(axis, size));
                let (mut expected, mut out) = (vec![0f32; result.numel()], vec![f32::NAN; result.numel()]);
                embed(x, &result.slice(axis, start, layout.shape()[axis], 1), false, &mut expected);
                embed_slice(x, (axis, start, size), &mut out);
                assert_eq!(out, expected, "{layout:?} at {start} of dimension {axis}");
            }
        }
    }

    #[test]
    fn indices_are_checked_against_a_size() {
        for len in [0, 1, 7, 8, 40] {
            let index: Vec<i64> = (0..len).collect();
            assert!(all_within(&index, len as usize) && all_within(&index, usize::MAX));
            for (place, wrong) in (0..len as usize).flat_map(|place| [(place, -1), (place, len), (place, i64::MAX)]) {
                let mut index = index.clone();
                index[place] = wrong;
                assert!(!all_within(&index, len as usize), "{wrong} at {place} of {len}");
            }
        }
    }
}
