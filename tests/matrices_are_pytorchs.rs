//! Optimisers and norms of whole matrices have PyTorch's values. `tools/matrix_cases.py` wrote the cases.

use serde_json::Value;
use wengert::nn::{Adafactor, Muon, Optimizer, SpectralNorm, WeightNorm};
use wengert::prelude::*;

use crate::fixtures::{TOLERANCE, path};

fn cases(kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path("matrices.json")).expect("the file is beside the tests");
    let file: Value = serde_json::from_str(&text).expect("matrix_cases.py writes JSON");
    let lists = ["optimizers", "norms"].map(|list| file[list].as_array().expect("a list").clone());
    let found: Vec<Value> = lists.concat().into_iter().filter(|case| case["kind"] == kind).collect();
    assert!(!found.is_empty(), "{kind}");
    found
}

fn tensor(value: &Value) -> Tensor<f64> {
    let list = |key: &str| value[key].as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number"));
    let shape: Vec<usize> = list("shape").map(|size| size as usize).collect();
    Tensor::from_vec(list("data").collect(), &shape[..])
}

#[track_caller]
fn check(found: &Tensor<f64>, expected: &Value, what: &str) {
    let expected = tensor(expected);
    assert_eq!(found.shape(), expected.shape(), "{what}");
    let largest = expected.iter().fold(1e-3, |largest: f64, x| largest.max(x.abs()));
    let error = found.iter().zip(expected.iter()).map(|(x, y)| (x - y).abs()).max_by(f64::total_cmp).unwrap_or(0.0);
    assert!(error <= TOLERANCE * largest, "{what}: {error:e}\n{found}\n{expected}");
}

/// Makes and checks the steps of a case. Element k begins at k / 4 - 1/2. Its gradient in step t is sin((k + 1)(0.7 +
/// t)) + w, where w is its value.
fn follow(mut optimizer: impl Optimizer<f64>, case: &Value) {
    let steps = case["values"].as_array().expect("a list");
    let shape = tensor(&steps[0]).shape().clone();
    let numbers = Tensor::<f64>::arange(shape.numel()).reshape(&shape);
    let mut w = &numbers * 0.25 - 0.5;
    for (step, expected) in steps.iter().enumerate() {
        let gradient = ((&numbers + 1.0) * (0.7 + step as f64)).sin() + &w;
        optimizer.step_tensors([&mut w], &[gradient]);
        check(&w, expected, &format!("{} {}, step {step}", case["kind"], case["options"]));
    }
}

#[test]
fn adafactor() {
    for case in cases("Adafactor") {
        let options = case["options"].as_object().expect("options");
        let mut optimizer = Adafactor::new(case["options"]["lr"].as_f64().expect("a rate"));
        for (name, value) in options.iter().filter(|(name, _)| *name != "lr") {
            let number = value.as_f64();
            optimizer = match name.as_str() {
                "weight_decay" => optimizer.weight_decay(number.expect("a number")),
                "beta2_decay" => optimizer.beta2_decay(number.expect("a number")),
                "d" => optimizer.clip(number.expect("a number")),
                "eps" => optimizer.eps(value[0].as_f64().expect("a number"), value[1].as_f64().expect("a number")),
                "maximize" => optimizer.maximize(),
                other => panic!("{other}"),
            };
        }
        follow(optimizer, &case);
    }
}

#[test]
fn muon() {
    for case in cases("Muon") {
        let options = case["options"].as_object().expect("options");
        let mut optimizer = Muon::new(case["options"]["lr"].as_f64().expect("a rate"));
        for (name, value) in options.iter().filter(|(name, _)| *name != "lr") {
            let number = || value.as_f64().expect("a number");
            optimizer = match name.as_str() {
                "weight_decay" => optimizer.weight_decay(number()),
                "momentum" => optimizer.momentum(number()),
                "nesterov" => optimizer.without_nesterov(),
                "ns_steps" => optimizer.iterations(number() as u32),
                "eps" => optimizer.eps(number()),
                "adjust_lr_fn" => optimizer.match_adamw(),
                other => panic!("{other}"),
            };
        }
        follow(optimizer, &case);
    }
}

/// Makes three steps of gradient descent on the sum of the squared outputs, then evaluates the layer. Compares the results with the case.
fn train<M: Module<f64>>(mut norm: M, case: &Value, weight: impl for<'t> Fn(&M, &'t Tape<f64>) -> Var<'t, f64>) {
    let (x, generator) = (tensor(&case["x"]), &mut Generator::new(0));
    let about = format!("{} {}", case["kind"], case["options"]);
    let mut sgd = Sgd::new(0.1);
    for step in case["steps"].as_array().expect("a list") {
        let tape = Tape::training(generator);
        let y = tape.constant(&x).linear(weight(&norm, &tape), None);
        check(&y.value(), &step["output"], &about);
        let gradients = y.square().sum(..).backward();
        for (name, parameter) in norm.named_parameters() {
            check(gradients.of(parameter), &step["gradients"][&name], &format!("{about} {name}"));
        }
        drop(tape);
        sgd.step(&mut norm, &gradients);
    }
    let tape = Tape::new();
    check(&tape.constant(&x).linear(weight(&norm, &tape), None).value(), &case["last"], &about);
}

#[test]
fn weight_norm() {
    for case in cases("weight_norm") {
        let weight = tensor(&case["state"]["original1"]);
        let norm = WeightNorm::with_dim(&weight, case["options"]["dim"].as_i64().map(|dim| dim as isize));
        check(&norm.original0.value, &case["state"]["original0"], "the lengths");
        train(norm, &case, |norm, tape| norm.weight(tape));
    }
}

#[test]
fn spectral_norm() {
    for case in cases("spectral_norm") {
        let iterations = case["options"]["n_power_iterations"].as_u64().expect("a number") as usize;
        let norm = SpectralNorm::new(&tensor(&case["state"]["original"]), &mut Generator::new(0));
        let mut norm = norm.iterations(iterations);
        norm.u.value = tensor(&case["state"]["_u"]);
        norm.v.value = tensor(&case["state"]["_v"]);
        train(norm, &case, |norm, tape| norm.weight(tape));
    }
}
