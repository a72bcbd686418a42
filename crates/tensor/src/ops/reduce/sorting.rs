//! Sorting along a dimension, and order statistics.
//!
//! Positions are computed from plain data, and the elements are taken at these positions. So the gradient flows to the original positions
//! of the elements. Only [`median_all`](Sorting::median_all) and [`nanmedian_all`](Sorting::nanmedian_all) share the gradient between equal
//! elements. NaN counts as larger than all numbers, but the median of elements with a NaN is NaN.

use wengert_macros::twins;

use crate::kernel::scan::lanes;
use crate::ops::reduce::lane_array::LaneArray;
use crate::ops::reduce::reductions::reduce_dims;
use crate::ops::{Result, TensorLike};
use crate::{Dims, Error, Float, Position, Reduction, Scalar, Shape, Site, Tensor, View, ensure};

/// `sort`, `topk`, `median` and related operations.
#[twins(blanket)]
pub trait Sorting: TensorLike {
    /// Returns the elements in ascending (or `descending`) order along `dim`, and their positions. Equal elements keep their order.
    /// PyTorch: `sort` with `stable=True`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (sorted, positions) = Tensor::from([3.0, 1.0, 2.0, 1.0]).sort(0, false);
    /// assert_eq!((sorted.to_vec(), positions.to_vec()), (vec![1.0, 1.0, 2.0, 3.0], vec![1, 3, 2, 0]));
    /// ```
    #[doc(alias("msort"))]
    fn try_sort(&self, dim: impl Position, descending: bool) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("sort");
        let array = LaneArray::new(self, dim.position(), at)?;
        let positions = array.positions(array.len(), at, &|line, out| lanes::order(descending, line, out))?;
        array.take_all(positions, at)
    }

    /// Returns the positions of [`sort`](Self::sort). PyTorch: `argsort` with `stable=True`.
    fn try_argsort(&self, dim: impl Position, descending: bool) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("argsort");
        let array = LaneArray::new(self, dim.position(), at)?;
        let positions = array.positions(array.len(), at, &|line, out| lanes::order(descending, line, out))?;
        Ok(array.restore_rank(positions, at)?)
    }

    /// Returns the `k` largest (or smallest) elements along `dim` in descending (ascending) order, and their positions. The choice
    /// between equal elements is not specified. Refuses `k` above the size of the dimension. PyTorch: `topk` with `sorted=True`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let scores = Tensor::from([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]]);
    /// assert_eq!(scores.topk(2, 1, true).1, Tensor::from([[1, 2], [0, 2]]));
    /// ```
    fn try_topk(&self, k: usize, dim: impl Position, largest: bool) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("topk");
        let array = LaneArray::new(self, dim.position(), at)?;
        ensure!(k <= array.len(), at, IndexRange, "selected index k out of range");
        let positions = array.positions(k, at, &|line, out| lanes::top(largest, line, out))?;
        // For an array of rank 0, `k` = 1 gives results of rank 0, but `k` = 0 gives empty vectors.
        if k == 0 { Ok((array.take(&positions, at)?, positions)) } else { array.take_all(positions, at) }
    }

    /// Returns the `k`-th smallest element along `dim`, counted from 1. Also returns its position, or the position of an equal element.
    /// Refuses 0, and `k` above the size of the dimension. PyTorch: `kthvalue`.
    #[keepdim]
    fn try_kthvalue(&self, k: usize, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("kthvalue");
        let array = LaneArray::new(self, dim.position(), at)?;
        ensure!(
            (1..=array.len()).contains(&k),
            at,
            IndexRange,
            "kthvalue(): selected number k out of range for dimension {}",
            array.axis
        );
        let positions = array.positions(1, at, &|line, out| out[0] = lanes::nth(k - 1, line) as i64)?;
        array.take_reduced(positions, keepdim, at)
    }

    /// Returns the median along `dim`, or the lower of two medians, and its position. If there is a NaN, returns the first NaN and its
    /// position. Refuses an empty dimension. PyTorch: `median` with a dimension.
    #[keepdim]
    fn try_median(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("median");
        let array = LaneArray::nonempty(self, dim.position(), at)?;
        let positions = array.positions(1, at, &|line, out| out[0] = lanes::median(line) as i64)?;
        array.take_reduced(positions, keepdim, at)
    }

    /// Returns the median of the elements along `dim` that are not NaN, or the lower of two medians, and its position. NaN if all elements
    /// are NaN. Refuses an empty dimension. PyTorch: `nanmedian` with a dimension.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[3.0, f64::NAN, 1.0], [2.0, 1.0, 2.0]]);
    /// assert_eq!(x.nanmedian(1).0.to_vec(), [1.0, 2.0]);
    /// ```
    #[keepdim]
    fn try_nanmedian(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("nanmedian");
        let array = LaneArray::nonempty(self, dim.position(), at)?;
        let positions = array.positions(1, at, &|line, out| out[0] = lanes::nanmedian(line) as i64)?;
        array.take_reduced(positions, keepdim, at)
    }

    /// Returns the most frequent element along `dim` and the position of an occurrence. If several elements are equally frequent, chooses the
    /// smallest. Each NaN counts as a different element, so the result is NaN only if all elements are NaN. The position is the last
    /// occurrence among up to 16 elements; in longer lines it is PyTorch's choice. Refuses an empty dimension. PyTorch: `mode`, which can
    /// give another result if a line has both NaN and numbers.
    #[keepdim]
    fn try_mode(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("mode");
        let array = LaneArray::nonempty(self, dim.position(), at)?;
        let positions = array.positions(1, at, &|line, out| out[0] = lanes::mode(line) as i64)?;
        array.take_reduced(positions, keepdim, at)
    }

    /// Returns the median of all elements, or the lower of two medians. The median is NaN if any element is NaN or there are no elements.
    /// Elements equal to the median share the gradient evenly, and NaNs count as equal to each other. PyTorch: `median` without a
    /// dimension.
    #[doc(alias("median"))]
    fn try_median_all(&self) -> Result<Self>
    where
        Self::Elem: Float,
    {
        median_of_all(self, lanes::median, Site::here("median_all"))
    }

    /// Returns the median of all elements that are not NaN, or the lower of two medians; NaN if there are none. Elements equal to the median
    /// share the gradient evenly, and NaNs count as equal to each other. PyTorch: `nanmedian` without a dimension.
    #[doc(alias("nanmedian"))]
    fn try_nanmedian_all(&self) -> Result<Self>
    where
        Self::Elem: Float,
    {
        median_of_all(self, lanes::nanmedian, Site::here("nanmedian_all"))
    }
}

/// Returns the element at the row-major position that `position` finds among all elements, or NaN if there are no elements. Equal elements
/// share the gradient evenly.
fn median_of_all<A: TensorLike<Elem: Float>>(x: &A, position: fn(&[A::Elem]) -> usize, at: Site) -> Result<A> {
    let values = x.to_tensor(at)?.elements(at)?;
    let refused = |_| Error::OutOfMemory { shape: x.shape(), dtype: A::Elem::DTYPE, at };
    lanes::check_room(values.len(), 1).map_err(refused)?;
    if values.is_empty() {
        let nothing = reduce_dims(x, Reduction::Sum, &Dims::from(..), false, at)?;
        return nothing.with_value(&x.try_constant(&Tensor::scalar(A::Elem::NAN))?, at);
    }
    let median = values[position(&values)];
    let ties: Vec<i64> = (0i64..)
        .zip(&values)
        .filter(|(_, value)| **value == median || value.is_nan() && median.is_nan())
        .map(|(position, _)| position)
        .collect();
    let largest = x.apply_take(&Tensor::from(ties), at)?.apply_reduce(Reduction::Max, &[0], at)?;
    largest.apply_view(View::Reshape(Shape::scalar()), at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn sorting_any_layout() {
        let x = Tensor::from([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]).t();
        let (values, positions) = x.sort(0, true);
        assert_eq!(values, Tensor::from([[3.0, 5.0], [2.0, 4.0], [1.0, 0.0]]));
        assert_eq!(positions, Tensor::from([[0, 1], [2, 2], [1, 0]]));
        assert_eq!(Tensor::scalar(1.0).sort(-1, false), (Tensor::scalar(1.0), Tensor::scalar(0)));
        assert_eq!(Tensor::<f64>::zeros([0, 3]).argsort(0, false).shape(), &[0, 3]);
    }

    #[test]
    fn selection() {
        let x = Tensor::from([4.0, 1.0, 3.0, 2.0]);
        assert_eq!(x.topk(2, 0, true), (Tensor::from([4.0, 3.0]), Tensor::from([0, 2])));
        assert_eq!(x.topk(0, 0, true).0.shape(), &[0]);
        assert_eq!(x.kthvalue_keepdim(2, 0), (Tensor::from([2.0]), Tensor::from([3])));
        assert_eq!(x.median(0), (Tensor::scalar(2.0), Tensor::scalar(3)));
        assert_eq!(Tensor::from([3, 1, 3, 1i64]).mode(0), (Tensor::scalar(1), Tensor::scalar(3)));
        assert_eq!(x.try_topk(5, 0, true).unwrap_err().sentence(), "selected index k out of range");
        assert!(x.try_kthvalue(0, 0).is_err());
    }

    #[test]
    fn the_median_of_all() {
        assert_eq!(Tensor::from([[1.0, 4.0], [3.0, 2.0]]).median_all().item(), 2.0);
        assert!(Tensor::from([1.0, f64::NAN, 3.0]).median_all().item().is_nan());
        assert!(Tensor::<f64>::zeros([0]).median_all().item().is_nan());
    }

    #[test]
    fn medians_without_nan() {
        let nan = f64::NAN;
        let x = Tensor::from([[nan, 3.0, 1.0], [nan, nan, nan], [2.0, 1.0, 2.0]]);
        let (values, positions) = x.nanmedian_keepdim(-1);
        assert_eq!(values.nan_to_num(9.0, None, None), Tensor::from([[1.0], [9.0], [2.0]]));
        assert_eq!(positions, Tensor::from([[2i64], [0], [0]]));
        assert_eq!(x.nanmedian_all().item(), 2.0);
        assert!(Tensor::from([nan, nan]).nanmedian_all().item().is_nan());
        assert!(Tensor::<f64>::zeros([0]).nanmedian_all().item().is_nan());
        assert!(Tensor::scalar(nan).nanmedian(0).0.item().is_nan());
        assert_eq!(Tensor::from([3i64, 1, 2, 5]).nanmedian(0), (Tensor::scalar(2i64), Tensor::scalar(2i64)));
        assert!(Tensor::<f64>::zeros([2, 0]).try_nanmedian(1).is_err());
        assert_eq!(Tensor::<f64>::zeros([2, 0]).nanmedian(0).0.shape(), &[0]);
    }
}
