//! The most common silent bug in training: predictions `[n, 1]` minus targets `[n]` are `[n, n]`, and the loss still falls.
//!
//! The shapes broadcast, so this is not an error. Wengert warns with the line of code. This example shows the mistake.

use std::process::ExitCode;

use wengert::compat::Rules;
use wengert::prelude::*;
use wengert_options::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("broadcast_warning", "Predictions [n, 1] minus targets [n], a silent bug"), broadcast_warning)
}

fn broadcast_warning(_options: &Options) -> Result {
    let inputs = Tensor::<f64>::linspace(-1.0, 1.0, 8).reshape([8, 1]);
    let targets = Tensor::from_fn([8], |index| 3.0 * inputs.get(&[index[0], 0]).unwrap_or_default() + 1.0);

    println!("1. y = 3x + 1, fitted to targets of shape [8], a mistake (the warning goes to standard error):\n");
    let (slope, losses) = fit(&inputs, &targets);
    println!(
        "   the loss falls, {:.3} -> {:.3}, and the slope is {slope:.3}, not 3\n",
        losses[0],
        losses[losses.len() - 1]
    );

    println!("2. With targets of shape [8, 1]:\n");
    let (slope, losses) = fit(&inputs, &targets.unsqueeze(1));
    println!("   the loss falls, {:.3} -> {:.3}, and the slope is {slope:.3}\n", losses[0], losses[losses.len() - 1]);

    println!("3. A test suite can turn the warning into an error:\n");
    let _guard = Rules::default().deny().scope();
    let predictions = Tensor::<f64>::zeros([8, 1]);
    match predictions.try_sub(&targets) {
        Ok(_) => unreachable!("the warning is an error here"),
        Err(error) => println!("{error}"),
    }
    Ok(())
}

/// Fits a line by gradient descent. Returns the slope and the losses.
fn fit(inputs: &Tensor<f64>, targets: &Tensor<f64>) -> (f64, Vec<f64>) {
    let (mut slope, mut offset) = (Tensor::from([[0.0]]), Tensor::from([0.0]));
    let mut losses = Vec::new();
    for _ in 0..200 {
        let tape = Tape::new();
        let (a, b) = (tape.var(&slope), tape.var(&offset));
        let predictions = a * inputs + b; // [8, 1]
        let errors = predictions - targets; // [8, 1] - [8] is [8, 8], and [8, 1] - [8, 1] is [8, 1]
        let loss = (errors * errors).mean(..);
        let gradients = loss.backward();
        losses.push(loss.item());
        slope -= &(gradients.of(a) * 0.2);
        offset -= &(gradients.of(b) * 0.2);
    }
    (slope.item(), losses)
}
