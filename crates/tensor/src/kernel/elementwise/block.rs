//! The block kernels of each element type.
//!
//! A block has up to a few thousand elements. An operand is a slice of the same length, or one number for all elements. The loop is chosen
//! once per block, so that the compiler sees a plain loop over slices.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::loops::three;
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::kernel::strided::BLOCK;
use crate::scalar::instruction::Instruction;
use crate::{Binary, Compare, Reduction, Scalar, Unary};

/// Operations over a block of elements. Sealed: implemented for the five element types, in `float`, `int` and `bool`.
#[doc(hidden)]
pub trait BlockKernels: Scalar {
    /// Whether the type has the operation `op`.
    fn supports_unary(op: Unary) -> bool;
    /// Whether the type has the operation `op`.
    fn supports_binary(op: Binary) -> bool;
    /// Computes `out = op(x)`. Panics where `op` is not [supported](Self::supports_unary).
    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]);
    /// Computes `out = op(x, y)`. Panics where `op` is not [supported](Self::supports_binary).
    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Whether the type has [`rows`](Self::rows) and [`stream`](Self::stream) for `op`.
    fn has_rows(op: Binary) -> bool {
        let _ = op;
        false
    }
    /// Computes `out = op(x, y)` over several rows. Without `x`, `out` is the first operand too. Panics unless
    /// [`has_rows`](Self::has_rows).
    fn rows(op: Binary, rows: RowBroadcast, x: Option<&[Self]>, y: &[Self], out: &mut [Self]) {
        let _ = (rows, x, y, out);
        unreachable!("{op:?} has no loop over rows")
    }
    /// Computes `out = op(x, y)` with stores that bypass the caches; [`streamed`](crate::scalar::cpu::streamed) must follow. Panics unless
    /// [`has_rows`](Self::has_rows).
    fn stream(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
        let _ = (x, y, out);
        unreachable!("{op:?} has no loop that streams")
    }
    /// Computes `x = op(x, y)` over at most [`BLOCK`] elements. Panics where `op` is not [supported](Self::supports_binary).
    fn update(op: Binary, x: &mut [Self], y: Operand<Self>) {
        // The old elements are copied to the first-level cache.
        let mut before = [Self::ZERO; BLOCK];
        let before = &mut before[..x.len()];
        before.copy_from_slice(x);
        Self::binary(op, Operand::Slice(before), y, x);
    }
    fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
    /// `total[i] = op(total[i], x[i])`.
    fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool;
    /// The reduction of a short slice; `None` if the type does not have it.
    fn reduce(op: Reduction, x: &[Self]) -> Option<Self>;
    /// `total[i] = op(total[i], x[i], x[stride + i], …)` over `rows` rows as long as `total`, several at a time: at most `rows` / 8
    /// + 7 operations depend on one another.
    fn accumulate_rows(op: Reduction, total: &mut [Self], x: &[Self], stride: usize, rows: usize) {
        let width = total.len();
        for row in 0..rows {
            Self::accumulate(op, total, &x[row * stride..][..width]);
        }
    }
    /// [`reduce`](Self::reduce) of slices of `len` elements, `stride` apart, one for each element of `out`.
    fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
        for (row, out) in out.iter_mut().enumerate() {
            if let Some(total) = Self::reduce(op, &x[row * stride..][..len]) {
                *out = total;
            }
        }
    }
    /// [`reduce_each`](Self::reduce_each) of 1 to 15 elements; returns `false` and writes nothing if the type has no loop of its
    /// own.
    fn reduce_short(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) -> bool {
        let _ = (op, x, len, stride, out);
        false
    }
    /// The reduction of no elements, where it is defined.
    fn identity(op: Reduction) -> Option<Self> {
        match op {
            Reduction::Sum => Some(Self::ZERO),
            Reduction::Prod => Some(Self::ONE),
            Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => None,
        }
    }
}

/// Further kernels for fused programs: masks as floating-point numbers, and the start values of reductions.
#[doc(hidden)]
pub trait FloatBlockKernels: BlockKernels {
    /// `out = x op y`, as 0 and 1.
    fn flags(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `out = mask != 0 ? x : y`.
    fn choose(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `totals[i] = op(totals[i], row i of x)` over rows of `row` elements, each reduced in order.
    fn short_rows(op: Reduction, x: &[Self], row: usize, totals: &mut [Self]);
    /// The neutral element of a reduction; infinite for minimum and maximum.
    fn start(op: Reduction) -> Self;
    /// Runs the plain arithmetic `instructions` up to the first other instruction, over values of `len` elements (64, 128 or 256 bytes). The
    /// result of the first lies at `from`; the others follow. Returns the number of instructions that ran.
    fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, len: usize) -> usize;
    /// The thread-local memory for the registers of programs.
    fn arena() -> &'static LocalKey<RefCell<Vec<Self>>>;
}

crate::scalar::cpu::dispatched! {
    /// `out = mask ? x : y`.
    pub(crate) fn select<T: Copy>(mask: Operand<'_, bool>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        three(mask, x, y, out, |mask, x, y| if mask { x } else { y });
    }
}
