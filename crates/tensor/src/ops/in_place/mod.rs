//! Operations that change a tensor in place.

pub(crate) mod assign;
pub(crate) mod scatter_in_place;
pub(crate) mod views_in_place;
