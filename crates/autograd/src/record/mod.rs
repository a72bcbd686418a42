//! What a tape holds, and the memory it is in.

#[allow(clippy::module_inception)]
mod record;
mod spare;

pub(crate) use record::{DETACH, Record};
pub(crate) use spare::Kept;
