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

use indicatif::{ProgressBar, ProgressStyle};
use lexopt::prelude::*;
use wengert::autograd::transforms::infer;
use wengert::nn::{CrossEntropyLoss, Dataset, Epoch, Error, Generator, History, Layer, Linear, Module, Normalize};
use wengert::nn::{Optimizer, Result, Sgd, accuracy, cross_entropy, save};
use wengert::prelude::*;

const USAGE: &str = "\
Trains a small network to read handwritten digits

Usage: train_digits [OPTIONS]

Options:
      --data <FILE>      Table of comma-separated numbers, a sample in each row, its class (0 to 9) last; may be gzipped
                         [default: the digits that come with the example]
      --epochs <EPOCHS>  How often every training sample is seen [default: 40]
      --lr <LR>          Learning rate of the first epoch, more than 0 [default: 0.2]
      --seed <SEED>      What the split, the initial weights and the order of the samples are drawn from [default: 0]
      --out <DIR>        Folder for the loss curve and the checkpoint [default: out/train_digits]
  -h, --help             Print help";

struct Arguments {
    data: PathBuf,
    epochs: u32,
    lr: f64,
    seed: u64,
    out: PathBuf,
}

impl Arguments {
    /// Those of the command line; `None` where it asks for help.
    fn parse() -> std::result::Result<Option<Self>, lexopt::Error> {
        let (data, out) = (DIGITS.into(), "out/train_digits".into());
        let mut arguments = Arguments { data, epochs: 40, lr: 0.2, seed: 0, out };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("data") => arguments.data = parser.value()?.into(),
                Long("epochs") => arguments.epochs = parser.value()?.parse_with(epochs)?,
                Long("lr") => arguments.lr = parser.value()?.parse_with(learning_rate)?,
                Long("seed") => arguments.seed = parser.value()?.parse()?,
                Long("out") => arguments.out = parser.value()?.into(),
                Short('h') | Long("help") => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(arguments))
    }
}

/// Found from whatever folder the example is run in.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");
const CLASSES: usize = 10;
const HIDDEN: usize = 128;
const BATCH: usize = 64;

/// Two layers with a ReLU between them: a struct, nothing more.
#[derive(Module)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Mlp {
    fn new(features: usize, generator: &mut Generator) -> Self {
        Mlp { fc1: Linear::new(features, HIDDEN, generator), fc2: Linear::new(HIDDEN, CLASSES, generator) }
    }

    /// `[n, features]` to logits `[n, 10]`.
    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        self.fc2.forward(self.fc1.forward(x).relu())
    }

    /// Mean loss and accuracy over all of `data`.
    fn evaluate(&self, data: &Dataset<f32>) -> (f64, f64) {
        let logits = infer(|x| self.forward(x), data.inputs());
        (cross_entropy(&logits, data.targets()).item().into(), accuracy(&logits, data.targets()))
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match train(&arguments) {
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
        sgd.set_lr(arguments.lr * (1.0 - f64::from(epoch) / f64::from(arguments.epochs))); // down to 0 in a straight line
        for (inputs, targets) in train.shuffled(&mut generator)?.batches(BATCH) {
            let (_, gradients) = Tape::training(&mut generator)
                .value_and_gradients(|tape| criterion.of(&model.forward(tape.constant(&inputs)), &targets));
            sgd.step(&mut model, &gradients);
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

fn epochs(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        Ok(epochs) if epochs > 0 => Ok(epochs),
        _ => Err("expected a whole number above 0".to_owned()),
    }
}

fn learning_rate(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err("expected a finite number above 0".to_owned()),
    }
}
