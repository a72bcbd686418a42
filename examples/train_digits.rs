//! Trains a small network to read handwritten digits, and writes a loss curve and checkpoints.
//!
//! ```text
//! cargo run --release --example train_digits
//! ```
//!
//! The same arguments give the same files on one machine, bit for bit, with any number of threads.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use wengert::nn::metrics::Accuracy;
use wengert::nn::schedule::PolynomialLR;
use wengert::nn::{AdamW, CrossEntropyLoss, DataLoader, Dataset, Error, Fit, Generator, Normalize, Result, Samples};
use wengert::prelude::*;

const USAGE: &str = "\
Trains a small network to read handwritten digits

Usage: train_digits [OPTIONS]

Options:
      --data <FILE>      Table of comma-separated numbers, one sample in each row, the class (0 to 9) last; may be gzipped
                         [default: the digits that come with the example]
      --epochs <EPOCHS>  Number of passes over the training samples, 1 or more [default: 40]
      --lr <LR>          Learning rate of the first epoch, more than 0 [default: 0.003]
      --seed <SEED>      Seed of the split, the initial weights and the order of the samples [default: 0]
      --out <DIR>        Folder for the loss curve and the checkpoints [default: out/train_digits]
  -h, --help             Print help";

/// The path of the table; it does not depend on the working directory.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");
const CLASSES: usize = 10;
const HIDDEN: usize = 128;

struct Arguments {
    data: PathBuf,
    epochs: u64,
    lr: f64,
    seed: u64,
    out: PathBuf,
}

/// Returns the arguments of the command line, or `None` if they ask for help.
fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let (data, out) = (DIGITS.into(), "out/train_digits".into());
    let mut arguments = Arguments { data, epochs: 40, lr: 0.003, seed: 0, out };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("data") => arguments.data = parser.value()?.into(),
            Long("epochs") => arguments.epochs = parser.value()?.parse()?,
            Long("lr") => arguments.lr = parser.value()?.parse()?,
            Long("seed") => arguments.seed = parser.value()?.parse()?,
            Long("out") => arguments.out = parser.value()?.into(),
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if arguments.epochs == 0 || !(arguments.lr > 0.0 && arguments.lr.is_finite()) {
        return Err("--epochs and --lr must be greater than 0".into());
    }
    Ok(Some(arguments))
}

fn main() -> ExitCode {
    let (message, code) = match arguments().map(|arguments| arguments.map(train)) {
        Ok(Some(Ok(()))) => return ExitCode::SUCCESS,
        Ok(Some(Err(error))) => (error.to_string(), 1),
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => (format!("{error}\n\n{USAGE}"), 2),
    };
    eprintln!("error: {message}");
    ExitCode::from(code)
}

fn train(Arguments { data, epochs, lr, seed, out }: Arguments) -> Result<()> {
    // The seed determines all random numbers: the split, the initial weights, the order of the samples in each epoch.
    let generator = &mut Generator::new(seed);
    let (train, test) = Samples::<Tensor>::read_csv(data, CLASSES)?.random_split(0.25, generator)?;
    // Pixels may range from 0 to 16 or from 0 to 255; the training part determines the scale.
    let pixels = Normalize::fit_range(train.inputs())?;
    let (train, test) = (train.normalized(&pixels)?, test.normalized(&pixels)?);
    let mut model = Sequential::mlp(&[train.inputs().shape()[1], HIDDEN, CLASSES], ReLU, generator);
    let (train, test) = (DataLoader::new(train, 64).shuffle().seed(seed), DataLoader::new(test, 1024));
    // Label smoothing prevents overconfidence on training samples that the network has memorized.
    let criterion = CrossEntropyLoss::new().label_smoothing(0.1);
    let history = Fit::new(epochs)
        .validation(&test)
        .metric("accuracy", Accuracy::new())
        .schedule(PolynomialLR::new(lr, epochs, 1.0)) // The rate decreases linearly to 0.
        .folder(&out)
        .run(
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
    let wrote = format!("wrote loss.svg, log.jsonl, best.safetensors and last.safetensors in {}", out.display());
    let _ = writeln!(std::io::stdout(), "{wrote}\ntest accuracy: {:.2}%", 100.0 * accuracy);
    if accuracy < 2.0 / CLASSES as f64 {
        return Err(Error::Diverged(
            "the network is hardly better than chance: try another --lr, or more --epochs".to_owned(),
        ));
    }
    Ok(())
}
