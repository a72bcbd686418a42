//! Operations that change a tensor in place.

pub(crate) mod assign;
pub(crate) mod functions_in_place;
pub(crate) mod overwrite;
pub(crate) mod scatter_in_place;
