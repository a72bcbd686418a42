//! The values of a case's program: tensors of several types, arguments as written, and the ways in which a call can end.

use wengert_tensor::ops::{InPlace, TensorLike, Windowed};
use wengert_tensor::{DType, Error, Float, Sizes, Tensor};

use super::refusal::Refusal;
use super::skip::Reason;

/// Floating-point tensors or recorded variables, with all operations.
pub trait Array: TensorLike<Elem: Float> + InPlace + Windowed {
    /// Does what PyTorch's `view` does: returns an error if the tensor's strides do not allow the view. Recorded variables have no strides.
    fn view(&self, sizes: Sizes) -> Result<Self, Self::Error>;
}

impl<T: Float> Array for Tensor<T> {
    fn view(&self, sizes: Sizes) -> Result<Self, Error> {
        self.try_view(sizes)
    }
}

/// An input or a result of a case. Integers and masks are plain data, also on a tape.
#[derive(Clone)]
pub enum Value<A> {
    Float(A),
    Int(Tensor<i64>),
    Bool(Tensor<bool>),
}

impl<A: Array> Value<A> {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        match self {
            Value::Float(_) => <A::Elem as wengert_tensor::Scalar>::DTYPE,
            Value::Int(_) => DType::I64,
            Value::Bool(_) => DType::Bool,
        }
    }
}

/// An argument of a call, after names were replaced by values.
#[derive(Clone)]
pub enum Given<A> {
    None,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    /// An element type; operations that take one are excluded.
    DType,
    Slice([Option<i64>; 3]),
    Ellipsis,
    Tensor(Value<A>),
    List(Vec<Given<A>>),
}

/// The reason why a call gave no result.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The operation, or this form of it, does not exist.
    NotBuilt(String),
    /// The design excludes the case.
    RuledOut(Reason),
    /// The operation refused its arguments.
    Refused(Refusal),
    /// The set does not follow the format.
    Malformed(String),
}

impl<E: std::error::Error + 'static> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Refused(Refusal::new(&error))
    }
}

/// The results of a call, or the reason why it gave none.
pub type Results<A> = Result<Vec<Value<A>>, Stop>;

/// The results of a call, or `None` if the family does not have the operation.
pub type Attempt<A> = Result<Option<Vec<Value<A>>>, Stop>;
