//! 34. Label smoothing: a network that is not too sure.
//!
//! Cross-entropy wants the probability 1 for the right class. No score is large enough for this, so the scores grow as long as the training
//! lasts. The network becomes sure of its wrong answers too. Label smoothing asks for less: with 0.1, the right class of ten should get
//! 0.91 and each other class 0.01. (Szegedy et al. 2015, "Rethinking the Inception architecture for computer vision".)

use std::process::ExitCode;

use wengert::nn::CrossEntropyLoss;
use wengert::prelude::*;
use wengert_course::{Chart, DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("34_label_smoothing", "A network that is sure of its answers, and one that is less so");
    run(options.count("epochs", 60, "Number of passes over the digits"), compare)
}

fn compare(options: &Options) -> Result {
    let (train, test) = digits(DIGITS, &mut Generator::new(options.seed()))?;
    let (images, classes) = (test.inputs(), test.targets());
    let batches = DataLoader::new(train, 64).shuffle().seed(options.seed());
    let mut chart = Chart::new("The largest score for a held-out digit", "epoch", "score");
    println!("                          held out         mean probability of an answer that is");
    println!("smoothing   largest score    right     loss      right      wrong");
    for (colour, smoothing) in [0.0, 0.01, 0.1].into_iter().enumerate() {
        let criterion = CrossEntropyLoss::new().label_smoothing(smoothing);
        let mut model = Sequential::mlp(&[64, 128, 10], ReLU, &mut Generator::new(options.seed()));
        let (mut adam, mut curve) = (AdamW::new(3e-3), Vec::new());
        for epoch in 0..options.get("epochs") {
            for batch in batches.epoch(epoch) {
                let (x, y) = batch?;
                let (_, gradients) =
                    Tape::new().value_and_gradients(|tape| criterion.of(&model.forward(tape.constant(&x)), &y));
                adam.step(&mut model, &gradients);
            }
            curve.push((epoch as f64 + 1.0, f64::from(model.forward(images).amax(..).item())));
        }
        let scores = model.forward(images);
        let sure = scores.softmax(1).amax(1); // [n], the probability of each answer
        let is_right = scores.argmax(1).eq(classes).cast::<f32>();
        let [right, wrong] =
            [is_right.clone(), 1.0 - is_right].map(|part| ((&sure * &part).sum(..) / part.sum(..)).item());
        // The loss without smoothing, so that the three rows can be compared.
        let loss = cross_entropy(&scores, classes).item();
        println!(
            "{smoothing:<9}   {:>13.1}   {:>5.1}%   {loss:>6.4}   {:>7.1}%   {:>7.1}%",
            scores.amax(..).item(),
            100.0 * accuracy(&scores, classes),
            100.0 * right,
            100.0 * wrong
        );
        chart = chart.line(format!("smoothing {smoothing}"), colour, curve);
    }
    println!();
    options.write("scores.svg", chart.to_svg()?)
}
