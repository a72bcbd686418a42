//! Dimensions and sizes as callers write them. Negative dimensions count from the end. A size of -1 is inferred by a reshape, and keeps the
//! existing size in an expansion.

use smallvec::SmallVec;

use crate::shape::shape::{INLINE_RANK, list_of};
use crate::{DType, Error, ExpandMismatch, Shape, Site, ensure};

/// The positions of dimensions, which count from 0 and are less than the rank.
pub type Axes = SmallVec<[usize; INLINE_RANK]>;

/// Dimensions as callers write them: one (`-1`), several (`[0, 2]`), or all (`..`). Negative numbers count from the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims(Option<SmallVec<[isize; INLINE_RANK]>>);

impl Dims {
    /// Returns the positions of these dimensions in a tensor of rank `rank`. Refuses dimensions that do not exist, and duplicates. An empty
    /// list gives no positions. As in PyTorch, a tensor of rank 0 accepts the dimension 0 or -1, which gives no position.
    pub fn resolve(&self, rank: usize, at: Site) -> Result<Axes, Error> {
        let Some(dims) = &self.0 else {
            return Ok(all_axes(rank));
        };
        let mut axes = Axes::new();
        for &dim in dims {
            let axis = axis(dim, rank, at)?;
            ensure!(!axes.contains(&axis), at, "dim {axis} appears multiple times in the list of dims");
            axes.push(axis);
        }
        axes.truncate(rank);
        Ok(axes)
    }

    /// Returns the dimensions as the caller wrote them. The slice is empty for all dimensions (`..`).
    pub fn as_slice(&self) -> &[isize] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns true if the caller asked for all dimensions (`..`).
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the positions like [`resolve`](Self::resolve). Only an empty list is different: it means all dimensions, as in PyTorch's
    /// reductions.
    pub fn resolve_or_all(&self, rank: usize, at: Site) -> Result<Axes, Error> {
        match &self.0 {
            Some(dims) if dims.is_empty() => Ok(all_axes(rank)),
            _ => self.resolve(rank, at),
        }
    }
}

/// Returns the positions of all dimensions of a tensor of rank `rank`.
fn all_axes(rank: usize) -> Axes {
    let mut axes = list_of(0, rank);
    axes.iter_mut().enumerate().for_each(|(axis, own)| *own = axis);
    axes
}

/// Returns the position of dimension `dim` of a tensor of rank `rank`. A rank-0 tensor has dimensions 0 and -1.
/// Returns an error if the tensor does not have that dimension.
pub fn axis(dim: impl Position, rank: usize, at: Site) -> Result<usize, Error> {
    let dim = dim.position();
    let bound = rank.max(1) as isize;
    if (-bound..bound).contains(&dim) {
        Ok(if dim < 0 { dim + bound } else { dim } as usize)
    } else {
        Err(Error::DimRange { dim, rank, at })
    }
}

/// A dimension, an index or a length as callers write it: an `isize`, an `i32`, an `i64` or a `usize`. Each operation documents where
/// negative values count from the end.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let (x, last) = (Tensor::from([1.0, 2.0, 3.0]), [10, 20, 30].len() - 1); // a usize
/// assert_eq!(x.select(0, last), x.select(-1, -1));
/// assert_eq!(x.select(0, x.argmax(0).item()).item(), 3.0); // an i64
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a dimension, nor an index, nor a length",
    label = "expected one number of type `isize`, `i32`, `i64` or `usize`",
    note = "for an operation over all elements there are `median_all`, `nanmedian_all`, `max_all`, `min_all`, `argmax_all` and `argmin_all`; \
            for other operations on a dimension, `x.flatten(0, -1)` joins all dimensions first"
)]
pub trait Position: Copy {
    /// Returns the value. If the value does not fit into `isize`, returns `isize::MAX`. No tensor has this dimension or index. As an end of
    /// a range, it is clamped like every large number.
    fn position(self) -> isize;

    /// Returns the value as a size. If the value does not fit into `isize`, returns `isize::MIN`, which every operation refuses.
    fn size(self) -> isize {
        self.position()
    }
}

macro_rules! positions {
    ($($number:ty)*) => {$(
        #[allow(clippy::useless_conversion)]
        impl Position for $number {
            fn position(self) -> isize {
                isize::try_from(self).unwrap_or(isize::MAX)
            }

            fn size(self) -> isize {
                isize::try_from(self).unwrap_or(UNREPRESENTABLE)
            }
        }
    )*};
}

positions!(isize i32 i64 usize);

/// A size, or another number of [`Sizes`], that does not fit into `isize`. Every operation refuses it.
pub(crate) const UNREPRESENTABLE: isize = isize::MIN;

/// Implements the conversions from one number or a list of numbers, for several types of numbers. `$convert` is the method of [`Position`]
/// that converts one number. The method replaces a number that does not fit into `isize` by a number that every operation refuses.
macro_rules! from_numbers {
    ($name:ident, $listed:expr, $convert:ident, $($number:ty)*) => {$(
        impl From<&[$number]> for $name {
            fn from(numbers: &[$number]) -> Self {
                $listed(numbers.iter().map(|number| number.$convert()).collect())
            }
        }

        impl From<$number> for $name {
            fn from(number: $number) -> Self {
                Self::from(&[number][..])
            }
        }

        impl<const N: usize> From<[$number; N]> for $name {
            fn from(numbers: [$number; N]) -> Self {
                Self::from(&numbers[..])
            }
        }

        impl<const N: usize> From<&[$number; N]> for $name {
            fn from(numbers: &[$number; N]) -> Self {
                Self::from(&numbers[..])
            }
        }

        impl From<Vec<$number>> for $name {
            fn from(numbers: Vec<$number>) -> Self {
                Self::from(&numbers[..])
            }
        }
    )*};
}

from_numbers!(Dims, |dims| Dims(Some(dims)), position, isize i32 i64 usize);
from_numbers!(Sizes, Sizes, size, isize i32 i64 usize);

impl From<std::ops::RangeFull> for Dims {
    fn from(_: std::ops::RangeFull) -> Self {
        Dims(None)
    }
}

/// Sizes as callers write them: one, a list (`[2, -1]`), a [`Shape`], or a tuple if their types differ (`(n, -1)` with a `usize` n). The
/// meaning of -1 depends on the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(SmallVec<[isize; INLINE_RANK]>);

impl Sizes {
    /// Returns the sizes as the caller wrote them. A size above `isize::MAX` becomes `isize::MIN`, which every operation refuses.
    pub fn as_slice(&self) -> &[isize] {
        &self.0
    }

    /// Returns the new shape of a tensor of shape `shape` that is reshaped to these sizes. A single -1 becomes the size that keeps the
    /// number of elements. Returns an error if the sizes do not match the number of elements, if another size is negative, or if -1 is
    /// ambiguous.
    pub fn resolve_reshape(&self, shape: &Shape, at: Site) -> Result<Shape, Error> {
        let numel = shape.numel();
        let text = || crate::shape::diagnostic::sizes_text(&self.0);
        let refuse = |message: String| Err(Error::Reshape { message, at });
        let mut inferred = None;
        for (axis, &size) in self.0.iter().enumerate() {
            if size == -1 {
                ensure!(inferred.is_none(), at, "only one dimension can be inferred");
                inferred = Some(axis);
            } else if size < 0 {
                return refuse(format!("invalid shape dimension {size} at index {axis} of shape {}", text()));
            }
        }
        let known: Shape = self.0.iter().filter(|&&size| size >= 0).map(|&size| size as usize).collect();
        let count = known.checked_numel();
        let mut sizes: Shape = self.0.iter().map(|&size| size.max(0) as usize).collect();
        match (inferred, count) {
            (None, Some(count)) if count == numel => Ok(sizes),
            (Some(_), Some(0)) if numel == 0 => refuse(format!(
                "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any \
                 value and is ambiguous",
                text()
            )),
            (Some(axis), Some(count)) if count > 0 && numel.is_multiple_of(count) => {
                sizes[axis] = numel / count;
                Ok(sizes)
            }
            _ => refuse(format!("shape '{}' is invalid for input of size {numel}", text())),
        }
    }

    /// Returns the new shape of a tensor of shape `shape` that is expanded to these sizes. A size of -1 keeps an existing dimension. Returns
    /// an error if the tensor does not expand to these sizes, or if the new shape has more than `isize::MAX` elements.
    pub fn resolve_expand(&self, dtype: DType, shape: &Shape, at: Site) -> Result<Shape, Error> {
        let Some(lead) = self.0.len().checked_sub(shape.rank()) else {
            return Err(self.expand_error(dtype, shape, at));
        };
        let mut target = Shape::ones(self.0.len());
        for (axis, &size) in self.0.iter().enumerate() {
            let existing = axis.checked_sub(lead).map(|own| shape[own]);
            target[axis] = match (usize::try_from(size), existing) {
                (Ok(size), None | Some(1)) => size,
                (Ok(size), Some(existing)) if existing == size => size,
                (Err(_), Some(existing)) if size == -1 => existing,
                _ => return Err(self.expand_error(dtype, shape, at)),
            };
        }
        if target.numel() <= isize::MAX as usize { Ok(target) } else { Err(self.expand_error(dtype, shape, at)) }
    }

    /// Returns the error for a tensor of shape `shape` that does not expand to these sizes. An [`Error::Expand`] names the last dimension
    /// that fails, as in PyTorch.
    #[cold]
    fn expand_error(&self, dtype: DType, shape: &Shape, at: Site) -> Error {
        let mut sizes = self.0.clone();
        if let Some(lead) = sizes.len().checked_sub(shape.rank()) {
            for (size, &existing) in sizes[lead..].iter_mut().zip(shape.iter()).filter(|(size, _)| **size == -1) {
                *size = existing as isize;
            }
            if let Some(mismatch) = ExpandMismatch::with_sizes(shape, &sizes) {
                return Error::Expand(Box::new(ExpandMismatch { target: self.0.to_vec(), ..mismatch }), at);
            }
        }
        Error::ExpandSizes { dtype, shape: shape.clone(), sizes: self.0.to_vec(), at }
    }

    /// Returns these sizes as a shape, for operations that do not accept -1. Returns an error if a size is negative or does not fit into
    /// `isize`.
    pub fn resolve_plain(&self, at: Site) -> Result<Shape, Error> {
        let refused = |size| match size {
            UNREPRESENTABLE => Error::argument(at, format_args!("a size must be at most {}", isize::MAX)),
            size => Error::argument(at, format_args!("a size must not be negative, but got {size}")),
        };
        self.0.iter().map(|&size| usize::try_from(size).map_err(|_| refused(size))).collect()
    }
}

impl From<&Shape> for Sizes {
    fn from(shape: &Shape) -> Self {
        Sizes::from(shape.sizes())
    }
}

impl From<Shape> for Sizes {
    fn from(shape: Shape) -> Self {
        Sizes::from(&shape)
    }
}

impl From<()> for Sizes {
    fn from((): ()) -> Self {
        Sizes(SmallVec::new())
    }
}

/// Implements the conversion from a tuple, whose sizes may have different types: `(n, -1)` with a `usize` n.
macro_rules! from_tuples {
    ($(($($size:ident $number:ident),+);)*) => {$(
        impl<$($number: Position),+> From<($($number,)+)> for Sizes {
            fn from(($($size,)+): ($($number,)+)) -> Self {
                Sizes(SmallVec::from_slice(&[$($size.size()),+]))
            }
        }
    )*};
}

from_tuples! {
    (a A);
    (a A, b B);
    (a A, b B, c C);
    (a A, b B, c C, d D);
    (a A, b B, c C, d D, e E);
    (a A, b B, c C, d D, e E, f F);
}

#[cfg(test)]
mod tests {
    use crate::index_items;
    use crate::prelude::*;

    /// Tests tensors without elements, because no other check limits their sizes.
    #[test]
    fn a_size_that_does_not_fit_is_refused() {
        let text = Tensor::<f64>::try_full([0, usize::MAX], 0.0).unwrap_err().sentence();
        assert_eq!(text, "a size must be at most 9223372036854775807");
        let empty = Tensor::<f64>::zeros([0]);
        assert!(Tensor::<f64>::try_from_vec(vec![], [0, usize::MAX]).is_err());
        assert!(empty.try_reshape([0, usize::MAX]).is_err());
        assert!(empty.unsqueeze(0).try_expand([usize::MAX, 0]).is_err());
        assert!(empty.try_reshape((0, usize::MAX)).is_err() && empty.try_reshape((-1, usize::MAX, 0)).is_err());
        assert!(Tensor::<f64>::try_full([0, isize::MAX as usize], 0.0).is_ok());
    }

    #[test]
    fn a_number_has_one_dimension_to_name() {
        let x = Tensor::scalar(2.0);
        assert_eq!((x.sum(0), x.sum(-1), x.sum(..)), (x.clone(), x.clone(), x.clone()));
        for twice in [[0, 0], [0, -1]] {
            assert_eq!(x.try_sum(twice).unwrap_err().sentence(), "dim 0 appears multiple times in the list of dims");
        }
    }

    #[test]
    fn sizes_of_several_types_stand_in_a_tuple() {
        let (x, rows) = (Tensor::<i64>::arange(12), [1, 2, 3].len());
        assert_eq!(x.reshape((rows, -1)).shape(), &[3, 4]);
        assert_eq!(x.reshape((-1isize, rows, 2)).shape(), &[2, 3, 2]);
        assert_eq!(x.reshape((1, 1, rows, 2usize, 1isize, -1)).shape(), &[1, 1, 3, 2, 1, 2]);
        assert_eq!(x.unsqueeze(0).expand((rows, -1)).shape(), &[3, 12]);
        assert_eq!(Tensor::<f64>::zeros((rows, 2)).shape(), &[3, 2]);
        assert_eq!(x.reshape((12,)), x);
    }

    /// Uses an `i64`, such as an item of an index tensor, as a dimension, a size, an end of a range and a position, without a conversion.
    #[test]
    fn numbers_of_index_tensors_are_dimensions_and_sizes() {
        let (x, one) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([1i64]).item());
        assert_eq!(x.sum(one), x.sum(1));
        assert_eq!(x.permute([one, 0]), x.t());
        assert_eq!(x.reshape([4 * one, one]).shape(), &[4, 1]);
        assert_eq!(Tensor::<f64>::zeros(one), Tensor::zeros(1));
        assert_eq!(x.slice(0, one..).to_vec(), [3.0, 4.0]);
        assert_eq!(x.slice(0, ..=one - 1).to_vec(), [1.0, 2.0]);
        assert_eq!(x.index(&index_items![one]).to_vec(), [3.0, 4.0]);
        assert_eq!(x.index(&index_items![one.., -one]).to_vec(), [4.0]);
    }

    #[test]
    fn positions_of_all_types_agree_and_none_wraps_around() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        for part in [x.narrow(1i32, 1usize, 1isize), x.narrow(1usize, -1, 1), x.narrow(-1isize, 1i32, 1i64)] {
            assert_eq!(part.to_vec(), [2.0, 4.0]);
        }
        let beyond = usize::MAX; // As an isize this would be -1, which counts from the end.
        for refused in [x.try_select(0, beyond), x.try_select(beyond, 0), x.try_narrow(0, beyond, 1)] {
            assert!(refused.is_err());
        }
    }
}
