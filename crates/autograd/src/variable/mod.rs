//! The operations of variables: how each primitive is recorded, and the operators.

mod function;
mod operands;
mod operators;
mod tensor_like;

pub use function::{Function, FunctionCall};
