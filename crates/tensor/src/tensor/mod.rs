//! The tensor type: a shared buffer, and a layout that says where the elements are in it.

pub(crate) mod approximate;
pub(crate) mod construction;
pub(crate) mod display;
pub(crate) mod interop;
pub mod program;
pub(crate) mod tensor;
