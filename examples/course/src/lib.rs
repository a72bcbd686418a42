//! Helpers that the programs of the course share: charts, data and options. The example `examples/own_images` links to this
//! folder, and must not depend on unpublished packages. So `options.rs` is a link to the source of `wengert-options`.

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
