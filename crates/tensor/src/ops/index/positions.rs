//! Converts an index along each dimension to row-major positions. [`apply_take`](crate::ops::TensorLike::apply_take) reads these positions,
//! and [`apply_scatter_add`](crate::ops::TensorLike::apply_scatter_add) adds to them.
//!
//! The position of an element is the sum of index · stride over all dimensions. The index tensors of the dimensions broadcast: rows
//! `[n, 1]` and columns `[m]` give the positions of an `[n, m]` block.

use smallvec::SmallVec;

use crate::kernel::gather::{all_within, positions_of_row};
use crate::ops::{Compose, TensorLike};
use crate::thresholds::blocks::BLOCK;
use crate::thresholds::ops::MIN_DIRECT_INDEX;
use crate::{Error, Shape, Site, Tensor, View};

/// Returns `shape`, or `[1]` if its rank is 0. Index operations treat a tensor of rank 0 as a vector of one element.
pub(crate) fn one_dim(shape: &Shape) -> Shape {
    if shape.rank() == 0 { Shape::from([1]) } else { shape.clone() }
}

/// Returns the row-major positions, in a tensor of shape `from`, of the elements whose index along dimension `k` is `indices[k]`.
pub(crate) fn row_major(from: &Shape, indices: &[Tensor<i64>], at: Site) -> Result<Tensor<i64>, Error> {
    debug_assert_eq!(from.rank(), indices.len());
    let strides = from.row_major_strides();
    let mut total = Tensor::scalar(0);
    for (index, &stride) in indices.iter().zip(&strides) {
        let step = if stride == 1 { index.clone() } else { index.times(stride as i64, at)? };
        total = step.plus(&total, at)?;
    }
    Ok(total)
}

/// Returns `0, 1, …, len - 1` along dimension `axis` of a tensor of rank `rank`. The other dimensions have size 1.
pub(crate) fn arange_along(len: usize, axis: usize, rank: usize, at: Site) -> Result<Tensor<i64>, Error> {
    all_positions(&Shape::ones(rank).with_size(axis, len), at)
}

/// Returns the positions that `gather` reads in a tensor of shape `from`. Each element of `index` gives the index along `axis`. Along the
/// other dimensions, the index is the position of that element in `index`.
pub(crate) fn gathered_positions(
    from: &Shape,
    axis: usize,
    index: &Tensor<i64>,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let line = index.row_major_elements(at)?;
    Tensor::build(index.shape(), at, |out| {
        for_gathered_positions(from, axis, index.shape(), &line, &mut |start, first, positions| {
            let out = out[start..start + positions.len()].iter_mut();
            out.zip(positions).for_each(|(out, &position)| *out = first as i64 + position);
        });
    })
}

/// Computes the positions that [`gathered_positions`] returns, in blocks that stay in the first-level cache. Calls `f` with each block: the
/// number of positions before the block, a number to add to each position of the block, and the block. `index` has the elements of the
/// index tensor in row-major order, and `shape` is its shape.
pub(crate) fn for_gathered_positions(
    from: &Shape,
    axis: usize,
    shape: &Shape,
    index: &[i64],
    f: &mut dyn FnMut(usize, usize, &[i64]),
) {
    let strides = from.row_major_strides();
    // A tensor of rank 0 has only position 0, so the stride does not matter.
    let axis_stride = strides.get(axis).copied().unwrap_or(0);
    // A row is a line of `width` elements of `index` along dimension `last`. The dimensions after `last` have size 1.
    let last = (0..shape.rank()).rev().find(|&other| shape[other] > 1).unwrap_or(0);
    let width = shape.get(last).map_or(1, |&size| size.max(1));
    let step = |other: usize| if other == axis { 0 } else { strides.get(other).copied().unwrap_or(0) };
    let along = step(last) as i64;
    // `own` holds the indices of the current row, one per dimension before `last`. `first` is the sum of index · stride over these
    // dimensions, except `axis`.
    let mut own: SmallVec<[usize; 4]> = SmallVec::from_elem(0, last);
    let (mut block, mut count, mut done, mut first) = ([0; BLOCK], 0, 0, 0);
    // If a row of `index` selects elements of one contiguous row, the indices themselves are positions, counted from `first`.
    let direct = along == 0 && axis_stride == 1 && width >= MIN_DIRECT_INDEX;
    for row in index.chunks_exact(width) {
        if direct {
            f(done, first as usize, row);
            done += width;
        }
        for (part, index) in row.chunks(BLOCK).enumerate().filter(|_| !direct) {
            if count + index.len() > BLOCK {
                f(done, 0, &block[..count]);
                (done, count) = (done + count, 0);
            }
            let start = first as i64 + (part * BLOCK) as i64 * along;
            positions_of_row(start, along, axis_stride as i64, index, &mut block[count..count + index.len()]);
            count += index.len();
        }
        for (other, own) in own.iter_mut().enumerate().rev() {
            *own += 1;
            first += step(other);
            if *own < shape[other] {
                break;
            }
            first -= step(other) * *own as isize;
            *own = 0;
        }
    }
    f(done, 0, &block[..count]);
}

/// Returns the row-major positions, in a tensor of shape `from`, of all elements of the slices with the indices `index` along `axis`.
pub(crate) fn slice_positions(from: &Shape, axis: usize, index: &[i64], at: Site) -> Result<Tensor<i64>, Error> {
    let rank = from.rank();
    let index = Tensor::try_from_vec(index.to_vec(), Shape::ones(rank).with_size(axis, index.len()))?;
    let own = |other: usize| if other == axis { Ok(index.clone()) } else { arange_along(from[other], other, rank, at) };
    row_major(from, &(0..rank).map(own).collect::<Result<Vec<_>, _>>()?, at)
}

/// Returns `0, 1, …` in row-major order in the shape `shape`.
pub(crate) fn all_positions(shape: &Shape, at: Site) -> Result<Tensor<i64>, Error> {
    Tensor::build(shape, at, |out| {
        for (position, out) in out.iter_mut().enumerate() {
            *out = position as i64;
        }
    })
}

/// Returns the row-major positions of the elements of `mask` that are `true`, in order, as a vector.
pub(crate) fn positions_in(mask: &Tensor<bool>, at: Site) -> Result<Tensor<i64>, Error> {
    let count = mask.numel();
    let indices = indices_in(&mask.reshape_to([count], at)?, at)?;
    indices.reshape_to([indices.numel()], at)
}

/// Returns the indices `[count, rank]` of the elements of `mask` that are `true`, in row-major order. `rank` is the rank of `mask`.
pub(crate) fn indices_in(mask: &Tensor<bool>, at: Site) -> Result<Tensor<i64>, Error> {
    let (shape, rank) = (mask.shape(), mask.rank());
    if !(1..=4).contains(&rank) {
        let positions = positions_in(mask, at)?;
        let columns = unravel(shape, &positions.row_major_elements(at)?);
        return Tensor::build(&[positions.numel(), rank].into(), at, |out| {
            for (axis, column) in columns.iter().enumerate() {
                out.iter_mut().skip(axis).step_by(rank).zip(column).for_each(|(out, &index)| *out = index);
            }
        });
    }
    let mask = mask.row_major_elements(at)?;
    let count = mask.iter().filter(|&&chosen| chosen).count();
    // The last row is for indices that `write_indices` writes although their elements are not chosen.
    let indices = Tensor::build(&[count + 1, rank].into(), at, |out: &mut [i64]| match rank {
        1 => write_indices::<1>(shape, &mask, out),
        2 => write_indices::<2>(shape, &mask, out),
        3 => write_indices::<3>(shape, &mask, out),
        _ => write_indices::<4>(shape, &mask, out),
    })?;
    indices.apply_view(View::Slice { axis: 0, start: 0, len: count, step: 1 }, at)
}

/// Writes the `R` indices of each element of `mask` that is `true` to consecutive rows of `out`. Fills the rest of `out` with 0.
fn write_indices<const R: usize>(shape: &Shape, mask: &[bool], out: &mut [i64]) {
    let (rows, columns) = (out.as_chunks_mut::<R>().0, shape[R - 1].max(1));
    let (mut index, mut found) = ([0; R], 0);
    for row in mask.chunks_exact(columns) {
        // The indices of each element are written. The next element overwrites them unless this element is chosen. A branch would often be
        // predicted wrongly.
        for (column, &chosen) in row.iter().enumerate() {
            index[R - 1] = column as i64;
            rows[found] = index;
            found += usize::from(chosen);
        }
        for axis in (0..R - 1).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] as i64 {
                break;
            }
            index[axis] = 0;
        }
    }
    rows[found..].fill([0; R]);
}

/// Converts row-major positions in a tensor of shape `shape` to indices: one vector per dimension, with an entry for each position.
pub(crate) fn unravel(shape: &Shape, positions: &[i64]) -> Vec<Vec<i64>> {
    let (strides, mut rest) = (shape.row_major_strides(), positions.to_vec());
    let mut indices = Vec::with_capacity(shape.rank());
    for &stride in strides.iter() {
        let stride = stride.max(1) as i64;
        let divide = |position: i64| match (u32::try_from(position), u32::try_from(stride)) {
            // A division of 32-bit numbers takes much less time than a division of 64-bit numbers.
            (Ok(position), Ok(stride)) => i64::from(position / stride),
            _ => position / stride,
        };
        let index: Vec<i64> = rest.iter().map(|&position| divide(position)).collect();
        rest.iter_mut().zip(&index).for_each(|(position, index)| *position -= index * stride);
        indices.push(index);
    }
    indices
}

/// Refuses indices outside dimension `axis`, which has size `size`.
pub(crate) fn check_range(index: &[i64], size: usize, axis: usize, at: Site) -> Result<(), Error> {
    let sentence = |position| format!("index {position} is out of bounds for dimension {axis} with size {size}");
    check_within(index, size, axis, sentence, at)
}

/// Refuses indices outside dimension `axis`, like [`check_range`]. `sentence` makes the error message from the refused index.
pub(crate) fn check_within(
    index: &[i64],
    size: usize,
    axis: usize,
    sentence: impl FnOnce(i64) -> String,
    at: Site,
) -> Result<(), Error> {
    if all_within(index, size) {
        return Ok(());
    }
    match index.iter().enumerate().find(|&(_, &position)| position as u64 >= size as u64) {
        None => Ok(()),
        Some((place, &position)) => Err(Error::IndexRange { message: sentence(position), at }.with_hint(format_args!(
            "element {place} of the index, in row-major order, is {position}; dimension {axis} has size {size}"
        ))),
    }
}

/// Returns `index`, as a contiguous copy if it is not contiguous. Refuses indices outside dimension `axis` like [`check_within`].
pub(crate) fn check_index(
    index: &Tensor<i64>,
    size: usize,
    axis: usize,
    sentence: impl FnOnce(i64) -> String,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let index = if index.is_contiguous() { index.clone() } else { index.contiguous_copy(at)? };
    check_within(index.as_slice().unwrap_or_default(), size, axis, sentence, at)?;
    Ok(index)
}

/// Returns `index` with `size` added to its negative elements. Returns an error if an element is not from `-size` to `size - 1`.
pub(crate) fn wrap(index: &Tensor<i64>, size: usize, axis: usize, at: Site) -> Result<Tensor<i64>, Error> {
    if index.as_slice().is_some_and(|line| all_within(line, size)) {
        return Ok(index.clone());
    }
    let mut line = index.elements(at)?;
    match wrap_negative(&mut line, size) {
        None => Tensor::try_from_vec(line, index.shape()),
        Some(position) => {
            let message = format!("index {position} is out of bounds for dimension {axis} with size {size}");
            Err(Error::IndexRange { message, at })
        }
    }
}

/// Adds `size` to the negative positions, up to the first position that is out of range. Returns this position, or `None` if all positions
/// are in range.
pub(crate) fn wrap_negative(positions: &mut [i64], size: usize) -> Option<i64> {
    let size = size as i64;
    for position in positions {
        if !(-size..size).contains(position) {
            return Some(*position);
        }
        if *position < 0 {
            *position += size;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn() -> Site = || Site::here("test");

    #[test]
    fn indices_of_the_dimensions_broadcast() {
        let from = Shape::from([3, 4]);
        let rows = Tensor::from([[2i64], [0]]);
        let columns = Tensor::from([1i64, 3, 3]);
        let positions = row_major(&from, &[rows, columns], AT()).unwrap();
        assert_eq!(positions, Tensor::from([[9i64, 11, 11], [1, 3, 3]]));
        assert_eq!(row_major(&Shape::scalar(), &[], AT()).unwrap(), Tensor::scalar(0));
    }

    #[test]
    fn unravel_is_the_inverse() {
        assert_eq!(unravel(&Shape::from([2, 3]), &[0, 4, 5]), [[0, 1, 1], [0, 1, 2]]);
        assert!(wrap(&Tensor::from([-3i64]), 2, 0, AT()).is_err());
        assert_eq!(wrap(&Tensor::from([-2i64, 1]), 2, 0, AT()).unwrap().to_vec(), [0, 1]);
    }
}
