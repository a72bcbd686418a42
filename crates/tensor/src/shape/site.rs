//! An operation that failed or warns, and the line of code that called it.

use std::fmt;
use std::panic::Location;

/// An operation and the line of the caller's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The operation's name, e.g. `add`.
    pub operation: &'static str,
    /// The caller's file, line and column.
    pub location: &'static Location<'static>,
}

impl Site {
    /// Returns the operation and the line of code that called the surrounding function, which must be `#[track_caller]`.
    #[track_caller]
    pub const fn here(operation: &'static str) -> Self {
        Site { operation, location: Location::caller() }
    }
}

/// Writes the line of an error's text that names the line of code and the operation: `--> src/main.rs:3:14, in add`.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--> {}, in {}", self.location, self.operation)
    }
}
