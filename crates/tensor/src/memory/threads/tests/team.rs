//! Tests of the protocol between a caller and its helpers, in which the test chooses the order of the actions. The model check in the
//! workspace's tests runs every order with a few preemptions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::super::team::{Caller, Idle, Tasks, Wait};

/// A policy that makes a helper sleep until `leave` is true.
struct SleepUntil<'a> {
    leave: &'a AtomicBool,
    /// The number of calls of `restart`.
    restarts: usize,
}

impl Wait for SleepUntil<'_> {
    fn next(&mut self) -> Idle {
        if self.leave.load(Ordering::Relaxed) { Idle::Leave } else { Idle::Sleep }
    }

    fn restart(&mut self) {
        self.restarts += 1;
    }
}

/// Runs the helper within the caller's first task, so that the caller claims no further task meanwhile.
#[test]
fn a_helper_runs_its_own_tasks_and_then_the_tasks_of_a_late_caller() {
    for (patience, descending) in [(0, false), (1, true), (3, false), (3, true)] {
        let mut caller = Caller::new(2, patience);
        let (team, order) = (Arc::clone(caller.team()), Mutex::new(Vec::new()));
        let task = |number| {
            let is_first = {
                let mut order = order.lock().unwrap();
                order.push(number);
                order.len() == 1
            };
            if is_first {
                let mut wait = SleepUntil { leave: &AtomicBool::new(true), restarts: 0 };
                team.serve(1, &mut wait);
                assert_eq!(wait.restarts, 1);
            }
        };
        let own = caller.run(1, Tasks { count: 6, descending, task: &task }, |_| {}, || {});
        assert_eq!(own, 1);
        let expected = if descending { [2, 5, 4, 3, 1, 0] } else { [0, 3, 4, 5, 1, 2] };
        assert_eq!(order.into_inner().unwrap(), expected);
    }
}

#[test]
fn a_helper_sleeps_until_the_caller_wakes_it() {
    let mut caller = Caller::new(2, 0);
    let (team, leave) = (Arc::clone(caller.team()), AtomicBool::new(false));
    thread::scope(|scope| {
        let helper = scope.spawn(|| team.serve(1, &mut SleepUntil { leave: &leave, restarts: 0 }));
        let is_woken = AtomicBool::new(false);
        while !is_woken.load(Ordering::Relaxed) {
            let wake = |seat| {
                assert_eq!(seat, 1);
                is_woken.store(true, Ordering::Relaxed);
                helper.thread().unpark();
            };
            caller.run(1, Tasks { count: 2, descending: false, task: &|_| {} }, wake, thread::yield_now);
        }
        leave.store(true, Ordering::Relaxed);
        helper.thread().unpark();
    });
}
