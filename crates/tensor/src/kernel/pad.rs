//! Padding: copies a tensor into a larger one, and fills the rest with a number or with elements of the tensor.

use std::ops::Range;

use crate::kernel::fill::copy_strided;
use crate::memory::partition;
use crate::memory::threads::Schedule;
use crate::thresholds::blocks::{MIN_PARALLEL, TASK};
use crate::{Element, Layout};

/// A range of indices of a padded dimension, and the source of its elements. The source is the index of the first element in the tensor, and
/// the step to the index of each next element. `None` means that the range is filled with the constant of the padding.
pub(crate) type Part = (Range<usize>, Option<(usize, isize)>);

/// A dimension of the padded tensor: its size, and its parts before, inside and after the copy of the tensor.
pub(crate) struct PaddedAxis {
    pub(crate) size: usize,
    pub(crate) parts: [Part; 3],
}

/// A loop over a dimension, or over several dimensions that are not padded and can be merged.
struct Loop {
    size: usize,
    stride: isize,
    is_padded: bool,
    parts: [Part; 3],
}

/// Fills `out` with the padded elements of `data`. `axes` has an entry for each dimension of `layout`, `None` for dimensions without
/// padding. `value` is the constant of the padding.
pub(crate) fn pad<T: Element>(data: &[T], layout: &Layout, axes: &[Option<PaddedAxis>], value: T, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let unpadded = |size, stride| {
        let parts = [(0..0, None), (0..size, Some((0, 1))), (0..0, None)];
        Loop { size, stride, is_padded: false, parts }
    };
    let mut loops = vec![unpadded(1, 0)];
    for ((&size, &stride), axis) in layout.shape().iter().zip(layout.strides()).zip(axes) {
        match (loops.last_mut(), axis) {
            (Some(outer), None) if !outer.is_padded && (outer.size == 1 || outer.stride == stride * size as isize) => {
                *outer = unpadded(outer.size * size, stride);
            }
            (_, None) => loops.push(unpadded(size, stride)),
            (_, Some(PaddedAxis { size, parts })) => {
                loops.push(Loop { size: *size, stride, is_padded: true, parts: parts.clone() });
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

/// Fills `out` with the padded elements that `loops` visit. `position` is the index in `data` of the tensor's first element in these loops.
fn fill<T: Element>(data: &[T], loops: &[Loop], position: isize, value: T, out: &mut [T]) {
    let [Loop { size, stride, parts, .. }, inner @ ..] = loops else {
        return out[0] = data[position as usize];
    };
    let width = out.len() / size;
    for (range, source) in parts.iter().filter(|(range, _)| !range.is_empty()) {
        let out = &mut out[range.start * width..range.end * width];
        match *source {
            None => out.fill(value),
            Some((first, step)) => {
                let (first, step) = (position + first as isize * stride, step * stride);
                if inner.is_empty() {
                    copy_strided(data, first as usize, step, out);
                    continue;
                }
                for (index, out) in out.chunks_exact_mut(width).enumerate() {
                    fill(data, inner, first + index as isize * step, value, out);
                }
            }
        }
    }
}
