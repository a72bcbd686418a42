//! The operations: each with its kernel, which computes with tensors, and its derivative rule.
//!
//! The rules are in M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
//! differentiation" (2008), unless a rule names another source.

mod determinants;
mod factoring;
mod inverting;
mod lu;
mod solving;
mod substitution;

pub use determinants::Determinants;
pub use factoring::Factoring;
pub use inverting::Inverting;
pub use solving::Solving;
