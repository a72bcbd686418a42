//! The special functions of single numbers, in f64.

pub(crate) mod bessel;
pub(crate) mod beta;
pub(crate) mod gamma;
pub(crate) mod inverse;
pub(crate) mod jet;
pub(crate) mod large;
pub(crate) mod normal;
pub(crate) mod orthogonal;

/// Evaluates a polynomial at `t`. The coefficient of the highest power comes first.
fn polynomial(t: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * t + c)
}

/// Computes ln(1 + d) - d, accurately near 0. `sum` is 1 + d, passed by the caller because 1 + d computed from a d near -1 has few correct
/// digits.
pub(crate) fn log1p_minus(d: f64, sum: f64) -> f64 {
    if !(-0.4..0.6).contains(&d) {
        return sum.ln() - d;
    }
    // With r = d / (2 + d), ln(1 + d) = 2 artanh r = 2 r + 2 r³ / 3 + … The first term minus d is 2 r - d = -r d.
    let r = d / (2.0 + d);
    let square = r * r;
    let (mut power, mut sum) = (2.0 * square, 0.0);
    for k in 1..40 {
        let term = power / f64::from(2 * k + 1);
        sum += term;
        if term <= f64::EPSILON / 8.0 * sum {
            break;
        }
        power *= square;
    }
    r * (sum - d)
}
