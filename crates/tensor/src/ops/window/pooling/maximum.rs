//! Maximum pooling: the largest element of each window, and its position.

use crate::kernel::conv::geometry::WindowAxis;
use crate::kernel::pool::max;
use crate::ops::window::pooling::PoolOptions;
use crate::ops::window::pooling::plan::window_axes;
use crate::ops::window::windowed::{PoolingForm, Windowed};
use crate::ops::window::windows::{add_batch, remove_batch};
use crate::ops::{Result, TensorLike};
use crate::{Binary, Compare, Error, Float, Scalar, Shape, Site, Sizes, Tensor};

/// Returns the largest element of each window.
pub(crate) fn max_pool<A: Windowed<Elem: Float>>(
    x: &A,
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    at: Site,
) -> Result<A> {
    let axes = window_axes(x, rank, kernel, options, true, at)?;
    let (x, added) = add_batch(x, rank + 2, at)?;
    let form = form::<A>(&x.shape(), &axes, at)?;
    remove_batch(x.apply_max_pool(&x, &form, f64::NEG_INFINITY, at)?, added, at)
}

/// Returns the largest element of each window, and its row-major position in its plane. A plane consists of the pooled dimensions of one
/// channel.
pub(crate) fn max_pool_with_indices<A: Windowed<Elem: Float>>(
    x: &A,
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    at: Site,
) -> Result<(A, Tensor<i64>), A::Error> {
    let axes = window_axes(x, rank, kernel, options, true, at)?;
    let (batch, added) = add_batch(x, rank + 2, at)?;
    let shape = batch.shape();
    let (values, form) = (batch.to_tensor(at)?.elements(at)?, form::<A>(&shape, &axes, at)?);
    let indices = Tensor::build(&form.output, at, |out| max::places(&form.windows, &values, out))?;
    // The values are not read at the indices, because a window without elements inside the plane has no index.
    let values = batch.apply_max_pool(&batch, &form, f64::NEG_INFINITY, at)?;
    Ok((remove_batch(values, added, at)?, remove_batch(indices, added, at)?))
}

/// Returns the shapes and windows of a maximum pooling of an array of shape `input`, `[n, c, …]`. `axes` has the windows along each
/// dimension after the first two.
fn form<A: TensorLike>(input: &Shape, axes: &[WindowAxis], at: Site) -> Result<PoolingForm, Error> {
    let output = input[..2].iter().copied().chain(axes.iter().map(|axis| axis.output)).collect();
    // `MaxPool` describes planes of rows and columns. If only one dimension is pooled, a plane is a single row.
    let (rows, columns) = match *axes {
        [columns] => (WindowAxis::NONE, columns),
        [rows, columns] => (rows, columns),
        _ => unreachable!("pooling has one or two dimensions"),
    };
    // The code that runs the pooling stores a position within a window in 32 bits. A larger window, which only planes of billions of
    // elements can have, is refused.
    let reach = |axis: &WindowAxis| axis.kernel.saturating_sub(1).saturating_mul(axis.dilation);
    let farthest = reach(&rows).saturating_mul(columns.input.max(1)).saturating_add(reach(&columns));
    if farthest >= u32::MAX as usize {
        return Err(Error::TooLarge { shape: [rows.kernel, columns.kernel].into(), dtype: A::Elem::DTYPE, at });
    }
    Ok(PoolingForm { input: input.clone(), output, windows: max::MaxPool { rows, columns } })
}

/// Returns a mask that is true where the second operand is larger than the first, or NaN.
pub(crate) fn prefers_second<A: TensorLike>(first: &A, second: &A, at: Site) -> Result<A::Mask> {
    let larger = second.apply_compare(Compare::Gt, first, at)?;
    // For masks, the maximum is "or". `second` differs from itself only where it is NaN.
    larger.apply_binary(Binary::Maximum, &second.apply_compare(Compare::Ne, second, at)?, at)
}
