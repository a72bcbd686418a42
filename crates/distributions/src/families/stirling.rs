//! Logarithms of gamma and beta densities, and entropies, where parameters are large.
//!
//! The usual formulas are sums of terms of the size a ln a, which nearly cancel. The formulas here replace ln Γ and its derivative ψ by
//! Stirling's series. Then the large terms cancel before any rounding.
//!
//! ```text
//! ln Γ(a) = (a - ½) ln a - a + ½ ln 2π + δ(a),  δ(a) = 1 / 12a - 1 / 360a³ + 1 / 1260a⁵ - …
//! ψ(a) = ln a - 1 / 2a - 1 / 12a² + 1 / 120a⁴ - …
//! ```
//!
//! The series are in Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.1.41 and 6.3.18. C. Loader computes binomial probabilities
//! in this way: "Fast and accurate computation of binomial probabilities" (2000).

use wengert_special::Array;
use wengert_tensor::ops::{Comparison, Result, try_where_};

use super::LN_SQRT_2PI;
use crate::expression::{Expr, expr};
use crate::support::fill_masked;

/// Parameters above this number are large. Here the first term that the series omit is below 1e-14.
const LARGE: f64 = 100.0;

/// Returns δ(a) = 1 / 12a - 1 / 360a³ + 1 / 1260a⁵ - …, the last part of Stirling's series, for large `a`.
fn stirling_error<A: Array>(a: &A) -> Result<Expr<A>, A::Error> {
    let h = (1.0 / expr(a)).get()?;
    let square = (expr(&h) * &h).get()?;
    Ok(((expr(&square) / 1260.0 - 1.0 / 360.0) * &square + 1.0 / 12.0) * &h)
}

/// Returns a (u - ln(1 + u)), where `u` is the relative difference of a number and a.
fn deviance<A: Array>(a: &A, u: &A) -> Expr<A> {
    (expr(u) - expr(u).ln_1p()) * a
}

/// Returns (a - 1) ln y - y - ln Γ(a), and before it the mask of the elements at which the number is right: `a` is large, and `y` is above
/// a / 2. The other numbers have no meaning.
pub(crate) fn large_gamma_weight<A: Array>(a: &A, y: &A) -> Result<(A::Mask, A), A::Error> {
    let is_large = a.try_gt(LARGE)?.try_logical_and(&(expr(y) * 2.0).get()?.try_gt(a)?)?;
    let other = is_large.try_logical_not()?;
    // Elements with another formula get numbers for which this formula has finite derivatives.
    let [a, y] = [a, y].map(|x| fill_masked(x.clone(), std::slice::from_ref(&other), LARGE));
    let (a, y) = (a?, y?);
    let u = ((expr(&y) - &a) / &a).get()?;
    let weight = expr(&a).ln() * 0.5 - LN_SQRT_2PI - expr(&y).ln() - deviance(&a, &u) - stirling_error(&a)?;
    Ok((is_large, weight.get()?))
}

/// Returns (a + b) x - a. For x above ½, it is computed from 1 - x, which is exact, because b may be much smaller than a.
fn distance_from_mean<A: Array>(a: &A, b: &A, x: &A) -> Result<A> {
    let total = (expr(a) + b).get()?;
    let (low, high) = (expr(x) * &total - a, expr(b) - (1.0 - expr(x)) * &total);
    try_where_(x.try_gt(0.5)?, &high.get()?, &low.get()?)
}

/// Returns (a - 1) ln x + (b - 1) ln(1 - x) - ln B(a, b), and before it the mask of the elements at which the number is right: `a` and `b` are
/// large, and `x` is near the mean a / (a + b). The other numbers have no meaning.
pub(crate) fn large_beta_weight<A: Array>(a: &A, b: &A, x: &A) -> Result<(A::Mask, A), A::Error> {
    let difference = distance_from_mean(a, b, x)?;
    let near = |difference: Expr<A>, mean: &A| difference.get()?.try_gt(&(expr(mean) * -0.5).get()?);
    let is_large = a.try_gt(LARGE)?.try_logical_and(&b.try_gt(LARGE)?)?;
    let is_large =
        is_large.try_logical_and(&near(expr(&difference), a)?.try_logical_and(&near(-expr(&difference), b)?)?)?;
    let other = is_large.try_logical_not()?;
    // Elements with another formula get numbers for which this formula has finite derivatives.
    let filled = |x: &A, value: f64| fill_masked(x.clone(), std::slice::from_ref(&other), value);
    let (a, b, x) = (filled(a, LARGE)?, filled(b, LARGE)?, filled(x, 0.5)?);
    let total = (expr(&a) + &b).get()?;
    let difference = distance_from_mean(&a, &b, &x)?;
    let (u, v) = ((expr(&difference) / &a).get()?, (-expr(&difference) / &b).get()?);
    let logarithms = (expr(&a).ln() + expr(&b).ln() - expr(&total).ln()) * 0.5 - expr(&x).ln() - (-expr(&x)).ln_1p();
    let errors = stirling_error(&a)? + &stirling_error(&b)?.get()? - stirling_error(&total)?;
    let weight = logarithms - LN_SQRT_2PI - deviance(&a, &u) - deviance(&b, &v) - errors;
    Ok((is_large, weight.get()?))
}

/// Returns a + ln Γ(a) + (1 - a) ψ(a), the entropy of the gamma distribution with the concentration `a` and the rate 1.
pub(crate) fn gamma_entropy<A: Array>(a: &A) -> Result<A> {
    let is_large = a.try_gt(LARGE)?;
    let h = (1.0 / Expr::from(try_where_(&is_large, a, LARGE))).get()?;
    let series = [1.0 / 120.0, -1.0 / 90.0, -1.0 / 12.0, -1.0 / 3.0];
    let series = series.into_iter().fold(expr(&h) / 210.0, |sum, term| (sum + term) * &h);
    let large = series - expr(&h).ln() * 0.5 + (LN_SQRT_2PI + 0.5);
    let small = fill_masked(a.clone(), std::slice::from_ref(&is_large), 1.0)?;
    let direct = expr(&small) + expr(&small).gammaln() + (1.0 - expr(&small)) * expr(&small).digamma();
    try_where_(&is_large, &large.get()?, &direct.get()?)
}
