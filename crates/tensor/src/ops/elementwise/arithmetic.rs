//! Arithmetic of two operands, which broadcast, and of one operand of any numeric type.

use wengert_macros::twins;

use crate::ops::primitive::pair::{binary, broadcast_two, check_number};
use crate::ops::{Argument, Operand, Result, TensorLike};
use crate::{Binary, Error, Float, Number, Scalar, Site, Unary, ensure};

/// Elementwise arithmetic of one or two operands.
///
/// The second operand is a number or an array whose shape broadcasts. The result has the broadcast shape of both operands
/// ([`broadcast::join`](crate::shape::broadcast::join)). The operators `+ - * / %` and unary `-` do the same. Results of integers wrap
/// around.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let column = Tensor::from([[10.0], [20.0]]);
/// let row = Tensor::from([1.0, 2.0, 3.0]);
/// assert_eq!(column.add(&row), Tensor::from([[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]])); // or &column + &row
/// assert_eq!(row.maximum(2.0).to_vec(), [2.0, 2.0, 3.0]);
/// ```
#[twins(blanket)]
pub trait Arithmetic: TensorLike {
    /// Returns `self + other`; for `bool`, the logical or. PyTorch: `add`.
    #[in_place(Binary::Add)]
    fn try_add(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Add, other, Site::here("add"))
    }

    /// Returns `self - other`. PyTorch: `sub`.
    #[in_place(Binary::Sub)]
    #[doc(alias("subtract"))]
    fn try_sub(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Sub, other, Site::here("sub"))
    }

    /// Returns `other - self`. PyTorch: `rsub`.
    fn try_rsub(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("rsub");
        let (x, y) = broadcast_two(self, other, at)?;
        y.apply_binary(Binary::Sub, &x, at)
    }

    /// Returns `self * other`; for `bool`, the logical and. PyTorch: `mul`.
    #[in_place(Binary::Mul)]
    #[doc(alias("multiply"))]
    fn try_mul(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Mul, other, Site::here("mul"))
    }

    /// Returns `self / other`. Division by zero gives ±∞, or NaN for 0/0. PyTorch: `div`, `true_divide`.
    #[in_place(Binary::Div)]
    #[doc(alias("divide", "true_divide"))]
    fn try_div(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Div, other, Site::here("div"))
    }

    /// Returns `self / other`, rounded toward zero. Derivative 0. Refuses division of integers by zero. PyTorch: `div` with
    /// `rounding_mode='trunc'`.
    #[in_place]
    fn try_div_trunc(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("div_trunc");
        check_number(Binary::Div, &other, at)?;
        let (x, y) = broadcast_two(self, other, at)?;
        x.apply_div_trunc(&y, at)
    }

    /// Returns `self / other`, rounded down. Infinities follow Python: -3/∞ is -1, and ∞/3 is NaN. Derivative 0. Refuses division of
    /// integers by zero. PyTorch: `div` with `rounding_mode='floor'`.
    #[in_place(Binary::FloorDivide)]
    fn try_div_floor(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::FloorDivide, other, Site::here("div_floor"))
    }

    /// Returns the values of [`div_floor`](Self::div_floor). Taking a gradient through the result is an error. Refuses division of integers
    /// by zero. PyTorch: `floor_divide`.
    #[doc(alias("floordiv", "div_floor"))]
    fn try_floor_divide(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("floor_divide");
        check_number(Binary::FloorDivide, &other, at)?;
        let (x, y) = broadcast_two(self, other, at)?;
        x.apply_binary(Binary::FloorDivide, &y, at)?.refuse_gradients(at)
    }

    /// Returns the remainder of `self / other`, with the sign of `self`. Division by zero gives NaN, and is refused for integers. PyTorch:
    /// `fmod`.
    #[in_place(Binary::Fmod)]
    fn try_fmod(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Fmod, other, Site::here("fmod"))
    }

    /// Returns the remainder of `self / other`, with the sign of `other`, as Python's `%`. Division by zero gives NaN, and is refused for
    /// integers. PyTorch: `remainder`.
    #[in_place(Binary::Remainder)]
    #[doc(alias("mod", "modulo"))]
    fn try_remainder(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        binary(self, Binary::Remainder, other, Site::here("remainder"))
    }

    /// Returns `self` to the power `exponent`. `pow(x, 0)` and `pow(1, y)` are 1 even for NaN. A finite negative base with a fractional
    /// exponent gives NaN. If the exponent is the number 1/2 or -1/2, computes the square root or its reciprocal, which differ from the power
    /// at -0 and -∞. The root of -0 is -0, and the root of -∞ is NaN. Refuses a number as the exponent of integers if it is negative or not
    /// whole. If the exponents are a tensor, an integer with a negative exponent gives 0, except for the bases 1 and -1. PyTorch: `pow`,
    /// `float_power`.
    #[in_place(Binary::Pow)]
    #[doc(alias("powf", "powi", "power", "float_power", "__pow__"))]
    fn try_pow(&self, exponent: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Number,
    {
        let at = Site::here("pow");
        check_exponent::<Self>(&exponent, at)?;
        let exponent = exponent.into_argument(self)?;
        if let Some(root) = root(&exponent) {
            return self.apply_unary(root, at);
        }
        let (x, y) = broadcast_two(self, exponent, at)?;
        x.apply_binary(Binary::Pow, &y, at)
    }

    /// Returns the larger operand; NaN if an operand is NaN. If both operands are equal, each gets half of the derivative. PyTorch:
    /// `maximum`.
    fn try_maximum(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Maximum, other, Site::here("maximum"))
    }

    /// Returns the smaller operand; NaN if an operand is NaN. If both operands are equal, each gets half of the derivative. PyTorch:
    /// `minimum`.
    fn try_minimum(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Minimum, other, Site::here("minimum"))
    }

    /// Returns the larger operand. If only one operand is NaN, returns the other operand. If both operands are equal, each gets half of the
    /// derivative. PyTorch: `fmax`.
    fn try_fmax(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Fmax, other, Site::here("fmax"))
    }

    /// Returns the smaller operand. If only one operand is NaN, returns the other operand. If both operands are equal, each gets half of the
    /// derivative. PyTorch: `fmin`.
    fn try_fmin(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Fmin, other, Site::here("fmin"))
    }

    /// Returns the angle of the point (`other`, `self`), in radians from -π to π. PyTorch: `atan2`.
    #[in_place(Binary::Atan2)]
    #[doc(alias("arctan2"))]
    fn try_atan2(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Atan2, other, Site::here("atan2"))
    }

    /// Returns √(`self`² + `other`²) without intermediate overflow. PyTorch: `hypot`.
    #[in_place(Binary::Hypot)]
    fn try_hypot(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Hypot, other, Site::here("hypot"))
    }

    /// Returns the magnitude of `self` with the sign of `other`, including the sign of zeros. PyTorch: `copysign`.
    #[in_place(Binary::Copysign)]
    fn try_copysign(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Copysign, other, Site::here("copysign"))
    }

    /// Returns the next representable number from `self` toward `other`, or `other` if both are equal. PyTorch: `nextafter`.
    #[in_place(Binary::Nextafter)]
    fn try_nextafter(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Nextafter, other, Site::here("nextafter"))
    }

    /// Returns the Hurwitz zeta function ζ(`self`, `other`). A gradient with respect to `self` is an error. PyTorch:
    /// `special.zeta`.
    fn try_zeta(&self, other: impl Operand<Self>) -> Result<Self>
    where
        Self::Elem: Float,
    {
        binary(self, Binary::Zeta, other, Site::here("zeta"))
    }

    /// Returns the "and" of both operands: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_and`.
    #[in_place(Binary::And)]
    fn try_bitwise_and(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::And, other, Site::here("bitwise_and"))
    }

    /// Returns the "or" of both operands: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_or`.
    #[in_place(Binary::Or)]
    fn try_bitwise_or(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Or, other, Site::here("bitwise_or"))
    }

    /// Returns the exclusive or of both operands: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_xor`.
    #[in_place(Binary::Xor)]
    fn try_bitwise_xor(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Xor, other, Site::here("bitwise_xor"))
    }

    /// Returns `self` times two to the power `other`, for integers; 0 if `other` is negative, or at least the number of bits. PyTorch:
    /// `bitwise_left_shift`.
    #[doc(alias("left_shift"))]
    #[in_place(Binary::ShiftLeft)]
    fn try_bitwise_left_shift(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::ShiftLeft, other, Site::here("bitwise_left_shift"))
    }

    /// Returns `self` divided by two to the power `other`, rounded down, for integers. If `other` is negative, or at least the number of
    /// bits, returns -1 for a negative `self`, and otherwise 0. PyTorch: `bitwise_right_shift`.
    #[doc(alias("right_shift"))]
    #[in_place(Binary::ShiftRight)]
    fn try_bitwise_right_shift(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::ShiftRight, other, Site::here("bitwise_right_shift"))
    }

    /// Returns the greatest common divisor of integers, which is not negative unless it overflows. PyTorch: `gcd`.
    #[in_place(Binary::Gcd)]
    fn try_gcd(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Gcd, other, Site::here("gcd"))
    }

    /// Returns the least common multiple of integers, which is not negative unless it overflows. PyTorch: `lcm`.
    #[in_place(Binary::Lcm)]
    fn try_lcm(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Lcm, other, Site::here("lcm"))
    }

    /// Returns -x. PyTorch: `neg`.
    #[in_place]
    #[doc(alias("negative"))]
    fn try_neg(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Neg, Site::here("neg"))
    }

    /// Returns |x|. Derivative 0 at 0. PyTorch: `abs`.
    #[in_place]
    #[doc(alias("absolute", "fabs"))]
    fn try_abs(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Abs, Site::here("abs"))
    }

    /// Returns the sign of x: -1, 0 or 1. The sign of NaN is 0. PyTorch: `sign`, `sgn`.
    #[in_place]
    #[doc(alias("signum", "sgn"))]
    fn try_sign(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Sign, Site::here("sign"))
    }

    /// Returns x². PyTorch: `square`.
    #[in_place]
    fn try_square(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Square, Site::here("square"))
    }

    /// Returns the largest integer not above x. PyTorch: `floor`.
    #[in_place]
    fn try_floor(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Floor, Site::here("floor"))
    }

    /// Returns the smallest integer not below x. PyTorch: `ceil`.
    #[in_place]
    fn try_ceil(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Ceil, Site::here("ceil"))
    }

    /// Returns the nearest integer; halves round to even. PyTorch: `round`.
    #[in_place]
    #[doc(alias("rint"))]
    fn try_round(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Round, Site::here("round"))
    }

    /// Returns the integer part of x. PyTorch: `trunc`.
    #[in_place]
    #[doc(alias("fix"))]
    fn try_trunc(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Trunc, Site::here("trunc"))
    }

    /// Returns max(x, 0); NaN stays NaN. Derivative 0 at 0. PyTorch: `relu`.
    #[in_place]
    fn try_relu(&self) -> Result<Self>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Relu, Site::here("relu"))
    }

    /// Returns the complement: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_not`.
    #[doc(alias("invert"))]
    #[in_place]
    fn try_bitwise_not(&self) -> Result<Self> {
        self.apply_unary(Unary::Not, Site::here("bitwise_not"))
    }
}

/// Refuses a negative number, and a number that is not whole, as the exponent of integers. The messages are PyTorch's.
pub(crate) fn check_exponent<A: TensorLike>(exponent: &impl Operand<A>, at: Site) -> Result<(), Error> {
    let is_refused = A::Elem::DTYPE.is_integer() && exponent.number().is_some_and(|number| number < 0.0);
    ensure!(!is_refused, at, "Integers to negative integer powers are not allowed.");
    check_number(Binary::Pow, exponent, at)
}

/// Returns the root that a power computes if its exponent is the number 1/2 or -1/2, and `None` for other exponents.
pub(crate) fn root<A: TensorLike>(exponent: &Argument<A>) -> Option<Unary> {
    let Argument::Number(exponent) = exponent else { return None };
    match exponent.to_f64() {
        0.5 => Some(Unary::PowHalf),
        -0.5 => Some(Unary::PowMinusHalf),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// The fraction of a number would be lost beside integers, so the number is refused.
    #[test]
    fn fractions_beside_integers() {
        let refused = |target: &str| format!("result type Float can't be cast to the desired output type {target}");
        let mut x = Tensor::from([2i64, 4]);
        for number in [0.5, -2.7, f64::NAN, f64::INFINITY] {
            let results = [
                x.try_add(number).map(drop),
                x.try_mul(number).map(drop),
                x.try_floor_divide(number).map(drop),
                x.try_maximum(number).map(drop),
                x.try_add_(number),
                x.try_pow(number.abs()).map(drop),
                x.try_pow_(number.abs()),
                x.try_div_trunc_(number),
                crate::ops::try_where_(&Tensor::from([true, false]), &x, number).map(drop),
            ];
            for (case, result) in results.into_iter().enumerate() {
                assert_eq!(result.unwrap_err().sentence(), refused("Long"), "{case} {number}");
            }
        }
        let error = Tensor::from([1u8]).try_mul(1.5f32).unwrap_err();
        assert_eq!(error.sentence(), refused("Byte"));
        assert_eq!(x.try_add(1e19).unwrap_err().sentence(), refused("Long"));
        let long = "result type Long can't be cast to the desired output type Bool";
        assert_eq!(Tensor::from([true]).try_add(2).unwrap_err().sentence(), long);
        assert_eq!(Tensor::from([true, false]).add(1).to_vec(), [true, true]);
        assert!(error.to_string().contains("the elements are u8, but 1.5 is no whole number"), "{error}");
        assert_eq!(x.pow(2.0).to_vec(), [4, 16]);
        assert_eq!((x.add(-1.0).to_vec(), x.le(2.0).to_vec()), (vec![1, 3], vec![true, false]));
    }

    /// Beside bytes, sums and products wrap around, as in PyTorch. Other operations refuse a number of magnitude 256 or more.
    #[test]
    fn numbers_beyond_bytes() {
        let mut x = Tensor::from([1u8, 44, 255]);
        assert_eq!((x.add(300).to_vec(), x.add(300.0).to_vec()), (vec![45, 88, 43], vec![45, 88, 43]));
        assert_eq!((x.sub(-1).to_vec(), x.add(-1.0).to_vec()), (vec![2, 45, 0], vec![0, 43, 254]));
        assert_eq!((x.mul(-1).to_vec(), (&x * 300).to_vec()), (vec![255, 212, 1], vec![44, 144, 212]));
        let mask = Tensor::from([true, false, true]);
        let index = Tensor::from([0i64]);
        for number in [256i32, -256, 300] {
            let results = [
                x.try_maximum(number).map(drop),
                x.try_minimum(number).map(drop),
                x.try_floor_divide(number).map(drop),
                x.try_div_floor_(number),
                x.try_div_trunc(number).map(drop),
                x.try_remainder(number).map(drop),
                x.try_fmod_(f64::from(number)),
                x.try_pow(number.abs()).map(drop),
                x.try_pow_(number.abs()),
                x.try_gcd(number).map(drop),
                x.try_bitwise_left_shift(number.abs()).map(drop),
                x.try_fill_(number),
                x.try_copy_(number),
                x.try_index_set(&crate::index_items![0], number).map(drop),
                x.try_index_set_(&crate::index_items![0], number),
                x.try_masked_fill(&mask, number).map(drop),
                x.try_masked_fill_(&mask, number),
                x.try_index_fill(0, &index, number).map(drop),
                x.try_pad(&[1, 1], crate::ops::PadMode::Constant(number.into())).map(drop),
                crate::ops::try_where_(&mask, &x, number).map(drop),
            ];
            for (case, result) in results.into_iter().enumerate() {
                let refused = "value cannot be converted to type uint8_t without overflow";
                assert_eq!(result.unwrap_err().sentence(), refused, "{case} {number}");
            }
        }
        let refused = Tensor::from([1i64]).try_fill_(f64::NAN).unwrap_err();
        assert_eq!(refused.sentence(), "value cannot be converted to type int64_t without overflow");
        // 2⁶³ is the first number above `i64`. The largest element is a number of `i64`, although f64 rounds it to 2⁶³.
        let (mut long, bound) = (Tensor::from([-1i64]), 2f64.powi(63));
        assert!(long.try_add(bound).is_err() && long.try_fill_(bound).is_err() && long.try_mul(-2.0 * bound).is_err());
        assert_eq!((long.add(i64::MAX).to_vec(), long.sub(-bound).to_vec()), (vec![i64::MAX - 1], vec![i64::MAX]));
        long.fill_(i64::MAX);
        assert_eq!(long.to_vec(), [i64::MAX]);
        x.fill_(-1);
        assert_eq!(x.to_vec(), [255; 3]);
        assert_eq!(x.pad(&[1, 0], crate::ops::PadMode::Constant(-1.0)).to_vec(), [255; 4]);
        // These functions ask only whether a number is 0.
        assert_eq!(x.logical_and(256).to_vec(), [true; 3]);
        assert_eq!(mask.logical_xor(2.5).to_vec(), [false, true, false]);
    }

    #[test]
    #[should_panic(expected = "value cannot be converted to type uint8_t without overflow")]
    fn an_operator_refuses_a_number_beyond_bytes() {
        let _ = Tensor::from([1u8]) % 300;
    }

    #[test]
    #[should_panic(expected = "value cannot be converted to type uint8_t without overflow")]
    fn an_operator_in_place_refuses_a_number_beyond_bytes() {
        let mut x = Tensor::from([1u8]);
        x %= 256;
    }

    /// As in PyTorch, a negative number as exponent is refused, even for an empty tensor. Negative exponents in a tensor are allowed.
    #[test]
    fn integers_to_negative_powers() {
        let refused = "Integers to negative integer powers are not allowed.";
        let mut x = Tensor::from([2i64, 1, -1, 0]);
        assert_eq!(x.try_pow(-1).unwrap_err().sentence(), refused);
        assert_eq!(x.try_pow_(-2).unwrap_err().sentence(), refused);
        assert_eq!(Tensor::<i64>::zeros(0).try_pow(-1).unwrap_err().sentence(), refused);
        let mut bytes = Tensor::from([2u8, 1, 255]);
        for exponent in [-1, -256] {
            assert_eq!(bytes.try_pow(exponent).unwrap_err().sentence(), refused);
            assert_eq!(bytes.try_pow_(exponent).unwrap_err().sentence(), refused);
        }
        assert_eq!(Tensor::<u8>::zeros(0).try_pow(-1.0).unwrap_err().sentence(), refused);
        assert_eq!(bytes.pow(3).to_vec(), [8, 1, 255]);
        assert_eq!(x.pow(Tensor::scalar(-1)).to_vec(), [0, 1, -1, 0]);
        x.pow_(2);
        assert_eq!(x.to_vec(), [4, 1, 1, 0]);
        assert_eq!(Tensor::from([2.0, -4.0]).pow(-1).to_vec(), [0.5, -0.25]);
    }

    /// Returns the bits of each element, and `None` for a NaN.
    fn bits<T: Float>(x: &Tensor<T>) -> Vec<Option<u64>> {
        x.cast::<f64>().to_vec().into_iter().map(|x| (!x.is_nan()).then_some(x.to_bits())).collect()
    }

    fn truncated_quotients<T: Float>() {
        let numbers = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.3, -0.3, 7.5, -7.5, 2.0, 1e30];
        let x = Tensor::from(numbers).cast::<T>().outer(&Tensor::from([1.0, -3.0, 0.7]).cast());
        for y in numbers {
            let y = Tensor::scalar(y).cast::<T>();
            assert_eq!(bits(&x.div_trunc(&y)), bits(&x.div(&y).trunc()), "{y:?}");
        }
        for y in [2.5, 0.0, -0.0, f64::INFINITY] {
            assert_eq!(bits(&x.div_trunc(y)), bits(&x.div(y).trunc()), "{y}");
        }
        let square = Tensor::from(numbers).cast::<T>().expand([numbers.len(), numbers.len()]);
        for (x, y) in [(square.t(), square.clone()), (square.contiguous(), square.t()), (x.t(), square.narrow(0, 0, 3))]
        {
            let expected = bits(&x.div(&y).trunc());
            assert_eq!(bits(&x.div_trunc(&y)), expected);
            let mut in_place = x.contiguous();
            in_place.div_trunc_(&y);
            assert_eq!(bits(&in_place), expected);
        }
    }

    /// One loop divides and rounds, with the same results as two operations.
    #[test]
    fn truncated_quotients_of_floats() {
        truncated_quotients::<f32>();
        truncated_quotients::<f64>();
    }
}
