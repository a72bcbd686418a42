//! Decompositions and the functions that need them: arguments, checks and documentation.

pub(crate) mod chain;
pub(crate) mod decompose;
pub(crate) mod least_squares;
pub(crate) mod matrix_norms;
