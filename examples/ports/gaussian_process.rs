//! A Gaussian process whose mean, noise, height and length scales maximise the likelihood of the data. A port of `gaussian_process.py` of
//! HIPS/autograd.

use std::process::ExitCode;

use wengert::distributions::prelude::*;
use wengert::linalg::prelude::*;
use wengert::nn::Lbfgs;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};
use wengert_ports::RandomState;

fn main() -> ExitCode {
    run(Options::new("gaussian_process", "A Gaussian process, fitted to the likelihood of its data"), process)
}

/// Returns 20 points `[20, 1]` and noisy values `[20]` of a cosine.
pub fn data() -> [Tensor<f64>; 2] {
    let x = cat(&[Tensor::<f64>::linspace(0.0, 3.0, 10), Tensor::linspace(6.0, 8.0, 10)], 0);
    let y = (x.cos() + RandomState::new(0).randn([20]) * 0.1) / 2.0;
    [((x - 4.0) / 2.0).unsqueeze(1), y]
}

/// Returns the initial parameters: the mean, then the logarithms of the noise, of the height and of the lengths.
pub fn start(count: usize) -> Tensor<f64> {
    RandomState::new(0).randn([count]) * 0.1
}

/// Returns the covariances `[m, n]` of points `[m, d]` and `[n, d]`: height exp(-Σ ((x - y) / length)² / 2).
fn covariances<'t>(theta: Var<'t, f64>, x: Var<'t, f64>, y: Var<'t, f64>) -> Var<'t, f64> {
    let (height, lengths) = (theta.select(0, 2).exp(), theta.slice(0, 3..).exp());
    let distances = (x / lengths).unsqueeze(1) - (y / lengths).unsqueeze(0);
    height * (distances.square().sum(-1) * -0.5).exp()
}

/// Returns the distribution of the noisy values at points `[n, d]`.
fn noisy<'t>(theta: Var<'t, f64>, x: Var<'t, f64>) -> MultivariateNormal<Var<'t, f64>> {
    let n = x.shape()[0];
    let noise = theta.select(0, 1).exp() + 0.0001;
    MultivariateNormal::new(theta.select(0, 0).expand([n]), covariances(theta, x, x) + noise * Tensor::eye(n))
}

/// Returns minus the logarithm of the density of the values `y` `[n]` at the points `x` `[n, d]`.
pub fn objective<'t>(theta: Var<'t, f64>, x: Var<'t, f64>, y: Var<'t, f64>) -> Var<'t, f64> {
    -noisy(theta, x).log_prob(y)
}

/// Returns the mean and the variance `[2, m]` of the function at new points `[m, d]`, given the data.
pub fn predict<'t>(theta: Var<'t, f64>, at: Var<'t, f64>, x: Var<'t, f64>, y: Var<'t, f64>) -> Var<'t, f64> {
    let (noisy, cross) = (noisy(theta, x), covariances(theta, x, at));
    let weights = cross.cholesky_solve(noisy.scale_tril(), Triangle::Lower);
    let mean = theta.select(0, 0) + (y - noisy.loc()).matmul(weights);
    stack(&[mean, theta.select(0, 2).exp() - (cross * weights).sum(0)], 0)
}

/// Maximizes the likelihood with at most 100 iterations of L-BFGS. Returns the parameters, and minus the logarithm of their likelihood.
pub fn fit(x: &Tensor<f64>, y: &Tensor<f64>) -> (Tensor<f64>, f64) {
    let objective = formula!(|theta| objective(theta, theta.tape().constant(x), theta.tape().constant(y)));
    Lbfgs::new(1.0).strong_wolfe().max_iter(100).minimize(objective, &start(4))
}

fn process(options: &Options) -> Result {
    let [x, y] = data();
    let (theta, loss) = fit(&x, &y);
    println!("log likelihood {:.8}, mean {:.4}", -loss, theta.select(0, 0).item());
    for (k, name) in [(1, "noise"), (2, "height"), (3, "length")] {
        println!("{name} {:.4}", theta.select(0, k).exp().item());
    }
    picture(options, &theta, [&x, &y])
}

fn picture(options: &Options, theta: &Tensor<f64>, [x, y]: [&Tensor<f64>; 2]) -> Result {
    let line = Tensor::<f64>::linspace(-7.0, 7.0, 300);
    let column = line.unsqueeze(1);
    let curves = infer(
        |theta| {
            let [at, x, y] = [&column, x, y].map(|data| theta.tape().constant(data));
            predict(theta, at, x, y)
        },
        theta,
    );
    let (mean, deviation) = (curves.select(0, 0), curves.select(0, 1).sqrt());
    let curve = |values: &Tensor<f64>| line.to_vec().into_iter().zip(values.to_vec()).collect::<Vec<_>>();
    let chart = Chart::new("a Gaussian process", "x", "y").ranges(-7.0..7.0, -1.5..1.5).line("mean", 1, curve(&mean));
    let chart = chart.dashes("95%", 0, curve(&(&mean + &deviation * 1.96)));
    let chart = chart.dashes("", 0, curve(&(&mean - &deviation * 1.96)));
    let points = x.to_vec().into_iter().zip(y.to_vec());
    options.write("process.svg", chart.points("data", 7, points).to_svg()?)
}
