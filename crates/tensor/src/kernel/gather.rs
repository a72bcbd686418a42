//! Reads elements at arbitrary positions (gather), adds or writes elements at arbitrary positions (scatter), and writes elements to a view
//! ([`embed`]).
//!
//! The caller checks that the positions are in bounds. All loops run on the calling thread. Additions happen in the order of the source's
//! elements.
#![allow(clippy::needless_range_loop)]

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::source::Source;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::blocks::BLOCK;
use crate::{Element, Layout, Reduction};

/// Sets `out[i]` to `x[positions[i]]`. A position is an index into the row-major order of `x`.
pub(crate) fn gather<T: Element>(x: Source<T>, positions: Source<i64>, out: &mut [T]) {
    let from = IterationSpace::new(x.layout.shape(), [x.layout]);
    let at = IterationSpace::new(positions.layout.shape(), [positions.layout]);
    let start = x.layout.offset();
    let contiguous = x.layout.is_contiguous();
    if let (true, Some(Operand::Slice(positions))) = (contiguous && !out.is_empty(), positions.whole()) {
        let elements = &x.data[start..];
        return out.iter_mut().zip(positions).for_each(|(out, &position)| *out = elements[position as usize]);
    }
    for (i, out) in out.iter_mut().enumerate() {
        let position = positions.data[at.position(0, i)] as usize;
        *out = x.data[if contiguous { start + position } else { from.position(0, position) }];
    }
}

/// Adds `x[i]` to `out[positions[i]]` for every `i`. `out` is row-major.
pub(crate) fn scatter_add<T: Element>(x: Source<T>, positions: Source<i64>, out: &mut [T]) {
    if positions.layout.numel() == 0 {
        return;
    }
    if let (Some(Operand::Slice(x)), Some(Operand::Slice(positions))) = (x.whole(), positions.whole()) {
        return T::accumulate_at(Reduction::Sum, out, positions, x);
    }
    let space = IterationSpace::new(x.layout.shape(), [x.layout]);
    let at = IterationSpace::new(positions.layout.shape(), [positions.layout]);
    for i in 0..positions.layout.numel() {
        let position = positions.data[at.position(0, i)] as usize;
        T::accumulate(Reduction::Sum, &mut out[position..=position], &[x.data[space.position(0, i)]]);
    }
}

/// Sets `out[positions[i]]` to `x[i]` for every `i`, in order. `out` is row-major.
pub(crate) fn scatter<T: Element>(x: Source<T>, positions: Source<i64>, out: &mut [T]) {
    if positions.layout.numel() == 0 {
        return;
    }
    if let (Some(x), Some(Operand::Slice(positions))) = (x.whole(), positions.whole()) {
        return match x {
            Operand::Slice(x) => positions.iter().zip(x).for_each(|(&position, &x)| out[position as usize] = x),
            Operand::Splat(x) => positions.iter().for_each(|&position| out[position as usize] = x),
        };
    }
    let space = IterationSpace::new(x.layout.shape(), [x.layout]);
    let at = IterationSpace::new(positions.layout.shape(), [positions.layout]);
    for i in 0..positions.layout.numel() {
        out[positions.data[at.position(0, i)] as usize] = x.data[space.position(0, i)];
    }
}

crate::scalar::cpu::dispatched! {
    /// Sets `out[i]` to `first + i * step + index[i] * stride`.
    pub(crate) fn positions_of_row(first: i64, step: i64, stride: i64, index: &[i64], out: &mut [i64]) {
        let index = &index[..out.len()];
        for i in 0..out.len() {
            out[i] = first + i as i64 * step + index[i] * stride;
        }
    }
}

/// Writes each element of `x` to its position in `window`, a layout over `out` with the shape of `x`. Callers pass zeros in `out`. If
/// `shared` is true, several elements may have the same position, and all elements are added to `out`. Otherwise they are stored, which
/// keeps -0.
pub(crate) fn embed<T: Element>(x: Source<T>, window: &Layout, shared: bool, out: &mut [T]) {
    if window.numel() == 0 {
        return;
    }
    let space = IterationSpace::new(window.shape(), [window, x.layout]);
    let total = space.numel();
    let mut block = Vec::with_capacity(BLOCK);
    for start in (0..total).step_by(BLOCK) {
        let len = BLOCK.min(total - start);
        block.clear();
        space.walk(1, start, len, |position, stride, count| {
            block.extend((0..count as isize).map(|i| x.data[(position as isize + i * stride) as usize]));
        });
        let mut left = &block[..];
        space.walk(0, start, len, |position, stride, count| {
            let (now, later) = left.split_at(count);
            if !shared {
                for (i, &value) in now.iter().enumerate() {
                    out[(position as isize + i as isize * stride) as usize] = value;
                }
            } else if stride == 1 {
                T::accumulate(Reduction::Sum, &mut out[position..position + count], now);
            } else {
                for (i, value) in now.iter().enumerate() {
                    let position = (position as isize + i as isize * stride) as usize;
                    T::accumulate(Reduction::Sum, &mut out[position..=position], std::slice::from_ref(value));
                }
            }
            left = later;
        });
    }
}
