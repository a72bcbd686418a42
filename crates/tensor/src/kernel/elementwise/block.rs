//! What block kernels there are of each element type.
//!
//! A block is a few hundred to a few thousand elements. An operand is a slice of as many, or one number for all. The loop
//! over a block is chosen once per block, so that the compiler sees a plain loop over slices.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::loops::three;
use crate::kernel::elementwise::operand::{Operand, Plane};
use crate::scalar::instruction::Instruction;
use crate::{Binary, Compare, Reduction, Scalar, Unary};

/// Operations over a block of elements. Sealed: implemented for the five element types, in `float`, `int` and `bool`.
///
/// A function returns `false`, and writes nothing, where the type does not have the operation.
#[doc(hidden)]
pub trait BlockKernels: Scalar {
    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) -> bool;
    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) -> bool;
    /// `out = op(x, y)` over rows of columns, for the few operations that are worth a loop of their own; `false`, and nothing
    /// done, for the others.
    fn plane(op: Binary, plane: Plane, x: &[Self], y: &[Self], out: &mut [Self]) -> bool {
        let _ = (op, plane, x, y, out);
        false
    }
    /// `x = op(x, y)`, for the few operations that are worth a loop of their own; `false`, and nothing done, for the others.
    fn onto(op: Binary, x: &mut [Self], y: Operand<Self>) -> bool {
        let _ = (op, x, y);
        false
    }
    fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
    /// `total[i] = op(total[i], x[i])`.
    fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool;
    /// The reduction of a slice that is not long; `None` where the type does not have it.
    fn reduce(op: Reduction, x: &[Self]) -> Option<Self>;
    /// `total[i] = op(total[i], x[i], x[stride + i], …)`, `rows` rows, each as long as `total`; several at a time, so that
    /// at most `rows` / 8 + 7 follow one after the other.
    fn accumulate_rows(op: Reduction, total: &mut [Self], x: &[Self], stride: usize, rows: usize) {
        let width = total.len();
        for row in 0..rows {
            Self::accumulate(op, total, &x[row * stride..][..width]);
        }
    }
    /// [`reduce`](Self::reduce) of slices of `len` elements, `stride` apart: one for each of `out`.
    fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
        for (row, out) in out.iter_mut().enumerate() {
            if let Some(total) = Self::reduce(op, &x[row * stride..][..len]) {
                *out = total;
            }
        }
    }
    /// [`reduce_each`](Self::reduce_each) of 1 to 15 elements; `false`, and nothing done, where the type has no loop of its own.
    fn reduce_short(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) -> bool {
        let _ = (op, x, len, stride, out);
        false
    }
    /// The reduction of nothing, where that is defined.
    fn identity(op: Reduction) -> Option<Self> {
        match op {
            Reduction::Sum => Some(Self::ZERO),
            Reduction::Prod => Some(Self::ONE),
            Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => None,
        }
    }
}

/// What fused programs need besides: floating-point numbers as masks, and where a reduction starts.
#[doc(hidden)]
pub trait FloatBlockKernels: BlockKernels {
    /// `out = x op y`, as 0 and 1.
    fn flags(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `out = mask != 0 ? x : y`.
    fn choose(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `totals[i] = op(totals[i], row i of x)`, rows of `row` elements, each reduced one after the other.
    fn short_rows(op: Reduction, x: &[Self], row: usize, totals: &mut [Self]);
    /// The neutral element of a reduction, infinite where it is of an order.
    fn start(op: Reduction) -> Self;
    /// Runs the first of `instructions`, up to one that is not plain arithmetic, over values that are lines of `line`
    /// elements, 64, 128 or 256 bytes: the result of the first is at `from`, those of the others follow. Returns how many ran.
    fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, line: usize) -> usize;
    /// Memory that a thread keeps for the registers of programs.
    fn arena() -> &'static LocalKey<RefCell<Vec<Self>>>;
}

crate::scalar::cpu::dispatched! {
    /// `out = mask ? x : y`.
    pub(crate) fn select<T: Copy>(mask: Operand<'_, bool>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        three(mask, x, y, out, |mask, x, y| if mask { x } else { y });
    }
}
