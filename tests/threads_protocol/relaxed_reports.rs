//! The protocol with counts of finished tasks that order nothing.

use super::scenarios;

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
    pub(super) use loom::thread::park;

    /// An atomic number that ignores the requested orderings.
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

/// The library's file. The scenarios use a part of it. Each module compiles it with other primitives.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/tensor/src/memory/threads/team.rs"]
mod team;

scenarios!();
