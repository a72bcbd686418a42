//! 20. A variational autoencoder: random draws inside a network, and new digits.
//!
//! The encoder gives a *distribution* for each of eight numbers, a mean and a variance, and the network draws from it. A draw has no
//! derivative. So the noise is drawn first, as an input: number = mean + deviation · noise. This is the reparametrisation trick.
//! A second term of the loss, the Kullback-Leibler divergence, keeps the distributions close to a standard normal distribution.
//! Numbers drawn from that distribution then decode to new digits. (Kingma and Welling 2013, "Auto-encoding variational Bayes".)

use std::process::ExitCode;

use wengert::nn::plots::image_grid;
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("20_variational", "A variational autoencoder draws new digits");
    run(options.count("epochs", 120, "Number of passes over the digits"), variational)
}

/// The number of latent variables of each digit. They are drawn at random from the encoder's distributions.
const LATENT: usize = 8;

#[derive(Module)]
struct Autoencoder {
    encoder: Sequential,
    decoder: Sequential,
}

impl Autoencoder {
    fn new(generator: &mut Generator) -> Self {
        Autoencoder {
            encoder: Sequential::mlp(&[64, 128, 64, 2 * LATENT], ReLU, generator),
            decoder: Sequential::mlp(&[LATENT, 64, 128, 64], ReLU, generator),
        }
    }

    /// Returns the means and the logarithms of the variances of the latent variables, `[n, LATENT]` each.
    fn distributions<'t>(&self, x: Var<'t>) -> [Var<'t>; 2] {
        self.encoder.forward(x).chunk_into(1)
    }

    /// Returns the reconstruction loss, and the Kullback-Leibler divergence of the distributions from a standard normal
    /// distribution, in nats per digit.
    fn loss<'t>(&self, x: Var<'t>, noise: &Tensor) -> [Var<'t>; 2] {
        let [mean, log_variance] = self.distributions(x);
        // The noise is an input, so a gradient flows through the mean and the variance.
        let drawn = mean + (log_variance * 0.5).exp() * noise;
        let pixels = self.decoder.forward(drawn);
        let n = x.shape()[0] as f32;
        let reconstruction = (pixels - x).square().sum(..) / n * 4.0;
        let divergence = (mean.square() + log_variance.exp() - log_variance - 1.0).sum(..) * 0.5 / n;
        [reconstruction, divergence]
    }
}

fn variational(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let images = test.inputs();
    let batches = DataLoader::new(train.inputs().clone(), 64).shuffle().seed(options.seed());
    let (mut model, mut adam) = (Autoencoder::new(generator), AdamW::new(3e-3));
    for epoch in 1..=options.get("epochs") {
        for x in batches.epoch(epoch) {
            let x = x?;
            let noise = Tensor::randn([x.shape()[0], LATENT], generator);
            let (_, gradients) = Tape::new().value_and_gradients(|tape| {
                let [reconstruction, divergence] = model.loss(tape.constant(&x), &noise);
                reconstruction + divergence
            });
            adam.step(&mut model, &gradients);
        }
        if epoch % 20 == 0 {
            let tape = Tape::new();
            let noise = Tensor::randn([images.shape()[0], LATENT], generator);
            let [reconstruction, divergence] = model.loss(tape.constant(images), &noise).map(Var::item);
            println!(
                "epoch {epoch:>3}   held out: {reconstruction:.2} lost, {divergence:.2} from the normal distribution"
            );
        }
    }
    println!();

    // Twelve held-out digits, and below them the same digits after encoding and decoding.
    let originals = images.narrow(0, 0, 12);
    let decoded = infer(|x| model.decoder.forward(model.distributions(x)[0]), &originals);
    let names = test.targets().iter().take(12).map(|digit| format!("a {digit}"));
    let captions: Vec<String> = names.chain((0..12).map(|_| "decoded".to_owned())).collect();
    options.write("reconstructions.svg", picture(&cat(&[originals, decoded], 0), &captions)?)?;

    // New digits, and the digit of the most similar image of the training part: [24, 1, 64] - [n, 64].
    let drawn = model.decoder.forward(&Tensor::randn([24, LATENT], generator));
    let nearest = (drawn.unsqueeze(1) - train.inputs()).square().sum(2).argmin(1);
    let digits = train.targets().index_select(0, &nearest);
    let captions: Vec<String> = digits.iter().map(|digit| format!("like a {digit}")).collect();
    options.write("samples.svg", picture(&drawn, &captions)?)
}

/// Draws rows of pixels as black ink on white paper.
fn picture(rows: &Tensor, captions: &[String]) -> Result<String> {
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    Ok(image_grid(&(1.0 - rows.reshape([-1, 1, 8, 8])), &captions, 12)?)
}
