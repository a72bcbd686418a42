//! The operations: arguments, checks and documentation.

pub(crate) mod decompositions;
pub(crate) mod least_squares;
pub(crate) mod matrix_norms;
