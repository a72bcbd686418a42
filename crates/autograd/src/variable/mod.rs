//! The operations of variables: the recording of each primitive, and the operators.

mod function;
mod operators;
mod tensor_like;

pub use function::{Function, FunctionCall};
