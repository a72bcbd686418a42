//! The protocol with a broken primitive: its fences do nothing.

use super::scenarios;

mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
    pub(super) use loom::thread::park;

    pub(super) fn fence(_: Ordering) {}
}

/// The library's file, compiled with the primitives of this module. The scenarios use only a part of it.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/tensor/src/memory/threads/team.rs"]
mod team;

scenarios!();
