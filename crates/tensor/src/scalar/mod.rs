//! Single numbers: the elementwise operations by name, functions that the standard library lacks, random ones, and the instruction sets
//! that loops over them are compiled for.

pub(crate) mod cpu;
pub(crate) mod element;
pub(crate) mod generator;
pub(crate) mod instruction;
pub(crate) mod math;
pub(crate) mod special;
