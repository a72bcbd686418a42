//! The helper threads: how they start, how they wait for tasks, and how they detect a busy machine.
//!
//! A helper without tasks spins for a while, because a sleeping thread takes 10 to 100 µs to wake up, often longer than an operation. While
//! the helper spins, it yields its processor every few microseconds, which costs little on an idle machine. If the system gives the
//! processor back late, the helper shares it with another thread. The helper then sleeps at once and reports the lost time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{cell::Cell, io};

use crate::memory::threads::account::{Account, OperationTimes};
use crate::memory::threads::choice::note_helped;
use crate::memory::threads::count::MAX_THREADS;
use crate::memory::threads::team::{Caller, Idle, Tasks, Wait};

/// The time for which a helper spins before it sleeps. A longer time keeps the helper ready through the serial parts of a training step. A
/// shorter time saves energy.
const SPIN_TIME: Duration = Duration::from_micros(200);

/// The duration of a trial (a test whether a helper has a processor for itself). It is more than two timer ticks of 4 ms (Linux, 250 Hz).
/// At a timer tick the system switches between threads.
pub(super) const TRIAL_TIME: Duration = Duration::from_millis(10);

/// The shortest pause of a spinning thread that counts as a suspension. Interrupts cause shorter pauses, other threads cause longer ones.
const MIN_SUSPENSION: Duration = Duration::from_micros(100);

/// The number of times that a helper tests whether it has tasks before it reads the clock and yields. These tests take 4 µs on AMD Zen 4,
/// and 12 µs on Intel Skylake. During the call that yields, the helper does not see new tasks, so shorter intervals delay operations.
const SPINS_PER_CLOCK_READ: u32 = 256;

/// The number of times that the caller (the thread that runs an operation) tests whether helpers have finished before it reads the clock.
/// These tests take 1 µs on AMD Zen 4.
const CALLER_SPINS_BEFORE_CLOCK_READ: u32 = 64;

/// The largest number of tests that a thread makes in one operation before it takes tasks from the ranges of other threads. Each test asks
/// whether the owner of a range has finished it. All tests together take 5 µs on AMD Zen 4.
const SPINS_BEFORE_STEAL: u32 = 256;

/// The number of times that the caller (the thread that runs an operation) tests whether helpers have finished before it yields its
/// processor. These tests take 40 µs on AMD Zen 4.
const CALLER_SPINS_BEFORE_YIELD: u32 = 2000;

thread_local! {
    /// True on helper threads, and on a calling thread while it runs tasks of the thread pool. An operation within such a task runs only on
    /// the task's thread.
    static IS_INSIDE_TASK: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if the calling thread runs a task of the thread pool.
pub(super) fn is_inside_task() -> bool {
    IS_INSIDE_TASK.get()
}

/// The states of a helper's trial (a test whether it has a processor for itself). The last value is not a state, but the order to end the
/// thread.
const NO_TRIAL: u8 = 0;
const REQUESTED: u8 = 1;
const PASSED: u8 = 2;
const FAILED: u8 = 3;
const EXIT: u8 = 4;

/// The data that a helper and the caller exchange.
struct HelperReport {
    /// The nanoseconds for which the system suspended the helper while it spun without a task. The caller sets this number to 0 after it has
    /// read it. Sleep, trials and pauses below [`MIN_SUSPENSION`] do not count.
    suspended: AtomicU64,
    /// The state of the helper's trial (a test whether it has a processor for itself), or the order to end the thread.
    trial: AtomicU8,
}

/// The caller's handle of a helper thread.
struct Helper {
    thread: Thread,
    report: Arc<HelperReport>,
}

/// A function that starts a thread with a name. It is a parameter of [`ThreadPool::new`], so that a test can refuse to start threads.
type Spawn = fn(String, Box<dyn FnOnce() + Send>) -> io::Result<Thread>;

/// The helpers, the state that they share with the caller, and the account of the time that they save.
pub(super) struct ThreadPool {
    caller: Caller,
    helpers: Vec<Helper>,
    account: Account,
    spawn: Spawn,
    /// True after the system has refused to start a thread. The pool then starts no more threads.
    has_refused: bool,
}

impl ThreadPool {
    /// Returns a pool that starts its helpers when an operation first asks for them.
    pub(super) fn new(spawn: Spawn) -> Self {
        ThreadPool {
            caller: Caller::new(MAX_THREADS, SPINS_BEFORE_STEAL),
            helpers: Vec::new(),
            account: Account::new(),
            spawn,
            has_refused: false,
        }
    }

    /// Starts a thread with the standard library.
    pub(super) fn spawn_thread(name: String, run: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        Ok(thread::Builder::new().name(name).spawn(run)?.thread().clone())
    }

    /// Starts helpers until there are `wanted` helpers, or the system refuses.
    fn start_helpers(&mut self, wanted: usize) {
        while self.helpers.len() < wanted && !self.has_refused {
            let report = Arc::new(HelperReport { suspended: AtomicU64::new(0), trial: AtomicU8::new(NO_TRIAL) });
            let (team, seat) = (Arc::clone(self.caller.team()), self.helpers.len() + 1);
            let mut wait = SpinThenSleep::new(Arc::clone(&report));
            let run = move || {
                IS_INSIDE_TASK.set(true);
                team.serve(seat, &mut wait);
            };
            match (self.spawn)(format!("wengert-{seat}"), Box::new(run)) {
                Ok(thread) => self.helpers.push(Helper { thread, report }),
                Err(error) => {
                    log::warn!("cannot start a thread ({error}); the number of threads is {}", self.helpers.len() + 1);
                    self.has_refused = true;
                }
            }
        }
    }

    /// Runs all tasks on the calling thread and at most `helpers` helpers.
    pub(super) fn run(&mut self, helpers: usize, tasks: Tasks<'_>) {
        let helpers = helpers.min(MAX_THREADS - 1);
        self.start_helpers(helpers);
        let start = Instant::now();
        let helpers = helpers.min(self.update_allowance(start));
        let mut waiting = CallerWait::default();
        IS_INSIDE_TASK.set(true);
        let own_tasks = catch_unwind(AssertUnwindSafe(|| {
            self.caller.run(helpers, tasks, |seat| self.helpers[seat - 1].thread.unpark(), || waiting.spin_once())
        }));
        IS_INSIDE_TASK.set(false);
        match own_tasks {
            Ok(own_tasks) if helpers > 0 => {
                if own_tasks < tasks.count {
                    note_helped();
                }
                self.record_times(helpers, tasks.count, own_tasks, start, waiting.start);
            }
            Ok(_) => self.account.end_operation(Instant::now()),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Returns the number of helpers that the next operation may use. Also begins and ends trials of the other helpers. A trial tests
    /// whether a helper has a processor for itself.
    fn update_allowance(&mut self, now: Instant) -> usize {
        let all = self.helpers.len();
        let allowance = self.account.allowance(all, now);
        let resting = &self.helpers[allowance.helpers..];
        if allowance.begins_trial {
            for helper in resting {
                helper.report.trial.store(REQUESTED, Ordering::Relaxed);
                helper.thread.unpark();
            }
        } else if resting.iter().any(|helper| helper.report.trial.load(Ordering::Relaxed) != NO_TRIAL) {
            let states: Vec<u8> = resting.iter().map(|helper| helper.report.trial.load(Ordering::Relaxed)).collect();
            if !states.contains(&REQUESTED) {
                resting.iter().for_each(|helper| helper.report.trial.store(NO_TRIAL, Ordering::Relaxed));
                self.account.end_trial(states.iter().filter(|&&state| state == PASSED).count(), now);
                return all - self.account.resting_helpers();
            }
        }
        allowance.helpers
    }

    /// Adds the times of an operation to the account of the time that helpers save and cost.
    fn record_times(
        &mut self,
        helpers: usize,
        count: usize,
        own_tasks: usize,
        start: Instant,
        wait_start: Option<Instant>,
    ) {
        let end = Instant::now();
        let work_end = wait_start.unwrap_or(end);
        let mut suspended = 0;
        for helper in &self.helpers[..helpers] {
            if helper.report.suspended.load(Ordering::Relaxed) > 0 {
                suspended += helper.report.suspended.swap(0, Ordering::Relaxed);
            }
        }
        let times = OperationTimes {
            own_time: work_end - start,
            own_tasks,
            helped_tasks: count - own_tasks,
            wait_time: end - work_end,
            suspended_time: Duration::from_nanos(suspended),
        };
        self.account.record(helpers, times, end);
    }
}

impl Drop for ThreadPool {
    /// Tells the helper threads to end. This happens only in tests: the thread pool of a process is never dropped.
    fn drop(&mut self) {
        for helper in &self.helpers {
            helper.report.trial.store(EXIT, Ordering::Relaxed);
            helper.thread.unpark();
        }
    }
}

/// The state of a caller that waits until helpers have finished their claimed tasks.
#[derive(Default)]
struct CallerWait {
    spins: u32,
    /// The time after the first [`CALLER_SPINS_BEFORE_CLOCK_READ`] spins of this wait. It is `None` before.
    start: Option<Instant>,
}

impl CallerWait {
    /// Spins once. From call [`CALLER_SPINS_BEFORE_YIELD`] of a wait on, yields the processor instead, because a suspended helper may need
    /// it.
    fn spin_once(&mut self) {
        self.spins = self.spins.saturating_add(1);
        if self.spins == CALLER_SPINS_BEFORE_CLOCK_READ {
            self.start = Some(Instant::now());
        }
        if self.spins < CALLER_SPINS_BEFORE_YIELD { std::hint::spin_loop() } else { thread::yield_now() }
    }
}

/// The state of a helper that waits for tasks: it first spins, and after a while sleeps.
struct SpinThenSleep {
    report: Arc<HelperReport>,
    spins: u32,
    /// The time when this wait began.
    start: Instant,
    /// The time when this thread last read the clock in this wait.
    last_clock_read: Instant,
}

impl SpinThenSleep {
    fn new(report: Arc<HelperReport>) -> Self {
        let now = Instant::now();
        SpinThenSleep { report, spins: 0, start: now, last_clock_read: now }
    }

    /// Yields the processor once and returns how long this thread was suspended since it last read the clock. A pause shorter than
    /// [`MIN_SUSPENSION`] counts as 0.
    fn pause(&mut self) -> Duration {
        thread::yield_now();
        let now = Instant::now();
        let gap = now - std::mem::replace(&mut self.last_clock_read, now);
        if gap < MIN_SUSPENSION { Duration::ZERO } else { gap }
    }

    /// Spins for the duration of a trial, or until the trial fails. Reports whether this thread had a processor for itself: see [`passes`].
    fn run_trial(&mut self) {
        self.restart();
        let mut suspended = Duration::ZERO;
        while self.last_clock_read - self.start < TRIAL_TIME && passes(suspended) {
            (0..SPINS_PER_CLOCK_READ).for_each(|_| std::hint::spin_loop());
            suspended += self.pause();
        }
        let result = if passes(suspended) { PASSED } else { FAILED };
        // This exchange fails if the helper received the order to end during the trial.
        let _ = self.report.trial.compare_exchange(REQUESTED, result, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns true if a thread that was suspended for `suspended_time` during a trial counts as a thread with a processor for itself.
fn passes(suspended_time: Duration) -> bool {
    suspended_time < TRIAL_TIME / 4
}

impl Wait for SpinThenSleep {
    fn next(&mut self) -> Idle {
        self.spins = self.spins.wrapping_add(1);
        if !self.spins.is_multiple_of(SPINS_PER_CLOCK_READ) {
            std::hint::spin_loop();
            return Idle::Spin;
        }
        match self.report.trial.load(Ordering::Relaxed) {
            REQUESTED => {
                self.run_trial();
                return Idle::Sleep;
            }
            EXIT => return Idle::Leave,
            _ => {}
        }
        let suspended = self.pause();
        if !suspended.is_zero() {
            self.report.suspended.fetch_add(suspended.as_nanos() as u64, Ordering::Relaxed);
            return Idle::Sleep;
        }
        if self.last_clock_read - self.start > SPIN_TIME { Idle::Sleep } else { Idle::Spin }
    }

    fn restart(&mut self) {
        self.last_clock_read = Instant::now();
        self.start = self.last_clock_read;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Runs `count` tasks, and checks that each one runs once.
    fn check(pool: &mut ThreadPool, helpers: usize, count: usize) {
        let times: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let task = |number: usize| {
            times[number].fetch_add(1, Ordering::Relaxed);
        };
        pool.run(helpers, Tasks { count, descending: count % 2 == 1, task: &task });
        assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_task_runs_once_while_helpers_sleep_spin_and_rest() {
        let mut pool = ThreadPool::new(ThreadPool::spawn_thread);
        for round in 0..200 {
            for count in [0, 1, 2, 3, 100] {
                check(&mut pool, round % 4, count);
            }
            if round % 50 == 0 {
                thread::sleep(2 * SPIN_TIME);
            }
        }
    }

    #[test]
    fn without_helpers_everything_runs_on_the_callers_thread() {
        let mut pool = ThreadPool::new(|_, _| Err(io::ErrorKind::OutOfMemory.into()));
        for count in [1, 2, 3, 100] {
            check(&mut pool, 3, count);
        }
        assert!(pool.helpers.is_empty() && pool.has_refused);
    }

    #[test]
    fn the_caller_does_not_wait_for_a_helper_that_has_not_started() {
        // This spawn function starts no thread. It returns the test's own thread as the helper.
        let mut pool = ThreadPool::new(|_, _| Ok(thread::current()));
        check(&mut pool, 3, 100);
        assert_eq!(pool.helpers.len(), 3);
    }

    #[test]
    fn a_passed_trial_lets_a_helper_work_again() {
        let mut pool = ThreadPool::new(ThreadPool::spawn_thread);
        check(&mut pool, 1, 2);
        let late = OperationTimes {
            own_time: Duration::ZERO,
            own_tasks: 1,
            helped_tasks: 1,
            wait_time: Duration::from_secs(1),
            suspended_time: Duration::ZERO,
        };
        pool.account.record(1, late, Instant::now());
        assert_eq!(pool.update_allowance(Instant::now()), 0);
        // Begins the helper's trial (a test whether it has a processor for itself). The helper reports a result on a busy machine too.
        let later = Instant::now() + Duration::from_secs(5);
        assert_eq!(pool.update_allowance(later), 0);
        let report = Arc::clone(&pool.helpers[0].report);
        while report.trial.load(Ordering::Relaxed) == REQUESTED {
            thread::yield_now();
        }
        let expected = usize::from(report.trial.load(Ordering::Relaxed) == PASSED);
        assert_eq!(pool.update_allowance(later), expected);
        check(&mut pool, 1, 100);
    }

    #[test]
    fn a_dropped_pool_ends_its_helpers() {
        let mut pool = ThreadPool::new(ThreadPool::spawn_thread);
        check(&mut pool, 2, 100);
        let team = Arc::downgrade(pool.caller.team());
        drop(pool);
        while team.upgrade().is_some() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_pool_has_a_seat_for_each_helper() {
        let mut pool = ThreadPool::new(|_, _| Ok(thread::current()));
        check(&mut pool, usize::MAX, 3);
        assert_eq!(pool.helpers.len(), MAX_THREADS - 1);
    }

    #[test]
    fn a_long_wait_reads_the_clock_once() {
        let mut waiting = CallerWait::default();
        (1..CALLER_SPINS_BEFORE_CLOCK_READ).for_each(|_| waiting.spin_once());
        assert!(waiting.start.is_none());
        waiting.spin_once();
        let since = waiting.start;
        assert!(since.is_some());
        (0..CALLER_SPINS_BEFORE_YIELD).for_each(|_| waiting.spin_once());
        assert_eq!(waiting.start, since);
    }

    /// Returns a pool with one helper that has not started.
    fn pool_with_an_absent_helper() -> ThreadPool {
        let mut pool = ThreadPool::new(|_, _| Ok(thread::current()));
        check(&mut pool, 1, 2);
        pool
    }

    #[test]
    fn the_times_of_an_operation_reach_the_account() {
        const MS: Duration = Duration::from_millis(1);
        // The caller ran two of four tasks in 8 ms and waited for 20 ms, so the helper saved 8 ms and cost 20 ms.
        let mut pool = pool_with_an_absent_helper();
        let start = Instant::now().checked_sub(28 * MS).expect("the clock is old");
        pool.record_times(1, 4, 2, start, Some(start + 8 * MS));
        assert_eq!(pool.account.resting_helpers(), 1);
        // The helper saved more time than the caller waited.
        let mut pool = pool_with_an_absent_helper();
        pool.record_times(1, 4, 2, start, Some(Instant::now()));
        assert_eq!(pool.account.resting_helpers(), 0);
        // The helper saved almost no time, and the system suspended it for a second.
        let mut pool = pool_with_an_absent_helper();
        pool.helpers[0].report.suspended.store(1_000_000_000, Ordering::Relaxed);
        pool.record_times(1, 4, 2, Instant::now(), None);
        assert_eq!(pool.account.resting_helpers(), 1);
        assert_eq!(pool.helpers[0].report.suspended.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_helper_that_keeps_the_caller_waiting_rests() {
        let mut pool = ThreadPool::new(ThreadPool::spawn_thread);
        let helped = AtomicUsize::new(0);
        let task = |_| {
            if thread::current().name().is_some_and(|name| name.starts_with("wengert-")) {
                helped.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(200));
            } else {
                let since = Instant::now();
                while helped.load(Ordering::SeqCst) == 0 && since.elapsed() < Duration::from_secs(10) {
                    thread::yield_now();
                }
            }
        };
        pool.run(1, Tasks { count: 2, descending: false, task: &task });
        assert_eq!((helped.into_inner(), pool.account.resting_helpers()), (1, 1));
    }

    #[test]
    fn the_result_of_a_trial_decides_whether_a_helper_works() {
        for (state, expected) in [(PASSED, 1), (FAILED, 0), (REQUESTED, 0)] {
            let mut pool = pool_with_an_absent_helper();
            let start = Instant::now().checked_sub(Duration::from_secs(1)).expect("the clock is old");
            pool.record_times(1, 2, 1, start, Some(start));
            let later = Instant::now() + Duration::from_secs(5);
            assert_eq!((pool.account.resting_helpers(), pool.update_allowance(later)), (1, 0));
            let report = Arc::clone(&pool.helpers[0].report);
            assert_eq!(report.trial.load(Ordering::Relaxed), REQUESTED);
            report.trial.store(state, Ordering::Relaxed);
            assert_eq!(pool.update_allowance(later), expected);
            let left = if state == REQUESTED { REQUESTED } else { NO_TRIAL };
            assert_eq!(report.trial.load(Ordering::Relaxed), left);
        }
    }

    #[test]
    fn long_pauses_are_suspensions_and_a_passed_trial_is_long() {
        let report = Arc::new(HelperReport { suspended: AtomicU64::new(0), trial: AtomicU8::new(REQUESTED) });
        let mut wait = SpinThenSleep::new(Arc::clone(&report));
        wait.last_clock_read = wait.last_clock_read.checked_sub(Duration::from_secs(1)).expect("the clock is old");
        assert!(wait.pause() >= Duration::from_secs(1));
        assert!((0..10_000).any(|_| wait.pause().is_zero()));
        wait.run_trial();
        let long = wait.last_clock_read - wait.start >= TRIAL_TIME;
        assert!(report.trial.load(Ordering::Relaxed) == FAILED || long);
    }

    #[test]
    fn a_trial_fails_after_a_quarter_of_its_duration() {
        let quarter = Duration::from_micros(2500);
        assert!(passes(Duration::ZERO) && passes(quarter - Duration::from_nanos(1)) && !passes(quarter));
    }

    #[test]
    fn a_helper_spins_before_it_reads_the_clock_and_sleeps_after_a_long_wait() {
        let report = Arc::new(HelperReport { suspended: AtomicU64::new(0), trial: AtomicU8::new(NO_TRIAL) });
        let mut wait = SpinThenSleep::new(Arc::clone(&report));
        let start = wait.last_clock_read;
        assert!((1..SPINS_PER_CLOCK_READ).all(|_| matches!(wait.next(), Idle::Spin)) && wait.last_clock_read == start);
        // The helper goes on spinning, unless the system suspended it.
        let goes_on = matches!(wait.next(), Idle::Spin);
        assert!(wait.last_clock_read > start);
        assert!(
            goes_on || report.suspended.load(Ordering::Relaxed) > 0 || wait.last_clock_read - wait.start > SPIN_TIME
        );
        wait.start = start.checked_sub(Duration::from_secs(1)).expect("the clock is old");
        assert!((0..SPINS_PER_CLOCK_READ).any(|_| matches!(wait.next(), Idle::Sleep)));
        wait.last_clock_read = wait.start;
        wait.restart();
        assert!(wait.start == wait.last_clock_read && wait.last_clock_read > start);
    }
}
