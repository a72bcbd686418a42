//! Runs cases on eager tensors, and compares forward values and forward errors.

use wengert_tensor::{DType, Float, Tensor};

use super::compare;
use super::format::{Case, Phase, Set};
use super::program::{Machine, Program, copied};
use super::store::{Store, Stores};
use super::value::{Array, Stop, Value};

/// The machine that computes a case's program with eager tensors.
pub struct Eager<T>(std::marker::PhantomData<T>);

impl<T: Float> Machine for Eager<T> {
    type Array = Tensor<T>;

    fn constant(&self, data: &Tensor<T>) -> Tensor<T> {
        data.clone()
    }

    fn copy(&self, x: &Tensor<T>) -> Result<Tensor<T>, Stop> {
        Ok(copied(x))
    }
}

impl<T> Eager<T> {
    pub fn new() -> Self {
        Eager(std::marker::PhantomData)
    }
}

/// The reason why a case did not pass.
pub enum Trouble {
    /// The result differs, a step was refused unexpectedly, or the set is malformed; the text says how.
    Differs(String),
    /// The design excludes the case, or the library does not have the operation.
    Stopped(Stop),
}

impl From<String> for Trouble {
    fn from(message: String) -> Self {
        Trouble::Differs(message)
    }
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Malformed(message) => Trouble::Differs(message),
            Stop::Refused(refusal) => Trouble::Differs(format!("refused: {}", refusal.sentence())),
            stop => Trouble::Stopped(stop),
        }
    }
}

/// Runs the forward phase on eager tensors and compares the outputs.
pub fn run<T: Float + Stores>(case: &Case, set: &Set) -> Result<(), Trouble> {
    let machine = Eager::<T>::new();
    let mut program = Program::new(&machine);
    for input in &case.inputs {
        let value = match plain(&input.window, &set.store)? {
            Some(value) => value,
            None => Value::Float(set.store.window(&input.window)?),
        };
        program.bind(&input.name, value);
    }
    if forward(&mut program, case)? == Forward::Refused {
        return Ok(());
    }
    for output in &case.outputs {
        let what = format!("forward, output '{}'", output.name);
        let value = program.get(&output.name)?;
        if value.dtype() != output.dtype {
            return Err(format!("{what}: got elements of {}, expected {}", value.dtype(), output.dtype).into());
        }
        match value {
            Value::Float(got) => {
                compare::tensors(&what, got, &set.store.tensor(&output.tensor)?, case.out)?;
                let inputs = case.inputs.iter().filter_map(|input| program.get(&input.name).ok());
                let is_view = inputs.into_iter().any(|input| match input {
                    Value::Float(input) => input.shares_storage(got),
                    _ => false,
                });
                if let Some((strides, offset)) = output.view.as_ref().filter(|_| is_view) {
                    let layout = (got.strides(), got.layout().offset());
                    compare::layout(&what, got.shape(), layout, (strides, *offset))?;
                }
            }
            Value::Int(got) => compare::tensors(&what, got, &set.store.tensor(&output.tensor)?, case.out)?,
            Value::Bool(got) => compare::tensors(&what, got, &set.store.tensor(&output.tensor)?, case.out)?,
        }
    }
    Ok(())
}

/// The way in which the forward phase ended.
#[derive(PartialEq)]
pub enum Forward {
    /// All steps gave their results.
    Done,
    /// A step was refused, as expected.
    Refused,
}

/// Performs the steps of a case. If a step is refused, compares the error with the expected error.
pub fn forward<'c, M: Machine<Array: Array>>(program: &mut Program<'c, M>, case: &'c Case) -> Result<Forward, Trouble> {
    let expected = case.error.as_ref().filter(|error| error.phase == Phase::Forward);
    for (number, step) in case.steps.iter().enumerate() {
        let what = || format!("forward, step {number} ({})", step.op);
        match (program.step(step), expected) {
            (Ok(()), _) => {}
            (Err(Stop::Refused(refusal)), Some(expected)) => {
                refusal
                    .check(Phase::Forward, Some(number), expected)
                    .map_err(|error| format!("{}: {error}", what()))?;
                return Ok(Forward::Refused);
            }
            (Err(Stop::Refused(refusal)), None) => {
                return Err(format!("{}: refused: {}", what(), refusal.sentence()).into());
            }
            (Err(stop), _) => return Err(stop.into()),
        }
    }
    match expected {
        None => Ok(Forward::Done),
        Some(expected) => {
            Err(format!("forward: nothing was refused, expected '{}': {}", expected.category, expected.message).into())
        }
    }
}

/// Returns an input as plain data if its element type is an integer or a boolean, or `None` if the type is a floating-point type.
pub fn plain<A>(window: &super::format::Window, store: &Store) -> Result<Option<Value<A>>, String> {
    Ok(match window.dtype {
        DType::I64 => Some(Value::Int(store.window(window)?)),
        DType::Bool => Some(Value::Bool(store.window(window)?)),
        _ => None,
    })
}
