//! The protocol with a broken primitive: the counts of finished tasks order no other accesses.

use super::scenarios;

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
    pub(super) use loom::thread::park;

    /// An atomic integer that ignores the requested orderings.
    pub(super) struct AtomicUsize(loom::sync::atomic::AtomicUsize);

    impl AtomicUsize {
        pub(super) fn new(value: usize) -> Self {
            AtomicUsize(loom::sync::atomic::AtomicUsize::new(value))
        }

        pub(super) fn load(&self, _: Ordering) -> usize {
            self.0.load(Ordering::Relaxed)
        }

        pub(super) fn store(&self, value: usize, _: Ordering) {
            self.0.store(value, Ordering::Relaxed);
        }

        pub(super) fn fetch_sub(&self, value: usize, _: Ordering) -> usize {
            self.0.fetch_sub(value, Ordering::Relaxed)
        }
    }
}

/// The library's file, compiled with the primitives of this module. The scenarios use only a part of it.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/tensor/src/memory/threads/team.rs"]
mod team;

scenarios!();
