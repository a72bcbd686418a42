//! Trains the page's network without a browser, to compare time and result. Prints the time of a step, and writes a checkpoint after 450
//! steps with the seed 0. With `WENGERT_SIMD=portable`, the checkpoint has the same bits as in the browser. Run it in `examples/browser`:
//!
//! ```text
//! WENGERT_SIMD=portable cargo run --release --example native -- OUT.safetensors
//! ```

use std::io::Read as _;
use std::time::Instant;

use wengert_browser::trainer::{Result, Trainer};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let mut table = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("../../data/digits.csv.gz")[..]).read_to_string(&mut table)?;
    let mut trainer = Trainer::new(&table, 0)?;
    let start = Instant::now();
    for _ in 0..450 {
        trainer.step()?;
    }
    println!("{:.3} ms per step", start.elapsed().as_secs_f64() * 1000.0 / 450.0);
    std::fs::write(path, trainer.save()?)?;
    Ok(())
}
