//! Runs cases on a tape. The forward phase is recorded. Then gradients and second derivatives are compared, and reverse mode is compared
//! with forward mode.

use wengert::autograd::{Error, Tape, Var};
use wengert_tensor::ops::{TensorLike, Views};
use wengert_tensor::{DType, Float, Site, Sizes, Tensor, View};

use super::compare;
use super::eager::{self, Forward, Trouble};
use super::format::{Case, Expected, Input, Mode, Phase, Second, Set};
use super::program::{Machine, Program};
use super::refusal::Refusal;
use super::store::Stores;
use super::value::{Array, Stop, Value};

/// The machine that records a case's program on a tape.
pub struct Recorder<'t, T: Float>(&'t Tape<T>);

impl<'t, T: Float> Machine for Recorder<'t, T> {
    type Array = Var<'t, T>;

    fn constant(&self, data: &Tensor<T>) -> Var<'t, T> {
        self.0.constant(data)
    }

    fn copy(&self, x: &Var<'t, T>) -> Result<Var<'t, T>, Stop> {
        // A reshape to the same shape keeps the values, but the result is not expanded. An expanded variable would refuse writes.
        Ok(x.apply_view(View::Reshape(x.shape()), Site::here("clone"))?)
    }
}

impl<T: Float> Array for Var<'_, T> {
    fn view(&self, sizes: Sizes) -> Result<Self, Error> {
        // A recorded variable has no strides, so it refuses no view because of strides.
        self.try_reshape(sizes)
    }
}

/// Returns true if the case runs on a tape.
pub fn applies(case: &Case) -> bool {
    let wants = case.inputs.iter().any(|input| input.grad);
    // Cases about strides and shared memory are only for eager tensors.
    let about_memory = case.error.as_ref().is_some_and(|error| {
        let op = error.step.and_then(|number| case.steps.get(number)).map_or("", |step| &step.op);
        match error.category.as_str() {
            "reshape" => op == "view",
            "overlap" => !error.message.contains("more than one element of the written-to tensor"),
            _ => false,
        }
    });
    wants && !about_memory
}

/// Runs all phases of a case on a tape.
pub fn run<T: Float + Stores>(case: &Case, set: &Set) -> Result<(), Trouble> {
    let tape = Tape::<T>::new();
    let machine = Recorder(&tape);
    let mut program = Program::new(&machine);
    let mut wanted = Vec::new();
    for (position, input) in case.inputs.iter().enumerate() {
        let value = match eager::plain(&input.window, &set.store)? {
            Some(value) => value,
            None => {
                let data = set.store.window(&input.window)?;
                let x = if input.grad { tape.var(&data) } else { tape.constant(&data) };
                if input.grad {
                    wanted.push((position, x));
                }
                Value::Float(x)
            }
        };
        program.bind(&input.name, value);
    }
    if eager::forward(&mut program, case)? == Forward::Refused {
        return Ok(());
    }
    let sources: Vec<Var<T>> = wanted.iter().map(|&(_, x)| x).collect();
    let mut outputs = Vec::new();
    for output in &case.outputs {
        let what = format!("forward, output '{}'", output.name);
        let value = program.get(&output.name)?;
        let mut depends = false;
        match value {
            Value::Float(x) => {
                let got = x.try_value().map_err(|error| format!("{what}: {}", error.sentence()))?;
                compare::tensors(&what, &got, &set.store.tensor(&output.tensor)?, case.out)?;
                depends = is_reached(&tape, *x, &sources);
                if output.requires_grad {
                    outputs.push(*x);
                }
            }
            Value::Int(got) => compare::tensors(&what, got, &set.store.tensor(&output.tensor)?, case.out)?,
            Value::Bool(got) => compare::tensors(&what, got, &set.store.tensor(&output.tensor)?, case.out)?,
        }
        // The opposite difference is not checked: if all gradients are zero, the tape may not reach any input.
        if depends && !output.requires_grad {
            return Err(format!("{what}: a gradient flows through it, unlike the reference").into());
        }
    }
    let backward = Backward { tape: &tape, case, set, sources: wanted };
    match (backward.run(&outputs), expected(case)) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(expected)) => {
            Err(format!("backward: nothing was refused, expected '{}': {}", expected.category, expected.message).into())
        }
        (Err(Halt::Refused(phase, error)), Some(expected)) => {
            Ok(Refusal::new(&error).check(phase, None, expected).map_err(|error| format!("backward: {error}"))?)
        }
        (Err(Halt::Refused(phase, error)), None) => Err(format!("{phase:?}: refused: {}", error.sentence()).into()),
        (Err(Halt::Differs(message)), _) => Err(message.into()),
    }
}

/// Returns the error that is expected in a phase after the forward phase.
fn expected(case: &Case) -> Option<&Expected> {
    let second = case.second.as_ref().and_then(|second| second.expected.as_ref().err());
    case.error.as_ref().filter(|error| error.phase != Phase::Forward).or(second)
}

/// Returns true if a gradient of `output` would reach one of `sources`, or if `output` has no derivative.
fn is_reached<'t, T: Float>(tape: &'t Tape<T>, output: Var<'t, T>, sources: &[Var<'t, T>]) -> bool {
    match tape.try_vjp(&[(output, tape.constant(Tensor::zeros(output.shape())))], sources) {
        Ok(gradients) => gradients.iter().any(Option::is_some),
        Err(_) => true,
    }
}

/// The reason why a phase after the forward phase ended early.
enum Halt {
    Refused(Phase, Error),
    Differs(String),
}

impl From<String> for Halt {
    fn from(message: String) -> Self {
        Halt::Differs(message)
    }
}

/// The phases after the forward phase, with the data that they share.
struct Backward<'t, 'c, T: Float> {
    tape: &'t Tape<T>,
    case: &'c Case,
    set: &'c Set,
    /// The inputs that require a gradient, with their positions.
    sources: Vec<(usize, Var<'t, T>)>,
}

impl<'t, T: Float + Stores> Backward<'t, '_, T> {
    fn run(&self, outputs: &[Var<'t, T>]) -> Result<(), Halt> {
        let refused = |error| Halt::Refused(Phase::Backward, error);
        let inputs: Vec<Var<T>> = self.sources.iter().map(|&(_, x)| x).collect();
        let mut seeds = Vec::new();
        for (output, upstream) in outputs.iter().zip(&self.case.grad_outputs) {
            let data = match upstream {
                Some(window) => self.set.store.window(window)?,
                // `try_grad_slice` needs a single number, and its seed is 1.
                None => {
                    output.try_grad_slice(&inputs).map_err(refused)?;
                    Tensor::ones(output.shape())
                }
            };
            seeds.push((*output, self.tape.var(&data)));
        }
        let gradients = self.tape.try_vjp(&seeds, &inputs).map_err(refused)?;
        if let Some(expected) = &self.case.grads {
            for (&(position, _), &gradient) in self.sources.iter().zip(&gradients) {
                let what = self.named("backward, gradient", position);
                let mut total = self.value(&what, gradient)?;
                for _ in 1..self.case.backward_times {
                    let again = self.tape.try_vjp(&seeds, &inputs).map_err(refused)?;
                    let place = self.place(position);
                    total = match (total, self.value(&what, again[place])?) {
                        (Some(total), Some(more)) => Some(&total + &more),
                        (total, _) => total,
                    };
                }
                self.agrees(&what, total, expected[position].as_deref(), self.case.grad)?;
            }
        }
        self.modes_agree("forward mode", &seeds, &inputs, &gradients)?;
        match &self.case.second {
            Some(second) => self.second(second, &seeds, &inputs, &gradients),
            None => Ok(()),
        }
    }

    /// Compares the second-order gradients, with respect to the inputs and to the upstream gradients.
    fn second(
        &self,
        second: &Second,
        seeds: &[(Var<'t, T>, Var<'t, T>)],
        inputs: &[Var<'t, T>],
        gradients: &[Option<Var<'t, T>>],
    ) -> Result<(), Halt> {
        let mut pairs = Vec::new();
        for (&(position, _), gradient) in self.sources.iter().zip(gradients) {
            if let (Some(gradient), Some(key)) = (gradient, &second.v[position]) {
                pairs.push((*gradient, self.tape.constant(&self.set.store.tensor(key)?)));
            }
        }
        let sources: Vec<Var<T>> = inputs.iter().copied().chain(seeds.iter().map(|&(_, upstream)| upstream)).collect();
        let results = self.tape.try_vjp(&pairs, &sources);
        let results = results.map_err(|error| Halt::Refused(Phase::DoubleBackward, error))?;
        let Ok(expected) = &second.expected else {
            return Ok(());
        };
        for (&(position, _), &result) in self.sources.iter().zip(&results) {
            let what = self.named("second order, gradient", position);
            let got = self.value(&what, result)?;
            self.agrees(&what, got, expected.grad_inputs[position].as_deref(), self.case.second_mode)?;
        }
        for (number, &result) in results[inputs.len()..].iter().enumerate() {
            let what = format!("second order, gradient of upstream gradient {number}");
            let got = self.value(&what, result)?;
            self.agrees(&what, got, expected.grad_grad_outputs[number].as_deref(), self.case.second_mode)?;
        }
        self.modes_agree("forward mode over reverse", &pairs, &sources, &results)
    }

    /// Returns the position in `sources` of the input with the index `position`.
    fn place(&self, position: usize) -> usize {
        self.sources.iter().take_while(|&&(other, _)| other < position).count()
    }

    fn named(&self, what: &str, position: usize) -> String {
        let Input { name, .. } = &self.case.inputs[position];
        format!("{what} of '{name}'")
    }

    fn value(&self, what: &str, x: Option<Var<'t, T>>) -> Result<Option<Tensor<T>>, Halt> {
        let value = x.map(Var::try_value).transpose();
        value.map_err(|error| Halt::Differs(format!("{what}: {}", error.sentence())))
    }

    /// Compares a gradient with the expected one. A missing gradient is zero.
    fn agrees(&self, what: &str, got: Option<Tensor<T>>, key: Option<&str>, mode: Mode) -> Result<(), Halt> {
        let zero = |x: &Tensor<T>| x.iter().all(|x| x == T::ZERO);
        match (got, key) {
            (None, None) => Ok(()),
            (Some(got), Some(key)) => Ok(compare::tensors(what, &got, &self.set.store.tensor(key)?, mode)?),
            (Some(got), None) if zero(&got) => Ok(()),
            (Some(_), None) => Err(format!("{what}: expected none, or zeros").into()),
            (None, Some(key)) => {
                let expected: Tensor<T> = self.set.store.tensor(key)?;
                let absent = format!("{what}, which is absent");
                Ok(compare::tensors(&absent, &Tensor::zeros(expected.shape()), &expected, mode)?)
            }
        }
    }

    /// Compares reverse mode with forward mode: ⟨J v, u⟩ = ⟨v, Jᵀ u⟩. J is the Jacobian, v are random tangents of the inputs, and u are the
    /// upstream gradients. This needs no expected values. If a term is not finite, the products are not compared. The check runs only in
    /// f64, because f32 has the same rules.
    fn modes_agree(
        &self,
        what: &str,
        seeds: &[(Var<'t, T>, Var<'t, T>)],
        inputs: &[Var<'t, T>],
        gradients: &[Option<Var<'t, T>>],
    ) -> Result<(), Halt> {
        if T::DTYPE != DType::F64 {
            return Ok(());
        }
        let mut state = 1;
        let tangents: Vec<Tensor<T>> = inputs.iter().map(|x| tangent(&mut state, x)).collect();
        let moves: Vec<_> = inputs.iter().zip(&tangents).map(|(&x, v)| (x, self.tape.constant(v))).collect();
        let outputs: Vec<Var<T>> = seeds.iter().map(|&(output, _)| output).collect();
        let changes = self.tape.try_jvp(&outputs, &moves);
        let changes = changes.map_err(|error| Halt::Differs(format!("{what}: refused: {}", error.sentence())))?;
        let mut forward = Dot::default();
        for (change, &(_, upstream)) in changes.into_iter().zip(seeds) {
            if let (Some(change), Some(upstream)) = (self.value(what, Some(change))?, self.value(what, Some(upstream))?)
            {
                forward.add(&change, &upstream);
            }
        }
        let mut reverse = Dot::default();
        for (v, &gradient) in tangents.iter().zip(gradients) {
            if let Some(gradient) = self.value(what, gradient)? {
                reverse.add(v, &gradient);
            }
        }
        let (scale, distance) = (forward.scale + reverse.scale, (forward.sum - reverse.sum).abs());
        // The expected gradients have a tolerance of 1e-10, and both sides may differ from them by this much. If the terms of the
        // derivative cancel, only rounding is left, of the size that the case allows.
        let floor = match self.case.grad {
            Mode::Close { atol, .. } => atol,
            _ => 0.0,
        };
        if scale.is_finite() && distance > 2e-10 * scale + floor {
            let (forward, reverse) = (forward.sum, reverse.sum);
            return Err(format!("{what}: ⟨J v, u⟩ is {forward:e}, but ⟨v, Jᵀ u⟩ is {reverse:e}").into());
        }
        Ok(())
    }
}

/// An inner product, and the sum of the magnitudes of its terms, which is the scale of its rounding error.
#[derive(Default)]
struct Dot {
    sum: f64,
    scale: f64,
}

impl Dot {
    fn add<T: Float>(&mut self, x: &Tensor<T>, y: &Tensor<T>) {
        for (x, y) in x.iter().zip(y.iter()) {
            let term = x.to_f64() * y.to_f64();
            self.sum += term;
            self.scale += term.abs();
        }
    }
}

/// Returns values between -1 and 1 in the shape of `x`. They are the same in every run.
fn tangent<T: Float>(state: &mut u64, x: &Var<'_, T>) -> Tensor<T> {
    let shape = x.shape();
    let mut next = || {
        // This is Knuth's MMIX generator. Its low bits are poor, so the high bits are used.
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::from_f64((*state >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
    };
    Tensor::from_vec((0..shape.numel()).map(|_| next()).collect(), &shape)
}
