//! 6. The same digits with a convolutional network.
//!
//! New are images as `[n, 1, 8, 8]`, convolutions with batch normalisation, training data that is moved about by a pixel at random
//! each time it is seen, and looking at the result: what the first layer's filters react to, and the digits that were read worst.

use std::fs;
use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::plots::{filters, image_grid};
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{Flatten, Schedule, augment};
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("06_digits_cnn", "Handwritten digits with a convolutional network");
    let options = options.option("epochs", 30, "How often every digit is seen");
    run(options.option("data", DIGITS, "Table of pixels, the class last"), train)
}

/// `[n, 1, 8, 8]` to scores `[n, 10]`.
#[derive(Module)]
struct Cnn {
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    conv3: Conv2d,
    norm3: BatchNorm2d,
    drop: Dropout,
    fc: Linear,
}

impl Cnn {
    fn new(generator: &mut Generator) -> Self {
        let conv = |i, o, g: &mut Generator| Conv2d::builder(i, o, 3).padding(1).bias(false).build(g);
        Cnn {
            conv1: conv(1, 24, generator),
            norm1: BatchNorm2d::new(24),
            conv2: conv(24, 48, generator),
            norm2: BatchNorm2d::new(48),
            conv3: conv(48, 64, generator),
            norm3: BatchNorm2d::new(64),
            drop: Dropout::new(0.3),
            fc: Linear::new(64 * 2 * 2, 10, generator),
        }
    }

    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        let pool = MaxPool2d::new(2);
        let x = self.norm1.forward(self.conv1.forward(x)).relu();
        let x = pool.forward(self.norm2.forward(self.conv2.forward(x)).relu()); // [n, 48, 4, 4]
        let x = pool.forward(self.norm3.forward(self.conv3.forward(x)).relu()); // [n, 64, 2, 2]
        self.fc.forward(self.drop.forward(Flatten::default().forward(x)))
    }
}

fn train(options: &Options) -> Result {
    let epochs: u32 = options.get("epochs")?;
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(options.get::<String>("data")?, generator)?;
    let mut model = Cnn::new(generator);
    let mut adam = AdamW::new(4e-3).weight_decay(0.02);
    let schedule = CosineAnnealingLR::new(4e-3, epochs.into());
    let criterion = CrossEntropyLoss::new().label_smoothing(0.05);
    let images = test.inputs().reshape([-1, 1, 8, 8]);
    // Each image is moved by up to one pixel in both directions, by another distance in every epoch.
    let batches = DataLoader::new(train.clone(), 64)
        .shuffle()
        .seed(options.seed())
        .map(|(x, y), generator| Ok((augment::random_shift(&x.reshape([-1, 1, 8, 8]), 1, generator)?, y)));
    for epoch in 1..=epochs {
        adam.set_lr(schedule.lr(u64::from(epoch - 1)));
        let mut sum = 0.0;
        for batch in batches.epoch(epoch.into()) {
            let (x, y) = batch?;
            let (loss, gradients) = Tape::training(generator)
                .value_and_gradients(|tape| criterion.of(&model.forward(tape.constant(&x)), &y));
            adam.step(&mut model, &gradients);
            sum += f64::from(loss) * y.numel() as f64;
        }
        if epoch % 5 == 0 || epoch == 1 {
            let right = accuracy(&infer(|x| model.forward(x), &images), test.targets());
            println!("epoch {epoch:>3}   loss {:.4}   held out: {:.2}% right", sum / train.len() as f64, 100.0 * right);
        }
    }

    // Blue is negative, red positive.
    let path = options.file("filters.svg")?;
    fs::write(&path, filters(&model.conv1.weight.value, 8)?)?;
    println!("wrote {}", path.display());

    // The digits whose right class got the smallest probability.
    let scores = infer(|x| model.forward(x), &images);
    let right = scores.softmax(1).gather(1, &test.targets().unsqueeze(1)).squeeze(1);
    let order = right.argsort(0, false).narrow(0, 0, 12);
    let [labels, guesses] = [test.targets(), &scores.argmax(1)].map(|of| of.take(&order));
    let of = labels.iter().zip(guesses.iter()).zip(right.take(&order).to_vec());
    let captions = of.map(|((label, guess), share)| match label == guess {
        true => format!("{label}: {:.0}%", 100.0 * share),
        false => format!("!{label} read as {guess}"),
    });
    let captions: Vec<String> = captions.collect();
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    let path = options.file("worst.svg")?;
    fs::write(&path, image_grid(&(1.0 - images.index_select(0, &order)), &captions, 6)?)?;
    println!("wrote {}", path.display());
    println!("test accuracy: {:.2}%", 100.0 * accuracy(&scores, test.targets()));
    Ok(())
}
