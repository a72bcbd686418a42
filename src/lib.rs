//! stub

pub use wengert_tensor as tensor;
