//! The engine: elementwise operations and programs of several operations over one shape, run block by block.
//!
//! | file | duty |
//! |---|---|
//! | `elementwise` | single operations over tensors of any layout, into a new result or in place |
//! | `elementwise_small` | the same for few elements, without a choice of an `Access` for each operand |
//! | `program`, `registers` | a fused program, and the slots in which its values are stored |
//! | `bound`, `access` | a program bound to a shape and to layouts: how each input is read |
//! | `tiling`, `driver` | the division of a shape into blocks and tasks, and the threads that run the tasks |
//! | `run_blocks`, `execute` | runs a program block by block, and one instruction over a block |
//! | `short_axis`, `run_short_axis` | programs whose last dimension is short |
//! | `run_small` | programs over few elements |
//! | `stages` | totals of reductions |
//! | `plan` | turns recorded expressions into programs and other steps |

pub(crate) mod access;
pub(crate) mod bound;
pub(crate) mod driver;
pub(crate) mod elementwise;
pub(crate) mod elementwise_small;
pub(crate) mod execute;
pub mod plan;
pub(crate) mod program;
pub(crate) mod registers;
pub(crate) mod run_blocks;
pub(crate) mod run_short_axis;
pub(crate) mod run_small;
pub(crate) mod short_axis;
pub(crate) mod stages;
pub(crate) mod tiling;
