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

/// Makes a system call. In tests, a plan may make the call fail.
pub(super) fn call<V>(kind: Call, make: impl FnOnce() -> io::Result<V>) -> io::Result<V> {
    #[cfg(test)]
    faults::before(kind)?;
    #[cfg(not(test))]
    let _ = kind;
    make()
}

/// Writes all bytes. In tests, a plan may make the write fail after half of the bytes.
pub(super) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    #[cfg(test)]
    faults::before_write(|| file.write_all(&bytes[..bytes.len() / 2]))?;
    file.write_all(bytes)
}

/// Failures of system calls, planned by a test: a disk that is full, or a process that is killed.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::RefCell;
    use std::io;

    use super::Call;

    /// The calls that a test lets fail. Calls are counted from 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Plan {
        /// No call fails.
        Healthy,
        /// The call with this number fails with this error. A write stops half way.
        Fail(usize, io::ErrorKind),
        /// From this call on, no call has an effect, as after the end of the process. A write stops half way.
        Kill(usize),
    }

    /// The plan of a thread, and the calls that the thread has made.
    struct State {
        plan: Plan,
        calls: Vec<Call>,
    }

    thread_local! {
        static STATE: RefCell<State> = const { RefCell::new(State { plan: Plan::Healthy, calls: Vec::new() }) };
    }

    /// Runs `work` with a plan for the calls of this thread. Returns its result and the calls.
    pub(crate) fn with<V>(plan: Plan, work: impl FnOnce() -> V) -> (V, Vec<Call>) {
        STATE.set(State { plan, calls: Vec::new() });
        let value = work();
        (value, STATE.replace(State { plan: Plan::Healthy, calls: Vec::new() }).calls)
    }

    /// Records a call, and returns its error if it is planned to fail.
    pub(in crate::file) fn before(call: Call) -> io::Result<()> {
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

    /// Counts a write, and returns its error if the plan lets it fail. A write that fails stops half way: `half` writes the first half,
    /// unless the process was killed before.
    pub(in crate::file) fn before_write(half: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        before(Call::Write).inspect_err(|_| {
            let dead = STATE.with_borrow(|state| matches!(state.plan, Plan::Kill(at) if at < state.calls.len() - 1));
            if !dead {
                half().expect("the test's own disk has space");
            }
        })
    }
}
