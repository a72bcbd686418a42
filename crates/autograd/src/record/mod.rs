//! What a tape holds: nodes in the order in which they were recorded, and what they refer to.

mod node;
#[allow(clippy::module_inception)]
mod record;
mod spare;

pub(crate) use node::{Index, Inputs, Node, Op};
pub(crate) use record::Record;
pub(crate) use spare::Kept;
