//! Functions of `f32` that are computed in `f64`, in vectors of half as many elements. The argument is reduced without loss, and short
//! polynomials suffice. The result is rounded once. The error is at most 0.51 units in the last place for sines and tangents, and
//! 0.55 for powers. Functions whose arguments are `f64` expect numbers that `f32` can represent.

use std::f64::consts::{FRAC_2_PI, FRAC_2_SQRT_PI, PI};

use crate::scalar::math::{FloatMath, fma, larger_number, polynomial};
use crate::scalar::special::ERFINV_CENTRAL;

const ROUND: f64 = f64::ROUND;

/// π/2 as a sum of two numbers. The product of the first with an integer of up to 20 bits is exact.
const HALF_PI_HIGH: f64 = 1.570_796_326_734_125_6;
const HALF_PI_LOW: f64 = 6.077_100_506_506_192e-11;

/// Returns true if `x` is small enough for [`sine`], which subtracts a multiple of π/2 from its argument.
#[inline(always)]
pub(crate) fn is_moderate_angle(x: f32) -> bool {
    x.abs() < 1e5
}

/// Computes sin(x + `quarters` π/2) for arguments that satisfy [`is_moderate_angle`].
#[inline(always)]
pub(crate) fn sine<const FMA: bool>(x: f32, quarters: u64) -> f32 {
    let (sine, cosine, quadrant) = sine_and_cosine::<FMA>(f64::from(x));
    let quadrant = quadrant.wrapping_add(quarters);
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    f64::from_bits(y.to_bits() ^ ((quadrant & 2) << 62)) as f32
}

/// Computes tan x for arguments that satisfy [`is_moderate_angle`].
#[inline(always)]
pub(crate) fn tan<const FMA: bool>(x: f64) -> f64 {
    let (sine, cosine, quadrant) = sine_and_cosine::<FMA>(x);
    let odd = quadrant & 1 == 1;
    (if odd { -cosine } else { sine }) / (if odd { sine } else { cosine })
}

/// Returns the sine and the cosine of x - n π/2, where n is the integer nearest to 2x/π. Also returns a number that has the last two bits of
/// n. The argument must satisfy [`is_moderate_angle`].
#[inline(always)]
fn sine_and_cosine<const FMA: bool>(x: f64) -> (f64, f64, u64) {
    let shifted = fma::<FMA, _>(x, FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let r = fma::<FMA, _>(-n, HALF_PI_LOW, fma::<FMA, _>(-n, HALF_PI_HIGH, x));
    let z = r * r;
    let p = [2.718_293_922_045_71e-6, -1.983_933_297_778_670_7e-4, 8.333_329_380_471_936e-3, -0.166_666_666_415_975_86];
    let sine = r * fma::<FMA, _>(polynomial::<FMA, 4, _>(z, p), z, 1.0);
    let p = [
        -2.717_338_171_287_455e-7,
        2.479_897_931_209_118_4e-5,
        -1.388_888_102_265_998_6e-3,
        4.166_666_656_825_624e-2,
        -0.499_999_999_996_534_77,
    ];
    let cosine = fma::<FMA, _>(polynomial::<FMA, 5, _>(z, p), z, 1.0);
    (sine, cosine, shifted.to_bits())
}

/// Computes √(x² + y²). The result is ∞ if one number is infinite, even if the other one is NaN.
#[inline(always)]
pub(crate) fn hypot(x: f64, y: f64) -> f64 {
    let infinite = (x.abs() == f64::INFINITY) | (y.abs() == f64::INFINITY);
    if infinite { f64::INFINITY } else { (x * x + y * y).sqrt() }
}

/// Returns the exact remainder of the division of `x` by `y`, with the sign of `x`. Returns NaN if the integer part of the quotient has 30
/// bits or more. Also returns NaN if `x` is infinite or NaN, or if `y` is 0, infinite or NaN. All operations are exact, except for the
/// rounding of the quotient.
#[inline(always)]
pub(crate) fn fmod_of_short_quotient(x: f64, y: f64) -> f64 {
    const LIMIT: f64 = (1u64 << 29) as f64;
    let quotient = x / y;
    let rest = x - quotient.trunc() * y;
    // The rounded quotient can be an integer that is larger than the exact quotient.
    let rest = if rest * x < 0.0 { rest + y.abs().copysign(x) } else { rest };
    let short = (quotient.abs() < LIMIT) & (y.abs() < f64::INFINITY);
    if short { rest.copysign(x) } else { f64::NAN }
}

/// Computes ln(x / (1 - x)) for a number between 0 and 1. Returns NaN for other numbers, also for 0 and 1.
#[inline(always)]
pub(crate) fn logit<const FMA: bool>(x: f64) -> f64 {
    let logit = f64::log_ordinary::<FMA>(x / (1.0 - x));
    if (x > 0.0) & (x < 1.0) { logit } else { f64::NAN }
}

/// Computes artanh x = ½ ln(1 + 2x / (1 - x)) for |x| below 1.
#[inline(always)]
pub(crate) fn atanh<const FMA: bool>(x: f64) -> f64 {
    let size = x.abs();
    (0.5 * f64::log1p_ordinary::<FMA>(2.0 * size / (1.0 - size))).copysign(x)
}

/// Returns true if `x` is small enough for [`sinc`].
#[inline(always)]
pub(crate) fn has_sinc(x: f64) -> bool {
    x.abs() < 1e5
}

/// Computes sin(πx) / (πx) for arguments that satisfy [`has_sinc`]. The distance of `x` from the nearest integer is exact, so the zeros of
/// the sine are exact.
#[inline(always)]
pub(crate) fn sinc<const FMA: bool>(x: f64) -> f64 {
    let shifted = x + ROUND;
    let (sine, cosine, quadrant) = sine_and_cosine::<FMA>(PI * (x - (shifted - ROUND)));
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    // sin(πx) has the opposite sign if the nearest integer is odd.
    let sign = ((quadrant & 2) << 62) ^ (shifted.to_bits() << 63);
    let quotient = f64::from_bits(y.to_bits() ^ sign) / (x * PI);
    if x == 0.0 { 1.0 } else { quotient }
}

/// Computes the inverse of erf for |x| below 1. The initial value is from M. B. Giles, "Approximating the erfinv function" (2011), with an
/// error of about 4e-7 of the result. One step of Halley's method on erf follows.
#[inline(always)]
pub(crate) fn erfinv<const FMA: bool>(x: f64) -> f64 {
    let size = x.abs();
    let w = -f64::log_ordinary::<FMA>((1.0 - size) * (1.0 + size));
    let tail = [
        -2.002_142_57e-04,
        1.009_505_58e-04,
        1.349_343_22e-03,
        -3.673_428_44e-03,
        5.739_507_73e-03,
        -7.622_461_3e-03,
        9.438_870_47e-03,
        1.001_674_06,
        2.832_976_82,
    ];
    let inner = polynomial::<FMA, 9, _>(w - 2.5, ERFINV_CENTRAL);
    let outer = polynomial::<FMA, 9, _>(w.sqrt() - 3.0, tail);
    let y = size * if w < 5.0 { inner } else { outer };
    let step = (size - FloatMath::erf::<FMA>(y)) * FloatMath::exp::<FMA>(y * y) * (1.0 / FRAC_2_SQRT_PI);
    (y + step * fma::<FMA, _>(y, step, 1.0)).copysign(x)
}

/// Returns true if [`log_gamma`] computes the result for `x` to the precision of `f32`. This is so for positive finite numbers, except near
/// the zeros 1 and 2, where digits cancel.
#[inline(always)]
pub(crate) fn has_log_gamma(x: f64) -> bool {
    (x > 0.0) & (x < f64::INFINITY) & ((x - 1.0).abs() > 1e-4) & ((x - 2.0).abs() > 1e-4)
}

/// Computes ln Γ(x) for arguments that satisfy [`has_log_gamma`], by Stirling's series. For x below 8, computes ln Γ(x + 8) by the series and
/// subtracts the logarithm of x (x + 1) … (x + 7).
#[inline(always)]
pub(crate) fn log_gamma<const FMA: bool>(x: f64) -> f64 {
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;
    let small = x < 8.0;
    let z = if small { x + 8.0 } else { x };
    let product = (x * (x + 7.0)) * ((x + 1.0) * (x + 6.0)) * (((x + 2.0) * (x + 5.0)) * ((x + 3.0) * (x + 4.0)));
    let product = if small { product } else { 1.0 };
    let p = [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    let inverse = 1.0 / z;
    let series = polynomial::<FMA, 7, _>(inverse * inverse, p) * inverse;
    let logarithm = f64::log_ordinary::<FMA>(z);
    (z - 0.5) * logarithm - z + HALF_LN_TAU + series - f64::log_ordinary::<FMA>(product)
}

/// Computes ln |Γ(x)| for a negative x, as ln(π / |x sin πx|) - ln Γ(-x). Returns NaN at integers, and near the zeros of the result, where
/// digits cancel. Also returns NaN for numbers that are not between -1e9 and -1e-30.
#[inline(always)]
pub(crate) fn log_gamma_of_negative<const FMA: bool>(x: f64) -> f64 {
    let size = -x;
    // The distance from the nearest integer is exact. An odd integer changes only the sign of the sine.
    let distance = x - ((x + ROUND) - ROUND);
    let sine = f64::sine::<FMA>(PI * distance, 0).abs();
    let reflected = f64::log_ordinary::<FMA>(PI / (size * sine));
    let gamma = log_gamma::<FMA>(size);
    let result = reflected - gamma;
    let is_precise = result.abs() > 1e-4 * larger_number(reflected.abs(), gamma.abs());
    let supported = (size > 1e-30) & (size < 1e9) & (distance != 0.0) & is_precise;
    if supported { result } else { f64::NAN }
}

/// Returns true if [`pow_ordinary`] computes the power of this base and exponent.
#[inline(always)]
pub(crate) fn is_ordinary_pow(x: f32, y: f32) -> bool {
    f32::is_ordinary(x) & (y.abs() < f32::INFINITY)
}

/// Computes xʸ = 2^(y log₂ x) for arguments that satisfy [`is_ordinary_pow`].
#[inline(always)]
pub(crate) fn pow_ordinary<const FMA: bool>(x: f32, y: f32) -> f32 {
    // x = m 2ⁿ with m in √½ .. √2. log₂ m comes from the series of 2 artanh s, where s = (m - 1)/(m + 1).
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let n = f64::from((bits as i32) >> 23);
    let m = f64::from(f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3)));
    let s = (m - 1.0) / (m + 1.0);
    let p = [
        0.282_929_809_662_840_6,
        0.319_903_666_446_488_04,
        0.412_209_300_723_675_34,
        0.577_077_941_900_524_7,
        0.961_796_694_114_854_9,
        2.885_390_081_777_849_5,
    ];
    let exponent = f64::from(y) * fma::<FMA, _>(polynomial::<FMA, 6, _>(s * s, p), s, n);
    // If log₂ of the power is beyond ±200, the power is ∞ or 0.
    let exponent = if exponent > 200.0 { 200.0 } else { exponent };
    let exponent = if exponent < -200.0 { -200.0 } else { exponent };
    const BASE: f64 = ROUND + 1023.0;
    let shifted = exponent + BASE;
    let r = exponent - (shifted - BASE);
    let p = [
        1.547_866_123_600_276_7e-4,
        1.340_048_541_802_500_6e-3,
        9.617_991_514_635_672e-3,
        5.550_327_061_154_547_4e-2,
        0.240_226_515_451_987_5,
        0.693_147_206_800_512_1,
        0.999_999_999_906_559_1,
    ];
    (polynomial::<FMA, 7, _>(r, p) * f64::from_bits(shifted.to_bits() << 52)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::special;

    /// Tests dividends at and next to multiples of the divisor, where a rounded quotient may be a wrong integer.
    #[test]
    fn remainders_are_exact_or_nan() {
        for divisor in [1.0f32, 3.0, -0.1, 7.7e-12, 1.9999999, 5.5e30, 1e-45] {
            for factor in [0.0f32, 0.7, 1.0, 2.0, 3.0, 1e3, 8_388_609.0, 5e8, 1e12, f32::INFINITY, f32::NAN] {
                let x = divisor * factor;
                for x in [x, -x, x.next_up(), x.next_down(), -x.next_up()] {
                    let got = fmod_of_short_quotient(x.into(), divisor.into()) as f32;
                    if got.is_nan() {
                        assert!(!(x / divisor).is_finite() || (x / divisor).abs() > 5e8, "{x} by {divisor}");
                    } else {
                        assert_eq!(got.to_bits(), (x % divisor).to_bits(), "{x} by {divisor}");
                    }
                }
            }
        }
        assert!(fmod_of_short_quotient(1.0, f64::INFINITY).is_nan() && fmod_of_short_quotient(1.0, 0.0).is_nan());
    }

    #[test]
    fn logarithms_of_gamma_functions() {
        let near = (0..40).flat_map(|k| [1.0, 2.0].map(|x| x + (k as f32 - 20.0) * 1e-5));
        let wide = (0..2000).map(|k| 10f32.powf(k as f32 * 0.04 - 41.5));
        for x in near.chain(wide).map(f64::from).filter(|&x| has_log_gamma(x)) {
            let (got, expected) = (log_gamma::<true>(x), libm::lgamma(x));
            assert!((got - expected).abs() < 2e-3 * f64::from(f32::EPSILON) * expected.abs(), "{x}: {got} {expected}");
        }
        assert!([0.0, -1.5, 1.0, 2.0, f64::INFINITY, f64::NAN].iter().all(|&x| !has_log_gamma(x)));
    }

    #[test]
    fn logarithms_of_gamma_functions_of_negative_numbers() {
        let sizes = (0..4000).map(|k| 10f32.powf(k as f32 * 0.011 - 36.0)).chain((0..4000).map(|k| k as f32 * 0.0123));
        let (mut computed, mut left) = (0, 0);
        for x in sizes.map(|size| f64::from(-size)) {
            let (got, expected) = (log_gamma_of_negative::<true>(x), libm::lgamma(x));
            if got.is_nan() {
                left += 1;
            } else {
                computed += 1;
                assert!(
                    (got - expected).abs() < 4e-3 * f64::from(f32::EPSILON) * expected.abs(),
                    "{x}: {got} {expected}"
                );
            }
        }
        assert!(computed > 3 * left, "{computed} {left}");
        for x in [-0.0, 0.0, -1.0, -2.0, -1e8, -1e30, 0.5, 3.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN] {
            assert!(log_gamma_of_negative::<true>(x).is_nan(), "{x}");
        }
    }

    /// Compares with functions of f64. The bound of the relative error is 1/400 of the machine epsilon of `f32`, which is small beside the
    /// rounding to `f32`.
    #[test]
    fn inverse_functions_and_sincs() {
        let sizes = (0..4000)
            .map(|k| 1.0 - 10f32.powf(k as f32 * -0.002))
            .chain((0..2000).map(|k| 10f32.powf(k as f32 * -0.02)));
        for x in sizes.filter(|&size| size < 1.0).flat_map(|size| [size, -size]).map(f64::from) {
            for (got, expected) in [
                (atanh::<true>(x), libm::atanh(x)),
                (atanh::<false>(x), libm::atanh(x)),
                (erfinv::<true>(x), special::erfinv(x)),
                (erfinv::<false>(x), special::erfinv(x)),
                (sinc::<true>(20.0 * x), special::sinc(20.0 * x)),
                (sinc::<false>(20.0 * x), special::sinc(20.0 * x)),
            ] {
                assert!(
                    (got - expected).abs() <= 2.5e-3 * f64::from(f32::EPSILON) * expected.abs(),
                    "{x}: {got} {expected}"
                );
                assert_eq!(got.is_sign_negative(), expected.is_sign_negative(), "{x}");
            }
        }
        assert!(sinc::<true>(0.0) == 1.0 && sinc::<true>(-0.0) == 1.0 && sinc::<true>(3.0) == 0.0);
        assert!(![1e5, f64::INFINITY, f64::NAN].iter().any(|&x| has_sinc(x)));
    }

    #[test]
    fn hypotenuses_of_infinite_legs() {
        assert!(hypot(f64::NEG_INFINITY, f64::NAN) == f64::INFINITY && hypot(1.0, f64::NAN).is_nan());
    }
}
