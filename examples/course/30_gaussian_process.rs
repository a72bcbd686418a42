//! 30. A Gaussian process: a curve with a band that shows its uncertainty, and a learned length scale for each coordinate.
//!
//! A Gaussian process is a normal distribution over functions. The kernel says how much the values at two points vary together. Its
//! parameters are the length scales, the height and the noise. They are learned: they maximise the likelihood of the data. The
//! likelihood contains a Cholesky factor, a solution and a determinant, and the gradient goes through all of them.

use std::f64::consts::TAU;
use std::process::ExitCode;

use wengert::autograd::transforms::ravel;
use wengert::linalg::prelude::*;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

/// The number of data points. Their first coordinates leave a gap from -1 to 1, in which the predictions are less certain.
const POINTS: usize = 40;

fn main() -> ExitCode {
    let options = Options::new("30_gaussian_process", "A curve with a band that tells how sure it is");
    run(options.count("steps", 150, "Number of steps of the optimiser"), process)
}

/// Returns the covariances `[m, n]` of points `[m, d]` and `[n, d]`: height² exp(-Σ ((x - y) / length)² / 2).
fn covariances<'t>(x: Var<'t, f64>, y: Var<'t, f64>, lengths: Var<'t, f64>, height: Var<'t, f64>) -> Var<'t, f64> {
    let distance = (x / lengths).unsqueeze(1) - (y / lengths).unsqueeze(0); // [m, n, d]
    (distance.square().sum(-1) * -0.5).exp() * height.square()
}

/// Returns the lower Cholesky factor `[n, n]` of the covariances of the data with their noise.
fn factor<'t>(x: Var<'t, f64>, [lengths, height, noise]: [Var<'t, f64>; 3]) -> Var<'t, f64> {
    let identity = Tensor::<f64>::eye(x.shape()[0]);
    (covariances(x, x, lengths, height) + noise.square() * identity).cholesky()
}

/// Returns the negative logarithm of the probability density of the values `y` `[n]` at the points `x` `[n, d]`.
fn loss<'t>(x: Var<'t, f64>, y: Var<'t, f64>, settings: [Var<'t, f64>; 3]) -> Var<'t, f64> {
    let l = factor(x, settings);
    let white = l.solve_triangular(y.unsqueeze(1), Triangle::Lower); // L⁻¹ y
    let volume = l.diagonal(0, 0, 1).log().sum(..);
    white.square().sum(..) * 0.5 + volume + 0.5 * TAU.ln() * y.shape()[0] as f64
}

/// Returns the mean and the standard deviation `[m]` of the function at new points, given the data.
fn predict<'t>(at: Var<'t, f64>, x: Var<'t, f64>, y: Var<'t, f64>, settings: [Var<'t, f64>; 3]) -> [Var<'t, f64>; 2] {
    let l = factor(x, settings);
    let [lengths, height, _] = settings;
    let cross = l.solve_triangular(covariances(x, at, lengths, height), Triangle::Lower); // [n, m]
    let white = l.solve_triangular(y.unsqueeze(1), Triangle::Lower);
    let mean = (cross * white).sum(0);
    [mean, (height.square() - cross.square().sum(0)).clamp_min(0.0).sqrt()]
}

fn process(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    // The second coordinate has no influence on the values. The process finds this out.
    let place = Tensor::<f64>::rand([POINTS], generator) * 2.0 + 1.0;
    let side = (Tensor::<f64>::rand([POINTS], generator) - 0.5).sign();
    let x = stack(&[&place * side, Tensor::rand([POINTS], generator) * 6.0 - 3.0], 1);
    let truth = |x: &Tensor<f64>| (x * 2.0).sin() + x * 0.3;
    let y = truth(&x.select(1, 0)) + Tensor::randn([POINTS], generator) * 0.15;

    // The settings are positive, so their logarithms are learned: two lengths, the height, the noise.
    let (logs, layout) = ravel(&[Tensor::from([0.0, 0.0]), Tensor::scalar(0.0), Tensor::scalar(-1.0)]);
    let mut theta = Parameter::new(logs);
    let mut adam = Adam::new(0.05);
    let steps: usize = options.get("steps");
    for step in 0..=steps {
        let (value, gradients) = Tape::new().value_and_gradients(|tape| {
            let settings = layout.unravel(&tape.parameter(&theta)).map(|log| log.exp());
            loss(tape.constant(&x), tape.constant(&y), settings)
        });
        if step % (steps / 5).max(1) == 0 {
            let [lengths, height, noise] = layout.unravel(&theta.value.exp());
            let [first, second] = [0, 1].map(|k| lengths.select(0, k).item());
            println!(
                "step {step:>3}   loss {value:>6.2}   lengths {first:.2} {second:>5.2}   height {:.2}   noise {:.3}",
                height.item(),
                noise.item()
            );
        }
        adam.step(&mut theta, &gradients);
    }

    let line = Tensor::<f64>::linspace(-4.5, 4.5, 181);
    let charts = [("at the start", Tensor::from([0.0, 0.0, 0.0, -1.0])), ("learned", theta.value.clone())].map(
        |(title, logs)| {
            let tape = Tape::new();
            let at = stack(&[line.clone(), Tensor::zeros([181])], 1);
            let [at, x_, y_] = [&at, &x, &y].map(|data| tape.constant(data));
            let settings = layout.unravel(&tape.constant(&logs)).map(|log| log.exp());
            let [mean, deviation] = predict(at, x_, y_, settings).map(|curve| curve.value());
            let curve = |values: Tensor<f64>| line.to_vec().into_iter().zip(values.to_vec()).collect::<Vec<_>>();
            let chart = Chart::new(title, "x", "y").ranges(-4.5..4.5, -3.5..3.5);
            let chart = chart.points("", 7, x.select(1, 0).to_vec().into_iter().zip(y.to_vec()));
            let chart = chart.line("mean", 1, curve(mean.clone())).dashes("truth", 0, curve(truth(&line)));
            let chart = chart.line("two deviations", 2, curve(&mean + &deviation * 2.0));
            chart.line("", 2, curve(&mean - &deviation * 2.0))
        },
    );
    options.write("process.svg", row_svg(&charts)?)
}
