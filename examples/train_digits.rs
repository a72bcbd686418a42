//! Trains a small network to read handwritten digits, with a loss curve and a checkpoint to show for it.
//!
//! ```text
//! cargo run --release --example train_digits
//! ```
//!
//! The same arguments give the same files, bit for bit, with any number of threads.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use wengert::nn::{CrossEntropyLoss, Dataset, Epoch, Error, Generator, History, Linear, Module, Normalize};
use wengert::nn::{Result, Sgd, accuracy, cross_entropy, save};
use wengert::prelude::*;

/// Trains a small network to read handwritten digits.
#[derive(Parser)]
struct Arguments {
    /// Table of comma-separated numbers, a sample in each row, its class (0 to 9) last; may be gzipped
    #[arg(long, value_name = "FILE", default_value = DIGITS)]
    data: PathBuf,
    /// How often every training sample is seen
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Learning rate of the first epoch, more than 0
    #[arg(long, default_value_t = 0.2, value_parser = learning_rate, allow_negative_numbers = true)]
    lr: f64,
    /// What the split, the initial weights and the order of the samples are drawn from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the loss curve and the checkpoint
    #[arg(long, value_name = "DIR", default_value = "out/train_digits")]
    out: PathBuf,
}

/// Found from whatever folder the example is run in.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");
const CLASSES: usize = 10;
const HIDDEN: usize = 128;
const BATCH: usize = 64;

/// Two layers with a ReLU between them: a struct, nothing more.
struct Mlp {
    fc1: Linear<f32>,
    fc2: Linear<f32>,
}

impl Mlp {
    fn new(features: usize, generator: &mut Generator) -> Self {
        Mlp {
            fc1: Linear::new("fc1", features, HIDDEN, generator),
            fc2: Linear::new("fc2", HIDDEN, CLASSES, generator),
        }
    }

    /// `[n, features]` to logits `[n, 10]`.
    fn forward<'t>(&self, x: Var<'t, f32>) -> Var<'t, f32> {
        self.fc2.forward(self.fc1.forward(x).relu())
    }

    /// Mean loss and accuracy over all of `data`.
    fn evaluate(&self, data: &Dataset<f32>) -> (f64, f64) {
        let tape = Tape::new();
        let logits = self.forward(tape.constant(data.inputs())).value();
        (cross_entropy(&logits, data.targets()).item().into(), accuracy(&logits, data.targets()))
    }
}

impl Module<f32> for Mlp {
    fn parameters(&self) -> Vec<&Parameter<f32>> {
        [self.fc1.parameters(), self.fc2.parameters()].concat()
    }

    fn parameters_mut(&mut self) -> Vec<&mut Parameter<f32>> {
        [self.fc1.parameters_mut(), self.fc2.parameters_mut()].into_iter().flatten().collect()
    }
}

fn main() -> ExitCode {
    match train(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn train(arguments: &Arguments) -> Result<()> {
    // One seed tells everything random: the split, the initial weights, the order of the samples in each epoch.
    let mut generator = Generator::new(arguments.seed);
    let pixels = Normalize::range(0.0, 16.0);
    let data = Dataset::read_csv(&arguments.data, CLASSES)?.normalized(&pixels)?;
    let (train, test) = data.random_split(0.25, &mut generator)?;
    let out = &arguments.out;
    fs::create_dir_all(out).map_err(|source| Error::Write { path: out.clone(), source })?;

    let mut model = Mlp::new(data.inputs().shape()[1], &mut generator);
    let mut sgd = Sgd::new(arguments.lr).momentum(0.9);
    // Targets that are not quite certain keep a network that knows its training samples by heart from overdoing it.
    let criterion = CrossEntropyLoss { label_smoothing: 0.1, ..Default::default() };
    let mut history = History::default();
    let bar = progress_bar(arguments.epochs);
    for epoch in 0..arguments.epochs {
        sgd.lr = arguments.lr * (1.0 - f64::from(epoch) / f64::from(arguments.epochs)); // down to 0 in a straight line
        for (inputs, targets) in train.shuffled(&mut generator)?.batches(BATCH) {
            let tape = Tape::new(); // it lives for one step
            let loss = criterion.of(&model.forward(tape.constant(&inputs)), &targets);
            let gradients = loss.backward(); // they outlive it
            drop(tape);
            sgd.step(model.parameters_mut(), &gradients);
        }
        let ((train_loss, train_accuracy), (test_loss, test_accuracy)) =
            (model.evaluate(&train), model.evaluate(&test));
        let result = Epoch { train_loss, test_loss, train_accuracy, test_accuracy };
        history.push(result);
        bar.suspend(|| println!("epoch {:3}   {result}", epoch + 1));
        bar.inc(1);
    }
    bar.finish_and_clear();

    let (curve, checkpoint) = (out.join("loss.svg"), out.join("model.safetensors"));
    history.save_loss_curve(&curve)?;
    save(&model, &checkpoint)?;
    println!("wrote {} and {}", curve.display(), checkpoint.display());
    println!("test accuracy: {:.2}%", 100.0 * model.evaluate(&test).1);
    Ok(())
}

/// On standard error; silent where that is no terminal.
fn progress_bar(epochs: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} epoch {pos}/{len}, {eta} left");
    ProgressBar::new(epochs.into()).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn learning_rate(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err("expected a finite number above 0".to_owned()),
    }
}
