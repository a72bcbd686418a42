//! Operations over sliding windows, and resampling: convolution, pooling, interpolation.

pub(crate) mod columns;
pub(crate) mod convolution;
pub(crate) mod description;
pub(crate) mod grid;
pub(crate) mod interpolation;
pub(crate) mod pooling;
pub(crate) mod windowed;
pub(crate) mod windows;
