use std::fs;

use wengert_autograd::{Tape, Var};
use wengert_tensor::ops::{Arithmetic as _, Comparison as _, Functions as _, Reductions as _};
use wengert_tensor::{Generator, Tensor};

use super::fit::{BEST, LAST, LOG};
use super::*;
use crate::metrics::Accuracy;
use crate::{DataLoader, Dropout, History, Layer as _, Linear, Result, Samples, Sequential, Sgd, cross_entropy};

fn data() -> DataLoader<(Tensor<f64>, Tensor<i64>)> {
    let x = Tensor::randn([40, 2], &mut Generator::new(3));
    let classes = x.sum(1).gt(0.0).cast::<i64>();
    DataLoader::new(Samples::new(x, classes).unwrap(), 16).shuffle()
}

fn model() -> Sequential<f64> {
    let generator = &mut Generator::new(1);
    Sequential::new().add(Linear::new(2, 8, generator)).add(Dropout::new(0.2)).add(Linear::new(8, 2, generator))
}

/// Trains with the given settings, without output.
fn run(fit: Fit<'_, f64, Tensor<f64>>, model: &mut Sequential<f64>) -> Result<History> {
    fit.progress(Progress::Quiet).run(
        model,
        &mut Sgd::new(0.1).momentum(0.9),
        &data(),
        &mut Generator::new(5),
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    )
}

#[test]
fn a_resumed_training_learns_and_gives_the_same_bits() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let test = data();
    let fit = |epochs, folder: &tempfile::TempDir| {
        let fit =
            Fit::new(epochs).validation(&test).metric("top 2", Accuracy::top_k(2)).metric("accuracy", Accuracy::new());
        fit.schedule_steps(crate::schedule::LinearLR::new(0.1, 1.0, 0.1, 15)).clip_norm(1.0).folder(folder.path())
    };
    let (mut model, mut first, mut second) = (model(), self::model(), self::model());
    let history = run(fit(6, &whole), &mut model).unwrap();
    assert_eq!(history.epochs().len(), 6);
    let last = history.last().unwrap();
    assert!(last.validation.as_ref().unwrap().get("accuracy").unwrap() > 0.9, "{last}");
    assert!((last.lr - 0.01).abs() < 1e-12);
    run(fit(4, &parts), &mut first).unwrap();
    assert_eq!(run(fit(6, &parts).resume(), &mut second).unwrap(), history);
    for name in [LOG, BEST, LAST] {
        let bytes = |folder: &tempfile::TempDir| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(bytes(&whole), bytes(&parts), "{name}");
    }
    // A completed training that is resumed does nothing.
    assert_eq!(run(fit(6, &parts).resume(), &mut self::model()).unwrap(), history);
    let mut best = self::model();
    crate::load(&mut best, whole.path().join(BEST)).unwrap();
}

#[test]
fn losses_are_means_over_samples() {
    let (model, loader) = (model(), data());
    let all: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
    let forward = |model: &Sequential<f64>, x: &Tensor<f64>| model.forward(Tape::new().constant(x)).value();
    let sum: f64 = all.iter().map(|(x, y)| cross_entropy(&forward(&model, x), y).item() * y.numel() as f64).sum();
    let scores = evaluate(
        &model,
        &loader,
        &mut [],
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    );
    assert!((scores.unwrap().loss - sum / 40.0).abs() < 1e-14);
}

#[test]
fn it_stops_early_and_an_unknown_measure_is_an_error() {
    let stopping = EarlyStopping::new(2).min_delta(f64::INFINITY);
    let history = run(Fit::new(9).early_stopping("loss", stopping), &mut model()).unwrap();
    assert_eq!(history.epochs().len(), 2);
    let text = run(Fit::new(9).early_stopping("f1", EarlyStopping::new(2)), &mut model()).unwrap_err().to_string();
    assert_eq!(text, "early stopping: there is no measure 'f1'; add it by `metric`");
    assert_eq!(run(Fit::new(0), &mut model()).unwrap(), History::default());
}

#[test]
fn a_loss_that_is_not_finite_names_the_line_of_the_operation() {
    let run = |loss: for<'t> fn(Var<'t, f64>, &Tensor<i64>) -> Var<'t, f64>| {
        let fit = Fit::new(2).progress(Progress::Quiet);
        let (mut sgd, generator) = (Sgd::new(0.1), &mut Generator::new(0));
        fit.run(&mut model(), &mut sgd, &data(), generator, |model, tape, x| model.forward(tape.constant(x)), loss)
    };
    let line = line!() + 1;
    let error = run(|outputs, _| outputs.sub(outputs).log().mean(..)).unwrap_err().to_string();
    assert!(error.starts_with("epoch 1, batch 1: the loss is -inf\n'log' made the first -inf at [0, 0]"), "{error}");
    assert!(error.contains(&format!("fit/tests.rs:{line}:")), "{error}");
    // The loss √0 is finite, but the derivative of √ at 0 is infinite.
    let line = line!() + 1;
    let error = run(|outputs, _| outputs.sub(outputs).sqrt().mean(..)).unwrap_err().to_string();
    let start = "epoch 1, batch 1: the loss is 0, the gradient of '0.weight' is not finite\n'";
    assert!(error.starts_with(start) && error.contains(&format!("fit/tests.rs:{line}:")), "{error}");
}
