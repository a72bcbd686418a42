//! The items of an index such as `x[1, :, index]`.

use crate::{Position, Span, Tensor};

/// One item of an index.
///
/// Integers, ranges (`..`, `1..`, `..-1`, `1..3`), ranges with a step (`(1.., 2)`), `&Tensor<i64>` and `&Tensor<bool>` convert to items.
/// [`index_items!`](crate::index_items) makes a list of items. The range `..` is one whole dimension, not an ellipsis.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// One position of a dimension. The result lacks this dimension. A negative position counts from the end.
    At(isize),
    /// The range `start:end:step` of a dimension, as in Python, with a positive step.
    Slice(Span),
    /// A new dimension of size 1. Python: `None`.
    NewAxis,
    /// All dimensions that the other items do not index, possibly none. Written `...` in Python and in
    /// [`index_items!`](crate::index_items).
    Ellipsis,
    /// Positions along a dimension, as a tensor of any shape. Negative positions count from the end. A tensor of rank 0 counts as
    /// [`At`](IndexItem::At).
    Positions(Tensor<i64>),
    /// The elements where the mask is true. The mask indexes as many dimensions as it has.
    Mask(Tensor<bool>),
}

impl<R: Into<Span>> From<R> for IndexItem {
    fn from(range: R) -> Self {
        IndexItem::Slice(range.into())
    }
}

/// Implements the conversions to [`IndexItem`] from positions.
macro_rules! positions {
    ($($number:ty)*) => {$(
        impl From<$number> for IndexItem {
            fn from(position: $number) -> Self {
                IndexItem::At(position.position())
            }
        }
    )*};
}

positions!(isize i32 i64 usize);

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

/// A list of [`IndexItem`]s: `index_items![0, .., 1..3, &positions, &mask]`.
///
/// `..` is one whole dimension, Python's `:`. `...` stands for all dimensions that the other items do not index and may occur
/// once: Python's `x[..., 0]` is `x.index(&index_items![..., 0])`. A new dimension is `IndexItem::NewAxis`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::<f32>::zeros([2, 3, 4]);
/// assert_eq!(x.index(&index_items![.., 0]).shape(), &[2, 4]);
/// assert_eq!(x.index(&index_items![..., 0]).shape(), &[2, 3]);
/// assert_eq!(x.index(&index_items![1, ..., ..2]).shape(), &[3, 2]);
/// ```
#[macro_export]
macro_rules! index_items {
    (@list [$($done:expr,)*]) => {
        [$($done),*]
    };
    (@list [$($done:expr,)*] ... $(, $($rest:tt)*)?) => {
        $crate::index_items!(@list [$($done,)* $crate::ops::IndexItem::Ellipsis,] $($($rest)*)?)
    };
    (@list [$($done:expr,)*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::index_items!(@list [$($done,)* $crate::ops::IndexItem::from($item),] $($($rest)*)?)
    };
    ($($items:tt)*) => {
        $crate::index_items!(@list [] $($items)*)
    };
}
