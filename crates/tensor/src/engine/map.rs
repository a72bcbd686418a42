//! Elementwise operations over whole tensors of any layout: cut into blocks, operands borrowed, repeated or gathered.
//!
//! The partition depends on the shape alone, and no block reads what another writes: any number of threads gives the
//! same bits.
#![allow(unsafe_code)]

use crate::engine::periodic::{Few, Reader};
use crate::kernel::copy::copy;
use crate::kernel::elementwise::block;
use crate::kernel::elementwise::loops;
use crate::kernel::elementwise::operand::{Operand, Plane};
use crate::kernel::strided::{BLOCK, LONG_ROW, PARALLEL, STREAM, Source, TASK, TASKS, for_blocks, operand};
use crate::kernel::transpose::Turned;
use crate::memory::partition;
use crate::memory::threads::Schedule;

use crate::scalar::cpu;
use crate::scalar::instruction::{Binary, Compare, Unary};
use crate::shape::iteration_space::Nest;
use crate::{Element, Layout};

/// `out = op(x)`.
pub(crate) fn unary<T: Element>(op: Unary, x: Source<T>, out: &mut [T]) {
    if let (1..=BLOCK, Some(x)) = (out.len(), x.whole()) {
        T::unary(op, x, out);
        return;
    }
    let nest = Nest::new(x.layout.shape(), [x.layout]);
    for_blocks(nest.row(), op.cost(), true, out, |start, out| {
        let scratch = &mut Vec::new();
        T::unary(op, operand(&nest, 0, x.data, start, out.len(), scratch), out);
    });
}

/// `out = op(x, y)`; one shape.
pub(crate) fn binary<T: Element>(op: Binary, x: Source<T>, y: Source<T>, out: &mut [T]) {
    if let (1..=BLOCK, Some(x), Some(y)) = (out.len(), x.whole(), y.whole()) {
        T::binary(op, x, y, out);
        return;
    }
    if out.is_empty() {
        return;
    }
    let op_of_few = |x: Operand<T>, y: Operand<T>, out: &mut [T]| {
        T::binary(op, x, y, out);
    };
    if out.len() <= BLOCK && few_pairs(x, y, out, op_of_few) {
        return;
    }
    if let (Some(x), Some(y)) = (Reader::new(x), Reader::new(y))
        && (x.is_periodic() || y.is_periodic())
    {
        return for_blocks(out.len(), op.cost(), true, out, |start, out| {
            T::binary(op, x.at(start, out.len()), y.at(start, out.len()), out);
        });
    }
    let nest = Nest::new(x.layout.shape(), [x.layout, y.layout]);
    if let Some(planes) = Planes::new(&nest).filter(|_| T::plane(op, Plane::NONE, &[], &[], &mut [])) {
        planes.fill(out, |plane, [first, second], out| {
            T::plane(op, plane, &x.data[first..], &y.data[second..], out);
        });
        return;
    }
    pairs(&nest, op.cost(), (x.data, y.data), out, |x, y, out| {
        T::binary(op, x, y, out);
    });
}

/// Calls `f`, which costs as much as `cost` additions for an element, with blocks of `out` and of both operands.
fn pairs<T: Element, U: Element>(
    nest: &Nest<2>,
    cost: usize,
    (x, y): (&[T], &[T]),
    out: &mut [U],
    f: impl Fn(Operand<T>, Operand<T>, &mut [U]) + Sync,
) {
    if let Some(turned) = Turned::new(nest) {
        let first = turned.operand() == 0;
        let (by_squares, k, data) = if first { (x, 1, y) } else { (y, 0, x) };
        return turned.fill(by_squares, out, |row, at, out| {
            let scratch = &mut Vec::new();
            let (row, other) = (Operand::Slice(row), turned.part(k, data, at[k], out.len(), scratch));
            if first { f(row, other, out) } else { f(other, row, out) }
        });
    }
    for_blocks(nest.row(), cost, true, out, |start, out| {
        let (first, second) = (&mut Vec::new(), &mut Vec::new());
        let x = operand(nest, 0, x, start, out.len(), first);
        let y = operand(nest, 1, y, start, out.len(), second);
        f(x, y, out);
    });
}

/// Calls `f` with pieces of `out`, of a block at most, and of both operands; `false`, and nothing done, where an operand is
/// neither as it lies nor of short rows.
#[inline(never)]
fn few_pairs<T: Element, U: Element>(
    x: Source<T>,
    y: Source<T>,
    out: &mut [U],
    f: impl Fn(Operand<T>, Operand<T>, &mut [U]),
) -> bool {
    let (Some(x), Some(y)) = (Few::new(x), Few::new(y)) else { return false };
    let mut scratch = [T::ZERO; 2 * LONG_ROW];
    let room = if x.is_whole() || y.is_whole() { 2 * LONG_ROW } else { LONG_ROW };
    let (first, second) = scratch.split_at_mut(if x.is_whole() { 0 } else { room });
    let piece = x.piece(room).min(y.piece(room));
    for (number, out) in out.chunks_mut(piece).enumerate() {
        let len = out.len();
        f(x.at(number, piece, len, first), y.at(number, piece, len, second), out);
    }
    true
}

/// A nest whose rows are short: the two innermost loops are done in one call, whose set-up a row alone would not be worth.
struct Planes<'a> {
    nest: &'a Nest<2>,
    plane: Plane,
}

impl<'a> Planes<'a> {
    /// `None` where rows are long, or an operand neither stands still along them nor goes on one by one.
    fn new(nest: &'a Nest<2>) -> Option<Self> {
        let rows = nest.depth().checked_sub(2)?;
        let ((rows, [x_row, y_row]), (columns, inner)) = (nest.loop_of(rows), nest.loop_of(rows + 1));
        let plain = inner.iter().all(|&stride| stride == 0 || stride == 1) && inner != [0, 0];
        if columns > BLOCK || !plain || x_row < 0 || y_row < 0 {
            return None;
        }
        let plane = Plane {
            rows,
            columns,
            x_row: x_row as usize,
            y_row: y_row as usize,
            x_moves: inner[0] == 1,
            y_moves: inner[1] == 1,
        };
        Some(Planes { nest, plane })
    }

    /// Fills `out` by parts of planes: `f(part, first element of each operand, out)`.
    fn fill<T: Element>(&self, out: &mut [T], f: impl Fn(Plane, [usize; 2], &mut [T]) + Sync) {
        let Plane { rows: height, columns, .. } = self.plane;
        let total = out.len() / columns;
        let each = if out.len() < PARALLEL { total } else { (TASK / columns).max(total.div_ceil(TASKS)).max(1) };
        let streams = size_of_val(out) >= STREAM;
        partition::chunks(out, each * columns, Schedule::Sweep { bytes: size_of_val(out) }, |task, out| {
            let mut aside = if streams { Some([T::ZERO; BLOCK]) } else { None };
            let (mut row, mut rest) = (task * each, out);
            while !rest.is_empty() {
                let left = height - row % height;
                let rows = left.min(rest.len() / columns).min(if streams { BLOCK / columns } else { left });
                let (now, later) = rest.split_at_mut(rows * columns);
                let at = [0, 1].map(|k| self.nest.position(k, row * columns));
                let plane = Plane { rows, ..self.plane };
                match &mut aside {
                    Some(buffer) => {
                        f(plane, at, &mut buffer[..now.len()]);
                        cpu::stream(&buffer[..now.len()], now);
                    }
                    None => f(plane, at, now),
                }
                row += rows;
                rest = later;
            }
            if streams {
                cpu::streamed();
            }
        });
    }
}

/// `out = x op y`; one shape.
pub(crate) fn compare<T: Element>(op: Compare, x: Source<T>, y: Source<T>, out: &mut [bool]) {
    if out.is_empty() {
        return;
    }
    if let (..=BLOCK, Some(x), Some(y)) = (out.len(), x.whole(), y.whole()) {
        return T::compare(op, x, y, out);
    }
    if out.len() <= BLOCK && few_pairs(x, y, out, |x, y, out| T::compare(op, x, y, out)) {
        return;
    }
    if let (Some(x), Some(y)) = (Reader::new(x), Reader::new(y)) {
        return for_blocks(out.len(), 1, true, out, |start, out| {
            T::compare(op, x.at(start, out.len()), y.at(start, out.len()), out);
        });
    }
    let nest = Nest::new(x.layout.shape(), [x.layout, y.layout]);
    pairs(&nest, 1, (x.data, y.data), out, |x, y, out| T::compare(op, x, y, out));
}

/// `out = mask ? x : y`; one shape.
pub(crate) fn select<T: Element>(mask: Source<bool>, x: Source<T>, y: Source<T>, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    if let (Some(mask), Some(x), Some(y)) = (Reader::new(mask), Reader::new(x), Reader::new(y)) {
        return for_blocks(out.len(), 1, true, out, |start, out| {
            let len = out.len();
            block::select(mask.at(start, len), x.at(start, len), y.at(start, len), out);
        });
    }
    let nest = Nest::new(x.layout.shape(), [mask.layout, x.layout, y.layout]);
    if let Some(turned) = Turned::new(&nest) {
        if turned.operand() == 0 {
            return turned.fill(mask.data, out, |row, at, out| {
                let (first, second) = (&mut Vec::new(), &mut Vec::new());
                let x = turned.part(1, x.data, at[1], out.len(), first);
                let y = turned.part(2, y.data, at[2], out.len(), second);
                block::select(Operand::Slice(row), x, y, out);
            });
        }
        let (k, data) = if turned.operand() == 1 { (2, y.data) } else { (1, x.data) };
        return turned.fill(if k == 2 { x.data } else { y.data }, out, |row, at, out| {
            let (first, second) = (&mut Vec::new(), &mut Vec::new());
            let mask = turned.part(0, mask.data, at[0], out.len(), first);
            let (row, other) = (Operand::Slice(row), turned.part(k, data, at[k], out.len(), second));
            let (x, y) = if k == 2 { (row, other) } else { (other, row) };
            block::select(mask, x, y, out);
        });
    }
    for_blocks(nest.row(), 1, true, out, |start, out| {
        let (first, second, third) = (&mut Vec::new(), &mut Vec::new(), &mut Vec::new());
        let mask = operand(&nest, 0, mask.data, start, out.len(), first);
        let x = operand(&nest, 1, x.data, start, out.len(), second);
        let y = operand(&nest, 2, y.data, start, out.len(), third);
        block::select(mask, x, y, out);
    });
}

/// `x = op(x, y)` where `x` is a window of `data`; one shape, no two elements of `x` in one place.
pub(crate) fn binary_in_place<T: Element>(op: Binary, data: &mut [T], layout: &Layout, y: Source<T>) {
    if layout.is_contiguous() && layout.numel() > 0 && T::onto(op, &mut [], Operand::Splat(T::ZERO)) {
        let first = layout.offset();
        let out = &mut data[first..first + layout.numel()];
        if let (..=BLOCK, Some(y)) = (out.len(), y.whole()) {
            T::onto(op, out, y);
            return;
        }
        if out.len() <= BLOCK && few_onto(op, out, y) {
            return;
        }
        if let Some(y) = Reader::new(y) {
            return for_blocks(out.len(), op.cost(), false, out, |start, out| {
                T::onto(op, out, y.at(start, out.len()));
            });
        }
        let nest = Nest::new(layout.shape(), [layout, y.layout]);
        let (row, [_, along]) = nest.loop_of(nest.depth() - 1);
        if along == 0 && row >= 16 && row < out.len() {
            // One number for each row, as a bias of channels.
            let rows = if out.len() < PARALLEL { out.len() / row } else { TASK.div_ceil(row) };
            partition::chunks(out, rows * row, Schedule::Sweep { bytes: size_of_val(out) }, |task, out| {
                for (number, out) in (task * rows..).zip(out.chunks_mut(row)) {
                    T::onto(op, out, Operand::Splat(y.data[nest.position(1, number * row)]));
                }
            });
            return;
        }
        if let Some(turned) = Turned::new(&nest) {
            turned.fill(y.data, out, |y, _, out| {
                T::onto(op, out, Operand::Slice(y));
            });
            return;
        }
        for_blocks(nest.row(), op.cost(), false, out, |start, out| {
            let scratch = &mut Vec::new();
            let y = operand(&nest, 1, y.data, start, out.len(), scratch);
            T::onto(op, out, y);
        });
        return;
    }
    update(data, layout, y, |x, y, out| {
        T::binary(op, x, y, out);
    });
}

/// `out = op(out, y)`, of a block at most; `false`, and nothing done, where `y` is neither as it lies nor of short rows. The
/// type has a loop for `op`.
#[inline(never)]
fn few_onto<T: Element>(op: Binary, out: &mut [T], y: Source<T>) -> bool {
    let Some(y) = Few::new(y) else { return false };
    let mut scratch = [T::ZERO; 2 * LONG_ROW];
    let piece = y.piece(scratch.len());
    for (number, out) in out.chunks_mut(piece).enumerate() {
        T::onto(op, out, y.at(number, piece, out.len(), &mut scratch));
    }
    true
}

/// `x = y` where `x` is a window of `data`; one shape, no two elements of `x` in one place.
pub(crate) fn assign<T: Element>(data: &mut [T], layout: &Layout, y: Source<T>) {
    if layout.is_contiguous() {
        let first = layout.offset();
        return copy(y, &mut data[first..first + layout.numel()]);
    }
    update(data, layout, y, |_, y, out| {
        loops::one(y, out, |y| y);
    });
}

fn update<T: Element>(
    data: &mut [T],
    layout: &Layout,
    y: Source<T>,
    f: impl Fn(Operand<T>, Operand<T>, &mut [T]) + Sync,
) {
    let nest = Nest::new(layout.shape(), [layout, y.layout]);
    if layout.is_contiguous() {
        // Each block is copied aside, into the first-level cache, and written anew.
        let first = layout.offset();
        let out = &mut data[first..first + layout.numel()];
        for_blocks(nest.row(), 1, false, out, |start, out| {
            let mut before = [T::ZERO; BLOCK];
            let before = &mut before[..out.len()];
            before.copy_from_slice(out);
            let scratch = &mut Vec::new();
            f(Operand::Slice(before), operand(&nest, 1, y.data, start, out.len(), scratch), out);
        });
        return;
    }
    let total = nest.numel();
    let (first, second) = (&mut Vec::new(), &mut Vec::new());
    let mut result = [T::ZERO; BLOCK];
    for start in (0..total).step_by(BLOCK) {
        let len = BLOCK.min(total - start);
        let out = &mut result[..len];
        {
            let x = operand(&nest, 0, data, start, len, first);
            let y = operand(&nest, 1, y.data, start, len, second);
            f(x, y, out);
        }
        let mut left = &out[..];
        nest.walk(0, start, len, |position, stride, count| {
            let (now, later) = left.split_at(count);
            if stride == 1 {
                data[position..position + count].copy_from_slice(now);
            } else {
                for (i, &value) in now.iter().enumerate() {
                    data[(position as isize + i as isize * stride) as usize] = value;
                }
            }
            left = later;
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn short_rows_equal_long_ones() {
        for columns in [2, 3, 7, 16, 100, 511, 513] {
            let x = Tensor::<f32>::from_fn([40, 6, columns], |i| (i[0] * 7 + i[1] * 3 + i[2]) as f32);
            let (column, row) =
                (Tensor::from_fn([6, 1], |i| i[0] as f32 * 0.5), Tensor::from_fn([40, 1, columns], |i| i[2] as f32));
            let expected =
                Tensor::from_fn([40, 6, columns], |i| (i[0] * 7 + i[1] * 3 + i[2]) as f32 * (i[1] as f32 * 0.5));
            assert_eq!(&x * &column, expected);
            assert_eq!(&column * &x, expected);
            let difference = Tensor::from_fn([40, 6, columns], |i| i[1] as f32 * 0.5 - i[2] as f32);
            assert_eq!(&column - &row, difference);
        }
    }
}
