//! The public operations, which check their arguments. Each operation is a method of a trait of tensors and variables, except for the
//! function `multi_dot`.

pub(crate) mod decompositions;
pub(crate) mod determinants;
pub(crate) mod factoring;
pub(crate) mod inverting;
pub(crate) mod least_squares;
pub(crate) mod matrix_norms;
pub(crate) mod multi_dot;
pub(crate) mod solving;
pub(crate) mod tensor_equations;
