//! The direction of the BFGS method: minus the product of an approximation of the inverse Hessian and the gradient.
//!
//! J. Nocedal and S. J. Wright, "Numerical optimization" (2006), algorithm 6.1. The first update scales the identity by equation 6.20.

use super::objective::Point;
use crate::evaluate::dot;

/// The approximation of the inverse Hessian, symmetric, `[n, n]`. `None` stands for the identity before the first update.
#[derive(Default)]
pub(super) struct Bfgs {
    inverse: Option<Vec<f64>>,
}

impl Bfgs {
    /// Returns the direction at a point with this gradient.
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        match &self.inverse {
            None => gradient.iter().map(|g| -g).collect(),
            Some(inverse) => inverse.chunks(gradient.len()).map(|row| -dot(row, gradient)).collect(),
        }
    }

    /// Returns true if no update has been made since the start or the last reset. The length of the direction then has no meaning.
    pub(super) fn is_new(&self) -> bool {
        self.inverse.is_none()
    }

    /// Forgets all updates.
    pub(super) fn reset(&mut self) {
        self.inverse = None;
    }

    /// Updates the approximation with the change of the gradient between two points. Does nothing if the curvature
    /// between the points is NaN, negative or nearly 0.
    pub(super) fn update(&mut self, old: &Point, new: &Point) {
        let s: Vec<f64> = new.x.iter().zip(&old.x).map(|(new, old)| new - old).collect();
        let y: Vec<f64> = new.gradient.iter().zip(&old.gradient).map(|(new, old)| new - old).collect();
        let (n, curvature) = (s.len(), dot(&s, &y));
        if curvature.is_nan() || curvature <= f64::EPSILON * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            return;
        }
        let inverse = self.inverse.get_or_insert_with(|| {
            let scale = curvature / dot(&y, &y);
            (0..n * n).map(|i| if i % (n + 1) == 0 { scale } else { 0.0 }).collect()
        });
        let hy: Vec<f64> = inverse.chunks(n).map(|row| dot(row, &y)).collect();
        let factor = (1.0 + dot(&y, &hy) / curvature) / curvature;
        for (row, (s_i, hy_i)) in inverse.chunks_mut(n).zip(s.iter().zip(&hy)) {
            for (h, (s_j, hy_j)) in row.iter_mut().zip(s.iter().zip(&hy)) {
                *h += factor * s_i * s_j - (hy_i * s_j + s_i * hy_j) / curvature;
            }
        }
    }
}
