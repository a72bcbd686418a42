//! A pool of released buffers, kept for later requests of similar size.
//!
//! The first use of fresh memory costs a page fault for each page (4 KiB on most systems). This takes longer than the arithmetic that fills
//! the memory. A training loop requests the same sizes in every step, and gets the same memory each time. Sizes are rounded up to one of four
//! classes between successive powers of two, so at most a fifth of a buffer is unused. When a released buffer would exceed the pool's
//! capacity, buffers of the sizes that were requested longest ago return to the system. If no size was requested longer ago than the released
//! buffer's size, the released buffer returns to the system instead. So does a buffer that is larger than the capacity.
//!
//! Buffers are aligned to cache lines, because loops over vectors that cross cache lines take about 1.5 times as long. On Linux, large
//! buffers use huge pages if the system grants them, which avoids TLB misses.
#![allow(unsafe_code)]

mod shared;
mod sync;

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::memory::available::AllocationError;
use crate::memory::pool::shared::{Buffers, SharedPool};
use crate::memory::pool::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
pub(crate) use crate::thresholds::memory::MIN_POOLED_BYTES;
use crate::thresholds::memory::{CACHE_LINE, HUGE_PAGE_BYTES, MIN_HUGE_PAGES_BYTES, POOL_CAPACITY};
use crate::{DType, Scalar};

static POOL: SharedPool<Allocation> = SharedPool {
    buffers: Mutex::new(Buffers::new()),
    limit: AtomicUsize::new(POOL_CAPACITY),
    reused: AtomicU64::new(0),
    fresh: AtomicU64::new(0),
};

/// The contents of the pool of buffers, and the numbers of requests for buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatistics {
    /// The number of bytes in the pool.
    pub held_bytes: usize,
    /// The number of buffers in the pool.
    pub held_buffers: usize,
    /// The maximum number of bytes in the pool.
    pub capacity: usize,
    /// The number of requests served from the pool since the program began.
    pub reused: u64,
    /// The number of requests that needed fresh memory since the program began.
    pub fresh: u64,
}

/// Returns the pool's contents and counters. Requests below 1 KiB do not use the pool and are not counted. While the pool is off, only
/// requests for the memory of concatenations are counted.
pub fn pool_statistics() -> PoolStatistics {
    let pool = POOL.lock();
    PoolStatistics {
        held_bytes: pool.bytes,
        held_buffers: pool.count,
        capacity: POOL.limit.load(Ordering::Relaxed),
        reused: POOL.reused.load(Ordering::Relaxed),
        fresh: POOL.fresh.load(Ordering::Relaxed),
    }
}

/// Sets the maximum number of bytes in the pool (1 GiB by default). A maximum of 0 switches the pool off. If the pool has more bytes than
/// the new maximum, all its buffers return to the system.
pub fn set_pool_capacity(bytes: usize) {
    POOL.set_limit(bytes);
}

/// Returns all buffers in the pool to the system.
pub fn clear_pool() {
    POOL.clear();
}

/// Returns the kind of an element type, for the pool. Types of the same kind can reuse each other's buffers, because every bit pattern of
/// one type is valid for the other.
fn kind<T: Scalar>() -> u8 {
    u8::from(T::DTYPE == DType::Bool)
}

/// Initialised memory that is aligned at least to a cache line. The memory is released when the allocation is dropped.
struct Allocation {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an `Allocation` owns its memory, as a vector does.
unsafe impl Send for Allocation {}
// SAFETY: a shared reference to an `Allocation` gives no mutable access.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn layout(bytes: usize) -> Result<Layout, AllocationError> {
        // `zeroed` requests huge pages only on Linux. On other systems, the alignment would only waste address space.
        let align =
            if cfg!(target_os = "linux") && bytes >= MIN_HUGE_PAGES_BYTES { HUGE_PAGE_BYTES } else { CACHE_LINE };
        Layout::from_size_align(bytes, align).map_err(|_| AllocationError)
    }

    /// Allocates `bytes` zeros. Requests huge pages for them if the size is at least [`MIN_HUGE_PAGES_BYTES`] and the system is Linux.
    /// Panics if `bytes` is 0.
    fn zeroed(bytes: usize) -> Result<Self, AllocationError> {
        let layout = Self::layout(bytes)?;
        assert!(bytes > 0, "the pool serves no empty buffer");
        // SAFETY: the layout's size is not 0. The `bytes` bytes from `start` on were allocated just now and are written here. The
        // advice does not change their contents.
        unsafe {
            let start = NonNull::new(alloc(layout)).ok_or(AllocationError)?;
            #[cfg(target_os = "linux")]
            if bytes >= MIN_HUGE_PAGES_BYTES {
                // The error is ignored, because without huge pages the program is only slower.
                libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            }
            start.as_ptr().write_bytes(0, bytes);
            Ok(Allocation { start, bytes })
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout(self.bytes) {
            // SAFETY: `zeroed` allocated the memory with this layout, and `self` owns it.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// A buffer that returns to the pool when it is dropped.
pub(crate) struct PooledBuffer<T> {
    /// The memory, or `None` after the buffer was dropped. It starts with `len` elements of `T`, and all its bytes are valid for `T`.
    memory: Option<Allocation>,
    len: usize,
    kind: u8,
    elements: PhantomData<T>,
}

impl<T: Scalar> PooledBuffer<T> {
    /// Returns a buffer of `len` elements. `memory` must be zeroed, or come from a buffer of the same [`kind`].
    fn new(memory: Allocation, len: usize) -> Self {
        assert!(len <= memory.bytes / size_of::<T>() && align_of::<T>() <= CACHE_LINE);
        PooledBuffer { memory: Some(memory), len, kind: kind::<T>(), elements: PhantomData }
    }
}

impl<T> PooledBuffer<T> {
    fn start(&self) -> *mut T {
        self.memory.as_ref().map_or(std::ptr::dangling_mut(), |memory| memory.start.as_ptr().cast())
    }
}

impl<T> Deref for PooledBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` checked that the memory has room for `len` aligned elements, and the memory exists until `drop`. It was
        // zeroed, or written as elements of a type whose bit patterns are valid for `T` (`kind`).
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T> DerefMut for PooledBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl<T> Drop for PooledBuffer<T> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        POOL.put(self.kind, memory.bytes, memory);
    }
}

/// Returns the size in bytes of the smallest class of buffers that can hold `bytes` bytes. The size is a multiple of 64, and of a quarter
/// of the largest power of two up to `bytes`.
fn class_bytes(bytes: usize) -> usize {
    let step = 1usize << (usize::BITS - 1 - bytes.leading_zeros()).saturating_sub(2);
    bytes.next_multiple_of(step.max(64))
}

/// Returns true if the pool handles buffers of `len` elements.
pub(crate) fn handles_len<T: Scalar>(len: usize) -> bool {
    len.saturating_mul(size_of::<T>()) >= MIN_POOLED_BYTES && POOL.limit.load(Ordering::Relaxed) > 0
}

/// Returns a buffer of `len` elements (`bytes` bytes) from the pool, with unspecified values. Returns `None` if the pool has no buffer of
/// this size class and this [`kind`]. `len` must not be 0.
pub(crate) fn reuse<T: Scalar>(len: usize, bytes: usize) -> Option<PooledBuffer<T>> {
    let memory = POOL.take(kind::<T>(), class_bytes(bytes))?;
    Some(PooledBuffer::new(memory, len))
}

/// Returns a buffer of `len` elements (`bytes` bytes) from fresh, zeroed memory. `len` must not be 0.
pub(crate) fn allocate<T: Scalar>(len: usize, bytes: usize) -> Result<PooledBuffer<T>, AllocationError> {
    let memory = Allocation::zeroed(class_bytes(bytes))?;
    POOL.fresh.fetch_add(1, Ordering::Relaxed);
    Ok(PooledBuffer::new(memory, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a full pool removes buffers of an old size when a buffer of a recently requested size returns.
    #[test]
    fn a_pool_full_of_one_size_serves_another() {
        let (mut pool, limit, [old, new]) = (Buffers::new(), 16 << 10, [4 << 10, 2 << 10]);
        let cycle = |pool: &mut Buffers<usize>, bytes: usize| {
            let taken = pool.take(0, bytes);
            let removed: usize = pool.put(0, bytes, bytes, limit).iter().sum();
            (taken.is_some(), removed)
        };
        let four: Vec<usize> = (0..4).map(|_| pool.take(0, old).unwrap_or(old)).collect();
        four.into_iter().for_each(|memory| assert!(pool.put(0, old, memory, limit).is_empty()));
        assert_eq!(cycle(&mut pool, new), (false, old));
        assert_eq!(cycle(&mut pool, new), (true, 0));
        // The other buffers of the old size are still in the pool, and the pool's counters are right.
        assert_eq!(cycle(&mut pool, old), (true, 0));
        assert_eq!((pool.bytes, pool.count), (3 * old + new, 4));
        // A buffer that is larger than the limit, or whose size was never requested, is not put into the pool. No other buffer is removed
        // to make room for it.
        assert_eq!(cycle(&mut pool, 2 * limit), (false, 2 * limit));
        assert_eq!(pool.put(0, 4 * new, 4 * new, limit).len(), 1);
        assert_eq!((pool.bytes, pool.count), (3 * old + new, 4));
    }

    #[test]
    fn a_pool_full_of_one_size_drops_the_returned_buffer() {
        let mut pool = Buffers::new();
        assert_eq!(pool.take(0, 8), None);
        let (first, second) = (1usize, 2);
        assert!(pool.put(0, 8, first, 8).is_empty());
        assert_eq!(pool.put(0, 8, second, 8), [second]);
        assert_eq!(pool.take(0, 8), Some(first));
    }

    #[test]
    fn a_smaller_limit_removes_all_buffers_and_an_equal_one_none() {
        let pool = SharedPool {
            buffers: Mutex::new(Buffers::new()),
            limit: AtomicUsize::new(300),
            reused: AtomicU64::new(0),
            fresh: AtomicU64::new(0),
        };
        for kind in 0..3 {
            pool.put(kind, 100, kind);
        }
        let held = || {
            let buffers = pool.lock();
            (buffers.bytes, buffers.count)
        };
        assert_eq!(held(), (300, 3));
        pool.set_limit(300);
        assert_eq!((held(), pool.take(1, 100), pool.take(1, 100), pool.take(7, 100)), ((300, 3), Some(1), None, None));
        assert_eq!((held(), pool.reused.load(Ordering::Relaxed)), ((200, 2), 1));
        pool.set_limit(199);
        assert_eq!((held(), pool.take(0, 100)), ((0, 0), None));
        pool.put(0, 100, 0);
        pool.clear();
        assert_eq!((held(), pool.take(0, 100)), ((0, 0), None));
    }

    #[test]
    fn classes_waste_at_most_a_fifth_and_hold_whole_elements() {
        for bytes in (MIN_POOLED_BYTES..100_000).step_by(7).chain([1 << 26, (1 << 26) + 1, (1 << 40) + 12_345]) {
            let class = class_bytes(bytes);
            assert!(class >= bytes && class.is_multiple_of(64), "{bytes}");
            assert!(class - bytes <= bytes / 4, "{bytes} -> {class}");
        }
        assert_eq!([4096, 4097, 5121, 6145, 7169].map(class_bytes), [4096, 5120, 6144, 7168, 8192]);
    }

    #[test]
    fn released_buffers_are_reused() {
        // No other test uses buffers of this size.
        let len = 1_234_567;
        let first = allocate::<f64>(len, 8 * len).unwrap();
        let start = first.as_ptr();
        assert!((start as usize).is_multiple_of(CACHE_LINE) && first.iter().all(|&x| x == 0.0));
        drop(first);
        let again = reuse::<i64>(len - 1, 8 * len - 8).unwrap();
        assert_eq!((again.as_ptr().cast::<f64>(), again.len()), (start, len - 1));
        assert!(reuse::<bool>(8 * len, 8 * len).is_none());
        drop(again);
        assert!(pool_statistics().held_bytes >= 8 * len);
    }

    #[test]
    fn only_types_without_invalid_bits_share_a_kind() {
        let numbers = [kind::<f32>(), kind::<f64>(), kind::<i64>(), kind::<u8>()];
        assert!(numbers.iter().all(|&number| number == numbers[0] && number != kind::<bool>()));
    }

    #[test]
    fn small_buffers_are_not_pooled() {
        // No other test of this program sets the capacity, so the pool stays on or off during this test.
        let is_on = pool_statistics().capacity > 0;
        assert!(!handles_len::<u8>(MIN_POOLED_BYTES - 1) && !handles_len::<f64>(MIN_POOLED_BYTES / 8 - 1));
        assert_eq!((handles_len::<u8>(MIN_POOLED_BYTES), handles_len::<f64>(MIN_POOLED_BYTES / 8)), (is_on, is_on));
        assert_eq!(handles_len::<f64>(usize::MAX), is_on);
    }
}
