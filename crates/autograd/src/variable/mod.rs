//! The operations of variables: each primitive recorded, and the operators.

mod function;
mod operators;
mod tensor_like;

pub use function::{Function, FunctionCall};
