//! The options of the minimiser, its iteration and its result.

use std::rc::Rc;

use wengert_autograd::Var;
use wengert_autograd::transforms::grad;
use wengert_macros::twins;
use wengert_tensor::{Float, Site, Tensor};

use super::bfgs::Bfgs;
use super::newton_cg;
use super::objective::Objective;
use super::wolfe::strong_wolfe;
use crate::error::{Error, Result, check_start, check_tolerances};
use crate::evaluate::{Map, MapWith, max_abs, norm, to_f64_vec, to_tensor, with_constants};
use crate::implicit::Implicit;

/// Returns a local minimum of a function whose result is one number, searched from `x0`, and the reason why the search ended. The method is
/// BFGS. [`Minimize`] has other settings, and minima with derivatives. SciPy: `minimize`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::minimize;
///
/// let rosenbrock = formula!(|p| {
///     let (x, y) = (p.select(0, 0), p.select(0, 1));
///     (y - x.square()).square() * 100.0 + (1.0 - x).square()
/// });
/// let found = minimize(rosenbrock, &Tensor::from([-1.2f64, 1.0]));
/// assert!(found.converged() && (found.x - 1.0).abs().amax(..).item() < 1e-6);
/// ```
///
/// # Errors
///
/// As for [`Minimize::try_call`].
#[twins]
pub fn try_minimize<T: Float>(
    f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
    x0: &Tensor<T>,
) -> Result<MinimizeResult<T>> {
    Minimize::new().find(&f, x0, Site::here("minimize"))
}

/// A method of minimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MinimizeMethod {
    /// Broyden, Fletcher, Goldfarb and Shanno's method with the whole inverse Hessian, n² numbers. For n above some thousands, use
    /// `Lbfgs` of `wengert::nn`. SciPy: `BFGS`.
    Bfgs,
    /// Newton's method, whose equations are solved by conjugate gradients with exact products of the Hessian and vectors. SciPy:
    /// `Newton-CG`.
    NewtonCg,
}

/// A minimiser of smooth functions without constraints, with its method and tolerances.
///
/// Each iteration computes a direction. It then searches for a point along this direction that satisfies the strong Wolfe conditions, with
/// the constants 1e-4 and 0.9. Gradients and products of the Hessian are exact.
#[derive(Clone, Debug)]
#[must_use]
pub struct Minimize {
    method: MinimizeMethod,
    gtol: f64,
    max_iter: Option<usize>,
}

/// The reason why a minimisation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MinimizeEnd {
    /// No element of the gradient exceeds `gtol` in magnitude. SciPy: `status` 0.
    Gtol,
    /// The largest number of iterations was reached. SciPy: `status` 1.
    MaxIterations,
    /// No tried point along the direction has a lower value. Either rounding errors hide the decrease, or the gradient is wrong or NaN along
    /// the direction. SciPy: `status` 2.
    NoProgress,
    /// The function is -∞ at the last point.
    Unbounded,
}

/// The result of a minimisation.
#[derive(Clone, Debug)]
pub struct MinimizeResult<T: Float> {
    /// The last point, with the shape of the start. Its value is the lowest that was found, up to rounding errors.
    pub x: Tensor<T>,
    /// The value of the function at `x`.
    pub value: f64,
    /// The gradient at `x`, with the shape of the start.
    pub gradient: Tensor<T>,
    /// The reason why the minimisation ended.
    pub end: MinimizeEnd,
    /// The number of iterations. SciPy: `nit`.
    pub iterations: usize,
    /// The number of evaluations of the function with its gradient. SciPy: `njev`.
    pub evaluations: usize,
    /// The number of products of the Hessian and a vector. SciPy: `nhev`.
    pub products: usize,
}

impl<T: Float> MinimizeResult<T> {
    /// Returns true if the gradient is within its tolerance.
    pub fn converged(&self) -> bool {
        self.end == MinimizeEnd::Gtol
    }
}

impl Default for Minimize {
    fn default() -> Self {
        Minimize::new()
    }
}

#[twins]
impl Minimize {
    /// Returns a minimiser with [`MinimizeMethod::Bfgs`] and SciPy's settings: a `gtol` of 1e-5 and at most 200 n iterations.
    pub fn new() -> Self {
        Minimize { method: MinimizeMethod::Bfgs, gtol: 1e-5, max_iter: None }
    }

    /// Sets the method of minimisation. The default is [`MinimizeMethod::Bfgs`].
    pub fn method(self, method: MinimizeMethod) -> Self {
        Minimize { method, ..self }
    }

    /// Sets the tolerance of the elements of the gradient. SciPy: `gtol`.
    pub fn gtol(self, gtol: f64) -> Self {
        Minimize { gtol, ..self }
    }

    /// Sets the largest number of iterations. SciPy: `maxiter`.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Minimize { max_iter: Some(max_iter), ..self }
    }

    /// Returns the local minimum that the method finds from `x0`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::{Minimize, MinimizeMethod};
    ///
    /// let newton = Minimize::new().method(MinimizeMethod::NewtonCg);
    /// let found = newton.call(|x| (x.exp() - x).sum(..), &Tensor::from([1.0f64, -2.0]));
    /// assert!(found.converged() && found.x.abs().amax(..).item() < 1e-5 && found.products > 0);
    /// ```
    ///
    /// # Errors
    ///
    /// If `gtol` is NaN or negative, or an element of `x0`, the function at `x0` or its gradient is NaN or infinite. Later points where the
    /// function or its gradient is not finite are rejected like points of a larger value; only a value of -∞ ends the search. Also if the
    /// result is not one number, or the function cannot be evaluated or differentiated.
    pub fn try_call<T: Float>(
        &self,
        f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        x0: &Tensor<T>,
    ) -> Result<MinimizeResult<T>> {
        self.find(&f, x0, Site::here("call"))
    }

    /// Records the minimum as an operation on the tape of `x0`. Its derivatives with respect to `args` follow from the implicit function
    /// theorem for the gradient, which is 0 at the minimum. They are of every order, in both modes. The Hessian must be regular. The errors
    /// of the derivatives grow with the error of the minimum, so set a small `gtol`.
    ///
    /// `f` gets the unknowns and `args`. All variables that it uses must be among the arguments; the compiler refuses functions that capture
    /// variables. jaxopt: `implicit_diff`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Minimize;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (a, x0) = (tape.var(&Tensor::scalar(2.0)), tape.constant(&Tensor::scalar(0.0)));
    /// let x = Minimize::new().gtol(1e-12).record(|x, args| x.exp() - x * args[0], x0, &[a]); // log(a)
    /// assert!((x.grad([a])[0].item() - 0.5).abs() < 1e-12);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variables belong to different tapes. When a value is requested: the errors of [`call`](Self::call), or that the method did not
    /// converge.
    pub fn try_record<'t, T: Float>(
        &self,
        f: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        x0: Var<'t, T>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let (at, solver, f) = (Site::here("record"), self.clone(), Rc::new(f));
        let known = Rc::clone(&f);
        let equation: Rc<MapWith<T>> = Rc::new(move |x, args| grad(|x| known(x, args), x));
        let search = Box::new(move |x0: &Tensor<T>, args: &[Tensor<T>]| {
            let found = solver.find(&with_constants(&*f, args), x0, at)?;
            if found.converged() {
                return Ok(found.x);
            }
            let residual = max_abs(&to_f64_vec(&found.gradient));
            Err(Error::NoProgress { iterations: found.iterations, residual, at })
        });
        Implicit { name: "minimize", search, equation }.record(x0, args, at)
    }

    fn find<T: Float>(&self, f: &Map<'_, T>, x0: &Tensor<T>, at: Site) -> Result<MinimizeResult<T>> {
        check_tolerances("minimize", &[("gtol", self.gtol)], at)?;
        let shape = x0.shape();
        let mut objective = Objective { f, shape, evaluations: 0, products: 0 };
        let start = to_f64_vec(x0);
        check_start("minimize", &start, at)?;
        let mut point = objective.evaluate(start)?;
        if !point.is_finite() {
            return Err(Error::NotFinite { at_what: "the function or its gradient at the start".into(), at });
        }
        let limit = self.max_iter.unwrap_or(200 * x0.numel());
        let (mut bfgs, mut iterations) = (Bfgs::default(), 0);
        let end = loop {
            if max_abs(&point.gradient) <= self.gtol {
                break MinimizeEnd::Gtol;
            }
            if iterations >= limit {
                break MinimizeEnd::MaxIterations;
            }
            let (direction, first) = match self.method {
                MinimizeMethod::NewtonCg => (newton_cg::direction(&mut objective, &point)?, 1.0),
                MinimizeMethod::Bfgs => {
                    let first = if bfgs.is_new() { (1.0 / norm(&point.gradient)).min(1.0) } else { 1.0 };
                    (bfgs.direction(&point.gradient), first)
                }
            };
            match strong_wolfe(&mut objective, &point, &direction, first)? {
                Some(new) if new.value == f64::NEG_INFINITY => {
                    point = new;
                    break MinimizeEnd::Unbounded;
                }
                Some(new) if new.x != point.x => {
                    if self.method == MinimizeMethod::Bfgs {
                        bfgs.update(&point, &new);
                    }
                    point = new;
                    iterations += 1;
                }
                // The approximation can be wrong far from its last points: begin again along the gradient.
                _ if self.method == MinimizeMethod::Bfgs && !bfgs.is_new() => bfgs.reset(),
                _ => break MinimizeEnd::NoProgress,
            }
        };
        Ok(MinimizeResult {
            x: to_tensor(&point.x, shape)?,
            value: point.value,
            gradient: to_tensor(&point.gradient, shape)?,
            end,
            iterations,
            evaluations: objective.evaluations,
            products: objective.products,
        })
    }
}
