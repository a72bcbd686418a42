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
    let gradient = &point.gradient;
    let size: f64 = gradient.iter().map(|g| g.abs()).sum();
    let tolerance = size * size.sqrt().min(0.5);
    let mut d = vec![0.0; gradient.len()];
    let mut residual = gradient.clone();
    let mut p: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut square = dot(&residual, &residual);
    for iteration in 0..20 * gradient.len() {
        if residual.iter().map(|r| r.abs()).sum::<f64>() <= tolerance {
            break;
        }
        let hp = objective.hessian_times(&point.x, &p)?;
        let curvature = dot(&p, &hp);
        if curvature.is_nan() || curvature <= 3.0 * f64::EPSILON * dot(&p, &p) {
            if iteration == 0 {
                // The function curves down or hardly curves along the gradient. A negative curvature sets the length of
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
