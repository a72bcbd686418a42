//! The reductions that leave a fused program: accumulated block by block.

use crate::engine::program::AxisSet;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::reduce::strided;
use crate::scalar::instruction::Value;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::{Binary, Float, Layout, Reduction, Shape};

/// Elements of a row, at most, whose numbers are reduced one after the other.
const SHORT_ROW: usize = 32;

/// Blocks that are accumulated one after the other before their total is put aside.
const STAGE: usize = 16;

/// A reduction that leaves a program.
#[derive(Debug)]
pub(crate) struct Reducer {
    pub(crate) op: Reduction,
    /// Number of the value that is reduced.
    pub(crate) value: usize,
    /// Number of the output.
    pub(crate) output: usize,
    /// Where each element of the shape is accumulated.
    pub(crate) space: IterationSpace<1>,
    pub(crate) count: usize,
    /// Blocks after which a total is put aside.
    pub(crate) stage: usize,
}

impl Reducer {
    /// The reduction over `axes` of value number `value` of a program over `shape`, into `output`: its number, and how many
    /// elements it has.
    pub(crate) fn new(
        op: Reduction,
        value: Value,
        axes: AxisSet,
        shape: &Shape,
        (output, count): (usize, usize),
    ) -> Self {
        let mut kept = shape.clone();
        kept.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, size)| *size = 1);
        let space = match Layout::contiguous(kept).expand(shape) {
            Some(layout) => IterationSpace::new(shape, [&layout]),
            None => unreachable!("sizes of 1 expand"),
        };
        Reducer { op, value: value as usize, output, space, count, stage: STAGE }
    }

    /// The shape is cut into blocks of so many elements.
    pub(crate) fn cut(&mut self, block: usize) {
        self.stage = STAGE * (self.count / block.max(1)).max(1);
    }

    /// Where these elements are whole short rows, each reduced to one number, and the numbers lie one after the other: the length
    /// of a row, and where the first number is.
    fn short_rows(&self, start: usize, len: usize) -> Option<(usize, usize)> {
        let space = &self.space;
        let innermost = space.depth() - 1;
        let (row, [stride]) = space.loop_of(innermost);
        let (_, [next]) = space.loop_of(innermost.checked_sub(1)?);
        let rows = stride == 0 && row <= SHORT_ROW && start.is_multiple_of(row) && len.is_multiple_of(row);
        let in_order = rows && next == 1 && (innermost == 1 || space.loop_of(innermost - 1).0 * row == space.numel());
        in_order.then(|| (row, space.position(0, start)))
    }

    /// Accumulates the elements `start .. start + len` of the shape, whose values are `value`.
    pub(crate) fn accumulate<T: Float>(
        &self,
        value: Operand<'_, T>,
        start: usize,
        len: usize,
        total: &mut [T],
        spare: &mut [T],
    ) {
        match self.space.segment(0, start, len) {
            Segment::Splat(position) => {
                let sum = total_of(self.op, value, len);
                T::accumulate(self.op, &mut total[position..=position], &[sum]);
            }
            Segment::Slice(position) => {
                let values = match value {
                    Operand::Slice(values) => values,
                    Operand::Splat(value) => {
                        spare.fill(value);
                        spare
                    }
                };
                T::accumulate(self.op, &mut total[position..position + len], values);
            }
            Segment::Strided(..) | Segment::Walk => {
                let values = match value {
                    Operand::Slice(values) => values,
                    Operand::Splat(value) => {
                        spare.fill(value);
                        spare
                    }
                };
                if let Some((row, position)) = self.short_rows(start, len) {
                    let totals = &mut total[position..position + len / row];
                    T::short_rows(self.op, values, row, totals);
                    return;
                }
                if self.space.repeats() && start.is_multiple_of(self.space.row()) {
                    let row = self.space.row();
                    let position = self.space.position(0, 0);
                    let (whole, rest) = values.split_at(len / row * row);
                    let totals = &mut total[position..position + row];
                    T::accumulate_rows(self.op, totals, whole, row, len / row);
                    T::accumulate(self.op, &mut totals[..rest.len()], rest);
                    return;
                }
                let mut done = 0;
                self.space.walk(0, start, len, |position, stride, count| {
                    let part = &values[done..done + count];
                    done += count;
                    match stride {
                        0 => {
                            let sum = total_of(self.op, Operand::Slice(part), count);
                            T::accumulate(self.op, &mut total[position..=position], &[sum]);
                        }
                        1 => {
                            T::accumulate(self.op, &mut total[position..position + count], part);
                        }
                        _ => {
                            for (i, value) in part.iter().enumerate() {
                                let position = position + i * stride as usize;
                                T::accumulate(self.op, &mut total[position..=position], std::slice::from_ref(value));
                            }
                        }
                    }
                });
            }
        }
    }
}

/// The reduction of `len` elements.
pub(crate) fn total_of<T: Float>(op: Reduction, x: Operand<'_, T>, len: usize) -> T {
    match x {
        Operand::Slice(x) => strided::slice_total(op, x),
        Operand::Splat(x) => match op {
            Reduction::Sum => times(Binary::Mul, x, len),
            Reduction::Prod => times(Binary::Pow, x, len),
            Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => x,
        },
    }
}

fn times<T: Float>(op: Binary, x: T, len: usize) -> T {
    let mut result = [x];
    T::binary(op, Operand::Splat(x), Operand::Splat(T::from_i64(len as i64)), &mut result);
    result[0]
}
