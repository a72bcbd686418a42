//! Steps of explicit Runge-Kutta methods.

use wengert_tensor::Float;

use super::field::Field;
use super::tableau::{Tableau, interpolation_weight};
use crate::error::Result;

/// The number of elements that [`add_scaled_slopes`] computes at a time. 512 numbers of each slope are at most 32 KiB, so they stay in the
/// first-level cache.
const BLOCK: usize = 512;

/// The state and the slopes of a Runge-Kutta method.
pub(super) struct Explicit<T> {
    tableau: &'static Tableau,
    /// The slopes of the stages. The first is the slope at the start of the step, the last at its end.
    slopes: Vec<Vec<T>>,
    /// The state of the stage that was computed last. After a step, this is the new state.
    stage: Vec<T>,
}

impl<T: Float> Explicit<T> {
    pub(super) fn new(tableau: &'static Tableau) -> Self {
        Explicit { tableau, slopes: vec![Vec::new(); tableau.rows.len() + 1], stage: Vec::new() }
    }

    /// Computes the slope at the first state.
    pub(super) fn start(&mut self, field: &mut Field<'_, T>, t: f64, y: &[T]) -> Result<()> {
        field.slope(t, y, &mut self.slopes[0])
    }

    /// Returns the slope at the start of the next step.
    pub(super) fn first_slope(&self) -> &[T] {
        &self.slopes[0]
    }

    /// Computes the state after a step of length `h` from the state `y` at time `t`, and stores it as the new state.
    pub(super) fn step(&mut self, field: &mut Field<'_, T>, t: f64, h: f64, y: &[T]) -> Result<()> {
        for (number, (row, node)) in self.tableau.rows.iter().zip(self.tableau.nodes).enumerate() {
            add_scaled_slopes(y, h, row.iter().copied().zip(&self.slopes), &mut self.stage);
            field.slope(t + node * h, &self.stage, &mut self.slopes[number + 1])?;
        }
        Ok(())
    }

    /// Returns the state after the last step.
    pub(super) fn new_state(&self) -> &[T] {
        &self.stage
    }

    /// Returns the error estimate of the last step, which began at `y`, divided by the tolerance. It is the root of the
    /// mean of (eᵢ / (atol + rtol max(|yᵢ|, |zᵢ|)))² for the estimate e and the new state z. It is NaN if the new state
    /// is not finite (Hairer, Nørsett and Wanner, "Solving ordinary differential equations I", 1993, equations II.4.10
    /// and II.4.11).
    pub(super) fn error(&self, h: f64, y: &[T], rtol: f64, atol: f64) -> f64 {
        if y.is_empty() {
            return 0.0;
        }
        let mut sum = 0.0;
        for (i, (old, new)) in y.iter().zip(&self.stage).enumerate() {
            let weighted =
                self.tableau.error.iter().zip(&self.slopes).map(|(weight, slope)| weight * slope[i].to_f64());
            let scale = atol + rtol * old.to_f64().abs().max(new.to_f64().abs());
            let error = h * weighted.sum::<f64>();
            // If the error of an element is 0, `scale` may be 0 too, and the quotient would be NaN.
            if error != 0.0 {
                sum += (error / scale).powi(2);
            }
        }
        let finite = self.stage.iter().all(|x| x.is_finite());
        if finite { (sum / y.len() as f64).sqrt() } else { f64::NAN }
    }

    /// Writes the state at the fraction `theta` of the last step, which began at `y`.
    pub(super) fn interpolate(&self, theta: f64, h: f64, y: &[T], out: &mut Vec<T>) {
        let weights = self.tableau.interpolation.iter().map(|coefficients| interpolation_weight(coefficients, theta));
        add_scaled_slopes(y, h, weights.zip(&self.slopes), out);
    }

    /// Makes the new state the start of the next step: writes the state to `y`, and makes the last slope the first one.
    pub(super) fn accept(&mut self, y: &mut [T]) {
        y.copy_from_slice(&self.stage);
        let last = self.slopes.len() - 1;
        self.slopes.swap(0, last);
    }
}

/// Writes y + h Σ wᵢ kᵢ to `out`, for pairs of weights w and slopes k.
fn add_scaled_slopes<'s, T: Float>(
    y: &[T],
    h: f64,
    terms: impl Iterator<Item = (f64, &'s Vec<T>)> + Clone,
    out: &mut Vec<T>,
) {
    out.clear();
    out.extend_from_slice(y);
    for (number, block) in out.chunks_mut(BLOCK).enumerate() {
        for (weight, slope) in terms.clone().filter(|(weight, _)| *weight != 0.0) {
            let factor = T::from_f64(h * weight);
            let slope = &slope[number * BLOCK..];
            block.iter_mut().zip(slope).for_each(|(sum, &slope)| *sum = *sum + factor * slope);
        }
    }
}
