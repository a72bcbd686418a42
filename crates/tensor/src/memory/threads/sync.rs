//! The synchronization primitives that [`super::team`] uses. A test compiles `team.rs` with the primitives of the `loom` crate instead.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
pub(super) use std::thread::park;
