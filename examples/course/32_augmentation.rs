//! 32. Augmentation: images that change in every epoch.
//!
//! A network that has seen each digit at one place knows little about other places. More images would help, and they can be made: a
//! shifted digit is another image of the same class. The loader shifts each image by up to a pixel, by a new distance in every epoch.
//! The example trains the convolutional network of example 12 without and with these shifts, and tests both networks on shifted digits.

use std::process::ExitCode;

use wengert::nn::augment::random_shift;
use wengert::nn::plots::image_grid;
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("32_augmentation", "Training images that are shifted anew in every epoch");
    run(options.count("epochs", 80, "Number of passes over the digits"), compare)
}

/// The convolutional network of example 12.
fn convolutional(generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Conv2d::builder(1, 16, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Conv2d::builder(16, 32, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Flatten::default())
        .add(Linear::new(32 * 2 * 2, 10, generator))
}

/// Moves images by one pixel to the right. The last column is lost, and a column of paper (0) is inserted at the left.
fn moved(images: &Tensor) -> Tensor {
    let paper = Tensor::<f32>::zeros([images.shape()[0], 1, 8, 1]);
    cat(&[paper, images.narrow(3, 0, 7)], 3)
}

fn compare(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let as_images = |rows: &Tensor| rows.reshape([-1, 1, 8, 8]);
    let train = Samples::new(as_images(train.inputs()), train.targets().clone())?;
    let (images, classes) = (as_images(test.inputs()), test.targets());

    println!("training images     loss   held out   held out, moved by a pixel");
    for (name, most) in [("as they are", 0), ("shifted anew", 1)] {
        let batches = DataLoader::new(train.clone(), 64)
            .shuffle()
            .seed(options.seed())
            .map(move |(x, y), generator| Ok((random_shift(&x, most, generator)?, y)));
        let (mut model, mut adam) = (convolutional(&mut Generator::new(options.seed())), AdamW::new(3e-3));
        let mut last = 0.0;
        for epoch in 0..options.get("epochs") {
            let mut losses = Vec::new();
            for batch in batches.epoch(epoch) {
                let (x, y) = batch?;
                let (loss, gradients) =
                    Tape::new().value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
                adam.step(&mut model, &gradients);
                losses.push(loss);
            }
            last = losses.iter().sum::<f32>() / losses.len() as f32;
        }
        let right = [&images, &moved(&images)].map(|images| 100.0 * accuracy(&model.forward(images), classes));
        println!("{name:<14}  {last:>8.4}   {:>7.1}%   {:>25.1}%", right[0], right[1]);
    }
    println!();

    // A picture of three digits, as they are shifted in eight epochs.
    let digits = train.inputs().narrow(0, 0, 3);
    let epochs: Result<Vec<Tensor>> = (0..8).map(|_| Ok(random_shift(&digits, 1, generator)?)).collect();
    let rows = stack(&epochs?, 1).reshape([-1, 1, 8, 8]); // [3, 8, 1, 8, 8]: a row for each digit
    let captions: Vec<String> = (0..24).map(|place| format!("epoch {}", place % 8 + 1)).collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    options.write("epochs.svg", image_grid(&(1.0 - rows), &captions, 8)?)
}
