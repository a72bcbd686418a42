//! The operations of variables: how each primitive is recorded, and the operators.

mod function;
mod gradient_map;
mod operands;
mod operators;
mod tensor_like;

pub use function::{Function, FunctionCall};
