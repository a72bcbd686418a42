//! Trains a small network to read handwritten digits, and writes a loss curve and checkpoints.
//!
//! ```text
//! cargo run --release --example train_digits
//! ```
//!
//! With `--features progress` before `--example`, a bar shows the batches of each epoch.
//!
//! The same arguments give the same files on one machine, bit for bit, with any number of threads.

use std::io::Write as _;
use std::process::ExitCode;

use wengert::nn::metrics::Accuracy;
use wengert::nn::schedule::PolynomialLR;
use wengert::nn::{AdamW, CrossEntropyLoss, DataLoader, Dataset, Fit, Generator, Normalize, Samples};
use wengert::prelude::*;
use wengert_options::{Options, Result, run};

/// The path of the table; it does not depend on the working directory.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");
const CLASSES: usize = 10;
const HIDDEN: usize = 128;

fn main() -> ExitCode {
    let options = Options::new("train_digits", "Trains a small network to read handwritten digits");
    let data = "Table of comma-separated numbers, one sample in each row, the class (0 to 9) last; may be gzipped \
                [default: the digits of the repository]";
    let options = options.text("data", DIGITS, data);
    let options = options.count("epochs", 40, "Number of passes over the training samples");
    let options = options.positive("lr", 0.003, "Learning rate of the first epoch");
    run(options.flag("resume", "Continue after the last complete epoch in the folder"), train)
}

fn train(options: &Options) -> Result {
    let (epochs, lr, seed): (u64, f64, u64) = (options.get("epochs"), options.get("lr"), options.seed());
    let out = options.folder()?;
    // The seed determines all random numbers: the split, the initial weights, the order of the samples in each epoch.
    let generator = &mut Generator::new(seed);
    let (train, test) =
        Samples::<Tensor>::read_csv(options.get::<String>("data"), CLASSES)?.random_split(0.25, generator)?;
    // Pixels may range from 0 to 16 or from 0 to 255; the training part determines the scale.
    let pixels = Normalize::fit_range(train.inputs())?;
    let (train, test) = (train.normalized(&pixels)?, test.normalized(&pixels)?);
    let mut model = Sequential::mlp(&[train.inputs().shape()[1], HIDDEN, CLASSES], ReLU, generator);
    let (train, test) = (DataLoader::new(train, 64).shuffle().seed(seed), DataLoader::new(test, 1024));
    // Label smoothing prevents overconfidence on training samples that the network has memorized.
    let criterion = CrossEntropyLoss::new().label_smoothing(0.1);
    let fit = Fit::new(epochs)
        .validation(&test)
        .metric("accuracy", Accuracy::new())
        .schedule(PolynomialLR::new(lr, epochs, 1.0)) // The rate decreases linearly to 0.
        .folder(&out);
    let history = if options.get("resume") { fit.resume() } else { fit }.run(
        &mut model,
        &mut AdamW::new(lr),
        &train,
        generator,
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| criterion.of(logits, classes),
    )?;
    history.save_loss_curve(out.join("loss.svg"))?;
    let accuracy = history.last().and_then(|epoch| epoch.validation.as_ref()?.get("accuracy")).unwrap_or(0.0);
    // `println` would panic if the output is closed, as by `| head -1`. The training is complete in any case.
    let wrote = format!("wrote loss.svg, log.jsonl, best.safetensors and last.safetensors\nto {}", out.display());
    let _ = writeln!(std::io::stdout(), "{wrote}\ntest accuracy: {:.2}%", 100.0 * accuracy);
    if accuracy < 2.0 / CLASSES as f64 {
        return Err("the network is hardly better than chance: try another --lr, or more --epochs".into());
    }
    Ok(())
}
