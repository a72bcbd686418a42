//! The inverses of the incomplete gamma and beta functions, and the quantiles of Student's t-distribution.
//!
//! Both inverses search for the ln x or the logit of x at which the logarithm of a tail probability has a given value. In these variables the
//! densities are logarithmically concave, hence the tail probabilities too. For a concave monotonic function, Newton's method converges
//! from every start: after the first step it approaches the root from one side.

use super::beta::{MAX_DF, ln_betainc};
use super::gamma::{betaln, gamma_density, gammainc};
use super::normal::ndtri;
use libm::lgamma;

/// The logarithm of the smallest number above 0, 2⁻¹⁰⁷⁴, rounded down. The exponential of a number below it is 2⁻¹⁰⁷⁴ or 0.
const MIN_LOG: f64 = -744.5;

/// Finds the root u of `logarithm`(u) = `target` by Newton's method. `logarithm` returns a value and its derivative with respect to u. The
/// derivative has the sign `sign`.
fn solve_by_newton(start: f64, target: f64, sign: f64, logarithm: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut u = start;
    let mut previous_step = f64::INFINITY;
    for _ in 0..200 {
        // Below these bounds, eᵘ is at most the smallest number above 0. Above them, it is infinite.
        if u.abs() > -MIN_LOG {
            break;
        }
        let (value, slope) = logarithm(u);
        // If the tail probability underflows to 0, its logarithm is infinite, and the derivative may be NaN. Then the step is 2 in the
        // direction in which the probability grows.
        let is_regular = value.is_finite() && slope.is_finite() && slope != 0.0;
        let step = if is_regular { (target - value) / slope } else { sign * 2.0 };
        let step = step.clamp(-50.0, 50.0);
        u += step;
        // Ends when a step is as small as the rounding errors, because further steps would not be smaller.
        if step.abs() <= 2.0 * f64::EPSILON * u.abs() || step.abs() < 1e-13 && step.abs() >= previous_step {
            break;
        }
        previous_step = step.abs();
    }
    u
}

/// Computes the x at which the regularised incomplete gamma function with shape a equals p: the upper one if `upper` is true, else the
/// lower one. NaN unless a is positive and finite, and p is in [0, 1].
pub(crate) fn gammaincinv(a: f64, p: f64, upper: bool) -> f64 {
    if !(a > 0.0 && a.is_finite() && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if (p == 0.0) == upper { f64::INFINITY } else { 0.0 };
    }
    // Solves for the smaller of the two tail probabilities, because its logarithm is accurate.
    let (upper, p) = if p > 0.5 { (!upper, 1.0 - p) } else { (upper, p) };
    // The start is from E. B. Wilson and M. M. Hilferty (1931): the cube root of x is nearly normal. For small x, the lower tail
    // probability is nearly xᵃ / Γ(a + 1).
    let z = if upper { -ndtri(p) } else { ndtri(p) };
    let root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * a.sqrt());
    let share = if upper { (-p).ln_1p() } else { p.ln() };
    let start_near_zero = (share + lgamma(a + 1.0)) / a;
    let start = if root > 0.3 { a.ln() + 3.0 * root.ln() } else { start_near_zero };
    if start < MIN_LOG {
        return 0.0;
    }
    let sign = if upper { -1.0 } else { 1.0 };
    let u = solve_by_newton(start, p.ln(), sign, |u| {
        let x = u.exp();
        let tail = gammainc(a, x, upper, 0);
        (tail.ln(), sign * gamma_density(a, x) * x / tail)
    });
    u.exp()
}

/// Computes the x at which the regularised incomplete beta function with parameters a and b equals p. NaN unless a, b > 0, a + b is finite,
/// and p is in [0, 1].
pub(crate) fn betaincinv(a: f64, b: f64, p: f64) -> f64 {
    if !(a > 0.0 && b > 0.0 && (a + b).is_finite() && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return p;
    }
    parts_of_logit(logit_of_betaincinv(a, b, [p, 1.0 - p]))[0]
}

/// Returns x and y = 1 - x for the logit t = ln(x / y).
fn parts_of_logit(t: f64) -> [f64; 2] {
    [1.0 / (1.0 + (-t).exp()), 1.0 / (1.0 + t.exp())]
}

/// Computes the logit ln(x / (1 - x)) of the x at which the regularised incomplete beta function with parameters a and b equals p. The
/// caller passes p and q = 1 - p, both above 0, so that neither loses digits near 0.
pub(crate) fn logit_of_betaincinv(a: f64, b: f64, [p, q]: [f64; 2]) -> f64 {
    // Solves for the smaller of the two tail probabilities, because its logarithm is accurate.
    if p > q {
        return -logit_of_betaincinv(b, a, [q, p]);
    }
    // For x near 0, the tail probability is nearly xᵃ / (a B(a, b)). The logarithm of the tail probability is a concave function of the
    // logit, so it is below this asymptote. Therefore Newton's method converges from the root of the asymptote.
    let root = (p.ln() + a.ln() + betaln(a, b)) / a;
    // For an x this small, the asymptote is exact: the next term of the tail probability's power series is below the rounding error.
    if root + b.ln_1p() < -40.0 && root < -40.0 {
        return root;
    }
    // If neither parameter is small, the logit is nearly normal, which gives a nearer start.
    let is_normal = a >= 1.0 && b >= 1.0;
    let start = if is_normal { (a / b).ln() + ndtri(p) * (1.0 / a + 1.0 / b).sqrt() } else { root };
    solve_by_newton(start.clamp(MIN_LOG, -MIN_LOG), p.ln(), 1.0, |t| {
        let [value, slope] = ln_betainc(a, b, parts_of_logit(t));
        (value, slope)
    })
}

/// Computes the quantile function of Student's t-distribution with `df` degrees of freedom at `p`. NaN unless `df` is positive, and `p` is
/// in [0, 1].
pub fn student_icdf(df: f64, p: f64) -> f64 {
    if !(df > 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    let (tail, sign) = if p < 0.5 { (p, -1.0) } else { (1.0 - p, 1.0) };
    if tail == 0.0 || tail == 0.5 || df > MAX_DF {
        return ndtri(p);
    }
    // The probability of values beyond ±z is the incomplete beta function of df / (df + z²), whose logit is ln(df / z²).
    let logit = logit_of_betaincinv(0.5 * df, 0.5, [2.0 * tail, (2.0 * p - 1.0).abs()]);
    sign * (0.5 * (df.ln() - logit)).exp()
}
