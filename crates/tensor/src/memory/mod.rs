//! Memory and threads: shared buffers, the pool of released buffers, temporary buffers, checks of the available memory, and the division of
//! work among threads.

pub(crate) mod available;
pub(crate) mod partition;
pub(crate) mod pool;
pub(crate) mod reserve;
pub(crate) mod scratch;
pub(crate) mod storage;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
