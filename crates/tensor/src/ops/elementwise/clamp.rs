//! Keeping values within bounds, with PyTorch's rules for what the bounds get of the gradient.
//!
//! Against a number the derivative is 1 strictly inside and 0 elsewhere, at the bound too. Against a tensor a tie shares the
//! gradient, since the bound is a variable as well.

use wengert_macros::twins;

use crate::ops::elementwise::activations::strictly_inside;
use crate::ops::pair::{expanded, join_all, number};
use crate::ops::{Argument, Arithmetic, Comparison, Operand, TensorLike, try_where_};
use crate::{Binary, Error, Float, Scalar, Site, Tensor, Unary};

/// `clamp` and its kin.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let x = Tensor::from([-1.5, 0.25, 4.0]);
/// assert_eq!(x.clamp(0.0, 1.0).to_vec(), [0.0, 0.25, 1.0]);
/// assert_eq!(x.clamp_min(0.0).to_vec(), [0.0, 0.25, 4.0]);
/// ```
#[twins]
pub trait Clamp: TensorLike<Elem: Float> {
    /// At least `min`. NaN if either is. Derivative against a number: 0 at the bound and at NaN; against a tensor as
    /// [`maximum`](crate::ops::Arithmetic::maximum). PyTorch: `clamp_min`.
    #[in_place]
    fn try_clamp_min(&self, min: impl Operand<Self>) -> Result<Self, Self::Error> {
        match min.into_argument(self) {
            Argument::Number(min) => above(self, min.to_f64()),
            min => self.try_maximum(min),
        }
    }

    /// At most `max`. NaN if either is. Derivative against a number: 0 at the bound and at NaN; against a tensor as
    /// [`minimum`](crate::ops::Arithmetic::minimum). PyTorch: `clamp_max`.
    #[in_place]
    fn try_clamp_max(&self, max: impl Operand<Self>) -> Result<Self, Self::Error> {
        match max.into_argument(self) {
            Argument::Number(max) => below(self, max.to_f64()),
            max => self.try_minimum(max),
        }
    }

    /// At least `min` and at most `max`; where `min` is above `max`, it is `max`. Both are numbers, or both are tensors.
    /// PyTorch: `clamp`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// assert_eq!(Tensor::from([-1.0, 0.5, 3.0]).clamp(0.0, 1.0).to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    #[in_place]
    fn try_clamp(&self, min: impl Operand<Self>, max: impl Operand<Self>) -> Result<Self, Self::Error> {
        let (min, max) = (min.into_argument(self), max.into_argument(self));
        self.try_clamp_within(Some(min), Some(max))
    }

    /// [`clamp`](Self::clamp) where a bound may be left out, but not both.
    #[in_place]
    fn try_clamp_within(&self, min: Option<Argument<Self>>, max: Option<Argument<Self>>) -> Result<Self, Self::Error> {
        let at = Site::here("clamp_within");
        match (min, max) {
            (Some(Argument::Number(min)), Some(Argument::Number(max))) => {
                strictly_inside(self, min.to_f64(), max.to_f64())
            }
            (Some(min), Some(max)) => between(self, array(self, min), array(self, max), at),
            (Some(min), None) => self.try_clamp_min(min),
            (None, Some(max)) => self.try_clamp_max(max),
            (None, None) => {
                let message = "torch.clamp: At least one of 'min' or 'max' must not be None";
                Err(Error::argument(at, message).into())
            }
        }
    }
}

impl<A: TensorLike<Elem: Float>> Clamp for A {}

/// `x` strictly above `bound`, the bound elsewhere: derivative 0 at the bound and at NaN.
#[track_caller]
fn above<A: TensorLike<Elem: Float>>(x: &A, bound: f64) -> Result<A, A::Error> {
    try_where_(&x.try_gt(bound)?, x, &x.apply_detach(Site::here("detach"))?.try_maximum(bound)?)
}

/// `x` strictly below `bound`, the bound elsewhere.
#[track_caller]
fn below<A: TensorLike<Elem: Float>>(x: &A, bound: f64) -> Result<A, A::Error> {
    try_where_(&x.try_lt(bound)?, x, &x.apply_detach(Site::here("detach"))?.try_minimum(bound)?)
}

#[track_caller]
fn array<A: TensorLike<Elem: Float>>(x: &A, argument: Argument<A>) -> A {
    match argument {
        Argument::Array(y) => y,
        Argument::Number(value) => x.constant(&Tensor::scalar(value)),
    }
}

/// `x` between two tensors. The gradient goes to whatever was chosen; at a tie with one bound half of it to each.
#[track_caller]
fn between<A: TensorLike<Elem: Float>>(x: &A, min: A, max: A, at: Site) -> Result<A, A::Error> {
    let shapes = [x.shape(), min.shape(), max.shape()];
    let shape = join_all(&shapes.each_ref(), at)?;
    let (x, min, max) = (expanded(x, &shape, at)?, expanded(&min, &shape, at)?, expanded(&max, &shape, at)?);
    let half = x.try_mul(0.5)?;
    let (low, high) = (Comparison::try_eq(&x, &min)?, Comparison::try_eq(&x, &max)?);
    let both = low.try_logical_and(&high)?;
    let tied = try_where_(&high, &half.try_add(&max.try_mul(0.5)?)?, &x)?;
    let tied = try_where_(&low, &half.try_add(&min.try_mul(0.5)?)?, &tied)?;
    let inside = try_where_(&both, &x, &tied)?;
    let chosen = try_where_(&x.try_lt(&min)?, &min, &inside)?;
    let chosen = try_where_(&x.try_gt(&max)?, &max, &chosen)?;
    let chosen = try_where_(&min.try_gt(&max)?, &max, &chosen)?;
    // A NaN anywhere makes the value NaN. The gradient goes to x, unless x is beyond the bound that is a number; and to max
    // where min is above it.
    let not_a_number = x.try_isnan()?.try_logical_or(&min.try_isnan()?)?.try_logical_or(&max.try_isnan()?)?;
    let beyond = x.try_lt(&min)?.try_logical_or(&x.try_gt(&max)?)?;
    let open = try_where_(&beyond, &x.apply_detach(at)?, &x)?;
    let crossed = try_where_(&min.try_gt(&max)?, &max, &max.apply_detach(at)?)?;
    let poisoned = open.try_add(&crossed)?.try_add(&min.apply_detach(at)?)?;
    try_where_(&not_a_number, &poisoned, &chosen)
}

/// Replacing what is no number, and functions with bounds of their own.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let x = Tensor::from([0.5, f64::NAN, f64::INFINITY]);
/// assert_eq!(x.nan_to_num(0.0, Some(9.0), None).to_vec(), [0.5, 0.0, 9.0]);
/// ```
#[twins]
pub trait Bounded: TensorLike<Elem: Float> {
    /// NaN, ∞ and -∞ replaced: by `nan`, and by the largest and smallest finite number where `None` is given. Derivative 0
    /// where replaced. PyTorch: `nan_to_num`.
    #[in_place]
    fn try_nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<Self, Self::Error> {
        let at = Site::here("nan_to_num");
        let largest = Self::Elem::MAX.to_f64();
        let filled = |value: f64| number(self, Self::Elem::from_f64(value), &self.shape(), at);
        let not_finite = self.try_mul(0.0)?.try_isnan()?;
        let x = try_where_(&self.try_isnan()?, &filled(nan)?, self)?;
        let above = not_finite.try_logical_and(&self.try_gt(0.0)?)?;
        let x = try_where_(&above, &filled(posinf.unwrap_or(largest))?, &x)?;
        let below = not_finite.try_logical_and(&self.try_lt(0.0)?)?;
        try_where_(&below, &filled(neginf.unwrap_or(-largest))?, &x)
    }

    /// ln(x / (1 - x)); ±∞ at 0 and 1, NaN outside. With `eps` x is first brought into [eps, 1 - eps], and the derivative
    /// is 0 outside. PyTorch: `logit`.
    #[in_place]
    fn try_logit(&self, eps: Option<f64>) -> Result<Self, Self::Error> {
        let at = Site::here("logit");
        match eps {
            None => self.apply_unary(Unary::Logit, at),
            Some(eps) => {
                let eps = number(self, Self::Elem::from_f64(eps), &self.shape(), at)?;
                self.apply_binary(Binary::LogitWithin, &eps, at)
            }
        }
    }

    /// sin(πx) / (πx), and 1 at 0. PyTorch: `sinc`.
    #[in_place]
    fn try_sinc(&self) -> Result<Self, Self::Error> {
        self.apply_unary(Unary::Sinc, Site::here("sinc"))
    }

    /// The part behind the point, with the sign of x: x - trunc x. PyTorch: `frac`.
    #[in_place]
    fn try_frac(&self) -> Result<Self, Self::Error> {
        self.try_sub(&self.try_trunc()?)
    }

    /// Rounded to `decimals` digits behind the point (before it where negative), ties to even. PyTorch: `round` with
    /// `decimals`.
    #[in_place]
    fn try_round_to(&self, decimals: i32) -> Result<Self, Self::Error> {
        let power = 10f64.powi(decimals.abs());
        if decimals >= 0 {
            self.try_mul(power)?.try_round()?.try_div(power)
        } else {
            self.try_div(power)?.try_round()?.try_mul(power)
        }
    }

    /// Degrees as radians. PyTorch: `deg2rad`.
    #[in_place]
    fn try_deg2rad(&self) -> Result<Self, Self::Error> {
        self.try_mul(std::f64::consts::PI / 180.0)
    }

    /// Radians as degrees. PyTorch: `rad2deg`.
    #[in_place]
    fn try_rad2deg(&self) -> Result<Self, Self::Error> {
        self.try_mul(180.0 / std::f64::consts::PI)
    }
}

impl<A: TensorLike<Elem: Float>> Bounded for A {}
