//! 31. Newton's method: a mixture of three normal distributions, fitted in a few steps.
//!
//! Gradient descent knows the slope. Newton's method also knows how the slope changes: it solves H s = -g with the gradient g and the
//! Hessian matrix H of all parameters, and makes the step s. Far from the minimum a Hessian may have negative curvature. Then a multiple of
//! the identity is added until a Cholesky factor exists (K. Levenberg 1944, D. Marquardt 1963). Close to the minimum each step doubles the
//! number of right digits.

use std::f64::consts::TAU;
use std::process::ExitCode;

use wengert::autograd::transforms::{TreeLayout, hessian, infer, ravel, value_and_grad};
use wengert::linalg::prelude::*;
use wengert::prelude::*;
use wengert::tensor::ops::PadMode;
use wengert_course::{Chart, Options, Result, row_svg, run};

/// The weight, the mean and the deviation of each true distribution.
const TRUTH: [(f64, f64, f64); 3] = [(0.5, -2.0, 0.6), (0.3, 0.5, 0.4), (0.2, 2.5, 0.9)];

fn main() -> ExitCode {
    let options = Options::new("31_mixture_newton", "A mixture of normal distributions by Newton's method");
    run(options.count("steps", 25, "Largest number of steps"), mixture)
}

/// Returns the logarithms `[n]` of the density of a mixture at points `[n]`. The parameters have one element for each
/// part (normal distribution). The weights are scores of a softmax, and the deviations are logarithms.
fn log_density<'t>(x: Var<'t, f64>, [weights, means, deviations]: [Var<'t, f64>; 3]) -> Var<'t, f64> {
    let distance = (x.unsqueeze(1) - means) / deviations.exp(); // [n, parts]
    let parts = weights.log_softmax(0) - deviations - distance.square() * 0.5 - 0.5 * TAU.ln();
    parts.logsumexp(1)
}

/// Returns the weights, means and deviations of all normal distributions. `theta` lacks the last weight, which is fixed at 0, because the
/// softmax depends only on the differences of weights.
fn all<'t>(theta: Var<'t, f64>, layout: &TreeLayout<[Shape; 3]>) -> [Var<'t, f64>; 3] {
    let [weights, means, deviations] = layout.unravel(&theta);
    [weights.pad(&[0, 1], PadMode::Constant(0.0)), means, deviations]
}

fn samples(count: usize, generator: &mut Generator) -> Tensor<f64> {
    let parts = TRUTH.map(|(weight, mean, deviation)| {
        Tensor::<f64>::randn([(weight * count as f64) as usize], generator) * deviation + mean
    });
    cat(&parts, 0)
}

/// Returns the step of Newton's method, and the damping: the multiple of the identity that makes the Hessian positive definite.
fn newton(gradient: &Tensor<f64>, hessian: &Tensor<f64>, mut damping: f64) -> (Tensor<f64>, f64) {
    let n = gradient.numel();
    loop {
        let curved = hessian + Tensor::<f64>::eye(n) * damping;
        if let Ok(factor) = curved.try_cholesky() {
            let step = gradient.unsqueeze(1).cholesky_solve(&factor, Triangle::Lower).flatten(0, -1);
            return (-step, damping);
        }
        damping = (damping * 10.0).max(1e-3);
    }
}

fn mixture(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let x = samples(600, generator);
    // The elements of `guess` are the weights before the softmax, the means, and the logarithms of the deviations.
    let guess = [Tensor::from([0.0, 0.0]), Tensor::from([-1.0, 0.0, 1.0]), Tensor::from([0.0, 0.0, 0.0])];
    let (mut theta, layout) = ravel(&guess);
    let loss = formula!(|theta| -log_density(theta.tape().constant(&x), all(theta, &layout)).mean(..));

    let start = theta.clone();
    let mut damping = 1.0;
    let steps: usize = options.get("steps");
    for step in 0..=steps {
        let (value, gradient) = value_and_grad(&loss, &theta);
        let length = gradient.norm(2).item();
        println!("step {step:>2}   loss {value:.10}   gradient {length:.1e}   damping {damping:.0e}");
        if length < 1e-8 {
            break;
        }
        let curvature = hessian(&loss, &theta);
        // A step that does not decrease the loss is computed again with ten times the damping.
        loop {
            let (move_, used) = newton(&gradient, &curvature, damping);
            let next = &theta + &move_;
            let better = infer(|theta| -log_density(theta.tape().constant(&x), all(theta, &layout)).mean(..), &next)
                .item()
                <= value;
            if better || used > 1e9 {
                (theta, damping) = (next, if used > 1e-6 { used / 10.0 } else { 0.0 });
                break;
            }
            damping = (used * 10.0).max(1e-3);
        }
    }

    let line = Tensor::<f64>::linspace(-5.0, 6.0, 221);
    let density = |theta: &Tensor<f64>| {
        infer(|theta| log_density(theta.tape().constant(&line), all(theta, &layout)).exp(), theta)
    };
    let curve = |theta: &Tensor<f64>| line.to_vec().into_iter().zip(density(theta).to_vec()).collect::<Vec<_>>();
    let bars = x.histc(44, -5.0, 6.0) * (4.0 / x.numel() as f64);
    let bars = bars.to_vec().into_iter().enumerate().map(|(k, height)| (-5.0 + (k as f64 + 0.5) / 4.0, height));
    let chart = Chart::new("a mixture of three normal distributions", "x", "density").points("data", 7, bars);
    let chart = chart.dashes("at the start", 0, curve(&start)).line("fitted", 1, curve(&theta));
    options.write("mixture.svg", row_svg(&[chart])?)
}
