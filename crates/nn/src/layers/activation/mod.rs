//! Activation functions.

mod functions;
mod slopes;
#[cfg(test)]
mod tests;

pub use functions::{CELU, ELU, GELU, GELUTanh, GLU, LeakyReLU, LogSigmoid, Mish, ReLU, ReLU6, SELU, SiLU};
pub use functions::{Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSoftmax, Sigmoid, Softmax, Softmin, Softplus};
pub use functions::{Softshrink, Softsign, Tanh, Tanhshrink, Threshold};
pub use slopes::{PReLU, RReLU};
