//! Bessel functions of integer order: the modified functions of the first kind, and the functions of the first and second kind.

use std::f64::consts::PI;

/// Computes the Bessel function of the first kind Jₙ(x), where n is `order`. It is 0 at ±∞.
pub(crate) fn bessel_j(order: usize, x: f64) -> f64 {
    match order {
        0 => libm::j0(x),
        1 => libm::j1(x),
        _ => libm::jn(i32::try_from(order).unwrap_or(i32::MAX), x),
    }
}

/// Computes the Bessel function of the second kind Yₙ(x), where n is `order`. It is -∞ at 0, NaN below, and 0 at ∞.
pub(crate) fn bessel_y(order: usize, x: f64) -> f64 {
    match order {
        // The pole does not depend on the sign of 0.
        _ if x == 0.0 => f64::NEG_INFINITY,
        0 => libm::y0(x),
        1 => libm::y1(x),
        _ => libm::yn(i32::try_from(order).unwrap_or(i32::MAX), x),
    }
}

/// Computes the modified Bessel function Iₙ(x), where n is `order`. Multiplies it by exp(-|x|) if `scaled` is true.
///
/// For |x| ≤ 30 + n²/2 the function sums the power series, whose terms are all positive (NIST Digital Library of Mathematical Functions,
/// 10.25.2). Otherwise it sums the asymptotic series (10.40.1).
pub(crate) fn bessel_i(order: usize, x: f64, scaled: bool) -> f64 {
    let (size, n) = (x.abs(), order as f64);
    let sign = if x < 0.0 && order % 2 == 1 { -1.0 } else { 1.0 };
    if x.is_nan() {
        return x;
    }
    if size.is_infinite() {
        return sign * if scaled { 0.0 } else { f64::INFINITY };
    }
    if size <= 30.0 + n * n / 2.0 {
        let (quarter, mut term) = (size * size / 4.0, 1.0);
        let start = (1..=order).fold(1.0, |product, k| product * (size / 2.0) / k as f64);
        let mut sum = 1.0;
        for k in 1..10_000 {
            let k = f64::from(k);
            term *= quarter / (k * (k + n));
            sum += term;
            if term <= f64::EPSILON / 8.0 * sum {
                break;
            }
        }
        return sign * start * sum * if scaled { (-size).exp() } else { 1.0 };
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..1000 {
        let k = f64::from(k);
        let odd = 2.0 * k - 1.0;
        let next = -term * (4.0 * n * n - odd * odd) / (8.0 * k * size);
        if next.abs() > f64::abs(term) || next.abs() <= f64::EPSILON / 8.0 * sum {
            break;
        }
        term = next;
        sum += term;
    }
    let scaled_value = sign * sum / sqrt_two_pi_times(size);
    // Multiplies by the root of eˣ twice, because eˣ overflows at smaller x than the result does.
    let half = (size / 2.0).exp();
    if scaled { scaled_value } else { scaled_value * half * half }
}

/// Computes exp(-|x|) (Iₙ₊₁(|x|) - Iₙ(|x|)), where n is `order`. For large x, the function subtracts the asymptotic series of both Bessel
/// functions term by term. In a difference of the two sums, the equal first terms would cancel most digits.
pub(crate) fn bessel_step(order: usize, x: f64) -> f64 {
    let (size, n) = (x.abs(), order as f64);
    if size.is_nan() || size <= 30.0 + (n + 1.0) * (n + 1.0) / 2.0 {
        return bessel_i(order + 1, size, true) - bessel_i(order, size, true);
    }
    let (mut terms, mut sum) = ([1.0, 1.0], 0.0);
    for k in 1..1000 {
        let k = f64::from(k);
        let odd = 2.0 * k - 1.0;
        let next = [n + 1.0, n].map(|n| -(4.0 * n * n - odd * odd) / (8.0 * k * size));
        let next = [next[0] * terms[0], next[1] * terms[1]];
        let is_growing = next[0].abs() > f64::abs(terms[0]) || next[1].abs() > f64::abs(terms[1]);
        let change: f64 = next[0] - next[1];
        if is_growing || change.abs() <= f64::EPSILON / 8.0 * f64::abs(sum) {
            break;
        }
        (terms, sum) = (next, sum + change);
    }
    sum / sqrt_two_pi_times(size)
}

/// Computes √(2π · size), also where the product overflows.
fn sqrt_two_pi_times(size: f64) -> f64 {
    if size < 1e300 { (2.0 * PI * size).sqrt() } else { (2.0 * PI).sqrt() * size.sqrt() }
}
