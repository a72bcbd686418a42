//! 1. A first network: it learns to read handwritten digits, in seconds.
//!
//! The later examples explain each part. This one shows the whole: data, a model, its training, and the answers of the trained
//! network for digits that it has never seen.

use std::process::ExitCode;

use wengert::nn::Fit;
use wengert::nn::plots::image_grid;
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("01_first_network", "A network learns to read handwritten digits");
    run(options.count("epochs", 10, "Number of passes over the digits"), train)
}

fn train(options: &Options) -> Result {
    // The source of all random numbers.
    let generator = &mut Generator::new(options.seed());
    // Images as rows of 64 pixels, and the digit of each row. A quarter is held out: the network does not learn from it.
    let (train, test) = digits(DIGITS, generator)?;
    println!("{} digits to learn from, {} held out\n", train.len(), test.len());

    // The model: 64 pixels, 128 numbers in between, a score for each of ten digits.
    let mut model = Sequential::mlp(&[64, 128, 10], ReLU, generator);

    // The training: the model answers, the loss measures the error, and AdamW changes the model to reduce the loss.
    let (batches, held_out) = (DataLoader::new(train, 32).shuffle(), DataLoader::new(test.clone(), 512));
    Fit::new(options.get("epochs")).validation(&held_out).folder(options.folder()?).run(
        &mut model,
        &mut AdamW::new(0.003),
        &batches,
        generator,
        |model, tape, images| model.forward(tape.constant(images)),
        |scores, digits| cross_entropy(&scores, digits),
    )?;

    // The answers: the digit with the highest score.
    let answers = model.forward(test.inputs()).argmax(1);
    let right = answers.eq(test.targets()).cast::<i64>().sum(..).item();
    println!("\n{right} of {} held-out digits are read correctly", test.len());

    // A picture of some digits with their answers. The picture shows wrong answers in red.
    let captions: Vec<String> = answers.iter().zip(test.targets().iter()).map(caption).take(32).collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    let images = 1.0 - test.inputs().narrow(0, 0, 32).reshape([32, 1, 8, 8]); // black ink on white paper
    options.write("digits.svg", image_grid(&images, &captions, 8)?)
}

/// Returns the text below a digit.
fn caption((answer, digit): (i64, i64)) -> String {
    if answer == digit { format!("{answer}") } else { format!("!{answer}, not {digit}") }
}
