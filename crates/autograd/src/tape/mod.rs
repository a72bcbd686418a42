//! The tape and its variables.

// A comment in `lib.rs` explains the order of the modules.
#[allow(clippy::module_inception)]
mod tape;

mod recording;

mod call;
mod constant;
mod evaluated_layer;
mod parameters;
#[cfg(test)]
mod tests;
mod training;
mod var;

pub use constant::Constant;
pub(crate) use evaluated_layer::evaluated_layer;
pub use tape::{BatchedCall, Call, Operation, Tape, Var};
pub(crate) use tape::{Record, RuleFailure};
