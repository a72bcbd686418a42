//! The contents of a tape, and the reuse of their memory.

#[allow(clippy::module_inception)]
mod record;
mod spare;

pub(crate) use record::{DETACH, Record};
pub(crate) use spare::RecycledRecord;
