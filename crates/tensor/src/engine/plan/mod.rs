//! The planner: from an expression to the steps that compute the values asked for, as few passes over memory as it can.
//!
//! `values` says what must be computed, `schedule` in which steps, `products` which of them accumulate, `concatenation` which write
//! into parts of a result. None of them looks at data, so a plan serves every expression with the same nodes, shapes and numbers:
//! `cache` keeps the last ones, and a training loop makes its plans in the first step only. What is read while an expression still
//! grows is planned as a `part` of it.

mod cache;
mod concatenation;
mod emission;
mod expression;
mod planner;
mod products;
mod recompute;
mod schedule;
mod simplification;
mod steps;
mod subgraph;
mod sums;
mod values;

pub use cache::plan_for;
pub use expression::{ByNode, Expression, Index, Inputs, Node, Op};
pub use planner::plan;
pub use simplification::{set_simplification, simplification};
pub use steps::{ConcatBuffers, Offset, OperandRef, Plan, Step, Work};
pub use subgraph::Subgraph;
