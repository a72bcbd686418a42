//! The short path of operations over at most one block of elements. This path does not choose an [`Access`](crate::engine::access::Access)
//! for each operand, because choosing would take longer than the computation.
//!
//! Two operands are read in place if two loops over adjacent or repeated elements are enough (see [`row_broadcast`]). Many short rows are
//! an exception, if the operation has no loop over rows. All other operands are copied to a small buffer, piece by piece, unless they are
//! contiguous or one repeated element. A piece is a range of the operand's elements.

use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::kernel::fill;
use crate::kernel::source::Source;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::blocks::BLOCK;
use crate::thresholds::rows::{FEW_GATHERED_ROWS, LONG_GATHERED_ROW, MAX_PIECE, MIN_UNGATHERED_ROW, VECTOR_ELEMENTS};
use crate::{Binary, Element, Layout, Shape};

/// Returns the rows and columns in which two operands that broadcast to `shape` are read. The shape has at least one element. Returns
/// `None` if the operands need more than two loops, or if the elements of a row are neither adjacent nor one repeated element. Also
/// returns `None` if the rows of an operand are in descending order in memory.
#[inline(always)]
pub(crate) fn row_broadcast(shape: &Shape, [x, y]: [&Layout; 2]) -> Option<RowBroadcast> {
    // The sizes and strides of the loops are in variables and not in arrays. The compiler keeps variables in registers but arrays in
    // memory, where reading a value that was just written takes longer.
    let (mut depth, rank) = (0, shape.rank());
    let (mut columns, mut x_step, mut y_step) = (1, 1, 1);
    let (mut rows, mut x_row_stride, mut y_row_stride) = (1, 0, 0);
    for from_end in 1..=rank {
        let size = shape[rank - from_end];
        if size == 1 {
            continue;
        }
        let (own_x, own_y) = (broadcast_stride(x, from_end), broadcast_stride(y, from_end));
        match depth {
            0 => (depth, columns, x_step, y_step) = (1, size, own_x, own_y),
            1 if own_x == x_step * columns as isize && own_y == y_step * columns as isize => columns *= size,
            1 => (depth, rows, x_row_stride, y_row_stride) = (2, size, own_x, own_y),
            _ if own_x == x_row_stride * rows as isize && own_y == y_row_stride * rows as isize => rows *= size,
            _ => return None,
        }
    }
    let plain = matches!((x_step, y_step), (0 | 1, 0 | 1)) && x_row_stride >= 0 && y_row_stride >= 0;
    let (x_row_stride, y_row_stride) = (x_row_stride as usize, y_row_stride as usize);
    plain.then_some(RowBroadcast {
        rows,
        columns,
        x_row_stride,
        y_row_stride,
        x_has_columns: x_step == 1,
        y_has_columns: y_step == 1,
    })
}

/// Returns the stride of the dimension that is `from_end` dimensions before the end. Returns 0 if `layout` does not have this dimension, or
/// if the dimension has size 1.
#[inline(always)]
fn broadcast_stride(layout: &Layout, from_end: usize) -> isize {
    match layout.shape().rank().checked_sub(from_end) {
        Some(axis) if layout.shape()[axis] != 1 => layout.strides()[axis],
        _ => 0,
    }
}

/// Computes `out = op(x, y)` for operands that broadcast to `shape`, and returns true. Operands with short rows are copied before they are
/// read if [`row_broadcast`] returns `None`, or if there are many rows and no loop over rows. If an operand that must be copied has long
/// rows, computes nothing and returns false.
#[inline]
pub(crate) fn binary<T: Element>(op: Binary, shape: &Shape, x: Source<T>, y: Source<T>, out: &mut [T]) -> bool {
    let rows = |rows: RowBroadcast, x: &[T], y: &[T], out: &mut [T]| {
        let done = T::has_row_loop(op) && (rows.x_has_columns || rows.y_has_columns);
        if done {
            T::rows(op, rows, Some(x), y, out);
        }
        done
    };
    run_binary(shape, x, y, out, rows, |x, y, out| T::binary(op, x, y, out))
}

/// Computes `out = f(x, y)` for operands that broadcast to `shape`, and returns true. If there are several rows, calls `rows` to compute
/// them. If `rows` returns false, calls `f` for each row or for pieces of several rows. Like [`binary`], may compute nothing and return
/// false.
#[inline]
pub(crate) fn run_binary<T: Element, U>(
    shape: &Shape,
    x: Source<T>,
    y: Source<T>,
    out: &mut [U],
    rows: impl Fn(RowBroadcast, &[T], &[T], &mut [U]) -> bool,
    f: impl Fn(Operand<T>, Operand<T>, &mut [U]),
) -> bool {
    let (first, second) = (x.layout.offset(), y.layout.offset());
    let Some(own) = row_broadcast(shape, [x.layout, y.layout]) else { return run_gathered_binary(shape, x, y, out, f) };
    let columns = own.columns;
    if own.rows == 1 {
        f(
            Operand::row(x.data, first, own.x_has_columns, columns),
            Operand::row(y.data, second, own.y_has_columns, columns),
            out,
        );
        return true;
    }
    if rows(own, &x.data[first..], &y.data[second..], out) {
        return true;
    }
    if own.rows > FEW_GATHERED_ROWS && columns < MIN_UNGATHERED_ROW {
        return run_gathered_binary(shape, x, y, out, f);
    }
    for (row, out) in out.chunks_exact_mut(columns).enumerate() {
        let x = Operand::row(x.data, first + row * own.x_row_stride, own.x_has_columns, columns);
        f(x, Operand::row(y.data, second + row * own.y_row_stride, own.y_has_columns, columns), out);
    }
    true
}

/// An operand of at most one block. It is read in pieces (ranges of elements), one after the other in ascending order.
enum GatheredOperand<'a, T> {
    /// All elements of the operand, if they are contiguous or one repeated element.
    Whole(Operand<'a, T>),
    /// The short row that the operand repeats.
    Row(&'a [T]),
    /// The loops over the operand's short rows, and the buffer in which the rows are. The elements of a piece are copied out of the rows
    /// before the piece is read.
    Rows(IterationSpace<1>, &'a [T]),
}

impl<'a, T: Element> GatheredOperand<'a, T> {
    /// Returns the operand `x`, or `None` if `x` must be copied piece by piece and its rows are long.
    #[inline]
    fn new(x: Source<'a, T>) -> Option<Self> {
        if let Some(whole) = x.as_operand() {
            return Some(GatheredOperand::Whole(whole));
        }
        if let Some(row) = x.repeated_row() {
            return (row.len() < LONG_GATHERED_ROW).then_some(GatheredOperand::Row(row));
        }
        let space = IterationSpace::new(x.layout.shape(), [x.layout]);
        (space.run_length() < LONG_GATHERED_ROW).then_some(GatheredOperand::Rows(space, x.data))
    }

    /// Returns the largest length of a piece (a range of the operand that is read at once), in elements. This length is a multiple of the
    /// length of a row, and if possible also of the number of elements in a vector register. Returns [`BLOCK`] if the operand needs no
    /// copy.
    #[inline]
    fn max_piece_len(&self) -> usize {
        let row = match self {
            GatheredOperand::Whole(_) => return BLOCK,
            GatheredOperand::Row(row) => row.len(),
            GatheredOperand::Rows(space, _) => space.run_length(),
        };
        let both =
            row << (VECTOR_ELEMENTS.trailing_zeros() - row.trailing_zeros().min(VECTOR_ELEMENTS.trailing_zeros()));
        if both <= MAX_PIECE { MAX_PIECE / both * both } else { MAX_PIECE / row * row }
    }

    /// Returns the first `len` elements of the piece with index `number`. Each piece except the last has `piece` elements. On entry, `buffer`
    /// contains the previous piece. Overwrites `buffer`, unless both pieces are equal or the operand needs no copy.
    #[inline]
    fn piece<'b>(&'b self, number: usize, piece: usize, len: usize, buffer: &'b mut [T; MAX_PIECE]) -> Operand<'b, T> {
        let start = number * piece;
        match self {
            GatheredOperand::Whole(Operand::Splat(value)) => return Operand::Splat(*value),
            GatheredOperand::Whole(Operand::Slice(elements)) => return Operand::Slice(&elements[start..start + len]),
            // If a piece consists of whole repetitions of the row, all pieces are equal, and `buffer` already has this piece.
            GatheredOperand::Row(row) if number > 0 && piece.is_multiple_of(row.len()) => {}
            GatheredOperand::Row(row) => fill::repeat(row, start, &mut buffer[..len]),
            GatheredOperand::Rows(space, data) => fill::spread(space, data, start, &mut buffer[..len]),
        }
        Operand::Slice(&buffer[..len])
    }
}

/// Computes `out = f(x)` over one to [`BLOCK`] elements. If `x` is neither contiguous nor one repeated element and has long rows, computes
/// nothing and returns false.
pub(crate) fn run_unary<T: Element, U>(x: Source<T>, out: &mut [U], f: impl Fn(Operand<T>, &mut [U])) -> bool {
    if let Some(x) = x.as_operand() {
        f(x, out);
        return true;
    }
    run_gathered_unary(x, out, f)
}

#[inline(never)]
fn run_gathered_unary<T: Element, U>(x: Source<T>, out: &mut [U], f: impl Fn(Operand<T>, &mut [U])) -> bool {
    let Some(x) = GatheredOperand::new(x) else { return false };
    let mut buffer = [T::ZERO; MAX_PIECE];
    let piece = x.max_piece_len();
    for (number, out) in out.chunks_mut(piece).enumerate() {
        f(x.piece(number, piece, out.len(), &mut buffer), out);
    }
    true
}

#[inline(never)]
fn run_gathered_binary<T: Element, U>(
    shape: &Shape,
    x: Source<T>,
    y: Source<T>,
    out: &mut [U],
    f: impl Fn(Operand<T>, Operand<T>, &mut [U]),
) -> bool {
    let (mut first, mut second) = (None, None);
    let (x, y) = (x.expand_to(shape, &mut first), y.expand_to(shape, &mut second));
    let (Some(x), Some(y)) = (GatheredOperand::new(x), GatheredOperand::new(y)) else { return false };
    let (mut first, mut second) = ([T::ZERO; MAX_PIECE], [T::ZERO; MAX_PIECE]);
    let piece = x.max_piece_len().min(y.max_piece_len());
    for (number, out) in out.chunks_mut(piece).enumerate() {
        let len = out.len();
        f(x.piece(number, piece, len, &mut first), y.piece(number, piece, len, &mut second), out);
    }
    true
}

/// Computes `out = f(mask, x, y)` over one to [`BLOCK`] elements. If an operand is neither contiguous nor one repeated element and has long
/// rows, computes nothing and returns false.
pub(crate) fn run_ternary<M: Element, T: Element, U>(
    mask: Source<M>,
    x: Source<T>,
    y: Source<T>,
    out: &mut [U],
    f: impl Fn(Operand<M>, Operand<T>, Operand<T>, &mut [U]),
) -> bool {
    let (Some(mask), Some(x), Some(y)) = (GatheredOperand::new(mask), GatheredOperand::new(x), GatheredOperand::new(y))
    else {
        return false;
    };
    let (mut first, mut second, mut third) = ([M::ZERO; MAX_PIECE], [T::ZERO; MAX_PIECE], [T::ZERO; MAX_PIECE]);
    let piece = mask.max_piece_len().min(x.max_piece_len()).min(y.max_piece_len());
    for (number, out) in out.chunks_mut(piece).enumerate() {
        let len = out.len();
        let mask = mask.piece(number, piece, len, &mut first);
        f(mask, x.piece(number, piece, len, &mut second), y.piece(number, piece, len, &mut third), out);
    }
    true
}
