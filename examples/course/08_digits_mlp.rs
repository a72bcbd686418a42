//! 8. Handwritten digits with a network of three layers.
//!
//! New: a sequence of layers (`Sequential`), inputs of one scale, batches, and a learning rate that decreases. A quarter of the
//! data is held out: the network never trains on it, so it measures the quality of the network.
//!
//! See also `train_digits`, the same as a complete program with a checkpoint and loss curves.

use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::schedule::PolynomialLR;
use wengert::nn::{Normalize, Schedule};
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("08_digits_mlp", "Handwritten digits with a network of three layers");
    let options = options.option("epochs", 40, "Number of passes over the digits");
    run(options.option("data", DIGITS, "Table of pixels, the class last, or a folder of MNIST's files"), train)
}

fn train(options: &Options) -> Result {
    let epochs = options.epochs()?;
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(options.get::<String>("data")?, generator)?;
    println!("{} digits to train on, {} held out", train.len(), test.len());
    // Inputs around 0 train faster. The scale comes from the training part, because the held-out part must stay unknown.
    let scale = Normalize::fit_range(train.inputs())?;
    let (train, test) = (train.normalized(&scale)?, test.normalized(&scale)?);

    let mut model = Sequential::new()
        .add(Linear::new(train.inputs().shape()[1], 256, generator))
        .add(ReLU)
        .add(Dropout::new(0.2))
        .add(Linear::new(256, 64, generator))
        .add(ReLU)
        .add(Linear::new(64, 10, generator));
    let mut adam = AdamW::new(2e-3);
    let schedule = PolynomialLR::new(2e-3, epochs.into(), 1.0); // linear decrease to 0
    let batches = DataLoader::new(train.clone(), 64).shuffle().seed(options.seed());
    let (mut losses, mut shares) = (Vec::new(), Vec::new());
    for epoch in 1..=epochs {
        adam.set_lr(schedule.lr(u64::from(epoch - 1)));
        let mut sum = 0.0;
        for batch in batches.epoch(epoch.into()) {
            let (x, y) = batch?;
            // On a training tape, dropout is active ...
            let (loss, gradients) = Tape::training(generator)
                .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
            adam.step(&mut model, &gradients);
            sum += f64::from(loss) * y.numel() as f64;
        }
        // ... and `infer` uses a tape that evaluates.
        let right = accuracy(&infer(|x| model.forward(x), test.inputs()), test.targets());
        losses.push((f64::from(epoch), sum / train.len() as f64));
        shares.push((f64::from(epoch), right));
        if epoch % 5 == 0 || epoch == 1 {
            println!("epoch {epoch:>3}   loss {:.4}   held out: {:.2}% right", sum / train.len() as f64, 100.0 * right);
        }
    }
    let last = shares.last().map_or(0.0, |share| share.1);
    let charts = [
        Chart::new("Loss in training", "epoch", "").line("", 0, losses),
        Chart::new("Share of held-out digits with the right class", "epoch", "").line(
            format!("{last:.4} at last"),
            1,
            shares,
        ),
    ];
    options.write("training.svg", row_svg(&charts)?)?;
    println!("test accuracy: {:.2}%", 100.0 * last);
    Ok(())
}
