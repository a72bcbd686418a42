//! Convolutions over one, two and three dimensions.

mod builder;
mod conv;
#[cfg(test)]
mod tests;
mod transposed;

pub use builder::ConvBuilder;
pub use conv::{Conv, Conv1d, Conv2d, Conv3d};
pub use transposed::{ConvTranspose, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
