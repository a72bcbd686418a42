//! The tests of the special functions. They compare values with those of mpmath and PyTorch, and check the derivatives.

mod derivatives;
mod pytorch;
mod values;
