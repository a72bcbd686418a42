//! Matrix products.

pub(crate) mod product;
