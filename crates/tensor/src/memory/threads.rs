//! Sharing out the parts of one operation among threads.
//!
//! A light fork-join: helpers spin for a moment after each operation and sleep after that; each thread claims parts one after
//! the other from a stretch of its own, which lie one after the other in memory, and then what is left of the others', so that
//! a helper that the system holds up delays nobody. Rayon's pool is entered from outside by a queue and a condition variable,
//! which costs 10 to 100 µs; an operation here often takes less than that. An operation starts in 1 µs when the helpers are
//! awake.
//!
//! What goes through tensors in order does so from start to end in one operation, and from end to start in the next
//! ([`sweep`]): what the caches still hold of tensors larger than they are is what was read and written last.
//!
//! What a part is depends on shapes alone, never on the number of threads: any number gives the same bits.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a helper looks for new work before it sleeps.
const AWAKE: Duration = Duration::from_micros(100);

/// Of more bytes than this, too little is left in the caches for the direction to matter; and memory beyond them is quicker in
/// ascending order.
const CACHED: usize = 8 << 20;

/// Number of threads that operations use; 0 until it is asked for.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that an operation may use, the calling one included.
///
/// It is the number of processors, unless the environment variable `WENGERT_NUM_THREADS` (read at the first operation) or
/// [`set_num_threads`] says otherwise. PyTorch: `torch.get_num_threads`.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let asked = std::env::var("WENGERT_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
            let threads = asked.filter(|&threads| threads > 0);
            let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
            set_num_threads(threads);
            threads.min(MOST)
        }
        threads => threads,
    }
}

/// No more threads than this, whatever is asked for.
const MOST: usize = 256;

/// Uses `threads` threads from the next operation on: 1 to 256, brought into that range. Results are the same, bit for bit,
/// whatever the number. PyTorch: `torch.set_num_threads`.
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MOST), Ordering::Relaxed);
}

/// Calls `part` with each of `0 .. count`, on several threads where there are several parts. Within a part, on one.
///
/// # Panics
///
/// Where a part panics, after all threads have left.
pub(crate) fn for_each(count: usize, part: impl Fn(usize) + Sync) {
    share(count, false, part);
}

/// As [`for_each`], of an operation that goes through `bytes` bytes in the order of its parts.
pub(crate) fn sweep(count: usize, bytes: usize, part: impl Fn(usize) + Sync) {
    let backwards = bytes <= CACHED && BACKWARDS.replace(!BACKWARDS.get());
    share(count, backwards, part);
}

fn share(count: usize, backwards: bool, part: impl Fn(usize) + Sync) {
    let alone = |part: &dyn Fn(usize)| match backwards {
        true => (0..count).rev().for_each(part),
        false => (0..count).for_each(part),
    };
    let threads = num_threads().min(count);
    if threads < 2 || INSIDE.get() {
        return alone(&part);
    }
    static CREW: OnceLock<Mutex<Crew>> = OnceLock::new();
    let crew = match CREW.get_or_init(|| Mutex::new(Crew::new())).try_lock() {
        Ok(crew) => Some(crew),
        // A part panicked once; nothing of the crew's was left half done.
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        // Other threads of the program are at it: this one does its own work itself.
        Err(TryLockError::WouldBlock) => None,
    };
    match crew {
        Some(mut crew) => crew.run(threads - 1, count, backwards, &part),
        None => alone(&part),
    }
}

/// Calls `part` with each chunk of `size` elements of `out` (the last may be shorter) and its number.
pub(crate) fn for_chunks<T: Send>(out: &mut [T], size: usize, part: impl Fn(usize, &mut [T]) + Sync) {
    chunks(out, size, |count, part| for_each(count, part), part);
}

/// As [`for_chunks`], of an operation that goes through `bytes` bytes in the order of the chunks.
pub(crate) fn sweep_chunks<T: Send>(out: &mut [T], size: usize, bytes: usize, part: impl Fn(usize, &mut [T]) + Sync) {
    chunks(out, size, |count, part| sweep(count, bytes, part), part);
}

fn chunks<T: Send>(
    out: &mut [T],
    size: usize,
    each: impl FnOnce(usize, Part<'_>),
    part: impl Fn(usize, &mut [T]) + Sync,
) {
    let len = out.len();
    let start = Start(out.as_mut_ptr());
    each(len.div_ceil(size), &|number| {
        let first = number * size;
        // SAFETY: parts are numbered 0 .. ⌈len / size⌉, each once: chunks lie within `out` and do not overlap; `out` is
        // borrowed mutably until all are done; `T: Send`.
        let chunk = unsafe { std::slice::from_raw_parts_mut(start.at(first), size.min(len - first)) };
        part(number, chunk);
    });
}

/// A pointer that threads share; what is done with it is up to them.
pub(crate) struct Start<T>(pub(crate) *mut T);

impl<T> Start<T> {
    /// # Safety
    ///
    /// As for [`pointer::add`].
    pub(crate) unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index) }
    }
}

// SAFETY: it is an address; those who use it see to it that no two threads use one element.
unsafe impl<T: Send> Sync for Start<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Start<T> {}

thread_local! {
    /// Whether this thread is at a part now: parts of parts are not shared out.
    static INSIDE: Cell<bool> = const { Cell::new(false) };

    /// Whether the next sweep of this thread is from end to start.
    static BACKWARDS: Cell<bool> = const { Cell::new(false) };
}

/// A counter in a cache line of its own.
#[repr(align(64))]
struct Line(AtomicUsize);

/// The parts of thread `thread` of so many, of `count` parts.
fn stretch(thread: usize, threads: usize, count: usize) -> Range<usize> {
    let start = |thread: usize| count / threads * thread + count % threads * thread / threads;
    start(thread)..start(thread + 1)
}

/// One operation's parts.
type Part<'a> = &'a (dyn Fn(usize) + Sync);

struct Shared {
    /// Odd while there is work to be had; each operation takes two numbers.
    gate: AtomicUsize,
    /// Helpers numbered below this may join.
    wanted: AtomicUsize,
    /// Helpers that may be at work.
    at_work: AtomicUsize,
    /// Of each thread's stretch the next part.
    next: [Line; MOST],
    count: AtomicUsize,
    /// Whether stretches are gone through from their ends.
    backwards: AtomicBool,
    part: UnsafeCell<Option<Part<'static>>>,
    panicked: AtomicBool,
}

// SAFETY: `part` is written only while the gate is shut and no helper is at work, and read only by helpers that found the
// gate open after they had declared themselves at work.
unsafe impl Sync for Shared {}
// SAFETY: as above; the rest is atomic.
unsafe impl Send for Shared {}

/// The helpers, and what they share with the caller.
struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<(Thread, Arc<AtomicBool>)>,
}

impl Crew {
    fn new() -> Self {
        let shared = Shared {
            gate: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            next: [const { Line(AtomicUsize::new(0)) }; MOST],
            count: AtomicUsize::new(0),
            backwards: AtomicBool::new(false),
            part: UnsafeCell::new(None),
            panicked: AtomicBool::new(false),
        };
        Crew { shared: Arc::new(shared), helpers: Vec::new() }
    }

    /// Starts helpers until there are `wanted`, or the system refuses.
    fn hire(&mut self, wanted: usize) {
        while self.helpers.len() < wanted {
            let (shared, asleep) = (Arc::clone(&self.shared), Arc::new(AtomicBool::new(false)));
            let (number, sleeps) = (self.helpers.len(), Arc::clone(&asleep));
            let name = format!("wengert-{}", number + 1);
            match thread::Builder::new().name(name).spawn(move || help(&shared, number, &sleeps)) {
                Ok(helper) => self.helpers.push((helper.thread().clone(), asleep)),
                Err(error) => {
                    log::warn!("no thread could be started ({error}); going on with {}", self.helpers.len() + 1);
                    set_num_threads(self.helpers.len() + 1);
                    break;
                }
            }
        }
    }

    fn run(&mut self, helpers: usize, count: usize, backwards: bool, part: Part<'_>) {
        let helpers = helpers.min(MOST - 1);
        self.hire(helpers);
        let shared = &*self.shared;
        // SAFETY: the lifetime is forgotten only until this function returns: it shuts the gate and waits for every helper
        // that came in, on the way of a panic too (`Shut`), and a helper uses the reference only inside.
        let eternal: Part<'static> = unsafe { std::mem::transmute::<Part<'_>, Part<'static>>(part) };
        // SAFETY: the gate is shut and nobody is at work: the last operation saw to it.
        unsafe { *shared.part.get() = Some(eternal) };
        for (thread, next) in shared.next[..=helpers].iter().enumerate() {
            next.0.store(stretch(thread, helpers + 1, count).start, Ordering::Relaxed);
        }
        shared.count.store(count, Ordering::Relaxed);
        shared.backwards.store(backwards, Ordering::Relaxed);
        shared.wanted.store(helpers, Ordering::Relaxed);
        let shut = Shut(shared);
        shared.gate.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for (helper, asleep) in &self.helpers[..helpers.min(self.helpers.len())] {
            if asleep.load(Ordering::SeqCst) {
                helper.unpark();
            }
        }
        INSIDE.set(true);
        work(shared, 0, part);
        drop(shut);
        assert!(!shared.panicked.swap(false, Ordering::Relaxed), "a part of an operation panicked on another thread");
    }
}

/// Shuts the gate and waits until all helpers have left.
struct Shut<'a>(&'a Shared);

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        INSIDE.set(false);
        self.0.gate.fetch_add(1, Ordering::SeqCst);
        let mut turns = 0u32;
        while self.0.at_work.load(Ordering::SeqCst) > 0 {
            // A helper that the system has put aside needs this processor, perhaps.
            turns += 1;
            if turns < 2000 { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

/// Does parts until none is left: first its own, then those of the others.
fn work(shared: &Shared, own: usize, part: Part<'_>) {
    let count = shared.count.load(Ordering::Relaxed);
    let threads = shared.wanted.load(Ordering::Relaxed) + 1;
    let backwards = shared.backwards.load(Ordering::Relaxed);
    for other in 0..threads {
        let thread = (own + other) % threads;
        let Range { start, end } = stretch(thread, threads, count);
        loop {
            let number = shared.next[thread].0.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            part(if backwards { start + (end - 1 - number) } else { number });
        }
    }
}

/// The life of a helper.
fn help(shared: &Shared, number: usize, asleep: &AtomicBool) {
    INSIDE.set(true);
    let mut seen = 0;
    loop {
        let gate = wait(shared, seen, asleep);
        seen = gate;
        if number >= shared.wanted.load(Ordering::Relaxed) {
            continue;
        }
        shared.at_work.fetch_add(1, Ordering::SeqCst);
        if shared.gate.load(Ordering::SeqCst) == gate {
            // SAFETY: the gate was open after this helper had declared itself at work, so the caller waits for it, and
            // `part` stays as it is until then.
            let part = unsafe { *shared.part.get() };
            if let Some(part) = part {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(shared, number + 1, part)));
                if done.is_err() {
                    shared.panicked.store(true, Ordering::Relaxed);
                }
            }
        }
        shared.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The number of an open gate other than `seen`: spins for a while, then sleeps.
fn wait(shared: &Shared, seen: usize, asleep: &AtomicBool) -> usize {
    let open = || {
        let gate = shared.gate.load(Ordering::SeqCst);
        (gate % 2 == 1 && gate != seen).then_some(gate)
    };
    let since = Instant::now();
    loop {
        for _ in 0..64 {
            if let Some(gate) = open() {
                return gate;
            }
            std::hint::spin_loop();
        }
        if since.elapsed() > AWAKE {
            break;
        }
    }
    asleep.store(true, Ordering::SeqCst);
    loop {
        if let Some(gate) = open() {
            asleep.store(false, Ordering::SeqCst);
            return gate;
        }
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_part_runs_once() {
        for count in [0, 1, 2, 3, 100, 10_000] {
            let times: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            for_each(count, |number| {
                times[number].fetch_add(1, Ordering::Relaxed);
            });
            assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn many_small_operations_from_many_threads() {
        let total = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        for_each(5, |number| {
                            total.fetch_add(number as u64, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 4 * 2000 * 10);
    }

    #[test]
    fn parts_of_parts_run_too() {
        let total = AtomicUsize::new(0);
        for_each(8, |_| {
            for_each(8, |_| {
                total.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(total.load(Ordering::Relaxed), 64);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_next_operation_works() {
        for bad in [0, 63] {
            let result = std::panic::catch_unwind(|| for_each(64, |number| assert!(number != bad, "part {bad}")));
            assert!(result.is_err());
        }
        every_part_runs_once();
    }

    #[test]
    fn chunks_cover_everything() {
        let mut out = vec![0; 1003];
        for_chunks(&mut out, 10, |number, chunk| chunk.fill(number + 1));
        assert!(out.iter().enumerate().all(|(i, &x)| x == i / 10 + 1));
    }
}
