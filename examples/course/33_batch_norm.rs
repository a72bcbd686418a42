//! 33. Batch normalisation: numbers of the same size in every layer.
//!
//! In a deep network, each layer scales the numbers of the layer before. Small factors multiply to almost nothing, large ones to huge
//! numbers, and gradients have the same problem on the way back. Batch normalisation subtracts the mean of each number over the batch and
//! divides by its deviation. The example trains a network of ten layers with several learning rates, without and with normalisation.
//! (Ioffe and Szegedy 2015, "Batch normalization".)

use std::process::ExitCode;

use wengert::nn::BatchNorm1d;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("33_batch_norm", "A deep network without and with batch normalisation");
    run(options.count("epochs", 20, "Number of passes over the digits"), compare)
}

/// The number of hidden layers.
const LAYERS: usize = 10;
/// The number of values in each hidden layer.
const WIDTH: usize = 64;

fn network(normalised: bool, generator: &mut Generator) -> Sequential {
    let mut layers = Sequential::new();
    for _ in 0..LAYERS {
        layers = layers.add(Linear::new(WIDTH, WIDTH, generator));
        if normalised {
            layers = layers.add(BatchNorm1d::new(WIDTH));
        }
        layers = layers.add(ReLU);
    }
    layers.add(Linear::new(WIDTH, 10, generator))
}

fn compare(options: &Options) -> Result {
    let (train, test) = digits(DIGITS, &mut Generator::new(options.seed()))?;
    // A last batch of a few images would have no useful mean.
    let batches = DataLoader::new(train, 64).shuffle().seed(options.seed()).drop_last();
    let mut chart = Chart::new("Learning rate 0.1", "step", "loss");
    println!("              without normalisation      with normalisation");
    println!("rate          loss     held out          loss     held out");
    for lr in [0.01, 0.03, 0.1, 0.3, 1.0] {
        print!("{lr:<8}");
        for (colour, normalised) in [false, true].into_iter().enumerate() {
            let generator = &mut Generator::new(options.seed());
            let (mut model, mut sgd) = (network(normalised, generator), Sgd::new(lr));
            let mut losses = Vec::new();
            for epoch in 0..options.get("epochs") {
                for batch in batches.epoch(epoch) {
                    let (x, y) = batch?;
                    // A training tape: the layers use the mean and the deviation of the batch, and keep averages of them.
                    let (loss, gradients) = Tape::training(generator)
                        .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
                    sgd.step(&mut model, &gradients);
                    losses.push((losses.len() as f64, f64::from(loss)));
                }
            }
            // A call with a tensor evaluates the model: the layers use the averages.
            let right = 100.0 * accuracy(&model.forward(test.inputs()), test.targets());
            let loss = losses.last().map_or(f64::NAN, |last| last.1);
            print!("{}{loss:>10.4}   {right:>9.1}%", if normalised { "    " } else { "" });
            if lr == 0.1 {
                chart = chart.line(["without normalisation", "with normalisation"][colour], colour, losses);
            }
        }
        println!();
    }
    println!();
    options.write("losses.svg", chart.to_svg()?)
}
