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
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::reserve::Refused;
use crate::scalar::element::Scalar;
use crate::shape::dtype::DType;

/// Smaller buffers, in bytes, are left to the allocator, which is as quick.
pub(crate) const LEAST: usize = 1 << 10;

/// Bytes that the pool keeps at most, unless [`set_pool_capacity`] says otherwise.
const CAPACITY: usize = 1 << 30;

static LIMIT: AtomicUsize = AtomicUsize::new(CAPACITY);
static REUSED: AtomicU64 = AtomicU64::new(0);
static FRESH: AtomicU64 = AtomicU64::new(0);
static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), bytes: 0, buffers: 0 });

struct Pool {
    /// By kind of element and bytes: addresses of buffers, all bytes of which are initialised.
    free: BTreeMap<(u8, usize), Vec<usize>>,
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
    for ((_, bytes), buffers) in std::mem::take(&mut pool.free) {
        for address in buffers {
            // SAFETY: allocated in `fresh` with this layout, and held by nobody else.
            unsafe { dealloc(address as *mut u8, layout(bytes)) };
        }
    }
    (pool.bytes, pool.buffers) = (0, 0);
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

fn layout(bytes: usize) -> Layout {
    let align = if bytes >= LARGE { HUGE } else { LINE };
    // SAFETY: the alignment is a power of two, and no request is above half of `isize::MAX` bytes.
    unsafe { Layout::from_size_align_unchecked(bytes, align) }
}

/// Asks for huge pages for a buffer that nobody has written to. A refusal changes nothing but speed.
#[allow(unused_variables)]
fn advise(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= LARGE {
        // SAFETY: the pages are this buffer's from an aligned start on, and the advice does not change what is in them.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// A buffer of the pool, which goes back to it in the end.
pub(crate) struct Block<T> {
    start: NonNull<T>,
    len: usize,
    bytes: usize,
    kind: u8,
}

// SAFETY: a block owns its elements, as a vector does.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T> Deref for Block<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements from `start` on, all initialised, are this block's.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Block<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the block is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        let address = self.start.as_ptr() as usize;
        let mut pool = lock();
        if pool.bytes + self.bytes <= LIMIT.load(Ordering::Relaxed) {
            pool.bytes += self.bytes;
            pool.buffers += 1;
            pool.free.entry((self.kind, self.bytes)).or_default().push(address);
            return;
        }
        drop(pool);
        // SAFETY: allocated in `fresh` with this layout, and held by nobody else.
        unsafe { dealloc(self.start.as_ptr().cast(), layout(self.bytes)) };
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

/// A buffer of `len` elements, which are anything, where the pool has one. The caller has seen that the pool [`serves`] it.
pub(crate) fn take<T: Scalar>(len: usize) -> Option<Block<T>> {
    let bytes = class(len * size_of::<T>());
    let mut pool = lock();
    let address = pool.free.get_mut(&(kind::<T>(), bytes))?.pop()?;
    pool.bytes -= bytes;
    pool.buffers -= 1;
    drop(pool);
    REUSED.fetch_add(1, Ordering::Relaxed);
    // A buffer of `bytes` bytes, aligned for every element, all initialised to what is valid for `T`, held by nobody else.
    let start = NonNull::new(address as *mut T)?;
    Some(Block { start, len, bytes, kind: kind::<T>() })
}

/// As [`take`], of fresh memory, all zeros.
pub(crate) fn fresh<T: Scalar>(len: usize) -> Result<Block<T>, Refused> {
    let bytes = class(len * size_of::<T>());
    // SAFETY: the size is not 0: the pool serves no empty buffer.
    let start = NonNull::new(unsafe { alloc(layout(bytes)) }).ok_or(Refused)?;
    FRESH.fetch_add(1, Ordering::Relaxed);
    advise(start.as_ptr(), bytes);
    // SAFETY: `bytes` bytes were allocated there.
    unsafe { start.as_ptr().write_bytes(0, bytes) };
    // Zeros are valid for every element type.
    Ok(Block { start: start.cast::<T>(), len, bytes, kind: kind::<T>() })
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
        let first = fresh::<f64>(len).unwrap();
        let start = first.as_ptr();
        assert!((start as usize).is_multiple_of(LINE) && first.iter().all(|&x| x == 0.0));
        drop(first);
        let again = take::<i64>(len - 1).unwrap();
        assert_eq!((again.as_ptr().cast::<f64>(), again.len()), (start, len - 1));
        assert!(take::<bool>(8 * len).is_none());
        drop(again);
        assert!(pool_statistics().held_bytes >= 8 * len);
    }
}
