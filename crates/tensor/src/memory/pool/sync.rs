//! The synchronization primitives that [`super::shared`] uses. A test compiles `shared.rs` with the primitives of the crate `loom` instead.

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
