//! Layers, with PyTorch's names, layouts and initial distributions.

mod activation;
mod convolution;
mod layer;
mod linear;
mod sequential;

pub use activation::ReLU;
pub use convolution::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder};
pub use layer::Layer;
pub use linear::Linear;
pub use sequential::Sequential;
