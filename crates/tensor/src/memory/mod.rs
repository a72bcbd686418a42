//! Memory and threads: shared buffers, the pool that they come from, and the partition of work.

pub(crate) mod available;
pub(crate) mod partition;
pub(crate) mod pool;
pub(crate) mod reserve;
pub(crate) mod scratch;
pub(crate) mod storage;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
