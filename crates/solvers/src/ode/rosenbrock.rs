//! Steps of RODAS, a Rosenbrock method for stiff problems.
//!
//! The method is stiffly accurate and L-stable, of order 4 with an error estimate of order 3. The coefficients and the interpolation of order
//! 3 are from the code of E. Hairer and G. Wanner, "Solving ordinary differential equations II" (1996), section IV.7. A step solves six
//! systems of equations with one matrix, I / (h γ) - J, where J is the exact Jacobian.

use wengert_tensor::Float;

use super::field::Field;
use crate::dense::Lu;
use crate::error::{Error, Result};

const GAMMA: f64 = 0.25;
const STAGES: usize = 6;

/// The weights of the earlier stages in the state of stages 2 to 5. Stage 6 adds stage 5 to the state of stage 5.
const A: [&[f64]; 4] = [
    &[1.544],
    &[0.9466785280815826, 0.2557011698983284],
    &[3.314825187068521, 2.896124015972201, 0.9986419139977817],
    &[1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895],
];

/// The weights of the earlier stages, divided by h, on the right-hand side of stages 2 to 6.
const C: [&[f64]; 5] = [
    &[-5.6688],
    &[-2.430093356833875, -0.2063599157091915],
    &[-0.1073529058151375, -9.594562251023355, -20.47028614809616],
    &[7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616],
    &[8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054],
];

/// The time of each stage, as a fraction of the step.
const NODES: [f64; STAGES] = [0.0, 0.386, 0.21, 0.63, 1.0, 1.0];

/// The weight of the derivative with respect to the time in each stage.
const TIME: [f64; STAGES] = [0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0];

/// The weights of the first five stages in the two terms of the interpolation.
const H: [[f64; 5]; 2] = [
    [10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662],
    [-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872],
];

/// The state and the stages of RODAS. The arithmetic is in f64 for every element type.
pub(super) struct Rosenbrock<T> {
    slope: Vec<T>,
    stages: [Vec<f64>; STAGES],
    old: Vec<f64>,
    new: Vec<T>,
    /// The Jacobian and the derivative with respect to the time at the start of the step. They are kept after a rejected step.
    derivatives: Option<(Vec<f64>, Vec<f64>)>,
}

impl<T: Float> Rosenbrock<T> {
    pub(super) fn new() -> Self {
        Rosenbrock {
            slope: Vec::new(),
            stages: Default::default(),
            old: Vec::new(),
            new: Vec::new(),
            derivatives: None,
        }
    }

    /// Computes the slope at the first state.
    pub(super) fn start(&mut self, field: &mut Field<'_, T>, t: f64, y: &[T]) -> Result<()> {
        field.slope(t, y, &mut self.slope)
    }

    /// Returns the slope at the start of the next step.
    pub(super) fn first_slope(&self) -> &[T] {
        &self.slope
    }

    /// Computes the state after a step of length `h` from the state `y` at time `t`, and stores it as the new state.
    /// Returns false if the matrix of the step is singular.
    pub(super) fn step(&mut self, field: &mut Field<'_, T>, t: f64, h: f64, y: &[T]) -> Result<bool> {
        let n = y.len();
        let (jacobian, by_time) = match self.derivatives.take() {
            Some(known) => known,
            None => field.jacobians(t, y)?,
        };
        // A shorter step has the same Jacobian, so it would fail too.
        if !jacobian.iter().chain(&by_time).all(|slope| slope.is_finite()) {
            let at_what = format!("a derivative of the slope at time {t:?}");
            return Err(Error::NotFinite { at_what, at: field.at });
        }
        let mut matrix: Vec<f64> = jacobian.iter().map(|element| -element).collect();
        matrix.iter_mut().step_by(n + 1).for_each(|diagonal| *diagonal += 1.0 / (h * GAMMA));
        self.old.clear();
        self.old.extend(y.iter().map(|x| x.to_f64()));
        let factors = Lu::factor(matrix, n);
        self.derivatives = Some((jacobian, by_time));
        let (Some(factors), Some((_, by_time))) = (factors, &self.derivatives) else {
            return Ok(false);
        };
        let mut state = self.old.clone();
        let mut slope = self.slope.clone();
        for stage in 0..STAGES {
            match stage {
                0 => {}
                5 => add(1.0, &self.stages[4], &mut state),
                _ => {
                    state.copy_from_slice(&self.old);
                    A[stage - 1].iter().zip(&self.stages).for_each(|(&a, known)| add(a, known, &mut state));
                }
            }
            if stage > 0 {
                self.new.clear();
                self.new.extend(state.iter().map(|&x| T::from_f64(x)));
                field.slope(t + NODES[stage] * h, &self.new, &mut slope)?;
            }
            let mut right: Vec<f64> = slope.iter().map(|x| x.to_f64()).collect();
            if stage > 0 {
                C[stage - 1].iter().zip(&self.stages).for_each(|(c, known)| add(c / h, known, &mut right));
            }
            if TIME[stage] != 0.0 {
                add(h * TIME[stage], by_time, &mut right);
            }
            factors.solve(&mut right);
            self.stages[stage] = right;
        }
        add(1.0, &self.stages[5], &mut state);
        self.new.clear();
        self.new.extend(state.iter().map(|&x| T::from_f64(x)));
        Ok(true)
    }

    /// Returns the state after the last step.
    pub(super) fn new_state(&self) -> &[T] {
        &self.new
    }

    /// Returns the error estimate of the last step, divided by the tolerance, as for explicit methods.
    pub(super) fn error(&self, rtol: f64, atol: f64) -> f64 {
        if self.old.is_empty() {
            return 0.0;
        }
        let mut sum = 0.0;
        for ((old, new), error) in self.old.iter().zip(&self.new).zip(&self.stages[5]) {
            let scale = atol + rtol * old.abs().max(new.to_f64().abs());
            // If the error of an element is 0, `scale` may be 0 too, and the quotient would be NaN.
            if *error != 0.0 {
                sum += (error / scale).powi(2);
            }
        }
        (sum / self.old.len() as f64).sqrt()
    }

    /// Writes the state at the fraction `theta` of the last step.
    pub(super) fn interpolate(&self, theta: f64, out: &mut Vec<T>) {
        out.clear();
        for i in 0..self.old.len() {
            let [first, second] = H.map(|row| row.iter().zip(&self.stages).map(|(h, stage)| h * stage[i]).sum::<f64>());
            let (old, new) = (self.old[i], self.new[i].to_f64());
            let value = old * (1.0 - theta) + theta * (new + (1.0 - theta) * (first + theta * second));
            out.push(T::from_f64(value));
        }
    }

    /// Makes the new state the start of the next step, at time `t`: writes it to `y` and computes its slope.
    pub(super) fn accept(&mut self, field: &mut Field<'_, T>, t: f64, y: &mut [T]) -> Result<()> {
        y.copy_from_slice(&self.new);
        self.derivatives = None;
        field.slope(t, y, &mut self.slope)
    }
}

/// Adds `factor` times `x` to `sum`.
fn add(factor: f64, x: &[f64], sum: &mut [f64]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
}
