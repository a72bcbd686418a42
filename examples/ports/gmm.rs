//! A mixture of ten normal distributions in the plane, fitted to points in the form of a pinwheel. A port of `gmm.py` of HIPS/autograd.

use std::process::ExitCode;

use wengert::autograd::transforms::{hvp, infer, ravel, value_and_grad};
use wengert::distributions::prelude::*;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};
use wengert_ports::{RandomState, pinwheel};

fn main() -> ExitCode {
    let options = Options::new("gmm", "A mixture of normal distributions, fitted to a pinwheel of points");
    run(options.count("steps", 300, "Largest number of steps of Newton's method"), mixture)
}

/// Returns the parameters at the start: the logits `[10]`, the roots of the covariances `[10, 2, 2]`, the means `[10, 2]`.
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

/// Returns d with H d ≈ -g for the Hessian H, by conjugate gradients that end at negative curvature (R. S. Dembo and T. Steihaug, 1983).
fn direction(gradient: &Tensor<f64>, hessian_times: impl Fn(&Tensor<f64>) -> Tensor<f64>) -> Tensor<f64> {
    let (mut d, mut rest, mut p) = (gradient * 0.0, gradient.clone(), -gradient);
    let size = gradient.abs().sum(..).item();
    while rest.abs().sum(..).item() > size * size.sqrt().min(0.5) {
        let hp = hessian_times(&p);
        let (curvature, square) = (p.dot(&hp).item(), rest.dot(&rest).item());
        if curvature <= 0.0 {
            let first = d.count_nonzero(..).item() == 0;
            return if first { p * (square / -curvature) } else { d };
        }
        d += &p * (square / curvature);
        rest += hp * (square / curvature);
        p = p * (rest.dot(&rest).item() / square) - &rest;
    }
    d
}

/// Returns the parameters after at most `steps` steps of Newton's method, and the objective there.
pub fn fit(points: &Tensor<f64>, steps: usize) -> ([Tensor<f64>; 3], f64) {
    let (mut theta, layout) = ravel(&start());
    let objective = formula!(|theta| objective(layout.unravel(&theta), points));
    let (mut loss, mut gradient) = value_and_grad(objective, &theta);
    for _ in 0..steps {
        let mut step = direction(&gradient, |p| hvp(objective, &theta, p));
        // The step is halved until the loss falls by a share of what the gradient promises.
        while infer(objective, &(&theta + &step)).item() > loss + 1e-4 * gradient.dot(&step).item() {
            step *= 0.5;
        }
        theta += &step;
        (loss, gradient) = value_and_grad(objective, &theta);
        if step.abs().mean(..).item() < 1e-5 {
            break;
        }
    }
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
    // The points of an ellipse are two deviations from the mean.
    let angles = Tensor::<f64>::linspace(0.0, std::f64::consts::TAU, 100);
    let circle = stack(&[angles.cos(), angles.sin()], 1) * 2.0;
    let ellipses = circle.matmul(roots) + means.unsqueeze(1);
    let pairs = |points: Tensor<f64>| points.to_vec().chunks(2).map(|p| (p[0], p[1])).collect::<Vec<_>>();
    let chart = Chart::new("a mixture of ten normal distributions", "x", "y").points("data", 7, pairs(points));
    let chart = ellipses.unbind(0).into_iter().fold(chart, |chart, ellipse| chart.line("", 1, pairs(ellipse)));
    options.write("mixture.svg", chart.to_svg()?)
}
