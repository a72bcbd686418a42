//! Every loss has PyTorch's values and gradients, with each reduction.

use wengert::nn::{
    BceLoss, BceWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, CtcLoss, GaussianNllLoss, HingeEmbeddingLoss,
    HuberLoss, KlDivLoss, L1Loss, LossReduction, MarginRankingLoss, MseLoss, MultiMarginLoss, MultilabelMarginLoss,
    MultilabelSoftMarginLoss, NllLoss, PoissonNllLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
};
use wengert::prelude::*;

use crate::fixtures::{Fixture, cases};

fn number(case: &Fixture, name: &str, default: f64) -> f64 {
    case.about["options"].get(name).map_or(default, |value| value.as_f64().expect("a number"))
}

fn flag(case: &Fixture, name: &str, default: bool) -> bool {
    case.about["options"].get(name).map_or(default, |value| value.as_bool().expect("a truth value"))
}

fn reduction(case: &Fixture) -> LossReduction {
    match case.option("reduction").as_str() {
        Some("none") => LossReduction::None,
        Some("mean") => LossReduction::Mean,
        Some("sum" | "batchmean") => LossReduction::Sum,
        other => panic!("{}: a reduction {other:?}", case.name),
    }
}

/// Sets the listed options of a loss, which are tensors, if the case has them. Returns the loss.
macro_rules! with_tensor {
    ($loss:expr, $case:expr, $($option:ident),*) => {{
        let mut loss = $loss;
        $(
            let name = concat!("options.", stringify!($option));
            if $case.has(name) {
                loss = loss.$option(&$case.get(name));
            }
        )*
        loss
    }};
}

fn lengths(case: &Fixture, name: &str) -> Vec<usize> {
    case.integers(name).iter().map(|length| usize::try_from(length).expect("lengths are 0 or more")).collect()
}

fn cosine_distance<'t>(x: &Var<'t, f64>, y: &Var<'t, f64>) -> Var<'t, f64> {
    1.0 - x.cosine_similarity(y, 1, 1e-8)
}

/// Returns the loss of a case for its inputs as variables.
fn loss<'t>(case: &Fixture, inputs: &[Var<'t, f64>]) -> Var<'t, f64> {
    let (x, reduction) = (inputs[0], reduction(case));
    let target = || x.tape().constant(case.get("target"));
    let margin = |default| number(case, "margin", default);
    match case.about["loss"].as_str().expect("a loss has a name") {
        "BCELoss" => with_tensor!(BceLoss::new(), case, weight).reduction(reduction).of(x, target()),
        "BCEWithLogitsLoss" => {
            let loss = with_tensor!(BceWithLogitsLoss::new(), case, weight, pos_weight);
            loss.reduction(reduction).broadcast().of(x, target())
        }
        "CTCLoss" => {
            let loss = CtcLoss::new().zero_infinity(flag(case, "zero_infinity", false)).reduction(reduction);
            let (inputs, targets) = (lengths(case, "input_lengths"), lengths(case, "target_lengths"));
            // PyTorch's gradient is the gradient of the input of log_softmax. A second log_softmax changes no value.
            loss.of(x.log_softmax(2), &case.integers("target"), &inputs, &targets)
        }
        "CosineEmbeddingLoss" => {
            CosineEmbeddingLoss::new().margin(margin(0.0)).reduction(reduction).of(x, inputs[1], target())
        }
        "CrossEntropyLoss" => {
            let loss = with_tensor!(CrossEntropyLoss::new(), case, weight).reduction(reduction);
            let loss = loss.label_smoothing(number(case, "label_smoothing", 0.0));
            if case.name.contains("/probabilities") {
                return loss.of_probabilities(x, target());
            }
            loss.ignore_index(number(case, "ignore_index", -100.0) as i64).of(x, &case.integers("target"))
        }
        "GaussianNLLLoss" => {
            let loss = GaussianNllLoss::new().full(flag(case, "full", false)).eps(number(case, "eps", 1e-6));
            loss.reduction(reduction).of(x, target(), inputs[1])
        }
        "HingeEmbeddingLoss" => HingeEmbeddingLoss::new().margin(margin(1.0)).reduction(reduction).of(x, target()),
        "HuberLoss" => HuberLoss::new().delta(number(case, "delta", 1.0)).reduction(reduction).of(x, target()),
        "KLDivLoss" => {
            let loss = KlDivLoss::new().log_target(flag(case, "log_target", false)).reduction(reduction);
            let loss = loss.of(x, target());
            // In PyTorch, `batchmean` is a reduction that divides the sum by the number of samples.
            if case.option("reduction") == "batchmean" { loss / x.shape()[0] as f64 } else { loss }
        }
        "L1Loss" => L1Loss::new().reduction(reduction).of(x, target()),
        "MSELoss" => MseLoss::new().reduction(reduction).of(x, target()),
        "MarginRankingLoss" => {
            MarginRankingLoss::new().margin(margin(0.0)).reduction(reduction).of(x, inputs[1], target())
        }
        "MultiLabelMarginLoss" => MultilabelMarginLoss::new().reduction(reduction).of(x, &case.integers("target")),
        "MultiLabelSoftMarginLoss" => {
            with_tensor!(MultilabelSoftMarginLoss::new(), case, weight).reduction(reduction).of(x, target())
        }
        "MultiMarginLoss" => {
            let loss = MultiMarginLoss::new().p(number(case, "p", 1.0) as i32).margin(margin(1.0));
            with_tensor!(loss, case, weight).reduction(reduction).of(x, &case.integers("target"))
        }
        "NLLLoss" => {
            let loss = with_tensor!(NllLoss::new(), case, weight).reduction(reduction);
            loss.ignore_index(number(case, "ignore_index", -100.0) as i64).of(x, &case.integers("target"))
        }
        "PoissonNLLLoss" => {
            let loss = PoissonNllLoss::new().log_input(flag(case, "log_input", true)).full(flag(case, "full", false));
            loss.eps(number(case, "eps", 1e-8)).reduction(reduction).of(x, target())
        }
        "SmoothL1Loss" => SmoothL1Loss::new().beta(number(case, "beta", 1.0)).reduction(reduction).of(x, target()),
        "SoftMarginLoss" => SoftMarginLoss::new().reduction(reduction).of(x, target()),
        "TripletMarginLoss" => {
            let loss = TripletMarginLoss::new().margin(margin(1.0)).p(number(case, "p", 2.0));
            loss.swap(flag(case, "swap", false)).reduction(reduction).of(x, inputs[1], inputs[2])
        }
        "TripletMarginWithDistanceLoss" => {
            let swap = case.name.contains("cosine_swap");
            let loss = TripletMarginLoss::new().margin(margin(1.0)).swap(swap).reduction(reduction);
            loss.by_distance(x, inputs[1], inputs[2], cosine_distance)
        }
        other => panic!("{}: no loss here is {other}", case.name),
    }
}

#[test]
fn values_and_gradients() {
    let losses: Vec<Fixture> = cases("").into_iter().filter(|case| !case.about["loss"].is_null()).collect();
    assert_eq!(losses.len(), 155);
    for case in losses {
        let names = case.about["inputs"].as_array().expect("inputs have names");
        let names: Vec<&str> = names.iter().map(|name| name.as_str().expect("names are text")).collect();
        let differentiable = |name: &&str| !name.starts_with("target") && !name.ends_with("_lengths");
        let names: Vec<&str> = names.into_iter().filter(differentiable).collect();
        let tape = Tape::<f64>::new();
        let inputs: Vec<Var<'_, f64>> = names.iter().map(|name| tape.var(&case.get(name))).collect();
        let output = loss(&case, &inputs);
        case.check("output", &output.value());
        let gradients = (output * tape.constant(case.get("upstream"))).sum(..).backward();
        for (name, input) in names.iter().zip(inputs) {
            if case.has(&format!("grad.{name}")) {
                case.check(&format!("grad.{name}"), gradients.of(input));
            }
        }
    }
}
