//! The tensor: a shared buffer and a layout over it.

pub(crate) mod approximate;
pub(crate) mod construction;
pub(crate) mod display;
pub(crate) mod interop;
pub mod program;
pub(crate) mod tensor;
