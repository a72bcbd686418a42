//! Decides how many helpers an operation may use, from the time that helpers saved and cost in earlier operations.
//!
//! On a busy machine the system suspends a helper for milliseconds. If the helper has a task at that time, the operation waits for it.
//! Every operation with helpers adds the time that the helpers saved to an account. The operation subtracts the time that the caller waited
//! for helpers, and the time that helpers were suspended. When the account is overdrawn, a part of the helpers rests, so that operations run
//! on fewer threads. After the rest, a *trial* tests whether each resting helper has a processor for itself. Each rest is twice as long as
//! the one before it, up to one second. The next rest is short again after the account was full while no helper rested, or after a pause
//! without operations.
//!
//! This file does not read the clock, so that its tests need no real time.

use std::time::{Duration, Instant};

/// The largest balance of the account, and its balance at the start, in nanoseconds. A higher limit tolerates more successive suspensions,
/// of about 4 ms each (Linux, 250 Hz). With a lower limit, a single suspension by an interrupt or another virtual machine sends a helper to
/// rest.
const MAX_BALANCE: i64 = 5_000_000;

/// The balance of the account at the start of a rest and after a trial, in nanoseconds. The value is so low that the next suspension sends
/// a helper to rest again.
const BALANCE_AFTER_TRIAL: i64 = 1_000_000;

/// The duration of the first rest, in which operations do not use the helper. A longer rest costs more after a short disturbance. A shorter
/// rest makes the trials at the start of a busy period more frequent.
const SHORTEST_REST: Duration = Duration::from_millis(20);

/// The duration of the longest rest, in which operations do not use the helper. A longer rest makes trials cheaper on a machine that is
/// always busy: a trial takes up to [`TRIAL_TIME`](super::helpers::TRIAL_TIME). With a shorter rest, helpers return earlier when the
/// machine is idle again.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A time without operations after which the next rest is short again, because the machine may be idle by then. With a shorter time, a
/// program that computes in short bursts on a busy machine loses more time. With a longer time, helpers rest longer after a disturbance.
const FORGETTING_PAUSE: Duration = Duration::from_millis(100);

/// The times and the numbers of tasks of one operation, from which the account computes what helpers saved and cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationTimes {
    /// The time in which the caller ran tasks.
    pub(super) own_time: Duration,
    /// The number of tasks that the caller ran.
    pub(super) own_tasks: usize,
    /// The number of tasks that helpers ran.
    pub(super) helped_tasks: usize,
    /// The time that the caller waited for helpers to finish.
    pub(super) wait_time: Duration,
    /// The time that idle helpers were suspended.
    pub(super) suspended_time: Duration,
}

/// The number of helpers that an operation may use, and whether the other helpers begin a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HelperAllowance {
    /// The number of helpers that may work.
    pub(super) helpers: usize,
    /// True if the other helpers now begin a trial, which tests whether each of them has a processor for itself.
    pub(super) begins_trial: bool,
}

/// The account of the time that all helpers together save and cost.
#[derive(Debug)]
pub(super) struct Account {
    /// The balance, in nanoseconds. It begins at [`MAX_BALANCE`], which it never exceeds. It grows by the time that helpers save, and falls
    /// by the time that they cost. It is set to [`BALANCE_AFTER_TRIAL`] at the start of each rest, and at the end of each trial.
    balance: i64,
    /// The number of helpers that rest, which means that operations do not use them.
    resting_helpers: usize,
    next_rest: Duration,
    /// The time at which the current rest ends and a trial (see the top of this file) begins. It is `None` before the first rest, and from
    /// the start of a trial until the next rest.
    rest_end: Option<Instant>,
    /// The time at which the last operation ended. It is `None` before the end of the first operation.
    last_end: Option<Instant>,
}

impl Account {
    pub(super) fn new() -> Self {
        Account { balance: MAX_BALANCE, resting_helpers: 0, next_rest: SHORTEST_REST, rest_end: None, last_end: None }
    }

    /// Returns how many of `all` helpers may work at the time `now`, and whether the other helpers begin a trial.
    ///
    /// If no operation ran in the time of [`FORGETTING_PAUSE`] before `now`, the next rest is short again, and the current rest ends soon.
    pub(super) fn allowance(&mut self, all: usize, now: Instant) -> HelperAllowance {
        self.resting_helpers = self.resting_helpers.min(all);
        if self.last_end.is_some_and(|end| now.saturating_duration_since(end) > FORGETTING_PAUSE) {
            self.next_rest = SHORTEST_REST;
            self.rest_end = self.rest_end.map(|end| end.min(now + SHORTEST_REST));
        }
        let begins_trial = self.resting_helpers > 0 && self.rest_end.is_some_and(|until| now >= until);
        if begins_trial {
            self.rest_end = None;
        }
        HelperAllowance { helpers: all - self.resting_helpers, begins_trial }
    }

    /// Returns the number of helpers that rest, so that operations do not use them.
    pub(super) fn resting_helpers(&self) -> usize {
        self.resting_helpers
    }

    /// Records that an operation ended at `now`.
    pub(super) fn end_operation(&mut self, now: Instant) {
        self.last_end = Some(now);
    }

    /// Records the time that an operation with `helpers` helpers took. The operation ended at `now`.
    pub(super) fn record(&mut self, helpers: usize, times: OperationTimes, now: Instant) {
        self.end_operation(now);
        let saved = match times.own_tasks {
            0 => 0,
            tasks => (nanoseconds(times.own_time) / tasks as i64).saturating_mul(times.helped_tasks as i64),
        };
        let lost = nanoseconds(times.wait_time) + nanoseconds(times.suspended_time);
        self.balance = self.balance.saturating_add(saved).saturating_sub(lost).min(MAX_BALANCE);
        if self.balance == MAX_BALANCE && self.resting_helpers == 0 {
            self.next_rest = SHORTEST_REST;
        }
        if self.balance < 0 && helpers > 0 {
            // Only a quarter of the helpers begins to rest. If only one of many processors is busy, the other helpers can still help.
            self.resting_helpers += helpers.div_ceil(4);
            self.begin_rest(now);
            self.balance = BALANCE_AFTER_TRIAL;
        }
    }

    /// Records the end of a trial at `now`. A trial measures whether helpers that rest on a busy machine would have a processor for
    /// themselves. `passed` is the number of helpers that passed the trial.
    pub(super) fn end_trial(&mut self, passed: usize, now: Instant) {
        self.resting_helpers = self.resting_helpers.saturating_sub(passed);
        self.balance = BALANCE_AFTER_TRIAL;
        if self.resting_helpers > 0 {
            self.begin_rest(now);
        }
    }

    fn begin_rest(&mut self, now: Instant) {
        self.rest_end = Some(now + self.next_rest);
        self.next_rest = (self.next_rest * 2).min(LONGEST_REST);
    }
}

/// Returns the duration in nanoseconds. Durations of more than a day become a day.
fn nanoseconds(duration: Duration) -> i64 {
    duration.as_nanos().min(86_400_000_000_000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns the times of an operation in which the helpers and the caller ran the same number of tasks, and the caller then waited.
    fn half_helped(own_time: Duration, wait_time: Duration) -> OperationTimes {
        OperationTimes { own_time, own_tasks: 4, helped_tasks: 4, wait_time, suspended_time: Duration::ZERO }
    }

    /// Records operations until the only helper begins to rest. Returns the time at the end and the number of operations.
    fn until_rest(account: &mut Account, mut now: Instant, times: OperationTimes) -> (Instant, usize) {
        for number in 1..100 {
            now += times.own_time + times.wait_time;
            account.record(1, times, now);
            if account.resting_helpers() > 0 {
                return (now, number);
            }
        }
        panic!("the helper never rests: {account:?}");
    }

    #[test]
    fn helpers_that_save_time_never_rest() {
        let (mut account, mut now) = (Account::new(), Instant::now());
        for number in 0..10_000 {
            assert_eq!(account.allowance(3, now), HelperAllowance { helpers: 3, begins_trial: false });
            // If the system suspends a helper for 4 ms in one of 1000 operations, the helper does not rest.
            let waited = if number % 1000 == 999 { 4 * MS } else { MS / 1000 };
            account.record(3, half_helped(MS / 50, waited), now);
            now += MS / 50 + waited;
        }
    }

    #[test]
    fn a_helper_that_costs_more_than_it_saves_rests_ever_longer() {
        let (mut account, start) = (Account::new(), Instant::now());
        let (mut now, operations) = until_rest(&mut account, start, half_helped(MS / 10, 4 * MS));
        assert_eq!(operations, 2);
        let mut rest = SHORTEST_REST;
        for _ in 0..10 {
            let end = now + rest;
            while now < end - MS {
                // Operations without helpers.
                now = (now + 50 * MS).min(end - MS);
                assert_eq!(account.allowance(1, now), HelperAllowance { helpers: 0, begins_trial: false });
                account.end_operation(now);
            }
            now = end;
            assert_eq!(account.allowance(1, now), HelperAllowance { helpers: 0, begins_trial: true });
            assert_eq!(
                account.allowance(1, now + MS),
                HelperAllowance { helpers: 0, begins_trial: false },
                "one trial at a time"
            );
            account.end_trial(0, now);
            rest = (rest * 2).min(LONGEST_REST);
        }
        assert_eq!(rest, LONGEST_REST);
    }

    #[test]
    fn a_passed_trial_ends_the_rest_and_success_makes_the_next_one_short() {
        let (mut account, start) = (Account::new(), Instant::now());
        let (now, _) = until_rest(&mut account, start, half_helped(MS / 10, 4 * MS));
        account.end_trial(0, now);
        account.end_operation(now + LONGEST_REST);
        assert!(account.allowance(1, now + LONGEST_REST).begins_trial);
        account.end_trial(1, now);
        assert_eq!(account.allowance(1, now).helpers, 1);
        assert!(account.rest_end.is_none() && account.next_rest > 2 * SHORTEST_REST);
        (0..10).for_each(|_| account.record(1, half_helped(MS, Duration::ZERO), now));
        assert_eq!(account.next_rest, SHORTEST_REST);
    }

    #[test]
    fn after_a_pause_without_operations_the_rest_is_short_again() {
        let (mut account, start) = (Account::new(), Instant::now());
        let (rest_start, _) = until_rest(&mut account, start, half_helped(MS / 10, 4 * MS));
        (0..5).for_each(|_| account.end_trial(0, rest_start));
        let rest_end = rest_start + 32 * SHORTEST_REST;
        let mut now = rest_start;
        for _ in 0..2 {
            // An interval of this length is not a pause.
            now += FORGETTING_PAUSE;
            assert!(!account.allowance(1, now).begins_trial);
            assert_eq!((account.rest_end, account.next_rest), (Some(rest_end), LONGEST_REST));
            // The operation is longer than a pause.
            now += FORGETTING_PAUSE + MS;
            account.end_operation(now);
        }
        now += FORGETTING_PAUSE + MS;
        assert!(!account.allowance(1, now).begins_trial);
        assert_eq!((account.rest_end, account.next_rest), (Some(now + SHORTEST_REST), SHORTEST_REST));
        account.end_operation(now);
        // A rest that has ended begins a trial at once.
        now += FORGETTING_PAUSE + MS;
        assert!(account.allowance(1, now).begins_trial);
    }

    #[test]
    fn suspensions_count_as_losses_and_a_balance_of_zero_is_no_debt() {
        let now = Instant::now();
        let limit = Duration::from_nanos(MAX_BALANCE as u64);
        let times = OperationTimes {
            own_time: MS,
            own_tasks: 1,
            helped_tasks: 0,
            wait_time: limit / 5,
            suspended_time: limit / 5 * 4,
        };
        let mut account = Account::new();
        account.record(1, times, now);
        assert_eq!((account.balance, account.resting_helpers()), (0, 0));
        // An operation without helpers overdraws the account, but no helper begins to rest.
        account.record(0, times, now);
        assert!(account.balance < 0 && account.rest_end.is_none());
        account.record(1, OperationTimes { wait_time: Duration::ZERO, suspended_time: Duration::ZERO, ..times }, now);
        assert_eq!((account.balance, account.resting_helpers()), (BALANCE_AFTER_TRIAL, 1));
    }

    #[test]
    fn of_many_helpers_a_quarter_rests_at_a_time() {
        let (mut account, now) = (Account::new(), Instant::now());
        let late = OperationTimes { own_tasks: 0, ..half_helped(MS, 10 * MS) };
        let mut allowed = Vec::new();
        for _ in 0..4 {
            let helpers = account.allowance(15, now).helpers;
            allowed.push(helpers);
            account.record(helpers, late, now);
        }
        assert_eq!(allowed, [15, 11, 8, 6]);
    }

    #[test]
    fn the_bound_on_the_loss_of_a_busy_machine_holds() {
        // In this test every trial passes, and every helper is then suspended for 4 ms in its first task.
        let (mut account, start) = (Account::new(), Instant::now());
        let (mut now, mut lost) = (start, Duration::ZERO);
        while now - start < 60 * 1000 * MS {
            let allowance = account.allowance(1, now);
            if allowance.begins_trial {
                account.end_trial(1, now);
            } else if allowance.helpers == 1 {
                let times = half_helped(MS / 10, 4 * MS);
                (now, lost) = (now + times.own_time + times.wait_time, lost + times.wait_time);
                account.record(1, times, now);
            } else {
                // An operation without helpers.
                now += MS;
                account.end_operation(now);
            }
        }
        assert!(lost < (now - start) / 100, "{lost:?}");
    }
}
