//! The loop over steps: step control, output at the requested times, limits.

use wengert_tensor::{Float, Site, Tensor};

use super::explicit::Explicit;
use super::field::Field;
use super::rosenbrock::Rosenbrock;
use super::tableau::{BOGACKI_SHAMPINE, DORMAND_PRINCE, EULER, MIDPOINT, RK4, Tableau};
use crate::error::{Error, Result, argument_error};
use crate::evaluate::{norm, to_f64_vec};

/// A method for initial value problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Euler's method: fixed steps, order 1. torchdiffeq: `euler`.
    Euler,
    /// The midpoint method: fixed steps, order 2. torchdiffeq: `midpoint`.
    Midpoint,
    /// The classical Runge-Kutta method: fixed steps, order 4. torchdiffeq: `rk4` is another method of this order.
    Rk4,
    /// Bogacki and Shampine's method of order 3 with an error estimate of order 2. SciPy: `RK23`; torchdiffeq: `bosh3`.
    Bosh3,
    /// Dormand and Prince's method of order 5 with an error estimate of order 4. SciPy: `RK45`; torchdiffeq: `dopri5`.
    Dopri5,
    /// Hairer and Wanner's RODAS, of order 4 with an error estimate of order 3, for stiff problems. It solves systems of equations with the
    /// exact Jacobian of the right-hand side. Julia: `Rodas4`.
    Rodas4,
}

impl Method {
    /// Returns the coefficients of an explicit method, or `None` for another method.
    pub(super) fn tableau(self) -> Option<&'static Tableau> {
        match self {
            Method::Euler => Some(&EULER),
            Method::Midpoint => Some(&MIDPOINT),
            Method::Rk4 => Some(&RK4),
            Method::Bosh3 => Some(&BOGACKI_SHAMPINE),
            Method::Dopri5 => Some(&DORMAND_PRINCE),
            Method::Rodas4 => None,
        }
    }

    /// Returns true if the method chooses the lengths of its steps.
    pub fn is_adaptive(self) -> bool {
        matches!(self, Method::Bosh3 | Method::Dopri5 | Method::Rodas4)
    }
}

/// The settings with which an initial value problem is solved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) method: Method,
    pub(super) rtol: f64,
    pub(super) atol: f64,
    pub(super) step_size: Option<f64>,
    pub(super) max_steps: usize,
}

/// The numbers of steps that the solution of an initial value problem took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) accepted: usize,
    pub(super) rejected: usize,
}

/// Returns the requested times, or an error unless they are a vector of finite numbers that increases or decreases
/// strictly.
pub(super) fn check_times<T: Float>(times: &Tensor<T>, at: Site) -> Result<Vec<f64>> {
    let list = to_f64_vec(times);
    if times.rank() != 1 || list.is_empty() {
        return Err(argument_error(
            format!("odeint: the times must be a vector with at least one time, got {}", times.shape()),
            at,
        ));
    }
    let increases = list.last() > list.first();
    let ordered = list.windows(2).all(|pair| if increases { pair[0] < pair[1] } else { pair[0] > pair[1] });
    if !ordered || !list.iter().all(|time| time.is_finite()) {
        return Err(argument_error("odeint: the times must be finite, and increase or decrease strictly", at));
    }
    Ok(list)
}

/// Returns the number of fixed steps of an interval. A step is at most `step_size` long, up to the rounding errors of the times; the default
/// is one step.
pub(super) fn fixed_step_count<T: Float>(settings: &Settings, interval: &[f64]) -> usize {
    let [start, end] = [interval[0], interval[1]];
    // Without this allowance, the f32 times 0 and 0.3 and steps of 0.1 give 4 steps.
    let slack = 4.0 * T::EPSILON.to_f64() * start.abs().max(end.abs());
    settings.step_size.map_or(1, |size| (((end - start).abs() - slack) / size).ceil().max(1.0) as usize)
}

/// Returns the states at the requested times, one after the other, and the numbers of steps.
pub(super) fn integrate<T: Float>(
    settings: &Settings,
    field: &mut Field<'_, T>,
    y0: &[T],
    times: &[f64],
) -> Result<(Vec<T>, Counts)> {
    if !y0.iter().all(|x| x.is_finite()) {
        return Err(Error::NotFinite { at_what: "the initial state".into(), at: field.at });
    }
    let mut rows = Vec::with_capacity(times.len() * y0.len());
    rows.extend_from_slice(y0);
    let counts = match settings.method.tableau() {
        Some(tableau) if !settings.method.is_adaptive() => {
            integrate_fixed(settings, Explicit::new(tableau), field, y0, times, &mut rows)?
        }
        Some(tableau) => {
            integrate_adaptive(settings, Stepper::Explicit(Explicit::new(tableau)), field, y0, times, &mut rows)?
        }
        None => {
            integrate_adaptive(settings, Stepper::Rosenbrock(Box::new(Rosenbrock::new())), field, y0, times, &mut rows)?
        }
    };
    Ok((rows, counts))
}

/// Takes equal steps in each interval between the times, and appends the state at each later time to `rows`. Returns an
/// error if a state is not finite, or there are more steps than `max_steps`. Also returns the errors of `stepper` and `field`.
fn integrate_fixed<T: Float>(
    settings: &Settings,
    mut stepper: Explicit<T>,
    field: &mut Field<'_, T>,
    y0: &[T],
    times: &[f64],
    rows: &mut Vec<T>,
) -> Result<Counts> {
    let (mut y, mut counts) = (y0.to_vec(), Counts::default());
    stepper.start(field, times[0], &y)?;
    for pair in times.windows(2) {
        let steps = fixed_step_count::<T>(settings, pair);
        let h = (pair[1] - pair[0]) / steps as f64;
        for step in 0..steps {
            let t = pair[0] + step as f64 * h;
            stepper.step(field, t, h, &y)?;
            stepper.accept(&mut y);
            counts.accepted += 1;
            if !y.iter().all(|x| x.is_finite()) {
                return Err(Error::NotFinite { at_what: format!("the state at time {:?}", t + h), at: field.at });
            }
            if counts.accepted > settings.max_steps {
                return Err(too_many_steps(settings, t, field.at));
            }
        }
        rows.extend_from_slice(&y);
    }
    Ok(counts)
}

/// Returns the error of an integration with too many steps, which reached the time `t`.
pub(super) fn too_many_steps(settings: &Settings, t: f64, at: Site) -> Error {
    Error::Limit {
        count: settings.max_steps,
        unit: "steps",
        progress: format!("the time is {t:?}"),
        hint: "set `max_steps`, larger tolerances, or `Method::Rodas4` for a stiff problem",
        at,
    }
}

/// A method with an error estimate, from which the step length follows.
enum Stepper<T> {
    Explicit(Explicit<T>),
    Rosenbrock(Box<Rosenbrock<T>>),
}

impl<T: Float> Stepper<T> {
    fn start(&mut self, field: &mut Field<'_, T>, t: f64, y: &[T]) -> Result<()> {
        match self {
            Stepper::Explicit(method) => method.start(field, t, y),
            Stepper::Rosenbrock(method) => method.start(field, t, y),
        }
    }

    fn first_slope(&self) -> &[T] {
        match self {
            Stepper::Explicit(method) => method.first_slope(),
            Stepper::Rosenbrock(method) => method.first_slope(),
        }
    }

    /// Tries a step and returns its error, divided by the tolerance. The error is NaN if the step has no finite result.
    fn step(&mut self, settings: &Settings, field: &mut Field<'_, T>, t: f64, h: f64, y: &[T]) -> Result<f64> {
        let (rtol, atol) = (settings.rtol, settings.atol);
        Ok(match self {
            Stepper::Explicit(method) => {
                method.step(field, t, h, y)?;
                method.error(h, y, rtol, atol)
            }
            Stepper::Rosenbrock(method) => {
                if !method.step(field, t, h, y)? {
                    return Ok(f64::NAN);
                }
                let finite = method.new_state().iter().all(|x| x.is_finite());
                if finite { method.error(rtol, atol) } else { f64::NAN }
            }
        })
    }

    fn interpolate(&self, theta: f64, h: f64, y: &[T], out: &mut Vec<T>) {
        match self {
            Stepper::Explicit(method) => method.interpolate(theta, h, y, out),
            Stepper::Rosenbrock(method) => method.interpolate(theta, out),
        }
    }

    fn new_state(&self) -> &[T] {
        match self {
            Stepper::Explicit(method) => method.new_state(),
            Stepper::Rosenbrock(method) => method.new_state(),
        }
    }

    fn accept(&mut self, field: &mut Field<'_, T>, t: f64, y: &mut [T]) -> Result<()> {
        match self {
            Stepper::Explicit(method) => {
                method.accept(y);
                Ok(())
            }
            Stepper::Rosenbrock(method) => method.accept(field, t, y),
        }
    }
}

/// Takes steps whose length follows from the error estimate. Appends the state at each requested time after the first
/// to `rows`. Returns an error if the first slope is not finite, the steps become too small, or there are more steps
/// than `max_steps`. Also returns the errors of `stepper` and `field`.
fn integrate_adaptive<T: Float>(
    settings: &Settings,
    mut stepper: Stepper<T>,
    field: &mut Field<'_, T>,
    y0: &[T],
    times: &[f64],
    rows: &mut Vec<T>,
) -> Result<Counts> {
    let (mut t, end) = (times[0], times[times.len() - 1]);
    let mut counts = Counts::default();
    if t == end {
        return Ok(counts);
    }
    let direction = (end - t).signum();
    let mut y = y0.to_vec();
    stepper.start(field, t, &y)?;
    if !stepper.first_slope().iter().all(|x| x.is_finite()) {
        return Err(Error::NotFinite { at_what: format!("the slope at time {t:?}"), at: field.at });
    }
    let mut control = StepSizeController::new(settings.method);
    let mut length = first_step_length(settings, field, stepper.first_slope(), &y, t, end)?;
    let mut output = Output { times, next: 1, rows, row: Vec::new() };
    while !output.is_complete() {
        // A shorter step would hardly change the time, which is an f64 for every element type.
        let shortest = 4.0 * f64::EPSILON * t.abs().max(f64::MIN_POSITIVE / f64::EPSILON);
        length = if length >= shortest { length } else { shortest };
        if counts.accepted + counts.rejected >= settings.max_steps {
            return Err(too_many_steps(settings, t, field.at));
        }
        let remaining = (end - t).abs();
        // A step that almost reaches the end is stretched or shortened to reach it.
        let is_last = length * (1.0 + 1e-10) >= remaining;
        // The state advances by the difference of the rounded times.
        let h = if is_last { end - t } else { (t + direction * length) - t };
        let error = stepper.step(settings, field, t, h, &y)?;
        if error <= 1.0 {
            let start = t;
            t = if is_last { end } else { t + h };
            output.write(&stepper, [start, t], h, &y);
            counts.accepted += 1;
            if !output.is_complete() {
                stepper.accept(field, t, &mut y)?;
            }
            length = h.abs() * control.factor_after_accepted(error);
        } else {
            counts.rejected += 1;
            length = h.abs().min(length) * control.factor_after_rejected(error);
            if length < shortest {
                return Err(if error.is_nan() {
                    Error::NotFinite { at_what: format!("the state after time {t:?}"), at: field.at }
                } else {
                    Error::StepTooSmall { time: t, step: length, at: field.at }
                });
            }
        }
    }
    Ok(counts)
}

/// The output of the solver: the states at the requested times, which are appended to `rows`.
struct Output<'a, T> {
    times: &'a [f64],
    /// The index in `times` of the next time whose state is to be written.
    next: usize,
    rows: &'a mut Vec<T>,
    row: Vec<T>,
}

impl<T: Float> Output<'_, T> {
    fn is_complete(&self) -> bool {
        self.next == self.times.len()
    }

    /// Appends the states at the times within a step from `start` to `end`. The step has the length `h` and begins at the state `y`.
    fn write(&mut self, stepper: &Stepper<T>, [start, end]: [f64; 2], h: f64, y: &[T]) {
        while self.next < self.times.len() && (end - self.times[self.next]) * h.signum() >= 0.0 {
            let time = self.times[self.next];
            if time == end {
                self.rows.extend_from_slice(stepper.new_state());
            } else {
                stepper.interpolate((time - start) / h, h, y, &mut self.row);
                self.rows.extend_from_slice(&self.row);
            }
            self.next += 1;
        }
    }
}

/// The control of the step length: a proportional-integral controller (Hairer and Wanner, "Solving ordinary differential equations II",
/// 1996, section IV.2). The constants are from their code `dopri5`. The stiff method uses the last error only, like their code `rodas` with
/// `IWORK(3) = 2`.
struct StepSizeController {
    /// The exponent of the current step's error in the factor of the step length.
    exponent: f64,
    /// The exponent of `last_error`, the error of the accepted step before the current one.
    integral: f64,
    last_error: f64,
    is_after_rejection: bool,
}

/// The predicted step length is multiplied by this factor, so that a rejection of the step is unlikely.
const SAFETY: f64 = 0.9;
/// The smallest and the largest ratio of the lengths of two successive steps.
const STEP_FACTORS: [f64; 2] = [0.2, 10.0];

impl StepSizeController {
    fn new(method: Method) -> Self {
        let order = method.tableau().map_or(4.0, |tableau| tableau.error_order);
        let integral = if method == Method::Rodas4 { 0.0 } else { 0.04 };
        StepSizeController {
            exponent: 1.0 / order - 0.75 * integral,
            integral,
            last_error: 1e-4,
            is_after_rejection: false,
        }
    }

    /// Returns the factor of the step length after an accepted step, and stores the error of this step for the next
    /// factor.
    fn factor_after_accepted(&mut self, error: f64) -> f64 {
        let factor = SAFETY * error.max(1e-30).powf(-self.exponent) * self.last_error.powf(self.integral);
        self.last_error = error.max(1e-4);
        let largest = if std::mem::take(&mut self.is_after_rejection) { 1.0 } else { STEP_FACTORS[1] };
        factor.clamp(STEP_FACTORS[0], largest)
    }

    /// Returns the factor of the step length after a rejected step, whose error may be NaN. Also limits the factor
    /// after the next accepted step to 1.
    fn factor_after_rejected(&mut self, error: f64) -> f64 {
        self.is_after_rejection = true;
        let factor = SAFETY * error.powf(-self.exponent);
        if factor.is_finite() { factor.clamp(STEP_FACTORS[0], 1.0) } else { STEP_FACTORS[0] }
    }
}

/// Returns the length of the first step (Hairer, Nørsett and Wanner, "Solving ordinary differential equations I", 1993, section II.4).
fn first_step_length<T: Float>(
    settings: &Settings,
    field: &mut Field<'_, T>,
    slope: &[T],
    y: &[T],
    t: f64,
    end: f64,
) -> Result<f64> {
    let interval = (end - t).abs();
    if y.is_empty() {
        return Ok(interval);
    }
    // Returns the root mean square of the terms, each divided by its tolerance. An element whose tolerance is 0 counts as 0.
    let mean = |terms: &mut dyn Iterator<Item = f64>| -> f64 {
        let scaled = terms.zip(y).map(|(term, y)| {
            let scale = settings.atol + settings.rtol * y.to_f64().abs();
            if scale == 0.0 { 0.0 } else { term / scale }
        });
        norm(&scaled.collect::<Vec<f64>>()) / (y.len() as f64).sqrt()
    };
    let size = mean(&mut y.iter().map(|x| x.to_f64()));
    let speed = mean(&mut slope.iter().map(|x| x.to_f64()));
    let guess = if size < 1e-5 || speed < 1e-5 { 1e-6 } else { 0.01 * size / speed }.min(interval);
    let h = guess * (end - t).signum();
    let probe: Vec<T> = y.iter().zip(slope).map(|(&y, &slope)| y + T::from_f64(h) * slope).collect();
    let mut there = Vec::new();
    field.slope(t + h, &probe, &mut there)?;
    let change = mean(&mut there.iter().zip(slope).map(|(new, old)| new.to_f64() - old.to_f64())) / guess;
    let order = settings.method.tableau().map_or(4.0, |tableau| tableau.error_order);
    let steepest = speed.max(change);
    let length = if steepest > 1e-15 { (0.01 / steepest).powf(1.0 / order) } else { (guess * 1e-3).max(1e-6) };
    Ok(length.min(100.0 * guess).min(interval))
}
