//! Tests that training is a function of its seed. The same seed gives the same checkpoint and the same loss curve, bit
//! for bit, with any number of threads. Another seed gives another result.

use std::path::{Path, PathBuf};

use wengert::nn::{
    DataLoader, Dataset, Epoch, Generator, History, Layer, Linear, Module, Normalize, Optimizer, Samples, Scores, Sgd,
};
use wengert::nn::{accuracy, cross_entropy, load, save};
use wengert::prelude::*;
use wengert_tests::alone;

#[derive(Module)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Mlp {
    fn new(seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        Mlp { fc1: Linear::new(64, 128, &mut generator), fc2: Linear::new(128, 10, &mut generator) }
    }

    fn forward<'t>(&self, x: Var<'t, f32>) -> Var<'t, f32> {
        self.fc2.forward(self.fc1.forward(x).relu())
    }

    fn logits(&self, inputs: &Tensor<f32>) -> Tensor<f32> {
        let tape = Tape::new();
        self.forward(tape.constant(inputs)).value()
    }
}

fn digits() -> Samples {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/digits.csv.gz");
    Samples::read_csv(path, 10).unwrap().normalized(&Normalize::range(0.0, 16.0)).unwrap()
}

fn scores(logits: &Tensor<f32>, targets: &Tensor<i64>) -> Scores {
    let loss = cross_entropy(logits, targets).item().into();
    Scores { loss, metrics: vec![("accuracy".to_owned(), accuracy(logits, targets))] }
}

/// Trains for three epochs with the given number of threads. The batches are so large that products use several threads.
fn train(seed: u64, threads: usize, folder: &Path) -> (PathBuf, PathBuf) {
    let (checkpoint, curve) = (folder.join("model.safetensors"), folder.join("loss.svg"));
    wengert::tensor::set_num_threads(threads);
    let mut generator = Generator::new(seed);
    let (train, test) = digits().random_split(0.25, &mut generator).unwrap();
    let (mut model, mut sgd, mut history) = (Mlp::new(seed), Sgd::new(0.1).momentum(0.9), History::default());
    let loader = DataLoader::new(train.clone(), 256).shuffle().seed(seed);
    for epoch in 0..3 {
        for batch in loader.epoch(epoch) {
            let (inputs, targets) = batch.unwrap();
            let gradients = {
                let tape = Tape::new();
                cross_entropy(&model.forward(tape.constant(&inputs)), &targets).backward()
            };
            sgd.step(&mut model, &gradients);
        }
        let (seen, held_out) = (model.logits(train.inputs()), model.logits(test.inputs()));
        history.push(Epoch {
            lr: sgd.learning_rate(),
            train: scores(&seen, train.targets()),
            validation: Some(scores(&held_out, test.targets())),
        });
    }
    let held_out = history.last().unwrap().validation.as_ref().unwrap();
    assert!(held_out.get("accuracy").unwrap() > 0.7, "it learns: {:?}", history.last());
    save(&model, &checkpoint).unwrap();
    history.save_loss_curve(&curve).unwrap();
    (checkpoint, curve)
}

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    let _alone = alone();
    let bytes = |seed: u64, threads: usize| {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoint, curve) = train(seed, threads, folder.path());
        (std::fs::read(checkpoint).unwrap(), std::fs::read_to_string(curve).unwrap())
    };
    let first = bytes(1, 1);
    for threads in [1, 2, 7] {
        assert!(bytes(1, threads) == first, "{threads} threads");
    }
    let other = bytes(2, 1);
    assert!(other.0 != first.0 && other.1 != first.1, "another seed");
}

#[test]
fn a_trained_model_read_back_answers_the_same() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, _) = train(3, 2, folder.path());
    let (mut first, mut second) = (Mlp::new(10), Mlp::new(11));
    load(&mut first, &checkpoint).unwrap();
    load(&mut second, &checkpoint).unwrap();
    let data = digits();
    let logits = first.logits(data.inputs());
    assert!(accuracy(&logits, data.targets()) > 0.7);
    assert_eq!(logits, second.logits(data.inputs()));
}
