//! The system calls that change files and folders. Tests can make these calls fail.

use std::fs::File;
use std::io::{self, Write as _};

/// A system call that changes a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Create,
    #[cfg(test)]
    Write,
    Sync,
    Rename,
    SyncFolder,
    Remove,
}

/// Calls `make`, which makes a system call of the given kind. In a test, the test's plan of failures may make the call fail.
pub(super) fn call<V>(kind: Call, make: impl FnOnce() -> io::Result<V>) -> io::Result<V> {
    #[cfg(test)]
    faults::record_call(kind)?;
    #[cfg(not(test))]
    let _ = kind;
    make()
}

/// Writes all bytes. In a test, the test's plan of failures may make the write fail after half of the bytes. If an earlier call simulated a kill of
/// the process, the write fails without an effect.
pub(super) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    #[cfg(test)]
    faults::record_write(|| file.write_all(&bytes[..bytes.len() / 2]))?;
    file.write_all(bytes)
}

/// Failures of system calls, planned by a test: a disk that is full, or a process that is killed.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::RefCell;
    use std::io;

    use super::Call;

    /// A test's choice of the system calls that fail. The calls of a thread are counted from 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Plan {
        /// No call fails.
        Healthy,
        /// The call with this number fails with this error. If the call is a write, the first half of its bytes is
        /// written.
        Fail(usize, io::ErrorKind),
        /// From the call with this number on, no call has an effect, as if the process had been killed. If that call is
        /// a write, the first half of its bytes is written.
        Kill(usize),
    }

    /// The plan of failures of a thread, and the system calls that the thread has made.
    struct State {
        plan: Plan,
        calls: Vec<Call>,
    }

    thread_local! {
        static STATE: RefCell<State> = const { RefCell::new(State { plan: Plan::Healthy, calls: Vec::new() }) };
    }

    /// Runs `work`, while `plan` decides which system calls of this thread fail. Returns the result of `work`, and the
    /// system calls that `work` made.
    pub(crate) fn with<V>(plan: Plan, work: impl FnOnce() -> V) -> (V, Vec<Call>) {
        STATE.set(State { plan, calls: Vec::new() });
        let value = work();
        (value, STATE.replace(State { plan: Plan::Healthy, calls: Vec::new() }).calls)
    }

    /// Records a system call. Returns an error if the call fails according to the plan.
    pub(in crate::file) fn record_call(call: Call) -> io::Result<()> {
        STATE.with_borrow_mut(|state| {
            state.calls.push(call);
            let count = state.calls.len() - 1;
            match state.plan {
                Plan::Fail(at, kind) if at == count => Err(io::Error::from(kind)),
                Plan::Kill(at) if at <= count => Err(io::Error::other("the process was killed")),
                _ => Ok(()),
            }
        })
    }

    /// Records a write. If the write fails according to the plan, calls `half`, which writes the first half of the bytes, and returns an error. Does
    /// not call `half` if the plan killed the process at an earlier call.
    pub(in crate::file) fn record_write(half: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        record_call(Call::Write).inspect_err(|_| {
            let dead = STATE.with_borrow(|state| matches!(state.plan, Plan::Kill(at) if at < state.calls.len() - 1));
            if !dead {
                half().expect("the test's own disk has space");
            }
        })
    }
}
