//! Integrals over an interval, by adaptive Gauss-Kronrod quadrature.
//!
//! R. Piessens, E. de Doncker-Kapenga, C. W. Überhuber and D. K. Kahaner, "QUADPACK" (1983): the routine QAG with the
//! rule of 21 points, its error estimate and its test for parts that are too narrow. An infinite interval is mapped to
//! (0, 1] by x = a + (1 - t) / t, as in QAGI. Unlike QAGS, there is no extrapolation, so a singularity at an end that
//! is 0 takes more parts. With a singularity at another end, or at the finite end of an infinite interval, the parts
//! can become too narrow, which is an error.

use std::rc::Rc;

use wengert_autograd::transforms::{Vmap, grad};
use wengert_autograd::{Error as TapeError, Function, FunctionCall, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Reductions as _, Views as _, cat};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::{Error, Result, argument_error, check_tolerances};
use crate::evaluate::{Map, MapWith, max_abs, normalize_by_max, to_f64_vec, to_tensor, with_constants};

/// The positive nodes of the rule of 21 points, largest first, and 0. Every second one, from the second on, is a node of Gauss's rule of 10
/// points.
const NODES: [f64; 11] = [
    0.9956571630258081,
    0.9739065285171717,
    0.9301574913557082,
    0.8650633666889845,
    0.7808177265864169,
    0.6794095682990244,
    0.5627571346686047,
    0.4333953941292472,
    0.2943928627014602,
    0.14887433898163122,
    0.0,
];

/// The weights of the nodes in Kronrod's rule.
const KRONROD: [f64; 11] = [
    0.011694638867371874,
    0.032558162307964725,
    0.054755896574351995,
    0.07503967481091996,
    0.0931254545836976,
    0.10938715880229764,
    0.12349197626206584,
    0.13470921731147334,
    0.14277593857706009,
    0.14773910490133849,
    0.1494455540029169,
];

/// The weights of Gauss's rule, whose nodes are every second node of Kronrod's rule.
const GAUSS: [f64; 5] =
    [0.06667134430868814, 0.1494513491505806, 0.21908636251598204, 0.26926671930999635, 0.29552422471475287];

/// Returns the integral of a function of one number from `a` to `b`, which may be infinite. The function may return an array of any shape;
/// the integral has this shape. [`Quad`] has tolerances, an error estimate, and integrals with derivatives. SciPy: `quad`, `quad_vec`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
/// use wengert::prelude::*;
/// use wengert::solvers::quad;
///
/// let gauss = quad(|x: Var<'_, f64>| (-x.square()).exp(), f64::NEG_INFINITY, f64::INFINITY);
/// assert!((gauss.item() - std::f64::consts::PI.sqrt()).abs() < 1e-12);
/// ```
///
/// # Errors
///
/// As for [`Quad::try_call`].
#[twins]
pub fn try_quad<T: Float>(f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>, a: f64, b: f64) -> Result<Tensor<T>> {
    Ok(Quad::new().integrate(&f, [a, b], Site::here("quad"))?.value)
}

/// Adaptive quadrature with the rule of Gauss and Kronrod with 21 points, with its tolerances.
///
/// The part of the interval with the largest error estimate is halved until the sum of the estimates is at most
/// max(epsabs, epsrel |integral|). If the function returns an array, the largest error estimate and the largest
/// |integral| of all elements count. The function is evaluated at all points of both halves at once, by
/// [`vmap`](wengert_autograd::transforms::vmap()). The points are inside of the interval, but near an end that is not 0
/// they can round to it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Quad {
    epsabs: f64,
    epsrel: f64,
    limit: usize,
}

/// An integral, and the work that it took.
#[derive(Clone, Debug)]
pub struct QuadResult<T: Float> {
    /// The integral, with the shape of the function's result.
    pub value: Tensor<T>,
    /// The estimate of the absolute error. SciPy: `abserr`.
    pub error: f64,
    /// The number of parts into which the interval was divided.
    pub intervals: usize,
    /// The number of evaluated points: 21 for each part that was tried. On an interval from -∞ to ∞, the function is evaluated twice for
    /// each. SciPy: `neval`.
    pub evaluations: usize,
}

/// A limit of a recorded integral: a number, which may be infinite and has no derivative, or a variable.
#[derive(Clone, Copy, Debug)]
pub enum Limit<'t, T: Float> {
    /// A number.
    Number(f64),
    /// A variable with one finite number.
    Variable(Var<'t, T>),
}

impl<T: Float> From<f64> for Limit<'_, T> {
    fn from(number: f64) -> Self {
        Limit::Number(number)
    }
}

impl<'t, T: Float> From<Var<'t, T>> for Limit<'t, T> {
    fn from(variable: Var<'t, T>) -> Self {
        Limit::Variable(variable)
    }
}

impl Default for Quad {
    fn default() -> Self {
        Quad::new()
    }
}

#[twins]
impl Quad {
    /// Returns a solver with SciPy's tolerances, 1.49e-8 for `epsabs` and `epsrel`, and at most 1000 parts of the interval. The roundings of
    /// f32 prevent smaller relative errors than about 1e-5, so `epsrel` is at least 64 ε of the element type.
    pub fn new() -> Self {
        Quad { epsabs: 1.49e-8, epsrel: 1.49e-8, limit: 1000 }
    }

    /// Sets the tolerance of the absolute error.
    pub fn epsabs(self, epsabs: f64) -> Self {
        Quad { epsabs, ..self }
    }

    /// Sets the tolerance of the relative error. A tolerance below 64 ε of the element type counts as 64 ε.
    pub fn epsrel(self, epsrel: f64) -> Self {
        Quad { epsrel, ..self }
    }

    /// Sets the largest number of parts of the interval. SciPy: `limit`, whose default is 50.
    pub fn limit(self, limit: usize) -> Self {
        Quad { limit, ..self }
    }

    /// Returns the integral of `f` from `a` to `b` with an error estimate. `f` gets one number. If b < a, the integral has the other sign.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Quad;
    ///
    /// // The integrals of x, x² and x³ at once.
    /// let powers = Tensor::from([1.0f64, 2.0, 3.0]);
    /// let found = Quad::new().call(|x| x.pow(&powers), 0.0, 1.0);
    /// assert!((found.value - Tensor::from([0.5, 1.0 / 3.0, 0.25])).abs().amax(..).item() < 1e-15);
    /// assert_eq!((found.intervals, found.evaluations), (1, 21));
    /// ```
    ///
    /// # Errors
    ///
    /// If a tolerance is NaN or negative, or a limit is NaN. If the function, the integral or its error estimate is NaN or infinite. If the
    /// largest number of parts does not reach the tolerance, or the part with the largest error is too narrow to be divided. Rounding
    /// errors that prevent convergence are not detected, and cause one of these two errors. If the function cannot be evaluated.
    pub fn try_call<T: Float>(
        &self,
        f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        a: f64,
        b: f64,
    ) -> Result<QuadResult<T>> {
        self.integrate(&f, [a, b], Site::here("call"))
    }

    /// Records the integral as an operation on the tape of the arguments. The derivatives with respect to `args` are
    /// integrals of the derivatives of `f`. The tolerances apply to the largest element of all these integrals, for an incoming gradient
    /// that is scaled to a largest element of 1. The derivatives with respect to limits that are variables are the values of `f` there,
    /// with the other sign for the limit `a`. All are of every order, in both modes.
    ///
    /// `f` gets the number and `args`. All variables that it uses must be among the arguments; the compiler refuses functions that capture
    /// variables. At least one argument or limit must be a variable; it gives the tape.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_solvers as solvers; }
    /// use wengert::prelude::*;
    /// use wengert::solvers::Quad;
    ///
    /// let tape = Tape::<f64>::new();
    /// let (rate, end) = (tape.var(&Tensor::scalar(2.0)), tape.var(&Tensor::scalar(1.0)));
    /// let integral = Quad::new().record(|x, args| (-(x * args[0])).exp(), 0.0, end, &[rate]); // (1 - exp(-rate end)) / rate
    /// let [by_rate, by_end] = integral.grad([rate, end]);
    /// let e = (-2.0f64).exp();
    /// assert!((by_rate.item() - (3.0 * e - 1.0) / 4.0).abs() < 1e-12 && (by_end.item() - e).abs() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no variable among the arguments and limits, or a limit that is a variable is not one number. If the variables belong to
    /// different tapes. The errors of [`call`](Self::call) occur when a value is requested.
    pub fn try_record<'t, T: Float>(
        &self,
        f: impl for<'v> Fn(Var<'v, T>, &[Var<'v, T>]) -> Var<'v, T> + 'static,
        a: impl Into<Limit<'t, T>>,
        b: impl Into<Limit<'t, T>>,
        args: &[Var<'t, T>],
    ) -> Result<Var<'t, T>> {
        let at = Site::here("record");
        let limits = [a.into(), b.into()];
        let variables: Vec<Var<'t, T>> = limits
            .iter()
            .filter_map(|limit| match limit {
                Limit::Variable(variable) => Some(*variable),
                Limit::Number(_) => None,
            })
            .collect();
        if let Some(wrong) = variables.iter().find(|variable| variable.numel() != 1) {
            return Err(argument_error(
                format!("quad: a limit must be one number, got the shape {}", wrong.shape()),
                at,
            ));
        }
        let Some(first) = args.first().or(variables.first()) else {
            return Err(argument_error(
                "quad: without arguments and variable limits there is no derivative: use `call`",
                at,
            ));
        };
        let numbers = limits.map(|limit| match limit {
            Limit::Number(number) => Some(number),
            Limit::Variable(_) => None,
        });
        let inputs: Vec<Var<'t, T>> = variables.iter().chain(args).copied().collect();
        let integral = Integral { solver: self.clone(), f: Rc::new(f), limits: numbers, at };
        Ok(first.tape().record_function(integral, &inputs, at)?[0])
    }

    fn integrate<T: Float>(&self, f: &Map<'_, T>, limits: [f64; 2], at: Site) -> Result<QuadResult<T>> {
        check_tolerances("quad", &[("epsabs", self.epsabs), ("epsrel", self.epsrel)], at)?;
        if limits.iter().any(|limit| limit.is_nan()) {
            return Err(argument_error("quad: a limit is NaN", at));
        }
        let domain = Domain::new(limits);
        let mut evaluations = 0;
        let mut shape = None;
        let mut parts_of = |intervals: &[[f64; 2]]| -> Result<Vec<Part>> {
            evaluations += 21 * intervals.len();
            let (parts, of) = domain.evaluate(f, intervals, at)?;
            shape = Some(of);
            Ok(parts)
        };
        let epsrel = self.epsrel.max(64.0 * T::EPSILON.to_f64());
        let mut parts = parts_of(&[domain.start])?;
        let (value, error) = loop {
            let count = parts[0].value.len();
            let value: Vec<f64> = (0..count).map(|i| parts.iter().map(|part| part.value[i]).sum()).collect();
            let error: f64 = parts.iter().map(|part| part.error).sum();
            if !error.is_finite() || !value.iter().all(|&value| T::from_f64(value).is_finite()) {
                return Err(Error::NotFinite { at_what: "the integral or its error estimate".into(), at });
            }
            if error <= self.epsabs.max(epsrel * max_abs(&value)) {
                break (value, error);
            }
            let worst = (0..parts.len()).max_by(|&i, &j| parts[i].error.total_cmp(&parts[j].error)).unwrap_or(0);
            let [start, end] = parts[worst].interval;
            let middle = 0.5 * (start + end);
            let is_narrow = (end - start).abs() <= 1000.0 * T::EPSILON.to_f64() * start.abs().max(end.abs());
            if parts.len() >= self.limit || is_narrow {
                return Err(Error::Limit {
                    count: parts.len(),
                    unit: "intervals",
                    progress: format!("the error estimate is {error:e}, the worst part is from {start:?} to {end:?}"),
                    hint: match is_narrow {
                        true => "the part is too narrow: set larger tolerances, or split the interval at a singularity",
                        false => "set larger tolerances or `limit`, or split the interval at a singularity",
                    },
                    at,
                });
            }
            parts.swap_remove(worst);
            parts.extend(parts_of(&[[start, middle], [middle, end]])?);
        };
        let shape = shape.unwrap_or_default();
        Ok(QuadResult { value: to_tensor(&value, &shape)?, error, intervals: parts.len(), evaluations })
    }
}

/// A part of the interval, with the integral and the error estimate.
struct Part {
    interval: [f64; 2],
    value: Vec<f64>,
    error: f64,
}

/// The substitution that maps the points of the quadrature rule to the interval of the integral.
struct Domain {
    /// The interval in which the rule has its points: from a to b if both are finite, else from 0 to 1.
    start: [f64; 2],
    kind: Kind,
}

/// The kind of an integral's interval: finite, infinite on one side, or infinite on both sides.
#[derive(Clone, Copy)]
enum Kind {
    Finite,
    /// From the number `from` to infinity with the sign `toward`. The integral is multiplied by `sign`, because `from` may be the upper
    /// limit.
    Half {
        from: f64,
        toward: f64,
        sign: f64,
    },
    /// From -∞ to ∞, or from ∞ to -∞ if the sign is -1. The sign is 0 if both limits are the same infinity.
    Whole {
        sign: f64,
    },
}

impl Domain {
    fn new([a, b]: [f64; 2]) -> Self {
        let kind = match (a.is_finite(), b.is_finite()) {
            (true, true) => Kind::Finite,
            (true, false) => Kind::Half { from: a, toward: b.signum(), sign: b.signum() },
            (false, true) => Kind::Half { from: b, toward: a.signum(), sign: -a.signum() },
            (false, false) if a == b => Kind::Whole { sign: 0.0 },
            (false, false) => Kind::Whole { sign: b.signum() },
        };
        let start = if matches!(kind, Kind::Finite) { [a, b] } else { [0.0, 1.0] };
        Domain { start, kind }
    }

    /// Maps the point `t` of the quadrature rule to points of the integral's interval, each with the factor for the function's value there.
    /// Only [`Kind::Whole`] uses the second point.
    fn points(&self, t: f64) -> [(f64, f64); 2] {
        let (x, weight) = ((1.0 - t) / t, 1.0 / (t * t));
        match self.kind {
            Kind::Finite => [(t, 1.0), (t, 0.0)],
            Kind::Half { from, toward, sign } => [(from + toward * x, sign * weight), (from, 0.0)],
            Kind::Whole { sign } => [(x, sign * weight), (-x, sign * weight)],
        }
    }

    /// Applies the quadrature rule to each of `intervals`. Returns a [`Part`] for each, and the shape of the function's result. Returns an
    /// error if the function cannot be evaluated, or a value is not finite.
    fn evaluate<T: Float>(&self, f: &Map<'_, T>, intervals: &[[f64; 2]], at: Site) -> Result<(Vec<Part>, Shape)> {
        let per_point = if matches!(self.kind, Kind::Whole { .. }) { 2 } else { 1 };
        let mut points = Vec::with_capacity(42 * intervals.len());
        for &[start, end] in intervals {
            let (centre, half) = (0.5 * (start + end), 0.5 * (end - start));
            let ends = NODES[..10].iter().flat_map(|node| [centre - half * node, centre + half * node]);
            points.extend(ends.chain([centre]).flat_map(|t| self.points(t).into_iter().take(per_point)));
        }
        let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
        let tape = Tape::new();
        let batch = tape.var(&to_tensor(&xs, &Shape::from([xs.len()]))?);
        let [result] = Vmap::new().try_record(|[x]| [f(x)], [batch])?;
        let results = result.try_value()?;
        let shape: Shape = results.shape()[1..].iter().copied().collect();
        let values = to_f64_vec(&results);
        let size = shape.numel();
        if let Some(wrong) = values.iter().position(|value| !value.is_finite()) {
            let x = xs[wrong / size.max(1)];
            return Err(Error::NotFinite { at_what: format!("the function at {x:?}"), at });
        }
        let weighted: Vec<Vec<f64>> = points
            .chunks(per_point)
            .zip(values.chunks((size * per_point).max(1)))
            .map(|(points, values)| {
                (0..size)
                    .map(|i| points.iter().enumerate().map(|(k, (_, weight))| weight * values[k * size + i]).sum())
                    .collect()
            })
            .collect();
        let parts = intervals.iter().enumerate().map(|(number, &interval)| {
            let own = if size == 0 { &[][..] } else { &weighted[21 * number..21 * (number + 1)] };
            part(interval, own, size)
        });
        Ok((parts.collect(), shape))
    }
}

/// Returns the [`Part`] for `interval` from the function's values at the 21 points of the rule. The points come in pairs on both sides of the
/// centre, from the ends inwards, and the centre comes last.
fn part(interval: [f64; 2], values: &[Vec<f64>], size: usize) -> Part {
    let half = 0.5 * (interval[1] - interval[0]);
    let (mut value, mut error) = (vec![0.0; size], 0.0f64);
    for (i, value) in value.iter_mut().enumerate() {
        let at = |point: usize| values[point][i];
        let centre = at(20);
        let pairs =
            || KRONROD[..10].iter().enumerate().map(|(node, weight)| (weight, [at(2 * node), at(2 * node + 1)]));
        let kronrod = KRONROD[10] * centre + pairs().map(|(weight, [x, y])| weight * (x + y)).sum::<f64>();
        let sizes = pairs().map(|(weight, [x, y])| weight * (x.abs() + y.abs()));
        let absolute = KRONROD[10] * centre.abs() + sizes.sum::<f64>();
        let own = GAUSS.iter().enumerate().map(|(node, weight)| weight * (at(4 * node + 2) + at(4 * node + 3)));
        let gauss: f64 = own.sum();
        let mean = 0.5 * kronrod;
        let distances = pairs().map(|(weight, [x, y])| weight * ((x - mean).abs() + (y - mean).abs()));
        let deviation = KRONROD[10] * (centre - mean).abs() + distances.sum::<f64>();
        *value = kronrod * half;
        let (absolute, deviation) = (absolute * half.abs(), deviation * half.abs());
        let mut own = ((kronrod - gauss) * half).abs();
        if deviation != 0.0 && own != 0.0 {
            own = deviation * (200.0 * own / deviation).powf(1.5).min(1.0);
        }
        if absolute > f64::MIN_POSITIVE / (50.0 * f64::EPSILON) {
            own = own.max(50.0 * f64::EPSILON * absolute);
        }
        error = if own.is_nan() || error.is_nan() { f64::NAN } else { error.max(own) };
    }
    Part { interval, value, error }
}

/// An integral as an operation. The inputs are the limits that are variables, and the arguments.
struct Integral<T: Float> {
    solver: Quad,
    f: Rc<MapWith<T>>,
    /// The limits a and b. `None` stands for a limit that is a variable.
    limits: [Option<f64>; 2],
    at: Site,
}

impl<T: Float> Integral<T> {
    /// Returns the number of limits that are variables.
    fn variable_limits(&self) -> usize {
        self.limits.iter().filter(|limit| limit.is_none()).count()
    }

    /// Returns the value of `f` at a limit that is a variable.
    fn at_limit<'t>(&self, limit: Var<'t, T>, args: &[Var<'t, T>]) -> Var<'t, T> {
        (self.f)(limit.reshape([0usize; 0]), args)
    }
}

impl<T: Float> Function<T> for Integral<T> {
    fn name(&self) -> &'static str {
        "quad"
    }

    fn shapes(&self, inputs: &[Shape]) -> std::result::Result<Vec<Shape>, String> {
        // Records the function on a tape that is never evaluated, to get the shape of its result.
        let tape = Tape::new();
        let filled = |shape: &Shape| tape.constant(T::ZERO.to_f64()).try_expand(shape);
        let args = inputs[self.variable_limits()..].iter().map(filled).collect::<std::result::Result<Vec<_>, _>>();
        let args = args.map_err(|error| error.to_string())?;
        Ok(vec![(self.f)(tape.constant(0.5), &args).shape()])
    }

    fn run(&self, inputs: &[Tensor<T>]) -> std::result::Result<Vec<Tensor<T>>, TapeError> {
        let (variables, args) = inputs.split_at(self.variable_limits());
        let mut variables = variables.iter();
        let limits = self.limits.map(|limit| match limit {
            Some(number) => number,
            None => variables.next().and_then(|limit| limit.iter().next()).map_or(f64::NAN, T::to_f64),
        });
        let is_infinite = limits.iter().zip(&self.limits).any(|(limit, number)| number.is_none() && !limit.is_finite());
        if is_infinite {
            let message = "quad: a limit that is a variable must be finite; a number may be infinite";
            return Err(argument_error(message, self.at).into());
        }
        Ok(vec![self.solver.integrate(&with_constants(&*self.f, args), limits, self.at)?.value])
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (variables, args) = call.inputs.split_at(self.variable_limits());
        // An absolute tolerance would give wrong small gradients, so the largest element of the gradient is scaled to 1.
        let (g, scale) = normalize_by_max(gradients[0]);
        let signs = self.limits.iter().zip([-1.0, 1.0]).filter(|(limit, _)| limit.is_none()).map(|(_, sign)| sign);
        let mut results: Vec<Option<Var<'t, T>>> = variables
            .iter()
            .zip(signs)
            .map(|(&limit, sign)| {
                Some(((self.at_limit(limit, args) * gradients[0]).sum(..) * sign).reshape(limit.shape()))
            })
            .collect();
        if args.is_empty() {
            return results;
        }
        // Integrates the gradients with respect to all arguments at once: the integrand returns them as one vector.
        let (f, count) = (Rc::clone(&self.f), args.len());
        let slopes: Rc<MapWith<T>> = Rc::new(move |x, known| {
            let (args, g) = (known[..count].to_vec(), known[count]);
            let parts = grad(|args: Vec<_>| (f(x, &args) * g).sum(..), args);
            let lines: Vec<_> = parts.iter().map(|part| part.reshape([part.numel()])).collect();
            cat(&lines, 0)
        });
        let inputs: Vec<Var<'t, T>> = call.inputs.iter().copied().chain([g]).collect();
        let integral = Integral { solver: self.solver.clone(), f: slopes, limits: self.limits, at: self.at };
        let Some(recorded) = call.value_of(g.tape().record_function(integral, &inputs, self.at)) else {
            return vec![None; call.inputs.len()];
        };
        let vector = recorded[0];
        let mut start = 0;
        for arg in args {
            let size = arg.numel();
            results.push(Some(vector.narrow(0, start, size).reshape(arg.shape()) * scale));
            start += size;
        }
        results
    }
}
