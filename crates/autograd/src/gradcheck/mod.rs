//! A check of derivatives against central differences: orders 1 and 2, reverse and forward mode.
//!
//! [`gradcheck`](fn@gradcheck) checks any function of variables, from one custom operation to a whole model.
//! [`assert_gradcheck!`](crate::assert_gradcheck) does the same in a test. [`GradCheck`] has the options.
//!
//! For y = f(x₁, …, xₙ) of any shapes, the check covers these derivatives over all inputs and all elements:
//!
//! | order | the map | its derivative in reverse mode | in forward mode |
//! |---|---|---|---|
//! | 1 | f | `vjp` | `jvp` |
//! | 2 | x ↦ gradient of ⟨u, f(x)⟩ | `vjp` of `vjp` | `jvp` of `vjp` |
//! | 2 | x ↦ derivative of f along v | `vjp` of `jvp` | `jvp` of `jvp` |
//!
//! u and v are random, and the same in every run with the same seed. The Jacobian of each map is compared, element by
//! element, with central differences of the same map. If the inputs or outputs have many elements, randomly weighted sums are
//! compared instead. The module `difference` explains the step and the tolerance. Each evaluation records the function
//! again on a new tape, so the function may branch on values.
//!
//! If a derivative is wrong, the recorded operations are checked alone, in their order. The report names the first
//! operation that fails alone, if there is one.
//!
//! The check covers derivatives, not values. It passes for a function with wrong values if the derivative belongs to
//! these values. At a kink central differences prove nothing. The check does not pass there, unless the slopes on both
//! sides are nearly equal.

mod difference;
mod inputs;
mod map;
mod report;
#[cfg(test)]
mod tests;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Shape, Site, Tensor};

pub use inputs::CheckInputs;
pub use report::{Culprit, Derivative, Failure, Mismatch, Mode, Place, Report};

use crate::derive::{Sources, Traversal};
use crate::inspect::index_of;
use crate::transforms::MappedFunction;
use crate::{Error, Tape, Var, rules};
use difference::{Samples, estimates};
use map::{CheckedMap, Probe, Random};

/// The largest tolerance of a conclusive comparison, relative to the largest magnitude of a derivative, or to 1 if all magnitudes are
/// smaller. A comparison of two equal derivatives is conclusive with any tolerance, unless there is a kink.
const MAX_RELATIVE_TOLERANCE: f64 = 1e-2;

/// Checks the derivatives of `f` at `inputs`, of orders 1 and 2, in reverse and forward mode. PyTorch:
/// `torch.autograd.gradcheck` and `gradgradcheck`; JAX: `jax.test_util.check_grads`.
///
/// The inputs are one tensor, an array of tensors or a list ([`CheckInputs`]). `f` gets its variables in the same form: `|x|` for `&x`, and
/// `|[x, y]|` for `[&x, &y]`. `f` may map any shapes to any shape. Inputs may be views. Use `f64`: in `f32` central differences have 4
/// digits at best.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{gradcheck, prelude::*};
///
/// let x = Tensor::from([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]);
/// gradcheck(|x| x.sin().sum(1), &x).unwrap();
///
/// let bias = Tensor::from([0.1, 0.2, 0.3]);
/// let report = gradcheck(|[x, b]| (x + b).tanh() * x, [&x, &bias]).unwrap();
/// // 6 outputs by 9 inputs at order 1; 9 gradients and 6 directional derivatives by 9 inputs at order 2; two modes each.
/// assert_eq!(report.compared, 2 * (6 * 9 + 9 * 9 + 6 * 9));
/// ```
///
/// # Errors
///
/// If a derivative disagrees, cannot be computed, or cannot be checked at this point (a kink, an infinity, a function
/// that is not repeatable). The [`Failure`] has the reason.
#[track_caller]
pub fn gradcheck<I: CheckInputs, F: for<'t> MappedFunction<'t, I>>(f: F, inputs: I) -> Result<Report, Failure> {
    GradCheck::new().check(f, inputs)
}

/// Checks the derivatives of a function by [`gradcheck`](fn@gradcheck), and panics at the caller's line if the check fails.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{GradCheck, assert_gradcheck, prelude::*};
///
/// let (x, y) = (Tensor::from([[1.0], [2.0]]), Tensor::from([0.5, 1.5, 2.5]));
/// assert_gradcheck!(|x, y| x * y.exp(), &x, &y);
/// // With options first:
/// assert_gradcheck!(GradCheck::new().order(1), |x| x.sqrt(), &x);
/// // A function of an array of variables:
/// fn product<'t>([x, y]: [Var<'t, f64>; 2]) -> Var<'t, f64> {
///     x * y
/// }
/// assert_gradcheck!(product, &x, &y);
/// ```
#[macro_export]
macro_rules! assert_gradcheck {
    (|$($x:ident),+ $(,)?| $f:expr, $($input:expr),+ $(,)?) => {
        $crate::assert_gradcheck!($crate::GradCheck::new(), |$($x),+| $f, $($input),+)
    };
    ($check:expr, |$($x:ident),+ $(,)?| $f:expr, $($input:expr),+ $(,)?) => {
        if let Err(failure) = $check.check(|[$($x),+]| $f, [$($input),+]) {
            panic!("{failure}");
        }
    };
    ($f:expr, $($input:expr),+ $(,)?) => {
        if let Err(failure) = $crate::GradCheck::new().check($f, [$($input),+]) {
            panic!("{failure}");
        }
    };
}

/// A gradient check with options.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{GradCheck, gradcheck::Mode, prelude::*};
///
/// // The default checks of PyTorch's `gradcheck`.
/// let x = Tensor::from([0.5, 1.5, 7.0]);
/// let report = GradCheck::new().order(1).skip_forward().check(|[x]| x.lgamma(), [&x]).unwrap();
/// assert_eq!((report.modes, report.compared), (vec![Mode::Reverse], 9));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GradCheck {
    order: usize,
    reverse: bool,
    forward: bool,
    step: Option<f64>,
    accuracy: Option<f64>,
    full_up_to: usize,
    projections: usize,
    seed: u64,
}

impl Default for GradCheck {
    fn default() -> Self {
        GradCheck {
            order: 2,
            reverse: true,
            forward: true,
            step: None,
            accuracy: None,
            full_up_to: 128,
            projections: 6,
            seed: 0,
        }
    }
}

/// The function under test: it records its result on the tape of its variables.
type RecordedFunction<'f, T> = dyn for<'t> Fn(&'t Tape<T>, &[Var<'t, T>]) -> Result<Var<'t, T>, Error> + 'f;

impl GradCheck {
    /// Returns a check of derivatives of orders 1 and 2, in reverse and in forward mode.
    pub fn new() -> Self {
        GradCheck::default()
    }

    /// Sets the highest order of the checked derivatives to 1 or 2. Other values are clamped.
    pub fn order(self, order: usize) -> Self {
        GradCheck { order: order.clamp(1, 2), ..self }
    }

    /// Sets the step of the central differences for inputs of magnitude up to 1. For larger inputs the step grows in
    /// proportion to the magnitude. The default is ∛ε: 6e-6 in f64. If the check is undecided, try half and double the default.
    pub fn step(self, step: f64) -> Self {
        GradCheck { step: Some(step), ..self }
    }

    /// Sets the relative accuracy of the derivatives' formulas, for functions that are approximated to fewer digits.
    /// The default is 64 ε: 1.4e-14 in f64.
    pub fn accuracy(self, accuracy: f64) -> Self {
        GradCheck { accuracy: Some(accuracy), ..self }
    }

    /// Checks reverse mode only. At order 2, the check covers only reverse over reverse mode.
    pub fn skip_forward(self) -> Self {
        GradCheck { forward: false, ..self }
    }

    /// Checks forward mode only. At order 2, the check covers only forward over forward mode.
    pub fn skip_reverse(self) -> Self {
        GradCheck { reverse: false, ..self }
    }

    /// Sets the number of elements up to which each element is checked, for all inputs together and for all outputs together. The default
    /// is 128. If there are more elements, [`projections`](Self::projections) are checked.
    pub fn full_up_to(self, elements: usize) -> Self {
        GradCheck { full_up_to: elements, ..self }
    }

    /// Sets the number of randomly weighted sums of elements that are checked if there are too many elements to check
    /// each. The default is 6, and 0 counts as 1.
    pub fn projections(self, count: usize) -> Self {
        GradCheck { projections: count.max(1), ..self }
    }

    /// Sets the seed of the random weights. The default is 0.
    pub fn seed(self, seed: u64) -> Self {
        GradCheck { seed, ..self }
    }

    /// Runs the check; see [`gradcheck`](fn@gradcheck).
    ///
    /// # Errors
    ///
    /// If a derivative disagrees, cannot be computed, or cannot be checked at this point, or if both modes are skipped.
    #[track_caller]
    pub fn check<I: CheckInputs, F: for<'t> MappedFunction<'t, I>>(&self, f: F, inputs: I) -> Result<Report, Failure> {
        self.check_slice(|vars| inputs.call(&f, vars), &inputs.tensors())
    }

    /// Runs [`check`](Self::check) for a function of any number of variables.
    ///
    /// # Errors
    ///
    /// If a derivative disagrees, cannot be computed, or cannot be checked at this point, or if both modes are skipped.
    #[track_caller]
    pub fn check_slice<T: Float>(
        &self,
        f: impl for<'t> Fn(&[Var<'t, T>]) -> Var<'t, T>,
        inputs: &[&Tensor<T>],
    ) -> Result<Report, Failure> {
        let at = Site::here("gradcheck");
        match self.run(&|_, vars| Ok(f(vars)), inputs, at) {
            Err(Failure::Mismatch(mut mismatch)) => {
                mismatch.culprit = self.find_culprit(&f, inputs, mismatch.worst.mode, at);
                Err(Failure::Mismatch(mismatch))
            }
            other => other,
        }
    }

    fn run<T: Float>(&self, f: &RecordedFunction<T>, inputs: &[&Tensor<T>], at: Site) -> Result<Report, Failure> {
        if !self.reverse && !self.forward {
            return Err(Failure::NoMode);
        }
        let mut report = Report::default();
        let first = CheckedMap {
            modes: [Mode::Reverse, Mode::Forward],
            record: &|tape, vars| Ok(vec![f(tape, vars)?]),
            inputs,
            at,
        };
        let output = self.compare(&first, &mut report)?;
        if self.order < 2 {
            return Ok(report);
        }
        let mut random = Random(self.seed ^ 0x5EED);
        let u = random.tensor(&output[0]);
        let v: Vec<Tensor<T>> = inputs.iter().map(|input| random.tensor(input.shape())).collect();
        if self.reverse {
            let gradient = CheckedMap {
                modes: [Mode::ReverseOverReverse, Mode::ForwardOverReverse],
                record: &|tape, vars| tape.reverse_or_zeros(&[(f(tape, vars)?, tape.constant(&u))], vars, at),
                inputs,
                at,
            };
            self.compare(&gradient, &mut report)?;
        }
        if self.forward {
            let derivative = CheckedMap {
                modes: [Mode::ReverseOverForward, Mode::ForwardOverForward],
                record: &|tape, vars| {
                    let moving: Vec<_> = vars.iter().zip(&v).map(|(&x, v)| (x, tape.constant(v))).collect();
                    tape.forward(&[f(tape, vars)?], &moving, at)
                },
                inputs,
                at,
            };
            self.compare(&derivative, &mut report)?;
        }
        Ok(report)
    }

    /// Compares the Jacobian of `map`, computed in each requested mode, with central differences. Adds the comparisons to `report`, and
    /// returns the shapes of the map's outputs.
    fn compare<T: Float>(&self, map: &CheckedMap<'_, T>, report: &mut Report) -> Result<Vec<Shape>, Failure> {
        let shapes: Vec<Shape> = map.inputs.iter().map(|input| input.shape().clone()).collect();
        let (centre, results) = map.values_at_inputs()?;
        let mut random = Random(self.seed);
        let columns = self.make_probes(&shapes, &mut random);
        let rows = self.make_probes(&results, &mut random);
        let epsilon = T::EPSILON.to_f64();
        let accuracy = self.accuracy.unwrap_or(64.0 * epsilon);
        report.scale = centre.iter().map(|value| value.abs()).fold(report.scale.max(1.0), f64::max);
        let step = self.step.unwrap_or(epsilon.cbrt());
        let samples: Vec<Samples> =
            columns.iter().map(|column| map.sample(column, step, &results)).collect::<Result<_, _>>()?;
        let expected: Vec<Vec<_>> = rows
            .iter()
            .map(|row| estimates(&centre, &samples, &row.weights, epsilon, accuracy, report.scale))
            .collect();

        for (mode, wanted) in map.modes.into_iter().zip([self.reverse, self.forward]) {
            if !wanted {
                continue;
            }
            let got = match mode {
                Mode::Reverse | Mode::ReverseOverReverse | Mode::ReverseOverForward => {
                    map.reverse(mode, &rows, &columns, &results, report)
                }
                _ => map.forward(&rows, &columns, &shapes),
            };
            let got = got.map_err(|error| Failure::Refused { mode, error })?;
            let derivatives: Vec<Derivative> = rows
                .iter()
                .zip(expected.iter().zip(&got))
                .flat_map(|(row, (expected, got))| {
                    columns.iter().zip(expected.iter().zip(got)).map(move |(column, (estimate, &got))| Derivative {
                        mode,
                        output: row.place.clone(),
                        input: column.place.clone(),
                        expected: estimate.value,
                        got,
                        tolerance: estimate.tolerance,
                        slopes: estimate.slopes,
                        is_kink: estimate.is_kink,
                    })
                })
                .collect();
            judge(mode, derivatives, report)?;
        }
        Ok(results)
    }

    /// Returns the probes of tensors with the given shapes. If there are few elements, each probe selects one of them. Otherwise, each
    /// probe is a randomly weighted sum of all elements.
    fn make_probes(&self, shapes: &[Shape], random: &mut Random) -> Vec<Probe> {
        let total: usize = shapes.iter().map(Shape::numel).sum();
        if total > self.full_up_to {
            let weights = |random: &mut Random| (0..total).map(|k| (k, random.number())).collect();
            return (0..self.projections)
                .map(|number| Probe { place: Place::Projection(number), weights: weights(random) })
                .collect();
        }
        let mut probes = Vec::with_capacity(total);
        for (tensor, shape) in shapes.iter().enumerate() {
            for position in 0..shape.numel() {
                let place = Place::Element { tensor, index: index_of(shape, position) };
                probes.push(Probe { place, weights: vec![(probes.len(), 1.0)] });
            }
        }
        probes
    }

    /// Checks the recorded operations on the path from the inputs to the output. Each check uses a single operation, with
    /// its operands on the tape. Returns the first operation whose derivative is wrong or an error. Leaves out operations
    /// that refuse derivatives, and operations whose derivative is given separately, such as `with_derivative`. Returns
    /// `None` if it finds no operation, or if operands cannot be computed.
    fn find_culprit<T: Float>(
        &self,
        f: &dyn for<'t> Fn(&[Var<'t, T>]) -> Var<'t, T>,
        inputs: &[&Tensor<T>],
        mode: Mode,
        at: Site,
    ) -> Option<Culprit> {
        let tape = Tape::new();
        let vars: Vec<Var<'_, T>> = inputs.iter().map(|input| tape.var(input)).collect();
        let output = f(&vars);
        let check = self.clone().order(mode.order());
        let sources: Vec<NodeIndex> = vars.iter().map(|var| var.index).collect();
        let path = tape.path(Sources::Nodes(&sources), std::iter::once(output.index), Traversal::Differentiable);
        for &index in &path.nodes {
            let (op, operands, operation, recorded) = {
                let record = tape.record.borrow();
                (record.node(index).op, record.inputs(index), record.name(index), record.location(index))
            };
            // Operands that are not on the path keep their values.
            let moving: Vec<usize> = (0..operands.len())
                .filter(|&position| {
                    rules::is_differentiable_in(op, position) && path.position(operands[position]).is_some()
                })
                .collect();
            let is_excluded = |position: usize| {
                let record = tape.record.borrow();
                rules::refuses_derivative(&record, op, position) || rules::is_constant_in(&record, op, position)
            };
            if moving.is_empty() || (0..operands.len()).any(is_excluded) {
                continue;
            }
            let values = tape.evaluate(&operands, at).ok()?;
            let points: Vec<&Tensor<T>> = moving.iter().map(|&position| &values[position]).collect();
            let alone =
                check.run(&|other, vars| record_again(&tape, index, &moving, &values, other, vars), &points, at);
            if let Err(Failure::Mismatch(_) | Failure::Refused { .. }) = alone {
                return Some(Culprit { operation, recorded });
            }
        }
        None
    }
}

/// Records the operation of node `index` of `tape` again, on the tape `other`. `moving` has the positions of the operands that are replaced
/// by `vars`. The other operands keep their `values`.
fn record_again<'t, T: Float>(
    tape: &Tape<T>,
    index: NodeIndex,
    moving: &[usize],
    values: &[Tensor<T>],
    other: &'t Tape<T>,
    vars: &[Var<'t, T>],
) -> Result<Var<'t, T>, Error> {
    let operands: Vec<Var<'t, T>> = (0..values.len())
        .map(|position| match moving.iter().position(|&moves| moves == position) {
            Some(k) => vars[k],
            None => other.constant(&values[position]),
        })
        .collect();
    let record = tape.record.borrow();
    let (op, shape) = (record.node(index).op, record.shape(index).clone());
    let at = Site { operation: record.name(index), location: record.location(index) };
    match op {
        Op::Other(number) => other.record_operation(record.operation(number).clone(), &operands, at),
        Op::View(number) => operands[0].apply_view(record.view(number).clone(), at),
        Op::Embed(number) => operands[0].apply_embed(record.view(number).clone(), &shape, at),
        Op::Cat(axis) => other.record_cat(&operands, axis as usize, &shape, at),
        op => match operands[..] {
            [x] => other.push(op, [x.index], |record| record.expression.intern(&shape), at),
            [x, y] => other.push(op, [x.index, y.index], |record| record.expression.intern(&shape), at),
            [x, y, z] => other.push(op, [x.index, y.index, z.index], |record| record.expression.intern(&shape), at),
            _ => unreachable!("a primitive has one to three inputs"),
        },
    }
}

/// Adds the derivatives of one mode to the report. Returns a failure if a derivative is wrong, or if it is undecided whether it is wrong.
fn judge(mode: Mode, derivatives: Vec<Derivative>, report: &mut Report) -> Result<(), Failure> {
    let compared = derivatives.len();
    let failed = derivatives.iter().filter(|derivative| derivative.excess() > 1.0).count();
    let scale = derivatives.iter().map(|c| c.expected.abs().max(c.got.abs())).fold(1.0, f64::max);
    // A wide tolerance does not matter if both derivatives are exactly equal, as for a constant function. But both are equal (to 0) at a
    // kink with opposite slopes too, such as the absolute value at 0. So a kink stays undecided.
    let undecided =
        |c: &&Derivative| c.tolerance > MAX_RELATIVE_TOLERANCE * scale && (c.expected != c.got || c.is_kink);
    let widest = derivatives.iter().filter(undecided).max_by(|a, b| a.tolerance.total_cmp(&b.tolerance)).cloned();
    let worst = derivatives.into_iter().max_by(|a, b| a.excess().total_cmp(&b.excess()));
    if let (Some(worst), 1..) = (&worst, failed) {
        let worst = worst.clone();
        return Err(Failure::Mismatch(Box::new(Mismatch { worst, failed, compared, culprit: None })));
    }
    if let Some(widest) = widest {
        return Err(Failure::Undecided(Box::new(widest)));
    }
    report.modes.push(mode);
    report.compared += compared;
    if let Some(worst) = worst
        && report.worst.as_ref().is_none_or(|known| known.excess() < worst.excess())
    {
        report.worst = Some(worst);
    }
    Ok(())
}
