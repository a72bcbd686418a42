//! Layers that change the shape of their input.

mod columns;
mod pixel_shuffle;
mod reshape;
mod resize;
#[cfg(test)]
mod tests;

pub use columns::{Fold, Unfold};
pub use pixel_shuffle::{ChannelShuffle, PixelShuffle, PixelUnshuffle};
pub use reshape::{Flatten, Identity, Unflatten};
pub use resize::{Pad, Upsample};
