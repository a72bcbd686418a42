//! Matrix products.

pub(crate) mod batched;
pub(crate) mod blocked;
pub(crate) mod matrix;
pub(crate) mod micro;
pub(crate) mod product;
mod simd;
pub(crate) mod small;
