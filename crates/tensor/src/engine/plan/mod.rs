//! The planner: turns an expression into steps that compute the requested values in few passes over memory.
//!
//! | file | duty |
//! |---|---|
//! | `expression` | the input: nodes over shapes |
//! | `definition`, `values`, `identities` | the values that must be computed, each once, simplified |
//! | `interner` | lists of different values, such as shapes, each with an index |
//! | `unexpanded` | rewrites views of expanded values as expansions of smaller views |
//! | `slices` | takes slices of the terms of sums of gradients, not of the sums |
//! | `sums` | rewrites sums, mostly of gradients, as concatenations and larger products |
//! | `placements` | places values in kernels (fused programs) |
//! | `recompute` | selects the values that several kernels compute again |
//! | `emission` | the result: makes the steps and the plan |
//! | `products` | fuses sums with products |
//! | `concatenation` | writes operands of concatenations directly into the result where possible |
//! | `regions` | runs consecutive steps over small values without a tensor for each value |
//! | `steps` | the steps of a plan, and where they store their values |
//! | `planner` | makes a plan by calling the files above |
//! | `simplification` | the setting that switches simplification on or off |
//! | `cache` | keeps the most recent plans |
//! | `subgraph` | copies the part of a growing expression that some values need |
//!
//! Planning reads no data, so a plan serves every expression with the same nodes, shapes, views and numbers. It is made for one element type
//! and one instruction set. A training loop makes its plans in its first step, and reuses them as long as its expressions stay the same.

mod cache;
mod concatenation;
mod definition;
mod emission;
mod expression;
mod identities;
mod interner;
mod placements;
mod planner;
mod products;
mod recompute;
mod regions;
mod simplification;
mod slices;
mod steps;
mod subgraph;
mod sums;
mod unexpanded;
mod values;

pub use cache::plan_for;
pub use emission::Plan;
pub use expression::{
    ByNode, Expression, ExpressionTail, Identity, Inputs, ListLengths, Node, NodeIndex, Op, ResultOrigin,
};
pub use planner::plan;
pub(crate) use regions::Location;
pub use regions::Region;
pub use simplification::{set_simplification, simplification};
pub use steps::{ConcatBuffers, Offset, OperandRef, Step, Work};
pub use subgraph::Subgraph;
