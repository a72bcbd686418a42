//! Maximum pooling: the largest element of each window, and its position.
//!
//! Volumes are pooled in two steps: first their planes, then along the depth. If several elements of a window are the largest, or are NaN,
//! the two steps together choose the same element as a single step would.

use crate::kernel::conv::geometry::WindowAxis;
use crate::kernel::pool::max;
use crate::ops::window::pooling::PoolOptions;
use crate::ops::window::pooling::plan::window_axes;
use crate::ops::window::pooling::volume::{Volume, area};
use crate::ops::window::windowed::{MaxPoolForm, Windowed};
use crate::ops::window::windows::{add_batch, remove_batch};
use crate::ops::{Arithmetic as _, Indexing as _, Result, TensorLike, Views as _};
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
    remove_batch(window_maxima(&x, &axes, at)?, added, at)
}

/// Returns the largest element of each window of `[n, c, …]`. `axes` has the windows along each dimension after the first two.
fn window_maxima<A: Windowed<Elem: Float>>(x: &A, axes: &[WindowAxis], at: Site) -> Result<A> {
    if let &[depth, rows, columns] = axes {
        let volume = Volume::new(&x.shape());
        let planes = window_maxima(&volume.to_planes(x, at)?, &[rows, columns], at)?;
        let plane = [rows.output, columns.output];
        let lines = window_maxima(&volume.to_lines(&planes, plane, at)?, &[depth, single_element_windows(plane)], at)?;
        return volume.to_volumes(&lines, depth.output, plane, at);
    }
    let form = max_pool_form::<A>(&x.shape(), axes, at)?;
    x.apply_max_pool(x, &form, f64::NEG_INFINITY, at)
}

/// Returns the windows along the flattened rows and columns, `plane`, for the step that pools volumes along the depth only. Each window is
/// a single element.
fn single_element_windows(plane: [usize; 2]) -> WindowAxis {
    let count = area(plane);
    WindowAxis { input: count, kernel: 1, output: count, stride: 1, dilation: 1, padding_before: 0 }
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
    let indices = maximum_positions(&batch.to_tensor(at)?, &axes, at)?;
    // The values are not read at the indices, because a window of only padding has the value -∞, but the index 0.
    let values = window_maxima(&batch, &axes, at)?;
    Ok((remove_batch(values, added, at)?, remove_batch(indices, added, at)?))
}

/// Returns the row-major position of the largest element of each window of `[n, c, …]` in the dimensions after the first two. `axes` has
/// the windows along each of these dimensions.
fn maximum_positions<T: Float>(x: &Tensor<T>, axes: &[WindowAxis], at: Site) -> Result<Tensor<i64>, Error> {
    if let &[depth, rows, columns] = axes {
        let (volume, plane) = (Volume::new(x.shape()), [rows.output, columns.output]);
        let planes = volume.to_planes(x, at)?;
        let position_in_plane = volume.to_lines(&maximum_positions(&planes, &[rows, columns], at)?, plane, at)?;
        let maxima = volume.to_lines(&window_maxima(&planes, &[rows, columns], at)?, plane, at)?;
        // `maxima` has the maximum of each window within each plane, and `position_in_plane` its position in the plane. The position in
        // `maxima` of the largest element of a three-dimensional window gives its plane, and selects its position in `position_in_plane`.
        let chosen = maximum_positions(&maxima, &[depth, single_element_windows(plane)], at)?.try_flatten(2, 3)?;
        let position_in_plane = position_in_plane.try_flatten(2, 3)?.try_gather(2, &chosen)?;
        let planes_before = chosen.try_floor_divide(area(plane) as i64)?;
        let flat_positions =
            planes_before.try_mul(area([rows.input, columns.input]) as i64)?.try_add(&position_in_plane)?;
        let flat_positions = volume.to_volumes(&flat_positions, depth.output, plane, at)?;
        if flat_positions.numel() == 0 {
            return Ok(flat_positions);
        }
        // Sets the position of each window of only padding to 0.
        return axes.iter().enumerate().try_fold(flat_positions, |flat_positions, (number, axis)| {
            let shape = Shape::ones(3).with_size(number, axis.output);
            flat_positions.try_mul(&Tensor::try_from_vec(nonpadding_factors(axis), shape)?)
        });
    }
    let (values, form) = (x.elements(at)?, max_pool_form::<Tensor<T>>(x.shape(), axes, at)?);
    Tensor::build(&form.output, at, |out| max::places(&form.windows, &values, out))
}

/// Returns a factor for each window along one dimension: 1 if the window has elements inside the array, and 0 if it has only padding.
fn nonpadding_factors(axis: &WindowAxis) -> Vec<i64> {
    (0..axis.output).map(|i| i64::from((0..axis.kernel).any(|k| axis.input_position(i, k).is_some()))).collect()
}

/// Returns the shapes and windows of a maximum pooling of an array of shape `input`, `[n, c, …]`. `axes` has the windows along each
/// dimension after the first two.
fn max_pool_form<A: TensorLike>(input: &Shape, axes: &[WindowAxis], at: Site) -> Result<MaxPoolForm, Error> {
    let output = input[..2].iter().copied().chain(axes.iter().map(|axis| axis.output)).collect();
    // `MaxPool` describes planes of rows and columns. If only one dimension is pooled, a plane is a single row.
    let (rows, columns) = match *axes {
        [columns] => (WindowAxis::NONE, columns),
        [rows, columns] => (rows, columns),
        _ => unreachable!("volumes are pooled by planes and along the depth"),
    };
    // The code that runs the pooling stores a position within a window in 32 bits. A larger window is refused.
    let reach = |axis: &WindowAxis| axis.kernel.saturating_sub(1).saturating_mul(axis.dilation);
    let farthest = reach(&rows).saturating_mul(columns.input.max(1)).saturating_add(reach(&columns));
    if farthest >= u32::MAX as usize {
        return Err(Error::TooLarge { shape: [rows.kernel, columns.kernel].into(), dtype: A::Elem::DTYPE, at });
    }
    Ok(MaxPoolForm { input: input.clone(), output, windows: max::MaxPool { rows, columns } })
}

/// Returns a mask that is true where the second operand is larger than the first, or NaN.
pub(crate) fn prefers_second<A: TensorLike>(first: &A, second: &A, at: Site) -> Result<A::Mask> {
    let larger = second.apply_compare(Compare::Gt, first, at)?;
    // For masks, the maximum is "or". `second` differs from itself only where it is NaN.
    larger.apply_binary(Binary::Maximum, &second.apply_compare(Compare::Ne, second, at)?, at)
}
