//! The helper threads: how they start, how they wait for tasks, and how they detect a busy machine.
//!
//! A helper without tasks spins for a while, because a sleeping thread takes 10 to 100 µs to wake up, often longer than an operation. While
//! the helper spins, it yields its processor every few microseconds, which costs little on an idle machine. If the system gives the processor
//! back late, the helper shares it with another thread. The helper then sleeps at once and reports the lost time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{cell::Cell, io};

use crate::memory::threads::account::{Account, Spent};
use crate::memory::threads::choice::note_helped;
use crate::memory::threads::count::MAX_THREADS;
use crate::memory::threads::team::{Caller, Idle, Tasks, Wait};

/// The time for which a helper spins before it sleeps. A longer time keeps the helper ready through the serial parts of a training step. A
/// shorter time saves energy.
const AWAKE: Duration = Duration::from_micros(200);

/// The duration of a trial (a test whether a helper has a processor for itself). It is more than two timer ticks of 4 ms (Linux, 250 Hz).
/// At a timer tick the system switches between threads.
pub(super) const TRIAL: Duration = Duration::from_millis(10);

/// The shortest pause of a spinning thread that counts as a suspension. Interrupts cause shorter pauses, other threads cause longer ones.
const SUSPENSION: Duration = Duration::from_micros(100);

/// The number of times that a helper tests whether it has tasks before it reads the clock and yields. These tests take 4 µs on AMD Zen 4,
/// and 12 µs on Intel Skylake. During the call that yields, the helper does not see new tasks, so shorter intervals delay operations.
const SPINS: u32 = 256;

/// The number of times that the caller (the thread that runs an operation) tests whether helpers have finished before it reads the clock.
/// These tests take 1 µs on AMD Zen 4.
const SHORT_WAIT: u32 = 64;

/// The number of tests before a thread takes tasks from a range that belongs to another thread. Each test asks whether the owner has
/// finished the range. All tests together take 5 µs on AMD Zen 4.
const PATIENCE: u32 = 256;

/// The number of times that the caller (the thread that runs an operation) tests whether helpers have finished before it yields its
/// processor. These tests take 40 µs on AMD Zen 4.
const CALLER_SPINS: u32 = 2000;

thread_local! {
    /// True on helper threads, and on a calling thread while it runs tasks of the thread pool. An operation within such a task runs only on
    /// the task's thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if the calling thread runs a task of the thread pool.
pub(super) fn inside_task() -> bool {
    INSIDE.get()
}

/// The states of a helper's trial (a test whether it has a processor for itself). The last value is not a state, but the order to end the
/// thread.
const NO_TRIAL: u8 = 0;
const REQUESTED: u8 = 1;
const PASSED: u8 = 2;
const FAILED: u8 = 3;
const LEAVE: u8 = 4;

/// The data that a helper reports to the caller.
struct Report {
    /// The nanoseconds for which the system suspended the helper while it spun without a task. Time in which the helper sleeps does not
    /// count.
    suspended: AtomicU64,
    /// The state of the helper's trial (a test whether it has a processor for itself), or the order to end the thread.
    trial: AtomicU8,
}

/// The caller's handle of a helper thread.
struct Helper {
    thread: Thread,
    report: Arc<Report>,
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
    refused: bool,
}

impl ThreadPool {
    /// Returns a pool that starts its helpers when an operation first asks for them.
    pub(super) fn new(spawn: Spawn) -> Self {
        ThreadPool {
            caller: Caller::new(MAX_THREADS, PATIENCE),
            helpers: Vec::new(),
            account: Account::new(),
            spawn,
            refused: false,
        }
    }

    /// Starts a thread with the standard library.
    pub(super) fn spawn_thread(name: String, run: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
        Ok(thread::Builder::new().name(name).spawn(run)?.thread().clone())
    }

    /// Starts helpers until there are `wanted` helpers, or the system refuses.
    fn start_helpers(&mut self, wanted: usize) {
        while self.helpers.len() < wanted && !self.refused {
            let report = Arc::new(Report { suspended: AtomicU64::new(0), trial: AtomicU8::new(NO_TRIAL) });
            let (team, seat) = (Arc::clone(self.caller.team()), self.helpers.len() + 1);
            let mut wait = SpinThenSleep::new(Arc::clone(&report));
            let run = move || {
                INSIDE.set(true);
                team.serve(seat, &mut wait);
            };
            match (self.spawn)(format!("wengert-{seat}"), Box::new(run)) {
                Ok(thread) => self.helpers.push(Helper { thread, report }),
                Err(error) => {
                    log::warn!("no thread could be started ({error}); going on with {}", self.helpers.len() + 1);
                    self.refused = true;
                }
            }
        }
    }

    /// Runs all tasks on the calling thread and at most `helpers` helpers.
    pub(super) fn run(&mut self, helpers: usize, tasks: Tasks<'_>) {
        let helpers = helpers.min(MAX_THREADS - 1);
        self.start_helpers(helpers);
        let start = Instant::now();
        let helpers = helpers.min(self.allowed(start));
        let mut waiting = Waiting::default();
        INSIDE.set(true);
        let own_tasks = catch_unwind(AssertUnwindSafe(|| {
            self.caller.run(helpers, tasks, |seat| self.helpers[seat - 1].thread.unpark(), || waiting.turn())
        }));
        INSIDE.set(false);
        match own_tasks {
            Ok(own_tasks) if helpers > 0 => {
                if own_tasks < tasks.count {
                    note_helped();
                }
                self.record_times(helpers, tasks.count, own_tasks, start, waiting.since);
            }
            Ok(_) => {}
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Returns the number of helpers that the next operation may use. Also begins and ends trials of the other helpers. A trial tests whether
    /// a helper has a processor for itself.
    fn allowed(&mut self, now: Instant) -> usize {
        let all = self.helpers.len();
        let allowance = self.account.allowance(all, now);
        let resting = &self.helpers[allowance.helpers..];
        if allowance.trial {
            for helper in resting {
                helper.report.trial.store(REQUESTED, Ordering::Relaxed);
                helper.thread.unpark();
            }
        } else if resting.iter().any(|helper| helper.report.trial.load(Ordering::Relaxed) != NO_TRIAL) {
            let states: Vec<u8> = resting.iter().map(|helper| helper.report.trial.load(Ordering::Relaxed)).collect();
            if !states.contains(&REQUESTED) {
                resting.iter().for_each(|helper| helper.report.trial.store(NO_TRIAL, Ordering::Relaxed));
                self.account.end_trial(states.iter().filter(|&&state| state == PASSED).count(), now);
                return all - self.account.resting();
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
        waited_since: Option<Instant>,
    ) {
        let end = Instant::now();
        let own_end = waited_since.unwrap_or(end);
        let mut suspended = 0;
        for helper in &self.helpers[..helpers] {
            if helper.report.suspended.load(Ordering::Relaxed) > 0 {
                suspended += helper.report.suspended.swap(0, Ordering::Relaxed);
            }
        }
        let spent = Spent {
            own: own_end - start,
            own_tasks,
            helped_tasks: count - own_tasks,
            waited: end - own_end,
            suspended: Duration::from_nanos(suspended),
        };
        self.account.enter(helpers, spent, end);
    }
}

impl Drop for ThreadPool {
    /// Tells the helper threads to end. This happens only in tests: the thread pool of a process is never dropped.
    fn drop(&mut self) {
        for helper in &self.helpers {
            helper.report.trial.store(LEAVE, Ordering::Relaxed);
            helper.thread.unpark();
        }
    }
}

/// The state of a caller that waits until helpers have finished their claimed tasks.
#[derive(Default)]
struct Waiting {
    turns: u32,
    /// The time after the first [`SHORT_WAIT`] turns of this wait. It is `None` before.
    since: Option<Instant>,
}

impl Waiting {
    /// Spins once. From turn [`CALLER_SPINS`] on, yields the processor instead, because a suspended helper may need it.
    fn turn(&mut self) {
        self.turns = self.turns.saturating_add(1);
        if self.turns == SHORT_WAIT {
            self.since = Some(Instant::now());
        }
        if self.turns < CALLER_SPINS { std::hint::spin_loop() } else { thread::yield_now() }
    }
}

/// The state of a helper that waits for tasks: it first spins, and after a while sleeps.
struct SpinThenSleep {
    report: Arc<Report>,
    turns: u32,
    /// The time when this wait began.
    since: Instant,
    /// The time when this thread last read the clock in this wait.
    last: Instant,
}

impl SpinThenSleep {
    fn new(report: Arc<Report>) -> Self {
        let now = Instant::now();
        SpinThenSleep { report, turns: 0, since: now, last: now }
    }

    /// Yields the processor once and returns how long this thread was suspended since it last read the clock. A pause shorter than
    /// [`SUSPENSION`] counts as 0.
    fn pause(&mut self) -> Duration {
        thread::yield_now();
        let now = Instant::now();
        let gap = now - std::mem::replace(&mut self.last, now);
        if gap < SUSPENSION { Duration::ZERO } else { gap }
    }

    /// Spins for the duration of a trial, or until the trial fails. Reports whether this thread had a processor for itself: see [`passes`].
    fn trial(&mut self) {
        self.restart();
        let mut suspended = Duration::ZERO;
        while self.last - self.since < TRIAL && passes(suspended) {
            (0..SPINS).for_each(|_| std::hint::spin_loop());
            suspended += self.pause();
        }
        let result = if passes(suspended) { PASSED } else { FAILED };
        // This exchange fails if the helper received the order to end during the trial.
        let _ = self.report.trial.compare_exchange(REQUESTED, result, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns true if a thread that was suspended for the time `suspended` during a trial counts as a thread with a processor for itself.
fn passes(suspended: Duration) -> bool {
    suspended < TRIAL / 4
}

impl Wait for SpinThenSleep {
    fn next(&mut self) -> Idle {
        self.turns = self.turns.wrapping_add(1);
        if !self.turns.is_multiple_of(SPINS) {
            std::hint::spin_loop();
            return Idle::Spin;
        }
        match self.report.trial.load(Ordering::Relaxed) {
            REQUESTED => {
                self.trial();
                return Idle::Sleep;
            }
            LEAVE => return Idle::Leave,
            _ => {}
        }
        let suspended = self.pause();
        if !suspended.is_zero() {
            self.report.suspended.fetch_add(suspended.as_nanos() as u64, Ordering::Relaxed);
            return Idle::Sleep;
        }
        if self.last - self.since > AWAKE { Idle::Sleep } else { Idle::Spin }
    }

    fn restart(&mut self) {
        self.last = Instant::now();
        self.since = self.last;
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
                thread::sleep(2 * AWAKE);
            }
        }
    }

    #[test]
    fn without_helpers_everything_runs_on_the_callers_thread() {
        let mut pool = ThreadPool::new(|_, _| Err(io::ErrorKind::OutOfMemory.into()));
        for count in [1, 2, 3, 100] {
            check(&mut pool, 3, count);
        }
        assert!(pool.helpers.is_empty() && pool.refused);
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
        let late = Spent {
            own: Duration::ZERO,
            own_tasks: 1,
            helped_tasks: 1,
            waited: Duration::from_secs(1),
            suspended: Duration::ZERO,
        };
        pool.account.enter(1, late, Instant::now());
        assert_eq!(pool.allowed(Instant::now()), 0);
        // Begins the helper's trial (a test whether it has a processor for itself). The helper reports a result on a busy machine too.
        let later = Instant::now() + Duration::from_secs(5);
        assert_eq!(pool.allowed(later), 0);
        let report = Arc::clone(&pool.helpers[0].report);
        while report.trial.load(Ordering::Relaxed) == REQUESTED {
            thread::yield_now();
        }
        let expected = usize::from(report.trial.load(Ordering::Relaxed) == PASSED);
        assert_eq!(pool.allowed(later), expected);
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
        let mut waiting = Waiting::default();
        (1..SHORT_WAIT).for_each(|_| waiting.turn());
        assert!(waiting.since.is_none());
        waiting.turn();
        let since = waiting.since;
        assert!(since.is_some());
        (0..CALLER_SPINS).for_each(|_| waiting.turn());
        assert_eq!(waiting.since, since);
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
        assert_eq!(pool.account.resting(), 1);
        // The helper saved more time than the caller waited.
        let mut pool = pool_with_an_absent_helper();
        pool.record_times(1, 4, 2, start, Some(Instant::now()));
        assert_eq!(pool.account.resting(), 0);
        // The helper saved almost no time, and the system suspended it for a second.
        let mut pool = pool_with_an_absent_helper();
        pool.helpers[0].report.suspended.store(1_000_000_000, Ordering::Relaxed);
        pool.record_times(1, 4, 2, Instant::now(), None);
        assert_eq!(pool.account.resting(), 1);
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
        assert_eq!((helped.into_inner(), pool.account.resting()), (1, 1));
    }

    #[test]
    fn the_result_of_a_trial_decides_whether_a_helper_works() {
        for (state, expected) in [(PASSED, 1), (FAILED, 0), (REQUESTED, 0)] {
            let mut pool = pool_with_an_absent_helper();
            let start = Instant::now().checked_sub(Duration::from_secs(1)).expect("the clock is old");
            pool.record_times(1, 2, 1, start, Some(start));
            let later = Instant::now() + Duration::from_secs(5);
            assert_eq!((pool.account.resting(), pool.allowed(later)), (1, 0));
            let report = Arc::clone(&pool.helpers[0].report);
            assert_eq!(report.trial.load(Ordering::Relaxed), REQUESTED);
            report.trial.store(state, Ordering::Relaxed);
            assert_eq!(pool.allowed(later), expected);
            let left = if state == REQUESTED { REQUESTED } else { NO_TRIAL };
            assert_eq!(report.trial.load(Ordering::Relaxed), left);
        }
    }

    #[test]
    fn long_pauses_are_suspensions_and_a_passed_trial_is_long() {
        let report = Arc::new(Report { suspended: AtomicU64::new(0), trial: AtomicU8::new(REQUESTED) });
        let mut wait = SpinThenSleep::new(Arc::clone(&report));
        wait.last = wait.last.checked_sub(Duration::from_secs(1)).expect("the clock is old");
        assert!(wait.pause() >= Duration::from_secs(1));
        assert!((0..10_000).any(|_| wait.pause().is_zero()));
        wait.trial();
        let long = wait.last - wait.since >= TRIAL;
        assert!(report.trial.load(Ordering::Relaxed) == FAILED || long);
    }

    #[test]
    fn a_trial_fails_after_a_quarter_of_its_duration() {
        let quarter = Duration::from_micros(2500);
        assert!(passes(Duration::ZERO) && passes(quarter - Duration::from_nanos(1)) && !passes(quarter));
    }

    #[test]
    fn a_helper_spins_before_it_reads_the_clock_and_sleeps_after_a_long_wait() {
        let report = Arc::new(Report { suspended: AtomicU64::new(0), trial: AtomicU8::new(NO_TRIAL) });
        let mut wait = SpinThenSleep::new(Arc::clone(&report));
        let start = wait.last;
        assert!((1..SPINS).all(|_| matches!(wait.next(), Idle::Spin)) && wait.last == start);
        // The helper goes on spinning, unless the system suspended it.
        let goes_on = matches!(wait.next(), Idle::Spin);
        assert!(wait.last > start);
        assert!(goes_on || report.suspended.load(Ordering::Relaxed) > 0 || wait.last - wait.since > AWAKE);
        wait.since = start.checked_sub(Duration::from_secs(1)).expect("the clock is old");
        assert!((0..SPINS).any(|_| matches!(wait.next(), Idle::Sleep)));
        wait.last = wait.since;
        wait.restart();
        assert!(wait.since == wait.last && wait.last > start);
    }
}
