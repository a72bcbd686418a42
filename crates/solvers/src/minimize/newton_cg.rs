//! The direction of Newton's method, by conjugate gradients with products of the Hessian and vectors.
//!
//! R. S. Dembo and T. Steihaug, "Truncated-Newton algorithms for large-scale unconstrained optimization" (1983), with the tolerance of
//! SciPy's `Newton-CG`.

use wengert_tensor::Float;

use super::objective::{Objective, Point};
use crate::error::Result;
use crate::evaluate::dot;

/// Returns d with H d ≈ -g for the Hessian H and the gradient g. The iteration also ends at a direction whose curvature is not positive. If
/// this is the first direction, -g, returns a multiple of it.
pub(super) fn direction<T: Float>(objective: &mut Objective<'_, T>, point: &Point) -> Result<Vec<f64>> {
    let size: f64 = point.gradient.iter().map(|g| g.abs()).sum();
    // Squares of the gradient, and products with the Hessian, must not overflow. If the gradient is divided by a number, so is the
    // direction. A power of 2 changes no digits.
    let unit = if size > 1.0 && size.is_finite() { 2f64.powi(size.log2() as i32) } else { 1.0 };
    let gradient: Vec<f64> = point.gradient.iter().map(|g| g / unit).collect();
    let direction = direction_of_gradient(objective, &point.x, &gradient, size / unit * size.sqrt().min(0.5))?;
    Ok(direction.into_iter().map(|d| d * unit).collect())
}

/// Returns d with H d ≈ -`gradient` for the Hessian H at the point `x`. The sum of the absolute values of the residual H d + `gradient` is
/// at most `tolerance`, unless the iteration ends early.
fn direction_of_gradient<T: Float>(
    objective: &mut Objective<'_, T>,
    x: &[f64],
    gradient: &[f64],
    tolerance: f64,
) -> Result<Vec<f64>> {
    let mut d = vec![0.0; gradient.len()];
    let mut residual = gradient.to_vec();
    let mut p: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut square = dot(&residual, &residual);
    for iteration in 0..20 * gradient.len() {
        if residual.iter().map(|r| r.abs()).sum::<f64>() <= tolerance {
            break;
        }
        let hp = objective.hessian_times(x, &p)?;
        let curvature = dot(&p, &hp);
        if curvature.is_nan() || curvature <= 3.0 * f64::EPSILON * dot(&p, &p) {
            if iteration == 0 {
                // The curvature along the gradient is negative, close to 0 or NaN. A negative curvature sets the length of
                // the step. Otherwise the step is the negative gradient.
                let scale = if curvature < 0.0 { square / -curvature } else { 1.0 };
                return Ok(p.iter().map(|p| p * scale).collect());
            }
            break;
        }
        let step_length = square / curvature;
        d.iter_mut().zip(&p).for_each(|(d, p)| *d += step_length * p);
        residual.iter_mut().zip(&hp).for_each(|(residual, hp)| *residual += step_length * hp);
        let next = dot(&residual, &residual);
        p.iter_mut().zip(&residual).for_each(|(p, residual)| *p = next / square * *p - residual);
        square = next;
    }
    Ok(d)
}
