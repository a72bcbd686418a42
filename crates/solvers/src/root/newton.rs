//! Newton's method for systems of equations, with a line search.
//!
//! J. E. Dennis and R. B. Schnabel, "Numerical methods for unconstrained optimization and nonlinear equations" (1983), algorithms 6.1.1 and
//! A6.3.1. The Jacobian is exact.

use std::rc::Rc;

use wengert_autograd::Var;
use wengert_macros::twins;
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::dense::Lu;
use crate::error::{Error, Result, argument_error, check_start, check_tolerances};
use crate::evaluate::{
    Map, evaluate, max_abs, norm, round_to_type, to_f64_vec, to_tensor, value_and_jacobian, with_constants,
};
use crate::implicit::Implicit;

/// Returns a root x of f(x) = 0, found by Newton's method from `x0`. The result of `f` has as many elements as `x`. [`Root`] has
/// tolerances, and roots with derivatives. SciPy: `root`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::root;
///
/// // The circle of radius 2 and the line y = x.
/// let x = root(|p| stack(&[p.square().sum(..) - 4.0, p.select(0, 0) - p.select(0, 1)], 0), &Tensor::from([1.0, 0.5]));
/// assert!((x - 2f64.sqrt()).abs().amax(..).item() < 1e-15);
/// ```
///
/// # Errors
///
/// As for [`Root::try_call`].
#[twins]
pub fn try_root<T: Float>(f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>, x0: &Tensor<T>) -> Result<Tensor<T>> {
    Ok(Root::new().find(&f, x0, Site::here("root"))?.x)
}

/// Newton's method for systems of n equations with n unknowns, with its tolerances.
///
/// Each iteration solves J d = -f with the exact Jacobian J. It moves by the largest tried fraction of d that reduces |f|²
/// sufficiently. The method converges quadratically near a root with a regular Jacobian, and may fail far from roots. It ends when the full
/// step d satisfies |D d| ≤ rtol |D x|, where D has the norms of the columns of J. It also ends when no element of d exceeds atol, or f is
/// exactly 0. The last step is made, unless it increases the largest residual. If the Jacobian at the root is regular, the error of the
/// result is about the square of the tolerance.
#[derive(Clone, Debug)]
#[must_use]
pub struct Root {
    rtol: Option<f64>,
    atol: Option<f64>,
    max_iter: usize,
}

/// A root, and the work that it took.
#[derive(Clone, Debug)]
pub struct RootResult<T: Float> {
    /// The root, with the shape of the start.
    pub x: Tensor<T>,
    /// The largest absolute value of the function at the root.
    pub residual: f64,
    /// The number of iterations, each with one Jacobian. If the search ends at a point where the function is exactly 0,
    /// one more Jacobian is computed there.
    pub iterations: usize,
    /// The number of evaluations of the function, with or without the Jacobian.
    pub evaluations: usize,
}

impl Default for Root {
    fn default() -> Self {
        Root::new()
    }
}

#[twins]
impl Root {
    /// Returns a solver with the default tolerances: √ε for rtol and 16 ε for atol, where ε is the rounding error of the element type. It
    /// makes at most 100 iterations. Unknowns that are much smaller than 1 need a smaller `atol`, because a step below it ends the iteration.
    pub fn new() -> Self {
        Root { rtol: None, atol: None, max_iter: 100 }
    }

    /// Sets the relative tolerance of the last step. SciPy: `xtol` of the method `hybr`.
    pub fn rtol(self, rtol: f64) -> Self {
        Root { rtol: Some(rtol), ..self }
    }

    /// Sets the absolute tolerance of the elements of the last step.
    pub fn atol(self, atol: f64) -> Self {
        Root { atol: Some(atol), ..self }
    }

    /// Sets the largest number of iterations.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Root { max_iter, ..self }
    }

    /// Returns the root that the method finds from `x0`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Root;
    ///
    /// let found = Root::new().call(|x| x.exp() - x * 3.0, &Tensor::scalar(0.0));
    /// assert!((found.x.item() - 0.6190612867359451f64).abs() < 1e-15);
    /// assert!(found.iterations < 8);
    /// ```
    ///
    /// # Errors
    ///
    /// If a tolerance is NaN or negative, or an element of `x0` is NaN or infinite. If the result of `f` does not have as many elements as
    /// `x0`. If `f` at `x0` is NaN or infinite, or a Jacobian is singular or not finite. If no step along the direction reduces |f|, or the
    /// largest number of iterations is reached. If `f` cannot be evaluated or differentiated.
    pub fn try_call<T: Float>(
        &self,
        f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        x0: &Tensor<T>,
    ) -> Result<RootResult<T>> {
        self.find(&f, x0, Site::here("call"))
    }

    /// Records the root as an operation on the tape of `x0`. Its derivatives with respect to `args` follow from the implicit function
    /// theorem, in both modes and of every order. They do not depend on the iterations. The derivative with respect to the start is zero.
    ///
    /// `f` gets the unknowns and `args`. All variables that it uses must be among the arguments; the compiler refuses functions that capture
    /// variables, such as this one:
    ///
    /// ```compile_fail,E0597
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// # use wengert::prelude::*;
    /// # use wengert::solvers::Root;
    /// # let tape = Tape::<f64>::new();
    /// # let (a, x0) = (tape.var(&Tensor::scalar(8.0)), tape.constant(&Tensor::scalar(1.0)));
    /// let x = Root::new().record(move |x, _| x.pow(3.0) - a, x0, &[]);
    /// ```
    ///
    /// JAX: `jaxopt.ScipyRootFinding`, `lax.custom_root`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Root;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (a, x0) = (tape.var(&Tensor::scalar(8.0)), tape.constant(&Tensor::scalar(1.0)));
    /// let x = Root::new().record(|x, args| x.pow(3.0) - args[0], x0, &[a]); // the cube root
    /// let [slope] = x.grad([a]); // 1 / (3 x²)
    /// let [second] = slope.grad([a]); // -2 / (9 x⁵)
    /// assert!((slope.item() - 1.0 / 12.0).abs() < 1e-15 && (second.item() + 1.0 / 144.0).abs() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variables belong to different tapes. The errors of [`call`](Self::call) occur when a value is requested.
    pub fn try_record<'t, T: Float>(
        &self,
        f: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        x0: Var<'t, T>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let (at, solver, f) = (Site::here("record"), self.clone(), Rc::new(f));
        let equation = Rc::clone(&f);
        let search =
            Box::new(move |x0: &Tensor<T>, args: &[Tensor<T>]| Ok(solver.find(&with_constants(&*f, args), x0, at)?.x));
        Implicit { name: "root", search, equation }.record(x0, args, at)
    }

    pub(crate) fn find<T: Float>(&self, f: &Map<'_, T>, x0: &Tensor<T>, at: Site) -> Result<RootResult<T>> {
        let epsilon = T::EPSILON.to_f64();
        let (rtol, atol) = (self.rtol.unwrap_or(epsilon.sqrt()), self.atol.unwrap_or(16.0 * epsilon));
        check_tolerances("root", &[("rtol", rtol), ("atol", atol)], at)?;
        let (shape, mut x, mut evaluations) = (x0.shape().clone(), to_f64_vec(x0), 0);
        check_start("root", &x, at)?;
        let n = x.len();
        for iterations in 0..=self.max_iter {
            let (y, jacobian) = value_and_jacobian(f, &to_tensor::<T>(&x, &shape)?)?;
            evaluations += 1;
            let (y, jacobian) = (to_f64_vec(&y), to_f64_vec(&jacobian));
            if y.len() != n {
                return Err(argument_error(format!("root: {n} unknowns need {n} equations, got {}", y.len()), at));
            }
            if !max_abs(&y).is_finite() {
                return Err(Error::NotFinite { at_what: format!("the function in iteration {iterations}"), at });
            }
            let residual = max_abs(&y);
            if residual == 0.0 {
                return Ok(RootResult { x: to_tensor(&x, &shape)?, residual, iterations, evaluations });
            }
            if iterations == self.max_iter {
                return Err(Error::Limit {
                    count: self.max_iter,
                    unit: "iterations",
                    progress: format!("the largest residual is {residual:e}"),
                    hint: "start from another point, or set `max_iter`",
                    at,
                });
            }
            // The Jacobian is divided by its largest element, so that the products do not overflow.
            let size = max_abs(&jacobian);
            let column = |j: usize| norm(&(0..n).map(|i| jacobian[i * n + j] / size).collect::<Vec<_>>());
            let columns: Vec<f64> = (0..n).map(column).collect();
            let scaled = |v: &[f64]| norm(&columns.iter().zip(v).map(|(column, v)| column * v).collect::<Vec<_>>());
            let mut step: Vec<f64> = y.iter().map(|y| -y).collect();
            let factors = Lu::factor(jacobian.clone(), n).ok_or(Error::Singular { iteration: iterations, at })?;
            factors.solve(&mut step);
            if !max_abs(&step).is_finite() {
                return Err(Error::Singular { iteration: iterations, at });
            }
            let is_last = scaled(&step) <= rtol * scaled(&x) || max_abs(&step) <= atol;
            let mut search = Search { f, shape: &shape, x: &x, y: &y, step: &step, evaluations: &mut evaluations };
            let found = if is_last { search.full()? } else { search.reduce()? };
            match found {
                Some((new, residual)) if is_last => {
                    return Ok(RootResult {
                        x: to_tensor(&new, &shape)?,
                        residual,
                        iterations: iterations + 1,
                        evaluations,
                    });
                }
                Some((new, _)) => x = new,
                None => return Err(Error::NoProgress { iterations, residual, at }),
            }
        }
        unreachable!("the last iteration returns")
    }
}

/// The search for a better point along a step.
struct Search<'a, T: Float> {
    f: &'a Map<'a, T>,
    shape: &'a Shape,
    x: &'a [f64],
    y: &'a [f64],
    step: &'a [f64],
    evaluations: &'a mut usize,
}

impl<T: Float> Search<'_, T> {
    /// Returns the point after the fraction `share` of the step, and the value of the function at this point.
    fn point(&mut self, share: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        let mut x: Vec<f64> = self.x.iter().zip(self.step).map(|(x, step)| x + share * step).collect();
        round_to_type::<T>(&mut x);
        *self.evaluations += 1;
        let y = to_f64_vec(&evaluate(self.f, &to_tensor::<T>(&x, self.shape)?)?);
        Ok((x, y))
    }

    /// Returns the point after the full step and the residual there, or the old point if its residual is smaller. After the last step,
    /// rounding errors may make the residual larger.
    fn full(&mut self) -> Result<Option<(Vec<f64>, f64)>> {
        let (x, y) = self.point(1.0)?;
        let (old, new) = (max_abs(self.y), max_abs(&y));
        Ok(Some(if new <= old { (x, new) } else { (self.x.to_vec(), old) }))
    }

    /// Returns the first tried point that reduces |f|² by at least 1e-4 times the predicted decrease, and the residual there. Tries smaller
    /// and smaller fractions of the step. Returns `None` if the step is as small as a rounding error before |f|² is reduced.
    fn reduce(&mut self) -> Result<Option<(Vec<f64>, f64)>> {
        // The merit of a point is |f|² / 2 relative to |f|² at the start, so that no square overflows or is rounded to 0.
        let (start, size) = (0.5, norm(self.y));
        let shortest = T::EPSILON.to_f64() * norm(self.x).max(T::EPSILON.to_f64()) / norm(self.step);
        let mut share = 1.0;
        while share > shortest.min(0.1) {
            let (x, y) = self.point(share)?;
            let merit = 0.5 * (norm(&y) / size).powi(2);
            // The slope of the merit along the Newton step is -2 times the merit.
            if merit <= start * (1.0 - 2e-4 * share) {
                return Ok(Some((x, max_abs(&y))));
            }
            // The next share is the minimum of a parabola. The parabola has the merits of the start and of the tried point, and this slope
            // at the start.
            let parabola = share * share * start / (merit - start + 2.0 * share * start);
            share = if parabola.is_finite() { parabola.clamp(0.1 * share, 0.5 * share) } else { 0.1 * share };
        }
        Ok(None)
    }
}
