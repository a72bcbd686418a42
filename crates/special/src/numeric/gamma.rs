//! The gamma function, the derivatives of its logarithm, and the incomplete gamma function with its derivatives.

use std::f64::consts::PI;

use libm::lgamma;

use super::jet::{Jet, continued_fraction, factorial};
use super::{large, log1p_minus, polynomial};

/// Computes the difference between ln Γ(z) and Stirling's formula (z - 1/2) ln z - z + ln √(2π), for z > 0. The series is in the NIST
/// Digital Library of Mathematical Functions, 5.11.1.
pub(crate) fn stirling_error(z: f64) -> f64 {
    if z < 12.0 {
        return lgamma(z) - ((z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln());
    }
    let series = [-3617.0 / 122_400.0, 1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0];
    let w = 1.0 / (z * z);
    (1.0 / 12.0 - w * (1.0 / 360.0 - w * polynomial(w, &series))) / z
}

/// Computes ln B(a, b) from Stirling's formula and its errors, without a difference of large numbers. An argument below 0 gives NaN, 0
/// gives ∞, and ∞ gives -∞. 0 and ∞ together give NaN.
pub(crate) fn betaln(a: f64, b: f64) -> f64 {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    if a.is_nan() || b.is_nan() || a < 0.0 || a == 0.0 && b.is_infinite() {
        return f64::NAN;
    }
    if a == 0.0 || b.is_infinite() {
        return if a == 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if b < 12.0 {
        return lgamma(a) + (lgamma(b) - lgamma(a + b));
    }
    let rest = stirling_error(b) - stirling_error(a + b);
    if a < 12.0 {
        // Stirling's formula gives ln Γ(b) - ln Γ(a + b).
        return lgamma(a) + (a - (b - 0.5) * (a / b).ln_1p() - a * (a + b).ln() + rest);
    }
    let ratio = a / (a + b);
    (a - 0.5) * ratio.ln() - b * (a / b).ln_1p() - 0.5 * b.ln() + 0.5 * (2.0 * PI).ln() + (stirling_error(a) + rest)
}

/// Computes the derivative of order `n` of the digamma function ψ at x > 0. For n = 0, this is ψ itself. A recurrence increases x
/// until the asymptotic series is accurate (NIST Digital Library of Mathematical Functions, 5.5.2, 5.11.2, 5.15.8).
pub(crate) fn polygamma(n: usize, x: f64) -> f64 {
    // The Bernoulli numbers B₂ₖ.
    const BERNOULLI: [f64; 10] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43_867.0 / 798.0,
        -174_611.0 / 330.0,
    ];
    let (mut x, mut sum, order) = (x, 0.0, n as i32);
    while x < 14.0 + n as f64 {
        sum += x.powi(-order - 1);
        x += 1.0;
    }
    let series = BERNOULLI.iter().enumerate().map(|(k, bernoulli)| {
        let k = 2 * (k + 1);
        // The next line computes (k + n - 1)! / k!.
        let ratio = (k + 1..k + n).fold(1.0, |product, factor| product * factor as f64);
        bernoulli * if n == 0 { 1.0 / k as f64 } else { ratio } * x.powi(-(k as i32) - order)
    });
    if n == 0 {
        return x.ln() - 0.5 / x - series.sum::<f64>() - sum;
    }
    let magnitude = factorial(n) * sum + factorial(n - 1) * x.powi(-order) + 0.5 * factorial(n) * x.powi(-order - 1);
    let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
    sign * (magnitude + series.sum::<f64>())
}

/// Computes xᵃ e⁻ˣ / Γ(a + 1) from Stirling's formula and the error of this formula. For a small a, x/a may overflow, so the logarithm is
/// computed directly.
fn weight(a: f64, x: f64) -> f64 {
    if a < 1e-3 {
        return (a * x.ln() - x - lgamma1p(a)).exp();
    }
    // The weight is 0 long before this quotient overflows.
    if x / a == f64::INFINITY {
        return 0.0;
    }
    (a * log1p_minus((x - a) / a, x / a) - stirling_error(a)).exp() / (2.0 * PI * a).sqrt()
}

/// Computes the density xᵃ⁻¹ e⁻ˣ / Γ(a) of the gamma distribution. For a > 0, it is 0 for negative x. For a = 0, it is the limit
/// 0, and NaN at x = 0. For a < 0, it is NaN.
pub(crate) fn gamma_density(a: f64, x: f64) -> f64 {
    if a.is_nan() || a < 0.0 || x.is_nan() || a == 0.0 && x == 0.0 {
        return f64::NAN;
    }
    match x {
        _ if x < 0.0 || x.is_infinite() => 0.0,
        0.0 if a < 1.0 => f64::INFINITY,
        0.0 => f64::from(u8::from(a == 1.0)),
        _ => weight(a, x) * (a / x),
    }
}

/// Computes the derivative of order `order` with respect to a of the regularised incomplete gamma function: the upper one if `upper` is
/// true, else the lower one.
///
/// For x < a + 1 the function sums a series (NIST Digital Library of Mathematical Functions, 8.7.1). Otherwise it evaluates a continued
/// fraction (8.9.2). Both work on [jets](Jet). Near the mean of a large a, it uses [an expansion](large). The value of the upper function
/// for a < 1e-3 and x < a + 1 comes from [another series](upper_near_zero).
pub(crate) fn gammainc(a: f64, x: f64, upper: bool, order: usize) -> f64 {
    if !(a >= 0.0 && x >= 0.0) || a == 0.0 && x == 0.0 || a.is_infinite() && x.is_infinite() {
        return f64::NAN;
    }
    let is_lower_zero = x == 0.0 || a.is_infinite();
    if is_lower_zero || x.is_infinite() || a == 0.0 && order == 0 {
        return f64::from(u8::from(order == 0 && is_lower_zero == upper));
    }
    if large::is_large(a, x) {
        return large::gammainc(a, x, upper, order);
    }
    let orders = [order, 0];
    // The Taylor coefficients of ln w in a, with the weight w = xᵃ e⁻ˣ / Γ(a + 1). The constant term is replaced by 0, so the exponential of
    // this jet is the jet of w divided by the value of w.
    let logarithm = |i, _| match i {
        0 => 0.0,
        1 => x.ln() - polygamma(0, a + 1.0),
        _ => -polygamma(i - 1, a + 1.0) / factorial(i),
    };
    if order == 0 && upper && a < 1e-3 && x < a + 1.0 {
        return upper_near_zero(a, x);
    }
    let scale = if a == 0.0 { (-x).exp() } else { weight(a, x) };
    if scale == 0.0 && x > a {
        return f64::from(u8::from(order == 0 && !upper));
    }
    let weight = Jet::new(orders, logarithm).exp().scaled(scale);
    let is_series = x < a + 1.0;
    let incomplete = match is_series {
        true => weight * lower_series(a, x, orders),
        false => weight * Jet::linear(orders, a, [1.0, 0.0]) / upper_fraction(a, x, orders),
    };
    let derivative = incomplete.derivative();
    match (is_series == upper, order) {
        (false, _) => derivative,
        (true, 0) => 1.0 - derivative,
        (true, _) => -derivative,
    }
}

/// Computes ln Γ(1 + a) for 0 ≤ a < 1e-3 by its Taylor series, whose coefficients are Euler's constant and ζ(n)/n (NIST Digital Library of
/// Mathematical Functions, 5.7.3).
fn lgamma1p(a: f64) -> f64 {
    let series =
        [0.207_385_551_028_673_98, -0.270_580_808_427_784_54, 0.400_685_634_386_531_43, -0.822_467_033_424_113_2];
    -a * (0.577_215_664_901_532_9 + a * polynomial(a, &series))
}

/// Computes the upper regularised incomplete gamma function for a small a and x < a + 1. There its value is about a, so 1 minus the lower
/// function would have no correct digits. With w = xᵃ / Γ(a + 1), it is 1 - w - w Σ (-x)ᵏ a / (k! (a + k)) over k ≥ 1 (NIST Digital Library
/// of Mathematical Functions, 8.7.3).
fn upper_near_zero(a: f64, x: f64) -> f64 {
    let (mut power, mut sum) = (1.0, 0.0);
    for k in 1..40 {
        let k = f64::from(k);
        power *= -x / k;
        sum += power * a / (a + k);
    }
    let logarithm = a * x.ln() - lgamma1p(a);
    -logarithm.exp_m1() - logarithm.exp() * sum
}

/// Sums the series 1 + x / (a + 1) + x² / ((a + 1) (a + 2)) + …
fn lower_series(a: f64, x: f64, orders: [usize; 2]) -> Jet {
    let mut term = Jet::linear(orders, 1.0, [0.0; 2]);
    let mut sum = term;
    for n in 1..1_000_000 {
        let n = a + f64::from(n);
        term = term.scaled(x) / Jet::linear(orders, n, [1.0, 0.0]);
        sum = sum + term;
        if n > x && term.is_negligible(&sum) {
            break;
        }
    }
    sum
}

/// Computes the continued fraction x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …)).
fn upper_fraction(a: f64, x: f64, orders: [usize; 2]) -> Jet {
    continued_fraction(Jet::linear(orders, x + 1.0 - a, [-1.0, 0.0]), |k| {
        (Jet::linear(orders, k * (a - k), [k, 0.0]), Jet::linear(orders, x + 2.0 * k + 1.0 - a, [-1.0, 0.0]))
    })
}
