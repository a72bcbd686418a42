//! Buffers: shared between tensors, copied only when one of several holders writes.
//!
//! A buffer is memory of its own or memory that something else owns and keeps alive (an `ndarray`). This file and
//! `kernel/` are the only places with `unsafe` code.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Element;
use crate::memory;

/// A shared buffer of elements. Cloning shares it.
pub(crate) struct Storage<T>(Arc<Buffer<T>>);

struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    /// What `start` points into; dropped with the buffer.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: a buffer is a `[T]` whose owner is `Send + Sync` itself; it is written only through `Storage::make_mut`, which
// has the only reference to it.
unsafe impl<T: Send + Sync> Send for Buffer<T> {}
// SAFETY: as above; shared references only read.
unsafe impl<T: Send + Sync> Sync for Buffer<T> {}

impl<T: Element> Storage<T> {
    /// Takes the vector's memory; nothing is copied.
    pub(crate) fn from_vec(data: Vec<T>) -> Self {
        let len = data.len();
        let mut data = data;
        let start = NonNull::new(data.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Storage(Arc::new(Buffer { start, len, _owner: Box::new(data) }))
    }

    /// Memory of `len` elements that `owner` keeps alive and unchanged.
    ///
    /// # Safety
    ///
    /// `start` must be valid for reads of `len` elements of `T`, all initialised, for as long as `owner` lives wherever it is
    /// moved to, and nobody may write to them in that time. If this storage comes to be the only holder, it writes to them:
    /// that must be allowed as well.
    pub(crate) unsafe fn from_owner(start: NonNull<T>, len: usize, owner: impl Any + Send + Sync) -> Self {
        Storage(Arc::new(Buffer { start, len, _owner: Box::new(owner) }))
    }

    /// A buffer of zeros, or the number of bytes that memory cannot hold.
    pub(crate) fn zeroed(len: usize) -> Result<Self, memory::Refused> {
        memory::zeroed(len).map(Self::from_vec)
    }

    /// All elements.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `start` is valid for `len` initialised elements while `_owner` lives, which is as long as `self`; nothing
        // writes to them while a shared reference to the storage exists.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.0.len
    }

    /// The elements for writing, where no other tensor holds the buffer.
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let buffer = Arc::get_mut(&mut self.0)?;
        // SAFETY: as in `as_slice`, and `Arc::get_mut` proves that this is the only holder.
        Some(unsafe { std::slice::from_raw_parts_mut(buffer.start.as_ptr(), buffer.len) })
    }

    /// Whether both are the same buffer.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Storage<T> {
    fn clone(&self) -> Self {
        Storage(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_buffer_is_not_writable() {
        let mut first = Storage::from_vec(vec![1.0, 2.0]);
        let second = first.clone();
        assert!(first.get_mut().is_none());
        drop(second);
        first.get_mut().unwrap()[0] = 5.0;
        assert_eq!(first.as_slice(), &[5.0, 2.0]);
    }

    #[test]
    fn empty_buffers_exist() {
        assert!(Storage::<f32>::from_vec(Vec::new()).as_slice().is_empty());
        assert_eq!(Storage::<i64>::zeroed(0).unwrap().len(), 0);
    }
}
