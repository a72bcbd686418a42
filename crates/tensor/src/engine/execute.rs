//! Computes one instruction over one block, or over the rows and columns of a block.

use crate::Float;
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::scalar::instruction::{Instruction, ValueIndex};

/// Computes one instruction over a block of elements. The instruction must not be a reduction. If each operand is one number, returns the
/// result as one number. Does the same for a selection whose mask and selected operand are single numbers. Otherwise writes the result to
/// `out`, and returns `None`. `read(k)` returns the elements of the value with index `k`.
#[inline(always)]
pub(crate) fn execute<'a, T: Float>(
    instruction: Instruction,
    read: impl Fn(ValueIndex) -> Operand<'a, T>,
    out: &mut [T],
) -> Option<T> {
    use Operand::{Slice, Splat};
    let mut one = [T::ZERO];
    match instruction {
        Instruction::Unary(op, x) => {
            let x = read(x);
            let single = matches!(x, Splat(_));
            T::unary(op, x, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Binary(op, x, y) => {
            let (x, y) = (read(x), read(y));
            let single = matches!((&x, &y), (Splat(_), Splat(_)));
            T::binary(op, x, y, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Compare(op, x, y) => {
            let (x, y) = (read(x), read(y));
            let single = matches!((&x, &y), (Splat(_), Splat(_)));
            T::compare_as_float(op, x, y, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Select(mask, x, y) => match (read(mask), read(x), read(y)) {
            (Splat(mask), x, y) => match if mask != T::ZERO { x } else { y } {
                Splat(value) => Some(value),
                Slice(values) => {
                    out.copy_from_slice(values);
                    None
                }
            },
            (mask, x, y) => {
                T::select(mask, x, y, out);
                None
            }
        },
        Instruction::Reduce(..) => unreachable!("reductions have as many results as there are rows"),
    }
}

/// An operand of an instruction over a block of rows and columns.
pub(crate) struct RowOperand<'a, T> {
    pub(crate) data: &'a [T],
    /// The distance between rows in `data`, in elements. It is 0 if one row repeats.
    pub(crate) row_stride: usize,
    /// True if the operand has an element for each column. False if it has one value for each row.
    pub(crate) has_columns: bool,
}

/// Computes an instruction over rows of `columns` elements, and returns true. `read` returns the elements of an operand. If `read` returns
/// `None` for an operand, or if the instruction has no loop over rows, computes nothing and returns false.
#[inline(always)]
pub(crate) fn execute_rows<'a, T: Float>(
    instruction: Instruction,
    columns: usize,
    read: impl Fn(ValueIndex) -> Option<RowOperand<'a, T>>,
    out: &mut [T],
) -> bool {
    let Instruction::Binary(op, x, y) = instruction else { return false };
    if !T::has_row_loop(op) {
        return false;
    }
    let (Some(x), Some(y)) = (read(x), read(y)) else { return false };
    let (x_row_stride, y_row_stride, rows) = (x.row_stride, y.row_stride, out.len() / columns);
    let rows = RowBroadcast {
        rows,
        columns,
        x_row_stride,
        y_row_stride,
        x_has_columns: x.has_columns,
        y_has_columns: y.has_columns,
    };
    T::rows(op, rows, Some(x.data), y.data, out);
    true
}
