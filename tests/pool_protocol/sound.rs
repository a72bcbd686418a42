//! The pool with loom's primitives.

use super::scenarios;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
}

/// The library's file, compiled with the primitives of this module.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/tensor/src/memory/pool/shared.rs"]
mod shared;

scenarios!();
