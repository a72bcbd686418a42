//! The tests of the special functions. They compare values with the values of mpmath and PyTorch, and check the derivatives.

mod derivatives;
mod pytorch;
mod values;
