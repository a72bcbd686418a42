//! The incomplete beta function with its derivatives.

use std::f64::consts::PI;

use super::gamma::{betaln, polygamma, stirling_error};
use super::jet::{Jet, continued_fraction, factorial};
use super::log1p_minus;
use super::normal::log_ndtr;

/// Computes numbers e and f such that xᵃ yᵇ / B(a, b) is f exp(e), for x + y = 1.
///
/// The exponent e is a sum of two parts. The first part comes from the deviations of x and y from a / (a + b) and b / (a + b). The second
/// part consists of errors of Stirling's formula (C. Loader, "Fast and accurate computation of binomial probabilities", 2000).
fn weight_parts(a: f64, b: f64, [x, y]: [f64; 2]) -> [f64; 2] {
    let total = a + b;
    let distance = x * b - y * a; // (x - a / total) · total
    let part = |share: f64, part: f64, distance: f64| share * log1p_minus(distance / share, part * total / share);
    let exponent = part(a, x, distance) + part(b, y, -distance);
    let correction = stirling_error(total) - stirling_error(a) - stirling_error(b);
    [exponent + correction, (a / total * b / (2.0 * PI)).sqrt()]
}

/// Computes xᵃ yᵇ / B(a, b) for x + y = 1.
fn weight(a: f64, b: f64, x: [f64; 2]) -> f64 {
    let [exponent, factor] = weight_parts(a, b, x);
    exponent.exp() * factor
}

/// Computes the density xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) of the beta distribution. It is 0 outside of [0, 1], and NaN unless a, b > 0.
pub(crate) fn beta_density(a: f64, b: f64, x: f64) -> f64 {
    if !(a > 0.0 && b > 0.0) || x.is_nan() {
        return f64::NAN;
    }
    let density_at_end = |a: f64, b: f64| match a {
        _ if a < 1.0 => f64::INFINITY,
        1.0 => b,
        _ => 0.0,
    };
    match x {
        0.0 => density_at_end(a, b),
        1.0 => density_at_end(b, a),
        _ if !(0.0..1.0).contains(&x) => 0.0,
        _ => weight(a, b, [x, 1.0 - x]) / (x * (1.0 - x)),
    }
}

/// Computes a derivative of the regularised incomplete beta function I(a, b, x). `orders` has the orders of this derivative with respect to
/// a and b. The caller passes both x and y = 1 - x, so that neither loses digits near 0.
///
/// The function evaluates a continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22) on [jets](Jet). If the
/// fraction of I(b, a, y) converges faster, it computes I(a, b, x) = 1 - I(b, a, y).
pub(crate) fn betainc(a: f64, b: f64, [x, y]: [f64; 2], orders: [usize; 2]) -> f64 {
    let is_value = orders == [0, 0];
    if !(a >= 0.0 && b >= 0.0 && x >= 0.0 && y >= 0.0) || a == 0.0 && b == 0.0 || a.is_infinite() && b.is_infinite() {
        return f64::NAN;
    }
    if x == 0.0 || b == 0.0 || a.is_infinite() {
        return f64::from(u8::from(is_value && (x != 0.0 && y == 0.0)));
    }
    if y == 0.0 || a == 0.0 || b.is_infinite() {
        return f64::from(u8::from(is_value));
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        let other = lower_betainc(b, a, [y, x], [orders[1], orders[0]]);
        return if is_value { 1.0 - other } else { -other };
    }
    lower_betainc(a, b, [x, y], orders)
}

/// Computes a derivative of I(a, b, x), as [`betainc`] does, by the continued fraction of I(a, b, x) itself.
fn lower_betainc(a: f64, b: f64, [x, y]: [f64; 2], orders: [usize; 2]) -> f64 {
    // The Taylor coefficients of ln w in a and b, with the weight w = xᵃ yᵇ / (a B(a, b)). The constant term is replaced by 0, so the
    // exponential of this jet is the jet of w divided by the value of w.
    let logarithm = |i, j| {
        let slope = match (i, j) {
            (0, 0) => return 0.0,
            (1, 0) => x.ln() - polygamma(0, a + 1.0) + polygamma(0, a + b),
            (0, 1) => y.ln() - polygamma(0, b) + polygamma(0, a + b),
            (i, 0) => polygamma(i - 1, a + b) - polygamma(i - 1, a + 1.0),
            (0, j) => polygamma(j - 1, a + b) - polygamma(j - 1, b),
            (i, j) => polygamma(i + j - 1, a + b),
        };
        slope / (factorial(i) * factorial(j))
    };
    let weight = Jet::new(orders, logarithm).exp().scaled(weight(a, b, [x, y]) / a);
    (weight / betainc_fraction(a, b, [x, y], orders)).derivative()
}

/// Computes w / I(a, b, x) for the weight w = xᵃ yᵇ / (a B(a, b)), as a continued fraction.
///
/// The fraction is the even part of the fraction 8.17.22. Its first term λ = a y - b x is small near the mean, so a large a loses no
/// digits (A. R. DiDonato and A. H. Morris, "Significant digit computation of the incomplete beta function ratios", 1992, equation 9).
fn betainc_fraction(a: f64, b: f64, [x, y]: [f64; 2], orders: [usize; 2]) -> Jet {
    let linear = |value: f64, slopes: [f64; 2]| Jet::linear(orders, value, slopes);
    let number = |value: f64| linear(value, [0.0; 2]);
    let lambda = linear(y * a - x * b, [y, -x]);
    let first = (lambda + number(1.0)) / linear(a + 1.0, [1.0, 0.0]);
    continued_fraction(first, |n| {
        // The numbers in parentheses are computed before a is added, so that a small a loses fewer digits.
        let below = linear(a + (2.0 * n - 1.0), [1.0, 0.0]);
        let share = linear(n * (b - n) * x, [0.0, n * x]) / below;
        // The first numerator has no factor a, because w is divided by a.
        let factor = if n == 1.0 { number(1.0) } else { linear(a + (n - 1.0), [1.0, 0.0]) };
        let numerator = factor * linear(a + b + (n - 1.0), [1.0, 1.0]) * share.scaled(x) / below;
        let next = linear(a + n, [1.0, 0.0]) * (lambda + number(1.0 + n * (1.0 + y)));
        (numerator, number(n) + share + next / linear(a + (2.0 * n + 1.0), [1.0, 0.0]))
    })
}

/// Computes ln I(a, b, x) for 0 < x < 1 and y = 1 - x, also where I underflows. The second result is its derivative with respect to the
/// logit ln(x / y).
pub(crate) fn ln_betainc(a: f64, b: f64, [x, y]: [f64; 2]) -> [f64; 2] {
    let [exponent, factor] = weight_parts(a, b, [x, y]);
    if x > (a + 1.0) / (a + b + 2.0) {
        let value = 1.0 - lower_betainc(b, a, [y, x], [0, 0]);
        return [value.ln(), exponent.exp() * factor / value];
    }
    let slope = a * betainc_fraction(a, b, [x, y], [0, 0]).value();
    [exponent + (factor / slope).ln(), slope]
}

/// The number of degrees of freedom above which Student's t-distribution counts as the normal distribution for every z. The logarithms of
/// their tails at z differ by about z⁴ / (4 df). This is below the rounding error where the tails do not underflow.
pub(crate) const MAX_DF: f64 = 1e22;

/// Computes the distribution function of Student's t-distribution with `df` degrees of freedom at `z`. Small probabilities of the lower tail
/// keep their digits. NaN if `z` is NaN, and unless `df` is positive.
pub fn student_cdf(df: f64, z: f64) -> f64 {
    if df.is_nan() || df <= 0.0 || z.is_nan() {
        return f64::NAN;
    }
    // For fewer degrees of freedom than the bound, z decides whether the difference from the normal distribution is a rounding error.
    let quadratic = 1.0 + z * z;
    if df > MAX_DF || quadratic * quadratic <= 2.0 * f64::EPSILON * df {
        return log_ndtr(z).exp();
    }
    // The probability of values beyond ±z is the regularized incomplete beta function of df / (df + z²). One of df / z² and its inverse
    // is at most 1, and only this one is used. The other quotient may overflow.
    let (quotient, inverse) = ((df / z) / z, (z / df) * z);
    let x = [quotient / (1.0 + quotient), 1.0 / (1.0 + quotient)];
    let x = if inverse < 1.0 { [1.0 / (1.0 + inverse), inverse / (1.0 + inverse)] } else { x };
    let half = 0.5 * df;
    let tails = if x[0] == 0.0 {
        // x is too small for an f64: the first term of the power series, computed from logarithms.
        (half * (df.ln() - 2.0 * z.abs().ln()) - half.ln() - betaln(half, 0.5)).exp()
    } else {
        betainc(half, 0.5, x, [0, 0])
    };
    if z < 0.0 { 0.5 * tails } else { 1.0 - 0.5 * tails }
}
