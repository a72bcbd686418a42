//! What is run to get the values that were asked for: made from the recorded nodes, kept for the next tape that is the same.
//!
//! [`values`] says what must be computed, [`kernels`] in which steps. Neither looks at data; so a plan serves every tape with
//! the same nodes, shapes and numbers, and a training loop makes its plans in the first step only.

mod cache;
mod kernels;
mod simplification;
mod steps;
mod values;

pub(crate) use cache::planned;
pub use simplification::{set_simplification, simplification};
pub(crate) use steps::{Plan, Source, Step, Work};

#[cfg(test)]
mod tests;
