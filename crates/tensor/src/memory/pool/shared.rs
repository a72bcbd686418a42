//! The buffers in the pool, shared by all threads. This file does not know how buffers are allocated. A test (`pool_protocol`) compiles it
//! with the primitives of the crate `loom`. The test checks this file in every order in which a few preemptions can interleave the threads.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// Buffers of type `M` that no tensor uses at the moment, and counters of requests.
pub(super) struct SharedPool<M> {
    pub(super) buffers: Mutex<Buffers<M>>,
    /// The maximum number of bytes in the pool.
    pub(super) limit: AtomicUsize,
    pub(super) reused: AtomicU64,
    pub(super) fresh: AtomicU64,
}

/// The buffers in the pool.
pub(super) struct Buffers<M> {
    /// The buffers, by the kind of their elements and their size in bytes. Types of one kind can use each other's buffers.
    classes: BTreeMap<(u8, usize), Class<M>>,
    pub(super) bytes: usize,
    pub(super) count: usize,
    /// The number of requests for a buffer until now.
    requests: u64,
}

/// The buffers in the pool that have one size and one kind of elements.
struct Class<M> {
    free: Vec<M>,
    /// The number of requests of any size (`Buffers::requests`) at the time of the last request of this size.
    last_request: u64,
}

impl<M> Default for Class<M> {
    fn default() -> Self {
        Class { free: Vec::new(), last_request: 0 }
    }
}

impl<M> SharedPool<M> {
    /// Removes a buffer of `bytes` bytes from the pool and returns it, if there is one.
    pub(super) fn take(&self, kind: u8, bytes: usize) -> Option<M> {
        let memory = self.lock().take(kind, bytes)?;
        self.reused.fetch_add(1, Ordering::Relaxed);
        Some(memory)
    }

    /// Adds a buffer of `bytes` bytes to the pool, and drops buffers if the pool would exceed its limit.
    pub(super) fn put(&self, kind: u8, bytes: usize, memory: M) {
        let mut buffers = self.lock();
        // The limit is read while the lock is held. If another thread changes the limit, it either checks the pool with this buffer
        // afterwards, or this thread already reads the new limit.
        let removed = buffers.put(kind, bytes, memory, self.limit.load(Ordering::Relaxed));
        drop(buffers);
        drop(removed);
    }

    /// Sets the maximum number of bytes in the pool. If the pool has more bytes, removes all its buffers.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
        let mut buffers = self.lock();
        let removed = if buffers.bytes > bytes { buffers.clear() } else { BTreeMap::new() };
        drop(buffers);
        drop(removed);
    }

    /// Removes all buffers.
    pub(super) fn clear(&self) {
        let removed = self.lock().clear();
        drop(removed);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Buffers<M>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Buffers<M> {
    pub(super) const fn new() -> Self {
        Buffers { classes: BTreeMap::new(), bytes: 0, count: 0, requests: 0 }
    }

    /// Removes a buffer of `bytes` bytes from the pool and returns it, if there is one.
    pub(super) fn take(&mut self, kind: u8, bytes: usize) -> Option<M> {
        self.requests += 1;
        let class = self.classes.entry((kind, bytes)).or_default();
        class.last_request = self.requests;
        let memory = class.free.pop()?;
        self.bytes -= bytes;
        self.count -= 1;
        Some(memory)
    }

    /// Adds a buffer, and removes buffers if the pool would exceed `limit` bytes. Returns the removed buffers, which may include the new one.
    /// The caller drops them after it has released the lock.
    pub(super) fn put(&mut self, kind: u8, bytes: usize, memory: M, limit: usize) -> Vec<M> {
        let mut removed = Vec::new();
        while self.bytes.saturating_add(bytes) > limit {
            let old = if bytes <= limit { self.remove_older((kind, bytes)) } else { None };
            let Some(old) = old else {
                removed.push(memory);
                return removed;
            };
            removed.push(old);
        }
        self.bytes += bytes;
        self.count += 1;
        self.classes.entry((kind, bytes)).or_default().free.push(memory);
        removed
    }

    /// Removes a buffer of the size that was requested longest ago. `key` is the kind and size of the buffer that returns to the pool.
    /// Returns `None` if no size in the pool was requested before the size of `key`.
    fn remove_older(&mut self, key: (u8, usize)) -> Option<M> {
        let newest = self.classes.get(&key).map_or(0, |class| class.last_request);
        let older = self.classes.iter_mut().filter(|(_, class)| class.last_request < newest && !class.free.is_empty());
        let (&(_, bytes), class) = older.min_by_key(|(_, class)| class.last_request)?;
        let old = class.free.pop()?;
        self.bytes -= bytes;
        self.count -= 1;
        Some(old)
    }

    /// Removes all buffers and returns them. The times of earlier requests are forgotten too.
    fn clear(&mut self) -> BTreeMap<(u8, usize), Class<M>> {
        (self.bytes, self.count) = (0, 0);
        std::mem::take(&mut self.classes)
    }
}
