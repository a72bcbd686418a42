//! Linear and bilinear layers.

mod bilinear;
mod linear;

pub use bilinear::Bilinear;
pub use linear::Linear;
pub(super) use linear::initial_parameter;
