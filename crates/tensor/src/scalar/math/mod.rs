//! Exponentials and related functions in plain arithmetic, without branches or calls, so that the compiler vectorizes loops over them.
//!
//! The method is from W. J. Cody and W. Waite ("Software Manual for the Elementary Functions", 1980): reduce the argument, evaluate a
//! polynomial, scale by the exponent. The polynomials are from S. Moshier's Cephes library, or were fitted for this project. Most functions
//! state their largest error against the correctly rounded result, in units in the last place. The tests measure these errors.
//!
//! With `FMA` false, the functions use arithmetic, square roots, roundings to integers, comparisons and operations on bits. These operations
//! are exact or correctly rounded, so results have the same bits on every processor. Arguments outside the range of these functions go to the
//! standard library, or in the mode of equal bits ([`Portable`](crate::scalar::cpu::InstructionSet::Portable)) to the crate `libm`.
//!
//! [`FloatMath`] contains the functions common to `f32` and `f64`. It declares the items that each type supplies: constants, polynomials, and
//! the functions whose method differs. `angles` has inverse sines, cosines and tangents of `f32`, and `wide` has functions of `f32` that are
//! computed in `f64`. `double` also has `hypot` and remainders of `f64`. With AVX-512, which can look up numbers in registers, `tables`
//! computes some functions of `f32`, and eˣ of `f64`, instead.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Rem, Shl, Shr, Sub};

pub(crate) mod angles;
pub(crate) mod double;
pub(crate) mod single;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tables;
pub(crate) mod wide;

/// Computes x y + z. If `FMA` is true, the result is rounded only once. `FMA` is true only if the processor has an instruction for this
/// operation.
#[inline(always)]
pub(crate) fn fma<const FMA: bool, T: FloatMath>(x: T, y: T, z: T) -> T {
    if FMA { x.mul_add(y, z) } else { x * y + z }
}

/// Evaluates the polynomial with the given coefficients at `x`. The coefficient of the highest power comes first.
#[inline(always)]
pub(crate) fn polynomial<const FMA: bool, const N: usize, T: FloatMath>(x: T, coefficients: [T; N]) -> T {
    let mut sum = coefficients[0];
    let mut k = 1;
    while k < N {
        sum = fma::<FMA, _>(sum, x, coefficients[k]);
        k += 1;
    }
    sum
}

/// Returns the larger of two numbers. Returns NaN if one number is NaN, and the first number if both are equal or NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // Only a NaN is not equal to itself.
pub(crate) fn larger<T: Scalar>(x: T, y: T) -> T {
    if x >= y || x != x { x } else { y }
}

/// Returns the smaller of two numbers. Returns NaN if one number is NaN, and the first number if both are equal or NaN.
#[inline(always)]
#[allow(clippy::eq_op)]
pub(crate) fn smaller<T: Scalar>(x: T, y: T) -> T {
    if x <= y || x != x { x } else { y }
}

#[inline]
#[allow(clippy::eq_op)]
pub(crate) fn is_nan<T: Scalar>(x: T) -> bool {
    x != x
}

/// Compares two numbers. NaN is larger than all others, and equal to NaN.
#[inline]
pub(crate) fn compare<T: Scalar>(x: T, y: T) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)))
}

/// Returns the larger number like [`larger`], but with a single instruction. The second number must not be NaN.
#[inline(always)]
pub(crate) fn larger_number<T: PartialOrd>(x: T, y: T) -> T {
    if y > x { y } else { x }
}

/// Returns the smaller number like [`smaller`], but with a single instruction. The second number must not be NaN.
#[inline(always)]
pub(crate) fn smaller_number<T: PartialOrd>(x: T, y: T) -> T {
    if y < x { y } else { x }
}

/// Declares functions that the standard library has for every floating-point type.
macro_rules! declared {
    ($($name:ident($($argument:ident),*)),*) => {
        $(fn $name(self, $($argument: Self),*) -> Self;)*
    };
}

/// The functions of a floating-point type, for one number. The compiler vectorizes loops over functions with the parameter
/// `FMA`. The last bits of their results may depend on `FMA`.
pub(crate) trait FloatMath:
    Scalar
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    /// The number's bits as an integer.
    type Bits: Copy + Shl<u32, Output = Self::Bits> + Shr<u32, Output = Self::Bits> + Sub<Output = Self::Bits>;

    /// The number of bits of the fraction.
    const DIGITS: u32;
    /// The bias of the exponent, as a number: the value of the exponent field that stands for the exponent 0.
    const BIAS: Self;
    const EPSILON: Self;
    const MAX: Self;

    /// 1.5 · 2^[`DIGITS`](Self::DIGITS): adding and subtracting it rounds to an integer, and the low bits of the sum are that integer.
    const ROUND: Self;
    /// The bounds outside which eˣ is 0 or ∞.
    const EXP_RANGE: (Self, Self);
    /// ln 2, and ln 2 as the sum of two numbers `LN_2_HIGH` and `LN_2_LOW`. The product of `LN_2_HIGH` with an integer exponent is exact.
    const LN_2: Self;
    const LN_2_HIGH: Self;
    const LN_2_LOW: Self;
    const LOG2_E: Self;
    const LOG2_E_LOW: Self;
    const LOG10_E: Self;
    const LOG10_E_LOW: Self;
    /// log₁₀ 2 as a sum of two numbers. The first number has few digits, so that its products with exponents are exact.
    const LOG10_2_HIGH: Self;
    const LOG10_2_LOW: Self;
    /// The exponent that [`exp_nonpositive`](Self::exp_nonpositive) adds to avoid subnormal numbers.
    /// [`INVERSE_GUARD`](Self::INVERSE_GUARD) is the power of two that removes it again.
    const GUARD_EXPONENT: Self;
    const INVERSE_GUARD: Self;
    /// The two bounds of |x| in [`tanh`](Self::tanh): below the first bound, tanh x is computed as a polynomial. Above the
    /// second bound, the result is ±1.
    const TANH_RANGE: (Self, Self);
    /// True if [`pow_ordinary`](Self::pow_ordinary) is faster than the standard library only with FMA instructions.
    const POW_NEEDS_FMA: bool;

    fn to_bits(self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    fn is_nan(self) -> bool;
    /// Returns true if x is positive, normal and finite. The function compares bits only once, because loops test many numbers with it.
    fn is_ordinary(x: Self) -> bool;

    declared! {
        abs(), copysign(sign), sqrt(), floor(), ceil(), round_ties_even(), trunc(), mul_add(y, z), next_up(), next_down(),
        ln(), log2(), log10(), ln_1p(), sin(), cos(), tan(), asin(), acos(), atan(), sinh(), cosh(), powf(y), atan2(x), hypot(y)
    }

    /// Computes e^r - 1 for r from -½ ln 2 to ½ ln 2.
    fn expm1_reduced<const FMA: bool>(r: Self) -> Self;
    /// Returns n and m - 1 for x = m 2ⁿ with m in √½ .. √2.
    fn split_exponent(x: Self) -> (Self, Self);
    /// Computes ln(1 + m) - m for 1 + m in √½ .. √2.
    fn log1p_minus_x<const FMA: bool>(m: Self) -> Self;
    /// Computes ((tanh x)/x - 1)/x² as a function of x², for |x| below the first bound of [`TANH_RANGE`](Self::TANH_RANGE).
    fn tanh_series<const FMA: bool>(square: Self) -> Self;
    /// Computes ln x for arguments that satisfy [`is_ordinary`](Self::is_ordinary); error at most 1 unit in the last place.
    fn log_ordinary<const FMA: bool>(x: Self) -> Self;
    /// Computes ln x, for ordinary arguments with the same bits as [`log_ordinary`](Self::log_ordinary). The result is -∞ at 0 and NaN for
    /// negative x.
    fn log<const FMA: bool>(x: Self) -> Self;
    /// Computes the error function; error at most 2 units in the last place.
    fn erf<const FMA: bool>(x: Self) -> Self;
    /// Computes 1 - erf x with full relative accuracy for large x. The error is at most 4 units in the last place in f32, and 3 in f64.
    fn erfc<const FMA: bool>(x: Self) -> Self;
    /// Computes Φ(x), the normal distribution function. In the left tail, the error is at most 5 units in the last place in f32, and 7 in
    /// f64.
    fn ndtr<const FMA: bool>(x: Self) -> Self;
    /// Returns true if the argument of a sine is small enough that multiples of π/2 can be subtracted with the constants of this module.
    fn is_moderate_angle(x: Self) -> bool;
    /// Computes sin(x + `quarters` π/2) for arguments that satisfy [`is_moderate_angle`](Self::is_moderate_angle); error at most 1 unit in
    /// the last place.
    fn sine<const FMA: bool>(x: Self, quarters: u64) -> Self;
    /// Returns true if [`pow_ordinary`](Self::pow_ordinary) supports this base and exponent.
    fn is_ordinary_pow(x: Self, y: Self) -> bool;
    /// Computes xʸ for arguments that satisfy [`is_ordinary_pow`](Self::is_ordinary_pow); error at most 1 unit in the last place.
    fn pow_ordinary<const FMA: bool>(x: Self, y: Self) -> Self;

    /// Computes a function over a block by table lookups in registers, or by another special instruction of the processor. Returns `false`
    /// and writes nothing if the function has no such computation, or if the instruction set lacks the instruction.
    fn by_table(op: Unary, x: &[Self], out: &mut [Self]) -> bool {
        let _ = (op, x, out);
        false
    }

    /// Returns the power of two whose exponent field is the low bits of `shifted`.
    #[inline(always)]
    fn power_of_two(shifted: Self) -> Self {
        Self::from_bits(shifted.to_bits() << Self::DIGITS)
    }

    /// Returns [`ROUND`](Self::ROUND) plus twice the bias of the exponent, for [`scale_by_power`](Self::scale_by_power).
    #[inline(always)]
    fn scale_round() -> Self {
        Self::ROUND + (Self::BIAS + Self::BIAS)
    }

    /// Computes y 2ⁿ, where `shifted` is [`scale_round`](Self::scale_round) + n. The function multiplies by two factors, because 2ⁿ alone
    /// may be out of range although the result is in range.
    #[inline(always)]
    fn scale_by_power(y: Self, shifted: Self) -> Self {
        let exponent = shifted.to_bits();
        let half = exponent >> 1;
        y * Self::from_bits(half << Self::DIGITS) * Self::from_bits((exponent - half) << Self::DIGITS)
    }

    /// Computes x - n ln 2.
    #[inline(always)]
    fn subtract_ln_2s<const FMA: bool>(x: Self, n: Self) -> Self {
        fma::<FMA, _>(-n, Self::LN_2_LOW, fma::<FMA, _>(-n, Self::LN_2_HIGH, x))
    }

    /// Returns y² as a rounded square and its rounding error. The exponential of the rounded square alone would amplify this error.
    #[inline(always)]
    fn square<const FMA: bool>(y: Self) -> (Self, Self) {
        let square = y * y;
        let rest = if FMA {
            y.mul_add(y, -square)
        } else {
            let half = (Self::DIGITS + 1).div_ceil(2);
            let high = Self::from_bits(y.to_bits() >> half << half);
            let low = y - high;
            ((high * high - square) + Self::from_f64(2.0) * high * low) + low * low
        };
        (square, rest)
    }

    /// Computes x³; error at most 1 unit in the last place.
    #[inline(always)]
    fn cube<const FMA: bool>(x: Self) -> Self {
        let (square, rest) = Self::square::<FMA>(x);
        let cube = fma::<FMA, _>(square, x, rest * x);
        // If the square overflows, its rounding error is NaN.
        if cube.is_nan() { square * x } else { cube }
    }

    /// Returns true if y is an odd integer and false if y is an even one. Returns `None` if y is not an integer.
    #[inline(always)]
    fn integer_parity(y: Self) -> Option<bool> {
        let half = y * Self::from_f64(0.5);
        (y == y.trunc()).then(|| half != half.trunc())
    }

    /// Returns q and power with e^(x - rest) = (1 + q) · power · [`INVERSE_GUARD`](Self::INVERSE_GUARD). The argument x must be between the
    /// lower bound of [`EXP_RANGE`](Self::EXP_RANGE) and 0, and `rest` less than an ulp of x. The caller multiplies by `INVERSE_GUARD`
    /// last, so that a subnormal result is rounded once.
    #[inline(always)]
    fn exp_nonpositive<const FMA: bool>(x: Self, rest: Option<Self>) -> (Self, Self) {
        let round = Self::ROUND + (Self::BIAS + Self::GUARD_EXPONENT);
        let shifted = fma::<FMA, _>(x, Self::LOG2_E, round);
        let n = shifted - round;
        let r = match rest {
            None => Self::subtract_ln_2s::<FMA>(x, n),
            // The exact difference is computed first, and then the small terms are added, so that they keep their digits.
            Some(rest) => fma::<FMA, _>(-n, Self::LN_2_HIGH, x) + fma::<FMA, _>(-n, Self::LN_2_LOW, -rest),
        };
        (Self::expm1_reduced::<FMA>(r), Self::power_of_two(shifted))
    }

    /// Computes eˣ; error at most 1 unit in the last place, also for subnormal results.
    #[inline(always)]
    fn exp<const FMA: bool>(x: Self) -> Self {
        // Outside this range the result is ∞ or 0. Both comparisons are false for NaN, so NaN stays NaN.
        let (below, above) = Self::EXP_RANGE;
        let bounded = if x > above { above } else { x };
        // Arguments with the result 0 are replaced by 0, because Intel's processors take a hundred cycles for a product that is rounded to
        // 0. Results of 0 are common: a masked softmax has arguments of -∞.
        let bounded = if x < below { Self::ZERO } else { bounded };
        let round = Self::scale_round();
        let shifted = fma::<FMA, _>(bounded, Self::LOG2_E, round);
        let r = Self::subtract_ln_2s::<FMA>(bounded, shifted - round);
        let y = Self::scale_by_power(Self::expm1_reduced::<FMA>(r) + Self::ONE, shifted);
        if x < below { Self::ZERO } else { y }
    }

    /// Computes 2ˣ, exactly at integers; error at most 2 units in the last place in f32, and 1 in f64.
    #[inline(always)]
    fn exp2<const FMA: bool>(x: Self) -> Self {
        let above = Self::BIAS + Self::from_f64(2.0);
        let below = -(Self::BIAS + Self::from_f64(f64::from(Self::DIGITS + 1)));
        let x = if x > above { above } else { x };
        let x = if x < below { below } else { x };
        let round = Self::scale_round();
        let shifted = x + round;
        let r = (x - (shifted - round)) * Self::LN_2;
        Self::scale_by_power(Self::expm1_reduced::<FMA>(r) + Self::ONE, shifted)
    }

    /// Returns true if x is so small that f(x) = x + c x² + O(x³) rounds to x. The caller then returns x, which keeps the sign of 0 and the
    /// last bit of a subnormal number.
    #[inline(always)]
    fn is_tiny(x: Self) -> bool {
        x.abs() < Self::from_f64(0.125) * Self::EPSILON
    }

    /// Computes eˣ - 1; error at most 2 units in the last place.
    #[inline(always)]
    fn expm1<const FMA: bool>(x: Self) -> Self {
        let (above, below) = (Self::EXP_RANGE.1, -Self::from_f64(f64::from(Self::DIGITS + 1)));
        let bounded = if x > above { above } else { x };
        let bounded = if bounded < below { below } else { bounded };
        // Computes half of the power of two, because the whole power may be out of range although the result is in range.
        let round = Self::ROUND + (Self::BIAS - Self::ONE);
        let shifted = fma::<FMA, _>(bounded, Self::LOG2_E, round);
        let half = Self::power_of_two(shifted);
        let q = Self::expm1_reduced::<FMA>(Self::subtract_ln_2s::<FMA>(bounded, shifted - round));
        let y = Self::from_f64(2.0) * fma::<FMA, _>(q, half, half - Self::from_f64(0.5));
        if Self::is_tiny(x) { x } else { y }
    }

    /// Computes 1/(1 + e⁻ˣ); error at most 2 units in the last place.
    #[inline(always)]
    fn sigmoid<const FMA: bool>(x: Self) -> Self {
        // The exponential of -|x| cannot overflow. For a large negative x, e⁻ˣ would overflow although the result can be represented.
        let (magnitude, below) = (-x.abs(), Self::EXP_RANGE.0);
        let (q, power) = Self::exp_nonpositive::<FMA>(if magnitude < below { below } else { magnitude }, None);
        let e = (q + Self::ONE) * power * Self::INVERSE_GUARD;
        let over = if x >= Self::ZERO { Self::ONE } else { e };
        over / (Self::ONE + e)
    }

    /// Computes tanh x; error at most 2 units in the last place.
    #[inline(always)]
    fn tanh<const FMA: bool>(x: Self) -> Self {
        let (near_end, end) = Self::TANH_RANGE;
        let magnitude = x.abs();
        // Near 0, `far` is a difference of nearly equal numbers, which loses digits. The odd polynomial `near` replaces it there.
        let square = x * x;
        let near = fma::<FMA, _>(Self::tanh_series::<FMA>(square) * square, x, x);
        let z = if magnitude > end { end } else { magnitude };
        let (two, round) = (Self::from_f64(2.0), Self::ROUND + Self::BIAS);
        let shifted = fma::<FMA, _>(z, two * Self::LOG2_E, round);
        let r = Self::subtract_ln_2s::<FMA>(two * z, shifted - round);
        let power = Self::power_of_two(shifted);
        let above = fma::<FMA, _>(Self::expm1_reduced::<FMA>(r), power, power + Self::ONE);
        let far = Self::ONE - two / above;
        let y = if magnitude < near_end { near } else { far };
        y.copysign(x)
    }

    /// Computes 1 - erf x as e^(-y²) g(t)/(1 + 2y), where y is |x| and `g` has the coefficients of a polynomial. For negative x, returns 2
    /// minus this value. For y below 0.4, returns `near`, which the caller has computed by another formula.
    #[inline(always)]
    fn combine_erfc<const FMA: bool, const N: usize>(x: Self, y: Self, t: Self, g: [Self; N], near: Self) -> Self {
        let two = Self::from_f64(2.0);
        let (square, rest) = Self::square::<FMA>(y);
        let (q, power) = Self::exp_nonpositive::<FMA>(-square, Some(rest));
        let ratio = polynomial::<FMA, N, _>(t, g) / fma::<FMA, _>(two, y, Self::ONE);
        let tail = fma::<FMA, _>(ratio, q, ratio) * power * Self::INVERSE_GUARD;
        let far = if x < Self::ZERO { two - tail } else { tail };
        if y < Self::from_f64(0.4) { near } else { far }
    }

    /// Computes log₂ x for arguments that satisfy [`is_ordinary`](Self::is_ordinary); error at most 2 units in the last place, exact at
    /// powers of two.
    #[inline(always)]
    fn log2_ordinary<const FMA: bool>(x: Self) -> Self {
        let (n, m) = Self::split_exponent(x);
        let rest = fma::<FMA, _>(Self::log1p_minus_x::<FMA>(m), Self::LOG2_E, m * Self::LOG2_E_LOW);
        n + fma::<FMA, _>(m, Self::LOG2_E, rest)
    }

    /// Computes log₁₀ x for arguments that satisfy [`is_ordinary`](Self::is_ordinary); error at most 2 units in the last place.
    #[inline(always)]
    fn log10_ordinary<const FMA: bool>(x: Self) -> Self {
        let (n, m) = Self::split_exponent(x);
        let rest = fma::<FMA, _>(Self::log1p_minus_x::<FMA>(m), Self::LOG10_E, m * Self::LOG10_E_LOW);
        let rest = fma::<FMA, _>(m, Self::LOG10_E, fma::<FMA, _>(n, Self::LOG10_2_LOW, rest));
        fma::<FMA, _>(n, Self::LOG10_2_HIGH, rest)
    }

    /// Returns true if x is above -1 and so small that 1/x is not subnormal.
    #[inline(always)]
    fn is_above_minus_one(x: Self) -> bool {
        (x > -Self::ONE) & (x < Self::from_f64(0.25) * Self::MAX)
    }

    /// Computes ln(1 + x) for arguments that satisfy [`is_above_minus_one`](Self::is_above_minus_one); error at most 2 units in the last
    /// place.
    #[inline(always)]
    fn log1p_ordinary<const FMA: bool>(x: Self) -> Self {
        // n is the exponent of 1 + x. m is computed from x itself, not from the rounded 1 + x: 1 + x = (1 + m) 2ⁿ, m = 2⁻ⁿ x + (2⁻ⁿ - 1).
        let (n, _) = Self::split_exponent(Self::ONE + x);
        let scale = Self::power_of_two((Self::ROUND + Self::BIAS) - n);
        let m = fma::<FMA, _>(x, scale, scale - Self::ONE);
        let y = fma::<FMA, _>(n, Self::LN_2_LOW, Self::log1p_minus_x::<FMA>(m));
        let y = fma::<FMA, _>(n, Self::LN_2_HIGH, m + y);
        if Self::is_tiny(x) { x } else { y }
    }
}

/// Defines the items of [`FloatMath`] that the standard library provides for both `f32` and `f64`. Some of these functions, such as `ln`
/// and `sin`, are the C library's, whose last bits depend on the platform. In the mode of equal bits, the crate `libm` replaces them.
macro_rules! from_std {
    ($type:ident $bits:ident) => {
        type Bits = $bits;

        const DIGITS: u32 = $type::MANTISSA_DIGITS - 1;
        const BIAS: Self = ($type::MAX_EXP - 1) as $type;
        const EPSILON: Self = $type::EPSILON;
        const MAX: Self = $type::MAX;
        const LN_2: Self = std::$type::consts::LN_2;
        const LOG2_E: Self = std::$type::consts::LOG2_E;
        const LOG10_E: Self = std::$type::consts::LOG10_E;

        #[inline(always)]
        fn to_bits(self) -> $bits {
            self.to_bits()
        }

        #[inline(always)]
        fn from_bits(bits: $bits) -> Self {
            $type::from_bits(bits)
        }

        #[inline(always)]
        fn is_nan(self) -> bool {
            self.is_nan()
        }

        #[inline(always)]
        fn is_ordinary(x: Self) -> bool {
            const FIRST: $bits = $type::MIN_POSITIVE.to_bits();
            x.to_bits().wrapping_sub(FIRST) < $type::INFINITY.to_bits() - FIRST
        }

        crate::scalar::math::from_std! {
            @ abs(), copysign(sign), sqrt(), floor(), ceil(), round_ties_even(), trunc(), mul_add(y, z), next_up(), next_down()
        }
        crate::scalar::math::from_std! {
            @ $type ln() log logf, log2() log2 log2f, log10() log10 log10f, ln_1p() log1p log1pf, sin() sin sinf, cos() cos cosf,
            tan() tan tanf, asin() asin asinf, acos() acos acosf, atan() atan atanf, sinh() sinh sinhf, cosh() cosh coshf,
            powf(y) pow powf, atan2(x) atan2 atan2f, hypot(y) hypot hypotf
        }
    };
    (@ $type:ident $($name:ident($($argument:ident),*) $double:ident $single:ident),*) => {
        $(
            #[inline]
            fn $name(self, $($argument: Self),*) -> Self {
                // The standard library calls the C library, whose results depend on the platform and the processor.
                if crate::scalar::cpu::instruction_set().is_reproducible() {
                    crate::scalar::math::from_std!(@ $type libm::$double libm::$single)(self, $($argument),*)
                } else {
                    self.$name($($argument),*)
                }
            }
        )*
    };
    (@ f64 libm::$double:ident libm::$single:ident) => { libm::$double };
    (@ f32 libm::$double:ident libm::$single:ident) => { libm::$single };
    (@ $($name:ident($($argument:ident),*)),*) => {
        $(
            #[inline(always)]
            fn $name(self, $($argument: Self),*) -> Self {
                self.$name($($argument),*)
            }
        )*
    };
}

use crate::{Scalar, Unary};
use from_std;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Binary;
    use crate::kernel::elementwise::block::BlockKernels;
    use crate::kernel::elementwise::operand::Operand;

    /// Returns the distance from `got` to the correctly rounded `exact`, in units in the last place of `exact`.
    fn ulps(got: f32, exact: f64) -> f64 {
        let rounded = exact as f32;
        if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) || got == rounded {
            return 0.0;
        }
        if !got.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let unit = f64::from((rounded.abs().next_up() - rounded.abs()).max(f32::from_bits(1)));
        (f64::from(got) - f64::from(rounded)).abs() / unit
    }

    /// Returns the worst error of each of two versions of a function over a dense sample of all f32. The sample has both signs, every
    /// exponent, and the special values.
    fn worst(ours: [fn(f32) -> f32; 2], exact: fn(f64) -> f64) -> [(f64, f32); 2] {
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, 1.0, -1.0];
        let sample = (0..=u32::MAX).step_by(2053).map(f32::from_bits);
        let fine = (-12_000_000..12_000_000i32).step_by(7).map(|k| k as f32 * 1e-5);
        let mut worst = [(0.0, 0.0); 2];
        for x in special.into_iter().chain(sample).chain(fine) {
            let (exact, got) = (exact(f64::from(x)), ours.map(|ours| ours(x)));
            let same = got[0].to_bits() == got[1].to_bits();
            let first = ulps(got[0], exact);
            for (worst, error) in worst.iter_mut().zip([first, if same { first } else { ulps(got[1], exact) }]) {
                if error > worst.0 {
                    *worst = (error, x);
                }
            }
        }
        worst
    }

    fn sigmoid(x: f64) -> f64 {
        if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
    }

    fn ndtr(x: f64) -> f64 {
        0.5 * libm::erfc(-x / 2f64.sqrt())
    }

    /// A row of the test's table: name, function under test, f64 function of the library, and error bounds in f32 and f64.
    type Row<T> = (&'static str, fn(T) -> T, fn(f64) -> f64, [f64; 2]);

    /// Returns the functions as the elementwise kernels call them. For arguments that this module does not support, the kernels call the
    /// standard library.
    fn functions<T: FloatMath, const FMA: bool>() -> [Row<T>; 14] {
        fn mended<T: FloatMath>(x: T, ordinary: fn(T) -> bool, ours: fn(T) -> T, library: fn(T) -> T) -> T {
            if ordinary(x) { ours(x) } else { library(x) }
        }
        [
            ("exp", T::exp::<FMA>, f64::exp, [1.0, 2.0]),
            ("log", T::log::<FMA>, f64::ln, [1.0, 2.0]),
            ("sigmoid", T::sigmoid::<FMA>, sigmoid, [2.0, 4.0]),
            ("erf", T::erf::<FMA>, libm::erf, [2.0, 2.0]),
            ("erfc", T::erfc::<FMA>, libm::erfc, [4.0, 4.0]),
            ("tanh", T::tanh::<FMA>, f64::tanh, [2.0, 3.0]),
            ("exp2", T::exp2::<FMA>, f64::exp2, [2.0, 2.0]),
            ("expm1", T::expm1::<FMA>, f64::exp_m1, [2.0, 3.0]),
            ("log2", |x| mended(x, T::is_ordinary, T::log2_ordinary::<FMA>, T::log2), f64::log2, [2.0, 3.0]),
            ("log10", |x| mended(x, T::is_ordinary, T::log10_ordinary::<FMA>, T::log10), f64::log10, [2.0, 3.0]),
            ("log1p", |x| mended(x, T::is_above_minus_one, T::log1p_ordinary::<FMA>, T::ln_1p), f64::ln_1p, [2.0, 3.0]),
            ("sin", |x| mended(x, T::is_moderate_angle, |x| T::sine::<FMA>(x, 0), T::sin), f64::sin, [1.0, 2.0]),
            ("cos", |x| mended(x, T::is_moderate_angle, |x| T::sine::<FMA>(x, 1), T::cos), f64::cos, [1.0, 2.0]),
            ("ndtr", T::ndtr::<FMA>, ndtr, [5.0, f64::INFINITY]),
        ]
    }

    #[test]
    fn errors_are_as_stated() {
        for ((name, ours, exact, [bound, _]), (.., fused, _, _)) in
            functions::<f32, false>().into_iter().zip(functions::<f32, true>())
        {
            for (error, at) in worst([ours, fused], exact) {
                assert!(error <= bound, "{name}: {error} units in the last place at {at:e}");
            }
        }
    }

    /// Compares the functions with library functions, which have errors of about one unit in the last place, to detect gross errors. The
    /// tests in `accuracy.rs` check the last digits of f64, and `ndtr`, which no library has.
    #[test]
    fn doubles_are_near_the_library() {
        let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX, 1.0, -1.0];
        let sample = (0..=u64::MAX).step_by(900_719_925_474_099).map(f64::from_bits);
        let fine = (-8_000_000..8_000_000i32).step_by(37).map(|k| f64::from(k) * 1.01e-4);
        let points: Vec<f64> = special.into_iter().chain(sample).chain(fine).collect();
        for (name, ours, library, [_, bound]) in functions::<f64, false>().into_iter().chain(functions::<f64, true>()) {
            for &x in &points {
                let (got, exact) = (ours(x), library(x));
                let unit = exact.abs().next_up() - exact.abs();
                let same = got == exact || (got.is_nan() && exact.is_nan());
                assert!(same || (got - exact).abs() <= bound * unit, "{name} at {x:e}: {got:e}, not {exact:e}");
            }
        }
    }

    /// Checks that the bits of a result do not depend on the block's length, on the result's position in the block, or on special values
    /// beside it.
    #[test]
    fn a_value_does_not_depend_on_its_neighbours() {
        fn check<T: BlockKernels>(of: fn(f32) -> T, bits: fn(T) -> u64) {
            let plain: Vec<T> = (0..200u8).map(|i| of(0.01 + f32::from(i) * 0.037)).collect();
            let mut mixed = plain.clone();
            for (place, special) in [(3, 0.0), (70, -1.5), (71, f32::INFINITY), (140, f32::NAN), (195, 1e30)] {
                mixed[place] = of(special);
            }
            let ops = Unary::ALL.iter().filter(|&&op| T::supports_unary(op)).map(|&op| (Some(op), None));
            let ops = ops.chain([(None, Some(Binary::Pow))]);
            for (first, second) in ops {
                let block = |x: Operand<T>, out: &mut [T]| match (first, second) {
                    (Some(op), _) => T::unary(op, x, out),
                    (_, Some(op)) => T::binary(op, x, x, out),
                    _ => unreachable!("there is one operation"),
                };
                let (mut plain_out, mut mixed_out) = (plain.clone(), plain.clone());
                block(Operand::Slice(&plain), &mut plain_out);
                block(Operand::Slice(&mixed), &mut mixed_out);
                for (i, &x) in mixed.iter().enumerate() {
                    let (mut alone, mut splat) = ([x], [x; 3]);
                    block(Operand::Slice(&[x]), &mut alone);
                    block(Operand::Splat(x), &mut splat);
                    let name = (first, second, i);
                    assert_eq!([bits(mixed_out[i]); 2], [bits(alone[0]), bits(splat[2])], "{name:?} {x:?}");
                    assert!(bits(plain[i]) != bits(x) || bits(plain_out[i]) == bits(mixed_out[i]), "{name:?} {x:?}");
                }
            }
        }
        check::<f32>(|x| x, |x| if x.is_nan() { u64::MAX } else { u64::from(x.to_bits()) });
        check::<f64>(f64::from, |x| if x.is_nan() { u64::MAX } else { x.to_bits() });
    }

    /// Checks that powers with one exponent for all bases equal powers with an exponent for each base.
    #[test]
    fn a_power_does_not_depend_on_the_form_of_its_exponent() {
        fn check<T: BlockKernels + PartialEq>(of: fn(f32) -> T) {
            let edges = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40, 1e30, -1e30, -1.0];
            let bases: Vec<T> = (-90i16..90).map(|i| 0.3 + f32::from(i) * 0.07).chain(edges).map(of).collect();
            for exponent in [-7.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 9.0, 1e9, 1e21].map(of) {
                let (mut splat, mut slice) = (bases.clone(), bases.clone());
                T::binary(Binary::Pow, Operand::Slice(&bases), Operand::Splat(exponent), &mut splat);
                let exponents = vec![exponent; bases.len()];
                T::binary(Binary::Pow, Operand::Slice(&bases), Operand::Slice(&exponents), &mut slice);
                for ((x, one), other) in bases.iter().zip(&splat).zip(&slice) {
                    let both_nan = one != one && other != other;
                    let same = one.to_f64().to_bits() == other.to_f64().to_bits();
                    assert!(same || both_nan, "{x:?} to the power {exponent:?}: {one:?} and {other:?}");
                }
            }
        }
        check::<f32>(|x| x);
        check::<f64>(f64::from);
    }

    /// Checks that powers, cubes, and logarithms of powers of 2 and 10 are exact if an f64 can represent the exact result.
    #[test]
    fn doubles_are_exact_where_results_are() {
        fn check<const FMA: bool>() {
            for n in -1022..=1023 {
                let x = 2f64.powi(n);
                assert_eq!(
                    (<f64 as FloatMath>::exp2::<FMA>(f64::from(n)), f64::log2_ordinary::<FMA>(x)),
                    (x, f64::from(n))
                );
            }
            for n in 0..=22 {
                assert_eq!(f64::log10_ordinary::<FMA>(10f64.powi(n)), f64::from(n));
            }
        }
        check::<false>();
        check::<true>();
        for base in 1..=200u32 {
            let mut power = 1u64;
            for n in 0.. {
                assert_eq!(f64::pow_ordinary::<true>(base.into(), n.into()), power as f64, "{base}, {n}");
                power *= u64::from(base);
                if power > 1 << 53 || n == 40u32 {
                    break;
                }
            }
        }
        for (x, y) in [(0.25, 0.5), (1e300, 1.0), (0.1, 1.0), (2.0, -1074.0), (1.5, -0.0), (1.0, 1e19)] {
            assert_eq!(f64::pow_ordinary::<true>(x, y), x.powf(y), "{x}, {y}");
        }
        for x in (-208_063..=208_063i64).step_by(17) {
            assert_eq!([f64::cube::<false>(x as f64), f64::cube::<true>(x as f64)], [(x * x * x) as f64; 2], "{x}");
        }
    }

    /// Tests sines and cosines of arguments that are especially near to multiples of π/2.
    #[test]
    fn sines_keep_their_digits_near_zeros() {
        let (x, cosine) = (45.553_093_477_052, -6.189_806_365_883_577e-19);
        assert_eq!([f64::sine::<false>(x, 1), f64::sine::<true>(x, 1)], [cosine; 2]);
        let (x, sine) = (std::f64::consts::PI, 1.224_646_799_147_353_2e-16);
        assert_eq!([f64::sine::<false>(x, 0), f64::sine::<true>(x, 0)], [sine; 2]);
    }

    #[test]
    fn the_sign_of_zero_is_kept() {
        assert_eq!(<f32 as FloatMath>::tanh::<false>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(<f32 as FloatMath>::exp::<true>(-0.0), 1.0);
        let odd = [f64::expm1::<true>, f64::log1p_ordinary::<true>, |x| f64::sine::<true>(x, 0)];
        assert_eq!(odd.map(|f| f(-0.0).to_bits()), [(-0.0f64).to_bits(); 3]);
    }
}
