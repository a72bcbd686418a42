//! Inverse sines, cosines and tangents of `f32`, in plain arithmetic without branches. The error is at most 1.2 units in the last
//! place for `asin` and `acos`, and 1.7 for `atan2`.
//!
//! The argument of an inverse sine or cosine is reduced to at most 1/2, and the argument of an inverse tangent to at most 1. A short
//! polynomial in the square of the reduced argument follows. The polynomials were fitted for this project. An angle is a multiple of π/2 plus
//! or minus a small angle. The multiple is a sum of two numbers, so that its rounding costs no digits.

use std::f32::consts::FRAC_PI_2;

use crate::scalar::math::polynomial;

/// π/2 as a sum of two numbers.
const HALF_PI: [f32; 2] = [FRAC_PI_2, -4.371_139e-8];

/// The coefficients of ((arcsin t)/t - 1)/t² as a polynomial in t², for |t| up to 1/2.
const ARCSINE: [f32; 5] = [0.042_146_124, 0.024_194_786, 0.045_466_263, 0.074_953_44, 0.166_667_5];

/// The coefficients of ((arctan t)/t - 1)/t² as a polynomial in t², for |t| up to 1.
const ARCTANGENT: [f32; 9] = [
    -0.001_798_896_9,
    0.010_939_148,
    -0.031_225_676,
    0.058_008_198,
    -0.084_065_974,
    0.109_533_474,
    -0.142_644_85,
    0.199_985_74,
    -0.333_333_02,
];

/// Computes arcsin x. The result is NaN for |x| above 1.
#[inline(always)]
pub(crate) fn asin<const FMA: bool>(x: f32) -> f32 {
    let (t, rest, is_large) = arcsine_of_half::<FMA>(x.abs());
    // For |x| above 1/2, arcsin |x| is π/2 - 2 arcsin t.
    let factor = if is_large { -2.0 } else { 1.0 };
    let angle = quarter_turns(is_large, 1.0, factor * t, factor * rest);
    angle.copysign(x)
}

/// Computes arccos x. The result is NaN for |x| above 1.
#[inline(always)]
pub(crate) fn acos<const FMA: bool>(x: f32) -> f32 {
    let (t, rest, is_large) = arcsine_of_half::<FMA>(x.abs());
    // For large |x|, the result is 2 arcsin t, or π - 2 arcsin t if x is negative. For small |x|, it is π/2 - arcsin x.
    let factor = if is_large { 2.0 } else { -1.0 };
    let factor = if x < 0.0 { -factor } else { factor };
    let quarters = if is_large { 2.0 } else { 1.0 };
    quarter_turns(!is_large | (x < 0.0), quarters, factor * t, factor * rest)
}

/// Computes the angle of the point (x, y): the arctangent of y/x, in the quadrant of the point.
#[inline(always)]
pub(crate) fn atan2<const FMA: bool>(y: f32, x: f32) -> f32 {
    let (height, width) = (y.abs(), x.abs());
    let is_steep = height > width;
    let smaller = if is_steep { width } else { height };
    let larger = if is_steep { height } else { width };
    // The quotients of two zeros and of two infinities would be NaN.
    let equal = if larger > 0.0 { 1.0 } else { 0.0 };
    let t = if smaller == larger { equal } else { smaller / larger };
    let square = t * t;
    let rest = t * (square * polynomial::<FMA, 9, _>(square, ARCTANGENT));
    // A steep angle is measured from the vertical axis, and other angles from the horizontal axis.
    let is_left = x.is_sign_negative();
    let factor = if is_steep ^ is_left { -1.0 } else { 1.0 };
    let quarters = if is_steep { 1.0 } else { 2.0 };
    let angle = quarter_turns(is_steep | is_left, quarters, factor * t, factor * rest);
    angle.copysign(y)
}

/// Returns t and arcsin t - t, where t is a sine of at most 1/2, and whether `size` is above 1/2. If it is not, t is `size`. Otherwise t is
/// the sine of half of the angle whose cosine is `size`.
#[inline(always)]
fn arcsine_of_half<const FMA: bool>(size: f32) -> (f32, f32, bool) {
    let is_large = size > 0.5;
    let square = if is_large { 0.5 - 0.5 * size } else { size * size };
    let t = if is_large { square.sqrt() } else { size };
    (t, t * (square * polynomial::<FMA, 5, _>(square, ARCSINE)), is_large)
}

/// Returns the sum of `angle` and `rest`, plus `quarters` times π/2 if `is_turned` is true. The magnitude of `angle` must be less than π/2.
#[inline(always)]
fn quarter_turns(is_turned: bool, quarters: f32, angle: f32, rest: f32) -> f32 {
    let [high, low] = HALF_PI.map(|part| if is_turned { part * quarters } else { 0.0 });
    let sum = high + angle;
    // The rounding error of the sum, which is exact because `high` is 0 or larger than `angle`.
    let lost = angle - (sum - high);
    sum + (lost + (low + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers of all sizes and signs, numbers from -2 to 2, and zeros, infinities and NaN.
    fn sample() -> Vec<f32> {
        let edges = [0.0, 0.5, 1.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY, f32::NAN];
        let near = edges.into_iter().flat_map(|x| [x, x.next_up(), x.next_down()]);
        let all = (0..1u32 << 31).step_by(5_003).map(f32::from_bits);
        let moderate = (0..400_000).map(|k| k as f32 * 5e-6);
        near.chain(all).chain(moderate).flat_map(|x| [x, -x]).collect()
    }

    /// Checks that `got` is `exact` up to `bound` units in the last place, with the same sign.
    fn check(got: f32, exact: f64, bound: f64, arguments: &[f32]) {
        if got.is_nan() || exact.is_nan() {
            assert!(got.is_nan() && exact.is_nan(), "{arguments:?}: {got}, not {exact}");
            return;
        }
        let rounded = (exact as f32).abs();
        let error = (f64::from(got) - exact).abs() / f64::from(rounded.next_up() - rounded);
        assert!(error <= bound, "{arguments:?}: {got}, not {exact}, {error} units");
        assert_eq!(got.is_sign_negative(), exact.is_sign_negative(), "{arguments:?}");
    }

    #[test]
    fn functions_of_one_number() {
        for x in sample() {
            let exact = f64::from(x);
            check(asin::<true>(x), exact.asin(), 1.2, &[x]);
            check(acos::<true>(x), exact.acos(), 1.2, &[x]);
            check(atan2::<true>(x, 1.0), exact.atan(), 1.7, &[x]);
        }
    }

    #[test]
    fn angles_of_points() {
        let numbers: Vec<f32> = sample().into_iter().step_by(797).collect();
        let edges = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(1), f32::MAX];
        for &x in numbers.iter().chain(&edges) {
            for y in edges.into_iter().chain([x, -x, x * 0.37, x * -1.9, x * 1e20]) {
                for (x, y) in [(x, y), (y, x)] {
                    check(atan2::<true>(y, x), f64::from(y).atan2(f64::from(x)), 1.7, &[y, x]);
                }
            }
        }
    }
}
