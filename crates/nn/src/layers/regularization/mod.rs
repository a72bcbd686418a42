//! Dropout layers: of elements, of channels, and alpha dropout.

mod alpha_dropout;
mod dropout;
#[cfg(test)]
mod tests;

pub use alpha_dropout::{AlphaDropout, FeatureAlphaDropout};
pub use dropout::{Dropout, Dropout1d, Dropout2d, Dropout3d, DropoutChannels};
pub(super) use dropout::{dropout, expect_probability};
