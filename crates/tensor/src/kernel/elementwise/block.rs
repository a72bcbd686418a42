//! The traits of block kernels, which compute a block of elements with one call.
//!
//! A block usually has at most [`TASK`](crate::thresholds::blocks::TASK) elements. An operand is a slice as long as the block, or one number
//! for all elements. [`RowBroadcast`] describes the operands of [`rows`](BlockKernels::rows). The loop is chosen once per block, so that the
//! compiler sees a plain loop over slices.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::loops::map_ternary;
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::memory::available::AllocationError;
use crate::memory::reserve;
use crate::scalar::formula::Formula;
use crate::scalar::instruction::Instruction;
use crate::thresholds::blocks::BLOCK;
use crate::thresholds::blocks::{MAX_KEPT_ELEMENTS, VECTOR_BYTES as CACHE_LINE};
use crate::{Binary, Compare, Scalar, Unary};

/// Implements methods of a trait by the functions of the same names in the calling module.
macro_rules! by_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $name($($argument: $type),*) $(-> $result)? {
            self::$name($($argument),*)
        }
    )*};
}
pub(crate) use by_functions;

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
    fn has_row_loop(op: Binary) -> bool {
        let _ = op;
        false
    }
    /// Computes `out = op(x, y)` over several rows. If `x` is `None`, `out` is also the first operand. Panics unless
    /// [`has_row_loop`](Self::has_row_loop) returns true.
    fn rows(op: Binary, rows: RowBroadcast, x: Option<&[Self]>, y: &[Self], out: &mut [Self]) {
        let _ = (rows, x, y, out);
        unreachable!("{op:?} has no loop over rows")
    }
    /// Computes `out = op(x, y)`. On x86-64, most of the stores bypass the caches. The caller must then call
    /// [`fence_streams`](crate::scalar::cpu::fence_streams), which makes the elements visible to other threads. Panics unless
    /// [`has_row_loop`](Self::has_row_loop) returns true for `op`.
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

/// Further kernels of the floating-point types: formulas of several operations, and kernels for fused programs. Fused programs use 1 and 0
/// as truth values.
#[doc(hidden)]
pub trait FloatBlockKernels: BlockKernels {
    /// Computes `out = formula(x, …)` for operands that are as long as `out`.
    fn formula(formula: Formula, operands: &[Operand<Self>], out: &mut [Self]);
    /// Computes `out = x op y`, where 1 stands for true and 0 for false.
    fn compare_as_float(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Computes `out = mask != 0 ? x : y`.
    fn select(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// Runs `instructions` up to the first one for which this function has no loop, such as an exponential. Returns the number of
    /// instructions that ran. Each value has `len` elements, which have 64, 128 or 256 bytes in total. The first result is stored at
    /// position `from` of `values`, and the others follow it.
    fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, len: usize) -> usize;
    /// Returns the thread-local memory for the registers (intermediate values) of fused programs.
    fn arena() -> &'static LocalKey<RefCell<Vec<Self>>>;
    /// Runs `work` with `len` elements of the memory of [`arena`](Self::arena). They have unspecified values and begin at a cache line. If
    /// the memory is larger than [`MAX_KEPT_ELEMENTS`], it is released afterwards. When a thread ends, a destructor may still compute after
    /// the arena was released. Then `work` gets new memory. `work` must not call this function again for the same type.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    fn with_memory<R>(len: usize, work: impl FnOnce(&mut [Self]) -> R) -> Result<R, AllocationError> {
        let run = |memory: &mut Vec<Self>| {
            let line = CACHE_LINE / size_of::<Self>();
            if memory.len() < len + line {
                // The old memory is released first, so that both never exist at the same time.
                *memory = Vec::new();
                *memory = reserve::zeroed(len + line)?;
            }
            let start = memory.as_ptr().align_offset(CACHE_LINE).min(line);
            let result = work(&mut memory[start..start + len]);
            if memory.len() > MAX_KEPT_ELEMENTS {
                *memory = Vec::new();
            }
            Ok(result)
        };
        match Self::arena().try_with(|_| ()) {
            Ok(()) => Self::arena().with_borrow_mut(run),
            Err(_) => run(&mut Vec::new()),
        }
    }
}

crate::scalar::cpu::dispatched! {
    /// Computes `out = mask ? x : y`.
    pub(crate) fn select<T: Copy>(mask: Operand<'_, bool>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        map_ternary(mask, x, y, out, |mask, x, y| if mask { x } else { y });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_a_cache_line_and_is_released_if_it_is_large() {
        let kept = || f32::arena().with_borrow(Vec::len);
        for len in [1, 100, MAX_KEPT_ELEMENTS / 2, MAX_KEPT_ELEMENTS] {
            let at_a_line = |memory: &mut [f32]| memory.len() == len && memory.as_ptr().align_offset(CACHE_LINE) == 0;
            assert!(f32::with_memory(len, at_a_line).unwrap());
            assert_eq!(kept() >= len, len < MAX_KEPT_ELEMENTS, "{len}");
        }
        assert!(f32::with_memory(usize::MAX / 8, |_| ()).is_err() && kept() == 0);
    }
}
