//! Nonlinear least squares by the Levenberg-Marquardt method with exact Jacobians.
//!
//! J. J. Moré, "The Levenberg-Marquardt algorithm: implementation and theory" (1978), the method of MINPACK's `lmder`. The method has a
//! trust region. The variables are scaled by the largest norms of the Jacobian's columns so far. The step is computed from singular values
//! and not from a QR factorisation, because they show the rank of the Jacobian. The parameter of the step solves Moré's secular equation by
//! his safeguarded Newton iteration.

use std::rc::Rc;

use wengert_autograd::Var;
use wengert_autograd::transforms::grad;
use wengert_linalg::prelude::*;
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Reductions as _};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::{Error, Result, check_start, check_tolerances};
use crate::evaluate::{
    Map, MapWith, dot, evaluate, max_abs, norm, round_to_type, to_f64_vec, to_tensor, value_and_jacobian,
    with_constants,
};
use crate::implicit::Implicit;

/// Returns the x that minimises half the sum of the squares of `residuals(x)`, searched from `x0`, and the reason why the search ended.
/// [`LeastSquares`] has tolerances, and solutions with derivatives. SciPy: `least_squares(method="lm")`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::least_squares;
///
/// let t = Tensor::from([0.0, 1.0, 2.0, 3.0]);
/// let y = (&t * -0.5f64).exp() * 2.0;
/// let fit = least_squares(|p| (p.select(0, 1) * &t).exp() * p.select(0, 0) - &y, &Tensor::from([1.0, 0.0]));
/// assert!(fit.converged() && fit.cost < 1e-20);
/// assert!((fit.x - Tensor::from([2.0, -0.5])).abs().amax(..).item() < 1e-8);
/// ```
///
/// # Errors
///
/// As for [`LeastSquares::try_call`].
#[twins]
pub fn try_least_squares<T: Float>(
    residuals: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
    x0: &Tensor<T>,
) -> Result<LeastSquaresResult<T>> {
    LeastSquares::new().find(&residuals, x0, Site::here("least_squares"))
}

/// The Levenberg-Marquardt method, with its tolerances.
///
/// The stopping tests are MINPACK's. `ftol` compares the actual and the predicted decrease of the cost with the cost. `xtol` compares the
/// radius of the trust region with x, in scaled variables. `gtol` compares the cosines of the angles between the residuals and the columns
/// of the Jacobian with 0.
#[derive(Clone, Debug)]
#[must_use]
pub struct LeastSquares {
    ftol: f64,
    xtol: f64,
    gtol: f64,
    max_nfev: Option<usize>,
}

/// The reason why the Levenberg-Marquardt method ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitEnd {
    /// The largest cosine of an angle between the residuals and a column of the Jacobian is at most `gtol`. SciPy: `status` 1.
    Gtol,
    /// The actual and the predicted decrease of the sum of squares are at most `ftol` times the sum. SciPy: `status` 2.
    Ftol,
    /// The radius of the trust region is at most `xtol` times |x|, in scaled variables. SciPy: `status` 3.
    Xtol,
    /// The largest number of evaluations was reached. SciPy: `status` 0.
    MaxEvaluations,
    /// Rounding errors hide any further decrease: `ftol` or `xtol` is too small. MINPACK: `info` 6 and 7.
    NoProgress,
}

/// The result of a least-squares problem.
#[derive(Clone, Debug)]
pub struct LeastSquaresResult<T: Float> {
    /// The solution, with the shape of the start.
    pub x: Tensor<T>,
    /// Half the sum of the squares of the residuals.
    pub cost: f64,
    /// The residuals at the solution, as a vector `[m]`.
    pub residuals: Tensor<T>,
    /// The Jacobian at the solution, `[m, n]`.
    pub jacobian: Tensor<T>,
    /// The largest absolute value of the gradient of the cost.
    pub optimality: f64,
    /// The reason why the method ended.
    pub end: FitEnd,
    /// The number of accepted steps.
    pub iterations: usize,
    /// The number of points where the residuals were evaluated. The second evaluation of an accepted point, with its Jacobian, is
    /// not counted. SciPy: `nfev`.
    pub evaluations: usize,
}

#[twins]
impl<T: Float> LeastSquaresResult<T> {
    /// Returns true if one of the tolerances ended the method.
    pub fn converged(&self) -> bool {
        matches!(self.end, FitEnd::Gtol | FitEnd::Ftol | FitEnd::Xtol)
    }

    /// Returns the covariance `[n, n]` of the solution if the residuals have independent errors of variance 1: the pseudoinverse of Jᵀ J.
    /// For residuals of unknown, equal variance, multiply by 2 cost / (m - n). SciPy: `curve_fit` with `absolute_sigma=True`.
    ///
    /// A direction that the residuals do not determine counts with variance 0, as in `curve_fit` with the methods `trf` and `dogbox`; `lm`
    /// returns infinities.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::least_squares;
    ///
    /// // The mean of four numbers has a quarter of their variance.
    /// let fit = least_squares(|mean| mean.expand([4]) - Tensor::from([1.0, 2.0, 4.0, 5.0]), &Tensor::scalar(0.0f64));
    /// assert!((fit.x.item() - 3.0).abs() < 1e-12 && (fit.covariance().item() - 0.25).abs() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If the singular values cannot be computed, or there is not enough memory.
    pub fn try_covariance(&self) -> Result<Tensor<T>> {
        let n = self.x.numel();
        let (_, values, right) = self.jacobian.try_cast::<f64>()?.try_svd(false)?;
        let (values, right) = (to_f64_vec(&values), to_f64_vec(&right));
        let limit =
            T::EPSILON.to_f64() * (self.jacobian.shape()[0].max(n)) as f64 * values.first().copied().unwrap_or(0.0);
        let mut covariance = vec![0.0; n * n];
        for (k, value) in values.iter().enumerate().filter(|(_, value)| **value > limit) {
            let row = &right[k * n..(k + 1) * n];
            for (i, x) in row.iter().enumerate() {
                for (j, y) in row.iter().enumerate() {
                    covariance[i * n + j] += x * y / (value * value);
                }
            }
        }
        to_tensor(&covariance, &Shape::from([n, n]))
    }
}

impl Default for LeastSquares {
    fn default() -> Self {
        LeastSquares::new()
    }
}

#[twins]
impl LeastSquares {
    /// Returns a solver with SciPy's tolerances: 1e-8 for each of `ftol`, `xtol` and `gtol`. The largest number of
    /// evaluations is 100 for each unknown, but not below 200.
    pub fn new() -> Self {
        LeastSquares { ftol: 1e-8, xtol: 1e-8, gtol: 1e-8, max_nfev: None }
    }

    /// Sets the tolerance of the relative decrease of the sum of squares. SciPy: `ftol`.
    pub fn ftol(self, ftol: f64) -> Self {
        LeastSquares { ftol, ..self }
    }

    /// Sets the tolerance of the radius of the trust region, relative to |x|. SciPy: `xtol`.
    pub fn xtol(self, xtol: f64) -> Self {
        LeastSquares { xtol, ..self }
    }

    /// Sets the tolerance of the cosines of the angles between the residuals and the columns of the Jacobian. SciPy: `gtol`.
    pub fn gtol(self, gtol: f64) -> Self {
        LeastSquares { gtol, ..self }
    }

    /// Sets the largest number of evaluations of the residuals. SciPy: `max_nfev`.
    pub fn max_nfev(self, max_nfev: usize) -> Self {
        LeastSquares { max_nfev: Some(max_nfev), ..self }
    }

    /// Returns the solution that the method finds from `x0`. The residuals may have any shape and any number of elements.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::{FitEnd, LeastSquares};
    ///
    /// let rosenbrock = formula!(|p| {
    ///     let (x, y) = (p.select(0, 0), p.select(0, 1));
    ///     stack(&[(y - x.square()) * 10.0, 1.0 - x], 0)
    /// });
    /// let fit = LeastSquares::new().max_nfev(2).call(rosenbrock, &Tensor::from([-1.2f64, 1.0]));
    /// assert_eq!(fit.end, FitEnd::MaxEvaluations);
    /// ```
    ///
    /// # Errors
    ///
    /// If a tolerance is NaN or negative, or an element of `x0` is NaN or infinite. If the residuals at `x0` or the Jacobian at an accepted
    /// point are NaN or infinite, or their norms overflow. Points where the residuals are not finite are rejected like points of larger
    /// cost. Also if the residuals cannot be evaluated or differentiated.
    pub fn try_call<T: Float>(
        &self,
        residuals: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        x0: &Tensor<T>,
    ) -> Result<LeastSquaresResult<T>> {
        self.find(&residuals, x0, Site::here("call"))
    }

    /// Records the solution as an operation on the tape of `x0`. Its derivatives with respect to `args` follow from the implicit function
    /// theorem for the gradient of the cost, which is 0 at the solution. They are of every order, in both modes. The Hessian of the cost is
    /// exact, and must be regular. The errors of the derivatives grow with the error of the solution, so set small tolerances.
    ///
    /// `residuals` gets the unknowns and `args`. All variables that it uses must be among the arguments; the compiler refuses functions that
    /// capture variables.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::LeastSquares;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (y, x0) = (tape.var(&Tensor::from([1.0, 2.0, 6.0])), tape.constant(&Tensor::scalar(0.0)));
    /// let mean = LeastSquares::new().record(|x, args| args[0] - x, x0, &[y]);
    /// assert!((mean.grad([y])[0] - 1.0 / 3.0).abs().amax(..).item() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variables belong to different tapes. When a value is requested: the errors of [`call`](Self::call), or that the method did not
    /// converge.
    pub fn try_record<'t, T: Float>(
        &self,
        residuals: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        x0: Var<'t, T>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let (at, solver, residuals) = (Site::here("record"), self.clone(), Rc::new(residuals));
        let known = Rc::clone(&residuals);
        let equation: Rc<MapWith<T>> = Rc::new(move |x, args| grad(|x| known(x, args).square().sum(..), x));
        let search = Box::new(move |x0: &Tensor<T>, args: &[Tensor<T>]| {
            let fit = solver.find(&with_constants(&*residuals, args), x0, at)?;
            if fit.converged() {
                return Ok(fit.x);
            }
            Err(Error::NoProgress { iterations: fit.iterations, residual: fit.optimality, at })
        });
        Implicit { name: "least_squares", search, equation }.record(x0, args, at)
    }

    fn find<T: Float>(&self, f: &Map<'_, T>, x0: &Tensor<T>, at: Site) -> Result<LeastSquaresResult<T>> {
        check_tolerances("least_squares", &[("ftol", self.ftol), ("xtol", self.xtol), ("gtol", self.gtol)], at)?;
        let shape = x0.shape();
        let limit = self.max_nfev.unwrap_or((100 * x0.numel()).max(200));
        let start = to_f64_vec(x0);
        check_start("least_squares", &start, at)?;
        let mut point = Point::evaluate(f, start, shape, at, 0)?;
        let (mut iterations, mut evaluations) = (0, 1);
        let mut region = TrustRegion::new(&point);
        let end = 'outer: loop {
            region.raise_scale(&point);
            if max_abs(&point.cosines) <= self.gtol {
                break FitEnd::Gtol;
            }
            let problem = Subproblem::new(&point, &region.scale)?;
            loop {
                if evaluations >= limit {
                    break 'outer FitEnd::MaxEvaluations;
                }
                let step = problem.step(&mut region.damping, region.radius);
                let mut x: Vec<f64> = point.x.iter().zip(&step.x).map(|(x, step)| x + step).collect();
                round_to_type::<T>(&mut x);
                evaluations += 1;
                let y = to_f64_vec(&evaluate(f, &to_tensor::<T>(&x, shape)?)?);
                let outcome = region.update(&point, &step, norm(&y), iterations == 0);
                if outcome.is_accepted {
                    point = Point::evaluate(f, x, shape, at, iterations + 1)?;
                    iterations += 1;
                }
                let small = outcome.actual_reduction.abs().max(outcome.predicted_reduction);
                let x_norm = norm(&region.scaled(&point.x));
                if small <= self.ftol && outcome.ratio <= 2.0 {
                    break 'outer FitEnd::Ftol;
                }
                if region.radius <= self.xtol * x_norm {
                    break 'outer FitEnd::Xtol;
                }
                let epsilon = T::EPSILON.to_f64();
                if small <= epsilon && outcome.ratio <= 2.0 || region.radius <= epsilon * x_norm {
                    break 'outer FitEnd::NoProgress;
                }
                if outcome.is_accepted {
                    break;
                }
            }
        };
        let (m, n) = (point.y.len(), point.x.len());
        Ok(LeastSquaresResult {
            x: to_tensor(&point.x, shape)?,
            // The sum of no products is -0.
            cost: 0.0 + 0.5 * dot(&point.y, &point.y),
            optimality: point.optimality(),
            residuals: to_tensor(&point.y, &Shape::from([m]))?,
            jacobian: to_tensor(&point.jacobian, &Shape::from([m, n]))?,
            end,
            iterations,
            evaluations,
        })
    }
}

/// A point with its residuals and its Jacobian in row-major order.
struct Point {
    x: Vec<f64>,
    y: Vec<f64>,
    jacobian: Vec<f64>,
    /// The norms of the columns of the Jacobian.
    columns: Vec<f64>,
    /// The cosines of the angles between the residuals and the columns. They are 0 for columns or residuals that are 0.
    cosines: Vec<f64>,
}

impl Point {
    fn evaluate<T: Float>(f: &Map<'_, T>, x: Vec<f64>, shape: &Shape, at: Site, iteration: usize) -> Result<Self> {
        let (y, jacobian) = value_and_jacobian(f, &to_tensor::<T>(&x, shape)?)?;
        let (y, jacobian, n) = (to_f64_vec(&y), to_f64_vec(&jacobian), x.len());
        if !max_abs(&y).is_finite() || !max_abs(&jacobian).is_finite() {
            let at_what = format!("a residual or its derivative in iteration {iteration}");
            return Err(Error::NotFinite { at_what, at });
        }
        let column = |j: usize| norm(&jacobian.iter().skip(j).step_by(n).copied().collect::<Vec<_>>());
        let (size, columns) = (norm(&y), (0..n).map(column).collect::<Vec<f64>>());
        if !size.is_finite() || !max_abs(&columns).is_finite() {
            let at_what = format!("the norm of the residuals or of their derivatives in iteration {iteration}");
            return Err(Error::NotFinite { at_what, at });
        }
        let mut cosines = vec![0.0; n];
        for (row, y) in jacobian.chunks(n.max(1)).zip(&y).filter(|_| size != 0.0) {
            // The factors are at most 1, so their products do not overflow, and small residuals and derivatives are not rounded to 0.
            let slopes =
                row.iter().zip(&columns).map(|(slope, column)| if *column == 0.0 { 0.0 } else { slope / column });
            cosines.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope * (y / size));
        }
        Ok(Point { x, y, jacobian, columns, cosines })
    }

    /// Returns the largest absolute value of the gradient of the cost.
    fn optimality(&self) -> f64 {
        let size = norm(&self.y);
        self.cosines
            .iter()
            .zip(&self.columns)
            .map(|(cosine, column)| (cosine * column * size).abs())
            .fold(0.0, f64::max)
    }
}

/// The trust region: the steps p with |D p| ≤ `radius`. D has the diagonal `scale`. `damping` is the Levenberg-Marquardt parameter of the
/// last step.
struct TrustRegion {
    scale: Vec<f64>,
    radius: f64,
    damping: f64,
}

/// The decision of [`TrustRegion::update`] about a step, with the numbers on which it is based.
struct StepOutcome {
    is_accepted: bool,
    /// The actual and the predicted relative decrease of the sum of squares.
    actual_reduction: f64,
    predicted_reduction: f64,
    /// The actual decrease divided by the predicted decrease.
    ratio: f64,
}

impl TrustRegion {
    /// Returns the first region: its radius is 100 times the norm of the scaled start, or 100 if this is 0.
    fn new(point: &Point) -> Self {
        let scale = point.columns.iter().map(|&column| if column == 0.0 { 1.0 } else { column }).collect();
        let mut region = TrustRegion { scale, radius: 0.0, damping: 0.0 };
        let size = norm(&region.scaled(&point.x));
        region.radius = if size == 0.0 { 100.0 } else { 100.0 * size };
        region
    }

    fn scaled(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.scale).map(|(x, scale)| x * scale).collect()
    }

    /// Scales each variable by the largest norm that its column of the Jacobian has had so far.
    fn raise_scale(&mut self, point: &Point) {
        self.scale.iter_mut().zip(&point.columns).for_each(|(scale, column)| *scale = scale.max(*column));
    }

    /// Decides whether a step is accepted. Changes the radius of the trust region and the Levenberg-Marquardt parameter (Moré, sections 5 and
    /// 6; MINPACK's `lmder`). `new` is the norm of the residuals after the step.
    fn update(&mut self, point: &Point, step: &Step, new: f64, is_first: bool) -> StepOutcome {
        let old = norm(&point.y);
        let length = norm(&self.scaled(&step.x));
        if is_first {
            self.radius = self.radius.min(length);
        }
        // If the norm is not finite, or at least ten times the old norm, the step counts as a relative decrease of -1.
        let actual = if 0.1 * new < old { 1.0 - (new / old).powi(2) } else { -1.0 };
        let (linear, damped) = ((step.linear / old).powi(2), self.damping * (length / old).powi(2));
        let predicted = linear + 2.0 * damped;
        let slope = -(linear + damped);
        let ratio = if predicted == 0.0 { 0.0 } else { actual / predicted };
        if ratio <= 0.25 {
            let factor = if actual >= 0.0 { 0.5 } else { 0.5 * slope / (slope + 0.5 * actual) };
            let factor = if 0.1 * new >= old || factor.is_nan() || factor < 0.1 { 0.1 } else { factor };
            self.radius = factor * self.radius.min(length / 0.1);
            self.damping /= factor;
        } else if self.damping == 0.0 || ratio >= 0.75 {
            self.radius = length / 0.5;
            self.damping *= 0.5;
        }
        StepOutcome { is_accepted: ratio >= 1e-4, actual_reduction: actual, predicted_reduction: predicted, ratio }
    }
}

/// A step, and the norm of J p for this step p.
struct Step {
    x: Vec<f64>,
    linear: f64,
}

/// The linear least-squares problem at a point, stored as the singular value decomposition J D⁻¹ = U S Vᵀ.
struct Subproblem {
    values: Vec<f64>,
    /// Vᵀ, in row-major order.
    right: Vec<f64>,
    /// -Uᵀ y, where y are the residuals.
    target: Vec<f64>,
    scale: Vec<f64>,
}

impl Subproblem {
    fn new(point: &Point, scale: &[f64]) -> Result<Self> {
        let (m, n) = (point.y.len(), point.x.len());
        let scaled: Vec<f64> =
            point.jacobian.chunks(n.max(1)).flat_map(|row| row.iter().zip(scale).map(|(x, scale)| x / scale)).collect();
        let (left, values, right) = Tensor::try_from_vec(scaled, [m, n])?.try_svd(false)?;
        let (left, values, right) = (to_f64_vec(&left), to_f64_vec(&values), to_f64_vec(&right));
        let count = values.len();
        let mut target = vec![0.0; count];
        for (row, y) in left.chunks(count.max(1)).zip(&point.y) {
            target.iter_mut().zip(row).for_each(|(sum, u)| *sum -= u * y);
        }
        Ok(Subproblem { values, right, target, scale: scale.to_vec() })
    }

    /// Returns the step that minimises |J p + y|² with |D p| close to `radius` or below. Sets `damping`, which is the Levenberg-Marquardt
    /// parameter of the last step, to the parameter of this step (Moré, section 5; MINPACK's `lmpar`).
    fn step(&self, damping: &mut f64, radius: f64) -> Step {
        let rank_limit = f64::EPSILON * self.values.len() as f64 * self.values.first().copied().unwrap_or(0.0);
        let is_singular = self.values.iter().any(|&value| value <= rank_limit);
        // The coordinates of the scaled step D p along the rows of Vᵀ.
        let coordinates = |damping: f64| -> Vec<f64> {
            let pairs = self.values.iter().zip(&self.target);
            if damping == 0.0 {
                pairs.map(|(&s, c)| if s > rank_limit { c / s } else { 0.0 }).collect()
            } else {
                pairs.map(|(s, c)| s * c / (s * s + damping)).collect()
            }
        };
        let mut q = coordinates(0.0);
        let mut excess = norm(&q) - radius;
        if excess <= 0.1 * radius {
            *damping = 0.0;
            return self.step_from_coordinates(&q);
        }
        // The derivative of the norm of q with respect to the parameter.
        let slope = |q: &[f64], damping: f64| {
            let terms = q.iter().zip(&self.values).filter(|(q, _)| **q != 0.0);
            -terms.map(|(q, s)| q * q / (s * s + damping)).sum::<f64>() / norm(q)
        };
        let mut lower = if is_singular { 0.0 } else { -excess / slope(&q, 0.0) };
        let gradient = norm(&self.values.iter().zip(&self.target).map(|(s, c)| s * c).collect::<Vec<_>>());
        let mut upper = if gradient == 0.0 { f64::MIN_POSITIVE / radius.min(0.1) } else { gradient / radius };
        *damping = damping.max(lower).min(upper);
        if *damping == 0.0 {
            *damping = gradient / norm(&q);
        }
        for iteration in 0.. {
            if *damping == 0.0 {
                *damping = f64::MIN_POSITIVE.max(1e-3 * upper);
            }
            q = coordinates(*damping);
            let last = excess;
            excess = norm(&q) - radius;
            let is_close = excess.abs() <= 0.1 * radius;
            if is_close || lower == 0.0 && excess <= last && last < 0.0 || iteration == 10 {
                break;
            }
            let correction = -(excess + radius) / radius * excess / slope(&q, *damping);
            if excess > 0.0 {
                lower = lower.max(*damping);
            } else {
                upper = upper.min(*damping);
            }
            *damping = lower.max(*damping + correction);
        }
        self.step_from_coordinates(&q)
    }

    /// Returns the step p. `q` has the coordinates of the scaled step D p along the rows of Vᵀ.
    fn step_from_coordinates(&self, q: &[f64]) -> Step {
        let n = self.scale.len();
        let mut x = vec![0.0; n];
        for (q, row) in q.iter().zip(self.right.chunks(n.max(1))) {
            x.iter_mut().zip(row).for_each(|(x, v)| *x += q * v);
        }
        x.iter_mut().zip(&self.scale).for_each(|(x, scale)| *x /= scale);
        let linear = norm(&q.iter().zip(&self.values).map(|(q, s)| q * s).collect::<Vec<_>>());
        Step { x, linear }
    }
}
