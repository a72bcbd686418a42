//! Shared code of the course that is not its subject: charts and the data. `options.rs` is a link to the code of the package
//! `wengert-options`, so that `own_images`, which links to this folder, needs no unpublished package.

mod chart;
mod digits;
mod moons;
mod options;
mod text;

pub use chart::{Chart, row_svg};
pub use digits::{DIGITS, digits};
pub use moons::{moons, moons_chart};
pub use options::{Options, Result, run};
pub use text::{PLAY, Texts, draw, text};
