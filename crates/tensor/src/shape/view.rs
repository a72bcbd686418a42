//! Views as values. They can be applied to a layout, or recorded in an expression.

use crate::{Axes, Layout, Shape};

/// A view. Its arguments were checked against the shape that it applies to, and have no negative dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// Expands to a shape. New and stretched dimensions get stride 0. No other view changes sizes by broadcasting.
    Expand(Shape),
    /// Arranges the elements, in row-major order, in another shape. Copies them if the strides do not allow a view.
    Reshape(Shape),
    /// Reorders the dimensions.
    Permute(Axes),
    /// Reverses the order of the elements along some dimensions.
    Flip(Axes),
    /// Selects `len` elements of dimension `axis`.
    Slice {
        /// The dimension whose elements are selected.
        axis: usize,
        /// The index of the first selected element.
        start: usize,
        /// The number of selected elements.
        len: usize,
        /// The distance between selected elements. It is negative for the reverse order.
        step: isize,
    },
    /// Selects a diagonal of two dimensions, which becomes the last dimension.
    Diagonal {
        /// The distance of the diagonal above the main diagonal. It is negative if the diagonal is below.
        offset: isize,
        /// The dimension of the rows.
        first: usize,
        /// The dimension of the columns.
        second: usize,
    },
    /// Selects windows along a dimension. The elements of a window become the last dimension.
    Unfold {
        /// The dimension along which the windows are selected.
        axis: usize,
        /// The number of elements per window.
        size: usize,
        /// The distance between the first elements of neighbouring windows.
        step: usize,
    },
}

impl View {
    /// Returns true if several elements of the view may share one element of the viewed array.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, View::Expand(_) | View::Unfold { .. })
    }

    /// Returns the name that PyTorch gives to the operation of this view.
    pub fn name(&self) -> &'static str {
        match self {
            View::Expand(_) => "expand",
            View::Reshape(_) => "reshape",
            View::Permute(_) => "permute",
            View::Flip(_) => "flip",
            View::Slice { .. } => "slice",
            View::Diagonal { .. } => "diagonal",
            View::Unfold { .. } => "unfold",
        }
    }

    /// Returns the view of a batch that applies this view to every item. The items lie along the first dimension of `batch`, the shape of the
    /// batch.
    ///
    /// # Panics
    ///
    /// If an item has fewer dimensions than the target of a [`View::Expand`]. New dimensions would come before the dimension of the items,
    /// so insert them by a reshape first.
    pub fn batched(&self, batch: &Shape) -> View {
        let with_batch = |shape: &Shape| shape.replaced(0..0, &batch[..1]);
        match self {
            View::Expand(shape) => {
                assert_eq!(batch.rank(), shape.rank() + 1, "the items of {batch} expand to {shape} after a reshape");
                View::Expand(with_batch(shape))
            }
            View::Reshape(shape) => View::Reshape(with_batch(shape)),
            View::Permute(axes) => View::Permute(std::iter::once(0).chain(axes.iter().map(|axis| axis + 1)).collect()),
            View::Flip(axes) => View::Flip(axes.iter().map(|axis| axis + 1).collect()),
            &View::Slice { axis, start, len, step } => View::Slice { axis: axis + 1, start, len, step },
            &View::Diagonal { offset, first, second } => {
                View::Diagonal { offset, first: first + 1, second: second + 1 }
            }
            &View::Unfold { axis, size, step } => View::Unfold { axis: axis + 1, size, step },
        }
    }

    /// Returns the layout that this view makes from `layout`, or `None` if a reshape needs a copy.
    pub fn apply(&self, layout: &Layout) -> Option<Layout> {
        match self {
            View::Expand(shape) => layout.expand(shape),
            View::Reshape(shape) => layout.reshape(shape),
            View::Permute(axes) => Some(layout.permute(axes)),
            View::Flip(axes) => Some(layout.flip(axes)),
            &View::Slice { axis, start, len, step } => Some(layout.slice(axis, start, len, step)),
            &View::Diagonal { offset, first, second } => Some(layout.diagonal(offset, first, second)),
            &View::Unfold { axis, size, step } => Some(layout.unfold(axis, size, step)),
        }
    }

    /// Returns the shape that this view makes from a tensor of shape `shape`.
    pub fn shape(&self, shape: &Shape) -> Shape {
        match self {
            View::Expand(target) | View::Reshape(target) => target.clone(),
            View::Permute(axes) => axes.iter().map(|&axis| shape[axis]).collect(),
            &View::Slice { axis, len, .. } => shape.with_size(axis, len),
            view => match view.apply(&Layout::contiguous(shape.clone())) {
                Some(layout) => layout.shape().clone(),
                None => unreachable!("only a reshape may need a copy"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions that a view of a contiguous tensor reads, in row-major order.
    fn positions(view: &View, shape: &Shape) -> Vec<usize> {
        let layout = view.apply(&Layout::contiguous(shape.clone())).unwrap();
        let sizes = layout.shape().clone();
        (0..sizes.numel())
            .map(|mut k| {
                let mut index = vec![0; sizes.rank()];
                for axis in (0..sizes.rank()).rev() {
                    (index[axis], k) = (k % sizes[axis], k / sizes[axis]);
                }
                layout.position(&index).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_batched_view_reads_every_item_alike() {
        let (item, batch) = (Shape::from([1, 4, 4]), Shape::from([3, 1, 4, 4]));
        for view in [
            View::Expand(Shape::from([2, 4, 4])),
            View::Reshape(Shape::from([2, 8])),
            View::Permute([2, 0, 1].into_iter().collect()),
            View::Flip([1].into_iter().collect()),
            View::Slice { axis: 1, start: 3, len: 2, step: -2 },
            View::Diagonal { offset: 1, first: 1, second: 2 },
            View::Unfold { axis: 2, size: 2, step: 1 },
        ] {
            let one = positions(&view, &item);
            let all: Vec<usize> = (0..3).flat_map(|k| one.iter().map(move |position| position + k * 16)).collect();
            assert_eq!(positions(&view.batched(&batch), &batch), all, "{view:?}");
        }
    }

    #[test]
    #[should_panic(expected = "the items of [2, 3] expand to [2, 3] after a reshape")]
    fn a_batched_expansion_adds_no_dimensions() {
        View::Expand(Shape::from([2, 3])).batched(&Shape::from([2, 3]));
    }
}
