//! Tests of kernels over tensors of every layout, and their oracle: slow and obvious code that gives the expected results.

pub(crate) mod accuracy;
mod elementwise;
mod gathers;
pub(crate) mod layouts;
pub(crate) mod numbers;
pub(crate) mod oracle;
mod products;
mod programs;
mod reductions;
pub(crate) mod support;
