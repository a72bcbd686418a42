//! Integrals of sampled functions by the trapezoidal rule, and derivatives by differences.

use wengert_macros::twins;

use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::shape::dims;
use crate::{Binary, Float, Position, Reduction, Scalar as _, Shape, Site, ensure};

/// The trapezoidal rule and differences along a dimension.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let y = Tensor::from([1.0, 2.0, 4.0]);
/// assert_eq!(y.trapezoid(1.0, 0).item(), 4.5);
/// assert_eq!(y.cumulative_trapezoid(1.0, 0).to_vec(), [1.5, 4.5]);
/// assert_eq!(y.trapezoid_over(&Tensor::from([0.0, 1.0, 3.0]), 0).item(), 7.5);
/// assert_eq!(y.gradient(1.0, 0, 1).to_vec(), [1.0, 1.5, 2.0]);
/// ```
#[twins(blanket)]
pub trait Integrals: TensorLike<Elem: Float> {
    /// Returns the integrals along `dim` of functions whose values are `self`, at points whose distance is `dx`. The dimension is removed.
    /// The integral is 0 with fewer than two points. Refuses rank 0. PyTorch: `trapezoid` with `dx`.
    #[doc(alias("trapz"))]
    fn try_trapezoid(&self, dx: f64, dim: impl Position) -> Result<Self> {
        let at = Site::here("trapezoid");
        let shape = self.shape();
        let (dim, rank) = (dim.position(), shape.rank());
        ensure!(rank > 0, at, IndexRange, "Dimension specified as {dim} but tensor has no dimensions");
        let axis = dims::axis(dim, rank, at)?;
        let sum = sum_along(self, axis, at)?;
        if shape[axis] == 0 {
            return Ok(sum);
        }
        // The sum of all values, in which the values at both ends count half, is the sum of the means of neighbouring values.
        let end = |start: usize| self.slice_axis(axis, start, 1, at)?.reshape_to(sum.shape(), at);
        let ends = end(0)?.plus(&end(shape[axis] - 1)?, at)?.times(0.5, at)?;
        sum.minus(&ends, at)?.times(dx, at)
    }

    /// Returns the integrals along `dim` of functions whose values are `self`, at the points `x`. The dimension is removed. `x` is a vector
    /// with one point per value, or an array of another rank. An array of lower rank first gets leading dimensions of size 1. The differences
    /// of its neighbouring points along `dim` then broadcast with the sums of neighbouring values. So two points along `dim` give one
    /// distance for all intervals. A single point gives no distance, and the integral of two values is then 0. Refuses rank 0, and a vector
    /// `x` with another number of points. PyTorch: `trapezoid` with `x`.
    fn try_trapezoid_over(&self, x: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        let x = &x.into_array(self)?;
        let at = Site::here("trapezoid_over");
        let (areas, axis) = areas(self, Spacing::Points(x, "trapezoid"), dim.position(), at)?;
        sum_along(&areas, axis, at)
    }

    /// Returns the running integrals along `dim` of functions whose values are `self`, at points whose distance is `dx`. The result has one
    /// element fewer than there are points, or none if there are no points. Refuses rank 0. PyTorch: `cumulative_trapezoid` with `dx`.
    fn try_cumulative_trapezoid(&self, dx: f64, dim: impl Position) -> Result<Self> {
        let at = Site::here("cumulative_trapezoid");
        let (areas, axis) = areas(self, Spacing::Equal(dx), dim.position(), at)?;
        areas.apply_cumsum(axis, at)
    }

    /// Returns the running integrals along `dim` of functions whose values are `self`, at the points `x`: see
    /// [`trapezoid_over`](Self::trapezoid_over). PyTorch: `cumulative_trapezoid` with `x`.
    fn try_cumulative_trapezoid_over(&self, x: impl ArrayOperand<Self>, dim: impl Position) -> Result<Self> {
        let x = &x.into_array(self)?;
        let at = Site::here("cumulative_trapezoid_over");
        let (areas, axis) = areas(self, Spacing::Points(x, "cumulative_trapezoid"), dim.position(), at)?;
        areas.apply_cumsum(axis, at)
    }

    /// Returns the derivatives along `dim` of functions whose values are `self`, at points whose distance is `spacing`. An inner derivative
    /// is the difference of the two neighbours over their distance, which is exact for polynomials of degree 2. At the two ends,
    /// `edge_order` 1 takes the difference to the only neighbour, and `edge_order` 2 the derivative of the parabola through the three outer
    /// points. The result has the shape of `self`. Refuses an `edge_order` other than 1 and 2, and a size that is not above `edge_order`.
    /// PyTorch: `gradient` with a number as `spacing`, for one dimension.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let squares = Tensor::from([0.0, 1.0, 4.0, 9.0]);
    /// assert_eq!(squares.gradient(1.0, 0, 1).to_vec(), [1.0, 2.0, 4.0, 5.0]);
    /// assert_eq!(squares.gradient(1.0, 0, 2).to_vec(), [0.0, 2.0, 4.0, 6.0]);
    /// ```
    fn try_gradient(&self, spacing: f64, dim: impl Position, edge_order: usize) -> Result<Self> {
        let at = Site::here("gradient");
        let axis = sampled_axis(self, dim.position(), edge_order, at)?;
        let slopes = combine_neighbours(self, axis, Binary::Sub, at)?.divide_by(spacing, at)?;
        let inner = central_differences(self, axis, at)?.divide_by(2.0 * spacing, at)?;
        join_ends(&slopes, inner, None, (axis, edge_order), at)
    }

    /// Returns the derivatives along `dim` of functions whose values are `self`, at the points `x`, a vector. An inner derivative is the
    /// derivative of the parabola through three neighbouring points. The ends are as for [`gradient`](Self::gradient). Equal neighbouring
    /// points give NaN or ±∞. Has the errors of `gradient`, and refuses an `x` that is not a vector with one point per value. PyTorch:
    /// `gradient` with coordinates as `spacing`, for one dimension.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([0.0, 1.0, 3.0]);
    /// assert_eq!(x.square().gradient_over(&x, 0, 2).to_vec(), [0.0, 2.0, 6.0]);
    /// ```
    fn try_gradient_over(&self, x: impl ArrayOperand<Self>, dim: impl Position, edge_order: usize) -> Result<Self> {
        let (x, at) = (x.into_array(self)?, Site::here("gradient_over"));
        let axis = sampled_axis(self, dim.position(), edge_order, at)?;
        let (shape, own) = (self.shape(), x.shape());
        ensure!(
            own.rank() == 1,
            at,
            "torch.gradient expected each element of spacing to have one dimension, but got an element with {} dimensions!",
            own.rank()
        );
        ensure!(own[0] == shape[axis], at, "expected {} points for dimension {axis}, but got {}", shape[axis], own[0]);
        let x = x.reshape_to(Shape::ones(shape.rank()).with_size(axis, own[0]), at)?;
        let widths = combine_neighbours(&x, axis, Binary::Sub, at)?;
        let slopes = combine_neighbours(self, axis, Binary::Sub, at)?.divide_by(&widths, at)?;
        let len = widths.shape()[axis] - 1;
        let part = |x: &Self, start| x.slice_axis(axis, start, len, at);
        let sum = part(&slopes, 0)?
            .times(&part(&widths, 1)?, at)?
            .plus(&part(&slopes, 1)?.times(&part(&widths, 0)?, at)?, at)?;
        let inner = sum.divide_by(&central_differences(&x, axis, at)?, at)?;
        join_ends(&slopes, inner, Some(&widths), (axis, edge_order), at)
    }
}

/// The distances between neighbouring points.
enum Spacing<'a, A> {
    Equal(f64),
    /// The points, and PyTorch's name of the operation.
    Points(&'a A, &'static str),
}

/// Returns the areas under the functions between neighbouring points along `dim`, and the position of that dimension.
fn areas<A: TensorLike<Elem: Float>>(y: &A, spacing: Spacing<A>, dim: isize, at: Site) -> Result<(A, usize), A::Error> {
    let shape = y.shape();
    ensure!(shape.rank() > 0, at, IndexRange, "Dimension specified as {dim} but tensor has no dimensions");
    let axis = dims::axis(dim, shape.rank(), at)?;
    let heights = combine_neighbours(y, axis, Binary::Add, at)?;
    match spacing {
        Spacing::Equal(dx) => Ok((heights.times(0.5 * dx, at)?, axis)),
        Spacing::Points(x, name) => {
            let x = align_points(x, &shape, axis, name, at)?;
            let areas = heights.times(&combine_neighbours(&x, axis, Binary::Sub, at)?, at)?.times(0.5, at)?;
            Ok((areas, axis))
        }
    }
}

/// Returns the points `x` with at least as many dimensions as `shape`. Places the points of a vector along `axis`. Gives other arrays of a
/// lower rank leading dimensions of size 1.
fn align_points<A: TensorLike>(x: &A, shape: &Shape, axis: usize, name: &str, at: Site) -> Result<A> {
    let own = x.shape();
    if own.rank() == 1 {
        ensure!(own[0] == shape[axis], at, "{name}: There must be one `x` value for each sample point");
        return x.reshape_to(Shape::ones(shape.rank()).with_size(axis, own[0]), at);
    }
    let missing = shape.rank().saturating_sub(own.rank());
    x.reshape_to(std::iter::repeat_n(1, missing).chain(own.iter().copied()).collect::<Shape>(), at)
}

/// Returns op(xᵢ, xᵢ₋₁) for the elements xᵢ along `axis`, except the first element.
fn combine_neighbours<A: TensorLike>(x: &A, axis: usize, op: Binary, at: Site) -> Result<A> {
    let size = x.shape()[axis];
    let len = size.saturating_sub(1);
    x.slice_axis(axis, size - len, len, at)?.combine(op, &x.slice_axis(axis, 0, len, at)?, at)
}

/// Returns the position of dimension `dim`, whose size must be above `edge_order`.
fn sampled_axis<A: TensorLike>(y: &A, dim: isize, edge_order: usize, at: Site) -> Result<usize, A::Error> {
    let shape = y.shape();
    ensure!(matches!(edge_order, 1 | 2), at, "torch.gradient only supports edge_order=1 and edge_order=2.");
    ensure!(shape.rank() > 0, at, IndexRange, "Dimension specified as {dim} but tensor has no dimensions");
    let axis = dims::axis(dim, shape.rank(), at)?;
    let is_long = shape[axis] > edge_order;
    ensure!(is_long, at, "torch.gradient expected each dimension size to be at least edge_order+1");
    Ok(axis)
}

/// Returns xᵢ₊₁ - xᵢ₋₁ for the elements xᵢ along `axis`, except the first and the last one.
fn central_differences<A: TensorLike>(x: &A, axis: usize, at: Site) -> Result<A> {
    let len = x.shape()[axis] - 2;
    x.slice_axis(axis, 2, len, at)?.minus(&x.slice_axis(axis, 0, len, at)?, at)
}

/// Joins `inner`, the derivatives at the inner points, with the derivatives at both ends along `axis`. `slopes` has the slope in each
/// interval between neighbouring points. `widths` has the lengths of these intervals, or is `None` if the lengths are equal.
fn join_ends<A: TensorLike>(
    slopes: &A,
    inner: A,
    widths: Option<&A>,
    (axis, edge_order): (usize, usize),
    at: Site,
) -> Result<A> {
    let derivative = |is_last: bool| {
        // Interval 0 touches the end, and interval 1 is its neighbour.
        let interval = |x: &A, k: usize| x.slice_axis(axis, if is_last { x.shape()[axis] - 1 - k } else { k }, 1, at);
        let slope = interval(slopes, 0)?;
        if edge_order == 1 {
            return Ok(slope);
        }
        let fraction = match widths {
            None => slope.try_number(A::Elem::from_f64(0.5))?,
            Some(widths) => {
                let width = interval(widths, 0)?;
                width.divide_by(&width.plus(&interval(widths, 1)?, at)?, at)?
            }
        };
        slope.plus(&slope.minus(&interval(slopes, 1)?, at)?.times(&fraction, at)?, at)
    };
    A::apply_cat(&[derivative(false)?, inner, derivative(true)?], axis, at)
}

fn sum_along<A: TensorLike>(areas: &A, axis: usize, at: Site) -> Result<A> {
    areas.apply_reduce_away(Reduction::Sum, &[axis], at)
}

#[cfg(test)]
mod tests {
    use crate::ops::stack;
    use crate::prelude::*;

    #[test]
    fn along_every_dimension() {
        let y = Tensor::from([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]);
        assert_eq!(y.trapezoid(1.0, -1).to_vec(), [4.5, 1.0]);
        assert_eq!(y.trapezoid(0.5, 0).to_vec(), [0.25, 0.75, 1.0]);
        let x = Tensor::from([0.0, 1.0, 3.0]);
        assert_eq!(y.cumulative_trapezoid_over(&x, 1), Tensor::from([[1.5, 7.5], [0.5, 1.5]]));
        assert_eq!(y.trapezoid_over(Tensor::from([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]]), 1).to_vec(), [7.5, 1.5]);
        // PyTorch's `trapezoid` gives the same results for points that differ from the values in number or in rank, but broadcast with
        // them.
        assert_eq!(y.trapezoid_over(Tensor::from([[0.0, 2.0]]), 1).to_vec(), [9.0, 2.0]);
        assert_eq!(y.trapezoid_over(Tensor::from([[7.0, 7.0, 7.0]]), 0).to_vec(), [0.0; 3]);
        assert_eq!(y.trapezoid_over(Tensor::<f64>::arange(6).reshape([2, 1, 3]), 0).shape(), &[1, 3]);
    }

    /// A parabola has exact derivatives, except at the ends with `edge_order` 1. The error messages are PyTorch's.
    #[test]
    fn derivatives_along_every_dimension() {
        let x = Tensor::from([0.0, 1.0, 3.0, 4.0]);
        let y = stack(&[x.square(), x.clone()], 1);
        let slopes = Tensor::from([[0.0, 1.0], [2.0, 1.0], [6.0, 1.0], [8.0, 1.0]]);
        assert_eq!(y.gradient_over(&x, 0, 2), slopes);
        assert_eq!(y.t().gradient_over(&x, -1, 2), slopes.t());
        assert_eq!(y.gradient_over(&x, 0, 1).select(1, 0).to_vec(), [1.0, 2.0, 6.0, 7.0]);
        let even = Tensor::<f64>::arange(5);
        assert_eq!((even.square() * 0.25).gradient(0.5, 0, 2), even);
        assert_eq!(even.narrow(0, 0, 2).gradient(0.5, 0, 1).to_vec(), [2.0, 2.0]);
        let (high, low) = (f64::INFINITY, f64::NEG_INFINITY);
        assert_eq!(Tensor::from([0.0, high, 0.0]).gradient(1.0, 0, 2).to_vec(), [high, 0.0, low]);
        assert_eq!(Tensor::from([low, 0.0, 0.0]).gradient(1.0, 0, 2).to_vec(), [high, high, low]);
        assert_eq!(Tensor::from([low, 0.0, 0.0]).gradient_over(even.narrow(0, 0, 3), 0, 2).to_vec()[0], high);
        assert_eq!(Tensor::<f64>::zeros([0, 3]).gradient(1.0, 1, 2).shape(), &[0, 3]);
        let sentence = |dim: isize, order| y.try_gradient(1.0, dim, order).unwrap_err().sentence();
        assert_eq!(sentence(0, 3), "torch.gradient only supports edge_order=1 and edge_order=2.");
        assert_eq!(sentence(1, 2), "torch.gradient expected each dimension size to be at least edge_order+1");
        let none = Tensor::scalar(1.0);
        for error in [
            none.try_gradient(1.0, -1, 1).unwrap_err(),
            none.try_trapezoid(1.0, -1).unwrap_err(),
            none.try_cumulative_trapezoid(1.0, -1).unwrap_err(),
            none.try_trapezoid_over(&none, -1).unwrap_err(),
        ] {
            assert_eq!(error.sentence(), "Dimension specified as -1 but tensor has no dimensions");
        }
        assert!(y.try_gradient(1.0, 2, 1).is_err());
        let sentence = |x: &Tensor<f64>, dim: isize| y.try_gradient_over(x, dim, 1).unwrap_err().sentence();
        assert_eq!(
            sentence(&y, 0),
            "torch.gradient expected each element of spacing to have one dimension, but got an element with 2 dimensions!"
        );
        assert_eq!(sentence(&x, 1), "expected 2 points for dimension 1, but got 4");
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
