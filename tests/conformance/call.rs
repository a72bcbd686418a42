//! A call in a case: it gives its arguments by position or name, converted to the types of the library's methods.
//!
//! The code of an operation must read every argument that was given. If it does not know an argument, the case counts as not built, and
//! never as passed.

use std::cell::RefCell;

use wengert_tensor::ops::Argument;
use wengert_tensor::{Dims, Scalar, Sizes, Tensor};

use super::skip::Reason;
use super::value::{Array, Given, Stop, Value};

/// A call of an operation with its arguments.
pub struct Call<'c, A: Array> {
    /// PyTorch's name of the operation.
    pub op: &'c str,
    args: Vec<Given<A>>,
    kwargs: Vec<(&'c str, Given<A>)>,
    /// For each argument, true if it was read; positional arguments come first.
    seen: RefCell<Vec<bool>>,
    constant: &'c dyn Fn(&Tensor<A::Elem>) -> A,
}

/// Two operands of one element type; one of them may be a number.
pub enum Pair<A: Array> {
    Float(A, Argument<A>),
    Int(Tensor<i64>, Argument<Tensor<i64>>),
    Bool(Tensor<bool>, Argument<Tensor<bool>>),
}

impl<'c, A: Array> Call<'c, A> {
    /// Makes a call. `constant` converts plain data to an operand.
    pub fn new(
        op: &'c str,
        args: Vec<Given<A>>,
        kwargs: Vec<(&'c str, Given<A>)>,
        constant: &'c dyn Fn(&Tensor<A::Elem>) -> A,
    ) -> Self {
        let seen = RefCell::new(vec![false; args.len() + kwargs.len()]);
        Call { op, args, kwargs, seen, constant }
    }

    /// Returns the name of an argument that was given but not read, or `None` if all were read.
    pub fn unread(&self) -> Option<String> {
        let position = self.seen.borrow().iter().position(|seen| !seen)?;
        Some(match position.checked_sub(self.args.len()) {
            None => format!("argument {position}"),
            Some(keyword) => format!("argument '{}'", self.kwargs[keyword].0),
        })
    }

    /// Returns the number of positional arguments.
    pub fn count(&self) -> usize {
        self.args.len()
    }

    /// Returns the argument at `position` or of this name, or `None` if it is absent or null. The argument counts as read.
    pub fn given(&self, position: usize, name: &str) -> Option<&Given<A>> {
        let (place, found) = match self.args.get(position) {
            Some(given) => (position, given),
            None => {
                let keyword = self.kwargs.iter().position(|(keyword_name, _)| *keyword_name == name)?;
                (self.args.len() + keyword, &self.kwargs[keyword].1)
            }
        };
        self.seen.borrow_mut()[place] = true;
        Some(found).filter(|given| !matches!(given, Given::None))
    }

    /// Converts plain data to an operand.
    pub fn constant(&self, data: &Tensor<A::Elem>) -> A {
        (self.constant)(data)
    }

    /// Returns the verdict that the library does not have this form of the operation.
    pub fn not_built(&self, form: &str) -> Stop {
        Stop::NotBuilt(if form.is_empty() { self.op.to_owned() } else { format!("{} ({form})", self.op) })
    }

    fn unexpected(&self, name: &str) -> Stop {
        self.not_built(&format!("this kind of '{name}'"))
    }

    /// Returns true if the argument at `position` or of this name is a tensor.
    pub fn is_tensor(&self, position: usize, name: &str) -> bool {
        matches!(self.given(position, name), Some(Given::Tensor(_)))
    }

    /// Returns an argument that is a tensor of any element type.
    pub fn value(&self, position: usize, name: &str) -> Result<&Value<A>, Stop> {
        match self.given(position, name) {
            Some(Given::Tensor(value)) => Ok(value),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns an argument that is a floating-point tensor.
    pub fn float(&self, position: usize, name: &str) -> Result<A, Stop> {
        match self.value(position, name)? {
            Value::Float(x) => Ok(x.clone()),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns an optional argument that is a floating-point tensor.
    pub fn float_or_none(&self, position: usize, name: &str) -> Result<Option<A>, Stop> {
        if self.given(position, name).is_none() { Ok(None) } else { self.float(position, name).map(Some) }
    }

    /// Returns an argument that is a tensor of integers.
    pub fn ints(&self, position: usize, name: &str) -> Result<&Tensor<i64>, Stop> {
        match self.value(position, name)? {
            Value::Int(x) => Ok(x),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns an argument that is a mask.
    pub fn bools(&self, position: usize, name: &str) -> Result<&Tensor<bool>, Stop> {
        match self.value(position, name)? {
            Value::Bool(x) => Ok(x),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns an argument that is the second operand of an operation on a floating-point tensor: a tensor or a number.
    pub fn operand(&self, position: usize, name: &str) -> Result<Argument<A>, Stop> {
        match self.given(position, name) {
            Some(Given::Tensor(Value::Float(x))) => Ok(Argument::Array(x.clone())),
            Some(Given::Tensor(_)) => Err(Stop::RuledOut(Reason::MixedTypes)),
            Some(given) => match number(given) {
                Some(value) => Ok(Argument::Number(A::Elem::from_f64(value))),
                None => Err(self.unexpected(name)),
            },
            None => Err(self.unexpected(name)),
        }
    }

    /// Returns the first two operands of the call.
    pub fn pair(&self) -> Result<Pair<A>, Stop> {
        let mixed = || Stop::RuledOut(Reason::MixedTypes);
        let second = self.given(1, "other").ok_or_else(|| self.unexpected("other"))?;
        Ok(match (self.given(0, "self"), second) {
            (Some(Given::Tensor(Value::Float(x))), _) => Pair::Float(x.clone(), self.operand(1, "other")?),
            (Some(Given::Tensor(Value::Int(x))), second) => Pair::Int(
                x.clone(),
                match second {
                    Given::Tensor(Value::Int(y)) => Argument::Array(y.clone()),
                    Given::Integer(value) => Argument::Number(*value),
                    Given::Flag(value) => Argument::Number(i64::from(*value)),
                    _ => return Err(mixed()),
                },
            ),
            (Some(Given::Tensor(Value::Bool(x))), second) => Pair::Bool(
                x.clone(),
                match second {
                    Given::Tensor(Value::Bool(y)) => Argument::Array(y.clone()),
                    Given::Flag(value) => Argument::Number(*value),
                    _ => return Err(mixed()),
                },
            ),
            // A number as the first operand becomes a constant of rank 0.
            (Some(first), Given::Tensor(Value::Float(y))) => match number(first) {
                Some(value) => {
                    Pair::Float(y.constant(&Tensor::scalar(A::Elem::from_f64(value))), Argument::Array(y.clone()))
                }
                None => return Err(self.unexpected("self")),
            },
            _ => return Err(mixed()),
        })
    }

    /// Returns an optional argument that is a number. Integers and booleans are numbers too.
    pub fn number(&self, position: usize, name: &str) -> Result<Option<f64>, Stop> {
        match self.given(position, name) {
            None => Ok(None),
            Some(given) => number(given).map(Some).ok_or_else(|| self.unexpected(name)),
        }
    }

    /// Returns an optional argument that is an integer.
    pub fn integer(&self, position: usize, name: &str) -> Result<Option<isize>, Stop> {
        match self.given(position, name) {
            None => Ok(None),
            Some(Given::Integer(value)) => Ok(Some(*value as isize)),
            Some(_) => Err(self.unexpected(name)),
        }
    }

    /// Returns a required argument that is an integer.
    pub fn needed_integer(&self, position: usize, name: &str) -> Result<isize, Stop> {
        self.integer(position, name)?.ok_or_else(|| self.not_built(&format!("no '{name}'")))
    }

    /// Returns a required argument that is a size, which must not be negative.
    pub fn size(&self, position: usize, name: &str) -> Result<usize, Stop> {
        usize::try_from(self.needed_integer(position, name)?)
            .map_err(|_| self.not_built(&format!("a negative '{name}'")))
    }

    /// Returns an argument that is a boolean, or its default.
    pub fn flag(&self, position: usize, name: &str, default: bool) -> Result<bool, Stop> {
        match self.given(position, name) {
            None => Ok(default),
            Some(Given::Flag(value)) => Ok(*value),
            Some(_) => Err(self.unexpected(name)),
        }
    }

    /// Returns an optional argument that is a text.
    pub fn text(&self, position: usize, name: &str) -> Result<Option<&str>, Stop> {
        match self.given(position, name) {
            None => Ok(None),
            Some(Given::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.unexpected(name)),
        }
    }

    /// Returns an optional argument that is one integer or a list of integers.
    pub fn integers(&self, position: usize, name: &str) -> Result<Option<Vec<isize>>, Stop> {
        match self.given(position, name) {
            None => Ok(None),
            Some(Given::Integer(value)) => Ok(Some(vec![*value as isize])),
            Some(Given::List(items)) => {
                let whole = |item: &Given<A>| match item {
                    Given::Integer(value) => Ok(*value as isize),
                    _ => Err(self.unexpected(name)),
                };
                items.iter().map(whole).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(self.unexpected(name)),
        }
    }

    /// Returns an argument that is one dimension or a list of dimensions. Returns all dimensions if it is not given.
    pub fn dims(&self, position: usize, name: &str) -> Result<Dims, Stop> {
        Ok(self.integers(position, name)?.map_or(Dims::from(..), Dims::from))
    }

    /// Returns a required argument that is one size or a list of sizes.
    pub fn sizes(&self, position: usize, name: &str) -> Result<Sizes, Stop> {
        self.integers(position, name)?.map(Sizes::from).ok_or_else(|| self.unexpected(name))
    }

    /// Returns an argument that is a list of floating-point tensors.
    pub fn floats(&self, position: usize, name: &str) -> Result<Vec<A>, Stop> {
        match self.given(position, name) {
            Some(Given::List(items)) => items
                .iter()
                .map(|item| match item {
                    Given::Tensor(Value::Float(x)) => Ok(x.clone()),
                    Given::Tensor(_) => Err(Stop::RuledOut(Reason::MixedTypes)),
                    _ => Err(self.unexpected(name)),
                })
                .collect(),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns the items of an argument that is a list.
    pub fn items(&self, position: usize, name: &str) -> Result<&[Given<A>], Stop> {
        match self.given(position, name) {
            Some(Given::List(items)) => Ok(items),
            _ => Err(self.unexpected(name)),
        }
    }

    /// Returns all positional arguments from `first`, which are floating-point tensors.
    pub fn rest(&self, first: usize) -> Result<Vec<A>, Stop> {
        (first..self.count()).map(|position| self.float(position, "tensors")).collect()
    }
}

fn number<A>(given: &Given<A>) -> Option<f64> {
    match given {
        Given::Number(value) => Some(*value),
        Given::Integer(value) => Some(*value as f64),
        Given::Flag(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}
