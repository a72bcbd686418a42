//! Brent's method for one equation in an interval.
//!
//! R. P. Brent, "Algorithms for minimization without derivatives" (1973), chapter 4, in the form of SciPy's `brentq`.

use std::rc::Rc;

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::{Float, Site, Tensor};

use crate::error::{Error, Result, argument_error, check_tolerances};
use crate::evaluate::{Map, evaluate, with_constants};
use crate::implicit::Implicit;

/// Returns a root of a function of one number in the interval from `a` to `b`, where the function has different signs at both ends.
/// [`Brentq`] has tolerances, and roots with derivatives. SciPy: `brentq`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::brentq;
///
/// assert!((brentq(|x| x.cos() - x, 0.0, 1.0) - 0.7390851332151607f64).abs() < 1e-12);
/// ```
///
/// # Errors
///
/// As for [`Brentq::try_call`].
#[twins]
pub fn try_brentq<T: Float>(f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>, a: T, b: T) -> Result<T> {
    Ok(Brentq::new().find(&f, a, b, Site::here("brentq"))?.x)
}

/// Brent's method, with its tolerances. It needs no derivative, and converges for a continuous function if `max_iter` allows.
///
/// The method interpolates, and bisects if the interpolation makes too little progress. It ends when the root is known up to xtol + rtol |x|.
#[derive(Clone, Debug)]
#[must_use]
pub struct Brentq {
    xtol: f64,
    rtol: f64,
    max_iter: usize,
}

/// A root in an interval, and the work that it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BrentqResult<T> {
    /// The root.
    pub x: T,
    /// The number of iterations.
    pub iterations: usize,
    /// The number of evaluations of the function.
    pub evaluations: usize,
}

impl Default for Brentq {
    fn default() -> Self {
        Brentq::new()
    }
}

#[twins]
impl Brentq {
    /// Returns a solver with SciPy's tolerances: xtol is 2e-12, and rtol is 4 ε of the element type. It makes at most 1000 iterations
    /// (SciPy: 100).
    pub fn new() -> Self {
        Brentq { xtol: 2e-12, rtol: 0.0, max_iter: 1000 }
    }

    /// Sets the absolute tolerance of the root.
    pub fn xtol(self, xtol: f64) -> Self {
        Brentq { xtol, ..self }
    }

    /// Sets the relative tolerance of the root. A tolerance below 4 ε counts as 4 ε.
    pub fn rtol(self, rtol: f64) -> Self {
        Brentq { rtol, ..self }
    }

    /// Sets the largest number of iterations.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Brentq { max_iter, ..self }
    }

    /// Returns a root in the interval from `a` to `b`. If the function is 0 at one of them, this end is the root.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Brentq;
    ///
    /// let found = Brentq::new().call(|x| x.pow(3.0) - x * 2.0 - 5.0, 2.0, 3.0);
    /// assert!((found.x - 2.0945514815423265f64).abs() < 1e-12 && found.evaluations < 12);
    /// ```
    ///
    /// # Errors
    ///
    /// If a tolerance is NaN or negative, or if an end is NaN or infinite. If the function has the same sign at both ends, its result is not
    /// one number, or a value is NaN. If the largest number of iterations is reached, or the function cannot be evaluated.
    pub fn try_call<T: Float>(
        &self,
        f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        a: T,
        b: T,
    ) -> Result<BrentqResult<T>> {
        self.find(&f, a, b, Site::here("call"))
    }

    /// Records the root as an operation on the tape of the arguments `args`. At least one argument is needed. The root's derivatives follow
    /// from the implicit function theorem, in both modes and of every order.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Brentq;
    ///
    /// let tape = Tape::<f64>::new();
    /// let a = tape.var(&Tensor::scalar(2.0));
    /// let x = Brentq::new().record(|x, args| x.square() - args[0], 0.0, 10.0, &[a]); // √a
    /// let [slope] = x.grad([a]);
    /// assert!((slope.item() - 0.5 / 2f64.sqrt()).abs() < 1e-12);
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no argument, or the variables belong to different tapes. The errors of [`call`](Self::call) occur when a value is
    /// requested.
    pub fn try_record<'t, T: Float>(
        &self,
        f: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        a: T,
        b: T,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let (at, solver, f) = (Site::here("record"), self.clone(), Rc::new(f));
        let Some(arg) = args.first() else {
            return Err(argument_error("brentq: without arguments there is no derivative: use `call`", at));
        };
        let equation = Rc::clone(&f);
        let search = Box::new(move |_: &Tensor<T>, args: &[Tensor<T>]| {
            Ok(Tensor::scalar(solver.find(&with_constants(&*f, args), a, b, at)?.x))
        });
        let start = arg.tape().constant(Tensor::scalar(a));
        Implicit { name: "brentq", search, equation }.record(start, args, at)
    }

    fn find<T: Float>(&self, f: &Map<'_, T>, a: T, b: T, at: Site) -> Result<BrentqResult<T>> {
        check_tolerances("brentq", &[("xtol", self.xtol), ("rtol", self.rtol)], at)?;
        let mut evaluations = 0;
        let mut function = |x: f64| -> Result<f64> {
            evaluations += 1;
            let y = evaluate(f, &Tensor::scalar(T::from_f64(x)))?;
            if y.numel() != 1 {
                return Err(argument_error(
                    format!("brentq: the function must return one number, got {}", y.shape()),
                    at,
                ));
            }
            let y = y.iter().next().map_or(0.0, T::to_f64);
            if y.is_nan() { Err(Error::NotFinite { at_what: format!("the function at {x:?}"), at }) } else { Ok(y) }
        };
        let (a, b) = (a.to_f64(), b.to_f64());
        if !a.is_finite() || !b.is_finite() {
            return Err(argument_error(format!("brentq: the interval must be finite, got {a} to {b}"), at));
        }
        let (fa, fb) = (function(a)?, function(b)?);
        if fa != 0.0 && fb != 0.0 && fa.signum() == fb.signum() {
            return Err(Error::NoBracket { a, b, fa, fb, at });
        }
        let rtol = self.rtol.max(4.0 * T::EPSILON.to_f64());
        let (x, iterations) = self.iterate([a, b], [fa, fb], rtol, &mut function, at)?;
        Ok(BrentqResult { x: T::from_f64(x), iterations, evaluations })
    }

    /// Returns a root and the number of iterations. `previous` and `current` are the last two points, and the root is
    /// between `current` and `other`. Returns an error if the largest number of iterations is reached, or an evaluation
    /// fails.
    fn iterate(
        &self,
        [mut previous, mut current]: [f64; 2],
        [mut f_previous, mut f_current]: [f64; 2],
        rtol: f64,
        function: &mut dyn FnMut(f64) -> Result<f64>,
        at: Site,
    ) -> Result<(f64, usize)> {
        if f_previous == 0.0 {
            return Ok((previous, 0));
        }
        let (mut other, mut f_other) = (0.0, 0.0);
        let (mut before_last, mut last) = (0.0, 0.0);
        for iteration in 0..self.max_iter {
            if f_current == 0.0 {
                return Ok((current, iteration));
            }
            if f_previous.signum() != f_current.signum() {
                (other, f_other) = (previous, f_previous);
                last = current - previous;
                before_last = last;
            }
            if f_other.abs() < f_current.abs() {
                (previous, current, other) = (current, other, current);
                (f_previous, f_current, f_other) = (f_current, f_other, f_current);
            }
            let tolerance = (self.xtol + rtol * current.abs()) / 2.0;
            let half = 0.5 * other - 0.5 * current;
            if half.abs() < tolerance {
                return Ok((current, iteration));
            }
            let step = if before_last.abs() > tolerance && f_current.abs() < f_previous.abs() {
                let secant = -f_current * (current - previous) / (f_current - f_previous);
                let step = if previous == other {
                    secant
                } else {
                    let by_previous = (f_previous - f_current) / (previous - current);
                    let by_other = (f_other - f_current) / (other - current);
                    -f_current * (f_other * by_other - f_previous * by_previous)
                        / (by_other * by_previous * (f_other - f_previous))
                };
                let is_short = 2.0 * step.abs() < before_last.abs().min(3.0 * half.abs() - tolerance);
                is_short.then_some(step)
            } else {
                None
            };
            (before_last, last) = step.map_or((half, half), |step| (last, step));
            (previous, f_previous) = (current, f_current);
            current += if last.abs() > tolerance { last } else { tolerance.copysign(half) };
            f_current = function(current)?;
        }
        Err(Error::Limit {
            count: self.max_iter,
            unit: "iterations",
            progress: format!("the root is between {current:?} and {other:?}"),
            hint: "set `max_iter` or larger tolerances",
            at,
        })
    }
}
