//! The synchronization primitives of [`super::team`]. The model check compiles that file with loom's primitives in their place.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
pub(super) use std::thread::park;
