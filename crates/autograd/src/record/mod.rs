//! The contents of a tape, and a store that keeps the memory of dropped tapes for later tapes.

#[allow(clippy::module_inception)]
mod record;
mod spare;

pub(crate) use record::{DETACH, Evaluations, Mark, Record};
pub(crate) use spare::RecycledRecord;
