//! The incomplete gamma function of large parameters near the mean, where its series and its continued fraction converge slowly.
//!
//! The function is a normal distribution function of √a η plus a small term (N. M. Temme, "The asymptotic expansion of the incomplete gamma
//! functions", 1979; NIST Digital Library of Mathematical Functions, 8.12). Here μ = x/a - 1, η²/2 = μ - ln(1 + μ), and η has the sign of μ.

use std::f64::consts::PI;

use super::jet::Jet;
use super::log1p_minus;
use super::normal::erfcx;

/// The smallest parameter a for which [`gammainc`] is accurate: the neglected term of the expansion is below a⁻² / 300.
const MIN_PARAMETER: f64 = 1e6;

/// The largest |μ| for which the expansion is used, where μ = (x - a) / a. Farther from the mean a, the continued fraction and the series
/// need less than 500 terms.
const MAX_DISTANCE: f64 = 0.1;

/// The Taylor coefficients of η / μ as a function of μ.
const ETA: [f64; 17] = [
    1.0,
    -1.0 / 3.0,
    0.194_444_444_444_444_44,
    -0.135_185_185_185_185_18,
    0.102_700_617_283_950_62,
    -0.082_337_595_532_039_98,
    0.068_447_053_203_997_65,
    -0.058_401_736_723_495_98,
    0.050_819_073_696_436_735,
    -0.044_904_356_975_575_04,
    0.040_169_383_760_970_96,
    -0.036_298_233_508_214_94,
    0.033_077_734_575_438_016,
    -0.030_359_007_414_019_896,
    0.028_035_031_162_601_393,
    -0.026_026_964_485_597_546,
    0.024_275_486_092_980_206,
];

/// The Taylor coefficients of the first coefficient of the expansion, 1/μ - 1/η, as a function of η.
const FIRST_COEFFICIENT: [f64; 13] = [
    -1.0 / 3.0,
    1.0 / 12.0,
    -0.014_814_814_814_814_815,
    0.001_157_407_407_407_407_4,
    0.000_352_733_686_067_019_4,
    -0.000_178_755_144_032_921_8,
    0.000_039_192_631_785_224_38,
    -2.185_448_510_679_992e-6,
    -1.854_062_210_715_16e-6,
    8.296_711_340_953_086e-7,
    -1.766_595_273_682_608e-7,
    6.707_853_543_401_499e-9,
    1.026_180_978_424_030_8e-8,
];

/// The Taylor coefficients, in powers of η, of 1/η³ - 1/μ³ - 1/μ² - 1/(12 μ). This second coefficient of the expansion is divided by a.
const SECOND_COEFFICIENT: [f64; 8] = [
    -0.001_851_851_851_851_851_8,
    -0.003_472_222_222_222_222,
    0.002_645_502_645_502_645_3,
    -0.000_990_226_337_448_559_7,
    0.000_205_761_316_872_427_98,
    -4.018_775_720_164_609e-7,
    -0.000_018_098_550_334_489_98,
    7.649_160_916_081_11e-6,
];

/// Returns true if [`gammainc`] is accurate for these arguments.
pub(crate) fn is_large(a: f64, x: f64) -> bool {
    a >= MIN_PARAMETER && (x - a).abs() <= MAX_DISTANCE * a
}

/// Computes the derivative of order `order` with respect to a of the regularised incomplete gamma function: the upper one if `upper` is
/// true, else the lower one.
pub(crate) fn gammainc(a: f64, x: f64, upper: bool, order: usize) -> f64 {
    let exponent = a * log1p_minus((x - a) / a, x / a);
    if order > 0 {
        let scaled_slope = scaled_slope(a, x, order - 1).scaled(exponent.exp() / (2.0 * PI * a).sqrt()).derivative();
        return if upper { -scaled_slope } else { scaled_slope };
    }
    let mu = Jet::linear([0, 0], (x - a) / a, [0.0; 2]);
    let eta = mu * taylor(&ETA, mu);
    let term = (taylor(&FIRST_COEFFICIENT, eta).value() + taylor(&SECOND_COEFFICIENT, eta).value() / a)
        / (2.0 * PI * a).sqrt();
    // The tail probability beyond x: of the upper tail if x is above the mean a, else of the lower one.
    let is_upper = x > a;
    let normal = 0.5 * erfcx((-exponent).max(0.0).sqrt());
    let tail = exponent.exp() * if is_upper { normal + term } else { normal - term };
    if upper == is_upper { tail } else { 1.0 - tail }
}

/// Returns the derivative of the regularised lower incomplete gamma function with respect to a, divided by the factor
/// exp(-a η²/2) / √(2π a), as a jet in a.
///
/// With T = `FIRST_COEFFICIENT` + `SECOND_COEFFICIENT` / a, the lower function is Φ(√a η) - exp(-a η²/2) T / √(2π a), where Φ is the normal
/// distribution function. Its derivative follows from a ∂η/∂a = -μ/η and ∂(-a η²/2)/∂a = ln(1 + μ).
fn scaled_slope(a: f64, x: f64, order: usize) -> Jet {
    let orders = [order, 0];
    let number = |value: f64| Jet::linear(orders, value, [0.0; 2]);
    let inverse = number(1.0) / Jet::linear(orders, a, [1.0, 0.0]);
    let mut mu = inverse.scaled(x) + number(-1.0);
    mu.set_value((x - a) / a);
    let root = taylor(&ETA, mu);
    let (eta, ratio) = (mu * root, number(1.0) / root);
    let (first, second) = (taylor(&FIRST_COEFFICIENT, eta), taylor(&SECOND_COEFFICIENT, eta));
    let term = first + second * inverse;
    let slope_of_term =
        taylor(&derivative(&FIRST_COEFFICIENT), eta) + taylor(&derivative(&SECOND_COEFFICIENT), eta) * inverse;
    let slope_of_eta = ratio.scaled(-1.0) * inverse;
    // The Taylor coefficients of ln(x/a) in a. `factor` has the coefficients of the logarithm of exp(-a η²/2) / √(2π a), without the constant
    // term.
    let sign = |i: usize| if i % 2 == 1 { -1.0 } else { 1.0 };
    let logarithm = Jet::new(orders, |i, _| match i {
        0 => mu.value().ln_1p(),
        _ => sign(i) / (i as f64 * a.powi(i as i32)),
    });
    let factor = Jet::new(orders, |i, _| {
        let root = if i == 0 { 0.0 } else { 0.5 * sign(i) / (i as f64 * a.powi(i as i32)) };
        root + match i {
            0 => 0.0,
            1 => mu.value().ln_1p(),
            _ => -sign(i) / ((i * (i - 1)) as f64 * a.powi(i as i32 - 1)),
        }
    });
    let sum = ratio.scaled(-1.0) + eta.scaled(0.5) + (logarithm * term).scaled(-1.0);
    let change = slope_of_term * slope_of_eta + (second * inverse * inverse).scaled(-1.0);
    factor.exp() * (sum + change.scaled(-1.0) + (term * inverse).scaled(0.5))
}

/// Returns the coefficients of the derivative of a polynomial.
fn derivative<const N: usize>(coefficients: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|k| coefficients.get(k + 1).map_or(0.0, |c| c * (k + 1) as f64))
}

/// Evaluates a polynomial at `t`. The coefficient of the lowest power comes first.
fn taylor(coefficients: &[f64], t: Jet) -> Jet {
    coefficients.iter().rev().fold(t.scaled(0.0), |sum, &c| {
        let mut sum = sum * t;
        sum.set_value(sum.value() + c);
        sum
    })
}
