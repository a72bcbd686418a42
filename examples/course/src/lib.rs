//! Shared code of the course that is not its subject: charts and the data. The command-line options of all examples are re-exported.

mod chart;
mod digits;
mod moons;
mod text;

pub use chart::{Chart, row_svg};
pub use digits::{DIGITS, digits};
pub use moons::{moons, moons_chart};
pub use text::{PLAY, Texts, draw, text};
pub use wengert_options::{Options, Result, run};
