//! A panic in an operation under test is that case's failure, not the end of the run.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics' messages for [`caught`] instead of printing them.
pub fn silence() {
    panic::set_hook(Box::new(|info| LAST.set(info.to_string())));
}

/// What `f` returns, or the message with which it panicked.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(f)).map_err(|_| LAST.take())
}
