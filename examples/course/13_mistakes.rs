//! 13. Looking at the mistakes.
//!
//! A percentage does not say why a network is wrong. This example trains the convolutional network of example 12. It writes a page with
//! the curves, the table of confused classes, and the digits with the worst predictions. Some of them are shifted or slanted, and some
//! are hard to read for a person too.
//!
//! `--data FOLDER` takes MNIST's files. See also `own_images`, which makes such a page about a folder of your own images.

use std::process::ExitCode;

use wengert::nn::Fit;
use wengert::nn::metrics::{Accuracy, ConfusionMatrix, worst_mistakes};
use wengert::nn::plots::Page;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("13_mistakes", "Handwritten digits, and a page about the mistakes of the network");
    let options = options.count("epochs", 15, "Number of passes over the digits");
    let options = options.flag("resume", "Continue after the last complete epoch in the folder");
    let about = "Table of pixels, the class last, or a folder of MNIST's files [default: 1,797 digits]";
    run(options.text("data", DIGITS, about), train)
}

/// The convolutional network of example 12, for images of `height` and `width`.
fn convolutional([height, width]: [usize; 2], generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Conv2d::builder(1, 16, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2)) // It halves the height and the width.
        .add(Conv2d::builder(16, 32, 3).padding(1).build(generator))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Flatten::default())
        .add(Linear::new(32 * (height / 4) * (width / 4), 10, generator))
}

fn train(options: &Options) -> Result {
    let epochs: u64 = options.get("epochs");
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(options.get::<String>("data"), generator)?;
    let (images, labels) = (as_images(test.inputs()), test.targets());
    let mut model = convolutional([images.shape()[2], images.shape()[3]], generator);

    let train = DataLoader::new(train, 64).shuffle().seed(options.seed()).map(|(x, y), _| Ok((as_images(&x), y)));
    let test = DataLoader::new(test.clone(), 256).map(|(x, y), _| Ok((as_images(&x), y)));
    // The folder gets a checkpoint after each epoch, so that Ctrl-C loses at most one epoch.
    let fit = Fit::new(epochs)
        .validation(&test)
        .metric("accuracy", Accuracy::new())
        .schedule_steps(CosineAnnealingLR::new(5e-3, epochs * train.len() as u64))
        .folder(options.folder()?);
    let history = if options.get("resume") { fit.resume() } else { fit }.run(
        &mut model,
        &mut AdamW::new(5e-3),
        &train,
        generator,
        |model, tape, x| model.forward(tape.constant(x)),
        |scores, y| cross_entropy(&scores, y),
    )?;

    let scores = model.forward(&images);
    let mut confusion = ConfusionMatrix::new(10);
    confusion.update(&scores, labels)?;
    println!("\ndigit   precision   recall");
    for (digit, scores) in confusion.by_class().iter().enumerate() {
        println!("{digit:>5}   {:>8.1}%   {:>5.1}%", 100.0 * scores.precision, 100.0 * scores.recall);
    }

    let mistakes = worst_mistakes(&scores, labels, 16)?;
    let theirs = Tensor::from_fn([mistakes.len()], |i| mistakes[i[0]].sample as i64);
    let ink_on_paper = 1.0 - images.index_select(0, &theirs);
    let page = Page::new("Handwritten digits: the curves and the mistakes")
        .settings(&[("parameters", model.num_parameters().to_string()), ("seed", options.seed().to_string())])
        .history(&history)?
        .confusion(&confusion, &[])
        .mistakes(&ink_on_paper, &mistakes, &[])?;
    println!();
    options.write("report.html", page.to_html())?;
    println!("test accuracy: {:.2}%", 100.0 * confusion.accuracy());
    Ok(())
}

/// Converts rows `[n, side · side]` to `[n, 1, side, side]`.
fn as_images(rows: &Tensor) -> Tensor {
    let side = rows.shape()[1].isqrt();
    rows.reshape([rows.shape()[0], 1, side, side])
}
