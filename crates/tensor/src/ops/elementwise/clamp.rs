//! Operations that keep values within bounds, functions with a bounded domain or range, rounding, and conversions of angles. The gradients at
//! the bounds are as in PyTorch.
//!
//! If the bounds of `clamp` are numbers, the derivative is 1 strictly within the bounds and 0 elsewhere, also at a bound. If they are
//! arrays, a gradient flows to the bounds too: where x equals one bound, x and this bound each get half of the gradient.

use wengert_macros::twins;

use crate::ops::elementwise::activations::clamp_strictly;
use crate::ops::primitive::pair::broadcast_three;
use crate::ops::{
    Argument, Arithmetic, Comparison, Compose, Composite, Operand, Result, TensorLike, Views, try_where_,
};
use crate::scalar::formula::Formula;
use crate::{Binary, Compare, Error, Float, Scalar, Site, Unary};

/// `clamp` and related operations.
#[twins(blanket)]
pub trait Clamp: TensorLike<Elem: Float> {
    /// Returns x, or `min` where x is smaller. NaN if x or `min` is NaN. If `min` is a number, the derivative is 0 at the bound and at NaN.
    /// If `min` is an array, the derivative is as for [`maximum`](crate::ops::Arithmetic::maximum). PyTorch: `clamp_min`.
    #[in_place]
    fn try_clamp_min(&self, min: impl Operand<Self>) -> Result<Self> {
        match min.into_argument(self)? {
            Argument::Number(min) => {
                let min = min.to_f64();
                if self.is_plain() {
                    return self.try_maximum(min);
                }
                try_where_(&self.try_gt(min)?, self, &self.try_detach()?.try_maximum(min)?)
            }
            min => self.try_maximum(min),
        }
    }

    /// Returns x, or `max` where x is larger. NaN if x or `max` is NaN. If `max` is a number, the derivative is 0 at the bound and at NaN. If
    /// `max` is an array, the derivative is as for [`minimum`](crate::ops::Arithmetic::minimum). PyTorch: `clamp_max`.
    #[in_place]
    fn try_clamp_max(&self, max: impl Operand<Self>) -> Result<Self> {
        match max.into_argument(self)? {
            Argument::Number(max) => {
                let max = max.to_f64();
                if self.is_plain() {
                    return self.try_minimum(max);
                }
                try_where_(&self.try_lt(max)?, self, &self.try_detach()?.try_minimum(max)?)
            }
            max => self.try_minimum(max),
        }
    }

    /// Returns x, raised to at least `min` and then lowered to at most `max`. If `min` is above `max`, the result is `max`. NaN if x or a
    /// bound is NaN. If one bound is an array, a number as the other bound counts as an array of rank 0. PyTorch: `clamp`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([-1.0, 0.5, 3.0]).clamp(0.0, 1.0).to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    #[in_place]
    #[doc(alias("clip"))]
    fn try_clamp(&self, min: impl Operand<Self>, max: impl Operand<Self>) -> Result<Self> {
        let (min, max) = (min.into_argument(self)?, max.into_argument(self)?);
        self.try_clamp_within(Some(min), Some(max))
    }

    /// Applies [`clamp`](Self::clamp) with optional bounds. At least one bound must be given.
    #[in_place]
    fn try_clamp_within(&self, min: Option<Argument<Self>>, max: Option<Argument<Self>>) -> Result<Self> {
        let at = Site::here("clamp_within");
        match (min, max) {
            (Some(Argument::Number(min)), Some(Argument::Number(max))) => {
                clamp_strictly(self, min.to_f64(), max.to_f64())
            }
            (Some(min), Some(max)) => clamp_between(self, array(self, min)?, array(self, max)?, at),
            (Some(min), None) => self.try_clamp_min(min),
            (None, Some(max)) => self.try_clamp_max(max),
            (None, None) => Err(Error::argument(at, NO_BOUND).into()),
        }
    }
}

const NO_BOUND: &str = "torch.clamp: At least one of 'min' or 'max' must not be None";

fn array<A: TensorLike<Elem: Float>>(x: &A, argument: Argument<A>) -> Result<A> {
    match argument {
        Argument::Array(y) => Ok(y),
        Argument::Number(value) => x.try_number(value),
    }
}

/// Clamps `x` between two arrays. The gradient flows to the operand that was selected. If `x` equals one bound, `x` and this bound get half
/// of the gradient each. If `x` equals both bounds, `x` gets the whole gradient.
#[track_caller]
fn clamp_between<A: TensorLike<Elem: Float>>(x: &A, min: A, max: A, at: Site) -> Result<A> {
    let (x, min, max) = broadcast_three(x, &min, &max, at)?;
    if x.is_plain() {
        return x.apply_binary(Binary::Maximum, &min, at)?.apply_binary(Binary::Minimum, &max, at);
    }
    let (low, high) = (Comparison::try_eq(&x, &min)?, Comparison::try_eq(&x, &max)?);
    let both = low.try_logical_and(&high)?;
    // At equal operands, `minimum` and `maximum` give half of the gradient to each.
    let tied = try_where_(&high, &x.apply_binary(Binary::Minimum, &max, at)?, &x)?;
    let tied = try_where_(&low, &x.apply_binary(Binary::Maximum, &min, at)?, &tied)?;
    let inside = try_where_(&both, &x, &tied)?;
    let chosen = try_where_(&x.try_lt(&min)?, &min, &inside)?;
    let chosen = try_where_(&x.try_gt(&max)?, &max, &chosen)?;
    let chosen = try_where_(&min.try_gt(&max)?, &max, &chosen)?;
    // Where an operand is NaN, the result is NaN and the gradient flows to x. There are two exceptions, as in PyTorch. If x is beyond a
    // bound that is not NaN, x gets no gradient. If `min` is above `max`, `max` gets the gradient too.
    let is_nan = x.try_isnan()?.try_logical_or(&min.try_isnan()?)?.try_logical_or(&max.try_isnan()?)?;
    let beyond = x.try_lt(&min)?.try_logical_or(&x.try_gt(&max)?)?;
    let source = try_where_(&beyond, &x.apply_detach(at)?, &x)?;
    let crossed = try_where_(&min.try_gt(&max)?, &max, &max.apply_detach(at)?)?;
    let nan = source.try_add(&crossed)?.try_add(&min.apply_detach(at)?)?;
    try_where_(&is_nan, &nan, &chosen)
}

/// A composite operation: the difference between a number and its whole part.
struct Frac;

impl Composite for Frac {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        x.minus(&x.apply_unary(Unary::Trunc, at)?, at)
    }
}

/// A composite operation: the replacement of NaN, ∞ and -∞.
struct NanToNum {
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
}

impl Composite for NanToNum {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        let largest = A::Elem::MAX.to_f64();
        let replace_equal = |result: &A, infinity: f64, value: f64| {
            result.replace_where(&x.compare(Compare::Eq, infinity, at)?, value, at)
        };
        let is_nan = x.compare(Compare::Ne, x, at)?;
        if x.is_plain() && self.posinf.is_none() && self.neginf.is_none() {
            // The minimum and the maximum change only infinities. They take fewer passes than the comparisons below, but have other
            // derivatives.
            let finite = x.combine(Binary::Minimum, largest, at)?.combine(Binary::Maximum, -largest, at)?;
            return finite.replace_where(&is_nan, self.nan, at);
        }
        let result = x.replace_where(&is_nan, self.nan, at)?;
        let result = replace_equal(&result, f64::INFINITY, self.posinf.unwrap_or(largest))?;
        replace_equal(&result, f64::NEG_INFINITY, self.neginf.unwrap_or(-largest))
    }

    fn formula(&self) -> Option<Formula> {
        Some(Formula::NanToNum { nan: self.nan, posinf: self.posinf, neginf: self.neginf })
    }
}

/// Replacement of NaN and infinities, functions with a bounded domain or range, rounding, and conversions of angles.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([0.5, f64::NAN, f64::INFINITY]);
/// assert_eq!(x.nan_to_num(0.0, Some(9.0), None).to_vec(), [0.5, 0.0, 9.0]);
/// ```
#[twins(blanket)]
pub trait Bounded: TensorLike<Elem: Float> {
    /// Replaces NaN by `nan`, ∞ by `posinf` and -∞ by `neginf`. If `posinf` or `neginf` is `None`, the replacement is the largest or the
    /// lowest finite number. The derivative is 0 at replaced elements. PyTorch: `nan_to_num`.
    #[in_place]
    fn try_nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<Self> {
        let at = Site::here("nan_to_num");
        Self::apply_elementwise_composite([self], &NanToNum { nan, posinf, neginf }, at)
    }

    /// Returns ln(x / (1 - x)): -∞ at 0, ∞ at 1, and NaN outside [0, 1]. With `eps`, x is first clamped to [eps, 1 - eps], and the
    /// derivative outside this interval is 0. PyTorch: `logit`.
    #[in_place]
    fn try_logit(&self, eps: Option<f64>) -> Result<Self> {
        let at = Site::here("logit");
        match eps {
            None => self.apply_unary(Unary::Logit, at),
            Some(eps) => self.apply_binary(Binary::LogitWithin, &self.fill_shape(eps, &self.shape(), at)?, at),
        }
    }

    /// Returns sin(πx) / (πx), and 1 at 0. PyTorch: `sinc`.
    #[in_place]
    fn try_sinc(&self) -> Result<Self> {
        self.apply_unary(Unary::Sinc, Site::here("sinc"))
    }

    /// Returns the fractional part x - trunc x, with the sign of x. PyTorch: `frac`.
    #[doc(alias("fract"))]
    #[in_place]
    fn try_frac(&self) -> Result<Self> {
        Self::apply_elementwise_composite([self], &Frac, Site::here("frac"))
    }

    /// Rounds to `decimals` digits after the decimal point. A negative `decimals` rounds to a multiple of a power of ten: -2 to hundreds.
    /// Halves round to even. PyTorch: `round` with `decimals`.
    #[in_place]
    fn try_round_to(&self, decimals: i32) -> Result<Self> {
        let at = Site::here("round_to");
        let power = libm::pow(10.0, f64::from(decimals.unsigned_abs()));
        if decimals >= 0 {
            self.times(power, at)?.apply_unary(Unary::Round, at)?.divide_by(power, at)
        } else {
            self.divide_by(power, at)?.apply_unary(Unary::Round, at)?.times(power, at)
        }
    }

    /// Converts degrees to radians. PyTorch: `deg2rad`.
    #[doc(alias("radians"))]
    #[in_place]
    fn try_deg2rad(&self) -> Result<Self> {
        self.try_mul(std::f64::consts::PI / 180.0)
    }

    /// Converts radians to degrees. PyTorch: `rad2deg`.
    #[doc(alias("degrees"))]
    #[in_place]
    fn try_rad2deg(&self) -> Result<Self> {
        self.try_mul(180.0 / std::f64::consts::PI)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::elementwise::clamp::NanToNum;
    use crate::ops::primitive::testing::check_formula;
    use crate::prelude::*;

    #[test]
    fn formulas_have_the_bits_of_separate_operations() {
        check_formula(&NanToNum { nan: 0.25, posinf: None, neginf: None });
        check_formula(&NanToNum { nan: f64::NAN, posinf: Some(9.0), neginf: Some(7.0) });
    }

    #[test]
    fn tensors_as_bounds() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (x, min, max, expected) in [
            (0.5, 0.0, 1.0, 0.5),
            (-0.5, 0.0, 1.0, 0.0),
            (1.5, 0.0, 1.0, 1.0),
            (0.0, 0.0, 1.0, 0.0),
            (0.5, 2.0, 1.0, 1.0),
            (3.0, 2.0, 1.0, 1.0),
            (5e-324, 5e-324, 1.0, 5e-324),
            (inf, -inf, inf, inf),
        ] {
            let clamped = Tensor::from([x, nan, x, x])
                .clamp(Tensor::from([min, min, nan, min]), Tensor::from([max, max, max, nan]));
            assert_eq!(clamped.get(&[0]), Some(expected), "{x} {min} {max}");
            assert!(clamped.slice(0, 1..).isnan().all(..).item(), "{x} {min} {max}");
        }
    }

    #[test]
    fn rounding_to_the_most_extreme_numbers_of_digits() {
        // PyTorch gives NaN too: the power of ten is infinite.
        assert!(Tensor::from([1.5]).round_to(i32::MIN).item().is_nan());
        assert!(Tensor::from([1.5]).round_to(i32::MAX).item().is_nan());
    }
}
