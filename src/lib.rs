//! Autograd for small models: PyTorch's broadcasting, exact gradients of any order, fast on a CPU.

pub use wengert_tensor as tensor;
pub use wengert_tensor::compat;

/// What most programs want.
pub mod prelude {
    pub use wengert_tensor::prelude::*;
}
