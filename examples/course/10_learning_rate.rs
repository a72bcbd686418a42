//! 10. Choosing a learning rate: try rates from 0.0001 to 100 for a short time, then decrease the rate during the training.
//!
//! A rate that is too small learns slowly. A rate that is too large makes the loss jump or grow. Short runs with several rates show the
//! useful range. Half of the largest useful rate is a good start, and a schedule decreases it to 0.

use std::process::ExitCode;

use wengert::nn::Schedule;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("10_learning_rate", "Finds a learning rate, and decreases it during the training");
    let options = options.count("epochs", 10, "Number of passes over the digits of the long runs");
    run(options.positive("lr", 0.5, "Learning rate of the long runs"), choose)
}

/// Trains a new network, and returns the loss of each step and the share of right answers for the held-out digits.
fn train(data: &(Samples, Samples), epochs: u64, seed: u64, lr: impl Fn(u64) -> f64) -> Result<(Vec<(f64, f64)>, f64)> {
    let (train, test) = data;
    let mut model = Sequential::mlp(&[64, 128, 10], ReLU, &mut Generator::new(seed));
    let mut sgd = Sgd::new(1.0);
    let (batches, mut losses) = (DataLoader::new(train.clone(), 32).shuffle().seed(seed), Vec::new());
    for epoch in 0..epochs {
        for batch in batches.epoch(epoch) {
            let (x, y) = batch?;
            let (loss, gradients) =
                Tape::new().value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
            sgd.set_lr(lr(losses.len() as u64));
            sgd.step(&mut model, &gradients);
            losses.push((losses.len() as f64, f64::from(loss)));
        }
    }
    Ok((losses, accuracy(&model.forward(test.inputs()), test.targets())))
}

/// Returns the mean loss of the last 20 steps.
fn last_loss(losses: &[(f64, f64)]) -> f64 {
    let last = &losses[losses.len().saturating_sub(20)..];
    last.iter().map(|(_, loss)| loss).sum::<f64>() / last.len() as f64
}

/// Returns the mean loss of each ten successive steps, with the number of the first of these steps.
fn smooth(losses: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mean = |part: &[(f64, f64)]| (part[0].0, part.iter().map(|point| point.1).sum::<f64>() / part.len() as f64);
    losses.chunks(10).map(mean).collect()
}

fn choose(options: &Options) -> Result {
    let seed = options.seed();
    let data = digits(DIGITS, &mut Generator::new(seed))?;

    println!("1. One epoch for each of some rates\n");
    let mut curve = Vec::new();
    for power in -8..=4 {
        let lr = 10f64.powf(f64::from(power) / 2.0);
        let (losses, right) = train(&data, 1, seed, |_| lr)?;
        let loss = last_loss(&losses);
        println!("   rate {lr:>8.4}   loss {loss:>8.4}   held out: {:.1}% right", 100.0 * right);
        // A loss above 4 is much worse than guessing. It is drawn at 4.
        curve.push((lr.log10(), if loss < 4.0 { loss } else { 4.0 }));
    }

    let (epochs, lr): (u64, f64) = (options.get("epochs"), options.get("lr"));
    println!("\n2. {epochs} epochs at {lr}: constant, and with a schedule\n");
    let steps = epochs * data.0.len().div_ceil(32) as u64;
    let cosine = CosineAnnealingLR::new(lr, steps); // the half wave of a cosine, from the rate to 0
    let mut chart = Chart::new(format!("{epochs} epochs"), "step", "loss, means of 10 steps");
    for (colour, name) in ["constant", "cosine"].into_iter().enumerate() {
        let rate = |step| if name == "cosine" { cosine.lr(step) } else { lr };
        let (losses, right) = train(&data, epochs, seed, rate)?;
        println!("   {name:<9} loss {:.5}   held out: {:.2}% right", last_loss(&losses), 100.0 * right);
        chart = chart.line(name, colour, smooth(&losses));
    }
    println!();
    let range = Chart::new("Loss after one epoch", "log10 of the learning rate", "loss, at most 4");
    options.write("rates.svg", row_svg(&[range.line("", 2, curve.clone()).points("", 2, curve), chart])?)
}
