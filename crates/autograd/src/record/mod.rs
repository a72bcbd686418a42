//! The contents of a tape, and a store that lets later tapes reuse their memory.

#[allow(clippy::module_inception)]
mod record;
mod spare;

pub(crate) use record::{DETACH, Record};
pub(crate) use spare::RecycledRecord;
