//! Normalization of batches, examples, groups of channels, vectors and weights.

mod affine;
mod batch_norm;
mod channels;
mod group_norm;
mod instance_norm;
mod layer_norm;
mod local_response_norm;
#[cfg(test)]
mod tests;
mod weights;

pub use batch_norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d};
pub use group_norm::GroupNorm;
pub use instance_norm::{InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use layer_norm::{LayerNorm, RMSNorm};
pub use local_response_norm::LocalResponseNorm;
pub use weights::{SpectralNorm, WeightNorm};
