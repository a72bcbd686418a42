//! Operations of two operands, which broadcast against each other.

use wengert_macros::twins;

use crate::ops::pair::pair;
use crate::ops::{Argument, Operand, TensorLike};
use crate::scalar::instruction::Binary;
use crate::shape::error::Site;
use crate::{Element, Float, Number, Scalar};

/// Elementwise arithmetic of two operands.
///
/// The other operand may be a tensor of any shape that broadcasts, or a number. The result has the shape that both have
/// together ([`broadcast::join`](crate::shape::broadcast::join)). The operators `+ - * / %` and unary `-` are the same operations.
#[twins]
pub trait Arithmetic: TensorLike {
    /// `self + other`. For `bool`: or. PyTorch: `add`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let column = Tensor::from([[0.0], [10.0]]);
    /// let row = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!(column.add(&row), Tensor::from([[1.0, 2.0, 3.0], [11.0, 12.0, 13.0]]));
    /// ```
    fn try_add(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("add");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Add, &y, at)
    }

    /// `self - other`. PyTorch: `sub`.
    fn try_sub(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("sub");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Sub, &y, at)
    }

    /// `other - self`. PyTorch: `rsub`.
    fn try_rsub(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("rsub");
        let (x, y) = pair(self, other, at)?;
        y.apply_binary(Binary::Sub, &x, at)
    }

    /// `self * other`. For `bool`: and. PyTorch: `mul`.
    fn try_mul(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("mul");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Mul, &y, at)
    }

    /// `self / other`. By zero: ±∞, or NaN for 0/0. PyTorch: `div`, `true_divide`.
    fn try_div(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("div");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Div, &y, at)
    }

    /// The quotient rounded toward zero; derivative 0. Integers divided by zero are refused. PyTorch: `div` with
    /// `rounding_mode='trunc'`.
    fn try_div_trunc(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("div_trunc");
        let (x, y) = pair(self, other, at)?;
        let quotient = x.apply_binary(Binary::Div, &y, at)?;
        quotient.apply_unary(crate::Unary::Trunc, at)
    }

    /// The quotient rounded down; derivative 0. Integers divided by zero are refused. PyTorch: `div` with
    /// `rounding_mode='floor'`.
    fn try_div_floor(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("div_floor");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::FloorDivide, &y, at)
    }

    /// The quotient rounded down, through which a gradient must not be asked for. Integers divided by zero are refused.
    /// PyTorch: `floor_divide`.
    fn try_floor_divide(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("floor_divide");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::FloorDivide, &y, at)?.opaque(at)
    }

    /// The remainder with the sign of `self`. By zero: NaN; refused for integers. PyTorch: `fmod`.
    fn try_fmod(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("fmod");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Fmod, &y, at)
    }

    /// The remainder with the sign of `other`, as Python's `%`. By zero: NaN; refused for integers. PyTorch: `remainder`.
    fn try_remainder(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("remainder");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Remainder, &y, at)
    }

    /// `self` to the power `exponent`. `pow(x, 0)` and `pow(1, y)` are 1 even at NaN; a negative base with a fractional
    /// exponent gives NaN. The plain numbers 1/2 and -1/2 as exponents take the root, of which -0 has the negative sign and
    /// -∞ has none. PyTorch: `pow`, `float_power`.
    fn try_pow(&self, exponent: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("pow");
        let exponent = exponent.into_argument(self);
        if let Some(inverse) = is_root(&exponent) {
            return self.apply_root(inverse, at);
        }
        let (x, y) = pair(self, exponent, at)?;
        x.apply_binary(Binary::Pow, &y, at)
    }

    /// The larger of both; NaN if either is NaN. Derivative at a tie: half to each. PyTorch: `maximum`.
    fn try_maximum(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("maximum");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Maximum, &y, at)
    }

    /// The smaller of both; NaN if either is NaN. Derivative at a tie: half to each. PyTorch: `minimum`.
    fn try_minimum(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("minimum");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Minimum, &y, at)
    }

    /// The larger of both; one NaN is ignored. PyTorch: `fmax`.
    fn try_fmax(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("fmax");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Fmax, &y, at)
    }

    /// The smaller of both; one NaN is ignored. PyTorch: `fmin`.
    fn try_fmin(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("fmin");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Fmin, &y, at)
    }

    /// The angle of the point (`other`, `self`), in radians from -π to π. PyTorch: `atan2`.
    fn try_atan2(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("atan2");
        let (y, x) = pair(self, other, at)?;
        y.apply_binary(Binary::Atan2, &x, at)
    }

    /// √(`self`² + `other`²) without overflow. PyTorch: `hypot`.
    fn try_hypot(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("hypot");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Hypot, &y, at)
    }

    /// The magnitude of `self` with the sign of `other`, that of zeros included. PyTorch: `copysign`.
    fn try_copysign(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("copysign");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Copysign, &y, at)
    }

    /// The number next to `self` in the direction of `other`. PyTorch: `nextafter`.
    fn try_nextafter(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("nextafter");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Nextafter, &y, at)
    }

    /// The Hurwitz zeta function ζ(`self`, `other`); a gradient with respect to `self` must not be asked for. PyTorch:
    /// `special.zeta`.
    fn try_zeta(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("zeta");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Zeta, &y, at)
    }

    /// And: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_and`.
    fn try_bitwise_and(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("bitwise_and");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::And, &y, at)
    }

    /// Or: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_or`.
    fn try_bitwise_or(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("bitwise_or");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Or, &y, at)
    }

    /// Exclusive or: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_xor`.
    fn try_bitwise_xor(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("bitwise_xor");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Xor, &y, at)
    }

    /// `self` times two to the power `other`, for integers; 0 beyond the width. PyTorch: `bitwise_left_shift`.
    fn try_bitwise_left_shift(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("bitwise_left_shift");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::ShiftLeft, &y, at)
    }

    /// `self` divided by two to the power `other`, rounded down, for integers. PyTorch: `bitwise_right_shift`.
    fn try_bitwise_right_shift(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("bitwise_right_shift");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::ShiftRight, &y, at)
    }

    /// Greatest common divisor of integers, not negative. PyTorch: `gcd`.
    fn try_gcd(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("gcd");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Gcd, &y, at)
    }

    /// Least common multiple of integers, not negative. PyTorch: `lcm`.
    fn try_lcm(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        let at = Site::here("lcm");
        let (x, y) = pair(self, other, at)?;
        x.apply_binary(Binary::Lcm, &y, at)
    }
}

impl<A: TensorLike<Elem: Element>> Arithmetic for A {}

/// Whether a power with this exponent is a root, and if so, whether 1 over it.
pub(crate) fn is_root<A: TensorLike>(exponent: &Argument<A>) -> Option<bool> {
    match exponent {
        Argument::Number(value) if value.to_f64().abs() == 0.5 => Some(value.to_f64() < 0.0),
        _ => None,
    }
}
