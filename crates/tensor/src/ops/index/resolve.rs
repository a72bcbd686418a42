//! Resolves the items of an index into a view and the remaining index tensors, and these into positions.

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::ops::index::item::IndexItem;
use crate::ops::index::positions::{line, of_mask, row_major, unravel, wrapped};
use crate::shape::broadcast;
use crate::{Error, Shape, Site, Tensor, View};

/// Index tensors by the dimension that they index, in order.
pub(crate) type Chosen = Vec<(usize, Tensor<i64>)>;

/// The view described by all items but index tensors and masks, and these tensors.
pub(crate) fn resolve<A: TensorLike>(x: &A, items: &[IndexItem], at: Site) -> Result<(A, Chosen), A::Error> {
    let rank = x.shape().rank();
    let specified: usize = items
        .iter()
        .map(|item| match item {
            IndexItem::At(_) | IndexItem::Slice(..) | IndexItem::Positions(_) => 1,
            IndexItem::Mask(mask) => mask.rank(),
            IndexItem::NewAxis | IndexItem::Ellipsis => 0,
        })
        .sum();
    if specified > rank {
        return Err(Error::argument(at, format_args!("too many indices for tensor of dimension {rank}")).into());
    }
    let mut view = x.clone();
    let mut chosen = Chosen::new();
    let mut axis = 0;
    let mut elided = false;
    for item in items {
        match item {
            &IndexItem::At(position) => view = select(&view, axis, position, at)?,
            IndexItem::Positions(position) if position.rank() == 0 => {
                view = select(&view, axis, position.try_item()? as isize, at)?;
            }
            &IndexItem::Slice(start, end, step) => {
                view = slice(&view, axis, (start, end, step), at)?;
                axis += 1;
            }
            IndexItem::NewAxis => {
                view = unsqueezed(&view, axis, at)?;
                axis += 1;
            }
            IndexItem::Ellipsis => {
                if std::mem::replace(&mut elided, true) {
                    return Err(Error::argument(at, "an index can only have a single ellipsis").into());
                }
                axis += rank - specified;
            }
            IndexItem::Positions(positions) => {
                let positions = wrapped(positions, view.shape()[axis], axis, at)?;
                chosen.push((axis, positions));
                axis += 1;
            }
            IndexItem::Mask(mask) if mask.rank() == 0 => {
                // A mask without dimensions: a new dimension, whose single element is taken or not.
                view = unsqueezed(&view, axis, at)?;
                let taken = usize::from(mask.try_item()?);
                chosen.push((axis, Tensor::zeros([taken])));
                axis += 1;
            }
            IndexItem::Mask(mask) => {
                let shape = view.shape();
                for (own, &size) in mask.shape().iter().enumerate() {
                    if shape[axis + own] != size {
                        let message = format!(
                            "The shape of the mask {} at index {own} does not match the shape of the indexed tensor {shape} \
                             at index {}",
                            mask.shape(),
                            axis + own
                        );
                        return Err(Error::argument(at, message).into());
                    }
                }
                for line in unravel(mask.shape(), &of_mask(mask, at)?) {
                    let count = line.len();
                    chosen.push((axis, Tensor::try_from_vec(line, [count])?));
                    axis += 1;
                }
            }
        }
    }
    Ok((view, chosen))
}

fn select<A: TensorLike>(x: &A, axis: usize, position: isize, at: Site) -> Result<A, A::Error> {
    let mut shape = x.shape();
    let size = shape[axis] as isize;
    if !(-size..size).contains(&position) {
        let message = format!("index {position} is out of bounds for dimension {axis} with size {size}");
        return Err(Error::IndexRange { message, at }.into());
    }
    let start = if position < 0 { position + size } else { position } as usize;
    shape.remove(axis);
    x.sliced(axis, start, 1, at)?.reshaped(shape, at)
}

type Bounds = (Option<isize>, Option<isize>, isize);

fn slice<A: TensorLike>(x: &A, axis: usize, (start, end, step): Bounds, at: Site) -> Result<A, A::Error> {
    if step <= 0 {
        return Err(Error::argument(at, "step must be greater than zero").into());
    }
    let size = x.shape()[axis] as isize;
    let place = |position: isize| (if position < 0 { position.saturating_add(size) } else { position }).clamp(0, size);
    let start = place(start.unwrap_or(0));
    let end = place(end.unwrap_or(size)).max(start);
    let len = ((end - start) as usize).div_ceil(step as usize);
    if (start, len, step) == (0, size as usize, 1) {
        return Ok(x.clone());
    }
    x.apply_view(View::Slice { axis, start: start as usize, len, step }, at)
}

fn unsqueezed<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A, A::Error> {
    let mut shape = x.shape();
    shape.insert(axis, 1);
    x.reshaped(shape, at)
}

/// The elements of `view` that index tensors choose.
pub(crate) fn taken<A: TensorLike>(view: &A, chosen: Chosen, at: Site) -> Result<A, A::Error> {
    match &chosen[..] {
        [(axis, index)] => view.apply_index_select(*axis, index, at),
        _ => view.apply_take(&positions(&view.shape(), chosen, at)?, at),
    }
}

/// Positions in a tensor of shape `shape` of the elements that index tensors choose; the other dimensions are whole.
fn positions(shape: &Shape, chosen: Chosen, at: Site) -> Result<Tensor<i64>, Error> {
    let shapes: Vec<&Shape> = chosen.iter().map(|(_, index)| index.shape()).collect();
    let Ok(common) = broadcast::join(&shapes) else {
        let list: Vec<String> = shapes.iter().map(|shape| shape.to_string()).collect();
        let message =
            format!("shape mismatch: indexing tensors could not be broadcast together with shapes {}", list.join(", "));
        return Err(Error::ShapeMismatch { message, at });
    };
    let (first, last) = (chosen[0].0, chosen[chosen.len() - 1].0);
    let neighbours = last - first + 1 == chosen.len();
    let lead = if neighbours { first } else { 0 };
    let rank = shape.rank() - chosen.len() + common.rank();
    let mut whole = 0;
    let mut indices = Vec::with_capacity(shape.rank());
    for axis in 0..shape.rank() {
        match chosen.iter().find(|(own, _)| *own == axis) {
            Some((_, index)) => {
                let mut placed = Shape::ones(rank);
                placed[lead..lead + common.rank()].copy_from_slice(&common);
                indices.push(index.over(&common, at)?.reshaped(placed, at)?);
            }
            None => {
                let place = if whole < lead { whole } else { whole + common.rank() };
                indices.push(line(shape[axis], place, rank, at)?);
                whole += 1;
            }
        }
    }
    row_major(shape, &indices, at)
}
