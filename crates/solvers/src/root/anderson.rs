//! Fixed points, by iterations with Anderson acceleration.
//!
//! H. F. Walker and P. Ni, "Anderson acceleration for fixed-point iterations" (2011), algorithm AA in its unconstrained form (section 4). A
//! modified Gram-Schmidt process solves the small least-squares problems.

use std::collections::VecDeque;
use std::rc::Rc;

use wengert_autograd::transforms::grad;
use wengert_autograd::{Error as TapeError, Function, FunctionCall, Var};
use wengert_macros::twins;
use wengert_tensor::ops::Reductions as _;
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::{Error, Result, check_start, check_tolerances};
use crate::evaluate::{
    Map, MapWith, check_shape, dot, evaluate, norm, round_to_type, to_f64_vec, to_tensor, with_constants,
};
use crate::implicit::argument_gradients;

/// Returns a fixed point x = g(x), found from `x0`. [`FixedPoint`] has tolerances, and fixed points with derivatives. SciPy: `fixed_point`;
/// jaxopt: `AndersonAcceleration`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::fixed_point;
///
/// let x = fixed_point(|x| x.cos(), &Tensor::scalar(1.0));
/// assert!((x.item() - 0.7390851332151607f64).abs() < 1e-8);
/// ```
///
/// # Errors
///
/// As for [`FixedPoint::try_call`].
#[twins]
pub fn try_fixed_point<T: Float>(g: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>, x0: &Tensor<T>) -> Result<Tensor<T>> {
    Ok(FixedPoint::new().find(&g, x0, Site::here("fixed_point"))?.x)
}

/// A solver of x = g(x) by iterations with Anderson acceleration, with its tolerances. It needs no Jacobian, so it suits large systems and
/// implicit layers.
///
/// The next point combines the last points so that the residual g(x) - x of the combination would be smallest if g were affine. For an
/// affine g, this is nearly GMRES. The iteration ends when |g(x) - x| ≤ atol + rtol |g(x)|, in Euclidean norms. The result is g(x).
#[derive(Clone, Debug)]
#[must_use]
pub struct FixedPoint {
    rtol: f64,
    atol: f64,
    history: usize,
    max_iter: usize,
}

/// A fixed point, and the work that it took.
#[derive(Clone, Debug)]
pub struct FixedPointResult<T: Float> {
    /// The fixed point, with the shape of the start.
    pub x: Tensor<T>,
    /// The Euclidean norm of g(x) - x at the last point x, whose image g(x) is the result.
    pub residual: f64,
    /// The number of iterations, each with one evaluation of the function.
    pub iterations: usize,
}

impl Default for FixedPoint {
    fn default() -> Self {
        FixedPoint::new()
    }
}

#[twins]
impl FixedPoint {
    /// Returns a solver that combines at most 5 differences of points, with an rtol of 1e-8 and an atol of 1e-12. It makes at most 1000
    /// iterations.
    pub fn new() -> Self {
        FixedPoint { rtol: 1e-8, atol: 1e-12, history: 5, max_iter: 1000 }
    }

    /// Sets the relative tolerance of the residual. A tolerance below 16 ε of the element type counts as 16 ε.
    pub fn rtol(self, rtol: f64) -> Self {
        FixedPoint { rtol, ..self }
    }

    /// Sets the absolute tolerance of the residual. The equation for the gradient is solved with the relative tolerance only.
    pub fn atol(self, atol: f64) -> Self {
        FixedPoint { atol, ..self }
    }

    /// Sets the largest number of differences of points that are combined. 0 is the plain iteration. jaxopt: `history_size`.
    pub fn history(self, history: usize) -> Self {
        FixedPoint { history, ..self }
    }

    /// Sets the largest number of iterations.
    pub fn max_iter(self, max_iter: usize) -> Self {
        FixedPoint { max_iter, ..self }
    }

    /// Returns the fixed point that the iterations reach from `x0`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::FixedPoint;
    ///
    /// let slow = FixedPoint::new().history(0).call(|x| x * -0.9 + 1.0, &Tensor::scalar(0.0f64));
    /// let fast = FixedPoint::new().call(|x| x * -0.9 + 1.0, &Tensor::scalar(0.0f64));
    /// assert!((fast.x.item() - 1.0 / 1.9).abs() < 1e-12);
    /// assert!(fast.iterations < 5 && slow.iterations > 100);
    /// ```
    ///
    /// # Errors
    ///
    /// If a tolerance is NaN or negative, or an element of `x0` is NaN or infinite. If the result of `g` does not have the shape of `x0`, or
    /// is NaN or infinite. If the largest number of iterations is reached, or `g` cannot be evaluated.
    pub fn try_call<T: Float>(
        &self,
        g: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        x0: &Tensor<T>,
    ) -> Result<FixedPointResult<T>> {
        self.find(&g, x0, Site::here("call"))
    }

    /// Records the fixed point as an operation on the tape of `x0`. Its derivatives with respect to `args` follow from the implicit function
    /// theorem, in both modes and of every order. For an incoming gradient v, the same method solves w = v + Jᵀ w, where J is the Jacobian of
    /// `g` with respect to the point. The gradients of `args` are w times the derivatives of `g` with respect to them. The derivative with
    /// respect to the start is zero.
    ///
    /// `g` gets the point and `args`. All variables that it uses must be among the arguments; the compiler refuses functions that capture
    /// variables. jaxopt: `implicit_diff`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::FixedPoint;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (a, x0) = (tape.var(&Tensor::scalar(2.0)), tape.constant(&Tensor::scalar(1.0)));
    /// // Heron's iteration for the square root.
    /// let x = FixedPoint::new().rtol(1e-14).record(|x, args| (x + args[0] / x) * 0.5, x0, &[a]);
    /// assert!((x.grad([a])[0].item() - 0.5 / 2f64.sqrt()).abs() < 1e-14);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variables belong to different tapes. The errors of [`call`](Self::call) occur when a value is requested. So does the error of
    /// a gradient whose incoming gradient is not finite.
    pub fn try_record<'t, T: Float>(
        &self,
        g: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        x0: Var<'t, T>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let at = Site::here("record");
        let inputs: Vec<Var<'t, T>> = std::iter::once(x0).chain(args.iter().copied()).collect();
        let function = RecordedFixedPoint { solver: self.clone(), g: Rc::new(g), is_adjoint: false, at };
        Ok(x0.tape().record_function(function, &inputs, at)?[0])
    }

    fn find<T: Float>(&self, g: &Map<'_, T>, x0: &Tensor<T>, at: Site) -> Result<FixedPointResult<T>> {
        check_tolerances("fixed_point", &[("rtol", self.rtol), ("atol", self.atol)], at)?;
        let rtol = self.rtol.max(16.0 * T::EPSILON.to_f64());
        let (shape, mut x) = (x0.shape().clone(), to_f64_vec(x0));
        check_start("fixed_point", &x, at)?;
        let mut history = History { capacity: self.history, ..History::default() };
        let mut smallest = f64::INFINITY;
        for iterations in 1..=self.max_iter {
            let image = evaluate(g, &to_tensor::<T>(&x, &shape)?)?;
            check_shape("the result of g", image.shape(), &shape, at)?;
            let gx = to_f64_vec(&image);
            let rest: Vec<f64> = gx.iter().zip(&x).map(|(g, x)| g - x).collect();
            let residual = norm(&rest);
            if !residual.is_finite() {
                return Err(Error::NotFinite { at_what: format!("the function in iteration {iterations}"), at });
            }
            if residual <= self.atol + rtol * norm(&gx) {
                return Ok(FixedPointResult { x: image, residual, iterations });
            }
            // The combination can fail if the function is far from affine. The plain iteration then continues from this point.
            if residual > 10.0 * smallest {
                history.clear();
            }
            smallest = smallest.min(residual);
            x = history.next(rest, gx);
            round_to_type::<T>(&mut x);
        }
        Err(Error::Limit {
            count: self.max_iter,
            unit: "iterations",
            progress: format!("the smallest residual is {smallest:e}"),
            hint: "is the function a contraction? `root` finds other fixed points as roots of g(x) - x",
            at,
        })
    }
}

/// The differences between successive residuals and between successive images g(x), newest first, from which the next point is computed. At
/// most `capacity` of each are stored.
#[derive(Default)]
struct History {
    capacity: usize,
    last: Option<(Vec<f64>, Vec<f64>)>,
    residuals: VecDeque<Vec<f64>>,
    images: VecDeque<Vec<f64>>,
}

impl History {
    fn clear(&mut self) {
        *self = History { capacity: self.capacity, ..History::default() };
    }

    /// Adds the image g(x) of the current point x and the residual g(x) - x, and returns the next point. This is the image minus a linear
    /// combination of the differences of images. Its coefficients bring the combination of the differences of residuals nearest to the
    /// residual.
    fn next(&mut self, residual: Vec<f64>, image: Vec<f64>) -> Vec<f64> {
        let minus = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<f64>>();
        if self.capacity == 0 {
            return image;
        }
        if let Some((last_residual, last_image)) = &self.last {
            self.residuals.push_front(minus(&residual, last_residual));
            self.images.push_front(minus(&image, last_image));
            self.residuals.truncate(self.capacity);
            self.images.truncate(self.capacity);
        }
        let (mut next, mut rest) = (image.clone(), residual.clone());
        // Gram-Schmidt, from the newest difference of residuals to the oldest: each is made orthogonal to the newer ones. The differences of
        // images are combined with the same coefficients.
        let mut basis: Vec<(Vec<f64>, Vec<f64>)> = Vec::with_capacity(self.residuals.len());
        for (column, image) in self.residuals.iter().zip(&self.images) {
            let (mut q, mut p) = (column.clone(), image.clone());
            for (known_q, known_p) in &basis {
                let share = dot(known_q, &q);
                q.iter_mut().zip(known_q).for_each(|(q, known)| *q -= share * known);
                p.iter_mut().zip(known_p).for_each(|(p, known)| *p -= share * known);
            }
            let size = norm(&q);
            // A column that nearly depends on the others would have an arbitrary, large weight.
            if size <= 1e-8 * norm(column) {
                continue;
            }
            q.iter_mut().chain(&mut p).for_each(|x| *x /= size);
            let weight = dot(&q, &rest);
            rest.iter_mut().zip(&q).for_each(|(rest, q)| *rest -= weight * q);
            next.iter_mut().zip(&p).for_each(|(next, p)| *next -= weight * p);
            basis.push((q, p));
        }
        self.last = Some((residual, image));
        next
    }
}

/// A fixed point as an operation. The inputs are the start and the arguments.
struct RecordedFixedPoint<T: Float> {
    solver: FixedPoint,
    g: Rc<MapWith<T>>,
    /// True if the start is a gradient of another fixed point.
    is_adjoint: bool,
    at: Site,
}

impl<T: Float> Function<T> for RecordedFixedPoint<T> {
    fn name(&self) -> &'static str {
        "fixed_point"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        Ok(vec![inputs[0].clone()])
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, TapeError> {
        if self.is_adjoint && !inputs[0].iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite { at_what: "a gradient of the fixed point".into(), at: self.at }.into());
        }
        Ok(vec![self.solver.find(&with_constants(&*self.g, &inputs[1..]), &inputs[0], self.at)?.x])
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (x, args, v) = (call.outputs[0], &call.inputs[1..], gradients[0]);
        let (g, count) = (Rc::clone(&self.g), args.len());
        // The arguments of the adjoint iteration are the fixed point, the arguments and the gradient.
        let adjoint: Rc<MapWith<T>> = Rc::new(move |w, known| {
            let (x, args, v) = (known[0], &known[1..=count], known[count + 1]);
            v + grad(|x| (g(x, args) * w).sum(..), x)
        });
        let inputs: Vec<Var<'t, T>> = [v, x].into_iter().chain(args.iter().copied()).chain([v]).collect();
        // The equation is linear in the gradient, whose size is arbitrary, so an absolute tolerance would give wrong small gradients.
        let solver = FixedPoint { atol: 0.0, ..self.solver.clone() };
        let function = RecordedFixedPoint { solver, g: adjoint, is_adjoint: true, at: self.at };
        let Some(recorded) = call.value_of(x.tape().record_function(function, &inputs, self.at)) else {
            return vec![None; call.inputs.len()];
        };
        let w = recorded[0];
        let mut results = vec![None];
        results.extend(argument_gradients(&*self.g, x, args, w).into_iter().map(Some));
        results
    }
}
