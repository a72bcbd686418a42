//! The normal distribution function, its logarithm and its inverse; the scaled complementary error function.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

use libm::{erf, erfc};

use super::polynomial;

/// Computes exp(`factor` x²). x² is kept as a sum of two numbers: the exponential would turn the rounding error of one number into a large
/// relative error. `factor` is a power of 2, positive or negative.
fn exp_of_square(x: f64, factor: f64) -> f64 {
    let square = x * x;
    let rest = x.mul_add(x, -square);
    (factor * square).exp() * if rest.is_finite() { 1.0 + factor * rest } else { 1.0 }
}

/// Computes exp(x²) erfc x, which overflows for x < -26.63.
///
/// For x ≥ 10 the function sums the asymptotic series (NIST Digital Library of Mathematical Functions, 7.12.1).
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < -26.7 {
        return f64::INFINITY;
    }
    if x < 10.0 || x.is_nan() {
        return exp_of_square(x, 1.0) * erfc(x);
    }
    let (w, mut term, mut sum) = (0.5 / (x * x), 1.0, 1.0);
    for k in 1..60 {
        term *= -f64::from(2 * k - 1) * w;
        sum += term;
        if term.abs() <= f64::EPSILON / 8.0 {
            break;
        }
    }
    sum / (x * PI.sqrt())
}

/// Computes ln Φ(x), where Φ is the distribution function of the standard normal distribution.
pub(crate) fn log_ndtr(x: f64) -> f64 {
    if x < -1.0 {
        return (0.5 * erfcx(-x * FRAC_1_SQRT_2)).ln() - 0.5 * x * x;
    }
    if x < 1.0 || x.is_nan() {
        return (-0.5 * erfc(x * FRAC_1_SQRT_2)).ln_1p();
    }
    (-0.5 * erfcx(x * FRAC_1_SQRT_2) * exp_of_square(x, -0.5)).ln_1p()
}

/// Computes ln(1 - eˣ). NaN above 0, -∞ at 0 (M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012).
pub(crate) fn log1mexp(x: f64) -> f64 {
    if x > -LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// Computes the inverse of Φ, the standard normal distribution function, at the probability p: -∞ at 0, ∞ at 1, NaN outside of [0, 1].
///
/// Halley's method improves the rational approximation of Abramowitz and Stegun, 26.2.23. In the middle the steps solve an equation with
/// the error function, which keeps the digits of p - 1/2. In the tails they solve an equation with ln Φ, which is nearly a parabola there.
pub(crate) fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let (tail, sign) = if p <= 0.5 { (p, 1.0) } else { (1.0 - p, -1.0) };
    if tail == 0.0 {
        return -sign * f64::INFINITY;
    }
    let distance = 2.0 * (p - 0.5);
    let t = (-2.0 * tail.ln()).sqrt();
    let numerator = polynomial(t, &[0.010_328, 0.802_853, 2.515_517]);
    let mut y = numerator / polynomial(t, &[0.001_308, 0.189_269, 1.432_788, 1.0]) - t;
    for _ in 0..8 {
        // The step of Newton's method, and half of the quotient of the second and the first derivative.
        let (step, curvature) = if tail > 0.1 {
            let density = (-0.5 * y * y).exp() / (2.0 * PI).sqrt();
            ((-distance.abs() - erf(y * FRAC_1_SQRT_2)) / (2.0 * density), -0.5 * y)
        } else {
            let scaled = erfcx(-y * FRAC_1_SQRT_2);
            let slope = (2.0 / PI).sqrt() / scaled;
            ((tail.ln() - ((0.5 * scaled).ln() - 0.5 * y * y)) / slope, -0.5 * (y + slope))
        };
        y += step / (1.0 + step * curvature);
        // The error after a step is proportional to the cube of the step.
        if step.abs() <= 1e-6 * y.abs() {
            break;
        }
    }
    if p == 0.5 { 0.0 } else { sign * y }
}
