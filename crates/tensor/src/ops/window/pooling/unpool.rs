//! The inverse of maximum pooling: writes the maxima to their positions, between zeros.

use crate::ops::window::pooling::PoolOptions;
use crate::ops::window::pooling::plan::windows;
use crate::ops::window::windows::per_dimension_at_least;
use crate::ops::{Compose, Result, Scatter as _, TensorLike};
use crate::{Error, Float, Shape, Site, Sizes, Tensor, ensure};

/// Returns planes of zeros with the elements of `x` at the row-major positions `indices`. A plane consists of the last `rank` dimensions.
pub(crate) fn max_unpool<A: TensorLike<Elem: Float>>(
    x: &A,
    rank: usize,
    indices: &Tensor<i64>,
    kernel: &Sizes,
    options: &PoolOptions,
    output_size: Option<&[usize]>,
    at: Site,
) -> Result<A> {
    let shape = x.shape();
    ensure!(
        shape.rank() == rank + 1 || shape.rank() == rank + 2,
        at,
        "Input to max_unpooling{rank}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
        rank + 1,
        rank + 2,
        shape.rank()
    );
    ensure!(
        *indices.shape() == shape,
        at,
        "Expected shape of indices to be same as that of the input tensor ({shape}) but got indices tensor with shape: {}",
        indices.shape()
    );
    let first = shape.rank() - rank;
    ensure!(!shape[first - 1..].contains(&0), at, "max_unpool{rank}d(): the channels of {shape} must have elements");
    let sizes = unpooled_sizes(&shape[first..], kernel, options, output_size, at)?;
    let plane = Shape::from(&sizes[..]).checked_numel().unwrap_or(usize::MAX);
    // Like PyTorch, the error names the last of several wrong positions.
    if let Some(index) = indices.iter().filter(|&index| index < 0 || index as u64 >= plane as u64).last() {
        // PyTorch writes the size of a one-dimensional result with a second factor of 1.
        let factors = sizes.iter().chain((rank == 1).then_some(&1)).map(usize::to_string);
        let sizes = factors.collect::<Vec<String>>().join("x");
        let message = format!("Found an invalid max index: {index} (output volumes are of size {sizes})");
        return Err(Error::argument(at, message).into());
    }
    let (count, elements) = (Shape::from(&shape[..first]).numel(), Shape::from(&shape[first..]).numel());
    let zeros = x.fill_shape(0.0, &Shape::from([count, plane]), at)?;
    let lines = x.reshape_to([count, elements], at)?;
    let planes = zeros.try_scatter(1, &indices.reshape_to([count, elements], at)?, &lines)?;
    planes.reshape_to(shape.replaced(first..shape.rank(), &sizes), at)
}

/// Returns the sizes of the result for planes of sizes `own`: `output_size`, or the sizes that the windows cover.
fn unpooled_sizes(
    own: &[usize],
    kernel: &Sizes,
    options: &PoolOptions,
    output_size: Option<&[usize]>,
    at: Site,
) -> Result<Vec<usize>, Error> {
    let rank = own.len();
    let windows = windows(rank, kernel, options, false, at)?;
    let padding = per_dimension_at_least(&options.padding, rank, ("padding", 0), at)?;
    let covered = |k: usize| windows[k].extent(own[k]) as i128 - 2 * padding[k] as i128;
    let Some(sizes) = output_size else {
        let negative = "max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size";
        let size =
            |k| usize::try_from(covered(k)).map_err(|_| Error::argument(at, format!("{negative}[{k}]={}", covered(k))));
        return (0..rank).map(size).collect();
    };
    ensure!(
        sizes.len() == rank,
        at,
        "output_size should be a sequence containing {rank} elements, but it has a length of '{}'",
        sizes.len()
    );
    for (k, &size) in sizes.iter().enumerate() {
        let stride = windows[k].stride as i128;
        let (low, high) = (covered(k) - stride, covered(k) + stride);
        ensure!(
            low < size as i128 && (size as i128) < high,
            at,
            "invalid output_size \"{sizes:?}\" (dim {k} must be between {low} and {high})"
        );
    }
    Ok(sizes.to_vec())
}
