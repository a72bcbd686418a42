//! The tape and its variables.

// A comment in `lib.rs` explains the order of the modules.
#[allow(clippy::module_inception)]
mod tape;

mod recording;

mod call;
mod constant;
mod parameters;
#[cfg(test)]
mod tests;
mod training;
mod var;

pub use constant::Constant;
pub use tape::{BatchedCall, Call, Operation, Tape, Var};
pub(crate) use tape::{Record, RuleFailure};
