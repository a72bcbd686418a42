//! The tests of the special functions: values by mpmath and PyTorch, derivatives.

mod derivatives;
mod pytorch;
mod values;
