//! 5. A line fitted to points: the loop of every training run.
//!
//! Predict, measure the loss, take its gradient, make a small step downhill. This is gradient descent. A line also has a formula
//! (least squares), which shows where the loop should end.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("05_line", "A line fitted to noisy points by gradient descent");
    run(options.count("steps", 100, "Number of steps").positive("lr", 0.3, "Size of a step, the learning rate"), line)
}

fn line(options: &Options) -> Result {
    let (steps, lr): (usize, f32) = (options.get("steps"), options.get("lr"));
    let generator = &mut Generator::new(options.seed());

    // y = 2x - 1, with noise.
    let x = Tensor::<f32>::rand([60], generator) * 2.0 - 1.0;
    let y = &x * 2.0 - 1.0 + Tensor::randn([60], generator) * 0.3;

    let (mut slope, mut offset) = (Tensor::scalar(0.0f32), Tensor::scalar(0.0));
    let (mut lines, mut losses) = (vec![(0.0, 0.0)], Vec::new());
    for step in 1..=steps {
        let tape = Tape::new(); // each step has its own tape
        let (a, b) = (tape.var(&slope), tape.var(&offset));
        let loss = mse_loss(a * &x + b, &y); // the mean square error
        let gradients = loss.backward();
        slope -= &(gradients.of(a) * lr);
        offset -= &(gradients.of(b) * lr);
        if !loss.item().is_finite() {
            println!("step {step:>4}   loss {}: the training diverges; try a smaller --lr", loss.item());
            break;
        }
        lines.push((slope.item(), offset.item()));
        losses.push((step as f64, f64::from(loss.item()).log10()));
        if step.is_power_of_two() || step == steps {
            println!("step {step:>4}   loss {:<10.4}   {}", loss.item(), equation(slope.item(), offset.item()));
        }
    }

    // The formula: covariance divided by variance, and a line through the means.
    let best = ((&x - x.mean(..)) * (&y - y.mean(..))).mean(..).item() / x.var(.., 0).item();
    let through = y.mean(..).item() - best * x.mean(..).item();
    println!("by formula:                    {}", equation(best, through));

    let mut chart =
        Chart::new("A line during its fit", "x", "y").ranges(-1.0..1.0, -5.0..3.0).points("data", 7, pairs(&x, &y));
    for (colour, step) in [0, 2, 8, lines.len() - 1].into_iter().filter(|&step| step < lines.len()).enumerate() {
        let (a, b) = lines[step];
        let ends = [-1.0, 1.0].map(|x| (x, f64::from(a) * x + f64::from(b)));
        // A line that leaves the picture is not drawn.
        if ends.iter().all(|(_, y)| (-5.0..3.0).contains(y)) {
            chart = chart.line(format!("step {step}"), colour, ends);
        }
    }
    let loss = Chart::new("The loss, as a power of ten", "step", "log10 of the loss").line("", 3, losses);
    options.write("line.svg", row_svg(&[chart, loss])?)
}

/// Returns the equation of a line as text, such as `y = 1.995 x - 0.982`.
fn equation(slope: f32, offset: f32) -> String {
    format!("y = {slope:.3} x {} {:.3}", if offset < 0.0 { '-' } else { '+' }, offset.abs())
}

fn pairs(x: &Tensor, y: &Tensor) -> Vec<(f64, f64)> {
    x.iter().zip(y.iter()).map(|(x, y)| (x.into(), y.into())).collect()
}
