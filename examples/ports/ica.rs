//! Independent components: 100 observed series as mixtures of two hidden ones. The noise of the model has heavy tails. A port of `ica.py`
//! of HIPS/autograd.

use std::process::ExitCode;

use wengert::autograd::transforms::ravel;
use wengert::distributions::prelude::*;
use wengert::nn::Lbfgs;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};
use wengert_ports::RandomState;

/// The number of observed series.
const OBSERVED: usize = 100;
/// The number of hidden series.
const HIDDEN: usize = 2;
const SAMPLES: usize = 200;

fn main() -> ExitCode {
    let options = Options::new("ica", "Hidden series behind many observed ones");
    run(options.count("steps", 1000, "Largest number of moves of the optimiser"), components)
}

/// Returns the true weights `[100, 2]`, the true hidden values `[2, 200]`, and the observed values `[200, 100]`.
pub fn data() -> [Tensor<f64>; 3] {
    let mut random = RandomState::new(0);
    let waves = [0.0, 1.0].map(|k| Tensor::<f64>::linspace(0.0, 4.0 + k * 3.2, OBSERVED).sin());
    let (weights, hidden) = (stack(&waves, 1), random.randn([HIDDEN, SAMPLES]));
    let hidden = hidden.index_select(1, &hidden.select(0, 0).argsort(0, false));
    let observed = weights.matmul(&hidden).t() + random.randn([SAMPLES, OBSERVED]);
    [weights, hidden, observed]
}

/// Returns the initial parameters: the weights `[100, 2]`, the hidden values `[2, 200]`, the logarithm of the noise's scale.
pub fn start() -> [Tensor<f64>; 3] {
    let mut random = RandomState::new(0);
    [random.randn([OBSERVED, HIDDEN]), random.randn([HIDDEN, SAMPLES]), random.randn([])]
}

/// Returns minus the logarithm of the density of the observed values `[n, d]`, divided by n.
pub fn objective<'t>([weights, hidden, noise]: [Var<'t, f64>; 3], observed: &Tensor<f64>) -> Var<'t, f64> {
    let means = weights.matmul(hidden).t();
    let series = StudentT::new(noise.tape().constant(2.4), means, noise.exp());
    -series.log_prob(observed).sum(..) / observed.shape()[0] as f64
}

/// Returns the parameters after at most `steps` iterations of L-BFGS, and the objective for these parameters.
pub fn fit(observed: &Tensor<f64>, steps: usize) -> ([Tensor<f64>; 3], f64) {
    let (start, layout) = ravel(&start());
    let mut lbfgs = Lbfgs::new(1.0).strong_wolfe().max_iter(steps);
    let (theta, loss) = lbfgs.minimize(|theta| objective(layout.unravel(&theta), observed), &start);
    (layout.unravel(&theta), loss)
}

fn components(options: &Options) -> Result {
    let [true_weights, true_hidden, observed] = data();
    let ([weights, hidden, noise], loss) = fit(&observed, options.get("steps"));
    println!("log likelihood {:.6} of a sample, noise {:.4}", -loss, noise.exp().item());
    let gap = weights.matmul(&hidden) - true_weights.matmul(&true_hidden);
    println!("typical error of a mean {:.3}, where the noise is 1", gap.square().mean(..).sqrt().item());
    picture(options, [("true", true_weights, true_hidden), ("found, up to a linear map", weights, hidden)])
}

fn picture(options: &Options, panels: [(&str, Tensor<f64>, Tensor<f64>); 2]) -> Result {
    let pairs = |x: Tensor<f64>| x.to_vec().chunks(2).map(|p| (p[0], p[1])).collect::<Vec<_>>();
    let charts = panels.map(|(title, weights, hidden)| {
        let chart = Chart::new(title, "first", "second").points("hidden values", 7, pairs(hidden.t()));
        chart.points("weights", 1, pairs(weights))
    });
    options.write("components.svg", row_svg(&charts)?)
}
