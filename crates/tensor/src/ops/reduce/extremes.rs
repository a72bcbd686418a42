//! The largest and smallest elements, and their positions.
//!
//! Ties follow PyTorch. For operations that return positions, the whole gradient flows to the chosen element. For `aminmax` and extremes of
//! all elements, equal elements share the gradient evenly.

use wengert_macros::twins;

use crate::kernel::scan::lanes;
use crate::ops::reduce::lane_array::LaneArray;
use crate::ops::reduce::reductions::{drop_reduced, extreme_positions, extreme_values};
use crate::ops::{Result, TensorLike};
use crate::{Dims, Error, Position, Reduction, Shape, Site, Tensor, View, ensure};

/// The largest and smallest elements, most with their positions. [`Reductions::amax`](crate::ops::Reductions::amax) returns only the values,
/// and shares the gradient between equal elements.
#[twins(blanket)]
pub trait Extremes: TensorLike {
    /// Returns the largest element along `dim` and its position: the first of several equal elements, or the first NaN. The gradient flows
    /// to that element. Refuses an empty dimension. PyTorch: `max` with a dimension.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 5.0, 5.0], [2.0, 0.0, 1.0]]);
    /// let (values, positions) = x.max(1);
    /// assert_eq!((values.to_vec(), positions.to_vec()), (vec![5.0, 2.0], vec![1, 0]));
    /// ```
    #[keepdim]
    fn try_max(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        extreme(self, true, dim.position(), keepdim, Site::here("max"))
    }

    /// Returns the smallest element along `dim` and its position: the first of several equal elements, or the first NaN. The gradient flows
    /// to that element. Refuses an empty dimension. PyTorch: `min` with a dimension.
    #[keepdim]
    fn try_min(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        extreme(self, false, dim.position(), keepdim, Site::here("min"))
    }

    /// Returns the largest of all elements, or NaN if any element is NaN. Equal elements share the gradient evenly, and NaNs count as equal
    /// to each other. Refuses an empty tensor. PyTorch: `max` without a dimension.
    #[doc(alias("max"))]
    fn try_max_all(&self) -> Result<Self> {
        let at = Site { operation: "max", ..Site::here("max_all") };
        extreme_values(self, Reduction::Max, &Dims::from(..), false, at)
    }

    /// Returns the smallest of all elements, or NaN if any element is NaN. Equal elements share the gradient evenly, and NaNs count as equal
    /// to each other. Refuses an empty tensor. PyTorch: `min` without a dimension.
    #[doc(alias("min"))]
    fn try_min_all(&self) -> Result<Self> {
        let at = Site { operation: "min", ..Site::here("min_all") };
        extreme_values(self, Reduction::Min, &Dims::from(..), false, at)
    }

    /// Returns the smallest and the largest element over `dims`; both are NaN if any element is NaN. Equal elements share the
    /// gradient of either result evenly. Refuses empty dimensions. PyTorch: `aminmax`.
    #[keepdim]
    fn try_aminmax(&self, dims: impl Into<Dims>) -> Result<(Self, Self), Self::Error> {
        let (at, dims) = (Site::here("aminmax"), dims.into());
        let smallest = extreme_values(self, Reduction::Amin, &dims, keepdim, at)?;
        Ok((smallest, extreme_values(self, Reduction::Amax, &dims, keepdim, at)?))
    }

    /// Returns the row-major position of the largest of all elements: the first of several equal elements, or the first NaN. Refuses an
    /// empty tensor. PyTorch: `argmax` without a dimension.
    fn try_argmax_all(&self) -> Result<Tensor<i64>, Self::Error> {
        arg_extreme_of_all(self, true, Site { operation: "argmax", ..Site::here("argmax_all") })
    }

    /// Returns the row-major position of the smallest of all elements: the first of several equal elements, or the first NaN. Refuses an
    /// empty tensor. PyTorch: `argmin` without a dimension.
    fn try_argmin_all(&self) -> Result<Tensor<i64>, Self::Error> {
        arg_extreme_of_all(self, false, Site { operation: "argmin", ..Site::here("argmin_all") })
    }

    /// Returns the running maximum along `dim`, and the position of each maximum: of the last element so far that equals it, or of the last
    /// NaN so far. The gradient flows to the element at this position. PyTorch: `cummax`.
    fn try_cummax(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        running_extreme(self, true, dim.position(), Site::here("cummax"))
    }

    /// Returns the running minimum along `dim`, and the position of each minimum: of the last element so far that equals it, or of the last
    /// NaN so far. The gradient flows to the element at this position. PyTorch: `cummin`.
    fn try_cummin(&self, dim: impl Position) -> Result<(Self, Tensor<i64>), Self::Error> {
        running_extreme(self, false, dim.position(), Site::here("cummin"))
    }
}

fn extreme<A: TensorLike>(
    x: &A,
    largest: bool,
    dim: isize,
    keepdim: bool,
    at: Site,
) -> Result<(A, Tensor<i64>), A::Error> {
    let array = LaneArray::nonempty(x, dim, at)?;
    let positions = extreme_positions(&array.values().to_tensor(at)?, largest, array.axis, at)?;
    array.take_reduced(positions, keepdim, at)
}

fn running_extreme<A: TensorLike>(x: &A, largest: bool, dim: isize, at: Site) -> Result<(A, Tensor<i64>), A::Error> {
    if x.shape().rank() == 0 && !matches!(dim, -1 | 0) {
        let message = format!("{}(): Expected reduction dim -1 or 0 for scalar but got {dim}", at.operation);
        return Err(Error::argument(at, message).into());
    }
    let array = LaneArray::new(x, dim, at)?;
    let values = array.values().to_tensor(at)?;
    let positions =
        Tensor::build(&array.shape, at, |out| lanes::running_extremes(largest, values.source(), array.axis, out))?;
    array.take_all(positions, at)
}

fn arg_extreme_of_all<A: TensorLike>(x: &A, largest: bool, at: Site) -> Result<Tensor<i64>, A::Error> {
    let (count, name) = (x.shape().numel(), at.operation);
    ensure!(count > 0, at, EmptyReduction, "{name}(): Expected reduction dim to be specified for input.numel() == 0.");
    let flat = x.to_tensor(at)?.apply_view(View::Reshape(Shape::from([count])), at)?;
    Ok(drop_reduced(extreme_positions(&flat, largest, 0, at)?, &[0], false, at)?)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn a_scalar_has_two_dimensions() {
        let x = Tensor::scalar(1.0);
        assert_eq!((x.cummax(-1), x.cummin(0)), ((x.clone(), Tensor::scalar(0)), (x.clone(), Tensor::scalar(0))));
        let sentence = x.try_cummax(1).unwrap_err().sentence();
        assert_eq!(sentence, "cummax(): Expected reduction dim -1 or 0 for scalar but got 1");
        let sentence = x.try_cummin(-2).unwrap_err().sentence();
        assert_eq!(sentence, "cummin(): Expected reduction dim -1 or 0 for scalar but got -2");
    }

    #[test]
    fn the_first_tie_and_the_first_nan() {
        let x = Tensor::from([[1.0, 3.0, 3.0], [NAN, 9.0, NAN]]);
        let (values, positions) = x.max_keepdim(-1);
        assert_eq!(values.shape(), &[2, 1]);
        assert_eq!((values.to_vec()[0], positions.to_vec()), (3.0, vec![1, 0]));
        assert_eq!(x.t().min(0).1.to_vec(), [0, 0]);
        assert_eq!(Tensor::scalar(2.0).max(0), (Tensor::scalar(2.0), Tensor::scalar(0)));
    }

    #[test]
    fn of_nothing() {
        let empty = Tensor::<f64>::zeros([2, 0]);
        assert_eq!(empty.try_max(1).unwrap_err().sentence(), "max(): Expected reduction dim 1 to have non-zero size.");
        assert_eq!(empty.max(0).0.shape(), &[0]);
        assert!(
            empty.try_min_all().unwrap_err().sentence().starts_with("min(): Expected reduction dim to be specified")
        );
        assert!(empty.try_argmax_all().is_err());
        assert_eq!(empty.cummax(1).1.shape(), &[2, 0]);
    }

    #[test]
    fn over_everything() {
        let x = Tensor::from([[4.0, -1.0], [4.0, 2.0]]);
        assert_eq!((x.max_all().item(), x.min_all().item()), (4.0, -1.0));
        assert_eq!((x.t().argmax_all().item(), x.t().argmin_all().item()), (0, 2));
        let (smallest, largest) = x.aminmax(0);
        assert_eq!((smallest.to_vec(), largest.to_vec()), (vec![4.0, -1.0], vec![4.0, 2.0]));
        assert!(Tensor::from([1.0, NAN]).max_all().item().is_nan());
    }

    /// Compares groups of lanes with the same lanes one at a time.
    #[test]
    fn running_extremes_of_many_lanes() {
        let x =
            Tensor::from_fn(
                [21, 13],
                |i| if i[0] * i[1] % 29 == 28 { NAN } else { (i[0] * 7 + i[1] * 5) as f64 % 9.0 },
            );
        let (largest, smallest) = (x.cummax(1), x.cummin(1));
        for row in 0..21 {
            for (whole, one) in [(&largest, x.select(0, row).cummax(0)), (&smallest, x.select(0, row).cummin(0))] {
                assert_eq!(whole.1.select(0, row), one.1);
                assert!(whole.0.select(0, row).iter().zip(one.0.iter()).all(|(x, y)| x.to_bits() == y.to_bits()));
            }
        }
    }

    #[test]
    fn running_extremes_along_an_outer_dimension() {
        let x = Tensor::from([[1i64, 5], [1, 4], [0, 5]]);
        let (values, positions) = x.cummax(0);
        assert_eq!((values.to_vec(), positions.to_vec()), (vec![1, 5, 1, 5, 1, 5], vec![0, 0, 1, 0, 1, 2]));
        assert_eq!(x.cummin(0).0.to_vec(), [1, 5, 1, 4, 0, 4]);
    }
}
