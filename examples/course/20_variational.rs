//! 20. An autoencoder and a variational autoencoder: digits encoded in a few numbers and decoded again.
//!
//! The first network encodes 64 pixels in two numbers, so every digit is a point in the plane. The second network gives a
//! *distribution* for each of its eight numbers and draws from it. The loss keeps these distributions close to a standard
//! normal distribution. Eight numbers drawn from that distribution then give a new digit. (Kingma and Welling 2013,
//! "Auto-encoding variational Bayes".)

use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::plots::image_grid;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("20_variational", "An autoencoder and a variational one");
    run(options.option("epochs", 60, "Number of passes over the digits"), autoencoders)
}

fn network(sizes: [usize; 4], generator: &mut Generator) -> Sequential {
    let [a, b, c, d] = sizes;
    let (first, second) = (Linear::new(a, b, generator), Linear::new(b, c, generator));
    Sequential::new().add(first).add(ReLU).add(second).add(ReLU).add(Linear::new(c, d, generator))
}

#[derive(Module)]
struct Autoencoder {
    encoder: Sequential,
    decoder: Sequential,
}

/// The latent numbers of the variational autoencoder.
const LATENT: usize = 8;

impl Autoencoder {
    /// Returns means and logarithms of variances, `[n, LATENT]` each.
    fn ranges<'t>(&self, x: Var<'t>) -> [Var<'t>; 2] {
        self.encoder.forward(x).chunk_into(1)
    }

    /// Returns the reconstruction loss and the distance of the distributions from a standard normal distribution (Kullback and
    /// Leibler), in nats per digit.
    fn variational_loss<'t>(&self, x: Var<'t>, noise: &Tensor) -> [Var<'t>; 2] {
        let [mean, log_variance] = self.ranges(x);
        // The noise is an input, so a gradient flows through the mean and the variance.
        let drawn = mean + (log_variance * 0.5).exp() * noise;
        let pixels = self.decoder.forward(drawn);
        let n = x.shape()[0] as f32;
        let lost = (pixels - x).square().sum(..) / n * 4.0;
        let far = (mean.square() + log_variance.exp() - log_variance - 1.0).sum(..) * 0.5 / n;
        [lost, far]
    }
}

fn autoencoders(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let batches = DataLoader::new(train.inputs().clone(), 64).shuffle().seed(options.seed());
    plane(options, &batches, &test, generator)?;
    variational(options, &batches, test.inputs(), generator)
}

fn plane(options: &Options, batches: &DataLoader<Tensor>, test: &Samples, generator: &mut Generator) -> Result {
    let (epochs, images) = (options.epochs()?, test.inputs());
    println!("1. Two numbers per digit\n");
    let mut plain =
        Autoencoder { encoder: network([64, 128, 64, 2], generator), decoder: network([2, 64, 128, 64], generator) };
    let mut adam = AdamW::new(3e-3);
    for epoch in 1..=epochs {
        for x in batches.epoch(epoch.into()) {
            let x = x?;
            let (_, gradients) = Tape::training(generator).value_and_gradients(|tape| {
                mse_loss(plain.decoder.forward(plain.encoder.forward(tape.constant(&x))), &x)
            });
            adam.step(&mut plain, &gradients);
        }
        if epoch % 20 == 0 {
            let error = mse_loss(&infer(|x| plain.decoder.forward(plain.encoder.forward(x)), images), images).item();
            println!("epoch {epoch:>3}   held out: mean square error {error:.4}");
        }
    }
    let places = infer(|x| plain.encoder.forward(x), images);
    let mut chart = Chart::new("The held-out digits in the plane", "first number", "second number");
    for digit in 0..10 {
        let of = places.masked_select(&test.targets().eq(digit).unsqueeze(1)).to_vec();
        let points = of.chunks(2).map(|pair| (pair[0].into(), pair[1].into()));
        chart = chart.points(digit.to_string(), digit as usize, points);
    }
    options.write("plane.svg", chart.to_svg()?)?;
    println!();
    Ok(())
}

fn variational(options: &Options, batches: &DataLoader<Tensor>, images: &Tensor, generator: &mut Generator) -> Result {
    println!("2. Eight distributions per digit\n");
    let (encoder, decoder) = (network([64, 128, 64, 2 * LATENT], generator), network([LATENT, 64, 128, 64], generator));
    let mut variational = Autoencoder { encoder, decoder };
    let mut adam = AdamW::new(3e-3);
    for epoch in 1..=2 * options.epochs()? {
        for x in batches.epoch(epoch.into()) {
            let x = x?;
            let noise = Tensor::randn([x.shape()[0], LATENT], generator);
            let (_, gradients) = Tape::training(generator).value_and_gradients(|tape| {
                let [lost, far] = variational.variational_loss(tape.constant(&x), &noise);
                lost + far
            });
            adam.step(&mut variational, &gradients);
        }
        if epoch % 40 == 0 {
            let tape = Tape::new();
            let noise = Tensor::randn([images.shape()[0], LATENT], generator);
            let [lost, far] = variational.variational_loss(tape.constant(images), &noise).map(Var::item);
            println!("epoch {epoch:>3}   held out: {lost:.2} lost, {far:.2} from the normal distribution");
        }
    }
    // Black ink on white paper.
    let picture = |rows: &Tensor| image_grid(&(1.0 - rows.reshape([-1, 1, 8, 8])), &[], 12);
    let few = images.narrow(0, 0, 12);
    let again = infer(|x| variational.decoder.forward(variational.ranges(x)[0]), &few);
    options.write("reconstructions.svg", picture(&cat(&[few, again], 0))?)?;

    let drawn = infer(|z| variational.decoder.forward(z), &Tensor::randn([24, LATENT], generator));
    options.write("samples.svg", picture(&drawn)?)?;
    Ok(())
}
