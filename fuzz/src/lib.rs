//! The fuzz targets as functions. A function takes any bytes and returns, or panics if it finds a defect.

mod files;
mod shapes;

pub use files::{arrays, checkpoints, images, logs, npz, tables};
pub use shapes::{broadcasting, einsum, views};
