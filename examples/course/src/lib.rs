//! What the examples of the course share and what is not their subject: options of the command line, charts, and the digits.

mod chart;
mod digits;
mod options;
mod text;

pub use chart::{Chart, row_svg};
pub use digits::{DIGITS, digits};
pub use options::{Options, run};
pub use text::{PLAY, Texts, draw, text};

/// What an example returns: anything may go wrong with a file, and `?` passes it on.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;
