//! 19. An autoencoder: a network that learns a short code for each image, without labels.
//!
//! The encoder maps 64 pixels to two numbers, the code. The decoder maps the two numbers back to 64 pixels. The loss compares the
//! result with the input, so the two numbers must say as much as possible about the digit. Every digit becomes a point in the
//! plane. The labels only colour the points.

use std::process::ExitCode;

use wengert::nn::plots::image_grid;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("19_autoencoder", "Digits as points in the plane");
    run(options.count("epochs", 60, "Number of passes over the digits"), autoencoder)
}

#[derive(Module)]
struct Autoencoder {
    encoder: Sequential,
    decoder: Sequential,
}

impl Autoencoder {
    fn new(generator: &mut Generator) -> Self {
        Autoencoder {
            encoder: Sequential::mlp(&[64, 128, 64, 2], ReLU, generator),
            decoder: Sequential::mlp(&[2, 64, 128, 64], ReLU, generator),
        }
    }

    /// Maps images `[n, 64]` to codes `[n, 2]` and back to images.
    fn forward<'t>(&self, images: Var<'t>) -> Var<'t> {
        self.decoder.forward(self.encoder.forward(images))
    }
}

fn autoencoder(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let images = test.inputs();
    let batches = DataLoader::new(train.inputs().clone(), 64).shuffle().seed(options.seed());
    let (mut model, mut adam) = (Autoencoder::new(generator), AdamW::new(3e-3));
    for epoch in 1..=options.get("epochs") {
        for x in batches.epoch(epoch) {
            let x = x?;
            let (_, gradients) = Tape::new().value_and_gradients(|tape| mse_loss(model.forward(tape.constant(&x)), &x));
            adam.step(&mut model, &gradients);
        }
        if epoch % 10 == 0 {
            let error = mse_loss(&infer(|x| model.forward(x), images), images).item();
            println!("epoch {epoch:>3}   held out: mean square error {error:.4}");
        }
    }
    // The error of an answer that is the same for every digit.
    let mean = train.inputs().mean_keepdim(0);
    println!("the mean image:   mean square error {:.4}\n", mse_loss(&mean.expand_as(images), images).item());

    let places = model.encoder.forward(images);
    let mut chart = Chart::new("The held-out digits in the plane", "first number", "second number");
    for digit in 0..10 {
        let codes = places.masked_select(&test.targets().eq(digit).unsqueeze(1)).to_vec();
        let points = codes.chunks(2).map(|pair| (pair[0].into(), pair[1].into()));
        chart = chart.points(digit.to_string(), digit as usize, points);
    }
    options.write("plane.svg", chart.to_svg()?)?;

    // The decoder maps any place of the plane to an image. The places here are on the line between the codes of two digits.
    let code = |row: isize| places.narrow(0, row, 1);
    let steps = Tensor::<f32>::linspace(0.0, 1.0, 10).unsqueeze(1);
    let walk = code(0) + (code(1) - code(0)) * &steps; // [1, 2] + [1, 2] * [10, 1]
    let drawn = model.decoder.forward(&walk);
    let captions: Vec<String> = steps.iter().map(|share| format!("{:.0}%", 100.0 * share)).collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    options.write("walk.svg", image_grid(&(1.0 - drawn.reshape([10, 1, 8, 8])), &captions, 10)?)
}
