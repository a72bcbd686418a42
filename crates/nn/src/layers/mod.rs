//! Layers, with PyTorch's names, layouts and initial distributions.

mod activation;
mod batch_norm;
#[cfg(test)]
mod check;
mod convolution;
mod instance_norm;
mod layer;
mod linear;
mod normalization;
mod sequential;

pub use activation::ReLU;
pub use batch_norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d};
pub use convolution::{Conv, Conv1d, Conv2d, Conv3d, ConvBuilder};
pub use instance_norm::{InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use layer::Layer;
pub use linear::Linear;
pub use normalization::{GroupNorm, LayerNorm, RMSNorm};
pub use sequential::Sequential;
