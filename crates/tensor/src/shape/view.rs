//! Views as values: what a view does to a layout, to be applied at once or recorded.

use crate::{Axes, Layout, Shape};

/// A view with its arguments resolved and checked against the shape it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum View {
    /// Stride 0 along new and stretched dimensions. The one operation that broadcasts.
    Expand(Shape),
    /// The same elements in row-major order under another shape (copied where strides do not allow a view).
    Reshape(Shape),
    /// Dimensions in another order.
    Permute(Axes),
    /// The order of elements reversed along some dimensions.
    Flip(Axes),
    /// `len` elements of dimension `axis`, from `start`, every `step`-th (backwards where negative).
    Slice {
        /// The dimension.
        axis: usize,
        /// First element.
        start: usize,
        /// Number of elements.
        len: usize,
        /// Distance from one to the next.
        step: isize,
    },
    /// A diagonal of two dimensions, as a last dimension.
    Diagonal {
        /// How far above the main diagonal (below where negative).
        offset: isize,
        /// Dimension of the rows.
        first: usize,
        /// Dimension of the columns.
        second: usize,
    },
    /// Windows along a dimension; the window becomes a last dimension.
    Unfold {
        /// The dimension.
        axis: usize,
        /// Elements in a window.
        size: usize,
        /// Distance from one window to the next.
        step: usize,
    },
}

impl View {
    /// PyTorch's name.
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

    /// The same view of every slice along a new first dimension of `size`.
    pub fn batched(&self, size: usize) -> View {
        let with_batch = |shape: &Shape| shape.replaced(0..0, &[size]);
        match self {
            View::Expand(shape) => View::Expand(with_batch(shape)),
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

    /// The layout after the view, or `None` if a reshape needs a copy.
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

    /// The shape after the view of a tensor of shape `shape`.
    pub fn shape(&self, shape: &Shape) -> Shape {
        match self {
            View::Expand(target) | View::Reshape(target) => target.clone(),
            View::Permute(axes) => axes.iter().map(|&axis| shape[axis]).collect(),
            &View::Slice { axis, len, .. } => {
                let mut shape = shape.clone();
                shape[axis] = len;
                shape
            }
            view => match view.apply(&Layout::contiguous(shape.clone())) {
                Some(layout) => layout.shape().clone(),
                None => unreachable!("only a reshape may need a copy"),
            },
        }
    }
}
