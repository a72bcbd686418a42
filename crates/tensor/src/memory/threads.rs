//! The thread pool: distributes the tasks of an operation to waiting threads.
//!
//! The calling thread works too; helpers that are idle for a while sleep. Every thread has a range of tasks of its own and
//! continues with those that others leave when it is done: neighbouring tasks use neighbouring memory, and a core's cache keeps the
//! data of its own tasks from one operation to the next. Because helpers spin before they sleep, an operation starts in 1 µs while
//! they are awake. A general thread pool wakes up through a mutex and a condition variable, which costs 10 to 100 µs, often more than
//! the operation itself.
//!
//! Large tensors are swept from start to end in one operation and from end to start in the next ([`Schedule::Sweep`]), to
//! reuse the tail that the caches still hold.
//!
//! The partition into tasks depends on shapes alone, never on the number of threads, so the bits do not depend on it.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

/// How long a helper spins before it sleeps.
const AWAKE: Duration = Duration::from_micros(200);

/// For larger tensors, too little stays in the caches for the sweep direction to matter, and memory beyond the caches is faster in
/// ascending order.
const CACHED: usize = 8 << 20;

/// Number of threads that operations use; 0 until it is first needed.
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
            let threads =
                threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).min(MAX_THREADS);
            set_first(&THREADS, threads)
        }
        threads => threads,
    }
}

/// Sets the number if it is 0, and returns the current one. A concurrent [`set_num_threads`] wins.
fn set_first(setting: &AtomicUsize, threads: usize) -> usize {
    setting.compare_exchange(0, threads, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|set| set, |_| threads)
}

/// Maximum number of threads.
const MAX_THREADS: usize = 256;

/// Uses `threads` threads for later operations, clamped to 1 ..= 256. Results do not depend on the number, bit for bit. PyTorch:
/// `torch.set_num_threads`.
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MAX_THREADS), Ordering::Relaxed);
}

/// The threads on which tasks run, and the order of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// On the calling thread, in order.
    Serial,
    /// On several threads, each range of tasks in order.
    Parallel,
    /// On several threads; alternates between ascending and descending order for tensors of so many bytes as may be in the caches.
    Sweep { bytes: usize },
}

impl Schedule {
    /// Serial below `least` units of work, otherwise a sweep over `bytes` bytes.
    pub(crate) fn sweep_from(least: usize, work: usize, bytes: usize) -> Self {
        if work < least { Schedule::Serial } else { Schedule::Sweep { bytes } }
    }

    /// Serial below `least` units of work.
    pub(crate) fn parallel_from(least: usize, work: usize) -> Self {
        if work < least { Schedule::Serial } else { Schedule::Parallel }
    }
}

/// Calls `task` once with each of `0 .. count`. If a task calls this again, the inner tasks run on the same thread.
///
/// # Panics
///
/// If a task panics, with its payload, after all threads have finished.
pub(crate) fn run(count: usize, schedule: Schedule, task: impl Fn(usize) + Sync) {
    distribute(count, schedule, &task);
}

/// [`run`], compiled once.
fn distribute(count: usize, schedule: Schedule, task: Task<'_>) {
    let backwards = match schedule {
        Schedule::Sweep { bytes } if bytes <= CACHED => BACKWARDS.replace(!BACKWARDS.get()),
        _ => false,
    };
    let alone = || match backwards {
        true => (0..count).rev().for_each(task),
        false => (0..count).for_each(task),
    };
    let threads = num_threads().min(count);
    if threads < 2 || matches!(schedule, Schedule::Serial) || INSIDE.get() {
        return alone();
    }
    static POOL: OnceLock<Mutex<ThreadPool>> = OnceLock::new();
    let pool = match POOL.get_or_init(|| Mutex::new(ThreadPool::new())).try_lock() {
        Ok(pool) => Some(pool),
        // A task has panicked before; the pool was left in a valid state.
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        // The pool is in use by another thread of the program: run on the calling thread.
        Err(TryLockError::WouldBlock) => None,
    };
    match pool {
        Some(mut pool) => pool.run(threads - 1, count, backwards, task),
        None => alone(),
    }
}

thread_local! {
    /// Whether this thread is running a task; nested tasks are not distributed.
    static INSIDE: Cell<bool> = const { Cell::new(false) };

    /// Whether this thread's next sweep is in descending order.
    static BACKWARDS: Cell<bool> = const { Cell::new(false) };
}

/// A counter in a cache line of its own.
#[repr(align(64))]
struct Counter(AtomicUsize);

/// The tasks that belong to thread `thread` of `threads`.
fn range(thread: usize, threads: usize, count: usize) -> Range<usize> {
    let start = |thread: usize| count / threads * thread + count % threads * thread / threads;
    start(thread)..start(thread + 1)
}

/// The starts of nearly equal ranges of `0 .. count`, one for each thread, none shorter than `least`.
pub(crate) fn even_starts(count: usize, least: usize) -> SmallVec<[usize; 16]> {
    let threads = num_threads().min(count / least.max(1)).max(1);
    (0..threads).map(|thread| range(thread, threads, count).start).collect()
}

/// The function that runs each task by number.
type Task<'a> = &'a (dyn Fn(usize) + Sync);

struct PoolState {
    /// Odd while tasks of an operation may be taken; each operation uses two epochs.
    epoch: AtomicUsize,
    /// Helpers with a lower number may join.
    wanted: AtomicUsize,
    /// Number of helpers that may be running tasks.
    at_work: AtomicUsize,
    /// The next task of each thread's range.
    next: [Counter; MAX_THREADS],
    count: AtomicUsize,
    /// Whether ranges are processed in descending order.
    backwards: AtomicBool,
    /// The operation's `Task`, on the caller's stack.
    task: AtomicPtr<()>,
    /// The payload of the first helper that panicked.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The helpers and the state that they share with the caller.
struct ThreadPool {
    shared: Arc<PoolState>,
    helpers: Vec<(Thread, Arc<AtomicBool>)>,
}

impl ThreadPool {
    fn new() -> Self {
        let shared = PoolState {
            epoch: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            next: [const { Counter(AtomicUsize::new(0)) }; MAX_THREADS],
            count: AtomicUsize::new(0),
            backwards: AtomicBool::new(false),
            task: AtomicPtr::new(std::ptr::null_mut()),
            panic: Mutex::new(None),
        };
        ThreadPool { shared: Arc::new(shared), helpers: Vec::new() }
    }

    /// Spawns helpers until there are `wanted`, or the system refuses.
    fn spawn(&mut self, wanted: usize) {
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

    fn run(&mut self, helpers: usize, count: usize, backwards: bool, task: Task<'_>) {
        let helpers = helpers.min(MAX_THREADS - 1);
        self.spawn(helpers);
        let shared = &*self.shared;
        for (thread, next) in shared.next[..=helpers].iter().enumerate() {
            next.0.store(range(thread, helpers + 1, count).start, Ordering::Relaxed);
        }
        shared.task.store((&raw const task).cast_mut().cast(), Ordering::Relaxed);
        shared.count.store(count, Ordering::Relaxed);
        shared.backwards.store(backwards, Ordering::Relaxed);
        shared.wanted.store(helpers, Ordering::Relaxed);
        // This function must not return before all helpers are done: `task` is on its stack.
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for (helper, asleep) in &self.helpers[..helpers.min(self.helpers.len())] {
            if asleep.load(Ordering::SeqCst) {
                helper.unpark();
            }
        }
        INSIDE.set(true);
        let own = catch_unwind(AssertUnwindSafe(|| work(shared, 0, task)));
        INSIDE.set(false);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        let mut turns = 0u32;
        while shared.at_work.load(Ordering::SeqCst) > 0 {
            // A helper that the system has suspended may need this processor.
            turns += 1;
            if turns < 2000 { std::hint::spin_loop() } else { thread::yield_now() }
        }
        let helpers = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (own, helpers) {
            (Ok(()), None) => {}
            (Ok(()), Some(payload)) => resume_unwind(payload),
            (Err(payload), other) => {
                // Dropping a payload may panic too.
                std::mem::forget(other);
                resume_unwind(payload)
            }
        }
    }
}

/// How often a thread that has no tasks left looks whether another finishes its own, before it takes them: a few microseconds in all.
/// A task that was taken leaves its data in the wrong cache, so that its own thread is late the next time too, and loses it again.
const PATIENCE: u32 = 256;

/// Runs tasks until none is left: first the thread's own, then those that others leave.
fn work(shared: &PoolState, own: usize, task: Task<'_>) {
    let count = shared.count.load(Ordering::Relaxed);
    let threads = shared.wanted.load(Ordering::Relaxed) + 1;
    let backwards = shared.backwards.load(Ordering::Relaxed);
    let mut patience = PATIENCE;
    for other in 0..threads {
        let thread = (own + other) % threads;
        let (Range { start, end }, next) = (range(thread, threads, count), &shared.next[thread].0);
        while other > 0 && patience > 0 && next.load(Ordering::Relaxed) < end {
            patience -= 1;
            std::hint::spin_loop();
        }
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            task(if backwards { start + (end - 1 - number) } else { number });
        }
    }
}

/// The loop of a helper thread.
fn help(shared: &PoolState, number: usize, asleep: &AtomicBool) {
    INSIDE.set(true);
    let mut seen = 0;
    loop {
        let epoch = wait(shared, seen, asleep);
        seen = epoch;
        if number >= shared.wanted.load(Ordering::Relaxed) {
            continue;
        }
        shared.at_work.fetch_add(1, Ordering::SeqCst);
        if shared.epoch.load(Ordering::SeqCst) == epoch {
            // SAFETY: the epoch was still open after this helper had declared itself at work, so `ThreadPool::run`, on whose
            // stack the `Task` lies, waits until `at_work` is lowered below, and changes `task` only afterwards.
            let task = unsafe { *shared.task.load(Ordering::Relaxed).cast::<Task<'_>>() };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(shared, number + 1, task))) {
                let mut first = shared.panic.lock().unwrap_or_else(PoisonError::into_inner);
                // Dropping a payload may panic too.
                if first.is_none() { *first = Some(payload) } else { std::mem::forget(payload) }
            }
        }
        shared.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for an open epoch other than `seen`: spins for a while, then sleeps.
fn wait(shared: &PoolState, seen: usize, asleep: &AtomicBool) -> usize {
    let open = || {
        let epoch = shared.epoch.load(Ordering::SeqCst);
        (epoch % 2 == 1 && epoch != seen).then_some(epoch)
    };
    let since = Instant::now();
    loop {
        for _ in 0..64 {
            if let Some(epoch) = open() {
                return epoch;
            }
            std::hint::spin_loop();
        }
        if since.elapsed() > AWAKE {
            break;
        }
    }
    asleep.store(true, Ordering::SeqCst);
    loop {
        if let Some(epoch) = open() {
            asleep.store(false, Ordering::SeqCst);
            return epoch;
        }
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn for_each(count: usize, task: impl Fn(usize) + Sync) {
        run(count, Schedule::Parallel, task);
    }

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
    fn tasks_of_tasks_run_too() {
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

    /// Runs `task` until caller and helper have both panicked in one operation, or the attempts are used up.
    fn panics_of_all_threads(payload: fn() -> Box<dyn Any + Send>) -> Box<dyn Any + Send> {
        let arrived = AtomicUsize::new(0);
        let result = catch_unwind(|| {
            for_each(2, |_| {
                arrived.fetch_add(1, Ordering::SeqCst);
                // Both tasks run on different threads, unless another test uses the pool.
                let since = Instant::now();
                while arrived.load(Ordering::SeqCst) < 2 && since.elapsed() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
                resume_unwind(payload());
            });
        });
        result.expect_err("both tasks panic")
    }

    #[test]
    fn panics_of_caller_and_helper_leave_nothing_behind() {
        for _ in 0..50 {
            let payload = panics_of_all_threads(|| Box::new("what the task said"));
            assert_eq!(payload.downcast_ref::<&str>(), Some(&"what the task said"));
            every_part_runs_once();
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_does_not_block() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        for _ in 0..20 {
            let payload = panics_of_all_threads(|| Box::new(Bad));
            assert!(payload.is::<Bad>());
            std::mem::forget(payload);
        }
        every_part_runs_once();
    }

    #[test]
    fn a_number_that_was_set_stays() {
        let setting = AtomicUsize::new(0);
        assert_eq!((set_first(&setting, 4), set_first(&setting, 5)), (4, 4));
    }
}
