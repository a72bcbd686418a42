//! Shared code of the course that is not its subject: command-line options, charts, and the digits.

mod chart;
mod digits;
mod options;
mod text;

pub use chart::{Chart, row_svg};
pub use digits::{DIGITS, digits};
pub use options::{Options, run};
pub use text::{PLAY, Texts, draw, text};

/// The result of an example; `?` passes any error on.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;
