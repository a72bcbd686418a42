//! Reading and writing by index.

pub(crate) mod embedding;
pub(crate) mod indexing;
pub(crate) mod item;
pub(crate) mod items;
pub(crate) mod nonzero;
pub(crate) mod positions;
pub(crate) mod replace;
pub(crate) mod resolve;
pub(crate) mod scatter;
pub(crate) mod scatter_reduce;
pub(crate) mod view_scatter;
