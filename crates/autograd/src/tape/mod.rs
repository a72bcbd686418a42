//! The tape and its variables.

#[allow(clippy::module_inception)]
mod tape;
#[cfg(test)]
mod tests;

pub(crate) use tape::Record;
pub use tape::{BatchedCall, Call, Operation, Tape, Var};
