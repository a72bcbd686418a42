//! The tape and its variables.

mod call;
mod parameters;
mod recording;
#[allow(clippy::module_inception)]
mod tape;
#[cfg(test)]
mod tests;
mod training;
mod var;

pub(crate) use tape::Record;
pub use tape::{BatchedCall, Call, Operation, Tape, Var};
