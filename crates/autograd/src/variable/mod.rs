//! The operations of variables: each primitive recorded, and the operators.

mod operators;
mod tensor_like;
