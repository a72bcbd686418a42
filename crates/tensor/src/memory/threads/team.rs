//! The protocol between a caller and its helpers: how tasks are published, claimed and reported as finished.
//!
//! An operation consists of numbered tasks. Every thread has a *seat*, a cache line with the range of its unclaimed tasks. A thread claims
//! one task at a time, first from its own seat, then from the other seats. The caller returns when every task is finished.
//!
//! - A claim is one compare-and-swap on a range. Ranges are empty unless an operation is running. So a helper that arrives late finds empty
//!   ranges and does not call the finished operation's function.
//! - At the end, the caller waits only for claimed tasks. It claims every task that no helper has claimed, so it never waits for a helper
//!   that has not started.
//! - A task that panics counts as finished, and the other tasks still run. The caller panics with the first payload at the end.
//!
//! This file does not start threads and does not decide how long they spin. It imports its synchronization primitives from `sync`. So the
//! model check in the workspace's tests (`threads_protocol`) can compile this file with the primitives of the crate `loom`.
#![allow(unsafe_code)]

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};

use super::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, fence, park, spin_loop};

/// The function that runs a task, given the task's index.
pub(super) type Task<'a> = &'a (dyn Fn(usize) + Sync);

/// The largest number of tasks in one operation. A range of tasks is stored in 64 bits: 32 bits for its start and 32 bits for its end.
pub(super) const MAX_NUMBERED_TASKS: usize = u32::MAX as usize;

/// A value whose cache line contains no other value. The alignment is 128 bytes, because processors fetch cache lines in pairs.
#[repr(align(128))]
struct Padded<T>(T);

/// The unclaimed tasks and the state of one thread. The seat with index 0 belongs to the caller, and the other seats to helpers.
struct Seat {
    /// The range of unclaimed tasks. Its start is in the upper 32 bits, and its end is in the lower 32 bits.
    unclaimed: AtomicU64,
    /// True while the helper's thread may be parked (asleep).
    asleep: AtomicBool,
}

/// The operation whose tasks the threads currently run. Only the calling thread writes these fields. It writes them only while no thread
/// runs a task.
struct Operation {
    /// A pointer to the caller's `Task`, which is a variable of the caller's stack.
    task: AtomicPtr<()>,
    count: AtomicUsize,
    /// The number of threads that share the tasks.
    threads: AtomicUsize,
    /// True if the tasks run in descending order.
    descending: AtomicBool,
}

/// The state shared by a caller and its helpers.
pub(super) struct Team {
    seats: Box<[Padded<Seat>]>,
    operation: Padded<Operation>,
    /// The number of tasks of the current operation, minus the tasks that helpers have finished. The caller's tasks are not subtracted,
    /// because the caller counts them itself.
    unfinished: Padded<AtomicUsize>,
    /// The payload of the first task that panicked.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The largest number of tests that a thread makes in one operation before it takes tasks from the ranges of other threads. Each test
    /// asks whether the owner of a range has finished it.
    patience: u32,
}

/// The tasks of an operation that the caller hands to [`Caller::run`].
#[derive(Clone, Copy)]
pub(super) struct Tasks<'a> {
    pub(super) count: usize,
    /// True if the tasks run in descending order.
    pub(super) descending: bool,
    pub(super) task: Task<'a>,
}

/// The next action of a helper without tasks.
pub(super) enum Idle {
    /// Search for tasks again.
    Spin,
    /// Sleep until the caller wakes the helper.
    Sleep,
    /// Return from [`Team::serve`], so that the thread can end.
    Leave,
}

/// The policy that decides how long a waiting helper spins before it sleeps.
pub(super) trait Wait {
    /// Returns the next action of a helper that has found no task.
    fn next(&mut self) -> Idle;
    /// Starts a new wait, after the helper has run tasks or was woken up.
    fn restart(&mut self);
}

/// Returns the range of tasks that belongs to the thread with index `thread` if `threads` threads share `count` tasks.
pub(super) fn range_of_thread(thread: usize, threads: usize, count: usize) -> Range<usize> {
    let start = |thread: usize| count / threads * thread + count % threads * thread / threads;
    start(thread)..start(thread + 1)
}

/// Packs a range of tasks into the format of [`Seat::unclaimed`].
fn pack(range: Range<usize>) -> u64 {
    (range.start as u64) << 32 | range.end as u64
}

/// Unpacks the range that [`pack`] has packed.
fn unpack(range: u64) -> Range<usize> {
    (range >> 32) as usize..(range & 0xffff_ffff) as usize
}

impl Seat {
    /// Returns the range of the thread's unclaimed tasks.
    fn unclaimed_range(&self) -> Range<usize> {
        unpack(self.unclaimed.load(Ordering::Relaxed))
    }

    /// Claims the first unclaimed task, so that no other thread runs it. Returns the task's number, or `None` if all tasks are claimed.
    fn claim(&self) -> Option<usize> {
        let mut seen = self.unclaimed.load(Ordering::Relaxed);
        loop {
            let Range { start, end } = unpack(seen);
            if start >= end {
                return None;
            }
            // Acquire: this thread sees everything that the caller wrote before it published the claimed task.
            match self.unclaimed.compare_exchange_weak(seen, pack(start + 1..end), Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some(start),
                Err(now) => seen = now,
            }
        }
    }
}

/// The calling side of a team. A team has only one caller, and [`Caller::run`] borrows it mutably. So only one operation runs at a time.
pub(super) struct Caller(Arc<Team>);

impl Caller {
    /// Returns the caller of a new team with up to `seats - 1` helpers.
    pub(super) fn new(seats: usize, patience: u32) -> Self {
        Caller(Arc::new(Team::new(seats, patience)))
    }

    /// Returns the team. Each helper's thread calls [`Team::serve`] on it.
    pub(super) fn team(&self) -> &Arc<Team> {
        &self.0
    }

    /// Runs all tasks on the calling thread and the helpers in seats `1 ..= helpers`. Returns the number of tasks that the caller ran.
    /// Calls `wake` with the index of each sleeping helper's seat. Calls `wait` repeatedly while a helper has not finished a task that it
    /// claimed.
    ///
    /// Panics if there are more than [`MAX_NUMBERED_TASKS`] tasks. If tasks panicked, panics with the payload of the first of them, after
    /// all tasks have finished.
    pub(super) fn run(
        &mut self,
        helpers: usize,
        tasks: Tasks<'_>,
        wake: impl Fn(usize),
        mut wait: impl FnMut(),
    ) -> usize {
        assert!(tasks.count <= MAX_NUMBERED_TASKS, "the number of a task has 32 bits");
        let team = &*self.0;
        team.publish(helpers + 1, &tasks);
        for seat in 1..=helpers {
            if team.seats[seat].0.asleep.load(Ordering::Relaxed) {
                wake(seat);
            }
        }
        let own = team.run_tasks(0);
        // Acquire: after the loop, the caller sees everything that the tasks have written.
        while team.unfinished.0.load(Ordering::Acquire) > own {
            wait();
        }
        let panic = team.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        match panic {
            Some(payload) => resume_unwind(payload),
            None => own,
        }
    }
}

impl Team {
    /// Returns a team of one caller and up to `seats - 1` helpers.
    fn new(seats: usize, patience: u32) -> Self {
        let seat = || Padded(Seat { unclaimed: AtomicU64::new(0), asleep: AtomicBool::new(false) });
        Team {
            seats: (0..seats).map(|_| seat()).collect(),
            operation: Padded(Operation {
                task: AtomicPtr::new(std::ptr::null_mut()),
                count: AtomicUsize::new(0),
                threads: AtomicUsize::new(0),
                descending: AtomicBool::new(false),
            }),
            unfinished: Padded(AtomicUsize::new(0)),
            panic: Mutex::new(None),
            patience,
        }
    }

    /// Publishes the tasks: stores the operation, and the range of each of the first `threads` threads in the thread's seat.
    fn publish(&self, threads: usize, tasks: &Tasks<'_>) {
        let (count, operation) = (tasks.count, &self.operation.0);
        operation.task.store((&raw const tasks.task).cast_mut().cast(), Ordering::Relaxed);
        operation.count.store(count, Ordering::Relaxed);
        operation.threads.store(threads, Ordering::Relaxed);
        operation.descending.store(tasks.descending, Ordering::Relaxed);
        self.unfinished.0.store(count, Ordering::Relaxed);
        for (thread, seat) in self.seats[..threads].iter().enumerate() {
            // Release: a thread that claims a task from this range also sees the fields of the operation.
            seat.0.unclaimed.store(pack(self.range_of(thread)), Ordering::Release);
        }
        // This fence pairs with the fence in `sleep`. Either this thread sees that a helper is asleep and wakes it, or the helper sees its
        // new tasks before it parks.
        fence(Ordering::SeqCst);
    }

    /// Returns the range of tasks that belongs to the thread with index `thread`. The tasks are numbered in the order in which they run.
    ///
    /// In both orders, a thread gets the tasks with the same indices, because its core's cache may still contain their data. A helper that
    /// calls this function while the caller publishes the next operation may get a wrong range. The helper uses the range only to decide
    /// how long it spins.
    fn range_of(&self, thread: usize) -> Range<usize> {
        let operation = &self.operation.0;
        let count = operation.count.load(Ordering::Relaxed);
        let Range { start, end } = range_of_thread(thread, operation.threads.load(Ordering::Relaxed), count);
        if operation.descending.load(Ordering::Relaxed) {
            count.saturating_sub(end)..count.saturating_sub(start)
        } else {
            start..end
        }
    }

    /// Claims and runs tasks until all are claimed, beginning with the tasks of seat `own_seat`. Returns the number of tasks that this
    /// thread ran. A helper reports its tasks as finished. The caller (seat 0) does not, which saves an access to a cache line that helpers
    /// write.
    fn run_tasks(&self, own_seat: usize) -> usize {
        let (mut total, mut patience) = (0, self.patience);
        let threads = self.operation.0.threads.load(Ordering::Relaxed).clamp(1, self.seats.len());
        for step in 0..threads {
            let thread = (own_seat + step) % threads;
            if step > 0 {
                self.wait_before_steal(thread, &mut patience);
            }
            let finished = self.run_tasks_of(&self.seats[thread].0);
            if finished > 0 && own_seat > 0 {
                // Release: the caller sees everything that the finished tasks have written.
                self.unfinished.0.fetch_sub(finished, Ordering::Release);
            }
            total += finished;
        }
        total
    }

    /// Waits while the thread with index `thread` works on its own range of tasks. Tests repeatedly whether that thread has finished the
    /// range, and subtracts 1 from `patience` after each test. Stops waiting when `patience` is 0.
    ///
    /// If a thread takes a task from another thread's range, the task's data moves to the cache of another core. In the next operation, the
    /// owner of the range then waits for this data and is late again. An owner that has not started may be asleep or suspended, so this
    /// function does not wait for it.
    fn wait_before_steal(&self, thread: usize, patience: &mut u32) {
        let first = self.range_of(thread).start;
        while *patience > 0 {
            let left = self.seats[thread].0.unclaimed_range();
            if left.start == first || left.is_empty() {
                break;
            }
            *patience -= 1;
            spin_loop();
        }
    }

    /// Claims and runs tasks of one range until all are claimed. Returns the number of tasks that this thread has finished.
    fn run_tasks_of(&self, seat: &Seat) -> usize {
        let mut finished = 0;
        loop {
            let run = || {
                while let Some(number) = seat.claim() {
                    self.run_task(number);
                    finished += 1;
                }
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(()) => return finished,
                Err(payload) => {
                    finished += 1;
                    self.store_panic(payload);
                }
            }
        }
    }

    /// Runs the claimed task `number`. The tasks are numbered in the order in which they run, so the number is not the index in descending
    /// order.
    fn run_task(&self, number: usize) {
        let operation = &self.operation.0;
        let descending = operation.descending.load(Ordering::Relaxed);
        let number = if descending { operation.count.load(Ordering::Relaxed) - 1 - number } else { number };
        // SAFETY: this thread has claimed a task and not yet reported it as finished. So `Caller::run` has not returned, and the pointer to
        // its argument is valid. `publish` writes the pointer only before the tasks of an operation can be claimed.
        let task = unsafe { *operation.task.load(Ordering::Relaxed).cast::<Task<'_>>() };
        task(number);
    }

    /// Stores the payload of a task's panic, if it is the first panic of the operation.
    fn store_panic(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        // A payload's destructor may panic too, so a second payload is leaked instead of dropped.
        if first.is_none() { *first = Some(payload) } else { std::mem::forget(payload) }
    }

    /// Runs tasks on the thread of the helper in seat `own_seat` until `wait` tells the helper to leave.
    pub(super) fn serve(&self, own_seat: usize, wait: &mut impl Wait) {
        let seat = &self.seats[own_seat].0;
        loop {
            if !seat.unclaimed_range().is_empty() && self.run_tasks(own_seat) > 0 {
                wait.restart();
            }
            match wait.next() {
                Idle::Spin => {}
                Idle::Sleep => {
                    self.sleep(seat);
                    wait.restart();
                }
                Idle::Leave => return,
            }
        }
    }

    /// Parks the helper's thread unless its range has tasks.
    fn sleep(&self, seat: &Seat) {
        seat.asleep.store(true, Ordering::Relaxed);
        // This fence pairs with the fence in `publish`. Either the caller sees `asleep` and wakes this thread, or this thread sees its
        // tasks.
        fence(Ordering::SeqCst);
        if seat.unclaimed_range().is_empty() {
            park();
        }
        seat.asleep.store(false, Ordering::Relaxed);
    }
}
