//! Memory and threads: buffers that tensors share, where they come from, and how work is shared out.

pub(crate) mod available;
pub(crate) mod partition;
pub(crate) mod pool;
pub(crate) mod reserve;
pub(crate) mod scratch;
pub(crate) mod storage;
pub(crate) mod threads;
