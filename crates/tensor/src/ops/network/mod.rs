//! What networks are made of: attention, recurrent cells, losses.

pub(crate) mod attention;
pub(crate) mod losses;
pub(crate) mod recurrent;
