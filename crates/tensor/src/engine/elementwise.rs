//! Elementwise operations over whole tensors of any layout.
//!
//! Most operations over at most one block of elements use the short path ([`elementwise_small`]), unless an operand that must be copied has
//! long rows. All others are cut into blocks ([`Tiling`]), and the way to read each operand is chosen once ([`Access`]). Formulas, and
//! floating-point arithmetic on two operands, may be computed row by row if their rows are not longer than a block. Everything else is
//! computed block by block.

use smallvec::SmallVec;

use crate::engine::access::{Access, Input};
use crate::engine::tiling::Tiling;
use crate::engine::{driver, elementwise_small};
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::kernel::elementwise::{block, loops};
use crate::kernel::source::Source;
use crate::kernel::{fill, transpose};
use crate::scalar::cpu;
use crate::scalar::formula::Formula;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::blocks::BLOCK;
use crate::thresholds::rows::{MIN_LOOPED_REPEATED_ROW, MIN_LOOPED_ROW, MIN_UNGATHERED_ROW};
use crate::{Binary, Compare, Element, Float, Layout, Shape, Unary};

/// Computes `out = op(x)`.
pub(crate) fn unary<T: Element>(op: Unary, x: Source<T>, out: &mut [T]) {
    run_unary(x, out, true, op.cost(), &|x, out| T::unary(op, x, out));
}

/// Computes `out = op(x, y)` for operands that broadcast to `shape`.
pub(crate) fn binary<T: Element>(op: Binary, shape: &Shape, x: Source<T>, y: Source<T>, out: &mut [T]) {
    if out.is_empty() || out.len() <= BLOCK && elementwise_small::binary(op, shape, x, y, out) {
        return;
    }
    let (mut first, mut second) = (None, None);
    let operands = [x.expand_to(shape, &mut first), y.expand_to(shape, &mut second)];
    let rows = |rows: RowBroadcast, [x, y]: [usize; 2], out: &mut [T]| {
        T::rows(op, rows, Some(&operands[0].data[x..]), &operands[1].data[y..], out);
    };
    let stream = |x: Operand<T>, y: Operand<T>, out: &mut [T]| T::stream(op, x, y, out);
    let arithmetic = T::has_row_loop(op).then_some(ArithmeticLoops { rows: &rows, stream: &stream });
    run_binary(operands, out, op.cost(), arithmetic, &|x, y, out| T::binary(op, x, y, out));
}

/// Computes `out = formula(x, …)`. All operands have the same shape.
pub(crate) fn formula<T: Float, const N: usize>(formula: Formula, operands: [Source<T>; N], out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    if out.len() <= BLOCK {
        let whole: SmallVec<[Operand<T>; 3]> = operands.iter().map_while(Source::as_operand).collect();
        if whole.len() == N {
            return T::formula(formula, &whole, out);
        }
    }
    let is_streamed = driver::is_streamed(size_of_val(out), operands.iter().map(|x| size_of_val(x.data)).sum());
    if formula_by_rows(formula, operands, is_streamed, out) {
        return;
    }
    let accesses = operands.map(|x| Access::new(x.layout));
    let inputs: [Input<T>; N] = std::array::from_fn(|k| Input::new(&accesses[k], operands[k].data));
    let tiling = tiling(out.len(), &accesses, N, is_streamed);
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        let mut readers = inputs.each_ref().map(|x| x.reader(&tiling));
        blocks(&mut |start, out| {
            let parts = readers.each_mut().map(|x| x.read(start, out.len()));
            T::formula(formula, &parts, out);
        });
    });
}

/// Computes [`formula`] row by row. The rows and columns are the two innermost loops of the operands. Computes nothing and returns false if
/// there are fewer than two loops, or if rows are too short or longer than a block. Does the same if an operand's stride along its rows is
/// neither 0 nor 1.
fn formula_by_rows<T: Float, const N: usize>(
    formula: Formula,
    operands: [Source<T>; N],
    is_streamed: bool,
    out: &mut [T],
) -> bool {
    let space = IterationSpace::new(operands[0].layout.shape(), operands.map(|x| x.layout));
    let Some(outer) = space.depth().checked_sub(2) else { return false };
    let ((height, down), (columns, across)) = (space.loop_of(outer), space.loop_of(outer + 1));
    let is_plain = across.iter().all(|&stride| stride == 0 || stride == 1);
    if !is_plain || !(MIN_UNGATHERED_ROW..=BLOCK).contains(&columns) {
        return false;
    }
    let tiling = Tiling::of_row_broadcast(out.len(), (height, columns), is_streamed);
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        blocks(&mut |start, out| {
            for_each_matrix((height, columns), start, out, |first, out| {
                let mut starts: [usize; N] = std::array::from_fn(|k| space.position(k, first));
                for out in out.chunks_exact_mut(columns) {
                    let parts: [Operand<T>; N] =
                        std::array::from_fn(|k| Operand::row(operands[k].data, starts[k], across[k] == 1, columns));
                    T::formula(formula, &parts, out);
                    starts = std::array::from_fn(|k| starts[k].wrapping_add_signed(down[k]));
                }
            });
        });
    });
    true
}

/// Divides `out` at the ends of matrices of `height` rows. `out` consists of whole rows of `columns` elements. Calls `each` for each part,
/// with the row-major index of its first element. `start` is the index of the first element of `out`.
fn for_each_matrix<T>(
    (height, columns): (usize, usize),
    start: usize,
    out: &mut [T],
    mut each: impl FnMut(usize, &mut [T]),
) {
    let (mut row, mut rest) = (start / columns, out);
    while !rest.is_empty() {
        let count = (height - row % height).min(rest.len() / columns);
        let (now, later) = rest.split_at_mut(count * columns);
        each(row * columns, now);
        (row, rest) = (row + count, later);
    }
}

/// Computes `out = x op y`. Both operands have the same shape.
pub(crate) fn compare<T: Element>(op: Compare, x: Source<T>, y: Source<T>, out: &mut [bool]) {
    let f = |x: Operand<T>, y: Operand<T>, out: &mut [bool]| T::compare(op, x, y, out);
    if out.is_empty()
        || out.len() <= BLOCK && elementwise_small::run_binary(x.layout.shape(), x, y, out, |_, _, _, _| false, f)
    {
        return;
    }
    run_binary([x, y], out, 1, None, &f);
}

/// Computes `out = mask ? x : y`. All operands have the same shape.
pub(crate) fn select<T: Element>(mask: Source<bool>, x: Source<T>, y: Source<T>, out: &mut [T]) {
    if out.is_empty() || out.len() <= BLOCK && elementwise_small::run_ternary(mask, x, y, out, block::select) {
        return;
    }
    let accesses = [mask.layout, x.layout, y.layout].map(Access::new);
    let read = size_of_val(mask.data) + size_of_val(x.data) + size_of_val(y.data);
    let (mask, x, y) =
        (Input::new(&accesses[0], mask.data), Input::new(&accesses[1], x.data), Input::new(&accesses[2], y.data));
    let is_streamed = driver::is_streamed(size_of_val(out), read);
    let tiling = tiling(out.len(), &accesses, 1, is_streamed);
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        let (mut mask, mut x, mut y) = (mask.reader(&tiling), x.reader(&tiling), y.reader(&tiling));
        blocks(&mut |start, out| {
            let len = out.len();
            block::select(mask.read(start, len), x.read(start, len), y.read(start, len), out);
        });
    });
}

/// Writes `f` of each element of `x` to `out`, for any function `f`.
pub(crate) fn map<T: Element, U: Element>(x: Source<T>, out: &mut [U], f: impl Fn(T) -> U + Sync) {
    run_unary(x, out, true, 1, &|x, out| loops::map_unary(x, out, &f));
}

/// Converts the elements of `x` to another type, in row-major order.
pub(crate) fn convert<T: Element, U: Element>(x: Source<T>, out: &mut [U]) {
    run_unary(x, out, true, 1, &|x, out| loops::convert(x, out));
}

/// Copies `x` to `out`, in row-major order.
pub(crate) fn copy<T: Element>(x: Source<T>, out: &mut [T]) {
    let access = if out.is_empty() { Access::Number } else { Access::new(x.layout) };
    let is_streamed = driver::is_streamed(size_of_val(out), size_of_val(x.data));
    let space = match access {
        Access::Strided(space) => space,
        Access::Transposed(space, tiles) if !is_streamed => return transpose::copy(x.data, &space, tiles, out),
        // The rows of a tile are short. For them, an inlined loop is faster than a call of `memcpy`.
        Access::Transposed(..) => return map(x, out, |x| x),
        _ => return run_unary(x, out, true, 1, &loops::copy),
    };
    // If `is_streamed` is false, the elements of each block are copied directly from `x` to the result. Otherwise they pass through a buffer.
    let tiling = match is_streamed {
        true => Tiling::of_operation(out.len(), space.run_length(), 1),
        false => Tiling::of_copy(out.len(), space.run_length()),
    };
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        blocks(&mut |start, out| fill::spread(&space, x.data, start, out));
    });
}

/// Computes `x = op(x, y)`, where `x` is the part of `data` that `layout` describes. `y` broadcasts to the shape of `x`. No two elements of
/// `x` may have the same position in `data`.
pub(crate) fn update<T: Element>(op: Binary, data: &mut [T], layout: &Layout, y: Source<T>) {
    let mut expanded = None;
    let y = y.expand_to(layout.shape(), &mut expanded);
    if !layout.is_contiguous() {
        return update_window(data, layout, y, false, |y, x| T::update(op, x, y));
    }
    let x = &mut data[layout.offset()..][..layout.numel()];
    if x.len() > BLOCK && T::has_row_loop(op) {
        let access = Access::new(y.layout);
        let rows = |rows: RowBroadcast, [_, first]: [usize; 2], x: &mut [T]| {
            T::rows(op, rows, None, &y.data[first..], x);
        };
        if fill_by_rows([layout, y.layout], &[&access], x, false, &rows) {
            return;
        }
    }
    run_unary(y, x, false, op.cost(), &|y, x| T::update(op, x, y));
}

/// Copies `y` to `x`, where `x` is the part of `data` that `layout` describes. `x` and `y` have the same shape. No two elements of `x` may
/// have the same position in `data`.
pub(crate) fn assign<T: Element>(data: &mut [T], layout: &Layout, y: Source<T>) {
    if layout.is_contiguous() {
        return copy(y, &mut data[layout.offset()..][..layout.numel()]);
    }
    update_window(data, layout, y, true, loops::copy);
}

/// Computes `out = f(x)`. `is_overwritten` is true if `f` does not read the old elements of `out`.
fn run_unary<T: Element, U: Element>(
    x: Source<T>,
    out: &mut [U],
    is_overwritten: bool,
    cost: usize,
    f: &(dyn Fn(Operand<T>, &mut [U]) + Sync),
) {
    if out.is_empty() || out.len() <= BLOCK && elementwise_small::run_unary(x, out, f) {
        return;
    }
    let accesses = [Access::new(x.layout)];
    let is_streamed = is_overwritten && driver::is_streamed(size_of_val(out), size_of_val(x.data));
    let x = Input::new(&accesses[0], x.data);
    // The loops of operations in place copy the old elements to an array of [`BLOCK`] elements, so no block may be longer.
    let tiling = tiling(out.len(), &accesses, cost, is_streamed || !is_overwritten);
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        let mut x = x.reader(&tiling);
        blocks(&mut |start, out| f(x.read(start, out.len()), out));
    });
}

/// A function that computes one block of a result from the same block of two operands.
type BlockLoop<'a, T, U> = dyn Fn(Operand<T>, Operand<T>, &mut [U]) + Sync + 'a;

/// The additional loops that addition, subtraction, multiplication and division of floating-point numbers have.
struct ArithmeticLoops<'a, T, U> {
    rows: &'a RowFill<'a, U>,
    /// A loop over a block that writes its results with stores that bypass the caches.
    stream: &'a BlockLoop<'a, T, U>,
}

/// A function that fills several rows of a result. The array has, for each of the two operands, the position of the first element to read.
type RowFill<'a, U> = dyn Fn(RowBroadcast, [usize; 2], &mut [U]) + Sync + 'a;

/// Computes `out = f(x, y)`. The loops in `arithmetic`, if given, replace `f` for short rows and for results that bypass the caches.
fn run_binary<T: Element, U: Element>(
    [x, y]: [Source<T>; 2],
    out: &mut [U],
    cost: usize,
    arithmetic: Option<ArithmeticLoops<'_, T, U>>,
    f: &BlockLoop<'_, T, U>,
) {
    let accesses = [x.layout, y.layout].map(Access::new);
    let is_streamed = driver::is_streamed(size_of_val(out), size_of_val(x.data) + size_of_val(y.data));
    if let Some(ArithmeticLoops { rows, .. }) = &arithmetic
        && fill_by_rows([x.layout, y.layout], &accesses.each_ref(), out, is_streamed, rows)
    {
        return;
    }
    let (x, y) = (Input::new(&accesses[0], x.data), Input::new(&accesses[1], y.data));
    let tiling = tiling(out.len(), &accesses, cost, is_streamed);
    // If the result is cut into tiles (for a transposed operand), its blocks are too short for the loop `stream`.
    let stream = arithmetic.filter(|_| is_streamed && tiling.tiles().is_none()).map(|loops| loops.stream);
    driver::fill(&tiling, out, is_streamed && stream.is_none(), &|blocks| {
        let (f, mut x, mut y) = (stream.unwrap_or(f), x.reader(&tiling), y.reader(&tiling));
        blocks(&mut |start, out| f(x.read(start, out.len()), y.read(start, out.len()), out));
        if stream.is_some() {
            cpu::fence_streams();
        }
    });
}

/// Returns the tiling (blocks and tasks) of `count` elements. `accesses` says how each operand is read. `cost` is the operation's cost in
/// additions. If `has_short_blocks` is true, no block has more than [`BLOCK`] elements.
fn tiling(count: usize, accesses: &[Access], cost: usize, has_short_blocks: bool) -> Tiling {
    if !has_short_blocks && accesses.iter().all(|access| matches!(access, Access::Contiguous(_) | Access::Uniform(_))) {
        return Tiling::of_contiguous(count, cost);
    }
    match accesses.iter().find_map(Access::tiles) {
        Some(tiles) => Tiling::of_tiles(count, tiles),
        None => Tiling::of_operation(count, accesses.iter().map(Access::run_length).fold(count, usize::min), cost),
    }
}

/// Fills `out` by calls of `f` that each compute several rows. The rows and columns are the two innermost loops of the operands. `f` gets
/// the sizes of its rows, the position of the first element of each operand, and a part of `out`. `accesses` says how each operand would be
/// read block by block. If `is_streamed` is true, the result bypasses the caches, and `f` must not read the old elements of its part of
/// `out`.
///
/// Computes nothing and returns false if there are fewer than two loops, if no operand is [strided](Access::Strided), or if rows are too
/// long. Does the same if rows are so short that copying them into blocks is faster. Also returns false if an operand's stride along its rows
/// is neither 0 nor 1, or if this stride is 0 for both operands. The same holds if the rows of an operand are in descending order in memory.
fn fill_by_rows<U: Element>(
    layouts: [&Layout; 2],
    accesses: &[&Access],
    out: &mut [U],
    is_streamed: bool,
    f: &RowFill<'_, U>,
) -> bool {
    if !accesses.iter().any(|access| matches!(access, Access::Strided(_))) {
        return false;
    }
    let space = IterationSpace::new(layouts[0].shape(), layouts);
    let Some(outer) = space.depth().checked_sub(2) else { return false };
    let ((height, [x_row_stride, y_row_stride]), (columns, inner)) = (space.loop_of(outer), space.loop_of(outer + 1));
    let plain = inner.iter().all(|&stride| stride == 0 || stride == 1) && inner != [0, 0];
    if columns > BLOCK || !plain || x_row_stride < 0 || y_row_stride < 0 {
        return false;
    }
    let (x_row_stride, y_row_stride) = (x_row_stride as usize, y_row_stride as usize);
    let short = if x_row_stride == 0 || y_row_stride == 0 { MIN_LOOPED_REPEATED_ROW } else { MIN_LOOPED_ROW };
    if columns < short && accesses.iter().all(|access| access.is_written_by_rows()) {
        return false;
    }
    let rows = RowBroadcast {
        rows: 0,
        columns,
        x_row_stride,
        y_row_stride,
        x_has_columns: inner[0] == 1,
        y_has_columns: inner[1] == 1,
    };
    let tiling = Tiling::of_row_broadcast(out.len(), (height, columns), is_streamed);
    driver::fill(&tiling, out, is_streamed, &|blocks| {
        blocks(&mut |start, out| {
            for_each_matrix((height, columns), start, out, |first, out| {
                let starts = [space.position(0, first), space.position(1, first)];
                f(RowBroadcast { rows: out.len() / columns, ..rows }, starts, out);
            });
        });
    });
    true
}

/// Calls `f(y, x)` for each block of `x`, where `x` is the part of `data` that `layout` describes. A block of `x` is copied to a buffer,
/// changed by `f`, and written back. `is_overwritten` is true if `f` does not read the old elements of `x`, which are then not copied. All
/// blocks run on the calling thread, because the elements of two blocks may alternate in memory.
fn update_window<T: Element>(
    data: &mut [T],
    layout: &Layout,
    y: Source<T>,
    is_overwritten: bool,
    f: impl Fn(Operand<T>, &mut [T]),
) {
    if layout.numel() == 0 {
        return;
    }
    let (window, access) = (IterationSpace::new(layout.shape(), [layout]), Access::new(y.layout));
    let y = Input::new(&access, y.data);
    let tiling = Tiling::of_operation(layout.numel(), window.run_length().min(access.run_length()), 1);
    let (mut x, mut y) = ([T::ZERO; BLOCK], y.reader(&tiling));
    for task in 0..tiling.task_count() {
        tiling.for_each_block(task, |start, len| {
            let x = &mut x[..len];
            if !is_overwritten {
                fill::spread(&window, data, start, x);
            }
            f(y.read(start, len), x);
            fill::scatter(&window, x, start, data);
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

    /// Tests operands that repeat rows of different lengths. For some shapes, a piece that is read at once ends within a row of one
    /// operand.
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
    fn broadcast_operands_are_read_in_place() {
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

    /// Returns the results of `f` for pairs of elements.
    fn both<T>(x: &[f64], y: &[f64], f: impl Fn(f64, f64) -> T) -> Vec<T> {
        assert_eq!(x.len(), y.len());
        (0..x.len()).map(|i| f(x[i], y[i])).collect()
    }

    /// Tests operations on operands of every variant of [`Access`](crate::engine::access::Access) that a tensor can have. The expected
    /// results are computed element by element.
    #[test]
    fn every_operation_reads_every_access() {
        for [batch, rows, columns] in [[2, 3, 4], [3, 70, 131], [40, 9, 3], [2, 64, 600], [30, 40, 16], [1, 300, 300]] {
            let shape = [batch, rows, columns].map(|size| size as isize);
            let of = |sizes: [usize; 3]| Tensor::<f64>::from_fn(sizes, |i| ((i[0] * 31 + i[1] * 7 + i[2]) % 13) as f64);
            let operands = [
                of([batch, rows, columns]),
                of([batch, columns, rows]).transpose(1, 2),
                of([1, columns, rows]).transpose(1, 2).expand(shape),
                of([batch, 2 * rows, columns + 1]).slice(1, (1.., 2)).slice(2, 1..),
                of([batch, rows, columns]).flip([0, 2]),
                of([1, 1, columns]).expand(shape),
                of([1, rows, 1]).expand(shape),
                of([batch, 1, columns]).expand(shape),
                of([1, rows, columns]).expand(shape),
                Tensor::full([1, 1, 1], 3.0).expand(shape),
            ];
            let values: Vec<Vec<f64>> = operands.iter().map(Tensor::to_vec).collect();
            for (x, xs) in operands.iter().zip(&values) {
                assert_eq!(x.square().to_vec(), xs.iter().map(|x| x * x).collect::<Vec<_>>());
                assert_eq!(x.cast::<i64>().to_vec(), xs.iter().map(|&x| x as i64).collect::<Vec<_>>());
                for (y, ys) in operands.iter().zip(&values) {
                    let differences = both(xs, ys, |x, y| x - y);
                    assert!((x - y).to_vec() == differences);
                    assert!(x.maximum(y).to_vec() == both(xs, ys, f64::max));
                    assert!(x.le(y).to_vec() == both(xs, ys, |x, y| x <= y));
                    assert!(where_(&y.gt(5.0), x, y).to_vec() == both(xs, ys, |x, y| if y > 5.0 { x } else { y }));
                    let (next, remainders) = (y + 1.0, both(xs, ys, |x, y| x % (y + 1.0)));
                    // Tests operations in place: on a contiguous tensor, and on a view with gaps that alone holds its memory.
                    let zeros = |columns| Tensor::<f64>::zeros([batch, rows, columns]);
                    for view in [false, true] {
                        let target = || if view { zeros(2 * columns).slice(2, (1.., 2)) } else { zeros(columns) };
                        let (mut difference, mut remainder) = (target(), target());
                        difference.add_(x);
                        assert!(difference.to_vec() == *xs);
                        difference.sub_(y);
                        assert!(difference.to_vec() == differences);
                        remainder.add_(x);
                        remainder.fmod_(&next);
                        assert!(remainder.to_vec() == remainders);
                    }
                }
            }
        }
    }
}
