//! The search for a point along a direction that satisfies the strong Wolfe conditions.
//!
//! J. Nocedal and S. J. Wright, "Numerical optimization" (2006), algorithms 3.5 and 3.6, with cubic interpolation (equation 3.59).

use wengert_tensor::Float;

use super::objective::{Objective, Point};
use crate::error::Result;
use crate::evaluate::dot;

/// The constant c₁ of the first Wolfe condition: the value must fall by at least c₁ · step length · |slope at the start|.
const SUFFICIENT_DECREASE: f64 = 1e-4;
/// The constant c₂ of the second Wolfe condition: the absolute slope must be at most c₂ · |slope at the start|.
const CURVATURE: f64 = 0.9;
/// The largest number of evaluations in one search.
const MAX_EVALUATIONS: usize = 40;

/// A tried point `start + step_length · direction`, and the slope of the function along the direction there.
struct Trial {
    step_length: f64,
    slope: f64,
    point: Point,
}

/// Returns a point on the line from `start` along `direction` that satisfies the strong Wolfe conditions. If the search finds none within
/// its limits, returns a point that only decreases the function. Returns `None` if no tried point decreases the function. The reason is a
/// direction along which the function does not fall, or rounding errors. A point with the value -∞ ends the search and is returned. `first`
/// is the step length that is tried first.
pub(super) fn strong_wolfe<T: Float>(
    objective: &mut Objective<'_, T>,
    start: &Point,
    direction: &[f64],
    first: f64,
) -> Result<Option<Point>> {
    let slope = dot(&start.gradient, direction);
    if slope.is_nan() || slope >= 0.0 {
        return Ok(None);
    }
    let mut search = LineSearch { objective, start, direction, slope, evaluations: 0 };
    let mut last = Trial { step_length: 0.0, slope, point: start.clone() };
    let mut step_length = first;
    while search.evaluations < MAX_EVALUATIONS {
        let trial = search.try_step_length(step_length)?;
        if !trial.point.is_finite() {
            if trial.point.value == f64::NEG_INFINITY {
                return Ok(Some(trial.point));
            }
            // The function is not defined there: bisect towards the last point.
            step_length = last.step_length + 0.5 * (step_length - last.step_length);
            if step_length <= last.step_length {
                return Ok(None);
            }
            continue;
        }
        if search.satisfies_wolfe(&trial) {
            return Ok(Some(trial.point));
        }
        if !search.has_sufficient_decrease(&trial) || last.step_length > 0.0 && trial.point.value >= last.point.value {
            return search.zoom(last, trial);
        }
        if trial.slope >= 0.0 {
            return search.zoom(trial, last);
        }
        // The function still falls: extrapolate, by a factor between 2 and 10.
        let next = cubic_minimum(&last, &trial).filter(|next| *next > step_length).unwrap_or(4.0 * step_length);
        let next = next.clamp(2.0 * step_length, 10.0 * step_length);
        (last, step_length) = (trial, next);
    }
    // The limit of evaluations is reached. The last point has a lower value than the start, so it is returned although its slope is still
    // too steep for the second Wolfe condition.
    Ok((last.step_length > 0.0).then_some(last.point))
}

/// The search along one line.
struct LineSearch<'a, 'f, T: Float> {
    objective: &'a mut Objective<'f, T>,
    start: &'a Point,
    direction: &'a [f64],
    slope: f64,
    evaluations: usize,
}

impl<T: Float> LineSearch<'_, '_, T> {
    fn try_step_length(&mut self, step_length: f64) -> Result<Trial> {
        self.evaluations += 1;
        let x = self.start.x.iter().zip(self.direction).map(|(x, d)| x + step_length * d).collect();
        let point = self.objective.evaluate(x)?;
        let slope = dot(&point.gradient, self.direction);
        Ok(Trial { step_length, slope, point })
    }

    fn has_sufficient_decrease(&self, trial: &Trial) -> bool {
        trial.point.value <= self.start.value + SUFFICIENT_DECREASE * trial.step_length * self.slope
    }

    /// Returns true if a point satisfies both Wolfe conditions. Near a minimum, rounding errors hide the decrease of the value. The slope
    /// then decides instead of the value (W. W. Hager and H. Zhang, "A new conjugate gradient method with guaranteed descent", 2005,
    /// equation 4.1 with δ = 0.1).
    fn satisfies_wolfe(&self, trial: &Trial) -> bool {
        let rounding = 4.0 * T::EPSILON.to_f64() * self.start.value.abs();
        let is_level = (trial.point.value - self.start.value).abs() <= rounding && trial.slope <= -0.8 * self.slope;
        (is_level || self.has_sufficient_decrease(trial)) && trial.slope.abs() <= -CURVATURE * self.slope
    }

    /// Searches between two trials. `low` satisfies the first Wolfe condition (sufficient decrease), and has the smallest value so far. From
    /// `low` towards `high`, the function falls at first.
    fn zoom(&mut self, mut low: Trial, mut high: Trial) -> Result<Option<Point>> {
        while self.evaluations < MAX_EVALUATIONS {
            let (near, far) = (low.step_length.min(high.step_length), low.step_length.max(high.step_length));
            let width = far - near;
            if width <= 1e-14 * far {
                break;
            }
            let step_length =
                cubic_minimum(&low, &high).unwrap_or(0.5 * (near + far)).clamp(near + 0.1 * width, far - 0.1 * width);
            let trial = self.try_step_length(step_length)?;
            if trial.point.is_finite() && self.satisfies_wolfe(&trial) {
                return Ok(Some(trial.point));
            }
            if !trial.point.is_finite() || !self.has_sufficient_decrease(&trial) || trial.point.value >= low.point.value
            {
                high = trial;
                continue;
            }
            if trial.slope * (high.step_length - low.step_length) >= 0.0 {
                high = low;
            }
            low = trial;
        }
        Ok((low.step_length > 0.0).then_some(low.point))
    }
}

/// Returns the step length at the minimum of the cubic polynomial that has the values and slopes of two trials, if it has a minimum.
fn cubic_minimum(a: &Trial, b: &Trial) -> Option<f64> {
    let d1 = a.slope + b.slope - 3.0 * (a.point.value - b.point.value) / (a.step_length - b.step_length);
    let root = d1 * d1 - a.slope * b.slope;
    let d2 = (b.step_length - a.step_length).signum() * root.max(0.0).sqrt();
    let step_length =
        b.step_length - (b.step_length - a.step_length) * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    (root >= 0.0 && step_length.is_finite()).then_some(step_length)
}
