//! The oracle of the kernels, slow and obvious, and the tests of all kernels over tensors of every layout.

pub(crate) mod accuracy;
mod elementwise;
mod gathers;
pub(crate) mod layouts;
pub(crate) mod numbers;
pub(crate) mod oracle;
mod products;
mod programs;
mod reductions;
mod support;
