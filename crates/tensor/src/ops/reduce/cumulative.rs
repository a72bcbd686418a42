//! Running sums and products along a dimension, and differences.
//!
//! A running sum is a primitive: its adjoint is the running sum from the other end. For variables, running products and logarithms of running
//! sums of exponentials are scans in log n steps (W. D. Hillis and G. L. Steele, "Data parallel algorithms", 1986). Every step is recorded,
//! so derivatives of every order are exact, even if factors of a product are zero. For plain tensors, one pass over each lane computes them,
//! without a scan. Running extremes are in [`Extremes`](crate::ops::Extremes).

use wengert_macros::twins;

use crate::kernel::scan::lanes;
use crate::ops::primitive::pair::expand;
use crate::ops::reduce::lane_array::LaneArray;
use crate::ops::{Compose, Result, TensorLike};
use crate::shape::dims;
use crate::{Axes, Binary, Compare, DType, Error, Float, Number, Position, Scalar, Site, Tensor, Unary, View, ensure};

/// Running sums and products, and differences.
#[twins(blanket)]
pub trait Cumulative: TensorLike<Elem: Number> {
    /// Returns the running sums along `dim`: each element plus all elements before it. `f32` is summed in `f64`; `i64` wraps. Refuses `u8`,
    /// whose sums would soon overflow. PyTorch: `cumsum`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).cumsum(0).to_vec(), [1.0, 3.0, 6.0]);
    /// ```
    #[doc(alias("cumulative_sum"))]
    #[in_place]
    fn try_cumsum(&self, dim: impl Position) -> Result<Self> {
        let at = Site::here("cumsum");
        if Self::Elem::DTYPE == DType::U8 {
            return Err(Error::ElementType { dtype: DType::U8, at }.into());
        }
        let array = LaneArray::new(self, dim.position(), at)?;
        array.restore_rank(array.values().apply_cumsum(array.axis, at)?, at)
    }

    /// Returns the running products along `dim`: each element times all elements before it. Products of `f32` tensors are computed in `f64`,
    /// products of variables in `f32`. `i64` and `u8` wrap. The derivatives are exact even if factors are zero. If `self` has no zero and there
    /// are several factors, the gradient to an infinite or NaN factor is NaN. PyTorch: `cumprod`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).cumprod(0).to_vec(), [1.0, 2.0, 6.0]);
    /// ```
    #[doc(alias("cumulative_prod"))]
    #[in_place]
    fn try_cumprod(&self, dim: impl Position) -> Result<Self> {
        let at = Site::here("cumprod");
        let dim = dim.position();
        if self.is_plain() {
            let array = LaneArray::new(&self.to_tensor(at)?, dim, at)?;
            let out = |out: &mut [_]| lanes::running_products(array.values().source(), array.axis, out);
            let products = array.restore_rank(Tensor::build(&array.shape, at, out)?, at)?;
            return self.try_constant(&products);
        }
        // The convention of `mark_factors` is for several factors: PyTorch passes the gradient to a single factor without a division.
        let x = if LaneArray::new(self, dim, at)?.len() > 1 { mark_factors(self, at)? } else { self.clone() };
        scan(&x, dim, at, |x, y| x.apply_binary(Binary::Mul, y, at))
    }

    /// Returns, for each element, ln Σ eˣ over this element and all elements x before it along `dim`, without overflow. The gradient of an
    /// element ∞ is NaN, except for rank 0. Results of ∞ add nothing to the gradients of other elements. PyTorch: `logcumsumexp`.
    fn try_logcumsumexp(&self, dim: impl Position) -> Result<Self>
    where
        Self::Elem: Float,
    {
        let at = Site::here("logcumsumexp");
        if self.is_plain() {
            let array = LaneArray::new(&self.to_tensor(at)?, dim.position(), at)?;
            let out = |out: &mut [_]| lanes::running_log_sums(array.values().source(), array.axis, out);
            return Ok(self.constant(&array.restore_rank(Tensor::build(&array.shape, at, out)?, at)?));
        }
        if self.shape().rank() == 0 {
            // The result of a single number is this number, and its gradient is 1 even at ±∞, as in PyTorch.
            dims::axis(dim.position(), 0, at)?;
            return Ok(self.clone());
        }
        log_sums(self, dim.position(), at)
    }

    /// Returns the differences between each element and the element before it along `dim`, and repeats this `n` times. Each repetition
    /// removes one element, until none are left. Refuses rank 0. PyTorch: `diff`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 4.0, 9.0, 16.0]).diff(2, 0).to_vec(), [2.0, 2.0]);
    /// ```
    #[doc(alias("ediff1d"))]
    fn try_diff(&self, n: usize, dim: impl Position) -> Result<Self> {
        let at = Site::here("diff");
        let shape = self.shape();
        ensure!(shape.rank() > 0, at, "diff expects input to be at least one-dimensional");
        let axis = dims::axis(dim.position(), shape.rank(), at)?;
        let mut z = self.clone();
        // The size does not fall below 0: the differences of an empty dimension are empty.
        for round in 1..=n.min(shape[axis]) {
            let len = shape[axis] - round;
            let later = z.apply_view(View::Slice { axis, start: 1, len, step: 1 }, at)?;
            let earlier = z.apply_view(View::Slice { axis, start: 0, len, step: 1 }, at)?;
            z = later.apply_binary(Binary::Sub, &earlier, at)?;
        }
        Ok(z)
    }
}

/// Returns, for each element along `dim`, the combination of this element and all elements before it. `combine` must be associative.
fn scan<A: TensorLike>(x: &A, dim: isize, at: Site, combine: impl Fn(&A, &A) -> Result<A>) -> Result<A> {
    let array = LaneArray::new(x, dim, at)?;
    let (axis, size) = (array.axis, array.len());
    let mut z = array.values().clone();
    let mut reach = 1;
    // At this point, each element combines itself and up to `reach` - 1 elements before it. The first `reach` elements already combine all
    // elements before them.
    while reach < size {
        let part = |start: usize, len: usize| z.apply_view(View::Slice { axis, start, len, step: 1 }, at);
        let combined = combine(&part(0, size - reach)?, &part(reach, size - reach)?)?;
        z = A::apply_cat(&[part(0, reach)?, combined], axis, at)?;
        reach *= 2;
    }
    array.restore_rank(z, at)
}

/// Returns `x`, the factors of a product, with PyTorch's convention for their derivatives. If no element of `x` is zero, PyTorch divides the
/// product by each factor, so the derivative with respect to an infinite or NaN factor is NaN.
fn mark_factors<A: TensorLike>(x: &A, at: Site) -> Result<A> {
    let (values, shape) = (x.apply_detach(at)?, x.shape());
    let axes: Axes = (0..shape.rank()).collect();
    let one = values.fill_shape(1.0, &shape, at)?;
    let zeros = one.choose(&values.compare(Compare::Eq, 0.0, at)?, 0.0, at)?.sum_over(&axes, at)?;
    let is_divided = expand(&zeros, &shape, at)?.compare(Compare::Eq, 0.0, at)?;
    let divisor = values.choose(&is_divided, 1.0, at)?;
    let slope = divisor.apply_binary(Binary::Div, &divisor, at)?;
    values.with_derivative(|| Ok(vec![(x.clone(), Some(slope))]), at)
}

/// Returns the logarithms of the running sums of eˣ along `dim`. The scan reads 0 instead of ∞, because the slope of ln(eˣ + eʸ) at ∞ is
/// NaN and would pass to the other elements.
fn log_sums<A: TensorLike<Elem: Float>>(x: &A, dim: isize, at: Site) -> Result<A> {
    let values = x.apply_detach(at)?;
    let is_infinite = values.compare(Compare::Eq, f64::INFINITY, at)?;
    let slope = x.fill_shape(1.0, &x.shape(), at)?.replace_where(&is_infinite, f64::NAN, at)?;
    // The last step replaces ∞ by 0, so that the slope NaN does not reach other elements in the second derivative.
    let finite = x.times(&slope, at)?.replace_where(&is_infinite, 0.0, at)?;
    let sums = scan(&finite, dim, at, |x, y| log_of_sum(x, y, at))?;
    // From an element ∞ on, the results are ∞ until a NaN occurs. The running sums of the elements ∞ and NaN, with 0 in place of the other
    // elements, find these results.
    let below = values.compare(Compare::Lt, f64::INFINITY, at)?;
    let array = LaneArray::new(&values.replace_where(&below, 0.0, at)?, dim, at)?;
    let reached = array.restore_rank(array.values().apply_cumsum(array.axis, at)?, at)?;
    sums.replace_where(&reached.compare(Compare::Eq, f64::INFINITY, at)?, f64::INFINITY, at)
}

/// Returns ln(eˣ + eʸ). Subtracts max(x, y) before the exponentials, unless the maximum is infinite, because ∞ - ∞ is NaN.
fn log_of_sum<A: TensorLike>(x: &A, y: &A, at: Site) -> Result<A>
where
    A::Elem: Float,
{
    let larger = x.apply_detach(at)?.apply_binary(Binary::Maximum, &y.apply_detach(at)?, at)?;
    let size = larger.apply_unary(Unary::Abs, at)?;
    let shift = larger.replace_where(&size.compare(Compare::Eq, f64::INFINITY, at)?, 0.0, at)?;
    let power = |x: &A| x.apply_binary(Binary::Sub, &shift, at)?.apply_unary(Unary::Exp, at);
    let sum = power(x)?.apply_binary(Binary::Add, &power(y)?, at)?;
    sum.apply_unary(Unary::Log, at)?.apply_binary(Binary::Add, &shift, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn sums_and_products_along_any_dimension() {
        let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_eq!(x.cumsum(0), Tensor::from([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]]));
        assert_eq!(x.t().cumsum(0), x.cumsum(1).t());
        assert_eq!(x.cumprod(-1), Tensor::from([[1.0, 2.0, 6.0], [4.0, 20.0, 120.0]]));
        assert_eq!(Tensor::scalar(3.0).cumsum(-1), Tensor::scalar(3.0));
        assert_eq!(Tensor::<f64>::zeros([2, 0]).cumprod(1).shape(), &[2, 0]);
        assert_eq!(Tensor::from([1i64, 2, 3, 4, 5]).cumprod(0).to_vec(), [1, 2, 6, 24, 120]);
    }

    #[test]
    fn along_every_dimension_of_any_layout() {
        // The last shape is so large that several threads share the work.
        for sizes in [[2usize, 3, 4], [1, 4, 2], [30, 60, 70]] {
            let whole = Tensor::from_fn(sizes, |index| index.iter().fold(1i64, |h, &i| (h * 31 + i as i64) % 17));
            let layouts = [
                whole.clone(),
                whole.permute([2, 0, 1]),
                whole.flip([0, 2]),
                whole.slice(1, (.., 2)),
                whole.narrow(2, 0, 1).expand([-1, -1, 5]),
            ];
            for x in layouts {
                for axis in 0..3 {
                    let sums = x.cumsum(axis as isize);
                    let size = x.shape()[axis];
                    for at in [0, size / 2, size - 1] {
                        let expected = x.narrow(axis as isize, 0, (at + 1) as isize).sum(axis as isize);
                        assert_eq!(sums.select(axis as isize, at as isize), expected, "{sizes:?} {axis} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn single_precision_sums_do_not_drift() {
        let last = Tensor::<f32>::full([100_000], 0.1).cumsum(0).narrow(0, -1, 1).item();
        assert!((f64::from(last) - 1e4).abs() < 1e-2, "{last}");
    }

    /// Compares with the logarithms of the sums up to some elements. Along dimension 1, the lines of elements are longer than one block of
    /// the kernel, and the running maximum changes in several blocks.
    #[test]
    fn logarithms_of_sums_of_long_lanes() {
        let x =
            Tensor::<f64>::from_fn([2, 700, 3], |i| ((i[1] * 31 + i[2] * 17) % 101) as f64 * 9.0 - 900.0 + i[1] as f64);
        for axis in 0..3 {
            let sums = x.logcumsumexp(axis);
            for last in [0, 1, 255, 256, 699].into_iter().filter(|&last| last < x.shape()[axis as usize] as isize) {
                let expected = x.narrow(axis, 0, last + 1).logsumexp(axis);
                let error = (sums.select(axis, last) - expected).abs().amax(..).item();
                assert!(error < 1e-11, "{axis} {last}: {error}");
            }
        }
        assert_eq!(Tensor::<f64>::zeros([2, 0]).logcumsumexp(1).shape(), &[2, 0]);
        assert_eq!(Tensor::scalar(3.0).logcumsumexp(0).item(), 3.0);
        assert!(Tensor::from([1.0, f64::NAN, 2.0]).logcumsumexp(0).iter().skip(1).all(f64::is_nan));
        assert_eq!(Tensor::from([f64::MIN, -1.0]).logcumsumexp(0).to_vec(), [f64::MIN, -1.0]);
        assert_eq!(Tensor::from([f64::INFINITY, -1.0]).logcumsumexp(0).to_vec(), [f64::INFINITY; 2]);
    }

    #[test]
    fn logarithms_of_sums_do_not_overflow() {
        let inf = f64::INFINITY;
        let x = Tensor::from([-inf, 1000.0, 1000.0, -1000.0, inf]);
        let expected = [-inf, 1000.0, 1000.0 + 2f64.ln(), 1000.0 + 2f64.ln(), inf];
        assert_eq!(x.logcumsumexp(0).to_vec(), expected);
    }

    #[test]
    fn differences() {
        let x = Tensor::from([[1.0, 3.0], [6.0, 10.0]]);
        assert_eq!(x.diff(1, 0), Tensor::from([[5.0, 7.0]]));
        assert_eq!(x.diff(1, -1), Tensor::from([[2.0], [4.0]]));
        assert_eq!(x.diff(0, 0), x);
        assert_eq!(x.diff(3, 0).shape(), &[0, 2]);
        assert_eq!(
            Tensor::scalar(1.0).try_diff(1, 0).unwrap_err().sentence(),
            "diff expects input to be at least one-dimensional"
        );
    }
}
