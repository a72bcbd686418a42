//! 12. Convolutions: the same small weights at every place of an image.
//!
//! A `Linear` layer has a weight for every pixel, so a digit that is shifted by a pixel is another input. A convolution moves a
//! window of 3 x 3 weights over the image. With few weights, it finds an edge at any place. `MaxPool2d` then keeps the largest
//! number of each 2 x 2 pixels. The example shifts the held-out digits to show the difference.

use std::process::ExitCode;

use wengert::nn::Fit;
use wengert::nn::plots::filters;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("12_digits_cnn", "Handwritten digits with a convolutional network");
    run(options.count("epochs", 15, "Number of passes over the digits"), compare)
}

/// The layers of example 1. `Flatten` turns `[n, 1, 8, 8]` into `[n, 64]`.
fn perceptron(generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Flatten::default())
        .add(Linear::new(64, 128, generator))
        .add(ReLU)
        .add(Linear::new(128, 10, generator))
}

fn convolutional(generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Conv2d::builder(1, 16, 3).padding(1).build(generator)) // [n, 1, 8, 8] to [n, 16, 8, 8]
        .add(ReLU)
        .add(MaxPool2d::new(2)) // [n, 16, 4, 4]
        .add(Conv2d::builder(16, 32, 3).padding(1).build(generator)) // [n, 32, 4, 4]
        .add(ReLU)
        .add(MaxPool2d::new(2)) // [n, 32, 2, 2]
        .add(Flatten::default())
        .add(Linear::new(32 * 2 * 2, 10, generator))
}

fn compare(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;
    let as_images = |rows: &Tensor| rows.reshape([rows.shape()[0], 1, 8, 8]);
    let train = Samples::new(as_images(train.inputs()), train.targets().clone())?;
    let (images, classes) = (as_images(test.inputs()), test.targets());
    // Shifts the images by a pixel to the right: the last column is lost, and a column of paper (0) is inserted at the left.
    let paper = Tensor::<f32>::zeros([images.shape()[0], 1, 8, 1]);
    let shifted = cat(&[paper, images.narrow(3, 0, 7)], 3);

    let train = DataLoader::new(train, 64).shuffle().seed(options.seed());
    let test = DataLoader::new(Samples::new(images.clone(), classes.clone())?, 512);
    let epochs: u64 = options.get("epochs");
    let mut lines = Vec::new();
    for (name, mut model) in [("perceptron", perceptron(generator)), ("convolutional", convolutional(generator))] {
        println!("{name}, {} numbers learned", model.num_parameters());
        let schedule = CosineAnnealingLR::new(5e-3, epochs * train.len() as u64);
        Fit::new(epochs).validation(&test).schedule_steps(schedule).folder(options.file(name)?).run(
            &mut model,
            &mut AdamW::new(5e-3),
            &train,
            generator,
            |model, tape, x| model.forward(tape.constant(x)),
            |scores, y| cross_entropy(&scores, y),
        )?;
        let right = [&images, &shifted].map(|images| 100.0 * accuracy(&model.forward(images), classes));
        lines.push(format!("{name:<13}   held out: {:.1}% right, shifted by a pixel: {:.1}%", right[0], right[1]));
        if name == "convolutional" {
            // In the picture, negative weights are blue, and positive weights are red.
            options.write("filters.svg", filters(&model.parameters()[0].value, 8)?)?;
        }
        println!();
    }
    println!("{}", lines.join("\n"));
    Ok(())
}
