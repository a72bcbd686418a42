//! The special functions of single numbers, in f64.

pub(crate) mod bessel;
pub(crate) mod beta;
pub(crate) mod gamma;
pub(crate) mod inverse;
pub(crate) mod jet;
pub(crate) mod large;
pub(crate) mod normal;

/// Evaluates a polynomial at `t`. The coefficient of the highest power comes first.
fn polynomial(t: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * t + c)
}
