//! The fuzz targets as functions. A function takes any bytes and returns, or panics if it finds a defect.

mod files;
mod programs;
mod shapes;

pub use files::{arrays, checkpoints, images, logs, npz, tables};
pub use programs::programs;
pub use shapes::{broadcasting, einsum, views};
