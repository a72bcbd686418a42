//! Shared code of the examples that is not their subject: command-line options, charts, and the data.

mod chart;
mod digits;
mod moons;
mod options;
mod text;

pub use chart::{Chart, row_svg};
pub use digits::{DIGITS, digits};
pub use moons::{moons, moons_chart};
pub use options::{Options, run};
pub use text::{PLAY, Texts, draw, text};

/// The result of an example; `?` passes any error on.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;
