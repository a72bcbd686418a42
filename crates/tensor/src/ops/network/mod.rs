//! Building blocks of neural networks: attention, recurrent cells, losses.

pub(crate) mod attention;
pub(crate) mod losses;
pub(crate) mod recurrent;
