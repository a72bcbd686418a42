//! Tensors of any layout copied to lie in order.

use crate::kernel::elementwise::loops;
use crate::kernel::strided::{Source, for_blocks, operand};
use crate::kernel::transpose::Turned;
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::Nest;
use crate::{Element, Layout};

/// `out = x`, in row-major order.
pub(crate) fn copy<T: Element>(x: Source<T>, out: &mut [T]) {
    let nest = Nest::new(x.layout.shape(), [x.layout]);
    match Turned::new(&nest) {
        Some(turned) => turned.fill(x.data, out, |x, _, out| out.copy_from_slice(x)),
        None => cast(x, out, |x| x),
    }
}

/// Whether [`straightened`] copies what lies so.
pub(crate) fn is_transposed(layout: &Layout) -> bool {
    let steps = layout.strides().last().is_some_and(|&stride| stride > 1);
    steps && Turned::new(&Nest::new(layout.shape(), [layout])).is_some_and(|turned| !turned.repeats())
}

/// A large transposed operand, copied to lie in order: read by squares once, instead of by columns again and again.
pub(crate) fn straightened<T: Element>(x: Source<T>) -> Option<Scratch<T>> {
    if !is_transposed(x.layout) {
        return None;
    }
    let mut straight = Scratch::new(x.layout.numel()).ok()?;
    copy(x, &mut straight);
    Some(straight)
}

/// `out = f(x)`, changing the type.
pub(crate) fn cast<T: Element, U: Element>(x: Source<T>, out: &mut [U], f: impl Fn(T) -> U + Sync) {
    let nest = Nest::new(x.layout.shape(), [x.layout]);
    for_blocks(nest.row(), 1, true, out, |start, out| {
        let scratch = &mut Vec::new();
        loops::one(operand(&nest, 0, x.data, start, out.len(), scratch), out, &f);
    });
}
