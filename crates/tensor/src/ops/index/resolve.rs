//! Resolves a list of index items in two steps. Integers, index tensors of rank 0, slices and new dimensions become a view. Other index
//! tensors and masks become positions.

use crate::ops::index::positions::{arange_along, positions_in, row_major, unravel, wrap};
use crate::ops::shape::views::{slice, squeeze, unsqueeze};
use crate::ops::{Compose, IndexItem, Result, TensorLike};
use crate::shape::broadcast;
use crate::{Error, Shape, Site, Span, Tensor, View, ensure};

/// Index tensors, each with the dimension that it indexes, in the order of the dimensions.
pub(crate) type IndexTensors = Vec<(usize, Tensor<i64>)>;

/// Applies the integers, index tensors of rank 0, slices and new dimensions among `items` to `x`, which gives a view. Returns the view, and
/// the other items as index tensors.
pub(crate) fn resolve_items<A: TensorLike>(
    x: &A,
    items: &[IndexItem],
    at: Site,
) -> Result<(A, IndexTensors), A::Error> {
    let rank = x.shape().rank();
    let indexed: usize = items.iter().map(indexed_dimensions).sum();
    ensure!(indexed <= rank, at, "too many indices for tensor of dimension {rank}");
    let ellipses = items.iter().filter(|item| matches!(item, IndexItem::Ellipsis)).count();
    ensure!(ellipses <= 1, at, "an index can only have a single ellipsis");
    let mut view = x.clone();
    let mut indices = IndexTensors::new();
    let mut axis = 0;
    for item in items {
        match item {
            &IndexItem::At(position) => view = select(&view, axis, position, at)?,
            IndexItem::Positions(position) if position.rank() == 0 => {
                view = select(&view, axis, position.try_item()? as isize, at)?;
            }
            &IndexItem::Slice(Span { start, end, step }) => {
                ensure!(step > 0, at, "step must be greater than zero");
                let size = view.shape()[axis];
                match slice(axis, size, start, end, step) {
                    View::Slice { start: 0, len, step: 1, .. } if len == size => {}
                    part => view = view.apply_view(part, at)?,
                }
                axis += 1;
            }
            IndexItem::NewAxis => {
                view = unsqueeze(&view, axis, at)?;
                axis += 1;
            }
            IndexItem::Ellipsis => axis += rank - indexed,
            IndexItem::Positions(positions) => {
                indices.push((axis, wrap(positions, view.shape()[axis], axis, at)?));
                axis += 1;
            }
            IndexItem::Mask(mask) if mask.rank() == 0 => {
                // A mask of rank 0 indexes a new dimension of size 1. The index tensor selects the element of this dimension if the mask is
                // true, and otherwise nothing.
                view = unsqueeze(&view, axis, at)?;
                indices.push((axis, Tensor::zeros([usize::from(mask.try_item()?)])));
                axis += 1;
            }
            IndexItem::Mask(mask) => {
                check_mask(mask.shape(), &view.shape(), axis, at)?;
                for index in unravel(mask.shape(), &positions_in(mask, at)?.row_major_elements(at)?) {
                    indices.push((axis, Tensor::from(index)));
                    axis += 1;
                }
            }
        }
    }
    Ok((view, indices))
}

/// Returns the number of dimensions that an item indexes. The dimensions of an ellipsis do not count.
fn indexed_dimensions(item: &IndexItem) -> usize {
    match item {
        IndexItem::At(_) | IndexItem::Slice(..) | IndexItem::Positions(_) => 1,
        IndexItem::Mask(mask) => mask.rank(),
        IndexItem::NewAxis | IndexItem::Ellipsis => 0,
    }
}

/// Refuses a mask whose sizes differ from the sizes of the dimensions that it indexes. These are the dimensions of `shape` from `axis` on.
fn check_mask(mask: &Shape, shape: &Shape, axis: usize, at: Site) -> Result<(), Error> {
    for (own, &size) in mask.iter().enumerate() {
        let indexed = axis + own;
        ensure!(
            shape[indexed] == size,
            at,
            "The shape of the mask {mask} at index {own} does not match the shape of the indexed tensor {shape} at index \
             {indexed}"
        );
    }
    Ok(())
}

fn select<A: TensorLike>(x: &A, axis: usize, position: isize, at: Site) -> Result<A> {
    let size = x.shape()[axis] as isize;
    ensure!(
        (-size..size).contains(&position),
        at,
        IndexRange,
        "index {position} is out of bounds for dimension {axis} with size {size}"
    );
    let start = if position < 0 { position + size } else { position } as usize;
    squeeze(&x.slice_axis(axis, start, 1, at)?, axis, at)
}

/// Returns the elements of `view` that the index tensors select.
pub(crate) fn take_indexed<A: TensorLike>(view: &A, indices: IndexTensors, at: Site) -> Result<A> {
    match &indices[..] {
        [] => Ok(view.clone()),
        [(axis, index)] => view.apply_index_select(*axis, index, at),
        _ => view.apply_take(&positions(&view.shape(), indices, at)?, at),
    }
}

/// Returns the mask if `items` is one mask of the shape `shape`.
pub(crate) fn whole_mask<'a>(items: &'a [IndexItem], shape: &Shape) -> Option<&'a Tensor<bool>> {
    match items {
        [IndexItem::Mask(mask)] if mask.rank() > 0 && mask.shape() == shape => Some(mask),
        _ => None,
    }
}

/// Returns the row-major positions, in a tensor of shape `shape`, of the elements that the index tensors select. Dimensions without an
/// index tensor are selected completely.
pub(crate) fn positions(shape: &Shape, indices: IndexTensors, at: Site) -> Result<Tensor<i64>, Error> {
    let shapes: Vec<&Shape> = indices.iter().map(|(_, index)| index.shape()).collect();
    let Ok(common) = broadcast::join(&shapes) else {
        let list: Vec<String> = shapes.iter().map(|shape| shape.to_string()).collect();
        let message =
            format!("shape mismatch: indexing tensors could not be broadcast together with shapes {}", list.join(", "));
        return Err(Error::ShapeMismatch { message, at });
    };
    // If the indexed dimensions are adjacent, the broadcast dimensions of the index tensors replace these dimensions in the result.
    // Otherwise the broadcast dimensions come first in the result.
    let (first, last) = (indices[0].0, indices[indices.len() - 1].0);
    let adjacent = last - first + 1 == indices.len();
    let lead = if adjacent { first } else { 0 };
    let rank = shape.rank() - indices.len() + common.rank();
    let mut whole = 0;
    let mut terms = Vec::with_capacity(shape.rank());
    for axis in 0..shape.rank() {
        match indices.iter().find(|(indexed, _)| *indexed == axis) {
            Some((_, index)) => {
                let mut aligned = Shape::ones(rank);
                aligned[lead..lead + common.rank()].copy_from_slice(&common);
                terms.push(index.expand_to(&common, at)?.reshape_to(aligned, at)?);
            }
            None => {
                let position = if whole < lead { whole } else { whole + common.rank() };
                terms.push(arange_along(shape[axis], position, rank, at)?);
                whole += 1;
            }
        }
    }
    row_major(shape, &terms, at)
}
