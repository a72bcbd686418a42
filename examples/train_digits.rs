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

use lexopt::prelude::*;
use wengert::nn::metrics::Accuracy;
use wengert::nn::schedule::PolynomialLR;
use wengert::nn::{
    AdamW, CrossEntropyLoss, DataLoader, Dataset, Epoch, Error, Generator, History, Layer, Linear, Module,
    cross_entropy, evaluate,
};
use wengert::nn::{Normalize, Optimizer, Result, Samples, Schedule, save};
use wengert::prelude::*;

const USAGE: &str = "\
Trains a small network to read handwritten digits

Usage: train_digits [OPTIONS]

Options:
      --data <FILE>      Table of comma-separated numbers, a sample in each row, its class (0 to 9) last; may be gzipped
                         [default: the digits that come with the example]
      --epochs <EPOCHS>  How often every training sample is seen, 1 or more [default: 40]
      --lr <LR>          Learning rate of the first epoch, more than 0 [default: 0.003]
      --seed <SEED>      What the split, the initial weights and the order of the samples are drawn from [default: 0]
      --out <DIR>        Folder for the loss curve and the checkpoint [default: out/train_digits]
  -h, --help             Print help";

/// Found from whatever folder the example is run in.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");
const CLASSES: usize = 10;
const HIDDEN: usize = 128;
const BATCH: usize = 64;

struct Arguments {
    data: PathBuf,
    epochs: u32,
    lr: f64,
    seed: u64,
    out: PathBuf,
}

/// Those of the command line; `None` where it asks for help.
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
        return Err("--epochs and --lr are to be more than 0".into());
    }
    Ok(Some(arguments))
}

/// Two layers with a ReLU between them.
#[derive(Module)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Mlp {
    /// `[n, features]` to logits `[n, 10]`.
    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        self.fc2.forward(self.fc1.forward(x).relu())
    }
}

fn main() -> ExitCode {
    match arguments() {
        Ok(Some(arguments)) => match train(&arguments) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => eprintln!("error: {error}"),
        },
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::FAILURE
}

fn train(arguments: &Arguments) -> Result<()> {
    // One seed tells everything random: the split, the initial weights, the order of the samples in each epoch.
    let generator = &mut Generator::new(arguments.seed);
    let (train, test) = Samples::<Tensor>::read_csv(&arguments.data, CLASSES)?.random_split(0.25, generator)?;
    // Pixels may be from 0 to 16 or from 0 to 255: the training part says.
    let pixels = Normalize::fit_range(train.inputs())?;
    let (train, test) = (train.normalized(&pixels)?, test.normalized(&pixels)?);
    let out = &arguments.out;
    fs::create_dir_all(out).map_err(|source| Error::Write { path: out.clone(), source })?;

    let features = train.inputs().shape()[1];
    let mut model = Mlp { fc1: Linear::new(features, HIDDEN, generator), fc2: Linear::new(HIDDEN, CLASSES, generator) };
    let mut optimizer = AdamW::new(arguments.lr);
    let schedule = PolynomialLR::new(arguments.lr, arguments.epochs.into(), 1.0); // down to 0 in a straight line
    // Targets that are not quite certain keep a network that knows its training samples by heart from overdoing it.
    let criterion = CrossEntropyLoss::new().label_smoothing(0.1);
    let loader = DataLoader::new(train.clone(), BATCH).shuffle().seed(arguments.seed);
    let mut history = History::default();
    for epoch in 0..arguments.epochs {
        optimizer.set_lr(schedule.lr(epoch.into()));
        for batch in loader.epoch(epoch.into()) {
            let (inputs, targets) = batch?;
            let (_, gradients) = Tape::training(generator)
                .value_and_gradients(|tape| criterion.of(&model.forward(tape.constant(&inputs)), &targets));
            optimizer.step(&mut model, &gradients);
        }
        let scores = |samples: &Samples| {
            evaluate(
                &model,
                &DataLoader::new(samples.clone(), 1024),
                &mut [("accuracy", &mut Accuracy::new())],
                |model, tape, x| model.forward(tape.constant(x)),
                |logits, classes| cross_entropy(&logits, classes),
            )
        };
        let result = Epoch { lr: optimizer.learning_rate(), train: scores(&train)?, validation: Some(scores(&test)?) };
        println!("epoch {:3}   {result}", epoch + 1);
        let diverged = !result.train.loss.is_finite();
        history.push(result);
        if diverged {
            return Err(Error::Diverged(format!("the loss is not finite: try a smaller --lr than {}", arguments.lr)));
        }
    }
    let (curve, checkpoint) = (out.join("loss.svg"), out.join("model.safetensors"));
    history.save_loss_curve(&curve)?;
    save(&model, &checkpoint)?;
    println!("wrote {} and {}", curve.display(), checkpoint.display());
    let accuracy = history.last().and_then(|epoch| epoch.validation.as_ref()?.get("accuracy")).unwrap_or(0.0);
    println!("test accuracy: {:.2}%", 100.0 * accuracy);
    if accuracy < 2.0 / CLASSES as f64 {
        return Err(Error::Diverged("hardly better than chance: try another --lr, or more --epochs".to_owned()));
    }
    Ok(())
}
