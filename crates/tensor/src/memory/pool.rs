//! Buffers that were given back, kept for the next request of about their size.
//!
//! Fresh memory costs a page fault for each 4 KiB at first use, more than the arithmetic that fills it. A training step asks
//! for the same sizes again and again, and gets the same memory again and again. Sizes are rounded up to one of four
//! classes for each power of two, so that at most a fifth is wasted. What would take the pool above its capacity
//! goes back to the system at once. Buffers begin at a cache line: vectors that cross lines cost a third of the speed. Large
//! ones are in huge pages, where the system has them: a page of 4 KiB is looked up anew every hundred cycles of a loop.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::available::AllocationError;
use crate::{DType, Scalar};

/// Smaller buffers, in bytes, are left to the allocator, which is as quick.
pub(crate) const LEAST: usize = 1 << 10;

/// Bytes that the pool keeps at most, unless [`set_pool_capacity`] says otherwise.
const CAPACITY: usize = 1 << 30;

static LIMIT: AtomicUsize = AtomicUsize::new(CAPACITY);
static REUSED: AtomicU64 = AtomicU64::new(0);
static FRESH: AtomicU64 = AtomicU64::new(0);
static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), bytes: 0, buffers: 0 });

struct Pool {
    /// By kind of element and bytes.
    free: BTreeMap<(u8, usize), Vec<Memory>>,
    bytes: usize,
    buffers: usize,
}

/// What the pool holds and has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes held for reuse now.
    pub held_bytes: usize,
    /// Buffers held for reuse now.
    pub held_buffers: usize,
    /// Bytes held at most.
    pub capacity: usize,
    /// Requests served from the pool since the program began.
    pub reused: u64,
    /// Requests that needed fresh memory since the program began.
    pub fresh: u64,
}

/// What the pool holds and has done. Requests below 1 KiB are not counted: they do not go through it.
pub fn pool_statistics() -> PoolStatistics {
    let pool = lock();
    PoolStatistics {
        held_bytes: pool.bytes,
        held_buffers: pool.buffers,
        capacity: LIMIT.load(Ordering::Relaxed),
        reused: REUSED.load(Ordering::Relaxed),
        fresh: FRESH.load(Ordering::Relaxed),
    }
}

/// Lets the pool hold at most `bytes` bytes (1 GiB unless set); 0 switches it off. What it holds beyond that goes back to the
/// system.
pub fn set_pool_capacity(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    if lock().bytes > bytes {
        clear_pool();
    }
}

/// Gives all that the pool holds back to the system.
pub fn clear_pool() {
    let mut pool = lock();
    (pool.bytes, pool.buffers) = (0, 0);
    let free = std::mem::take(&mut pool.free);
    drop(pool);
    drop(free);
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Types that can take over one another's buffers: every bit pattern that one leaves is valid for the other.
fn kind<T: Scalar>() -> u8 {
    u8::from(T::DTYPE == DType::Bool)
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Buffers of so many bytes are worth huge pages.
const LARGE: usize = 4 << 20;

/// `bytes` bytes, all of them initialised, aligned to a cache line at least; given back when dropped.
struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns what it points to, as a vector does.
unsafe impl Send for Memory {}
// SAFETY: nothing changes through a shared reference.
unsafe impl Sync for Memory {}

impl Memory {
    fn layout(bytes: usize) -> Result<Layout, AllocationError> {
        let align = if bytes >= LARGE { HUGE } else { LINE };
        Layout::from_size_align(bytes, align).map_err(|_| AllocationError)
    }

    /// All zeros; in huge pages where there are many and the system has them.
    fn zeroed(bytes: usize) -> Result<Self, AllocationError> {
        let layout = Self::layout(bytes)?;
        assert!(bytes > 0, "the pool serves no empty buffer");
        // SAFETY: the layout's size is not 0. `bytes` bytes from `start` on were allocated just now, which the advice does
        // not change, and are written.
        unsafe {
            let start = NonNull::new(alloc(layout)).ok_or(AllocationError)?;
            #[cfg(target_os = "linux")]
            if bytes >= LARGE {
                // A refusal changes nothing but speed.
                libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            }
            start.as_ptr().write_bytes(0, bytes);
            Ok(Memory { start, bytes })
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout(self.bytes) {
            // SAFETY: allocated in `zeroed` with this layout, and owned.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// A buffer of the pool, which goes back to it in the end.
pub(crate) struct Block<T> {
    /// `Some` until it is dropped; `len` elements of `T` fit in and begin it, and all its bytes are valid for `T`.
    memory: Option<Memory>,
    len: usize,
    kind: u8,
    elements: PhantomData<T>,
}

impl<T: Scalar> Block<T> {
    /// `memory` holds zeros or comes from a block whose elements are of the same [`kind`].
    fn new(memory: Memory, len: usize) -> Self {
        assert!(len <= memory.bytes / size_of::<T>() && align_of::<T>() <= LINE);
        Block { memory: Some(memory), len, kind: kind::<T>(), elements: PhantomData }
    }
}

impl<T> Block<T> {
    fn start(&self) -> *mut T {
        self.memory.as_ref().map_or(std::ptr::dangling_mut(), |memory| memory.start.as_ptr().cast())
    }
}

impl<T> Deref for Block<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` saw that `len` aligned elements lie in the memory, which is there until `drop`; it was zeroed, or written as
        // elements of a type whose bit patterns are valid for `T` (`kind`).
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T> DerefMut for Block<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the block is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let mut pool = lock();
        if pool.bytes + memory.bytes <= LIMIT.load(Ordering::Relaxed) {
            pool.bytes += memory.bytes;
            pool.buffers += 1;
            pool.free.entry((self.kind, memory.bytes)).or_default().push(memory);
            return;
        }
        drop(pool);
        drop(memory);
    }
}

/// Bytes of the smallest class that holds `bytes`: a multiple of a quarter of the power of two below.
fn class(bytes: usize) -> usize {
    let step = 1usize << (usize::BITS - 1 - bytes.leading_zeros()).saturating_sub(2);
    bytes.next_multiple_of(step.max(64))
}

/// Whether a buffer of `len` elements is the pool's business.
pub(crate) fn serves<T: Scalar>(len: usize) -> bool {
    len.saturating_mul(size_of::<T>()) >= LEAST && LIMIT.load(Ordering::Relaxed) > 0
}

/// A buffer of `len` elements, `bytes` bytes, with unspecified values, where the pool has one. The caller has seen that the pool
/// [`serves`] it.
pub(crate) fn take<T: Scalar>(len: usize, bytes: usize) -> Option<Block<T>> {
    let bytes = class(bytes);
    let mut pool = lock();
    let memory = pool.free.get_mut(&(kind::<T>(), bytes))?.pop()?;
    pool.bytes -= bytes;
    pool.buffers -= 1;
    drop(pool);
    REUSED.fetch_add(1, Ordering::Relaxed);
    Some(Block::new(memory, len))
}

/// As [`take`], of fresh memory, all zeros.
pub(crate) fn fresh<T: Scalar>(len: usize, bytes: usize) -> Result<Block<T>, AllocationError> {
    let memory = Memory::zeroed(class(bytes))?;
    FRESH.fetch_add(1, Ordering::Relaxed);
    Ok(Block::new(memory, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_at_most_a_fifth_and_hold_whole_elements() {
        for bytes in (LEAST..100_000).step_by(7).chain([1 << 26, (1 << 26) + 1, (1 << 40) + 12_345]) {
            let class = class(bytes);
            assert!(class >= bytes && class.is_multiple_of(64), "{bytes}");
            assert!(class - bytes <= bytes / 4, "{bytes} -> {class}");
        }
    }

    #[test]
    fn what_was_given_back_is_taken_again() {
        // A size that no other test asks for.
        let len = 1_234_567;
        let first = fresh::<f64>(len, 8 * len).unwrap();
        let start = first.as_ptr();
        assert!((start as usize).is_multiple_of(LINE) && first.iter().all(|&x| x == 0.0));
        drop(first);
        let again = take::<i64>(len - 1, 8 * len - 8).unwrap();
        assert_eq!((again.as_ptr().cast::<f64>(), again.len()), (start, len - 1));
        assert!(take::<bool>(8 * len, 8 * len).is_none());
        drop(again);
        assert!(pool_statistics().held_bytes >= 8 * len);
    }
}
