//! Windows over images: their largest elements and their means.

pub(crate) mod max;
pub(crate) mod mean;
