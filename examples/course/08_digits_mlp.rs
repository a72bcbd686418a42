//! 8. Handwritten digits: batches, epochs, and held-out data.
//!
//! The loop of example 7 uses all points in each step. Here each step uses a batch of 64 digits, in a new random order in each
//! pass over the data, an epoch. This is stochastic gradient descent. A quarter of the digits is held out. The network never
//! trains on these digits, so its accuracy for them shows what it does with new digits.
//!
//! See also `train_digits`, the same as a complete program with a checkpoint and loss curves.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("08_digits_mlp", "Handwritten digits with a network of three layers");
    let options = options.count("epochs", 20, "Number of passes over the digits");
    let about = "Table of pixels, the class last, or a folder of MNIST's files [default: 1,797 digits]";
    run(options.text("data", DIGITS, about), train)
}

fn train(options: &Options) -> Result {
    let epochs: u64 = options.get("epochs");
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(options.get::<String>("data"), generator)?;
    println!("{} digits to train on, {} held out", train.len(), test.len());

    let mut model = Sequential::new()
        .add(Linear::new(train.inputs().shape()[1], 128, generator))
        .add(ReLU)
        .add(Linear::new(128, 64, generator))
        .add(ReLU)
        .add(Linear::new(64, 10, generator));
    let mut sgd = Sgd::new(0.1).momentum(0.9);
    let batches = DataLoader::new(train.clone(), 64).shuffle().seed(options.seed());
    let (mut losses, mut shares) = (Vec::new(), [Vec::new(), Vec::new()]);
    for epoch in 1..=epochs {
        let mut sum = 0.0;
        for batch in batches.epoch(epoch) {
            let (x, y) = batch?; // [64, 64] and [64]; the last batch is smaller
            let (loss, gradients) =
                Tape::new().value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
            sgd.step(&mut model, &gradients);
            sum += f64::from(loss) * y.numel() as f64;
        }
        let right = [&train, &test].map(|part| accuracy(&model.forward(part.inputs()), part.targets()));
        let loss = sum / train.len() as f64;
        losses.push((epoch as f64, loss));
        shares.iter_mut().zip(right).for_each(|(curve, right)| curve.push((epoch as f64, right)));
        if epoch % 5 == 0 || epoch == 1 {
            let [train, test] = right.map(|share| 100.0 * share);
            println!("epoch {epoch:>3}   loss {loss:.4}   right: train {train:.2}%, held out {test:.2}%");
        }
    }
    let last = shares[1].last().map_or(0.0, |share| share.1);
    let [on_train, on_test] = shares;
    let charts = [
        Chart::new("Loss in training", "epoch", "").line("", 0, losses),
        Chart::new("Share of right answers", "epoch", "").line("train", 0, on_train).line("held out", 1, on_test),
    ];
    options.write("training.svg", row_svg(&charts)?)?;
    println!("test accuracy: {:.2}%", 100.0 * last);
    Ok(())
}
