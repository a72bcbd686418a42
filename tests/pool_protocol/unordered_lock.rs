//! The pool with a broken primitive: a lock that admits one thread at a time, but orders no accesses.

use super::scenarios;

mod sync {
    use std::ops::{Deref, DerefMut};
    use std::sync::{LockResult, TryLockError};

    use loom::sync::atomic::AtomicBool;
    pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// The broken lock. Its value has a lock that loom does not observe. The flag, which loom observes, is true while
    /// the value is locked.
    pub(super) struct Mutex<T> {
        value: std::sync::Mutex<T>,
        locked: AtomicBool,
    }

    pub(super) struct MutexGuard<'a, T> {
        value: Option<std::sync::MutexGuard<'a, T>>,
        locked: &'a AtomicBool,
    }

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Mutex { value: std::sync::Mutex::new(value), locked: AtomicBool::new(false) }
        }

        pub(super) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            while self.locked.swap(true, Ordering::Relaxed) {
                loom::thread::yield_now();
            }
            let value = match self.value.try_lock() {
                Ok(value) => value,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => unreachable!("the flag admits one thread"),
            };
            Ok(MutexGuard { value: Some(value), locked: &self.locked })
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.value.as_ref().expect("a value until the guard is dropped")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.value.as_mut().expect("a value until the guard is dropped")
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            self.value = None;
            self.locked.store(false, Ordering::Relaxed);
        }
    }
}

/// The library's file, compiled with the primitives of this module.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/tensor/src/memory/pool/shared.rs"]
mod shared;

scenarios!();
