//! A mixture of ten normal distributions in the plane, fitted to points in the form of a pinwheel. A port of `gmm.py` of HIPS/autograd.

use std::process::ExitCode;

use wengert::autograd::transforms::ravel;
use wengert::distributions::prelude::*;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};
use wengert_ports::{RandomState, newton_cg, pinwheel};

fn main() -> ExitCode {
    let options = Options::new("gmm", "A mixture of normal distributions, fitted to a pinwheel of points");
    run(options.count("steps", 300, "Largest number of steps of Newton's method"), mixture)
}

/// Returns the initial parameters: the logits `[10]`, a root R of each covariance RᵀR `[10, 2, 2]`, and the means `[10, 2]`.
pub fn start() -> [Tensor<f64>; 3] {
    let mut random = RandomState::new(0);
    let logits = random.randn([10]) * 0.1;
    [logits, Tensor::eye(2).expand([10, 2, 2]), random.randn([10, 2]) * 0.1]
}

/// Returns minus the logarithm of the likelihood of points `[n, 2]`. The covariances are RᵀR.
pub fn objective<'t>([logits, roots, means]: [Var<'t, f64>; 3], points: &Tensor<f64>) -> Var<'t, f64> {
    let parts = MultivariateNormal::new(means, roots.transpose(-2, -1).matmul(roots));
    -MixtureSameFamily::new(Categorical::from_logits(logits), parts).log_prob(points).sum(..)
}

/// Returns the parameters after at most `steps` steps of Newton's method, and the objective for these parameters.
pub fn fit(points: &Tensor<f64>, steps: usize) -> ([Tensor<f64>; 3], f64) {
    let (start, layout) = ravel(&start());
    let objective = formula!(|theta| objective(layout.unravel(&theta), points));
    let (theta, loss) = newton_cg(objective, &start, steps);
    (layout.unravel(&theta), loss)
}

fn mixture(options: &Options) -> Result {
    let points = pinwheel(100);
    let ([logits, roots, means], loss) = fit(&points, options.get("steps"));
    println!("log likelihood {:.6}", -loss);
    for (share, mean) in logits.softmax(0).to_vec().into_iter().zip(means.to_vec().chunks(2)) {
        println!("share {share:.3} around ({:5.2}, {:5.2})", mean[0], mean[1]);
    }
    picture(options, points, roots, means)
}

fn picture(options: &Options, points: Tensor<f64>, roots: Tensor<f64>, means: Tensor<f64>) -> Result {
    // Each point of an ellipse is two standard deviations away from the mean.
    let angles = Tensor::<f64>::linspace(0.0, std::f64::consts::TAU, 100);
    let circle = stack(&[angles.cos(), angles.sin()], 1) * 2.0;
    let ellipses = circle.matmul(roots) + means.unsqueeze(1);
    let pairs = |points: Tensor<f64>| points.to_vec().chunks(2).map(|p| (p[0], p[1])).collect::<Vec<_>>();
    let chart = Chart::new("a mixture of ten normal distributions", "x", "y").points("data", 7, pairs(points));
    let chart = ellipses.unbind(0).into_iter().fold(chart, |chart, ellipse| chart.line("", 1, pairs(ellipse)));
    options.write("mixture.svg", chart.to_svg()?)
}
