//! Trains a siamese network: do two pictures show the same digit?
//!
//! ```text
//! cargo run --release --example same_digit
//! ```
//!
//! The inputs of each sample are a tuple of two pictures, which the model gets. Both pictures go through the same
//! layers. A linear layer decides from the differences of the results. The held-out pictures are in no training
//! pair. (Bromley et al. 1993, "Signature Verification using a 'Siamese' Time Delay Neural Network".)

use std::process::ExitCode;

use wengert::nn::metrics::BinaryScores;
use wengert::nn::{BceWithLogitsLoss, Fit, predict};
use wengert::prelude::*;
use wengert_options::{Options, Result, run};

/// The path of the table; it does not depend on the working directory.
const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits.csv.gz");

fn main() -> ExitCode {
    let options = Options::new("same_digit", "Trains a network that compares two digits");
    run(options.count("epochs", 5, "Number of passes over the pairs"), compare)
}

#[derive(Module)]
struct Siamese {
    branch: Sequential,
    head: Linear,
}

impl Siamese {
    fn new(generator: &mut Generator) -> Self {
        let branch = Sequential::new()
            .add(Conv2d::builder(1, 16, 3).padding(1).bias(false).build(generator))
            .add(BatchNorm2d::new(16))
            .add(ReLU)
            .add(MaxPool2d::new(2))
            .add(Flatten::default())
            .add(Linear::new(16 * 4 * 4, 32, generator));
        Siamese { branch, head: Linear::new(32, 1, generator) }
    }

    /// Returns a logit for each pair of images `[n, 1, 8, 8]`. It is positive if the model predicts the same digit.
    fn forward<'t>(&self, left: Var<'t>, right: Var<'t>) -> Var<'t> {
        let [left, right] = [left, right].map(|image| self.branch.forward(image));
        self.head.forward((left - right).abs()).squeeze(1)
    }
}

/// Pairs of images, with the target 1 for the same digit and 0 for different digits.
type Pairs = Samples<(Tensor, Tensor), Tensor>;

/// Draws `n` pairs of images. Every second pair has the same digit.
fn pairs(digits: &Samples, n: usize, generator: &mut Generator) -> Result<Pairs> {
    let classes = digits.targets().to_vec();
    let mut draw = || generator.below(classes.len() as u64) as usize;
    let [mut left, mut right] = [Vec::new(), Vec::new()];
    while left.len() < n {
        let (a, b) = (draw(), draw());
        if (classes[a] == classes[b]) == left.len().is_multiple_of(2) {
            left.push(a);
            right.push(b);
        }
    }
    let (left, right) = (digits.subset(&left)?, digits.subset(&right)?);
    let same = left.targets().eq(right.targets()).cast::<f32>();
    Ok(Samples::new((left.inputs().clone(), right.inputs().clone()), same)?)
}

fn compare(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let digits = Samples::read_csv(DIGITS, 10)?.map_inputs(|pixels| pixels.view([-1, 1, 8, 8]) / 16.0)?;
    let (train, test) = digits.stratified_split(0.25, generator)?;
    let (train, test) = (pairs(&train, 4000, generator)?, pairs(&test, 2000, generator)?);
    let (train, validation) =
        (DataLoader::new(train, 64).shuffle().seed(options.seed()), DataLoader::new(test.clone(), 200));
    let mut model = Siamese::new(generator);
    Fit::new(options.get("epochs"))
        .validation(&validation)
        .metric("accuracy", BinaryScores::new().by(|scores| scores.accuracy(0.0)))
        .run(
            &mut model,
            &mut AdamW::new(1e-2),
            &train,
            generator,
            |model, tape, (left, right)| model.forward(tape.constant(left), tape.constant(right)),
            |logits, same| BceWithLogitsLoss::new().of(logits, same),
        )?;

    let inputs = DataLoader::new(test.inputs().clone(), 200);
    let logits = predict(&model, &inputs, |model, tape, (left, right)| {
        model.forward(tape.constant(left), tape.constant(right))
    })?;
    let mut scores = BinaryScores::new();
    scores.update(&logits, test.targets())?;
    let accuracy = scores.accuracy(0.0);
    println!("held-out pairs: {:.1}% right, area under the ROC curve {:.3}", 100.0 * accuracy, scores.roc_auc());
    if accuracy < 0.6 {
        return Err("the network is hardly better than chance: try more --epochs".into());
    }
    Ok(())
}
