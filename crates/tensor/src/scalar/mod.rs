//! Single elements: the element types, the names of the elementwise operations and reductions, elementwise formulas, the instructions of
//! fused programs, and functions of numbers. Also random numbers, and the instruction sets for which loops are compiled.

pub(crate) mod cpu;
pub(crate) mod element;
pub(crate) mod formula;
pub(crate) mod functions;
pub(crate) mod generator;
pub(crate) mod instruction;
pub(crate) mod math;
pub(crate) mod reduction;
pub(crate) mod special;
