//! Operations of two operands, which broadcast against each other.

use wengert_macros::twins;

use crate::ops::pair::{binary, pair};
use crate::ops::{Argument, Operand, TensorLike};
use crate::{Binary, Element, Float, Number, Scalar, Site, Unary};

/// Elementwise arithmetic of two operands.
///
/// The other operand may be a tensor of any shape that broadcasts, or a number. The result has the broadcast shape of both
/// ([`broadcast::join`](crate::shape::broadcast::join)). The operators `+ - * / %` and unary `-` are the same operations.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let column = Tensor::from([[10.0], [20.0]]);
/// let row = Tensor::from([1.0, 2.0, 3.0]);
/// assert_eq!(column.add(&row), Tensor::from([[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]])); // or &column + &row
/// assert_eq!(row.maximum(2.0).to_vec(), [2.0, 2.0, 3.0]);
/// ```
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
    #[in_place(Binary::Add)]
    fn try_add(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Add, other, Site::here("add"))
    }

    /// `self - other`. PyTorch: `sub`.
    #[in_place(Binary::Sub)]
    fn try_sub(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Sub, other, Site::here("sub"))
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
    #[in_place(Binary::Mul)]
    fn try_mul(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Mul, other, Site::here("mul"))
    }

    /// `self / other`. By zero: ±∞, or NaN for 0/0. PyTorch: `div`, `true_divide`.
    #[in_place(Binary::Div)]
    fn try_div(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Div, other, Site::here("div"))
    }

    /// The quotient rounded toward zero; derivative 0. Integers divided by zero are refused. PyTorch: `div` with
    /// `rounding_mode='trunc'`.
    #[in_place]
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
    #[in_place(Binary::FloorDivide)]
    fn try_div_floor(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::FloorDivide, other, Site::here("div_floor"))
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
    #[in_place(Binary::Fmod)]
    fn try_fmod(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Fmod, other, Site::here("fmod"))
    }

    /// The remainder with the sign of `other`, as Python's `%`. By zero: NaN; refused for integers. PyTorch: `remainder`.
    #[in_place(Binary::Remainder)]
    fn try_remainder(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Remainder, other, Site::here("remainder"))
    }

    /// `self` to the power `exponent`. `pow(x, 0)` and `pow(1, y)` are 1 even at NaN; a negative base with a fractional
    /// exponent gives NaN. The plain numbers 1/2 and -1/2 as exponents take the root, of which -0 has the negative sign and
    /// -∞ has none. PyTorch: `pow`, `float_power`.
    #[in_place(Binary::Pow)]
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
        binary(self, Binary::Maximum, other, Site::here("maximum"))
    }

    /// The smaller of both; NaN if either is NaN. Derivative at a tie: half to each. PyTorch: `minimum`.
    fn try_minimum(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Minimum, other, Site::here("minimum"))
    }

    /// The larger of both; one NaN is ignored. PyTorch: `fmax`.
    fn try_fmax(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Fmax, other, Site::here("fmax"))
    }

    /// The smaller of both; one NaN is ignored. PyTorch: `fmin`.
    fn try_fmin(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Fmin, other, Site::here("fmin"))
    }

    /// The angle of the point (`other`, `self`), in radians from -π to π. PyTorch: `atan2`.
    #[in_place(Binary::Atan2)]
    fn try_atan2(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Atan2, other, Site::here("atan2"))
    }

    /// √(`self`² + `other`²) without overflow. PyTorch: `hypot`.
    #[in_place(Binary::Hypot)]
    fn try_hypot(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Hypot, other, Site::here("hypot"))
    }

    /// The magnitude of `self` with the sign of `other`, that of zeros included. PyTorch: `copysign`.
    #[in_place(Binary::Copysign)]
    fn try_copysign(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Copysign, other, Site::here("copysign"))
    }

    /// The number next to `self` in the direction of `other`. PyTorch: `nextafter`.
    #[in_place(Binary::Nextafter)]
    fn try_nextafter(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Nextafter, other, Site::here("nextafter"))
    }

    /// The Hurwitz zeta function ζ(`self`, `other`); a gradient with respect to `self` must not be asked for. PyTorch:
    /// `special.zeta`.
    fn try_zeta(&self, other: impl Operand<Self>) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Zeta, other, Site::here("zeta"))
    }

    /// And: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_and`.
    #[in_place(Binary::And)]
    fn try_bitwise_and(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::And, other, Site::here("bitwise_and"))
    }

    /// Or: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_or`.
    #[in_place(Binary::Or)]
    fn try_bitwise_or(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Or, other, Site::here("bitwise_or"))
    }

    /// Exclusive or: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_xor`.
    #[in_place(Binary::Xor)]
    fn try_bitwise_xor(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Xor, other, Site::here("bitwise_xor"))
    }

    /// `self` times two to the power `other`, for integers; 0 beyond the width. PyTorch: `bitwise_left_shift`.
    #[in_place(Binary::ShiftLeft)]
    fn try_bitwise_left_shift(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::ShiftLeft, other, Site::here("bitwise_left_shift"))
    }

    /// `self` divided by two to the power `other`, rounded down, for integers. PyTorch: `bitwise_right_shift`.
    #[in_place(Binary::ShiftRight)]
    fn try_bitwise_right_shift(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::ShiftRight, other, Site::here("bitwise_right_shift"))
    }

    /// Greatest common divisor of integers, not negative. PyTorch: `gcd`.
    #[in_place(Binary::Gcd)]
    fn try_gcd(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Gcd, other, Site::here("gcd"))
    }

    /// Least common multiple of integers, not negative. PyTorch: `lcm`.
    #[in_place(Binary::Lcm)]
    fn try_lcm(&self, other: impl Operand<Self>) -> Result<Self, Self::Error> {
        binary(self, Binary::Lcm, other, Site::here("lcm"))
    }

    /// -x. PyTorch: `neg`.
    #[in_place]
    fn try_neg(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Neg, Site::here("neg"))
    }

    /// |x|. Derivative 0 at 0. PyTorch: `abs`.
    #[in_place]
    fn try_abs(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Abs, Site::here("abs"))
    }

    /// -1, 0 or 1; 0 at NaN. PyTorch: `sign`, `sgn`.
    #[in_place]
    fn try_sign(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Sign, Site::here("sign"))
    }

    /// x². PyTorch: `square`.
    #[in_place]
    fn try_square(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Square, Site::here("square"))
    }

    /// Largest integer not above x. PyTorch: `floor`.
    #[in_place]
    fn try_floor(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Floor, Site::here("floor"))
    }

    /// Smallest integer not below x. PyTorch: `ceil`.
    #[in_place]
    fn try_ceil(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Ceil, Site::here("ceil"))
    }

    /// Nearest integer, ties to even. PyTorch: `round`.
    #[in_place]
    fn try_round(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Round, Site::here("round"))
    }

    /// Integer part. PyTorch: `trunc`.
    #[in_place]
    fn try_trunc(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Trunc, Site::here("trunc"))
    }

    /// max(x, 0); NaN stays NaN. Derivative 0 at 0. PyTorch: `relu`.
    #[in_place]
    fn try_relu(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Relu, Site::here("relu"))
    }

    /// Not: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_not`.
    #[in_place]
    fn try_bitwise_not(&self) -> Result<Self, Self::Error> {
        self.apply_unary(Unary::Not, Site::here("bitwise_not"))
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
