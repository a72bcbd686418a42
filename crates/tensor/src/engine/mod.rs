//! The engine: programs of several operations over one shape, run block by block.

pub(crate) mod access;
pub(crate) mod bound;
pub(crate) mod driver;
pub(crate) mod elementwise;
pub(crate) mod execute;
pub mod plan;
pub(crate) mod program;
pub(crate) mod registers;
pub(crate) mod run;
pub(crate) mod run_short_axis;
pub(crate) mod short;
pub(crate) mod short_axis;
pub(crate) mod small;
pub(crate) mod stages;
pub(crate) mod tiling;
