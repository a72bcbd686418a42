//! 26. Per-sample gradients, and a private training step.
//!
//! The gradient of a batch is a mean, in which one unusual sample can dominate. With the gradient of every sample, the step
//! clips each gradient to a bound. It adds noise that hides whether a sample was in the batch. (Abadi et al. 2016, "Deep
//! learning with differential privacy".)

use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::per_sample_gradients;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("26_private_step", "Per-sample gradients, clipped, with noise");
    let options = options.option("steps", 150, "Number of steps").option("bound", 1.0, "Maximum length of a gradient");
    run(options.option("noise", 0.6, "Standard deviation of the noise, in units of the bound"), train)
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

/// Returns the means of the clipped gradients, with noise.
fn private_means(gradients: [Tensor; 2], bound: f32, noise: f32, generator: &mut Generator) -> [Tensor; 2] {
    // Each sample has one factor for all elements of its gradients: [n, 1, 1] and [n, 1].
    let squares = gradients[0].flatten(1, 2).square().sum(1) + gradients[1].square().sum(1);
    let factor = (bound / squares.sqrt()).clamp_max(1.0);
    let clipped = [&gradients[0] * factor.reshape([-1, 1, 1]), &gradients[1] * factor.unsqueeze(1)];
    let deviation = noise * bound / gradients[0].shape()[0] as f32;
    clipped.map(|gradient| {
        let mean = gradient.mean(0);
        &mean + Tensor::randn(mean.shape(), generator) * deviation
    })
}

fn train(options: &Options) -> Result {
    let steps: usize = options.get("steps")?;
    let (bound, noise): (f32, f32) = (options.get("bound")?, options.get("noise")?);
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;

    println!("1. The mean of the samples' gradients is the batch's gradient\n");
    let model: Linear = Linear::new(64, 10, generator);
    let (x, y) = train.batch(&(0..64).collect::<Vec<_>>())?;
    let [weights, _] = per_sample(&model, &x, &y);
    let batch = loss(&model, &Tape::new(), &x, &y).backward();
    let difference = (weights.mean(0) - batch.of(&model.weight)).abs().amax(..).item();
    println!(
        "   {} gradients of {}, largest difference of the mean {difference:.1e}",
        weights.shape()[0],
        model.weight.value.shape()
    );
    let lengths = weights.flatten(1, 2).square().sum(1).sqrt();
    println!("   their lengths: {:.2} to {:.2}\n", lengths.amin(..).item(), lengths.amax(..).item());
    assert!(difference < 1e-5);

    println!("2. Training with and without privacy\n");
    let mut curves = Vec::new();
    for (name, private) in [("plain", false), ("private", true)] {
        let mut model: Linear = Linear::new(64, 10, &mut Generator::new(options.seed()));
        let mut curve = Vec::new();
        for step in 0..=steps {
            if step % 10 == 0 {
                let right = accuracy(&infer(|x| model.forward(x), test.inputs()), test.targets());
                curve.push((step as f64, right));
            }
            let rows = Tensor::randint(0, train.len() as i64, [64], generator);
            let (x, y) = (train.inputs().index_select(0, &rows), train.targets().index_select(0, &rows));
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
        println!("   {name:<8} {:.2}% of the held-out digits have the right class", 100.0 * last);
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
