//! Padding: copies a tensor into a larger one, and fills the rest with a number or with elements of the tensor.

use crate::kernel::fill::copy_strided;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::thresholds::blocks::{MIN_PARALLEL, TASK};
use crate::{Element, Layout};

/// A dimension of the padded tensor.
pub(crate) struct PaddedAxis {
    /// The number of indices of the padded dimension.
    pub(crate) size: usize,
    /// Returns the index from which the tensor is read for an index of the padded dimension. `None` means the number of the padding.
    pub(crate) source: Box<dyn Fn(usize) -> Option<usize> + Sync>,
    /// The range of padded indices whose sources are consecutive, and the first of these sources: the copy of the tensor.
    pub(crate) copied: std::ops::Range<usize>,
    pub(crate) first: usize,
}

/// A loop over a dimension, or over several dimensions that are not padded and can be merged.
struct Loop<'a> {
    size: usize,
    stride: isize,
    axis: Option<&'a PaddedAxis>,
}

/// Fills `out` with the padded elements of `data`. `axes` has an entry for each dimension of `layout`, `None` for dimensions without
/// padding. `value` is the number of the padding.
pub(crate) fn pad<T: Element>(data: &[T], layout: &Layout, axes: &[Option<PaddedAxis>], value: T, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let mut loops = vec![Loop { size: 1, stride: 0, axis: None }];
    for ((&size, &stride), axis) in layout.shape().iter().zip(layout.strides()).zip(axes) {
        match (loops.last_mut(), axis) {
            (Some(outer), None) if outer.axis.is_none() && outer.stride == stride * size as isize => {
                (outer.size, outer.stride) = (outer.size * size, stride);
            }
            (Some(Loop { size: outer @ 1, stride: across, axis: None }), None) => (*outer, *across) = (size, stride),
            (_, axis) => {
                let size = axis.as_ref().map_or(size, |axis| axis.size);
                loops.push(Loop { size, stride, axis: axis.as_ref() });
            }
        }
    }
    let (outer, inner) = (&loops[0], &loops[1..]);
    let width = out.len() / outer.size;
    let rows = (TASK / width).max(1);
    let schedule = Schedule::parallel_from(MIN_PARALLEL, out.len());
    partition::chunks(out, rows * width, schedule, |task, out| {
        for (row, out) in (task * rows..).zip(out.chunks_exact_mut(width)) {
            fill(data, inner, layout.offset() as isize + row as isize * outer.stride, value, out);
        }
    });
}

/// Fills `out` with the padded elements that `loops` visit from `position` on.
fn fill<T: Element>(data: &[T], loops: &[Loop], position: isize, value: T, out: &mut [T]) {
    let at = |index: usize, stride: isize| position + index as isize * stride;
    match loops {
        [] => out[0] = data[position as usize],
        [Loop { stride, axis: None, .. }] => copy_strided(data, position as usize, *stride, out),
        [Loop { stride, axis: Some(axis), .. }] => {
            let (before, after) = (0..axis.copied.start, axis.copied.end..out.len());
            if !axis.copied.is_empty() {
                copy_strided(data, at(axis.first, *stride) as usize, *stride, &mut out[axis.copied.clone()]);
            }
            for index in before.chain(after) {
                out[index] = (axis.source)(index).map_or(value, |source| data[at(source, *stride) as usize]);
            }
        }
        [Loop { size, stride, axis }, inner @ ..] => {
            for (index, out) in out.chunks_exact_mut(out.len() / size).enumerate() {
                match axis.map_or(Some(index), |axis| (axis.source)(index)) {
                    Some(source) => fill(data, inner, at(source, *stride), value, out),
                    None => out.fill(value),
                }
            }
        }
    }
}
