//! The largest of every window: as choices between views, or by going through the windows where their places are asked for.

use super::plan::{Axis, Plan};
use crate::error::Site;
use crate::kernel::instruction::{Binary, Compare};
use crate::ops::TensorLike;
use crate::ops::formula::{Formula, count};
use crate::ops::padding::constant_padded;
use crate::ops::windows::{Window, batched, unbatched};
use crate::view::View;
use crate::{Float, Shape, Tensor};

pub(super) fn largest<A: TensorLike<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<A, A::Error> {
    let rank = plan.axes.len() + 2;
    let (mut x, added) = batched(x, rank, at)?;
    debug_assert_eq!(added, plan.unbatched);
    for axis in plan.axes.iter().rev() {
        let padded = constant_padded(&x, &[axis.side()], f64::NEG_INFINITY, at)?;
        let tap = |number: usize| {
            let step = axis.window.stride as isize;
            let view = View::Slice { axis: axis.axis, start: number * axis.window.dilation, len: axis.count, step };
            padded.apply_view(view, at)
        };
        let mut best = tap(0)?;
        // Whether the window has met an element yet: the first one wins over padding though it be -∞ too.
        let padded_windows = if axis.padding > 0 { axis.count } else { 0 };
        let mut met: Vec<bool> = (0..padded_windows).map(|window| axis.place(window, 0).is_some()).collect();
        for number in 1..axis.window.kernel {
            let next = tap(number)?;
            let first: Vec<bool> =
                (0..met.len()).map(|window| !met[window] && axis.place(window, number).is_some()).collect();
            let mut wins = later_wins(&best, &next, at)?;
            if first.contains(&true) {
                met.iter_mut().zip(&first).for_each(|(met, first)| *met |= first);
                let mut shape = Shape::ones(rank);
                shape[axis.axis] = axis.count;
                let first = next.mask_over(&Tensor::try_from_vec(first, shape)?, &next.shape(), at)?;
                wins = wins.apply_binary(Binary::Maximum, &first, at)?;
            }
            best = A::apply_select(&wins, &next, &best, at)?;
        }
        x = best;
    }
    unbatched(x, added, at)
}

/// Where the later of two is taken: where it is larger or NaN. (The larger of two masks is "or".)
pub(super) fn later_wins<A: TensorLike>(first: &A, second: &A, at: Site) -> Result<A::Mask, A::Error> {
    let larger = second.apply_compare(Compare::Gt, first, at)?;
    larger.apply_binary(Binary::Maximum, &second.apply_compare(Compare::Ne, second, at)?, at)
}

/// The largest of every window and where they were, by going through the windows one after the other.
pub(super) fn chosen<A: TensorLike<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<(A, Tensor<i64>), A::Error> {
    let (batch, added) = batched(x, plan.axes.len() + 2, at)?;
    let shape = batch.shape();
    let values = batch.to_tensor(at)?.elements(at)?;
    let plane = count(&shape[2..]);
    // A single line is a plane of one row.
    let whole = Window { kernel: 1, stride: 1, dilation: 1 };
    let row = Axis { axis: 2, size: 1, window: whole, padding: 0, count: 1 };
    let (rows, columns) = match plan.axes[..] {
        [columns] => (row, columns),
        [rows, columns] => (rows, columns),
        _ => unreachable!("poolings have one or two dimensions"),
    };
    let mut result: Shape = shape[..2].into();
    plan.axes.iter().for_each(|axis| result.push(axis.count));
    let mut places = Vec::with_capacity(result.numel());
    for values in values.chunks_exact(plane.max(1)) {
        for number in 0..rows.count * columns.count {
            let (i, j) = (number / columns.count, number % columns.count);
            let taps = (0..rows.window.kernel).filter_map(|tap| rows.place(i, tap));
            let mut best: Option<usize> = None;
            for h in taps {
                for w in (0..columns.window.kernel).filter_map(|tap| columns.place(j, tap)) {
                    let place = h * columns.size + w;
                    let wins = |best: usize| values[place] > values[best] || values[place].is_nan();
                    if best.is_none_or(wins) {
                        best = Some(place);
                    }
                }
            }
            places.push(best.unwrap_or(0) as i64);
        }
    }
    let indices = Tensor::try_from_vec(places, &result)?;
    let mut start = Shape::ones(result.rank());
    start[..2].copy_from_slice(&shape[..2]);
    let starts: Vec<i64> = (0..shape[0] * shape[1]).map(|line| (line * plane) as i64).collect();
    let positions = indices.plus(&Tensor::try_from_vec(starts, start)?, at)?;
    let values = batch.apply_take(&positions, at)?;
    Ok((unbatched(values, added, at)?, unbatched(indices, added, at)?))
}
