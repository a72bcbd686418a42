//! Indexing with a list of items, as `x[1, :, index]` does: integers, slices, new dimensions, an ellipsis, tensors of
//! indices, masks.
//!
//! What needs no index tensor is a view. The index tensors broadcast against each other, and their common shape takes the
//! place of the dimensions they index, if these are neighbours, and goes first otherwise: PyTorch's rule, which is NumPy's
//! but that an integer is a view and no index tensor. One difference: after a mask of several dimensions, the next item
//! applies to the next dimension, as in NumPy.

use super::formula::Formula;
use super::positions::{everywhere, line, of_mask, row_major, unravel, wrapped};
use super::{TensorLike, twin};
use crate::broadcast;
use crate::error::{Error, Site};
use crate::view::View;
use crate::{Shape, Tensor};

/// One item of an index.
///
/// Integers, ranges (`..`, `1..`, `..-1`, `1..3`), `&Tensor<i64>` and `&Tensor<bool>` convert;
/// [`index_items!`](crate::index_items) makes a list of them.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// One position (negative: from the end); the dimension disappears.
    At(isize),
    /// `start:end:step` of a dimension, as in Python, with a positive step.
    Slice(Option<isize>, Option<isize>, isize),
    /// A new dimension of size 1. Python: `None`.
    NewAxis,
    /// As many whole dimensions as are left. Python: `...`.
    Ellipsis,
    /// Positions along a dimension, of any shape; negative ones count from the end.
    Positions(Tensor<i64>),
    /// Where to take elements, over as many dimensions as the mask has.
    Mask(Tensor<bool>),
}

impl From<isize> for IndexItem {
    fn from(position: isize) -> Self {
        IndexItem::At(position)
    }
}

impl From<i32> for IndexItem {
    fn from(position: i32) -> Self {
        IndexItem::At(position as isize)
    }
}

impl From<std::ops::RangeFull> for IndexItem {
    fn from(_: std::ops::RangeFull) -> Self {
        IndexItem::Slice(None, None, 1)
    }
}

macro_rules! ranges {
    ($($integer:ty),*) => {$(
        impl From<std::ops::Range<$integer>> for IndexItem {
            fn from(range: std::ops::Range<$integer>) -> Self {
                IndexItem::Slice(Some(range.start as isize), Some(range.end as isize), 1)
            }
        }

        impl From<std::ops::RangeFrom<$integer>> for IndexItem {
            fn from(range: std::ops::RangeFrom<$integer>) -> Self {
                IndexItem::Slice(Some(range.start as isize), None, 1)
            }
        }

        impl From<std::ops::RangeTo<$integer>> for IndexItem {
            fn from(range: std::ops::RangeTo<$integer>) -> Self {
                IndexItem::Slice(None, Some(range.end as isize), 1)
            }
        }
    )*};
}

ranges!(isize, i32);

impl From<&Tensor<i64>> for IndexItem {
    fn from(positions: &Tensor<i64>) -> Self {
        IndexItem::Positions(positions.clone())
    }
}

impl From<&Tensor<bool>> for IndexItem {
    fn from(mask: &Tensor<bool>) -> Self {
        IndexItem::Mask(mask.clone())
    }
}

/// A list of [`IndexItem`](crate::ops::IndexItem)s: `index_items![0, .., 1..3, &positions, &mask]`. A new dimension is
/// `IndexItem::NewAxis`, an ellipsis `IndexItem::Ellipsis`.
#[macro_export]
macro_rules! index_items {
    ($($item:expr),* $(,)?) => {
        [$($crate::ops::IndexItem::from($item)),*]
    };
}

/// Indexing with a list of items.
pub trait Index: TensorLike {
    twin! { trait
        /// The elements that `items` choose. A view where they have no index tensor and no mask. PyTorch: `x[items]`.
        ///
        /// ```
        /// use wengert_tensor::{index_items, prelude::*};
        ///
        /// let x = Tensor::<f64>::arange(24).reshape([2, 3, 4]);
        /// assert_eq!(x.index(&index_items![1, .., 1..3]).shape(), &[3, 2]);
        /// let rows = Tensor::from([[2i64, 0], [0, 2]]);
        /// assert_eq!(x.index(&index_items![.., &rows]).shape(), &[2, 2, 2, 4]);
        /// assert_eq!(x.index(&index_items![&x.gt(21.0)]).to_vec(), [22.0, 23.0]);
        /// ```
        ///
        /// # Errors
        ///
        /// Where there are more items than dimensions, a position is out of range, a mask's shape is not that of its
        /// dimensions, or index tensors do not broadcast.
        fn index | try_index(&self, items: &[IndexItem]) -> Self = at {
            let (view, chosen) = resolve(self, items, at)?;
            if chosen.is_empty() {
                return Ok(view);
            }
            view.apply_take(&positions(&view.shape(), chosen, at)?, at)
        }
    }
}

impl<A: TensorLike> Index for A {}

/// Whether `items` make a view.
pub(super) fn is_view(items: &[IndexItem]) -> bool {
    !items.iter().any(|item| match item {
        IndexItem::Positions(positions) => positions.rank() > 0,
        IndexItem::Mask(_) => true,
        _ => false,
    })
}

/// Positions, in a tensor of shape `shape`, of the elements that `items` choose.
pub(super) fn positions_of(shape: &Shape, items: &[IndexItem], at: Site) -> Result<Tensor<i64>, Error> {
    let (view, chosen) = resolve(&everywhere(shape, at)?, items, at)?;
    if chosen.is_empty() {
        return Ok(view);
    }
    view.apply_take(&positions(view.shape(), chosen, at)?, at)
}

/// Index tensors by the dimension that they index, in order.
type Chosen = Vec<(usize, Tensor<i64>)>;

/// The view that all but the index tensors and masks make, and these.
fn resolve<A: TensorLike>(x: &A, items: &[IndexItem], at: Site) -> Result<(A, Chosen), A::Error> {
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
                // A new dimension, of which the one element is taken or not.
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
                for line in unravel(mask.shape(), &of_mask(mask)) {
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
    let len = (end - start + step - 1) / step;
    if (start, len, step) == (0, size, 1) {
        return Ok(x.clone());
    }
    x.apply_view(View::Slice { axis, start: start as usize, len: len as usize, step }, at)
}

fn unsqueezed<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A, A::Error> {
    let mut shape = x.shape();
    shape.insert(axis, 1);
    x.reshaped(shape, at)
}

/// Positions in a tensor of shape `shape` of what index tensors choose, whole along the other dimensions.
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
                indices.push(line(shape[axis], place, rank));
                whole += 1;
            }
        }
    }
    row_major(shape, &indices, at)
}

#[cfg(test)]
mod tests {
    use crate::ops::IndexItem;
    use crate::prelude::*;

    fn cube() -> Tensor<i64> {
        Tensor::from_fn([2, 3, 4], |i| (100 * i[0] + 10 * i[1] + i[2]) as i64)
    }

    #[test]
    fn views_are_views() {
        let x = cube();
        let view = x.index(&[IndexItem::from(-1), IndexItem::NewAxis, IndexItem::Ellipsis, IndexItem::from(1..-1)]);
        assert_eq!(view.shape(), &[1, 3, 2]);
        assert_eq!(view.to_vec(), [101, 102, 111, 112, 121, 122]);
        assert!(view.shares_storage(&x));
        assert_eq!(x.index(&index_items![&Tensor::scalar(1i64), 2, 3]).item(), 123);
    }

    #[test]
    fn index_tensors_stay_in_place_where_they_are_neighbours_and_go_first_otherwise() {
        let x = cube();
        let (rows, columns) = (Tensor::from([[0i64], [2]]), Tensor::from([-1i64, 0, 0]));
        let block = x.index(&index_items![.., &rows, &columns]);
        assert_eq!(block.shape(), &[2, 2, 3]);
        assert_eq!(block.index(&index_items![1]).to_vec(), [103, 100, 100, 123, 120, 120]);
        let (outer, inner) = (Tensor::from([0i64, 1]), Tensor::from([2i64, 3]));
        let split = x.index(&index_items![&outer, .., &inner]);
        assert_eq!(split.shape(), &[2, 3]);
        assert_eq!(split.to_vec(), [2, 12, 22, 103, 113, 123]);
        // An integer between them is a view, so they are neighbours.
        assert_eq!(x.index(&index_items![&outer, 0, &inner]).to_vec(), [2, 103]);
    }

    #[test]
    fn masks_choose_over_their_own_dimensions() {
        let x = cube();
        let mask = Tensor::from([[true, false, false], [false, false, true]]);
        assert_eq!(x.index(&index_items![&mask, 1]).to_vec(), [1, 121]);
        assert_eq!(x.index(&index_items![&Tensor::scalar(true)]).shape(), &[1, 2, 3, 4]);
        assert_eq!(x.index(&index_items![&Tensor::scalar(false)]).shape(), &[0, 2, 3, 4]);
    }

    #[test]
    fn the_sentences_of_what_is_refused() {
        let x = Tensor::<f64>::zeros([3, 3]);
        let sentence = |items: &[IndexItem]| x.try_index(items).unwrap_err().sentence();
        assert_eq!(sentence(&index_items![0, 0, 0]), "too many indices for tensor of dimension 2");
        assert_eq!(sentence(&index_items![3]), "index 3 is out of bounds for dimension 0 with size 3");
        assert_eq!(
            sentence(&index_items![&Tensor::from([0i64, 1]), &Tensor::from([0i64, 1, 2])]),
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"
        );
        assert_eq!(
            sentence(&index_items![&Tensor::from([true, true])]),
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 3] at index 0"
        );
    }
}
