//! Elementwise operations: arithmetic, functions, comparisons, activations.

pub(crate) mod activations;
pub(crate) mod arithmetic;
pub(crate) mod clamp;
pub(crate) mod comparison;
pub(crate) mod dropout;
pub(crate) mod functions;
pub(crate) mod incomplete_gamma;
pub(crate) mod mixed;
