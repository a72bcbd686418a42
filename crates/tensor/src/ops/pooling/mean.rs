//! The mean of every window: sums, divided by how many elements count.

use super::options::PoolOptions;
use super::plan::{Axis, Plan};
use crate::error::Site;
use crate::ops::TensorLike;
use crate::ops::formula::Formula;
use crate::ops::padding::constant_padded;
use crate::ops::windows::{batched, unbatched};
use crate::{Element, Float, Shape, Tensor};

pub(super) fn mean<A: TensorLike<Elem: Float>>(
    x: &A,
    plan: &Plan,
    options: &PoolOptions,
    at: Site,
) -> Result<A, A::Error> {
    let rank = plan.axes.len() + 2;
    let (mut x, added) = batched(x, rank, at)?;
    let mut counts = Tensor::<A::Elem>::scalar(A::Elem::ONE);
    for axis in plan.axes.iter().rev() {
        let padded = constant_padded(&x, &[axis.side()], 0.0, at)?;
        let windows = axis.window.view(&padded, axis.axis, at)?;
        let mut shape = windows.shape();
        shape.remove(rank);
        x = windows.summed(&[rank], at)?.reshaped(shape, at)?;
        let mut along = Shape::ones(rank);
        along[axis.axis] = axis.count;
        let sizes = (0..axis.count).map(|number| A::Elem::from_f64(elements(axis, number, options) as f64));
        counts = Tensor::try_from_vec(sizes.collect(), along)?.times(&counts, at)?;
    }
    let result = match options.divisor_override {
        Some(divisor) => x.divided(divisor as f64, at)?,
        None => x.divided(&x.constant(&counts), at)?,
    };
    unbatched(result, added, at)
}

/// Elements of a window that its mean counts; at least one, as a sum of nothing is 0 whatever it is divided by.
fn elements(axis: &Axis, number: usize, options: &PoolOptions) -> usize {
    let start = number * axis.window.stride;
    let end = start + axis.window.kernel;
    let (first, last) = if options.count_include_pad {
        (start, end.min(axis.size + 2 * axis.padding))
    } else {
        (start.max(axis.padding), end.min(axis.size + axis.padding))
    };
    last.saturating_sub(first).max(1)
}
