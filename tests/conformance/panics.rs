//! A panic in a tested operation is a failure of its case and does not end the run.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Stores the messages of panics for [`caught`] instead of printing them.
pub fn silence() {
    panic::set_hook(Box::new(|info| LAST.set(info.to_string())));
}

/// Returns the result of `f`, or the message of its panic.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(f)).map_err(|_| LAST.take())
}
