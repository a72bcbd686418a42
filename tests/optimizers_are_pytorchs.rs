//! Optimisers make the same 100 steps as their PyTorch counterparts: alone, and with groups, clipping, schedules and averages. L-BFGS
//! without a line search makes 10. PyTorch has no Lion, so Lion is compared with the program of its paper. `matrices_are_pytorchs.rs`
//! compares Adafactor and Muon.

use wengert::nn::schedule::{CosineAnnealingLR, StepLR};
use wengert::nn::{
    Adadelta, Adagrad, Adam, AdamW, Adamax, Asgd, Lbfgs, Lion, Module, NAdam, Optimizer, RAdam, RMSprop, Rprop,
    Schedule, Sgd, WeightAverage,
};
use wengert::prelude::*;

use crate::fixtures::{Fixture, cases, fixture};

#[derive(Module)]
#[module(f64)]
struct Model {
    weight: Parameter<f64>,
    bias: Parameter<f64>,
}

/// The training problem of all cases.
struct Problem {
    x: Tensor<f64>,
    y: Tensor<f64>,
    model: Model,
}

impl Problem {
    fn new() -> Self {
        let problem = Fixture { name: "optimizer/problem".to_owned(), about: fixture("optimizer/sgd/plain").about };
        let [weight, bias] = ["weight", "bias"].map(|name| Parameter::new(problem.get(name)));
        Problem { x: problem.get("x"), y: problem.get("y"), model: Model { weight, bias } }
    }

    fn measured(&self, model: &Model) -> (f64, Gradients<f64>) {
        Tape::new().value_and_gradients(|tape| {
            let hidden = tape.constant(&self.x).matmul(tape.parameter(&model.weight).t()) + tape.parameter(&model.bias);
            (hidden.tanh() - &self.y).square().mean(..)
        })
    }
}

/// Returns an option of the case that is a number, or `default` if the case does not have it.
fn option(case: &Fixture, name: &str, default: f64) -> f64 {
    case.about["options"].get(name).map_or(default, |value| value.as_f64().unwrap())
}

fn flag(case: &Fixture, name: &str) -> bool {
    case.about["options"].get(name).is_some_and(|value| value.as_bool().unwrap())
}

fn betas(case: &Fixture, default: [f64; 2]) -> [f64; 2] {
    match case.about["options"].get("betas") {
        Some(betas) => [0, 1].map(|i| betas[i].as_f64().unwrap()),
        None => default,
    }
}

/// Trains for 100 steps with the clipping, the schedule and the average of the case, and compares the steps that the
/// case has.
fn train<O: Optimizer<f64>>(case: &Fixture, optimizer: O, group: impl FnOnce(O, &serde_json::Value) -> O) {
    let mut optimizer = optimizer.weight_decay(option(case, "weight_decay", default_decay(case)));
    if flag(case, "maximize") {
        optimizer = optimizer.maximize();
    }
    if let Some(settings) = case.about.get("group") {
        optimizer = optimizer.group("bias", |optimizer| {
            let lr = settings["lr"].as_f64().unwrap();
            group(optimizer.lr(lr), settings)
        });
    }
    let schedule: Option<Box<dyn Schedule>> = case.about.get("schedule").map(|schedule| -> Box<dyn Schedule> {
        match schedule.as_str().unwrap() {
            "CosineAnnealingLR, T_max 50, eta_min 0.01" => {
                Box::new(CosineAnnealingLR::new(case.number("lr"), 50).eta_min(0.01))
            }
            "StepLR, step_size 30, gamma 0.3" => Box::new(StepLR::new(case.number("lr"), 30, 0.3)),
            other => panic!("{other}"),
        }
    });
    let mut average = case.about.get("average").map(|average| {
        if average.as_str().unwrap().starts_with("EMA") { WeightAverage::ema(0.9) } else { WeightAverage::swa() }
    });
    let mut problem = Problem::new();
    for step in 1..=100 {
        if let Some(schedule) = &schedule {
            optimizer.set_lr(schedule.lr(step - 1));
        }
        let (_, mut gradients) = problem.measured(&problem.model);
        if let Some(norm) = case.about.get("clip_norm") {
            gradients.clip_norm(norm.as_f64().unwrap());
        }
        if let Some(max) = case.about.get("clip_value") {
            gradients.clip_value(max.as_f64().unwrap());
        }
        optimizer.step(&mut problem.model, &gradients);
        if let Some(average) = &mut average {
            average.update(&problem.model);
        }
        check(case, step, &problem.model, "");
        if let Some(average) = &mut average {
            average.swap(&mut problem.model);
            check(case, step, &problem.model, "average.");
            average.swap(&mut problem.model);
        }
    }
}

fn default_decay(case: &Fixture) -> f64 {
    if case.name.contains("/adamw/") { 0.01 } else { 0.0 }
}

/// Compares the model with the fixtures, which exist for the steps 1, 10 and 100.
fn check(case: &Fixture, step: u64, model: &Model, prefix: &str) {
    if case.has(&format!("{prefix}weight.{step}")) {
        case.check(&format!("{prefix}weight.{step}"), &model.weight.value);
        case.check(&format!("{prefix}bias.{step}"), &model.bias.value);
    }
}

#[test]
fn a_hundred_steps_are_pytorchs() {
    let mut seen = 0;
    for case in cases("optimizer/") {
        let (lr, eps) = (option(&case, "lr", f64::NAN), |default| option(&case, "eps", default));
        let [first, second] = betas(&case, [0.9, 0.999]);
        let kind = case.name.split('/').nth(1).unwrap();
        seen += 1;
        match kind {
            "sgd" => {
                let sgd =
                    Sgd::new(lr).momentum(option(&case, "momentum", 0.0)).dampening(option(&case, "dampening", 0.0));
                let sgd = if flag(&case, "nesterov") { sgd.nesterov() } else { sgd };
                train(&case, sgd, |sgd, group| sgd.momentum(group["momentum"].as_f64().unwrap()));
            }
            "adam" | "adamw" => {
                let adam = if kind == "adam" { Adam::new(lr) } else { AdamW::new(lr) };
                let adam = adam.betas(first, second).eps(eps(1e-8));
                let adam = if flag(&case, "amsgrad") { adam.amsgrad() } else { adam };
                train(&case, adam, |adam, group| adam.weight_decay(group["weight_decay"].as_f64().unwrap()));
            }
            "rmsprop" => {
                let alpha = option(&case, "alpha", 0.99);
                let rmsprop = RMSprop::new(lr).alpha(alpha).eps(eps(1e-8)).momentum(option(&case, "momentum", 0.0));
                train(&case, if flag(&case, "centered") { rmsprop.centered() } else { rmsprop }, |o, _| o);
            }
            "adagrad" => {
                let begin = option(&case, "initial_accumulator_value", 0.0);
                let adagrad = Adagrad::new(lr).lr_decay(option(&case, "lr_decay", 0.0)).eps(eps(1e-10));
                train(&case, adagrad.initial_accumulator_value(begin), |o, _| o);
            }
            "adadelta" => train(&case, Adadelta::new(lr).rho(option(&case, "rho", 0.9)).eps(eps(1e-6)), |o, _| o),
            "adamax" => train(&case, Adamax::new(lr).betas(first, second).eps(eps(1e-8)), |o, _| o),
            "nadam" => {
                let nadam = NAdam::new(lr).betas(first, second).momentum_decay(option(&case, "momentum_decay", 4e-3));
                let nadam = if flag(&case, "decoupled_weight_decay") { nadam.decoupled() } else { nadam };
                train(&case, nadam, |o, _| o);
            }
            "radam" => {
                let radam = RAdam::new(lr).betas(first, second);
                train(&case, if flag(&case, "decoupled_weight_decay") { radam.decoupled() } else { radam }, |o, _| o);
            }
            "lion" => {
                let [first, second] = betas(&case, [0.9, 0.99]);
                train(&case, Lion::new(lr).betas(first, second), |o, _| o);
            }
            "lbfgs" => {
                let mut problem = Problem::new();
                let lbfgs = Lbfgs::new(lr).max_iter(case.number("max_iter") as usize);
                let lbfgs = lbfgs.history_size(case.number("history_size") as usize);
                let searches = case.about["options"].get("line_search_fn").is_some();
                let mut lbfgs = if searches { lbfgs.strong_wolfe() } else { lbfgs };
                // Without a line search the path of the optimiser is unstable, so only 10 steps are compared. If a weight begins 1e-15
                // away from its start value, PyTorch's own result differs by 0.01.
                for step in 1..=if searches { 100 } else { 10 } {
                    let mut model = std::mem::replace(&mut problem.model, Problem::new().model);
                    lbfgs.step(&mut model, |model| problem.measured(model));
                    problem.model = model;
                    check(&case, step, &problem.model, "");
                }
            }
            "asgd" => {
                let asgd = Asgd::new(lr).lambd(option(&case, "lambd", 1e-4)).t0(option(&case, "t0", 1e6));
                train(&case, asgd, |o, _| o);
            }
            "rprop" => {
                let pair = |name: &str, default| match case.about["options"].get(name) {
                    Some(pair) => [0, 1].map(|i| pair[i].as_f64().unwrap()),
                    None => default,
                };
                let ([minus, plus], [min, max]) = (pair("etas", [0.5, 1.2]), pair("step_sizes", [1e-6, 50.0]));
                train(&case, Rprop::new(lr).etas(minus, plus).step_sizes(min, max), |o, _| o);
            }
            other => panic!("{}: the test does not know the optimiser {other}", case.name),
        }
    }
    assert!(seen >= 47, "only {seen} cases");
}
