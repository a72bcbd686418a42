//! Integrals of sampled functions by the trapezoidal rule.

use wengert_macros::twins;

use crate::ops::primitive::compose::Compose;
use crate::ops::{ArrayOperand, Result, TensorLike};
use crate::shape::dims;
use crate::{Binary, Error, Float, Position, Reduction, Shape, Site, ensure};

/// The trapezoidal rule along a dimension.
///
/// ```
/// # use wengert_tensor as wengert;
/// use wengert::prelude::*;
///
/// let y = Tensor::from([1.0, 2.0, 4.0]);
/// assert_eq!(y.trapezoid(1.0, 0).item(), 4.5);
/// assert_eq!(y.cumulative_trapezoid(1.0, 0).to_vec(), [1.5, 4.5]);
/// assert_eq!(y.trapezoid_over(&Tensor::from([0.0, 1.0, 3.0]), 0).item(), 7.5);
/// ```
#[twins]
pub trait Integrals: TensorLike<Elem: Float> {
    /// Returns the integrals along `dim` of functions whose values are `self`, at points whose distance is `dx`. The dimension is removed.
    /// The integral is 0 with fewer than two points. PyTorch: `trapezoid` with `dx`.
    ///
    /// # Errors
    ///
    /// If there is no dimension `dim`, or memory cannot hold the result.
    fn try_trapezoid(&self, dx: f64, dim: impl Position) -> Result<Self> {
        let at = Site::here("trapezoid");
        let shape = self.shape();
        let (dim, rank) = (dim.position(), shape.rank());
        if rank == 0 {
            return Err(Error::DimRange { dim, rank, at }.into());
        }
        let axis = dims::axis(dim, rank, at)?;
        let sum = total(self, axis, at)?;
        if shape[axis] == 0 {
            return Ok(sum);
        }
        // The sum of the areas, with each inner value counted once instead of twice.
        let end = |start: usize| self.slice_axis(axis, start, 1, at)?.reshape_to(sum.shape(), at);
        let ends = end(0)?.plus(&end(shape[axis] - 1)?, at)?.times(0.5, at)?;
        sum.minus(&ends, at)?.times(dx, at)
    }

    /// Returns the integrals along `dim` of functions whose values are `self`, at the points `x`. The dimension is removed. `x` is usually a
    /// vector with one point per value. An `x` of lower rank that is no vector first gets leading dimensions of size 1. The differences of
    /// neighbouring points along `dim` then broadcast with the sums of neighbouring values. So two points stand for equal distances, and a
    /// single point has no difference: two values then have the integral 0. PyTorch: `trapezoid` with `x`.
    ///
    /// # Errors
    ///
    /// If there is no dimension `dim`, a vector `x` has another number of points than there are values, the differences and the sums do not
    /// broadcast, or memory cannot hold the result.
    fn try_trapezoid_over(&self, x: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        let x = &x.into_array(self);
        let at = Site::here("trapezoid_over");
        let (areas, axis) = areas(self, Step::Points(x, "trapezoid"), dim.position(), at)?;
        total(&areas, axis, at)
    }

    /// Returns the running integrals along `dim` of functions whose values are `self`, at points whose distance is `dx`. The result has one
    /// element fewer than there are points, or none if there are no points. PyTorch: `cumulative_trapezoid` with `dx`.
    ///
    /// # Errors
    ///
    /// If there is no dimension `dim`, or memory cannot hold the result.
    fn try_cumulative_trapezoid(&self, dx: f64, dim: impl Position) -> Result<Self> {
        let at = Site::here("cumulative_trapezoid");
        let (areas, axis) = areas(self, Step::Equal(dx), dim.position(), at)?;
        areas.apply_cumsum(axis, at)
    }

    /// Returns the running integrals along `dim` of functions whose values are `self`, at the points `x`: see
    /// [`trapezoid_over`](Self::trapezoid_over). PyTorch: `cumulative_trapezoid` with `x`.
    ///
    /// # Errors
    ///
    /// As for [`trapezoid_over`](Self::trapezoid_over).
    fn try_cumulative_trapezoid_over(&self, x: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        let x = &x.into_array(self);
        let at = Site::here("cumulative_trapezoid_over");
        let (areas, axis) = areas(self, Step::Points(x, "cumulative_trapezoid"), dim.position(), at)?;
        areas.apply_cumsum(axis, at)
    }
}

impl<A: TensorLike<Elem: Float>> Integrals for A {}

/// The distances between neighbouring points.
enum Step<'a, A> {
    Equal(f64),
    /// The points, and PyTorch's name of the operation.
    Points(&'a A, &'static str),
}

/// Returns the areas under the functions between neighbouring points along `dim`, and the position of that dimension.
fn areas<A: TensorLike<Elem: Float>>(y: &A, step: Step<A>, dim: isize, at: Site) -> Result<(A, usize), A::Error> {
    let shape = y.shape();
    if shape.rank() == 0 {
        return Err(Error::DimRange { dim, rank: 0, at }.into());
    }
    let axis = dims::axis(dim, shape.rank(), at)?;
    let heights = neighbours(y, axis, Binary::Add, at)?;
    match step {
        Step::Equal(dx) => Ok((heights.times(0.5 * dx, at)?, axis)),
        Step::Points(x, name) => {
            let x = points(x, &shape, axis, name, at)?;
            let areas = heights.times(&neighbours(&x, axis, Binary::Sub, at)?, at)?.times(0.5, at)?;
            Ok((areas, axis))
        }
    }
}

/// Returns the points `x` with at least as many dimensions as `shape`. Places the points of a vector along `axis`. Gives other arrays of a
/// lower rank leading dimensions of size 1.
fn points<A: TensorLike>(x: &A, shape: &Shape, axis: usize, name: &str, at: Site) -> Result<A> {
    let own = x.shape();
    if own.rank() == 1 {
        ensure!(own[0] == shape[axis], at, "{name}: There must be one `x` value for each sample point");
        return x.reshape_to(Shape::ones(shape.rank()).with_size(axis, own[0]), at);
    }
    let missing = shape.rank().saturating_sub(own.rank());
    x.reshape_to(std::iter::repeat_n(1, missing).chain(own.iter().copied()).collect::<Shape>(), at)
}

/// Returns op(xᵢ, xᵢ₋₁) for the elements xᵢ along `axis`, except the first element.
fn neighbours<A: TensorLike>(x: &A, axis: usize, op: Binary, at: Site) -> Result<A> {
    let size = x.shape()[axis];
    let len = size.saturating_sub(1);
    x.slice_axis(axis, size - len, len, at)?.combine(op, &x.slice_axis(axis, 0, len, at)?, at)
}

fn total<A: TensorLike>(areas: &A, axis: usize, at: Site) -> Result<A> {
    areas.apply_reduce_away(Reduction::Sum, &[axis], at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn along_every_dimension() {
        let y = Tensor::from([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]);
        assert_eq!(y.trapezoid(1.0, -1).to_vec(), [4.5, 1.0]);
        assert_eq!(y.trapezoid(0.5, 0).to_vec(), [0.25, 0.75, 1.0]);
        let x = Tensor::from([0.0, 1.0, 3.0]);
        assert_eq!(y.cumulative_trapezoid_over(&x, 1), Tensor::from([[1.5, 7.5], [0.5, 1.5]]));
        assert_eq!(y.trapezoid_over(Tensor::from([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]]), 1).to_vec(), [7.5, 1.5]);
        // PyTorch's `trapezoid` gives the same results for other numbers of points, and for points of higher rank.
        assert_eq!(y.trapezoid_over(Tensor::from([[0.0, 2.0]]), 1).to_vec(), [9.0, 2.0]);
        assert_eq!(y.trapezoid_over(Tensor::from([[7.0, 7.0, 7.0]]), 0).to_vec(), [0.0; 3]);
        assert_eq!(y.trapezoid_over(Tensor::<f64>::arange(6).reshape([2, 1, 3]), 0).shape(), &[1, 3]);
    }

    #[test]
    fn few_points_and_mistakes() {
        for n in 0..2 {
            assert_eq!(Tensor::<f64>::ones([2, n]).trapezoid(1.0, 1).to_vec(), [0.0, 0.0]);
            assert_eq!(Tensor::<f64>::ones([2, n]).cumulative_trapezoid(1.0, 1).shape(), &[2, 0]);
        }
        let y = Tensor::<f64>::ones([2, 3]);
        let error = y.try_trapezoid_over(Tensor::ones([2]), 1).unwrap_err();
        assert_eq!(error.sentence(), "trapezoid: There must be one `x` value for each sample point");
        assert!(Tensor::scalar(1.0).try_trapezoid(1.0, 0).is_err());
        assert!(y.try_trapezoid(1.0, 2).is_err());
    }
}
