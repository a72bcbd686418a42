//! 26. Per-sample gradients, and a private training step.
//!
//! The gradient of a batch is a mean, in which one unusual sample can dominate. With the gradient of every sample, the step
//! clips each gradient to a bound and adds noise. The noise hides whether one person's sample was in the data. (Abadi et al. 2016,
//! "Deep learning with differential privacy".) A number ε measures how well it hides this. With and without the sample, the
//! probability of any result differs by a factor of at most exp(ε), except with probability δ.

use std::process::ExitCode;

use wengert::nn::per_sample_gradients;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("26_private_step", "Per-sample gradients, clipped, with noise");
    let options = options.count("steps", 150, "Number of steps").positive("bound", 1.0, "Maximum length of a gradient");
    let noise = "Standard deviation of the noise, in units of the bound";
    run(options.positive("noise", 1.0, noise), train)
}

fn loss<'t>(model: &Linear, tape: &'t Tape, x: &Tensor, y: &Tensor<i64>) -> Var<'t> {
    cross_entropy(&model.forward(tape.constant(x)), y)
}

/// Returns the gradients of each sample: weights `[n, 10, 64]` and biases `[n, 10]`, from one pass over the batch.
fn per_sample(model: &Linear, x: &Tensor, y: &Tensor<i64>) -> [Tensor; 2] {
    let classes = one_hot(y, Some(10)).cast::<f32>(); // a variable cannot hold integers
    // The function is written for one sample, `[64]` and `[10]`.
    let gradients =
        per_sample_gradients(model, [x, &classes], |[x, class]| -(model.forward(x).log_softmax(-1) * class).sum(..));
    [0, 1].map(|parameter| gradients[parameter].1.clone())
}

/// The expected number of samples in a batch.
const BATCH: usize = 64;
/// The probability with which the bound on privacy may fail: less than 1 divided by the number of samples.
const DELTA: f64 = 1e-4;

/// Returns the sums of the clipped gradients, with noise, divided by the expected number of samples. The actual number would reveal
/// information about the samples.
fn private_means(gradients: [Tensor; 2], bound: f32, noise: f32, generator: &mut Generator) -> [Tensor; 2] {
    // Each sample has one factor for all elements of its gradients: [n, 1, 1] and [n, 1].
    let squares = gradients[0].flatten(1, 2).square().sum(1) + gradients[1].square().sum(1);
    let factor = (bound / squares.sqrt()).clamp_max(1.0);
    let clipped = [&gradients[0] * factor.reshape([-1, 1, 1]), &gradients[1] * factor.unsqueeze(1)];
    clipped.map(|gradient| {
        let sum = gradient.sum(0);
        (&sum + Tensor::randn(sum.shape(), generator) * (noise * bound)) / BATCH as f32
    })
}

/// Returns ε after `steps` steps. Each step uses a random part of the data, to which a sample belongs with probability `q`. The standard
/// deviation of the noise is `sigma` times the bound. (Mironov, Talwar and Zhang 2019, "Rényi differential privacy of the sampled Gaussian
/// mechanism", 3.3; the conversion to ε and δ is proposition 3 of Mironov 2017.)
fn epsilon(q: f64, sigma: f64, steps: usize) -> f64 {
    let of_order = |order: i32| {
        // ln Σ C(order, k) (1 - q)^(order - k) q^k exp((k² - k) / (2 σ²)), with the largest term outside of the sum.
        let mut log_binomial = 0.0;
        let terms: Vec<f64> = (0..=order)
            .map(|k| {
                if k > 0 {
                    log_binomial += (f64::from(order - k + 1) / f64::from(k)).ln();
                }
                let odds = f64::from(order - k) * (1.0 - q).ln() + f64::from(k) * q.ln();
                log_binomial + odds + f64::from(k * k - k) / (2.0 * sigma * sigma)
            })
            .collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln();
        let rest = f64::from(order - 1);
        (steps as f64 * log_sum - DELTA.ln()) / rest
    };
    (2..=64).map(of_order).fold(f64::INFINITY, f64::min)
}

/// Prints the largest difference between the mean of the samples' gradients of the weights and the gradient of the
/// batch. Also prints the range of the lengths of the samples' gradients.
fn compare_means(model: &Linear, x: &Tensor, y: &Tensor<i64>) {
    let [weights, _] = per_sample(model, x, y);
    let batch = loss(model, &Tape::new(), x, y).backward();
    let difference = (weights.mean(0) - batch.of(&model.weight)).abs().amax(..).item();
    println!(
        "   {} gradients of {}, largest difference of the mean {difference:.1e}",
        weights.shape()[0],
        model.weight.value.shape()
    );
    let lengths = weights.flatten(1, 2).square().sum(1).sqrt();
    println!("   their lengths: {:.2} to {:.2}\n", lengths.amin(..).item(), lengths.amax(..).item());
    assert!(difference < 1e-5);
}

fn train(options: &Options) -> Result {
    let steps: usize = options.get("steps");
    let (bound, noise): (f32, f32) = (options.get("bound"), options.get("noise"));
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;

    println!("1. The mean of the samples' gradients is the batch's gradient\n");
    let model = Linear::new(64, 10, generator);
    let (x, y) = train.batch(&(0..64).collect::<Vec<_>>())?;
    compare_means(&model, &x, &y);

    println!("2. Training with and without privacy\n");
    let q = BATCH as f64 / train.len() as f64;
    let epsilon = epsilon(q, f64::from(noise), steps);
    let mut curves = Vec::new();
    for (name, private) in [("plain", false), ("private", true)] {
        let mut model = Linear::new(64, 10, &mut Generator::new(options.seed()));
        let mut curve = Vec::new();
        for step in 0..=steps {
            if step % 10 == 0 {
                let right = accuracy(&model.forward(test.inputs()), test.targets());
                curve.push((step as f64, right));
            }
            if step == steps {
                break;
            }
            // Each sample is in the batch with probability q, independently of the others (Poisson sampling).
            let draws = Tensor::<f64>::rand([train.len()], generator);
            let rows: Vec<usize> = draws.iter().enumerate().filter(|(_, draw)| *draw < q).map(|(row, _)| row).collect();
            if rows.is_empty() && !private {
                continue;
            }
            let (x, y) = train.batch(&rows)?;
            let gradients = per_sample(&model, &x, &y);
            let means = match private {
                true => private_means(gradients, bound, noise, generator),
                false => gradients.map(|gradient| gradient.mean(0)),
            };
            for (parameter, mean) in model.parameters_mut().into_iter().zip(means) {
                parameter.value -= &(mean * 0.3);
            }
        }
        let last = curve.last().map_or(0.0, |point| point.1);
        let privacy = if private { format!("ε = {epsilon:.2} at δ = {DELTA}") } else { "no bound".to_owned() };
        println!("   {name:<8} {:.2}% of the held-out digits are right; {privacy}", 100.0 * last);
        curves.push((name, curve));
    }
    let mut chart = Chart::new("Held-out digits with the right class", "step", "share");
    for (colour, (name, curve)) in curves.into_iter().enumerate() {
        chart = chart.line(name, colour, curve);
    }
    println!();
    options.write("private.svg", chart.to_svg()?)?;
    Ok(())
}
