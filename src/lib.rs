//! Autograd for small models: PyTorch's broadcasting, exact gradients of any order, fast on a CPU.

pub use wengert_autograd as autograd;
pub use wengert_nn as nn;
pub use wengert_tensor as tensor;

pub use wengert_autograd::{Gradients, Parameter, Tape, Var};
pub use wengert_tensor::{Shape, Tensor, compat};

/// What most programs want: tensors and their operations, the tape, the common layers, losses and optimisers.
pub mod prelude {
    pub use wengert_autograd::prelude::*;
    pub use wengert_nn::prelude::*;
}
