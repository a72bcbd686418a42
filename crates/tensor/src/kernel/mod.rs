//! Kernels: what happens to blocks of elements. Shapes have been checked, layouts merged, memory asked for.
//!
//! - [`instruction`]: the elementwise operations by name;
//! - [`block`]: each of them over a block of elements, for each element type;
//! - [`map`]: blocks over whole tensors, any layout;
//! - [`fused`]: several operations over one block after the other; [`binding`]: how they lie over their inputs, [`places`]: in
//!   which registers, `reducer`: what they reduce;
//! - `few`: the same over few elements;
//! - [`gather`]: reading from and adding to arbitrary positions;
//! - [`reduce`]: sums, products, maxima and minima over some dimensions;
//! - [`arg`]: where the largest and smallest elements are;
//! - [`line`]: what looks at a whole line along one dimension: running sums, order;
//! - [`product`]: matrix products;
//! - [`convolution`], [`pooling`]: windows over images; [`direct`] and [`vector`]: convolutions without columns;
//! - [`math`]: exponentials and their kin in plain arithmetic, which becomes vector instructions;
//! - `reader`: operands that repeat a few elements;
//! - `rows`: operands whose rows are short, written out over a block;
//! - `short`: reductions of lines of a few elements;
//! - `elements`: the loops over a block of which functions consist; `loops`: those of which reductions do;
//! - [`update`]: one pass over several arrays, some changed in place;
//! - `turned`: operands that are transposed matrices, read by squares;
//! - [`simd`]: which vector instructions;
//! - [`scalar`]: functions of one number that the standard library lacks;
//! - `naive`: the same, slow and obvious: the oracle of the tests; `arbitrary`: tensors of every layout to try them on;
//!   `accuracy`: how far functions may be from the exact result.

#[cfg(test)]
mod accuracy;
#[cfg(test)]
pub(crate) mod arbitrary;
pub(crate) mod arg;
pub(crate) mod binding;
pub(crate) mod block;
pub(crate) mod convolution;
mod direct;
mod elements;
mod few;
pub(crate) mod fused;
pub(crate) mod gather;
pub(crate) mod instruction;
pub(crate) mod line;
mod loops;
pub(crate) mod map;
pub(crate) mod math;
#[cfg(test)]
mod naive;
pub(crate) mod places;
pub(crate) mod pooling;
pub(crate) mod product;
mod reader;
pub(crate) mod reduce;
mod reducer;
mod rows;
pub(crate) mod scalar;
mod short;
pub(crate) mod simd;
mod turned;
pub(crate) mod update;
mod vector;

pub use block::{Blocks, FloatBlocks};
pub use product::Products;
pub use short::ShortLines;
