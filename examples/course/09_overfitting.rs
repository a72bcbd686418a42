//! 9. Overfitting on purpose, and what helps.
//!
//! A network with many weights and few samples learns the samples by heart. Its loss on them goes to 0, and its loss on other
//! digits grows. The example causes this with 100 digits, and then tries four remedies one after the other.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("09_overfitting", "Overfitting on purpose, and four remedies");
    run(options.count_in("steps", 600, [1, 100_000], "Number of steps of each run"), overfit)
}

/// The settings of a training run: the number of samples, the share of numbers that dropout sets to 0, and the weight decay.
struct Trial {
    name: &'static str,
    samples: usize,
    dropout: f64,
    decay: f64,
}

fn network(dropout: f64, generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Linear::new(64, 256, generator))
        .add(ReLU)
        .add(Dropout::new(dropout))
        .add(Linear::new(256, 256, generator))
        .add(ReLU)
        .add(Dropout::new(dropout))
        .add(Linear::new(256, 10, generator))
}

fn overfit(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let trials = [
        Trial { name: "100 digits", samples: 100, dropout: 0.0, decay: 0.0 },
        Trial { name: "dropout", samples: 100, dropout: 0.5, decay: 0.0 },
        Trial { name: "weight decay", samples: 100, dropout: 0.0, decay: 3.0 },
        Trial { name: "1,000 digits", samples: 1000, dropout: 0.0, decay: 0.0 },
    ];
    println!("                train loss   held-out loss: last (lowest, at step)   right");
    let mut chart = Chart::new("Loss on held-out digits", "step", "cross-entropy");
    for (colour, Trial { name, samples, dropout, decay }) in trials.into_iter().enumerate() {
        let part = train.subset(&(0..samples).collect::<Vec<_>>())?;
        let (x, y) = (part.inputs(), part.targets());
        let mut model = network(dropout, &mut Generator::new(options.seed()));
        let mut adam = AdamW::new(1e-3).weight_decay(decay);
        let mut curve = Vec::new();
        for step in 0..=options.get::<u32>("steps") {
            // A call with a tensor evaluates the model: dropout is off.
            if step % 10 == 0 {
                let scores = model.forward(test.inputs());
                curve.push((f64::from(step), f64::from(cross_entropy(&scores, test.targets()).item())));
            }
            // A training tape: dropout is on, and draws its random numbers from the generator.
            let (_, gradients) = Tape::training(generator)
                .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(x)), y));
            adam.step(&mut model, &gradients);
        }
        let [on_train, on_test] = [&part, &test].map(|part| model.forward(part.inputs()));
        let (loss, right) = (cross_entropy(&on_train, y).item(), 100.0 * accuracy(&on_test, test.targets()));
        let last = curve.last().map_or(0.0, |point| point.1);
        // Early stopping keeps the model of this step, which has the lowest held-out loss.
        let lowest = curve.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        println!("{name:<14}  {loss:>10.5}   {last:>19.4} ({:.4}, at {:>3})   {right:.1}%", lowest.1, lowest.0);
        chart =
            chart.line(name, colour, curve).crosses(if colour == 0 { "early stopping" } else { "" }, colour, [lowest]);
    }
    println!();
    options.write("overfitting.svg", chart.to_svg()?)
}
