//! 5. A line fitted to points: the loop of every training.
//!
//! Predict, measure the loss, take its gradient, make a small step downhill. A line also has a formula, which shows where the
//! loop should end.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    let options = Options::new("05_line", "A line fitted to noisy points by gradient descent");
    run(options.option("steps", 100, "Number of steps").option("lr", 0.3, "Size of a step"), line)
}

fn line(options: &Options) -> Result {
    let (steps, lr): (usize, f32) = (options.get("steps")?, options.get("lr")?);
    let generator = &mut Generator::new(options.seed());

    // y = 2x - 1, with noise.
    let x = Tensor::<f32>::rand([60], generator) * 2.0 - 1.0;
    let y = &x * 2.0 - 1.0 + Tensor::randn([60], generator) * 0.3;

    let (mut slope, mut offset) = (Tensor::scalar(0.0f32), Tensor::scalar(0.0));
    let mut lines = vec![(slope.item(), offset.item())];
    for step in 1..=steps {
        let tape = Tape::new(); // each step has its own tape
        let (a, b) = (tape.var(&slope), tape.var(&offset));
        let loss = mse_loss(a * &x + b, &y);
        let gradients = loss.backward();
        slope -= &(gradients.of(a) * lr);
        offset -= &(gradients.of(b) * lr);
        lines.push((slope.item(), offset.item()));
        if step.is_power_of_two() || step == steps {
            println!("step {step:>4}   loss {:.4}   y = {:.3} x + {:.3}", loss.item(), slope.item(), offset.item());
        }
    }

    // The formula: covariance divided by variance, and a line through the means.
    let best = ((&x - x.mean(..)) * (&y - y.mean(..))).mean(..).item() / x.var(.., 0).item();
    let through = y.mean(..).item() - best * x.mean(..).item();
    println!("by formula:            y = {best:.3} x + {through:.3}");

    let mut chart = Chart::new("A line during its fit", "x", "y").points("data", 7, pairs(&x, &y));
    for (colour, step) in [0, 2, 8, steps].into_iter().filter(|&step| step <= steps).enumerate() {
        let (a, b) = lines[step];
        let ends = [-1.0, 1.0].map(|x| (x, f64::from(a) * x + f64::from(b)));
        chart = chart.line(format!("step {step}"), colour, ends);
    }
    options.write("line.svg", chart.to_svg()?)?;
    Ok(())
}

fn pairs(x: &Tensor, y: &Tensor) -> Vec<(f64, f64)> {
    x.iter().zip(y.iter()).map(|(x, y)| (x.into(), y.into())).collect()
}
