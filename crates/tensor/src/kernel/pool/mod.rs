//! Maximum and mean pooling.

pub(crate) mod max;
pub(crate) mod mean;
