//! The traits of block kernels, which compute a block of elements with one call.
//!
//! A block has up to a few thousand elements. An operand is a slice as long as the block, or one number for all elements. The loop is
//! chosen once per block, so that the compiler sees a plain loop over slices.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::loops::three;
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::kernel::strided::BLOCK;
use crate::scalar::instruction::Instruction;
use crate::{Binary, Compare, Scalar, Unary};

/// Operations over a block of elements. Sealed: implemented for the five element types, in `float`, `int` and `bool`.
#[doc(hidden)]
pub trait BlockKernels: Scalar {
    /// Returns whether elements of this type have the unary operation `op`.
    fn supports_unary(op: Unary) -> bool;
    /// Returns whether elements of this type have the binary operation `op`.
    fn supports_binary(op: Binary) -> bool;
    /// Computes `out = op(x)`. Panics unless the type [supports](Self::supports_unary) `op`.
    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]);
    /// Computes `out = op(x, y)`. Panics unless the type [supports](Self::supports_binary) `op`.
    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Returns whether [`rows`](Self::rows) and [`stream`](Self::stream) can compute `op`.
    fn has_rows(op: Binary) -> bool {
        let _ = op;
        false
    }
    /// Computes `out = op(x, y)` over several rows. If `x` is `None`, `out` is also the first operand. Panics unless
    /// [`has_rows`](Self::has_rows) returns true.
    fn rows(op: Binary, rows: RowBroadcast, x: Option<&[Self]>, y: &[Self], out: &mut [Self]) {
        let _ = (rows, x, y, out);
        unreachable!("{op:?} has no loop over rows")
    }
    /// Computes `out = op(x, y)` with stores that bypass the caches. The caller must then call [`streamed`](crate::scalar::cpu::streamed),
    /// which makes the elements visible to other threads. Panics unless [`has_rows`](Self::has_rows) returns true for `op`.
    fn stream(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
        let _ = (x, y, out);
        unreachable!("{op:?} has no loop that streams")
    }
    /// Computes `x = op(x, y)` over at most [`BLOCK`] elements. Panics unless the type [supports](Self::supports_binary) `op`.
    fn update(op: Binary, x: &mut [Self], y: Operand<Self>) {
        // `x` cannot be both an operand and the output. So its old elements are copied to a small array in the first-level cache.
        let mut before = [Self::ZERO; BLOCK];
        let before = &mut before[..x.len()];
        before.copy_from_slice(x);
        Self::binary(op, Operand::Slice(before), y, x);
    }
    fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
}

/// Further kernels for fused programs: masks as floating-point numbers, and blocks of plain arithmetic.
#[doc(hidden)]
pub trait FloatBlockKernels: BlockKernels {
    /// Computes `out = x op y`, where 1 stands for true and 0 for false.
    fn flags(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Computes `out = mask != 0 ? x : y`.
    fn choose(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Runs `instructions` up to the first that is not plain arithmetic. Returns the number of instructions that ran. Each value has `len`
    /// elements, which have 64, 128 or 256 bytes in total. The first result is stored at position `from` of `values`, and the others follow
    /// it.
    fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, len: usize) -> usize;
    /// Returns the thread-local memory for the registers (intermediate values) of compiled programs.
    fn arena() -> &'static LocalKey<RefCell<Vec<Self>>>;
    /// Runs `work` with the memory of [`arena`](Self::arena). When a thread ends, a destructor may still compute after this memory was
    /// released. Then `work` gets an empty vector.
    fn with_arena<R>(work: impl FnOnce(&mut Vec<Self>) -> R) -> R {
        if Self::arena().try_with(|_| ()).is_err() {
            return work(&mut Vec::new());
        }
        Self::arena().with_borrow_mut(work)
    }
}

crate::scalar::cpu::dispatched! {
    /// Computes `out = mask ? x : y`.
    pub(crate) fn select<T: Copy>(mask: Operand<'_, bool>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        three(mask, x, y, out, |mask, x, y| if mask { x } else { y });
    }
}
