//! Threads: the distribution of an operation's tasks to the calling thread and its helpers.
//!
//! Every thread first runs its own range of tasks, and then takes tasks that other threads have not claimed. Neighbouring tasks use
//! neighbouring memory, so a core's cache keeps the data of its own tasks from one operation to the next. Helpers spin for a while before
//! they sleep. While they spin, an operation starts within 1 µs. A general thread pool wakes its threads through a mutex and a condition
//! variable. That takes 10 to 100 µs, often longer than the operation.
//!
//! Successive sweeps ([`Schedule::Sweep`]) over tensors that fit into the caches alternate between ascending and descending order. So the
//! next sweep begins with the elements that are still in the caches.
//!
//! Results have the same bits for any number and timing of threads. Each task writes its own part of the output, and no task adds to
//! another task's sums. A few operations cut their output into more tasks for more threads. They compute each element in the same way for
//! any number of tasks.
//!
//! | file | subject |
//! |---|---|
//! | `team` | the protocol: how tasks are published, claimed and finished |
//! | `helpers` | how helpers start, wait and sleep |
//! | `account` | how many helpers an operation may use on a busy machine |
//! | `choice` | whether repeated work runs faster with helpers or without them |
//! | `count` | the number of threads that operations use, and ranges of work for this number |
//! | `sync` | the synchronization primitives of `team`, which a model check replaces |

mod account;
mod choice;
mod count;
mod helpers;
mod sync;
mod team;

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

pub(crate) use choice::ThreadChoice;
pub(crate) use count::{even_range_starts, max_part_count, range_starts};
pub use count::{num_threads, set_num_threads};

use crate::memory::threads::choice::{note_shared, runs_alone};
use crate::memory::threads::helpers::{ThreadPool, is_inside_task};
use crate::memory::threads::team::{MAX_NUMBERED_TASKS, Task, Tasks};

/// The largest tensor, in bytes, for which successive sweeps ([`Schedule::Sweep`]) alternate their direction. Caches keep too little of a
/// larger tensor, and memory is faster in ascending order.
const MAX_SWEEP_BYTES: usize = 8 << 20;

/// The threads on which tasks run, and the order of the tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// Tasks run on the calling thread in ascending order.
    Serial,
    /// Tasks run on several threads. Each thread runs its range of tasks in ascending order.
    Parallel,
    /// Tasks run on several threads. If `bytes` bytes are few enough to be still in the caches, every second sweep runs its tasks in
    /// descending order.
    Sweep { bytes: usize },
}

impl Schedule {
    /// Returns `Serial` if `work` is less than `least`. Otherwise returns `Parallel`.
    pub(crate) fn parallel_from(least: usize, work: usize) -> Self {
        if work < least { Schedule::Serial } else { Schedule::Parallel }
    }
}

/// Calls `task` once with each index in `0 .. count`. If a task that runs in the thread pool calls this function, the inner tasks run on
/// the task's thread.
///
/// Panics with the payload of a task that panics. If tasks run on several threads, all other tasks run before this function panics.
pub(crate) fn run(count: usize, schedule: Schedule, task: impl Fn(usize) + Sync) {
    distribute(count, schedule, &task);
}

/// Calls `task` once with each part and its index, on several threads if `parallel` is true.
///
/// A part is a value that only one thread at a time may use, such as a part of a buffer that the task writes. If a task that runs in the
/// thread pool calls this function, the inner tasks run on the task's thread.
///
/// # Panics
///
/// If a task panics. The panic has the task's payload.
pub fn each_part<P: Send>(parts: Vec<P>, parallel: bool, task: impl Fn(usize, P) + Sync) {
    if !parallel || parts.len() < 2 {
        return parts.into_iter().enumerate().for_each(|(index, part)| task(index, part));
    }
    let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    run(parts.len(), Schedule::Parallel, |index| {
        let part = parts[index].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(part) = part {
            task(index, part);
        }
    });
}

/// Runs the tasks of [`run`]. This function is not generic, so that it is compiled once.
fn distribute(count: usize, schedule: Schedule, task: Task<'_>) {
    static POOL: OnceLock<Mutex<ThreadPool>> = OnceLock::new();
    let descending = match schedule {
        Schedule::Sweep { bytes } if bytes <= MAX_SWEEP_BYTES => DESCENDING.replace(!DESCENDING.get()),
        _ => false,
    };
    let threads = num_threads().min(count);
    let is_shared =
        threads > 1 && count <= MAX_NUMBERED_TASKS && !matches!(schedule, Schedule::Serial) && !is_inside_task();
    if is_shared {
        note_shared();
    }
    if is_shared && !runs_alone() {
        let pool = match POOL.get_or_init(|| Mutex::new(ThreadPool::new(ThreadPool::spawn_thread))).try_lock() {
            Ok(pool) => Some(pool),
            // A task of an earlier operation panicked. The pool is still in a valid state.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // Another thread of the program uses the pool, so this operation runs on the calling thread.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut pool) = pool {
            return pool.run(threads - 1, Tasks { count, descending, task });
        }
    }
    match descending {
        true => (0..count).rev().for_each(task),
        false => (0..count).for_each(task),
    }
}

thread_local! {
    /// True if this thread's next sweep ([`Schedule::Sweep`]) is in descending order.
    static DESCENDING: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
mod tests {
    mod team;

    use std::any::Any;
    use std::panic::{catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn for_each(count: usize, task: impl Fn(usize) + Sync) {
        run(count, Schedule::Parallel, task);
    }

    #[test]
    fn every_task_runs_once() {
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
            let result = catch_unwind(|| for_each(64, |number| assert!(number != bad, "task {bad}")));
            assert!(result.is_err());
        }
        every_task_runs_once();
    }

    #[test]
    fn every_part_is_handed_out_once() {
        for parallel in [false, true] {
            for count in [0, 1, 2, 100] {
                let mut results = vec![0; count];
                each_part(results.iter_mut().collect(), parallel, |index, result| *result += index + 1);
                assert_eq!(results, (1..=count).collect::<Vec<_>>());
            }
            let result = catch_unwind(|| each_part(vec![1, 2, 3], parallel, |_, part| assert_ne!(part, 2, "part 2")));
            let payload = result.expect_err("one task panics");
            assert!(payload.downcast_ref::<String>().is_some_and(|message| message.contains("part 2")));
        }
    }

    /// Runs two tasks that both panic with the result of `payload`. Returns the payload with which the operation panics.
    fn panics_of_all_threads(payload: fn() -> Box<dyn Any + Send>) -> Box<dyn Any + Send> {
        let arrived = AtomicUsize::new(0);
        let result = catch_unwind(|| {
            for_each(2, |_| {
                arrived.fetch_add(1, Ordering::SeqCst);
                // The two tasks usually run on different threads. If one thread runs both, the first task stops waiting after 20 ms.
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
            every_task_runs_once();
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
        every_task_runs_once();
    }

    #[test]
    fn little_work_is_serial() {
        for (work, serial) in [(99, true), (100, false), (101, false)] {
            assert_eq!(matches!(Schedule::parallel_from(100, work), Schedule::Serial), serial, "{work}");
        }
        assert!(matches!(Schedule::parallel_from(1, 2), Schedule::Parallel));
    }

    /// Returns the order in which this thread runs three tasks. The caller of this function is usually a task of the thread pool. Then the
    /// three tasks run on its thread.
    fn order(schedule: Schedule) -> Vec<usize> {
        let order = Mutex::new(Vec::new());
        run(3, schedule, |number| order.lock().unwrap().push(number));
        order.into_inner().unwrap()
    }

    #[test]
    fn sweeps_over_cached_data_alternate() {
        let orders = Mutex::new(Vec::new());
        let runs = [MAX_SWEEP_BYTES, MAX_SWEEP_BYTES + 1, MAX_SWEEP_BYTES, usize::MAX, 0]
            .map(|bytes| Schedule::Sweep { bytes });
        // Only the task with number 0 records orders, and only if the tasks that it starts surely run on its own thread. This is not so
        // while another test uses the pool. Then no order is recorded, and the loop tries again.
        while orders.lock().unwrap().is_empty() {
            for_each(2, |number| {
                if number == 0 && (is_inside_task() || num_threads() == 1) {
                    DESCENDING.set(false);
                    let more = [Schedule::Parallel, Schedule::Serial].map(order);
                    orders.lock().unwrap().extend(runs.map(order).into_iter().chain(more));
                }
            });
        }
        let (up, down) = (vec![0, 1, 2], vec![2, 1, 0]);
        let expected = [&up, &up, &down, &up, &up, &up, &up].map(Vec::clone);
        assert_eq!(orders.into_inner().unwrap(), expected);
    }

    #[test]
    fn a_thread_knows_whether_it_runs_a_task() {
        assert!(!is_inside_task());
        let (inside, threads) = (AtomicUsize::new(0), num_threads());
        for_each(100, |_| {
            inside.fetch_add(usize::from(is_inside_task()), Ordering::Relaxed);
        });
        assert!(!is_inside_task());
        // If another test uses the pool at this time, the tasks run on this thread, as if there were no pool.
        assert!(threads == 1 || [0, 100].contains(&inside.into_inner()));
    }

    /// Calls `each_part` with `count` parts. Returns true if a part ran as a task of the pool.
    fn is_distributed(count: usize, parallel: bool) -> bool {
        let inside = AtomicUsize::new(0);
        each_part(vec![(); count], parallel, |_, ()| {
            inside.fetch_add(usize::from(is_inside_task()), Ordering::Relaxed);
        });
        inside.into_inner() > 0
    }

    #[test]
    fn several_parallel_parts_are_distributed() {
        // The pool may serve another test at this time, and a busy machine may leave all work to one thread. So each case may take 30 s.
        let pause = || thread::sleep(Duration::from_micros(500));
        for _ in 0..100 {
            pause();
            assert!(!is_distributed(2, false));
            for_each(1, |_| assert!(!is_inside_task(), "one task needs no pool"));
        }
        for count in [2, 3] {
            let distributed = (0..60_000).any(|_| {
                pause();
                is_distributed(count, true)
            });
            assert!(distributed || num_threads() == 1, "{count}");
        }
    }
}
