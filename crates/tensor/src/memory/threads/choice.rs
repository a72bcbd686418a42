//! Chooses between helper threads and the calling thread alone for work that repeats, such as a plan.
//!
//! Helpers do not always make an operation faster. If two cores share no cache, it may take longer to move an operation's data between
//! them than a helper saves. The system may move threads to other cores at any time, so no threshold fits all runs of a program. This file
//! therefore measures: repeated work now and then runs for a *trial* in the other way, and then goes on in the faster way. The results
//! have the same bits in both ways.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The number of runs before the first trial, and between a trial that has changed the choice and the next trial.
const FIRST_PERIOD: u32 = 16;

/// The largest number of runs between two trials. A trial takes at most [`TRIAL_RUNS`] runs, which is less than 1% of this number.
const LONGEST_PERIOD: u32 = 1024;

/// The number of runs of a trial. The first run often takes longer, because the data is in the caches of other cores. So its time only
/// decides whether the trial ends early.
const TRIAL_RUNS: u32 = 4;

/// A trial is compared with this number of runs before it.
const COMPARED_RUNS: u32 = 8;

/// A trial changes the choice if the shortest run of the trial takes less than this fraction of the shortest [compared](COMPARED_RUNS) run.
const MAX_FASTER_RATIO: f64 = 0.95;

/// A trial ends early if the first run of the trial takes more than this multiple of the shortest [compared](COMPARED_RUNS) run.
const MIN_HOPELESS_RATIO: f64 = 1.5;

/// A run that takes at least this time is not recorded, and later runs use helpers. Such a run moves little data between cores in proportion
/// to its time, and a trial would take long.
const LONGEST_RUN: Duration = Duration::from_millis(20);

thread_local! {
    /// True while this thread runs all tasks of its operations alone.
    static RUNS_ALONE: Cell<bool> = const { Cell::new(false) };
    /// The number of operations of this thread that had tasks for several threads.
    static SHARED_OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// The number of operations of this thread in which helpers ran tasks.
    static HELPED_OPERATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts an operation of the calling thread that has tasks for several threads.
pub(super) fn note_shared() {
    SHARED_OPERATIONS.set(SHARED_OPERATIONS.get() + 1);
}

/// Returns true if the calling thread now runs all tasks of its operations alone.
pub(super) fn runs_alone() -> bool {
    RUNS_ALONE.get()
}

/// Counts an operation of the calling thread in which helpers ran tasks.
pub(super) fn note_helped() {
    HELPED_OPERATIONS.set(HELPED_OPERATIONS.get() + 1);
}

/// The choice between helpers and the calling thread alone, for work that repeats.
#[derive(Debug, Default)]
pub(crate) struct ThreadChoice(Cell<State>);

impl ThreadChoice {
    /// Runs `work` with helpers or on the calling thread alone, whichever was faster in earlier runs. A trial runs it in the other way.
    /// Work in which no operation has tasks for several threads is not measured. A run with helpers does not count if no helper ran a task.
    #[inline]
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut state = self.0.get();
        let (shared, helped) = (SHARED_OPERATIONS.get(), HELPED_OPERATIONS.get());
        let start = state.is_shared.then(Instant::now);
        let result = {
            let _reset = RestoreRunsAlone(RUNS_ALONE.replace(RUNS_ALONE.get() || state.is_alone()));
            work()
        };
        let is_shared = SHARED_OPERATIONS.get() != shared;
        if is_shared || state.is_shared {
            match start.map(|start| start.elapsed()) {
                Some(_) if is_shared && !state.is_alone() && HELPED_OPERATIONS.get() == helped => return result,
                Some(time) if is_shared && time < LONGEST_RUN => state.record(time),
                _ => state = State { is_shared, ..State::default() },
            }
            self.0.set(state);
        }
        result
    }
}

/// A guard with the earlier value of [`RUNS_ALONE`]. It restores this value when it is dropped at the end of a run, also after a panic.
struct RestoreRunsAlone(bool);

impl Drop for RestoreRunsAlone {
    fn drop(&mut self) {
        RUNS_ALONE.set(self.0);
    }
}

/// The choice between helpers and the calling thread alone, and the times on which the next choice depends.
#[derive(Clone, Copy, Debug)]
struct State {
    /// True if the last run had operations with tasks for several threads. Only then does the next run read the clock.
    is_shared: bool,
    /// True if the work runs on the calling thread alone, except in a trial.
    prefers_alone: bool,
    /// True if the next run belongs to a trial.
    is_trial: bool,
    /// The number of runs until the trial begins, or until it ends.
    runs_left: u32,
    /// The number of runs between the last trial and the next one.
    period: u32,
    /// The shortest time of the last runs before the trial, and the shortest time of the trial's runs after its first one.
    shortest: [Duration; 2],
}

impl Default for State {
    fn default() -> Self {
        State {
            is_shared: false,
            prefers_alone: false,
            is_trial: false,
            runs_left: FIRST_PERIOD,
            period: FIRST_PERIOD,
            shortest: [Duration::MAX; 2],
        }
    }
}

impl State {
    /// Returns true if the next run uses the calling thread alone.
    fn is_alone(&self) -> bool {
        self.prefers_alone != self.is_trial
    }

    /// Records that a run took the time `time`.
    fn record(&mut self, time: Duration) {
        self.runs_left -= 1;
        let [settled, trial] = &mut self.shortest;
        if !self.is_trial {
            if self.runs_left < COMPARED_RUNS {
                *settled = time.min(*settled);
            }
            if self.runs_left == 0 {
                (self.is_trial, self.runs_left) = (true, TRIAL_RUNS);
            }
        } else if self.runs_left == TRIAL_RUNS - 1 {
            if time > settled.mul_f64(MIN_HOPELESS_RATIO) {
                self.end_trial(false);
            }
        } else {
            *trial = time.min(*trial);
            if self.runs_left == 0 {
                let is_faster = *trial < settled.mul_f64(MAX_FASTER_RATIO);
                self.end_trial(is_faster);
            }
        }
    }

    /// Ends a trial. If `is_faster` is true, later runs use the way of the trial: with helpers or without them.
    fn end_trial(&mut self, is_faster: bool) {
        let period = if is_faster { FIRST_PERIOD } else { (self.period * 2).min(LONGEST_PERIOD) };
        let prefers_alone = self.prefers_alone != is_faster;
        *self = State { is_shared: true, prefers_alone, runs_left: period, period, ..State::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Counts an operation that has tasks for several threads. Returns true if this thread runs it alone.
    fn run_shared_operation() -> bool {
        note_shared();
        runs_alone()
    }

    /// Records the times of `runs` runs. A run with helpers takes `helped` microseconds, and a run without helpers `alone` microseconds.
    /// Returns the number of runs without helpers.
    fn enter(state: &mut State, runs: u32, helped: u64, alone: u64) -> u32 {
        let mut runs_alone = 0;
        for _ in 0..runs {
            runs_alone += u32::from(state.is_alone());
            state.record(Duration::from_micros(if state.is_alone() { alone } else { helped }));
        }
        runs_alone
    }

    #[test]
    fn work_stays_with_helpers_that_save_time() {
        let mut state = State::default();
        // A run of 95 µs alone is not faster than a run of 100 µs with helpers by enough to change the choice.
        for alone in [200, 140, 95] {
            let runs_alone = enter(&mut state, 10_000, 100, alone);
            assert!(!state.prefers_alone && (1..=60).contains(&runs_alone), "{alone}: {runs_alone}");
        }
    }

    #[test]
    fn work_leaves_helpers_that_cost_time_and_returns_when_they_save_time() {
        let mut state = State::default();
        assert_eq!(enter(&mut state, FIRST_PERIOD + TRIAL_RUNS, 100, 90), TRIAL_RUNS);
        assert!(state.prefers_alone && !state.is_trial);
        let runs_alone = enter(&mut state, 10_000, 100, 90);
        assert!(state.prefers_alone && runs_alone > 9900, "{runs_alone}");
        let runs_alone = enter(&mut state, 10_000, 80, 90);
        assert!(!state.prefers_alone && runs_alone < 1200, "{runs_alone}");
    }

    #[test]
    fn a_trial_that_takes_much_longer_ends_after_one_run() {
        let mut state = State::default();
        assert_eq!(enter(&mut state, FIRST_PERIOD + 1, 100, 151), 1);
        assert!(!state.is_trial);
    }

    #[test]
    fn only_shared_work_is_measured() {
        let choice = ThreadChoice::default();
        for _ in 0..100 {
            choice.run(|| ());
        }
        assert!(!choice.0.get().is_shared);
        choice.run(run_shared_operation);
        assert!(choice.0.get().is_shared);
        assert_eq!(choice.0.get().runs_left, FIRST_PERIOD, "the first run is not measured");
        choice.run(run_shared_operation);
        assert_eq!(choice.0.get().runs_left, FIRST_PERIOD, "no helper ran a task");
        choice.run(|| (run_shared_operation(), note_helped()));
        assert_eq!(choice.0.get().runs_left, FIRST_PERIOD - 1);
        choice.run(|| ());
        assert!(!choice.0.get().is_shared);
    }

    #[test]
    fn a_run_alone_ends_with_the_work_also_after_a_panic() {
        let state = State { prefers_alone: true, ..State::default() };
        let choice = ThreadChoice(Cell::new(state));
        assert!(choice.run(run_shared_operation));
        assert!(!run_shared_operation());
        let choice = ThreadChoice(Cell::new(state));
        let panicked = catch_unwind(AssertUnwindSafe(|| choice.run(|| -> () { panic!("in the work") })));
        assert!(panicked.is_err() && !run_shared_operation());
    }

    #[test]
    fn nested_work_stays_alone() {
        let outer = ThreadChoice(Cell::new(State { prefers_alone: true, ..State::default() }));
        let inner = ThreadChoice::default();
        assert!(outer.run(|| inner.run(run_shared_operation)));
    }
}
