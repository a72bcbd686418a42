//! Elementwise operations over whole tensors of any layout: programs of one instruction.
//!
//! Each classifies its operands ([`Access`]), cuts the result into blocks ([`Tiling`]) and computes block by block. Few elements
//! go a shorter way ([`small`]), and few that lie in order go to the kernel at once.

use crate::engine::access::{Access, Input};
use crate::engine::small;
use crate::engine::tiling::{Tiling, is_streamed};
use crate::kernel::elementwise::operand::{Operand, Plane};
use crate::kernel::elementwise::{block, loops};
use crate::kernel::fill;
use crate::kernel::strided::{BLOCK, Source};
use crate::shape::iteration_space::IterationSpace;
use crate::{Binary, Compare, Element, Layout, Unary};

/// `out = op(x)`.
pub(crate) fn unary<T: Element>(op: Unary, x: Source<T>, out: &mut [T]) {
    one(x, out, true, op.cost(), |x, out| {
        T::unary(op, x, out);
    });
}

/// `out = op(x, y)`; one shape.
pub(crate) fn binary<T: Element>(op: Binary, x: Source<T>, y: Source<T>, out: &mut [T]) {
    let plane = |plane: Plane, x: &[T], y: &[T], out: &mut [T]| T::plane(op, plane, x, y, out);
    two(x, y, out, op.cost(), plane, |x, y, out| {
        T::binary(op, x, y, out);
    });
}

/// `out = x op y`; one shape.
pub(crate) fn compare<T: Element>(op: Compare, x: Source<T>, y: Source<T>, out: &mut [bool]) {
    two(x, y, out, 1, |_, _, _, _| false, |x, y, out| T::compare(op, x, y, out));
}

/// `out = mask ? x : y`; one shape.
pub(crate) fn select<T: Element>(mask: Source<bool>, x: Source<T>, y: Source<T>, out: &mut [T]) {
    if out.is_empty() || out.len() <= BLOCK && small::three(mask, x, y, out, block::select) {
        return;
    }
    let accesses = [mask.layout, x.layout, y.layout].map(Access::new);
    let read = size_of_val(mask.data) + size_of_val(x.data) + size_of_val(y.data);
    let (mask, x, y) =
        (Input::new(&accesses[0], mask.data), Input::new(&accesses[1], x.data), Input::new(&accesses[2], y.data));
    let tiling = tiling(out.len(), &accesses, 1);
    let readers = || (mask.reader(&tiling), x.reader(&tiling), y.reader(&tiling));
    let streams = is_streamed(size_of_val(out), read);
    tiling.fill(out, streams, readers, |(mask, x, y), start, out| {
        let len = out.len();
        block::select(mask.read(start, len), x.read(start, len), y.read(start, len), out);
    });
}

/// `out = f(x)`, changing the type.
pub(crate) fn cast<T: Element, U: Element>(x: Source<T>, out: &mut [U], f: impl Fn(T) -> U + Sync) {
    one(x, out, true, 1, |x, out| {
        loops::one(x, out, &f);
    });
}

/// `out = x`, in row-major order.
pub(crate) fn copy<T: Element>(x: Source<T>, out: &mut [T]) {
    cast(x, out, |x| x);
}

/// `x = op(x, y)` where `x` is a window of `data`; one shape, no two elements of `x` in one place.
pub(crate) fn binary_in_place<T: Element>(op: Binary, data: &mut [T], layout: &Layout, y: Source<T>) {
    if !layout.is_contiguous() {
        return in_window(data, layout, y, true, |x, y, out| {
            T::binary(op, x, y, out);
        });
    }
    let first = layout.offset();
    let x = &mut data[first..first + layout.numel()];
    let by_rows = x.len() > BLOCK && T::in_place(op, Plane::NONE, &mut [], &[]);
    if by_rows && matches!(Access::new(y.layout), Access::Strided(_)) {
        let plane = |plane: Plane, [_, first]: [usize; 2], x: &mut [T]| {
            T::in_place(op, plane, x, &y.data[first..]);
        };
        if in_planes([layout, y.layout], x, false, plane) {
            return;
        }
    }
    one(y, x, false, op.cost(), |y, x| {
        let (number, row) = match y {
            Operand::Slice(y) => (T::ZERO, Some(y)),
            Operand::Splat(number) => (number, None),
        };
        let plane = Plane { rows: 1, columns: x.len(), y_moves: row.is_some(), ..Plane::NONE };
        if !T::in_place(op, plane, x, row.unwrap_or(&[number])) {
            // Copied aside, into the first-level cache, and written anew.
            let mut before = [T::ZERO; BLOCK];
            let before = &mut before[..x.len()];
            before.copy_from_slice(x);
            T::binary(op, Operand::Slice(before), y, x);
        }
    });
}

/// `x = y` where `x` is a window of `data`; one shape, no two elements of `x` in one place.
pub(crate) fn assign<T: Element>(data: &mut [T], layout: &Layout, y: Source<T>) {
    if layout.is_contiguous() {
        let first = layout.offset();
        return copy(y, &mut data[first..first + layout.numel()]);
    }
    in_window(data, layout, y, false, |_, y, out| {
        loops::one(y, out, |y| y);
    });
}

/// `out = f(x)`; what is not `fresh` is read by `f` too.
fn one<T: Element, U: Element>(
    x: Source<T>,
    out: &mut [U],
    fresh: bool,
    cost: usize,
    f: impl Fn(Operand<T>, &mut [U]) + Sync,
) {
    if out.is_empty() || out.len() <= BLOCK && small::one(x, out, &f) {
        return;
    }
    let accesses = [Access::new(x.layout)];
    let streams = fresh && is_streamed(size_of_val(out), size_of_val(x.data));
    let x = Input::new(&accesses[0], x.data);
    let tiling = tiling(out.len(), &accesses, cost);
    tiling.fill(out, streams, || x.reader(&tiling), |x, start, out| f(x.read(start, out.len()), out));
}

/// `out = f(x, y)`; by `plane` where rows are short, unless it gives `false`: there is no such loop.
fn two<T: Element, U: Element>(
    x: Source<T>,
    y: Source<T>,
    out: &mut [U],
    cost: usize,
    plane: impl Fn(Plane, &[T], &[T], &mut [U]) -> bool + Sync,
    f: impl Fn(Operand<T>, Operand<T>, &mut [U]) + Sync,
) {
    if out.is_empty() || out.len() <= BLOCK && small::two(x, y, out, &f) {
        return;
    }
    let accesses = [x.layout, y.layout].map(Access::new);
    let streams = is_streamed(size_of_val(out), size_of_val(x.data) + size_of_val(y.data));
    if accesses.iter().any(|access| matches!(access, Access::Strided(_))) && plane(Plane::NONE, &[], &[], &mut []) {
        let plane = |own: Plane, [first, second]: [usize; 2], out: &mut [U]| {
            plane(own, &x.data[first..], &y.data[second..], out);
        };
        if in_planes([x.layout, y.layout], out, streams, plane) {
            return;
        }
    }
    let (x, y) = (Input::new(&accesses[0], x.data), Input::new(&accesses[1], y.data));
    let tiling = tiling(out.len(), &accesses, cost);
    tiling.fill(
        out,
        streams,
        || (x.reader(&tiling), y.reader(&tiling)),
        |(x, y), start, out| {
            f(x.read(start, out.len()), y.read(start, out.len()), out);
        },
    );
}

/// How `count` elements are cut for operands that are read so.
fn tiling(count: usize, accesses: &[Access], cost: usize) -> Tiling {
    match accesses.iter().find_map(Access::tiles) {
        Some(tiles) => Tiling::of_tiles(count, tiles),
        None => Tiling::of_operation(count, accesses.iter().map(Access::row).fold(count, usize::min), cost),
    }
}

/// Rows of fewer elements are written out, several as one block: that takes less time than a loop for each. Of an operand whose rows
/// are repeated, longer ones are too: they are written out as they are.
const SHORT_ROW: usize = 12;
const SHORT_REPEATED_ROW: usize = 24;

/// Fills `out` by planes of the two innermost loops, whose rows alone would not be worth a call: `f(plane, where each operand
/// begins, its part of out)`. `false`, and nothing done, where rows are long or too short, or an operand neither stands still along
/// them nor goes on one by one. What is streamed is not read by `f`.
fn in_planes<U: Element>(
    layouts: [&Layout; 2],
    out: &mut [U],
    streams: bool,
    f: impl Fn(Plane, [usize; 2], &mut [U]) + Sync,
) -> bool {
    let space = IterationSpace::new(layouts[0].shape(), layouts);
    let Some(outer) = space.depth().checked_sub(2) else { return false };
    let ((height, [x_row, y_row]), (columns, inner)) = (space.loop_of(outer), space.loop_of(outer + 1));
    let plain = inner.iter().all(|&stride| stride == 0 || stride == 1) && inner != [0, 0];
    if columns > BLOCK || !plain || x_row < 0 || y_row < 0 {
        return false;
    }
    let (x_row, y_row) = (x_row as usize, y_row as usize);
    let short = if x_row == 0 || y_row == 0 { SHORT_REPEATED_ROW } else { SHORT_ROW };
    if columns < short && layouts.iter().all(|layout| Access::new(layout).is_written_by_rows()) {
        return false;
    }
    let plane = Plane { rows: 0, columns, x_row, y_row, x_moves: inner[0] == 1, y_moves: inner[1] == 1 };
    Tiling::of_planes(out.len(), (height, columns), streams).fill(
        out,
        streams,
        || (),
        |(), start, out| {
            let (mut row, mut rest) = (start / columns, out);
            while !rest.is_empty() {
                let rows = (height - row % height).min(rest.len() / columns);
                let (now, later) = rest.split_at_mut(rows * columns);
                let starts = [space.position(0, row * columns), space.position(1, row * columns)];
                f(Plane { rows, ..plane }, starts, now);
                (row, rest) = (row + rows, later);
            }
        },
    );
    true
}

/// `x = f(x, y)` where `x` is a window of `data` with gaps, or in another order; `f` is given `x` where it `reads` it.
fn in_window<T: Element>(
    data: &mut [T],
    layout: &Layout,
    y: Source<T>,
    reads: bool,
    f: impl Fn(Operand<T>, Operand<T>, &mut [T]),
) {
    if layout.numel() == 0 {
        return;
    }
    let (window, access) = (IterationSpace::new(layout.shape(), [layout]), Access::new(y.layout));
    let y = Input::new(&access, y.data);
    let tiling = Tiling::of_operation(layout.numel(), window.row().min(access.row()), 1);
    let (mut x, mut y) = (Vec::new(), y.reader(&tiling));
    let mut result = [T::ZERO; BLOCK];
    for task in 0..tiling.tasks() {
        tiling.for_each_block(task, |start, len| {
            if reads {
                x.resize(len, T::ZERO);
                fill::spread(&window, data, start, &mut x);
            }
            f(Operand::Slice(&x), y.read(start, len), &mut result[..len]);
            fill::scatter(&window, &result[..len], start, data);
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

    /// The pieces of one operand are not of whole rows of the other.
    #[test]
    fn rows_of_two_lengths() {
        for [outer, middle, inner] in [[5, 10, 10], [3, 7, 9], [9, 4, 25], [2, 40, 12], [4, 100, 2], [6, 16, 7]] {
            let shape = [outer, middle, inner];
            let x = Tensor::<f64>::from_fn([middle, inner], |i| (i[0] * 31 + i[1]) as f64);
            let y = Tensor::<f64>::from_fn([outer, 1, inner], |i| (i[0] * 1000 + i[2] * 7) as f64);
            let expected = Tensor::from_fn(shape, |i| (i[1] * 31 + i[2]) as f64 - (i[0] * 1000 + i[2] * 7) as f64);
            assert_eq!(&x - &y, expected);
            assert_eq!(&y - &x, -&expected);
            assert_eq!(x.lt(&y), expected.lt(0.0));
            let mut out = Tensor::<f64>::zeros(shape);
            out -= &y;
            out += &x;
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn what_repeats_is_read_where_it_is() {
        for [outer, middle, inner] in [[5, 7, 3], [400, 9, 3], [1000, 3, 1], [33, 65, 17], [900, 1, 10]] {
            let x = Tensor::<f64>::from_fn([outer, middle, inner], |i| (i[0] * 31 + i[1] * 7 + i[2]) as f64);
            let at = |i: &[usize]| (i[0] * 31 + i[1] * 7 + i[2]) as f64;
            let last = Tensor::from_fn([inner], |i| i[0] as f64 * 0.5);
            let column = Tensor::from_fn([middle, 1], |i| i[0] as f64 * 100.0);
            let shape = [outer, middle, inner];
            assert_eq!(&x - &last, Tensor::from_fn(shape, |i| at(i) - i[2] as f64 * 0.5));
            assert_eq!(&column - &x, Tensor::from_fn(shape, |i| i[1] as f64 * 100.0 - at(i)));
            assert_eq!(x.lt(&column), Tensor::from_fn(shape, |i| at(i) < i[1] as f64 * 100.0));
            let chosen = where_(&column.gt(100.0).expand(shape), &x, last.expand(shape));
            assert_eq!(chosen, Tensor::from_fn(shape, |i| if i[1] > 1 { at(i) } else { i[2] as f64 * 0.5 }));
        }
    }

    /// Operands of every kind of access, beside index arithmetic.
    #[test]
    fn every_operation_reads_every_access() {
        for [batch, rows, columns] in [[2, 3, 4], [3, 70, 131], [40, 9, 3], [2, 64, 600], [30, 40, 16], [1, 300, 300]] {
            let shape = [batch, rows, columns].map(|size| size as isize);
            let of = |sizes: [usize; 3]| Tensor::<f64>::from_fn(sizes, |i| ((i[0] * 31 + i[1] * 7 + i[2]) % 13) as f64);
            let operands = [
                of([batch, rows, columns]),
                of([batch, columns, rows]).transpose(1, 2),
                of([1, columns, rows]).transpose(1, 2).expand(shape),
                of([batch, 2 * rows, columns + 1]).slice(1, Some(1), None, 2).slice(2, Some(1), None, 1),
                of([batch, rows, columns]).flip([0, 2]),
                of([1, 1, columns]).expand(shape),
                of([1, rows, 1]).expand(shape),
                of([batch, 1, columns]).expand(shape),
                of([1, rows, columns]).expand(shape),
                Tensor::full([1, 1, 1], 3.0).expand(shape),
            ];
            let pairs = |x: &Tensor<f64>, y: &Tensor<f64>| x.iter().zip(y.iter()).collect::<Vec<_>>();
            for x in &operands {
                assert!(x.square().iter().eq(x.iter().map(|x| x * x)));
                assert!(x.cast::<i64>().iter().eq(x.iter().map(|x| x as i64)));
                for y in &operands {
                    let both = pairs(x, y);
                    assert!((x - y).iter().eq(both.iter().map(|(x, y)| x - y)));
                    assert!(x.maximum(y).iter().eq(both.iter().map(|&(x, y)| x.max(y))));
                    assert!(x.le(y).iter().eq(both.iter().map(|(x, y)| x <= y)));
                    let (mask, chosen) = (y.gt(5.0), |&(x, y): &(f64, f64)| if y > 5.0 { x } else { y });
                    assert!(where_(&mask, x, y).iter().eq(both.iter().map(chosen)));
                    // In place: in order, and in a window with gaps; by a loop of its own, and by one that there is not.
                    let mut room = Tensor::<f64>::zeros([batch, rows, 2 * columns]);
                    let mut window = room.slice(2, Some(1), None, 2);
                    for out in [&mut of([batch, rows, columns]), &mut window] {
                        out.copy_(x);
                        assert!(out.iter().eq(x.iter()));
                        out.sub_(y);
                        assert!(out.iter().eq(both.iter().map(|(x, y)| x - y)));
                        out.copy_(x);
                        out.fmod_(&(y + 1.0));
                        assert!(out.iter().eq(both.iter().map(|(x, y)| x % (y + 1.0))));
                    }
                    room.add_(1.0);
                }
            }
        }
    }
}
