//! Runs the steps of a case: keeps the names and their values, and applies in-place operations.

use std::collections::HashMap;

use wengert_tensor::ops::TensorLike;
use wengert_tensor::{DType, Element, Site, Tensor};

use super::call::Call;
use super::format::{Literal, Step};
use super::ops;
use super::value::{Array, Given, Stop, Value};

/// The named arguments of a call.
type Keywords<'c, A> = Vec<(&'c str, Given<A>)>;

/// A way to compute a case's program: with eager tensors, or on a tape.
pub trait Machine {
    /// The type of the floating-point values: tensors or variables.
    type Array: Array;

    /// Returns plain data as a floating-point value of the program.
    fn constant(&self, data: &Tensor<<Self::Array as TensorLike>::Elem>) -> Self::Array;

    /// Returns a copy of the values, as PyTorch's `clone` does.
    fn copy(&self, x: &Self::Array) -> Result<Self::Array, Stop>;
}

/// The values of a case's program by name. Several names may denote one tensor, because an in-place operation returns its first argument.
pub struct Program<'c, M: Machine> {
    machine: &'c M,
    cells: Vec<Value<M::Array>>,
    names: HashMap<&'c str, usize>,
}

impl<'c, M: Machine> Program<'c, M> {
    /// Returns a program in which no name has a value.
    pub fn new(machine: &'c M) -> Self {
        Program { machine, cells: Vec::new(), names: HashMap::new() }
    }

    /// Gives `value` a name.
    pub fn bind(&mut self, name: &'c str, value: Value<M::Array>) {
        self.names.insert(name, self.cells.len());
        self.cells.push(value);
    }

    /// Returns the value of `name`.
    pub fn get(&self, name: &str) -> Result<&Value<M::Array>, Stop> {
        Ok(&self.cells[self.place(name)?])
    }

    fn place(&self, name: &str) -> Result<usize, Stop> {
        self.names.get(name).copied().ok_or_else(|| Stop::Malformed(format!("nothing is named '{name}'")))
    }

    /// Performs one step and names its results.
    pub fn step(&mut self, step: &'c Step) -> Result<(), Stop> {
        if step.op.ends_with('_') {
            return self.step_in_place(step);
        }
        let args = step.args.iter().map(|literal| self.given(literal)).collect::<Result<_, _>>()?;
        let mut results = if step.op == "clone" {
            vec![self.copy(&step.args)?]
        } else {
            let machine = self.machine;
            let constant = |data: &Tensor<_>| machine.constant(data);
            ops::call(&Call::new(&step.op, args, self.keywords(step)?, &constant))?
        };
        // A step that must fail has no names for its results. On a tape it may fail only when the results are computed.
        if step.out.is_empty() {
            for value in &results {
                if let Value::Float(x) = value {
                    x.to_tensor(Site::here("step"))?;
                }
            }
            return Ok(());
        }
        // The remaining results are arguments that the operation changed, such as running statistics. Their names are bound to the new
        // values.
        for (literal, value) in step.args.iter().skip(1).zip(results.drain(step.out.len().min(results.len())..)) {
            if let Literal::Name(name) = literal {
                self.bind(name, value);
            }
        }
        if results.len() != step.out.len() {
            let message = format!("{} gave {} results, expected {}", step.op, results.len(), step.out.len());
            return Err(Stop::Malformed(message));
        }
        for (name, value) in step.out.iter().zip(results) {
            self.bind(name, value);
        }
        Ok(())
    }

    fn step_in_place(&mut self, step: &'c Step) -> Result<(), Stop> {
        let Some(Literal::Name(name)) = step.args.first() else {
            return Err(Stop::Malformed(format!("{} has no tensor to work on", step.op)));
        };
        let place = self.place(name)?;
        let others = step.args[1..].iter().map(|literal| self.given(literal));
        let args = std::iter::once(Ok(Given::None)).chain(others).collect::<Result<_, _>>()?;
        let machine = self.machine;
        let constant = |data: &Tensor<_>| machine.constant(data);
        let call = Call::new(&step.op, args, self.keywords(step)?, &constant);
        call.given(0, "self");
        // The value is removed from the list, so that the operation may be its only holder.
        let mut target = std::mem::replace(&mut self.cells[place], Value::Bool(Tensor::default()));
        let done = ops::call_in_place(&call, &mut target);
        self.cells[place] = target;
        for name in &step.out {
            self.names.insert(name, place);
        }
        done
    }

    fn copy(&self, args: &[Literal]) -> Result<Value<M::Array>, Stop> {
        Ok(match args {
            [Literal::Name(name)] => match self.get(name)? {
                Value::Float(x) => Value::Float(self.machine.copy(x)?),
                Value::Int(x) => Value::Int(copied(x)),
                Value::Bool(x) => Value::Bool(copied(x)),
            },
            _ => return Err(Stop::NotBuilt("clone (these arguments)".into())),
        })
    }

    fn keywords(&self, step: &'c Step) -> Result<Keywords<'c, M::Array>, Stop> {
        step.kwargs.iter().map(|(name, literal)| Ok((name.as_str(), self.given(literal)?))).collect()
    }

    fn given(&self, literal: &Literal) -> Result<Given<M::Array>, Stop> {
        Ok(match literal {
            Literal::None => Given::None,
            Literal::Flag(value) => Given::Flag(*value),
            Literal::Integer(value) => Given::Integer(*value),
            Literal::Number(value) => Given::Number(*value),
            Literal::Text(text) => Given::Text(text.clone()),
            Literal::DType(_) => Given::DType,
            Literal::Slice(bounds) => Given::Slice(*bounds),
            Literal::Name(name) => Given::Tensor(self.get(name)?.clone()),
            Literal::List(items) => Given::List(items.iter().map(|item| self.given(item)).collect::<Result<_, _>>()?),
        })
    }
}

/// Returns a tensor with the same values in a new buffer.
pub fn copied<T: Element>(x: &Tensor<T>) -> Tensor<T> {
    Tensor::from_vec(x.to_vec(), x.shape())
}

/// Returns the floating-point type of a case: the type of its inputs or outputs, or f64 if there is none.
pub fn float_type(mut dtypes: impl Iterator<Item = DType>) -> DType {
    dtypes.find(|dtype| matches!(dtype, DType::F32 | DType::F64)).unwrap_or(DType::F64)
}
