//! A web page that trains a small network on handwritten digits and reads the digits that a visitor draws.
//!
//! | file | subject |
//! |---|---|
//! | `drawing.rs` | a drawing as the 64 numbers that the network reads |
//! | `trainer.rs` | the network, the data and the training; plain Rust, tested without a browser |
//! | `page.rs` | the functions that JavaScript calls; only in builds for WebAssembly |
//!
//! `index.html` and `page.js` are the page. `tools/browser.sh` builds the page and tests it in Node and Chromium.

pub mod drawing;
#[cfg(target_family = "wasm")]
mod page;
pub mod trainer;
