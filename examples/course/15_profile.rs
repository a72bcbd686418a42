//! 15. Reading a profile: where a training step spends its time.
//!
//! First measure, then change. A step has parts: make the batch, shift its images, compute the gradients, update the
//! weights. The example measures each part over many steps and prints the shares. The first step is slower than the
//! others, because it plans the computation and allocates memory, so it is measured by itself.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use wengert::nn::augment;
use wengert::prelude::*;
use wengert_course::{Options, Result, run};

fn main() -> ExitCode {
    let options = Options::new("15_profile", "Measures the parts of a training step");
    run(options.count("steps", 100, "Number of measured steps").count("batch", 64, "Samples in a batch"), profile)
}

/// The names of the measured parts of a training step.
const PARTS: [&str; 4] = ["batch", "shift", "gradients", "update"];

fn network(generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Conv2d::builder(1, 16, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Flatten::default())
        .add(Linear::new(16 * 14 * 14, 64, generator))
        .add(ReLU)
        .add(Linear::new(64, 10, generator))
}

/// Makes one training step, and returns the time of each part of the step.
fn step(
    number: usize,
    batch: usize,
    data: &Samples,
    state: &mut (Sequential, Adam, Generator),
) -> Result<[Duration; 4]> {
    let (model, adam, generator) = state;
    let mut times = [Duration::ZERO; 4];
    let mut clock = Instant::now();
    let mut lap = |part: usize| times[part] = std::mem::replace(&mut clock, Instant::now()).elapsed();

    let rows: Vec<usize> = (0..batch).map(|row| (number * batch + row) % data.len()).collect();
    let (x, y) = data.batch(&rows)?;
    lap(0);
    let x = augment::random_shift(&x, 1, generator)?;
    lap(1);
    let (_, gradients) =
        Tape::training(generator).value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
    lap(2);
    adam.step(model, &gradients);
    lap(3);
    Ok(times)
}

fn profile(options: &Options) -> Result {
    let (steps, batch): (usize, usize) = (options.get("steps"), options.get("batch"));
    let mut generator = Generator::new(options.seed());
    let images = Tensor::rand([1000, 1, 28, 28], &mut generator);
    let data = Samples::new(images, Tensor::randint(0, 10, [1000], &mut generator))?;
    let mut state = (network(&mut generator), AdamW::new(1e-3), generator);

    let first = step(0, batch, &data, &mut state)?;
    let mut times: Vec<[Duration; 4]> =
        (1..=steps).map(|n| step(n, batch, &data, &mut state)).collect::<Result<_>>()?;
    // The median of each part: other programs on the machine delay some steps, and a mean would count these delays.
    let median = [0, 1, 2, 3].map(|part| {
        times.sort_by_key(|times| times[part]);
        times[times.len() / 2][part].as_secs_f64() * 1e6
    });
    let total: f64 = median.iter().sum();
    println!("part           first step          later steps, median of {steps}");
    for (part, name) in PARTS.into_iter().enumerate() {
        let (first, later) = (first[part].as_secs_f64() * 1e6, median[part]);
        let bar = "#".repeat((30.0 * later / total).round() as usize);
        println!("{name:<10} {first:>11.0} µs {later:>10.0} µs {:>4.0}%  {bar}", 100.0 * later / total);
    }
    println!("\na step takes {total:.0} µs: {:.0} samples in a second", batch as f64 / total * 1e6);

    // A convolution uses each weight once for every pixel. A linear layer uses each weight once for every sample.
    println!("\nnumbers learned, by layer:");
    for (path, parameter) in state.0.named_parameters() {
        println!("{path:<10} {:<16} {:>8}", parameter.value.shape().to_string(), parameter.value.numel());
    }
    let (tape, x) = (Tape::new(), data.inputs().narrow(0, 0, batch.min(1000)));
    let loss = state.0.forward(tape.constant(&x)).sum(..);
    let recorded = tape.len();
    let _gradients = loss.backward();
    println!("\nentries of the tape: {recorded} for the model, {} with the gradients", tape.len());
    Ok(())
}
