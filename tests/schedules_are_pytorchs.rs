//! Every schedule has the learning rates of its PyTorch counterpart, for 50 steps. PyTorch has no cosine schedule with warm-up. It is
//! compared with the schedule of Hugging Face's transformers.

use wengert::nn::Schedule;
use wengert::nn::schedule::{
    Anneal, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, Cycle, CyclicLR, ExponentialLR, LinearLR,
    MultiStepLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, StepLR,
};
use wengert::prelude::*;

use crate::fixtures::{Fixture, cases};

/// Returns the schedule that a case describes.
fn schedule(case: &Fixture) -> Box<dyn Schedule> {
    let (lr, number) = (case.number("lr"), |name: &str| case.number(name));
    let steps = |name: &str| number(name) as u64;
    match case.name.trim_start_matches("schedule/") {
        "constant" => Box::new(lr),
        "constant_lr" => Box::new(ConstantLR::new(lr, number("factor"), steps("total_iters"))),
        "linear" => Box::new(LinearLR::new(lr, number("start_factor"), number("end_factor"), steps("total_iters"))),
        "step" => Box::new(StepLR::new(lr, steps("step_size"), number("gamma"))),
        "multi_step" => {
            let milestones = case.option("milestones").as_array().unwrap();
            let milestones: Vec<u64> = milestones.iter().map(|step| step.as_u64().unwrap()).collect();
            Box::new(MultiStepLR::new(lr, milestones, number("gamma")))
        }
        "exponential" => Box::new(ExponentialLR::new(lr, number("gamma"))),
        "polynomial" => Box::new(PolynomialLR::new(lr, steps("total_iters"), number("power"))),
        "cosine" => Box::new(CosineAnnealingLR::new(lr, steps("T_max")).eta_min(number("eta_min"))),
        "cosine_restarts" => Box::new(CosineAnnealingWarmRestarts::new(lr, steps("T_0"))),
        "cosine_restarts_mult" => Box::new(
            CosineAnnealingWarmRestarts::new(lr, steps("T_0")).t_mult(steps("T_mult")).eta_min(number("eta_min")),
        ),
        "cosine_warmup" => {
            let warmup = steps("num_warmup_steps");
            Box::new(CosineAnnealingLR::new(lr, steps("num_training_steps") - warmup).warmup(warmup))
        }
        "one_cycle" => Box::new(OneCycleLR::new(number("max_lr"), steps("total_steps"))),
        "one_cycle_linear" => Box::new(
            OneCycleLR::new(number("max_lr"), steps("total_steps"))
                .pct_start(number("pct_start"))
                .anneal(Anneal::Linear)
                .div_factor(number("div_factor"))
                .final_div_factor(number("final_div_factor")),
        ),
        "one_cycle_three_phase" => Box::new(
            OneCycleLR::new(number("max_lr"), steps("total_steps")).pct_start(number("pct_start")).three_phase(),
        ),
        "cyclic" => Box::new(
            CyclicLR::new(number("base_lr"), number("max_lr"))
                .step_sizes(steps("step_size_up"), steps("step_size_down")),
        ),
        "cyclic_triangular2" => {
            let up = steps("step_size_up");
            Box::new(CyclicLR::new(number("base_lr"), number("max_lr")).step_sizes(up, up).cycle(Cycle::Triangular2))
        }
        "cyclic_exp_range" => {
            let (up, cycle) = (steps("step_size_up"), Cycle::ExpRange(number("gamma")));
            Box::new(CyclicLR::new(number("base_lr"), number("max_lr")).step_sizes(up, up).cycle(cycle))
        }
        "sequential" => Box::new(
            LinearLR::new(lr, 0.25, 1.0, 5).then(5, ExponentialLR::new(lr, 0.9)).then(20, StepLR::new(lr, 4, 0.5)),
        ),
        "chained" => Box::new(ConstantLR::new(lr, 0.1, 6).times(ExponentialLR::new(1.0, 0.9))),
        name => panic!("the case '{name}' has no schedule here"),
    }
}

#[test]
fn schedules_without_a_state() {
    let mut count = 0;
    for case in cases("schedule/").iter().filter(|case| !case.name.contains("plateau")) {
        let schedule = schedule(case);
        let rates: Vec<f64> = (0..50).map(|step| schedule.lr(step)).collect();
        case.check("lr", &Tensor::from(rates));
        count += 1;
    }
    assert_eq!(count, 19);
}

#[test]
fn plateaus() {
    let plateaus = cases("schedule/plateau");
    assert_eq!(plateaus.len(), 4);
    for case in plateaus {
        let mut plateau = ReduceLROnPlateau::new(case.number("lr"));
        for (name, value) in case.about["options"].as_object().unwrap() {
            let number = value.as_f64();
            plateau = match name.as_str() {
                "lr" | "threshold_mode" => plateau,
                "mode" => plateau.maximize(),
                "factor" => plateau.factor(number.unwrap()),
                "patience" => plateau.patience(number.unwrap() as u64),
                "threshold" if case.about["options"].get("threshold_mode").is_some() => {
                    plateau.absolute_threshold(number.unwrap())
                }
                "threshold" => plateau.threshold(number.unwrap()),
                "cooldown" => plateau.cooldown(number.unwrap() as u64),
                "min_lr" => plateau.min_lr(number.unwrap()),
                "eps" => plateau.eps(number.unwrap()),
                name => panic!("{}: unknown option '{name}'", case.name),
            };
        }
        let rates: Vec<f64> = case.get("measures").iter().map(|measure| plateau.step(measure)).collect();
        case.check("lr", &Tensor::from(rates));
    }
}
