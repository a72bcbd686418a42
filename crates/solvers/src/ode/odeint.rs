//! The options of the solver of initial value problems, and the ways to call it.

use std::rc::Rc;

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, try_stack};
use wengert_tensor::{Float, Site, Tensor};

use super::adjoint::{Problem, SharedDynamics};
use super::field::Field;
use super::integrate::{Counts, Method, Settings, check_times, fixed_step_count, integrate, too_many_steps};
use super::tableau::Tableau;
use crate::error::{Result, argument_error};
use crate::evaluate::check_shape;

/// Returns the solution y of y' = f(t, y), y(`times[0]`) = `y0`, at all times: a tensor `[times, …]`. The method is
/// [`Method::Dopri5`] with a relative tolerance of 1e-3 and an absolute tolerance of 1e-6. [`Odeint`] has other methods and tolerances, and
/// solutions with derivatives. SciPy: `solve_ivp`; JAX: `jax.experimental.ode.odeint`; torchdiffeq: `odeint`.
///
/// The state may have any shape, and the slope has the same shape. The times increase or decrease strictly.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::odeint;
///
/// // A pendulum of small amplitude: y'' = -y, as a system of two equations.
/// let times = Tensor::from([0.0, 1.0, 2.0]);
/// let y = odeint(|_, y| cat(&[y.narrow(0, 1, 1), -y.narrow(0, 0, 1)], 0), &Tensor::from([1.0, 0.0]), &times);
/// assert_eq!(y.shape(), &[3, 2]);
/// assert!((y.select(1, 0) - times.cos()).abs().amax(..).item() < 1e-3);
/// ```
///
/// # Errors
///
/// As for [`Odeint::try_call`].
#[twins]
pub fn try_odeint<T: Float>(
    f: impl for<'t> Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
    y0: &Tensor<T>,
    times: &Tensor<T>,
) -> Result<Tensor<T>> {
    Ok(Odeint::new().run(&f, y0, times, Site::here("odeint"))?.values)
}

/// A solver of initial value problems y' = f(t, y), with its method and tolerances.
///
/// | method | use |
/// |---|---|
/// | [`call`](Self::call) | tensors, no derivatives |
/// | [`record`](Self::record) | fixed steps on the tape: the derivatives of the computed solution, of every order in both modes |
/// | [`record_adjoint`](Self::record_adjoint) | any method: derivatives by the continuous adjoint, up to the tolerances; the memory does not grow with the steps |
///
/// The adaptive methods keep the error estimate e of each step below the tolerance: the root of the mean of
/// (eᵢ / (atol + rtol max(|yᵢ|, |zᵢ|)))² is at most 1. y and z are the states before and after the step. The
/// estimate of the error of one step is not a bound of the error of the solution. The length of the next step follows
/// from the last two errors (a proportional-integral controller), and for `Rodas4` from the last error. Both formulas
/// are in Hairer, Nørsett and Wanner, "Solving ordinary differential equations I" (1993), section II.4, and Hairer and
/// Wanner, volume II (1996), section IV.2. States at requested times within a step are interpolated.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::{Method, Odeint};
///
/// // Van der Pol's oscillator, a stiff problem: an explicit method would need hundreds of thousands of steps.
/// let solver = Odeint::new().method(Method::Rodas4).rtol(1e-6).atol(1e-8);
/// let solved = solver.call(
///     |_, y| {
///         let (x, v) = (y.select(0, 0), y.select(0, 1));
///         stack(&[v, (1.0 - x.square()) * v * 1e3 - x], 0)
///     },
///     &Tensor::from([2.0f64, 0.0]),
///     &Tensor::from([0.0, 500.0]),
/// );
/// assert!((solved.values.get(&[1, 0]).unwrap() - 1.596769).abs() < 1e-5);
/// assert!(solved.accepted < 300);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Odeint {
    settings: Settings,
}

/// The solution of an initial value problem, and the work that it took.
#[derive(Clone, Debug)]
pub struct Trajectory<T: Float> {
    /// The states at the requested times, `[times, …]`.
    pub values: Tensor<T>,
    /// The number of accepted steps. In SciPy, it is `len(t) - 1` for the result of `solve_ivp` without `t_eval`.
    pub accepted: usize,
    /// The number of rejected steps.
    pub rejected: usize,
    /// The number of evaluations of the right-hand side, without evaluations of Jacobians. SciPy: `nfev`.
    pub evaluations: usize,
}

impl Default for Odeint {
    fn default() -> Self {
        Odeint::new()
    }
}

#[twins]
impl Odeint {
    /// Returns a solver with [`Method::Dopri5`], a relative tolerance of 1e-3 and an absolute tolerance of 1e-6, as in SciPy's
    /// `solve_ivp`.
    pub fn new() -> Self {
        let settings = Settings { method: Method::Dopri5, rtol: 1e-3, atol: 1e-6, step_size: None, max_steps: 100_000 };
        Odeint { settings }
    }

    /// Sets the method of integration. The default is [`Method::Dopri5`].
    pub fn method(mut self, method: Method) -> Self {
        self.settings.method = method;
        self
    }

    /// Sets the relative tolerance of an adaptive method. A tolerance below 100 ε of the element type counts as 100 ε, as in SciPy.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.settings.rtol = rtol;
        self
    }

    /// Sets the absolute tolerance of an adaptive method.
    pub fn atol(mut self, atol: f64) -> Self {
        self.settings.atol = atol;
        self
    }

    /// Sets the largest step of a method with fixed steps. Each interval between two times is divided into equal steps. The default is one
    /// step for each interval. torchdiffeq: the option `step_size`.
    pub fn step_size(mut self, step_size: f64) -> Self {
        self.settings.step_size = Some(step_size);
        self
    }

    /// Sets the largest number of steps, rejected steps included. The default is 100,000.
    pub fn max_steps(mut self, max_steps: usize) -> Self {
        self.settings.max_steps = max_steps;
        self
    }

    /// Returns the states at all times, computed with tensors.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Odeint;
    ///
    /// let rate = Tensor::from([1.0, 2.0]); // a closure may capture tensors
    /// let solved = Odeint::new().rtol(1e-9).atol(1e-9).call(|_, y| -(y * &rate), &Tensor::ones([2]), &Tensor::from([0.0, 1.0]));
    /// let expected = Tensor::from([(-1.0f64).exp(), (-2.0f64).exp()]);
    /// assert!((solved.values.select(0, 1) - expected).abs().amax(..).item() < 1e-9);
    /// ```
    ///
    /// # Errors
    ///
    /// If the times are not a vector of finite numbers that increases or decreases strictly. If a tolerance is negative or not finite, both
    /// tolerances are 0, or the step size is not positive and finite. If the slope does not have the state's shape. If the initial state or
    /// the slope there is NaN or infinite. If a fixed step, or every shorter step down to the resolution of the time, gives a state that is
    /// not finite. If the method is `Rodas4` and a derivative of the slope is not finite. If the error estimate asks for a step below the
    /// resolution of the time, or the largest number of steps is reached. If the right-hand side cannot be evaluated.
    pub fn try_call<T: Float>(
        &self,
        f: impl for<'t> Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
        y0: &Tensor<T>,
        times: &Tensor<T>,
    ) -> Result<Trajectory<T>> {
        self.run(&f, y0, times, Site::here("call"))
    }

    /// Records every step on the tape of `y0`, for a method with fixed steps, and returns the states at all times. The derivatives are
    /// exact for the computed solution ("discretise, then differentiate"), in both modes and of every order. `f` may use any variables and
    /// parameters of the tape. The memory grows with the number of steps.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::{Method, Odeint};
    ///
    /// let tape = Tape::<f64>::new();
    /// let (rate, y0) = (tape.var(&Tensor::scalar(0.5)), tape.var(&Tensor::scalar(2.0)));
    /// let solver = Odeint::new().method(Method::Rk4).step_size(0.05);
    /// let y = solver.record(|_, y| -(y * rate), y0, &Tensor::from([0.0, 1.0])).select(0, 1); // 2 exp(-rate)
    /// let [by_rate] = y.grad([rate]);
    /// assert!((by_rate + y).item().abs() < 1e-6);
    /// ```
    ///
    /// # Errors
    ///
    /// If the method is adaptive, a setting or the times are refused as by [`call`](Self::call), or the slope does not have the
    /// state's shape. If more steps than `max_steps` are needed.
    pub fn try_record<'t, T: Float>(
        &self,
        f: impl Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
        y0: Var<'t, T>,
        times: &Tensor<T>,
    ) -> Result<Var<'t, T>> {
        let at = Site::here("record");
        let settings = self.checked::<T>(at)?;
        let Some(tableau) = settings.method.tableau().filter(|_| !settings.method.is_adaptive()) else {
            let method = settings.method;
            let message = format!("odeint: {method:?} chooses its steps; record Method::Rk4, or call record_adjoint");
            return Err(argument_error(message, at));
        };
        let times = check_times(times, at)?;
        let (mut y, mut states, mut total) = (y0, vec![y0], 0usize);
        for pair in times.windows(2) {
            let steps = fixed_step_count::<T>(&settings, pair);
            total = total.saturating_add(steps);
            if total > settings.max_steps {
                return Err(too_many_steps(&settings, pair[0], at));
            }
            let h = (pair[1] - pair[0]) / steps as f64;
            for step in 0..steps {
                y = recorded_step(tableau, &f, pair[0] + step as f64 * h, h, y, at)?;
            }
            states.push(y);
        }
        Ok(try_stack(&states, 0)?)
    }

    /// Records the solution as one operation on the tape of `y0`, and returns the states at all times. The derivatives with respect to the
    /// initial state, the times and the arguments come from the continuous adjoint. This is a problem that is solved backward in time with
    /// the same method and tolerances. The results are derivatives of the exact solution, up to the tolerances. The absolute tolerance is
    /// relative to the largest element of the incoming gradient. Both modes and every order work. The memory grows with the number of times,
    /// but not with the number of steps. JAX: `odeint`; torchdiffeq: `odeint_adjoint`.
    ///
    /// `f` gets the time, the state and `args`. All variables that the slope depends on must be among the arguments; the compiler refuses
    /// functions that capture variables. For a model, pass its parameters as arguments, and bind them in `f` with
    /// [`Tape::bind`](wengert_autograd::Tape::bind). Parameters that are not bound count as constants.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Odeint;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (rate, y0) = (tape.var(&Tensor::scalar(0.5)), tape.var(&Tensor::scalar(2.0)));
    /// let times = tape.constant(&Tensor::from([0.0, 1.0]));
    /// let solver = Odeint::new().rtol(1e-9).atol(1e-9);
    /// let y = solver.record_adjoint(|_, y, args| -(y * args[0]), y0, times, &[rate]).select(0, 1); // 2 exp(-rate)
    /// let [by_rate] = y.grad([rate]);
    /// assert!((by_rate + y).item().abs() < 1e-8);
    /// ```
    ///
    /// # Errors
    ///
    /// If a setting is refused, the times are not a vector, or the variables belong to different tapes. The other errors of
    /// [`call`](Self::call) occur when a value is requested.
    pub fn try_record_adjoint<'t, T: Float>(
        &self,
        f: impl for<'v> Fn(Var<'v, T>, Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        y0: Var<'t, T>,
        times: Var<'t, T>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let at = Site::here("record_adjoint");
        let f: SharedDynamics<T> = Rc::new(f);
        let problem = Problem { settings: self.checked::<T>(at)?, f, is_adjoint: false, at };
        let inputs: Vec<Var<'t, T>> = [y0, times].into_iter().chain(args.iter().copied()).collect();
        Ok(y0.tape().record_function(problem, &inputs, at)?[0])
    }

    fn run<T: Float>(
        &self,
        f: &impl for<'t> Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
        y0: &Tensor<T>,
        times: &Tensor<T>,
        at: Site,
    ) -> Result<Trajectory<T>> {
        let settings = self.checked::<T>(at)?;
        let list = check_times(times, at)?;
        let f = dynamics(|t, y, _| f(t, y));
        let mut field = Field { f: &f, args: &[], shape: y0.shape().clone(), evaluations: 0, at };
        let (values, Counts { accepted, rejected }) = integrate(&settings, &mut field, &y0.try_to_vec()?, &list)?;
        let values = Tensor::try_from_vec(values, y0.shape().replaced(0..0, &[list.len()]))?;
        Ok(Trajectory { values, accepted, rejected, evaluations: field.evaluations })
    }

    /// Returns the settings for an element type, or an error if a setting is outside of its domain.
    fn checked<T: Float>(&self, at: Site) -> Result<Settings> {
        let Settings { rtol, atol, step_size, .. } = self.settings;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if !(rtol >= 0.0 && rtol.is_finite() && atol >= 0.0 && atol.is_finite() && rtol.max(atol) > 0.0) {
            return Err(argument_error(
                format!("odeint: a tolerance must be positive, and none negative: {rtol}, {atol}"),
                at,
            ));
        }
        if step_size.is_some_and(|size| !positive(size)) {
            return Err(argument_error("odeint: the step size must be positive", at));
        }
        Ok(Settings { rtol: rtol.max(100.0 * T::EPSILON.to_f64()), ..self.settings })
    }
}

/// Returns a function unchanged. The bound makes the compiler infer that a closure accepts variables of any lifetime.
fn dynamics<T: Float, F>(f: F) -> F
where
    F: for<'t> Fn(Var<'t, T>, Var<'t, T>, &[Var<'t, T>]) -> Var<'t, T>,
{
    f
}

/// Records one step of an explicit method.
fn recorded_step<'t, T: Float>(
    tableau: &Tableau,
    f: &impl Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
    t: f64,
    h: f64,
    y: Var<'t, T>,
    at: Site,
) -> Result<Var<'t, T>> {
    let (mut slopes, mut stage, mut time) = (Vec::new(), y, t);
    for (row, node) in tableau.rows.iter().zip(tableau.nodes) {
        let slope = f(y.tape().constant(time), stage);
        check_shape("the slope", &slope.shape(), &y.shape(), at)?;
        slopes.push(slope);
        stage = y;
        for (weight, slope) in row.iter().zip(&slopes).filter(|(weight, _)| **weight != 0.0) {
            stage = stage.try_add(slope.try_mul(h * weight)?)?;
        }
        time = t + node * h;
    }
    Ok(stage)
}
