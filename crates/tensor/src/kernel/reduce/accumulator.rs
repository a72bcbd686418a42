//! Reductions of values to totals (sums, products, maxima or minima), for tensors and for fused programs. This file reduces slices,
//! accumulates rows into a row of totals, and accumulates the elements of an iteration space into their totals.
//!
//! Sums of slices are pairwise. At most 64 elements are added in sequence, and these partial sums are added in a balanced tree. So the
//! rounding error grows with log n instead of n (N. J. Higham, "The accuracy of floating point summation", 1993). Rows and blocks that are
//! accumulated into the same totals are added one after the other, rows in groups of eight.

use crate::kernel::elementwise::operand::Operand;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::rows::MIN_SUMMED_ROW;
use crate::{Binary, Element, Float, Layout, Reduction, Shape};

/// The maximum number of contiguous elements that one call of a kernel reduces: 64 chains (independent totals) of at most 64 elements each.
pub(crate) const MAX_RUN: usize = 4096;

/// The width of rows, in elements, below which several contiguous rows are accumulated at a time, as one wide row.
pub(crate) const NARROW_WIDTH: usize = 64;

/// The maximum width of a wide row that is made of several narrow rows, in elements.
const MAX_WIDE_ROW: usize = 256;

/// The maximum length, in elements, of a row whose elements are reduced in sequence.
const MAX_SHORT_ROW: usize = 32;

/// Reduces a slice: divides it into parts of at most [`MAX_RUN`] elements, and combines the totals of the parts in a balanced tree.
pub(crate) fn slice_total<T: Element>(op: Reduction, x: &[T]) -> T {
    if x.len() > MAX_RUN {
        let (left, right) = x.split_at((x.len() / 2).next_multiple_of(MAX_RUN));
        let mut total = [slice_total(op, left)];
        T::accumulate(op, &mut total, &[slice_total(op, right)]);
        return total[0];
    }
    let mut total = [T::ZERO];
    T::reduce_each(op, x, x.len(), 0, &mut total);
    total[0]
}

/// Returns the sum of the products `x[i] * y[i]`. It has the same bits as the [`slice_total`] of the stored products.
pub(crate) fn total_of_products<T: Element>(x: &[T], y: &[T]) -> T {
    let mut total = [T::ZERO];
    if x.len() > MAX_RUN {
        let middle = (x.len() / 2).next_multiple_of(MAX_RUN);
        total[0] = total_of_products(&x[..middle], &y[..middle]);
        T::accumulate(Reduction::Sum, &mut total, &[total_of_products(&x[middle..], &y[middle..])]);
    } else {
        T::sums_of_products(x, y, x.len(), &mut total);
    }
    total[0]
}

/// Reduces an operand to one total. The operand is a slice of `len` elements, or one number that stands for `len` equal elements.
pub(crate) fn operand_total<T: Float>(op: Reduction, x: Operand<'_, T>, len: usize) -> T {
    match (x, op.repeated()) {
        (Operand::Slice(x), _) => slice_total(op, x),
        (Operand::Splat(x), None) => x,
        (Operand::Splat(x), Some(function)) => {
            let mut total = [x];
            T::binary(function, Operand::Splat(x), Operand::Splat(T::from_i64(len as i64)), &mut total);
            // The sum of a slice begins with +0 and is never -0. Adding 0 turns -0 into +0 here too.
            if op == Reduction::Sum { total[0] + T::ZERO } else { total[0] }
        }
    }
}

/// Returns the number of rows of `width` elements that are accumulated together as one wide row. It is a power of two.
pub(crate) fn rows_per_wide_row(width: usize) -> usize {
    1 << (MAX_WIDE_ROW / width).max(1).ilog2()
}

/// Accumulates `rows` rows of `x`, which begin `stride` elements apart, into the row `total`. Groups of eight rows are added in sequence
/// and not in a tree, so callers limit the number of rows to bound the rounding error. Contiguous rows that are narrower than
/// [`NARROW_WIDTH`] are joined to wide rows first, so callers may pass more of these rows.
pub(crate) fn accumulate_rows<T: Element>(op: Reduction, total: &mut [T], x: &[T], stride: usize, rows: usize) {
    let width = total.len();
    if width >= NARROW_WIDTH || stride != width || rows < 2 * rows_per_wide_row(width) {
        return T::accumulate_rows(op, total, x, stride, rows);
    }
    // The rows are contiguous. They are accumulated as wide rows, and then the parts of the wide total are combined.
    let wide_row_count = rows_per_wide_row(width);
    let wide = wide_row_count * width;
    let mut totals = [T::ZERO; MAX_WIDE_ROW];
    let (x, rest) = x[..rows * width].split_at(rows / wide_row_count * wide);
    totals[..wide].copy_from_slice(&x[..wide]);
    T::accumulate_rows(op, &mut totals[..wide], &x[wide..], wide, rows / wide_row_count - 1);
    T::accumulate(op, &mut totals[..rest.len()], rest);
    let mut half = wide / 2;
    while half >= width {
        let (left, right) = totals.split_at_mut(half);
        T::accumulate(op, left, &right[..half]);
        half /= 2;
    }
    T::accumulate(op, total, &totals[..width]);
}

/// Combines total `i` with line `i` of `x`. A line has `len` adjacent elements, and is reduced in order.
fn accumulate_lines<T: Element>(op: Reduction, x: &[T], len: usize, totals: &mut [T]) {
    let mut line_totals = [T::ZERO; NARROW_WIDTH];
    for (x, totals) in x.chunks(NARROW_WIDTH * len).zip(totals.chunks_mut(NARROW_WIDTH)) {
        let line_totals = &mut line_totals[..totals.len()];
        T::reduce_in_order(op, x, len, len, line_totals);
        T::accumulate(op, totals, line_totals);
    }
}

/// Accumulates all parts of `totals` into the first part, in a balanced tree. Each part has `count` elements.
pub(crate) fn combine_parts<T: Element>(op: Reduction, totals: &mut [T], count: usize) {
    let mut step = count;
    while step < totals.len() {
        for left in (0..totals.len() - step).step_by(2 * step) {
            let (low, high) = totals.split_at_mut(left + step);
            T::accumulate(op, &mut low[left..left + count], &high[..count]);
        }
        step *= 2;
    }
}

/// The reduction of a tensor's elements to one total for each element of the result. It receives the tensor's elements block by block and
/// in order.
#[derive(Debug)]
pub(crate) struct Accumulator {
    pub(crate) op: Reduction,
    /// For each element of the tensor, the position of the total into which it is accumulated.
    pub(crate) space: IterationSpace<1>,
    pub(crate) total_count: usize,
}

impl Accumulator {
    /// Returns an accumulator for the elements of a tensor of shape `shape`. The layout `totals` of the result must expand to this shape.
    pub(crate) fn new(op: Reduction, shape: &Shape, totals: &Layout) -> Self {
        let Some(layout) = totals.expand(shape) else { unreachable!("reduced dimensions have size 1") };
        Accumulator { op, space: IterationSpace::new(shape, [&layout]), total_count: totals.numel() }
    }

    /// Returns the length of a row and the position of the first total, if the elements `start .. start + len` are whole short rows with
    /// adjacent totals. Each row is reduced to one total. Otherwise returns `None`.
    fn short_rows(&self, start: usize, len: usize) -> Option<(usize, usize)> {
        let space = &self.space;
        let innermost = space.depth() - 1;
        let (row, [stride]) = space.loop_of(innermost);
        let (_, [next]) = space.loop_of(innermost.checked_sub(1)?);
        let rows = stride == 0 && row <= MAX_SHORT_ROW && start.is_multiple_of(row) && len.is_multiple_of(row);
        let in_order = rows && next == 1 && (innermost == 1 || space.loop_of(innermost - 1).0 * row == space.numel());
        in_order.then(|| (row, space.position(0, start)))
    }

    /// Returns true if each innermost row has one total and at least [`MIN_SUMMED_ROW`] elements.
    pub(crate) fn has_long_rows(&self) -> bool {
        self.space.depth().checked_sub(1).is_some_and(|innermost| {
            let (row, [stride]) = self.space.loop_of(innermost);
            stride == 0 && row >= MIN_SUMMED_ROW
        })
    }

    /// Accumulates `value` into `totals`. `value` holds the elements `start .. start + len` of the tensor, in row-major order. `spare` is
    /// scratch memory for `len` elements.
    pub(crate) fn accumulate<T: Float>(
        &self,
        value: Operand<'_, T>,
        start: usize,
        len: usize,
        totals: &mut [T],
        spare: &mut [T],
    ) {
        let (op, space) = (self.op, &self.space);
        let segment = space.segment(0, start, len);
        if let Segment::Splat(position) = segment {
            T::accumulate(op, &mut totals[position..=position], &[operand_total(op, value, len)]);
            return;
        }
        let values = match value {
            Operand::Slice(values) => values,
            Operand::Splat(value) => {
                spare.fill(value);
                spare
            }
        };
        self.accumulate_slice(values, start, segment, totals);
    }

    /// Accumulates the products of `x` and `y` into `totals`, for an accumulator of sums. Each slice holds elements of the tensor from
    /// index `start`. The totals get the same bits as from [`accumulate`](Self::accumulate). `spare` is scratch memory of the same length.
    pub(crate) fn accumulate_products<T: Float>(
        &self,
        x: &[T],
        y: &[T],
        start: usize,
        totals: &mut [T],
        spare: &mut [T],
    ) {
        let mut add = |position: usize, x: &[T], y: &[T]| {
            T::accumulate(self.op, &mut totals[position..=position], &[total_of_products(x, y)]);
        };
        match self.space.segment(0, start, x.len()) {
            Segment::Splat(position) => add(position, x, y),
            Segment::Walk if self.has_long_rows() => {
                let mut done = 0;
                self.space.walk(0, start, x.len(), |position, _, count| {
                    add(position, &x[done..done + count], &y[done..done + count]);
                    done += count;
                });
            }
            segment => {
                T::binary(Binary::Mul, Operand::Slice(x), Operand::Slice(y), spare);
                self.accumulate_slice(spare, start, segment, totals);
            }
        }
    }

    /// Accumulates `values`, the tensor's elements from index `start`, into several totals. `segment` has the positions of the totals.
    fn accumulate_slice<T: Float>(&self, values: &[T], start: usize, segment: Segment, totals: &mut [T]) {
        let (op, space, len) = (self.op, &self.space, values.len());
        let row = space.run_length();
        if let Segment::Slice(position) = segment {
            T::accumulate(op, &mut totals[position..position + len], values);
        } else if let Some((row, position)) = self.short_rows(start, len) {
            accumulate_lines(op, values, row, &mut totals[position..position + len / row]);
        } else if let (Some(times), true) = (space.row_repeats(), start.is_multiple_of(row)) {
            let (mut number, mut rest) = (start / row, values);
            while !rest.is_empty() {
                let totals = &mut totals[space.position(0, number * row)..];
                let rows = (times - number % times).min(rest.len() / row);
                if rows == 0 {
                    T::accumulate(op, &mut totals[..rest.len()], rest);
                    break;
                }
                let (now, later) = rest.split_at(rows * row);
                accumulate_rows(op, &mut totals[..row], now, row, rows);
                (number, rest) = (number + rows, later);
            }
        } else {
            let mut rest = values;
            space.walk(0, start, len, |position, stride, count| {
                let (part, later) = rest.split_at(count);
                rest = later;
                let mut add = |position: usize, values: &[T]| {
                    T::accumulate(op, &mut totals[position..][..values.len()], values);
                };
                match stride {
                    0 => add(position, &[slice_total(op, part)]),
                    1 => add(position, part),
                    _ => part.chunks(1).enumerate().for_each(|(i, value)| add(position + i * stride as usize, value)),
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::reduce::kernels::ReductionKernels;

    #[test]
    fn totals_are_combined_in_a_tree() {
        for tasks in 1..20 {
            let mut totals: Vec<f64> = (0..tasks * 3).map(|i| i as f64).collect();
            combine_parts(Reduction::Sum, &mut totals, 3);
            let sum = |k: usize| (0..tasks).map(|task| (3 * task + k) as f64).sum::<f64>();
            assert_eq!(totals[..3], [sum(0), sum(1), sum(2)]);
        }
    }

    #[test]
    fn a_sum_of_negative_zeros_is_zero() {
        for x in [Operand::Splat(-0.0), Operand::Slice(&[-0.0; 5])] {
            assert_eq!(operand_total::<f64>(Reduction::Sum, x, 5).to_bits(), 0);
        }
    }

    #[test]
    fn narrow_rows_equal_rows_one_by_one() {
        for (width, rows) in [1usize, 2, 3, 10, 63, 64].into_iter().flat_map(|w| [0, 1, 7, 60, 513].map(|r| (w, r))) {
            let x: Vec<i64> = (0..width * rows).map(|i| (i * 31 % 101) as i64 - 50).collect();
            for op in [Reduction::Sum, Reduction::Amax, Reduction::Amin] {
                let (mut got, mut expected) = (vec![3; width], vec![3; width]);
                accumulate_rows(op, &mut got, &x, width, rows);
                x.chunks(width).for_each(|row| i64::accumulate(op, &mut expected, row));
                assert_eq!(got, expected, "{op:?} {width} {rows}");
            }
        }
    }

    /// Compares products that are summed directly with products that are stored first, bit by bit.
    #[test]
    fn products_are_accumulated_like_stored_products() {
        let number = |i: usize| ((i * 7919 % 1009) as f64 * 0.37).sin();
        for (rows, row) in [(9, 7), (9, 32), (9, 255), (9, 300), (2, 4097)] {
            let (shape, len) = (Shape::from([3, rows, row]), 3 * rows * row);
            let [x, y]: [Vec<f64>; 2] = [0, 90_000].map(|from| (from..from + len).map(number).collect());
            for axes in 0..8 {
                let kept: Shape = (0..3).map(|axis| if axes >> axis & 1 == 1 { 1 } else { shape[axis] }).collect();
                let accumulator = Accumulator::new(Reduction::Sum, &shape, &Layout::contiguous(kept));
                let [mut got, mut expected] = [(); 2].map(|()| vec![0.5; accumulator.total_count]);
                for start in (0..len).step_by(5000) {
                    let (x, y) = (&x[start..len.min(start + 5000)], &y[start..len.min(start + 5000)]);
                    let products: Vec<f64> = x.iter().zip(y).map(|(x, y)| x * y).collect();
                    let mut spare = vec![0.0; x.len()];
                    let value = Operand::Slice(&products[..]);
                    accumulator.accumulate(value, start, x.len(), &mut expected, &mut spare);
                    accumulator.accumulate_products(x, y, start, &mut got, &mut spare);
                }
                assert!(got.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits())), "{shape:?} {axes:b}");
            }
        }
    }

    /// Tests totals of all layouts: a single total, one total for each row, a row of totals, and mixtures of these.
    #[test]
    fn blocks_are_accumulated_where_they_belong() {
        let shape = Shape::from([4, 3, 5, 6]);
        let (len, x) = (shape.numel(), |i: usize| (i * 31 % 101) as f64 - 50.0);
        for axes in 0..16 {
            let kept: Shape = (0..4).map(|axis| if axes >> axis & 1 == 1 { 1 } else { shape[axis] }).collect();
            let accumulator = Accumulator::new(Reduction::Sum, &shape, &Layout::contiguous(kept));
            let mut expected = vec![0.0; accumulator.total_count];
            (0..len).for_each(|i| expected[accumulator.space.position(0, i)] += x(i));
            for block in [1, 6, 7, 30, 90, len] {
                let mut totals = vec![0.0; accumulator.total_count];
                for start in (0..len).step_by(block) {
                    let values: Vec<f64> = (start..len.min(start + block)).map(x).collect();
                    accumulator.accumulate(Operand::Slice(&values), start, values.len(), &mut totals, &mut []);
                }
                assert_eq!(totals, expected, "{axes:b} {block}");
                totals.fill(0.0);
                accumulator.accumulate(Operand::Splat(1.0), 0, len, &mut totals, &mut vec![0.0; len]);
                assert_eq!(totals, vec![(len / accumulator.total_count) as f64; accumulator.total_count], "{axes:b}");
            }
        }
    }
}
