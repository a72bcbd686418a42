//! A mixture of ten normal distributions that approximates a density known up to a factor. A port of `mixture_variational_inference.py` of
//! HIPS/autograd. The sum over the ten components is exact, so that only the draws from each component are random (A. Graves, 2016,
//! arXiv:1607.05690).

use std::process::ExitCode;

use wengert::autograd::transforms::{TreeLayout, infer, ravel};
use wengert::distributions::prelude::*;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};
use wengert_ports::RandomState;

fn main() -> ExitCode {
    let options = Options::new("mixture_variational_inference", "A mixture that comes close to a given density");
    run(options.count("steps", 2000, "Number of steps of the optimiser"), inference)
}

/// Returns the initial parameters: the logits `[10]`, then two means and two logarithms of deviations for each component, `[10, 4]`.
pub fn start() -> [Tensor<f64>; 2] {
    let settings = RandomState::new(0).randn([10, 4]) * 0.1;
    [Tensor::ones([10]), settings + Tensor::from([-1.0, -1.0, -5.0, -5.0])]
}

/// Returns the logarithms `[…]` of the target density at points `[…, 2]`. A point consists of a mean and the logarithm of a deviation.
pub fn log_target<'t>(x: Var<'t, f64>) -> Var<'t, f64> {
    let (mean, log_deviation) = (x.select(-1, 0), x.select(-1, 1));
    let part = |middle: f64, shift: f64| {
        let [middle, shift] = [middle, shift].map(|number| x.tape().constant(number));
        Normal::new(shift, 1.35).log_prob(log_deviation) + Normal::new(middle, log_deviation.exp()).log_prob(mean)
    };
    part(-0.5, 0.0).logaddexp(part(0.5, 0.1))
}

/// Returns the mixture of the normal distributions that `settings` describes, weighted by softmax(`logits`).
pub fn mixture<'t>(
    [logits, settings]: [Var<'t, f64>; 2],
) -> MixtureSameFamily<Independent<Normal<Var<'t, f64>>>, Var<'t, f64>> {
    let parts = Normal::new(settings.slice(1, ..2), settings.slice(1, 2..).exp());
    MixtureSameFamily::new(Categorical::from_logits(logits), Independent::new(parts, 1))
}

/// Returns minus an estimate of the evidence lower bound (ELBO), from noise `[10, n, 2]`: n draws for each component.
pub fn objective<'t>([logits, settings]: [Var<'t, f64>; 2], noise: &Tensor<f64>) -> Var<'t, f64> {
    let part = settings.unsqueeze(1);
    let x = part.slice(2, ..2) + part.slice(2, 2..).exp() * noise;
    let gaps = log_target(x) - mixture([logits, settings]).log_prob(x);
    -(gaps.mean(1) * logits.softmax(0)).sum(..)
}

/// The state of the optimisation.
pub struct Fit {
    /// The logits, the means and the logarithms of the deviations of all components, as one vector.
    pub theta: Parameter<f64>,
    layout: TreeLayout<[Shape; 2]>,
    adam: Adam<f64>,
    random: RandomState,
}

impl Fit {
    /// Returns the initial state.
    pub fn at_start() -> Self {
        let (theta, layout) = ravel(&start());
        Fit { theta: Parameter::new(theta), layout, adam: Adam::new(0.1), random: RandomState::new(0) }
    }

    /// Makes one step of Adam, and returns the estimate of the evidence lower bound (ELBO) before this step.
    pub fn step(&mut self) -> f64 {
        let noise = self.random.randn([10, 40, 2]);
        let (loss, gradients) = Tape::new()
            .value_and_gradients(|tape| objective(self.layout.unravel(&tape.parameter(&self.theta)), &noise));
        self.adam.step(&mut self.theta, &gradients);
        -loss
    }
}

fn inference(options: &Options) -> Result {
    let mut fit = Fit::at_start();
    for step in 1..=options.get("steps") {
        let bound = fit.step();
        if step % 200 == 0 {
            println!("step {step:>4}   lower bound {bound:.4}");
        }
    }
    picture(options, &fit)
}

fn picture(options: &Options, fit: &Fit) -> Result {
    // The densities at the corners of the 160 x 160 cells of a chart.
    let (theta, layout) = (&fit.theta.value, &fit.layout);
    let line = |low: f64, high: f64| Tensor::<f64>::linspace(low, high, 161);
    let [x, y] = [line(-2.0, 2.0).expand([161, 161]), line(-4.0, 2.0).unsqueeze(1).expand([161, 161])];
    let corners = stack(&[x, y], 2);
    let target = infer(log_target, &corners).exp();
    let found = infer(|theta| mixture(layout.unravel(&theta)).log_prob(&corners), theta).exp();
    let draws = infer(|theta| mixture(layout.unravel(&theta)).sample([51], &mut Generator::new(0)), theta);
    let charts = [("the target", target), ("the mixture", found)].map(|(title, density)| {
        let top = density.amax(..).item();
        let chart = Chart::new(title, "mean", "log deviation").ranges(-2.0..2.0, -4.0..2.0);
        let chart = chart.contours(&[0.02, 0.1, 0.3, 0.5, 0.7, 0.9].map(|share| share * top), |x, y| {
            let [column, row] = [(x + 2.0) * 40.0, (y + 4.0) * 160.0 / 6.0].map(|place| place.round() as usize);
            density.get(&[row, column]).unwrap_or(0.0)
        });
        let draws = draws.to_vec();
        let inside = |p: &(f64, f64)| p.0.abs() < 2.0 && (-4.0..2.0).contains(&p.1);
        chart.points("", 1, draws.chunks(2).map(|p| (p[0], p[1])).filter(inside))
    });
    options.write("mixture.svg", row_svg(&charts)?)
}
