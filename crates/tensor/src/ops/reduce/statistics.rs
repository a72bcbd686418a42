//! Variance, standard deviation, and sums and means that ignore NaN.
//!
//! The divisor of a variance of n elements is n - correction, or 0 if this difference is negative. The variance has its own derivative
//! rule. Where a standard deviation is 0, its derivative is 0.

use wengert_macros::twins;

use crate::ops::primitive::pair::expand;
use crate::ops::reduce::reductions::{drop_reduced, mean, reduce_dims};
use crate::ops::{Compose, Composite, Result, TensorLike};
use crate::scalar::math::is_nan;
use crate::{Binary, Compare, Dims, Float, Reduction, Site, Unary, View};

/// `var`, `std` and related operations. `dims` is one dimension, several, or all (`..`, or an empty list). The reduced dimensions
/// are removed, unless the method's name ends in `_keepdim`: then the result keeps them with size 1.
#[twins(blanket)]
pub trait Statistics: TensorLike<Elem: Float> {
    /// Returns the variance over `dims`: the sum of the squared distances of n elements from their mean, divided by n - `correction`. The
    /// correction 1 gives the unbiased variance (Bessel), and 0 the variance of a whole population. If the divisor is 0 or less, the result
    /// is NaN, or ∞ if the elements differ. PyTorch: `var`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.var(0, 0).item(), 1.25);
    /// assert_eq!(x.var(0, 1).item(), 5.0 / 3.0);
    /// ```
    #[keepdim]
    fn try_var(&self, dims: impl Into<Dims>, correction: impl Into<f64>) -> Result<Self> {
        variance(self, &dims.into(), correction.into(), keepdim, Site::here("var"))
    }

    /// Returns the standard deviation over `dims`: the root of [`var`](Self::var). The derivative is 0 if the deviation is 0.
    /// PyTorch: `std`.
    #[doc(alias("stddev"))]
    #[keepdim]
    fn try_std(&self, dims: impl Into<Dims>, correction: impl Into<f64>) -> Result<Self> {
        let at = Site::here("std");
        variance(self, &dims.into(), correction.into(), keepdim, at)?.apply_unary(Unary::SqrtFlat, at)
    }

    /// Returns [`var`](Self::var) and the mean. PyTorch: `var_mean`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (variance, mean) = Tensor::from([1.0, 2.0, 6.0]).var_mean(.., 1);
    /// assert_eq!((variance.item(), mean.item()), (7.0, 3.0));
    /// ```
    #[keepdim]
    fn try_var_mean(&self, dims: impl Into<Dims>, correction: impl Into<f64>) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("var_mean");
        let dims = dims.into();
        let variance = variance(self, &dims, correction.into(), keepdim, at)?;
        Ok((variance, mean(self, &dims, keepdim, at)?))
    }

    /// Returns [`std`](Self::std) and the mean. PyTorch: `std_mean`.
    #[keepdim]
    fn try_std_mean(&self, dims: impl Into<Dims>, correction: impl Into<f64>) -> Result<(Self, Self), Self::Error> {
        let at = Site::here("std_mean");
        let dims = dims.into();
        let variance = variance(self, &dims, correction.into(), keepdim, at)?;
        Ok((variance.apply_unary(Unary::SqrtFlat, at)?, mean(self, &dims, keepdim, at)?))
    }

    /// Returns the sum over `dims` of the elements that are not NaN; 0 if there are none. PyTorch: `nansum`.
    #[keepdim]
    fn try_nansum(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("nansum");
        let axes = dims.into().resolve_or_all(self.shape().rank(), at)?;
        if self.is_plain() {
            // If no total is NaN, no element is NaN.
            let total = self.sum_over(&axes, at)?;
            if !total.to_tensor(at)?.iter().any(is_nan) {
                return drop_reduced(total, &axes, keepdim, at);
            }
        }
        drop_reduced(Self::apply_composite([self], &NanSum { axes: &axes }, at)?, &axes, keepdim, at)
    }

    /// Returns the mean over `dims` of the elements that are not NaN; NaN if there are none, and then the gradient is NaN too. PyTorch:
    /// `nanmean`.
    #[keepdim]
    fn try_nanmean(&self, dims: impl Into<Dims>) -> Result<Self> {
        let at = Site::here("nanmean");
        let dims = dims.into();
        let unknown = self.apply_compare(Compare::Ne, self, at)?;
        let known = self.fill_shape(1.0, &self.shape(), at)?.replace_where(&unknown, 0.0, at)?;
        // The gradient is multiplied by `known` and not selected by a mask, so that 0 · 1/0 makes it NaN if all elements are NaN.
        let values = self.replace_where(&unknown, 0.0, at)?;
        let values = values.with_derivative(|| Ok(vec![(self.clone(), Some(known.clone()))]), at)?;
        let total = reduce_dims(&values, Reduction::Sum, &dims, keepdim, at)?;
        total.apply_binary(Binary::Div, &reduce_dims(&known, Reduction::Sum, &dims, keepdim, at)?, at)
    }
}

fn variance<A: TensorLike<Elem: Float>>(x: &A, dims: &Dims, correction: f64, keepdim: bool, at: Site) -> Result<A> {
    let axes = dims.resolve_or_all(x.shape().rank(), at)?;
    drop_reduced(x.apply_variance(&axes, correction, dims.is_all(), at)?, &axes, keepdim, at)
}

/// A composite operation: the sum over `axes`, which the result keeps with size 1, of the elements that are not NaN.
struct NanSum<'a> {
    axes: &'a [usize],
}

impl Composite for NanSum<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        x.replace_where(&x.apply_compare(Compare::Ne, x, at)?, 0.0, at)?.sum_over(self.axes, at)
    }
}

/// A composite operation: the variance over `axes`, which the result keeps with size 1.
pub(crate) struct Variance<'a> {
    pub(crate) axes: &'a [usize],
    pub(crate) correction: f64,
}

impl Composite for Variance<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        let (shape, axes) = (x.shape(), self.axes);
        let count = shape.numel_over(axes) as f64;
        let minus = |x: &A, y: &A| x.apply_binary(Binary::Sub, &expand(y, &shape, at)?, at);
        // The first element is subtracted, so that the mean of equal elements is exactly 0 and their variance is 0.
        let x = if shape.numel() == 0 { x.clone() } else { minus(x, &first_elements(x, axes, at)?)? };
        let distance = minus(&x, &x.sum_over(axes, at)?.divide_by(count, at)?)?;
        let squares = distance.apply_unary(Unary::Square, at)?.sum_over(axes, at)?;
        squares.divide_by((count - self.correction).max(0.0), at)
    }
}

/// Returns the first element along `axes`, which the result keeps with size 1.
fn first_elements<A: TensorLike>(x: &A, axes: &[usize], at: Site) -> Result<A> {
    axes.iter().try_fold(x.clone(), |x, &axis| x.apply_view(View::Slice { axis, start: 0, len: 1, step: 1 }, at))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn over_some_dimensions() {
        let x = Tensor::from([[1.0, 3.0], [5.0, 11.0]]);
        assert_eq!(x.var(1, 1).to_vec(), [2.0, 18.0]);
        assert_eq!(x.std_keepdim([0], 0), Tensor::from([[2.0, 4.0]]));
        let (variance, mean) = x.var_mean(.., 0);
        assert_eq!((variance.item(), mean.item()), (14.0, 5.0));
        assert_eq!(x.std_mean(0, 0).1.to_vec(), [3.0, 7.0]);
    }

    #[test]
    fn equal_elements_do_not_vary() {
        for count in 1..40 {
            let x = Tensor::full([count], 0.1);
            assert_eq!(x.std(0, 0).item(), 0.0, "{count}");
        }
        for (shape, dim) in [([300, 70], 1), ([300, 70], 0), ([2, 40_000], 1)] {
            assert_eq!(Tensor::full(shape, 0.1f32).var(dim, 0).amax(..).item(), 0.0, "{shape:?}");
        }
        assert_eq!(Tensor::full([3, 7], 2.395_648_934_561_237_7).var(.., 1).item(), 0.0);
        assert_eq!(Tensor::from([1e10, 1e10 + 1.0, 1e10 + 2.0]).var(0, 1).item(), 1.0);
    }

    /// Tests variances over several sets of dimensions: some for which the planner uses one pass, and some for which it uses two.
    #[test]
    fn large_variances_equal_the_formula() {
        let x = Tensor::<f64>::from_fn([40, 30, 20], |i| ((i[0] * 31 + i[1] * 17 + i[2] * 7) % 101) as f64 - 50.0);
        for dims in [&[0isize][..], &[1], &[2], &[1, 2], &[0, 2], &[0, 1, 2], &[-1, 1]] {
            for x in [x.clone(), x.permute([2, 0, 1]).contiguous().permute([1, 2, 0])] {
                let distance = &x - x.mean_keepdim(dims);
                let count = x.numel() / x.sum_keepdim(dims).numel();
                let expected = distance.square().sum_keepdim(dims) / (count - 1) as f64;
                // The error bound allows for variances of about 850, and for a few hundred roundings in each sum.
                let error = (x.var_keepdim(dims, 1) - expected).abs().amax(..).item();
                assert!(error < 850.0 * 200.0 * f64::EPSILON, "{dims:?}: {error}");
            }
        }
    }

    #[test]
    fn divisors_of_zero_and_less() {
        let one = Tensor::from([3.0]);
        assert!(one.var(0, 1).item().is_nan());
        assert_eq!(one.var(0, 0).item(), 0.0);
        let two = Tensor::from([3.0, 4.0]);
        assert_eq!(two.var(0, 2).item(), f64::INFINITY);
        assert_eq!(two.var(0, 5).item(), f64::INFINITY);
        assert!(one.var(0, 5).item().is_nan());
        assert!(Tensor::<f64>::zeros([0]).var(0, 1).item().is_nan());
    }

    #[test]
    fn nan_is_left_out() {
        let x = Tensor::from([[1.0, NAN], [NAN, NAN]]);
        assert_eq!(x.nansum(1).to_vec(), [1.0, 0.0]);
        let means = x.nanmean(1).to_vec();
        assert!(means[0] == 1.0 && means[1].is_nan());
        // The sum of ∞ and -∞ is NaN, although no element is NaN.
        let inf = f64::INFINITY;
        let sums = Tensor::from([[inf, -inf, 1.0], [inf, NAN, 1.0], [NAN, 2.0, -0.5]]).nansum(1).to_vec();
        assert!(sums[0].is_nan() && sums[1..] == [inf, 1.5]);
    }

    #[test]
    fn sums_of_known_elements_equal_sums_with_zeros() {
        let x = Tensor::<f32>::from_fn([60, 70, 3], |i| ((i[0] * 31 + i[1] * 17 + i[2] * 7) % 101) as f32);
        let holes = x.remainder(5.0).eq(0.0).logical_and(x.lt(50.0));
        let (broken, zeroed) = (x.masked_fill(&holes, f32::NAN), x.masked_fill(&holes, 0.0));
        for dims in [&[0isize][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
            // All values are small whole numbers, so every order of summation gives the same result.
            assert_eq!(broken.nansum(dims), zeroed.sum(dims), "{dims:?}");
            assert_eq!(broken.transpose(0, 1).nansum(dims), zeroed.transpose(0, 1).sum(dims), "{dims:?}");
            assert_eq!(x.nansum(dims), x.sum(dims), "{dims:?}");
        }
        // No memory could hold the elements of this expansion.
        let wide = Tensor::from([f64::NAN, 2.0]).unsqueeze(1).expand([2, 1usize << 40]);
        assert_eq!(wide.nansum(1).to_vec(), [0.0, 2f64.powi(41)]);
    }
}
