//! 24. A parameter of a method, found by its gradient: kernel regression with a learned width.
//!
//! Kernel regression predicts a value as a weighted mean of the known values. Nearer points have larger weights. The differences of
//! every two points are `[n, 1] - [n]`. A narrow kernel follows the noise, a wide one flattens the curve. The leave-one-out error
//! is the error if each value is predicted from the others. Gradient descent on this error finds the best width.

use std::process::ExitCode;

use wengert::autograd::transforms::value_and_grad;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("24_kernels", "Kernel regression with a learned width");
    run(options.count("steps", 40, "Number of steps of gradient descent"), kernels)
}

/// Returns the predicted values at the points `at` `[m]`: the mean of `y`, weighted by exp(-(distance / width)² / 2).
/// If `leave_out` is true, a point's own value is left out of its mean; then `at` must be `x`. (Nadaraya and Watson 1964.)
fn predict<'t>(
    at: Var<'t, f64>,
    x: Var<'t, f64>,
    y: Var<'t, f64>,
    width: Var<'t, f64>,
    leave_out: bool,
) -> Var<'t, f64> {
    let (m, n) = (at.shape()[0], x.shape()[0]);
    let mut exponent = ((at.unsqueeze(1).expand([m, n]) - x) / width).square() * -0.5;
    if leave_out {
        // A point does not predict itself: its own weight is 0.
        exponent -= Tensor::<f64>::eye(n) * 1e9;
    }
    exponent.softmax(1).matmul(y)
}

fn kernels(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let x = Tensor::<f64>::rand([120], generator) * 6.0 - 3.0;
    let y = (&x * 2.0).sin() + &x * 0.3 + Tensor::randn([120], generator) * 0.25;

    let mut log_width = Tensor::scalar(0.0f64); // the width is positive, so its logarithm is learned
    let steps: usize = options.get("steps");
    for step in 0..=steps {
        let error = formula!(|[log_width]| {
            let [x, y] = [&x, &y].map(|data| log_width.tape().constant(data));
            (predict(x, x, y, log_width.exp(), true) - y).square().mean(..)
        });
        let (loss, [slope]) = value_and_grad(error, [&log_width]);
        if step % 10 == 0 {
            println!("step {step:>2}   width {:.4}   error {:.4}", log_width.exp().item(), loss);
        }
        log_width -= &(slope * 1.5);
    }
    let at = Tensor::<f64>::linspace(-3.0, 3.0, 241);
    let charts = [0.02, log_width.exp().item(), 1.0].map(|width| {
        let tape = Tape::new();
        let [at_, x_, y_, width_] = [&at, &x, &y, &Tensor::scalar(width)].map(|data| tape.constant(data));
        let curve = predict(at_, x_, y_, width_, false).value();
        let chart = Chart::new(format!("width {width:.2}"), "x", "y").ranges(-3.0..3.0, -2.5..2.5);
        let chart = chart.points("", 7, x.iter().zip(y.iter())).line("prediction", 1, at.iter().zip(curve.to_vec()));
        chart.dashes("truth", 0, at.iter().map(|x| (x, (2.0 * x).sin() + 0.3 * x)))
    });
    options.write("kernels.svg", row_svg(&charts)?)
}
