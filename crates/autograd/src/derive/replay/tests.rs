//! Tests that replayed derivatives equal derivatives that are derived as usual.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;

use proptest::prelude::*;
use wengert_tensor::{Generator, Site};

use super::{CACHE, CacheEntry, DERIVATIVE_OVERHEAD, MAX_CACHED_NODES, RecordedDerivative, Replay, Request, replay};
use crate::prelude::*;
use crate::transforms::vmap;
use crate::{Call, Error, Function, FunctionCall, Operation, Parameter, Tape, Var};

/// An operation that doubles its input. Its derivative is recorded as `g + g` or as `g * 2`.
struct Double {
    adds: bool,
    is_differentiable: bool,
}

impl Operation<f64> for Double {
    fn name(&self) -> &'static str {
        "double"
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
        Ok(&inputs[0] * 2.0)
    }

    fn vjp<'t>(&self, _: &Call<'t, f64>, _: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
        Some(if self.adds { g + g } else { g * 2.0 })
    }

    fn is_differentiable(&self) -> bool {
        self.is_differentiable
    }
}

const ADDS: Double = Double { adds: true, is_differentiable: true };

/// Records a loss with custom and other operations, and returns it with the variable on which it depends. The lookups read the rows
/// `rows`.
fn loss<'t>(tape: &'t Tape<f64>, rows: &[i64], double: Double) -> (Var<'t, f64>, Var<'t, f64>) {
    let x = tape.var(&Tensor::from([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]));
    let rows = Tensor::from(rows.to_vec());
    let looked_up = x.index_select(0, &rows) + x.index_select(0, &rows);
    let doubled = tape.apply(double, &[looked_up.softmax(-1).matmul(x.t())]);
    let y = (doubled.exp() + x.cumsum(0).sum(..)).sum(..) + (x * x).amax(..) + x.detach().floor().sum(..);
    (y, x)
}

/// Returns the derivatives that this thread keeps. The most recently used one comes first.
fn kept() -> Vec<Rc<RecordedDerivative>> {
    CACHE.with_borrow(|kept| {
        let mut all: Vec<&CacheEntry> = kept.by_start.values().flatten().collect();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.last_use));
        all.into_iter().map(|kept| Rc::clone(&kept.derivative)).collect()
    })
}

/// Returns the nodes of a tape as text, with their lines of code.
fn nodes<T: Float>(tape: &Tape<T>) -> (String, Vec<Option<&'static Location<'static>>>) {
    let record = tape.record.borrow();
    let text = format!("{:?}", record.expression);
    (text.split(", identity").next().unwrap_or_default().to_string(), record.locations().to_vec())
}

/// Returns the nodes and the gradient of [`loss`], and whether the derivative was replayed.
fn derive(rows: &[i64], double: Double) -> (impl Eq + Send + std::fmt::Debug, Vec<f64>, bool) {
    let tape = Tape::new();
    let (y, x) = loss(&tape, rows, double);
    let at = Site::here("test");
    let seed = y.unit_seed(at).unwrap();
    let before = kept();
    let gradient = tape.reverse(&[(y, seed)], &[x], at).unwrap()[0].unwrap();
    let is_replayed = before.iter().any(|known| Rc::ptr_eq(known, &kept()[0]));
    (nodes(&tape), gradient.value().to_vec(), is_replayed)
}

#[test]
fn a_replayed_derivative_has_the_nodes_of_a_recorded_one() {
    let (nodes, gradient, is_replayed) = derive(&[0, 1, 1], ADDS);
    assert!(!is_replayed);
    assert_eq!(derive(&[0, 1, 1], ADDS), (nodes, gradient.clone(), true));
    // The custom operations of a replayed derivative have the data of their own tape.
    let (_, other, is_replayed) = derive(&[0, 0, 1], ADDS);
    assert!(is_replayed && other != gradient);
    let recorded = std::thread::spawn(|| derive(&[0, 0, 1], ADDS).1).join().unwrap();
    assert_eq!(other, recorded);
}

#[test]
fn a_custom_operation_that_records_other_nodes_is_recorded_anew() {
    let (nodes, gradient, _) = derive(&[0, 1], ADDS);
    let (other_nodes, other, is_replayed) = derive(&[0, 1], Double { adds: false, is_differentiable: true });
    assert!(!is_replayed && nodes != other_nodes);
    assert_eq!(gradient, other);
    let recorded = std::thread::spawn(|| {
        let (nodes, gradient, _) = derive(&[0, 1], Double { adds: false, is_differentiable: true });
        (format!("{nodes:?}"), gradient)
    });
    assert_eq!((format!("{other_nodes:?}"), other), recorded.join().unwrap());
}

#[test]
fn an_operation_without_a_derivative_is_refused_after_one_with_a_derivative() {
    derive(&[1, 0], ADDS);
    let tape = Tape::new();
    let (y, x) = loss(&tape, &[1, 0], Double { adds: true, is_differentiable: false });
    assert!(matches!(y.try_grad([x]), Err(Error::NotDifferentiable { operation: "double", .. })));
}

#[test]
fn equal_nodes_of_other_lines_keep_their_lines() {
    let tape = Tape::new();
    let x = tape.var(&Tensor::from([1.0, 2.0]));
    let first = x.exp().sum(..).grad([x])[0];
    let tape = Tape::new();
    let x = tape.var(&Tensor::from([1.0, 2.0]));
    let second = x.exp().sum(..).grad([x])[0];
    let line = |var: Var<'_, f64>| var.tape().record.borrow().location(var.index).line();
    assert_eq!(line(second), line(first) + 3);
}

/// Takes third derivatives that differ only in a factor after the second derivative. The derivative that an earlier tape recorded is copied
/// if this tape has the same nodes. Only the nodes after the previous derivative are compared for this, so the factor must be found there.
#[test]
fn nodes_between_derivatives_are_compared() {
    let third = |scale: f64| {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::scalar(2.0));
        let first = (x * x * x * x).grad([x])[0];
        let second = (first * 3.0).grad([x])[0];
        (second * scale).grad([x])[0].item()
    };
    // The third derivative of 3 x⁴ is 72 x.
    for scale in [1.0, 1.0, -0.5, 1.0, -0.5] {
        assert_eq!(third(scale), 144.0 * scale);
    }
}

#[test]
fn a_request_for_other_gradients_is_no_replay() {
    let tape = Tape::<f64>::new();
    let [x, y] = [1.0, 2.0].map(|value| tape.var(&Tensor::scalar(value)));
    let (z, at) = (x * y, Site::here("test"));
    let seed = z.unit_seed(at).unwrap();
    let request =
        |input: Var<'_, f64>| Request { outputs: vec![[z.index, seed.index]], inputs: Some(vec![input.index]), at };
    let end = tape.record.borrow().mark();
    let is_replayed = |input| matches!(replay(&tape, &request(input)).unwrap(), Replay::Recorded(_));
    assert!(!is_replayed(x));
    tape.reverse(&[(z, seed)], &[x], at).unwrap();
    tape.record.borrow_mut().remove_nodes(end);
    assert!(!is_replayed(y));
    assert!(is_replayed(x));
}

#[test]
fn the_kept_derivatives_are_small_together() {
    let (mut most, mut before) = (0, 0);
    for number in 0..2 * MAX_CACHED_NODES / 100 {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0]));
        // Each program has another factor and so another number among its nodes. None is replayed.
        let y = (0..40).fold(x * number as f64, |y, _| -y);
        assert_eq!(y.sum(..).grad([x])[0].item(), number as f64);
        let newest = kept().remove(0);
        let (size, count) = (size_of_kept(), kept().len());
        assert!(size <= MAX_CACHED_NODES && newest.start.nodes + newest.gradients.len() < tape.len());
        most = most.max(size);
        // The most recently used derivatives are kept: all derivatives, or half of them after the size was too large.
        let (mut used, uses) = CACHE.with_borrow(|kept| {
            (kept.by_start.values().flatten().map(|kept| kept.last_use).collect::<Vec<u64>>(), kept.n_uses)
        });
        used.sort_unstable();
        assert!(used.iter().rev().copied().eq((0..count as u64).map(|age| uses - age)));
        assert!(count == before + 1 || count == before / 2, "{before} {count}");
        before = count;
    }
    assert!(most > MAX_CACHED_NODES - 200);
}

/// Returns the size of all kept derivatives, which must be the sum of their sizes.
fn size_of_kept() -> usize {
    let size = CACHE.with_borrow(|kept| kept.size);
    assert_eq!(kept().iter().map(|derivative| derivative.size()).sum::<usize>(), size);
    size
}

/// Checks that the size of a derivative counts its gradients and its calls too.
#[test]
fn the_size_of_a_derivative_counts_its_parts() {
    let tape = Tape::<f64>::new();
    let inputs: [Var<'_, f64>; 41] = std::array::from_fn(|k| tape.var(&Tensor::scalar(k as f64)));
    let _ = inputs.iter().fold(inputs[0], |sum, &x| sum.sin() * x + x.sin()).grad(inputs);
    let plain = kept().remove(0);
    // A derivative without custom operations has no calls.
    assert_eq!((plain.gradients.len(), plain.request.outputs.len(), plain.calls.len()), (41, 1, 0));
    assert_eq!(plain.size(), plain.part.nodes() + 42 / 2 + DERIVATIVE_OVERHEAD);
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::scalar(2.0));
    let _ = (0..10).fold(x, |y, _| tape.apply(ADDS, &[y])).grad([x]);
    let custom = kept().remove(0);
    assert_eq!(custom.calls.len(), 10);
    assert_eq!(custom.size(), custom.part.nodes() + 1 + 60 + DERIVATIVE_OVERHEAD);
}

/// Checks that a derivative is not kept if it is so large that all others would have to be removed.
#[test]
fn a_long_derivative_is_not_kept() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::scalar(2.0));
    let long = |y: Var<'_, f64>, count: usize| (0..count).fold(y, |y, _| -y).index;
    let derivative = |y: u32| tape.var_of(y).grad([x])[0];
    // Each negation has a node in the derivative.
    let first = derivative(long(x, 60_000));
    assert!(tape.len() > 120_000);
    assert_eq!(kept().len(), 1);
    // Only the nodes after the previous derivative count, so this one is kept.
    let y = first * x;
    let second = y.grad([x])[0];
    assert_eq!(kept().len(), 2);
    let before = kept();
    derivative(long(second * x, 70_000));
    let after = kept();
    assert!(before.len() == after.len() && before.iter().zip(&after).all(|(x, y)| Rc::ptr_eq(x, y)));
}

/// Checks that all derivatives of a second step are replayed, even if the step takes many derivatives.
#[test]
fn many_derivatives_of_one_tape_are_replayed() {
    let step = || {
        let (tape, mut slopes) = (Tape::<f64>::new(), Vec::new());
        let x = tape.var(&Tensor::scalar(2.0));
        for number in 0..1000 {
            slopes.push((x * x * f64::from(number)).grad([x])[0]);
        }
        assert_eq!(tape.values_slice(&slopes)[999].item(), 3996.0);
    };
    step();
    let before = kept();
    assert_eq!(before.len(), 1000);
    step();
    let after = kept();
    assert_eq!(after.len(), 1000);
    assert!(before.iter().zip(&after).all(|(before, after)| Rc::ptr_eq(before, after)));
}

#[test]
fn only_the_derivative_that_no_longer_fits_is_dropped() {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::scalar(2.0));
    let _ = x.square().sum(..).grad([x]);
    let before = kept();
    derive(&[0, 1], ADDS);
    let is_kept = |derivative| kept().iter().any(|kept| Rc::ptr_eq(kept, derivative));
    let custom: Vec<_> =
        kept().into_iter().filter(|newer| !before.iter().any(|known| Rc::ptr_eq(newer, known))).collect();
    derive(&[0, 1], Double { adds: false, is_differentiable: true });
    size_of_kept();
    assert!(before.len() == 1 && is_kept(&before[0]));
    assert!(custom.len() == 1 && !is_kept(&custom[0]));
}

/// Checks a derivative rule that records another function than in the kept derivative, but the same number of nodes.
#[test]
fn a_rule_may_record_another_function() {
    for step in [0, 0, 1, 0, 1, 1] {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0]));
        let scaled = x.map_gradient(move |g| if step == 0 { g.sin() } else { g.exp() });
        let [dx] = (scaled * scaled).sum(..).grad([x]);
        assert_eq!(dx.item(), if step == 0 { 6f64.sin() } else { 6f64.exp() });
    }
}

#[test]
fn second_derivatives_are_replayed() {
    let mut replayed = 0;
    for step in 0..3 {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::scalar(2.0));
        let mut replay = |y, at| gradients(y, &[x], at, &mut replayed).unwrap()[0];
        let first = replay(x * x * x, Site::here("first"));
        let second = replay(first * 3.0, Site::here("second"));
        assert_eq!(second.item(), 36.0);
        assert_eq!(replayed, 2 * step);
    }
}

/// The sum of the gradients of two lookups is one node, which adds both gradients to zeros. It has data of its own: the rows of both
/// lookups.
#[test]
fn sums_of_lookups_are_replayed_with_other_rows() {
    let mut replayed = 0;
    for (step, rows) in [[0, 1], [0, 1], [1, 1], [0, 0]].into_iter().enumerate() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, 2.0]));
        let lookup = |rows: [i64; 2]| x.index_select(0, &Tensor::from(rows)).sum(..);
        let dx = gradients(lookup(rows) + lookup([1, 1]), &[x], Site::here("lookups"), &mut replayed).unwrap()[0];
        let count = |row| rows.iter().filter(|&&other| other == row).count() as f64;
        assert_eq!(dx.value().to_vec(), [count(0), count(1) + 2.0]);
        assert_eq!(replayed, step);
    }
}

#[test]
fn a_derivative_within_a_derivative_is_recorded_again() {
    let calls = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0]));
        let counted = Rc::clone(&calls);
        let scaled = x.map_gradient(move |g| {
            counted.set(counted.get() + 1);
            g * (g * g).sum(..).grad([g])[0]
        });
        // The gradient at `scaled` is 6, which the function replaces by 6 · 12.
        assert_eq!((scaled * scaled).sum(..).grad([x])[0].item(), 72.0);
    }
    assert_eq!(calls.get(), 3);
}

#[test]
fn a_power_has_the_derivative_of_its_own_exponent() {
    for exponent in [2.0, 3.0, 3.0, 0.0, 0.0, -1.0, 2.0] {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0, 5.0]));
        // The tensor is recorded as data, so the nodes are the same for every exponent.
        let [dx] = x.pow(&Tensor::scalar(exponent)).sum(..).grad_or_zeros([x]);
        let expected = [3.0f64, 5.0].map(|x| if exponent == 0.0 { 0.0 } else { exponent * x.powf(exponent - 1.0) });
        assert_eq!(dx.value().to_vec(), expected, "{exponent}");
    }
}

#[test]
fn a_rule_runs_once_for_each_gradient_also_if_it_records_other_nodes() {
    let calls = Rc::new(Cell::new(0));
    for step in 1..8 {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0]));
        let counted = Rc::clone(&calls);
        let scaled = x.map_gradient(move |g| {
            counted.set(counted.get() + 1);
            (1..step % 3).fold(g, |sum, _| sum + g)
        });
        let [dx] = (scaled * scaled).sum(..).grad([x]);
        assert_eq!(dx.item(), 6.0 * f64::from((step % 3).max(1)));
        assert_eq!(calls.get(), step);
    }
}

#[test]
fn an_operation_without_a_derivative_beside_the_loss_keeps_no_derivative() {
    let before = kept().len();
    for _ in 0..3 {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([3.0]));
        tape.apply(Double { adds: true, is_differentiable: false }, &[tape.constant(1.0)]);
        assert_eq!(x.square().sum(..).grad([x])[0].item(), 6.0);
    }
    assert_eq!(kept().len(), before);
}

/// Tests every pair of the derivative rules of [`Formed`], one after the other. Some of these rules read values or record parameters.
#[test]
fn a_rule_that_records_other_nodes_leaves_a_valid_tape() {
    for first in 0..10 {
        for second in 0..10 {
            for form in [first, second, first] {
                let step = |kind, operands, form| Move { kind, operands, number: 1.0, form };
                let moves = vec![step(10, [0, 1], form), step(8, [2, 2], form), step(10, [3, 0], form + 1)];
                let [trains, freezes] = [first % 2 == 0, false];
                let steps =
                    Steps { moves, sizes: [2, 3], seed: 1, trains, freezes, is_single: false, takes_second: true };
                let got = outcomes::<f64>(std::slice::from_ref(&steps)).0.remove(0);
                assert_eq!(got, on_a_new_thread::<f64>(&steps), "{first} {second} {form}");
            }
        }
    }
}

/// The product of two arrays, and their sum. The derivative with respect to the first array is a sum of two terms. `form` selects the order
/// of these terms, or that this derivative is not recorded.
struct ProductAndSum {
    form: usize,
}

impl<T: Float> Function<T> for ProductAndSum {
    fn name(&self) -> &'static str {
        "product_and_sum"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        Ok(vec![inputs[0].clone(), inputs[0].clone()])
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error> {
        Ok(vec![inputs[0].try_mul(&inputs[1])?, inputs[0].try_add(&inputs[1])?])
    }

    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let (x, y, g, h) = (call.inputs[0], call.inputs[1], gradients[0], gradients[1]);
        vec![
            match self.form % 3 {
                0 => Some(h + g * y),
                1 => Some(g * y + h),
                _ => None,
            },
            Some(g * x + h),
        ]
    }
}

/// An operation that doubles its input. `form` selects one of ten derivative rules. Some of them change the tape or read its state.
struct Formed<T: Float> {
    form: usize,
    parameter: Rc<Parameter<T>>,
}

impl<T: Float> Operation<T> for Formed<T> {
    fn name(&self) -> &'static str {
        "formed"
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].try_mul(2.0)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let (x, tape) = (call.input(0), g.tape());
        let own = || tape.parameter(&self.parameter).sum(..);
        Some(match self.form % 10 {
            0 => g * 2.0,
            1 => g + g,
            2 => return None,
            3 => g * tape.constant(x.value() + g.value()),
            4 => {
                let factor = tape.draw(Generator::uniform).unwrap_or(0.5);
                if factor > 0.5 { g * factor } else { -g * factor }
            }
            5 => g * own(),
            6 => {
                // Without `detach`, a chain of these rules would record exponentially many nodes.
                let [g, x] = [g.detach(), x.detach()];
                let [dg, dx] = (g.square() * x).sum(..).grad([g, x]);
                dg.value();
                dg + dx
            }
            7 => {
                let own = own();
                own.value();
                g * own + g.sin()
            }
            8 => g.index_select(0, &Tensor::from_fn([x.shape()[0]], |_| 0i64)) + g,
            // A panic without a message on the terminal.
            _ => resume_unwind(Box::new("the rule of form 9")),
        })
    }
}

/// A step of a random program. `operands` selects earlier values. In most kinds of steps, `form` and numbers that are data change the
/// values or the derivative, but not the recorded nodes of the program.
#[derive(Clone, Debug)]
struct Move {
    kind: usize,
    operands: [usize; 2],
    number: f64,
    form: usize,
}

/// A random program, whose values are matrices, and its derivatives.
#[derive(Clone, Debug)]
struct Steps {
    moves: Vec<Move>,
    sizes: [usize; 2],
    seed: u64,
    trains: bool,
    freezes: bool,
    is_single: bool,
    takes_second: bool,
}

/// A change of a random program, which gives the next program. `Back` restores the first program.
#[derive(Clone, Debug)]
enum Edit {
    Nothing,
    Back,
    Number(usize, f64),
    Form(usize, usize),
    Kind(usize, usize),
    Insert(usize, Move),
    Remove(usize),
    Exchange(usize, usize),
    Operands(usize, [usize; 2]),
    Sizes([usize; 2]),
    Seed(u64),
    Mode,
    Frozen,
    Type,
    Second,
}

impl Steps {
    fn edit(&mut self, edit: &Edit, start: &Steps) {
        let count = self.moves.len();
        match edit.clone() {
            Edit::Nothing => {}
            Edit::Back => *self = start.clone(),
            Edit::Number(at, number) => self.moves[at % count].number = number,
            Edit::Form(at, form) => self.moves[at % count].form = form,
            Edit::Kind(at, kind) => self.moves[at % count].kind = kind,
            Edit::Insert(at, step) => self.moves.insert(at % count, step),
            Edit::Remove(at) if count > 1 => drop(self.moves.remove(at % count)),
            Edit::Remove(_) => {}
            Edit::Exchange(x, y) => self.moves.swap(x % count, y % count),
            Edit::Operands(at, operands) => self.moves[at % count].operands = operands,
            Edit::Sizes(sizes) => self.sizes = sizes,
            Edit::Seed(seed) => self.seed = seed,
            Edit::Mode => self.trains = !self.trains,
            Edit::Frozen => self.freezes = !self.freezes,
            Edit::Type => self.is_single = !self.is_single,
            Edit::Second => self.takes_second = !self.takes_second,
        }
    }

    fn tape<T: Float>(&self) -> Tape<T> {
        if self.trains { Tape::training(&mut Generator::new(self.seed)) } else { Tape::new() }
    }
}

fn matrix<T: Float>(sizes: [usize; 2], seed: f64) -> Tensor<T> {
    Tensor::from_fn(sizes, |at| T::from_f64((at[0] as f64 * 1.7 + at[1] as f64 * 0.6 + seed).sin()))
}

/// Records a random program. Returns the loss and the variables with respect to which gradients are taken.
fn record<'t, T: Float>(tape: &'t Tape<T>, steps: &Steps) -> (Var<'t, T>, Vec<Var<'t, T>>) {
    let mut parameter = Parameter::new(matrix(steps.sizes, 0.25));
    parameter.set_frozen(steps.freezes);
    let parameter = Rc::new(parameter);
    let x = tape.var(&matrix(steps.sizes, 0.5));
    let y = tape.var(&matrix(steps.sizes, steps.seed as f64));
    let mut values = vec![x, y];
    for step in &steps.moves {
        let [x, y] = step.operands.map(|k| values[k % values.len()]);
        let (number, form) = (step.number, step.form);
        let parameter = Rc::clone(&parameter);
        values.push(match step.kind {
            0 => x + y,
            1 => x * y,
            2 => x * number - y,
            3 => x.sin(),
            4 => x.square().pow(&Tensor::scalar(T::from_f64(number))),
            5 => x.pow(number),
            6 => where_(&x.gt(number), &x, y),
            7 => x * tape.constant(Tensor::full(steps.sizes, T::from_f64(number))),
            8 => tape.apply(Formed { form, parameter }, &[x]),
            9 => x.map_gradient(move |g| (0..form % 3).fold(g, |sum, _| sum + g)),
            10 => {
                let results = tape.apply_function(ProductAndSum { form }, &[x, y]);
                results[form % 2] + results[0]
            }
            11 => {
                let rows: Vec<i64> = (0..steps.sizes[0]).map(|row| (row * form % steps.sizes[0]) as i64).collect();
                let rows = Tensor::from(rows);
                x.index_select(0, &rows) + x.index_select(0, &rows) * y
            }
            12 => vmap(|row: Var<'_, T>| row * row.sum(..) + number, x),
            13 => x.softmax(-1),
            14 => {
                let noise = tape.draw(|generator| Tensor::rand(steps.sizes, generator));
                x * tape.constant(noise.unwrap_or(Tensor::ones(steps.sizes)))
            }
            15 => x.matmul(y.t()).matmul(x) * 0.1,
            16 => x.detach() * y,
            17 => x.masked_fill(&Tensor::from_fn(steps.sizes, |at| (at[0] + at[1] * form) % 2 == 0), number),
            18 => cat(&[x.cumsum(0), y], 0).narrow(0, 0, steps.sizes[0]),
            19 => (x.sin() * y.detach()).sum(..).grad_or_zeros([x])[0],
            20 => x * tape.parameter(&parameter),
            21 => vmap(|row: Var<'_, T>| row.map_gradient(move |g| if form % 2 == 0 { g } else { g * 2.0 }).sin(), x),
            _ => {
                let unused = x.floor_divide(2.0).sum(..);
                if form % 2 == 0 { x + unused.detach() } else { x }
            }
        });
    }
    let mut inputs = vec![values[0], values[1]];
    if !steps.freezes {
        inputs.push(tape.parameter(&parameter));
    }
    (values[values.len() - 1].tanh().sum(..), inputs)
}

/// The result of a derivative: its values, or the text of its error or panic. Also the nodes of its tape, with their lines of code.
#[derive(Debug, PartialEq)]
struct Outcome {
    values: Result<Vec<Vec<u64>>, String>,
    nodes: String,
    locations: Vec<Option<&'static Location<'static>>>,
}

/// Runs `work`, and returns its error or its panic as text.
fn caught<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<R, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panicked".to_string())),
    }
}

/// Records the gradients of `loss`. Adds 1 to `replayed` if they were copied from a kept derivative.
fn gradients<'t, T: Float>(
    loss: Var<'t, T>,
    inputs: &[Var<'t, T>],
    at: Site,
    replayed: &mut usize,
) -> Result<Vec<Var<'t, T>>, Error> {
    let (seed, before) = (loss.unit_seed(at)?, kept());
    let start = loss.tape().record.borrow().list_lengths();
    let gradients = loss.tape().reverse_or_zeros(&[(loss, seed)], inputs, at);
    let is_known = |newest: &Rc<RecordedDerivative>| before.iter().any(|known| Rc::ptr_eq(known, newest));
    let is_replay = |newest: &Rc<RecordedDerivative>| newest.start == start && is_known(newest);
    *replayed += usize::from(kept().first().is_some_and(is_replay));
    gradients
}

/// Records all programs, each on its own tape, and then their derivatives. Returns their values, and the number of replayed derivatives.
fn outcomes<T: Float>(programs: &[Steps]) -> (Vec<Outcome>, usize) {
    let mut replayed = 0;
    let tapes: Vec<Tape<T>> = programs.iter().map(Steps::tape).collect();
    let recorded: Vec<_> = tapes.iter().zip(programs).map(|(tape, steps)| caught(|| Ok(record(tape, steps)))).collect();
    let at = Site::here("first");
    let first: Vec<_> = recorded
        .iter()
        .map(|recorded| {
            let (loss, inputs) = recorded.clone()?;
            caught(|| gradients(loss, &inputs, at, &mut replayed))
        })
        .collect();
    let at = Site::here("second");
    let mut results = Vec::new();
    for (((tape, steps), recorded), first) in tapes.iter().zip(programs).zip(recorded).zip(first) {
        let values = first.and_then(|first| {
            let (loss, inputs) = recorded?;
            caught(|| {
                let mut all = first.clone();
                if steps.takes_second {
                    let sum = first.iter().fold(tape.constant(0.0), |sum, g| sum + (g * g).sum(..));
                    all.extend(gradients(sum, &inputs, at, &mut replayed)?);
                }
                all.push(loss);
                let values = tape.try_values_slice(&all)?;
                let bits = |x: T| if x.is_nan() { f64::NAN.to_bits() } else { x.to_f64().to_bits() };
                Ok(values.iter().map(|value| value.iter().map(bits).collect()).collect())
            })
        });
        let (nodes, locations) = nodes(tape);
        results.push(Outcome { values, nodes, locations });
    }
    (results, replayed)
}

/// Returns the result of a program on a thread that keeps no derivatives yet.
fn on_a_new_thread<T: Float>(steps: &Steps) -> Outcome {
    std::thread::scope(|scope| scope.spawn(|| outcomes::<T>(std::slice::from_ref(steps)).0.remove(0)).join().unwrap())
}

fn moves() -> impl Strategy<Value = Move> {
    let number = prop_oneof![Just(0.0), Just(1.0), Just(2.0), Just(3.0), Just(-0.5), Just(0.5)];
    (0usize..23, [0usize..100, 0..100], number, 0usize..40).prop_map(|(kind, operands, number, form)| Move {
        kind,
        operands,
        number,
        form,
    })
}

fn edits() -> impl Strategy<Value = Edit> {
    let at = 0usize..100;
    let number = prop_oneof![Just(0.0), Just(1.0), Just(2.0), Just(3.0), Just(-0.5)];
    prop_oneof![
        4 => Just(Edit::Nothing),
        3 => Just(Edit::Back),
        4 => (at.clone(), number).prop_map(|(at, number)| Edit::Number(at, number)),
        4 => (at.clone(), 0usize..40).prop_map(|(at, form)| Edit::Form(at, form)),
        1 => (at.clone(), 0usize..23).prop_map(|(at, kind)| Edit::Kind(at, kind)),
        1 => (at.clone(), moves()).prop_map(|(at, step)| Edit::Insert(at, step)),
        1 => at.clone().prop_map(Edit::Remove),
        1 => (at.clone(), at.clone()).prop_map(|(x, y)| Edit::Exchange(x, y)),
        1 => (at.clone(), [at.clone(), at]).prop_map(|(at, operands)| Edit::Operands(at, operands)),
        1 => [1usize..5, 1usize..5].prop_map(Edit::Sizes),
        1 => (0u64..4).prop_map(Edit::Seed),
        1 => Just(Edit::Mode),
        1 => Just(Edit::Frozen),
        1 => Just(Edit::Type),
        1 => Just(Edit::Second),
    ]
}

thread_local! {
    /// The number of derivatives that the random test replayed in programs of type `f64`, and the number of these programs.
    static REPLAYED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Compares the derivatives of programs that change a little from step to step with derivatives on a new thread, which has no kept
    /// derivatives.
    fn replays_equal_new_derivatives_in_random_programs(
        moves in proptest::collection::vec(moves(), 1..10),
        sizes in [1usize..5, 1usize..5],
        seed in 0u64..4,
        flags in any::<[bool; 3]>(),
        edits in proptest::collection::vec(proptest::collection::vec(edits(), 1..4), 1..8),
    ) {
        let [trains, freezes, takes_second] = flags;
        let start = Steps { moves, sizes, seed, trains, freezes, is_single: false, takes_second };
        let mut programs = vec![start.clone()];
        for edits in &edits {
            // Each edit makes another program. The test records the derivatives of all these programs one after the other.
            for edit in edits {
                let mut next = programs[programs.len() - 1].clone();
                next.edit(edit, &start);
                programs.push(next);
            }
            let (singles, doubles): (Vec<_>, Vec<_>) = programs.iter().cloned().partition(|steps| steps.is_single);
            let (got, replayed) = outcomes::<f64>(&doubles);
            REPLAYED.set((REPLAYED.get().0 + replayed, REPLAYED.get().1 + doubles.len()));
            for (steps, got) in doubles.into_iter().zip(got) {
                prop_assert_eq!(got, on_a_new_thread::<f64>(&steps), "{:?}", steps);
            }
            for (steps, got) in singles.iter().zip(outcomes::<f32>(&singles).0) {
                prop_assert_eq!(got, on_a_new_thread::<f32>(steps), "{:?}", steps);
            }
            programs.drain(..programs.len() - 1);
        }
    }
}

#[test]
fn replays_equal_new_derivatives() {
    replays_equal_new_derivatives_in_random_programs();
    let (replayed, programs) = REPLAYED.get();
    assert!(replayed > programs / 5, "{replayed} replays in {programs} programs");
}
