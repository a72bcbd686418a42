//! Central differences with an estimate of their error.
//!
//! This file computes estimates from sampled values, which are lists of numbers. It uses no tapes and no tensors. `map.rs` evaluates the
//! function.
//!
//! # The step
//!
//! The central difference of a function φ, C(h) = (φ(x+h) - φ(x-h)) / 2h, has two errors: h²/6 φ‴ from truncation, and
//! about σ/h from rounding. Here σ is the rounding error of one value of φ. It is at best ε|φ|, where ε is the machine
//! epsilon. The sum of both errors is smallest near h = ∛(3σ/|φ‴|). If φ has size, scale and curvature 1, this is about
//! ∛ε (Press et al., "Numerical Recipes", 5.7). The step here is h = ∛ε max(1, |x|). A larger step would suit the
//! extrapolation below, but would cross more kinks.
//!
//! # The value
//!
//! The function is evaluated at x, x ± h, x ± rh and x ± r²h, where r is the golden ratio. The distances have no common
//! divisor, so the roundings are unrelated. Richardson's extrapolation cancels the term in h². With r² = r + 1 it is
//! R = r C(h) - C(rh)/r.
//!
//! # The tolerance
//!
//! Truncation: |C(h) - C(rh)| = r h²/6 |φ‴|. This is more than the error of C(h), and far more than the error of R.
//!
//! Rounding: a combination of values that cancels all terms up to h³ leaves two parts. One is a remainder of a smooth function, of the
//! order of h⁴φ⁗ ≈ 10⁻²¹. The other is the rounding of the values. The combination, divided by the root of the sum of its squared
//! coefficients, estimates σ, as in J. J. Moré and S. M. Wild, "Estimating computational noise" (2011). With the second difference
//! E(h) = φ(x+h) + φ(x-h) - 2φ(x), the combinations are:
//!
//! | combination | its standard deviation in σ |
//! |---|---|
//! | E(rh) - r² E(h), and E(r²h) - r² E(rh) | √(2 + 2r⁴ + 4r²) = 5.117 |
//! | R(h) - R(rh), times h | √((r² + 5/r² + 1/r⁶) / 2) = 1.514 |
//!
//! σ is the largest of the three estimates, but at least ε|φ|. It is also at least the median over all inputs that φ depends on, in case
//! all three estimates are small by chance. R itself has a standard deviation of 1.18 σ/h, where 1.18 is √((r² + 1/r⁴) / 2). The tolerance
//! is:
//!
//! ```text
//! |expected - got| ≤ |C(h) - C(rh)| + 8 σ/h + a max(|expected|, s)
//! ```
//!
//! The last term covers rounding in the derivative's own formula. The factor a is 64 ε by default, enough for 64 roundings. Terms of the
//! formula may cancel, for example in the derivative of x/x. So they are assumed to have the size s. This is the largest magnitude of the
//! values of the function, and at order 2 also of its derivatives, but at least 1.

/// The golden ratio.
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// The distances of the evaluation points from x, in steps. At each distance there is one point on either side of x.
pub(super) const STEP_MULTIPLES: [f64; 3] = [1.0, GOLDEN_RATIO, GOLDEN_RATIO * GOLDEN_RATIO];

/// The values of the function around a point, along one direction. Each list has the elements of all outputs.
pub(super) struct Samples {
    /// The values to the left and to the right of the point, at each of [`STEP_MULTIPLES`].
    pub(super) pairs: [[Vec<f64>; 2]; 3],
    /// The step of each pair of points. If the direction moves a single element, it is half the actual distance between the two points,
    /// because x + h is rounded. If the direction moves many elements, it is the step h itself.
    pub(super) steps: [f64; 3],
}

/// An estimate of one derivative by central differences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// A bound of the estimate's error, plus the rounding error of the formula that is compared with it.
    pub(super) tolerance: f64,
    /// The slopes of the function on the left side and on the right side of the point.
    pub(super) slopes: [f64; 2],
    /// True if the function seems to have a kink at the point.
    pub(super) is_kink: bool,
}

/// The part of the tolerance that covers rounding, in multiples of σ/h. Here σ is the rounding error of a value of the function, and h is
/// the step.
const NOISE_FACTOR: f64 = 8.0;

/// Estimates the derivatives of Σ weights · outputs, a weighted sum of the function's outputs, along every sampled direction.
///
/// `accuracy` is the relative accuracy of the formulas that are compared with these estimates. `scale` is the size of
/// the terms of these formulas that may cancel.
pub(super) fn estimates(
    centre: &[f64],
    samples: &[Samples],
    weights: &[(usize, f64)],
    epsilon: f64,
    accuracy: f64,
    scale: f64,
) -> Vec<Estimate> {
    let weighted_sum = |values: &[f64]| -> f64 { weights.iter().map(|&(k, weight)| weight * values[k]).sum() };
    let weighted_size = |values: &[f64]| -> f64 { weights.iter().map(|&(k, weight)| (weight * values[k]).abs()).sum() };
    let middle = weighted_sum(centre);
    let raw: Vec<(Estimate, f64)> = samples
        .iter()
        .map(|Samples { pairs, steps }| {
            let pairs = pairs.each_ref().map(|pair| pair.each_ref().map(|values| weighted_sum(values)));
            let slope = |k: usize| (pairs[k][1] - pairs[k][0]) / (2.0 * steps[k]);
            let extrapolated = |k: usize| {
                let square = (steps[k + 1] / steps[k]).powi(2);
                slope(k) + (slope(k) - slope(k + 1)) / (square - 1.0)
            };
            let second = |k: usize| pairs[k][0] + pairs[k][1] - 2.0 * middle;
            let square = GOLDEN_RATIO * GOLDEN_RATIO;
            let even = (2.0 + 2.0 * square * square + 4.0 * square).sqrt();
            let odd = ((square + 5.0 / square + square.powi(-3)) / 2.0).sqrt();
            let noise = [
                (second(1) - square * second(0)) / even,
                (second(2) - square * second(1)) / even,
                (extrapolated(0) - extrapolated(1)) * steps[0] / odd,
            ];
            let estimate = Estimate {
                value: extrapolated(0),
                tolerance: (slope(0) - slope(1)).abs() + accuracy * extrapolated(0).abs().max(scale),
                slopes: [(middle - pairs[0][0]) / steps[0], (pairs[0][1] - middle) / steps[0]],
                is_kink: is_kink(*steps, [0, 1, 2].map(second)),
            };
            (estimate, noise.into_iter().map(f64::abs).fold(0.0, f64::max))
        })
        .collect();
    // The median leaves out inputs on which the function does not depend, because their estimated rounding error is 0.
    let typical = median(raw.iter().map(|&(_, noise)| noise).filter(|&noise| noise > 0.0).collect());
    raw.into_iter()
        .zip(samples)
        .map(|((estimate, noise), sample)| {
            let largest = sample
                .pairs
                .as_flattened()
                .iter()
                .map(|values| weighted_size(values))
                .fold(weighted_size(centre), f64::max);
            let noise = noise.max(typical).max(epsilon * largest);
            let [left, right] = estimate.slopes;
            let is_kink = estimate.is_kink && (right - left).abs() > NOISE_FACTOR * epsilon * largest / sample.steps[0];
            Estimate { tolerance: estimate.tolerance + NOISE_FACTOR * noise / sample.steps[0], is_kink, ..estimate }
        })
        .collect()
}

/// Returns true if the slopes on the left and on the right of a point differ, and their difference hardly grows with the distance from the
/// point. Compares the smallest and the largest distance. At a smooth point, the difference is the curvature times the distance.
/// `second_differences` has E(h) = f(x + h) + f(x - h) - 2 f(x) for each distance h.
fn is_kink(steps: [f64; 3], second_differences: [f64; 3]) -> bool {
    // E(h)/h is the difference of the slopes.
    let differences = [second_differences[0] / steps[0], second_differences[2] / steps[2]].map(f64::abs);
    // The quotient is 1 at a kink. At a smooth point, it is the quotient of the distances. The limit is halfway between these numbers.
    differences[0] > 0.0 && differences[1] / differences[0] < f64::midpoint(1.0, steps[2] / steps[0])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function and a point.
    type AtPoint = (fn(f64) -> f64, f64);

    fn derivative(f: impl Fn(f64) -> f64, x: f64) -> Estimate {
        let h = f64::EPSILON.cbrt() * x.abs().max(1.0);
        let pairs = STEP_MULTIPLES.map(|distance| [-h, h].map(|step| vec![f(x + distance * step)]));
        let samples = Samples { pairs, steps: STEP_MULTIPLES.map(|distance| distance * h) };
        estimates(&[f(x)], &[samples], &[(0, 1.0)], f64::EPSILON, 64.0 * f64::EPSILON, 1.0)[0]
    }

    #[test]
    fn curvature_is_no_kink() {
        let smooth: [AtPoint; 6] = [
            (|x| x * x, 0.0),
            (|x| x * x, 1e-3),
            (f64::cos, 0.0),
            (|x| x * x * x, 0.0),
            (|x| 1e-3 * x + 1.0, 0.0),
            (|_| 0.1, 0.0),
        ];
        for (k, (f, x)) in smooth.into_iter().enumerate() {
            assert!(!derivative(f, x).is_kink, "case {k}: {:?}", derivative(f, x));
        }
        let kinks: [AtPoint; 4] = [
            (f64::abs, 0.0),
            (|x| x.max(0.0), 0.0),
            (|x| 1e-5 * x.abs() + x * x, 0.0),
            // The kink is half a step away from the point.
            (|x| (x - 1.0).abs(), 1.0 + 3e-6),
        ];
        for (k, (f, x)) in kinks.into_iter().enumerate() {
            assert!(derivative(f, x).is_kink, "case {k}: {:?}", derivative(f, x));
        }
    }

    #[test]
    fn the_tolerance_covers_the_error_and_is_not_wide() {
        type Case = (fn(f64) -> f64, fn(f64) -> f64);
        let cases: [Case; 7] = [
            (f64::sin, f64::cos),
            (f64::exp, f64::exp),
            (|x| 1.0 / x, |x| -1.0 / (x * x)),
            (|x| x.powi(7), |x| 7.0 * x.powi(6)),
            (|x| (30.0 * x).sin(), |x| 30.0 * (30.0 * x).cos()),
            // Here cancellation costs six digits, and the check must detect this noise.
            (|x| (1e6 + x.sin()) - 1e6, f64::cos),
            (|x| x.exp().ln(), |_| 1.0),
        ];
        for (k, (f, df)) in cases.iter().enumerate() {
            for i in 0..200 {
                let x = 0.2 + 0.013 * f64::from(i);
                let estimate = derivative(f, x);
                let error = (estimate.value - df(x)).abs();
                assert!(error <= estimate.tolerance, "case {k} at {x}: off by {error:e}, {estimate:?}");
                // Cases count from 0. In case 4, |C(h) - C(rh)| is up to r 30³ h²/6 = 3e-7 for x ≤ 1, and grows with x². In case 5, the
                // function adds and subtracts 1e6, which leaves only ten decimals of its value.
                let allowed = [1e-8, 1e-8, 1e-8, 1e-6, 1e-6, 1e-3, 1e-8][k] * df(x).abs().max(f(x).abs()).max(1.0);
                assert!(estimate.tolerance < allowed, "case {k} at {x}: {estimate:?}");
            }
        }
    }
}
