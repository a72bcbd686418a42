//! Shapes, broadcasting, layouts, and the diagnostics of mismatches. This module knows sizes and strides, but no elements.

pub mod broadcast;
pub mod compat;
pub(crate) mod diagnostic;
pub(crate) mod dims;
pub(crate) mod dtype;
pub(crate) mod error;
pub mod explain;
pub(crate) mod iteration_space;
pub(crate) mod layout;
pub(crate) mod ranges;
pub(crate) mod shape;
pub(crate) mod site;
pub(crate) mod view;
