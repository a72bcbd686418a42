//! The largest of every window, and where it was.

use crate::kernel::conv::geometry::WindowAxis;
use crate::kernel::pool::max;
use crate::ops::TensorLike;
use crate::ops::compose::{Compose, count};
use crate::ops::window::pooling::plan::{Axis, Plan};
use crate::ops::window::windowed::{PoolingForm, Windowed};
use crate::ops::window::windows::{batched, unbatched};
use crate::{Binary, Compare, Error, Float, Scalar, Shape, Site, Tensor};

pub(crate) fn largest<A: Windowed<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<A, A::Error> {
    let (x, added) = batched(x, plan.axes.len() + 2, at)?;
    debug_assert_eq!(added, plan.unbatched);
    let form = form::<A>(&x.shape(), plan, at)?;
    unbatched(x.apply_choose(&x, &form, f64::NEG_INFINITY, at)?, added, at)
}

fn form<A: TensorLike>(input: &Shape, plan: &Plan, at: Site) -> Result<PoolingForm, Error> {
    let mut output: Shape = input[..2].into();
    plan.axes.iter().for_each(|axis| output.push(axis.count));
    // One dimension is a plane of one row.
    let (rows, columns) = match &plan.axes[..] {
        [columns] => (WindowAxis::NONE, windows(columns)),
        [rows, columns] => (windows(rows), windows(columns)),
        _ => unreachable!("poolings have one or two dimensions"),
    };
    // Positions within a window have 32 bits; larger windows are larger than any input.
    let reach = |axis: &WindowAxis| axis.kernel.saturating_sub(1).saturating_mul(axis.dilation);
    let farthest = reach(&rows).saturating_mul(columns.input.max(1)).saturating_add(reach(&columns));
    if farthest >= u32::MAX as usize {
        return Err(Error::TooLarge { shape: [rows.kernel, columns.kernel].into(), dtype: A::Elem::DTYPE, at });
    }
    Ok(PoolingForm { input: input.clone(), output, plan: max::MaxPool { rows, columns } })
}

fn windows(axis: &Axis) -> WindowAxis {
    let window = axis.window;
    WindowAxis {
        input: axis.size,
        kernel: window.kernel,
        output: axis.count,
        stride: window.stride,
        dilation: window.dilation,
        before: axis.padding,
    }
}

/// Where the second of two is chosen: where it is larger or NaN. (The maximum of two masks is "or".)
pub(crate) fn later_wins<A: TensorLike>(first: &A, second: &A, at: Site) -> Result<A::Mask, A::Error> {
    let larger = second.apply_compare(Compare::Gt, first, at)?;
    larger.apply_binary(Binary::Maximum, &second.apply_compare(Compare::Ne, second, at)?, at)
}

/// The largest of every window and where they were.
pub(crate) fn chosen<A: Windowed<Elem: Float>>(x: &A, plan: &Plan, at: Site) -> Result<(A, Tensor<i64>), A::Error> {
    let (batch, added) = batched(x, plan.axes.len() + 2, at)?;
    let shape = batch.shape();
    let (values, form) = (batch.to_tensor(at)?.elements(at)?, form::<A>(&shape, plan, at)?);
    let indices = Tensor::build(&form.output, at, |out| max::places(&form.plan, &values, out))?;
    let plane = count(&shape[2..]);
    let mut start = Shape::ones(shape.rank());
    start[..2].copy_from_slice(&shape[..2]);
    let starts: Vec<i64> = (0..shape[0] * shape[1]).map(|line| (line * plane) as i64).collect();
    let positions = indices.plus(&Tensor::try_from_vec(starts, start)?, at)?;
    let values = batch.apply_take(&positions, at)?;
    Ok((unbatched(values, added, at)?, unbatched(indices, added, at)?))
}
