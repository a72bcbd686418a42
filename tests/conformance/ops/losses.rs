//! Losses.

use wengert_tensor::ops::{
    ClassLosses, ClassOptions, Classes, LikelihoodLosses, LossReduction, MarginLosses, RegressionLosses, TripletOptions,
};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Stop, Value};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let Some(name) = call.op.strip_prefix("nn.functional.") else { return Ok(None) };
    let input = || call.float(0, "input");
    let target = || call.float(1, "target");
    let number = |position, name, default: f64| Ok::<_, Stop>(call.number(position, name)?.unwrap_or(default));
    let weight = |position| call.float_or_none(position, "weight");
    Ok(match name {
        "mse_loss" => float(input()?.try_mse_loss(&target()?, weight(3)?.as_ref(), reduction(call, 2)?)?),
        "l1_loss" => float(input()?.try_l1_loss(&target()?, weight(3)?.as_ref(), reduction(call, 2)?)?),
        "smooth_l1_loss" => {
            float(input()?.try_smooth_l1_loss(&target()?, number(3, "beta", 1.0)?, reduction(call, 2)?)?)
        }
        "huber_loss" => {
            let (delta, weight) = (number(3, "delta", 1.0)?, weight(4)?);
            float(input()?.try_huber_loss(&target()?, delta, weight.as_ref(), reduction(call, 2)?)?)
        }
        "kl_div" => float(input()?.try_kl_div(&target()?, call.flag(3, "log_target", false)?, reduction(call, 2)?)?),
        "poisson_nll_loss" => {
            let (log_input, full) = (call.flag(2, "log_input", true)?, call.flag(3, "full", false)?);
            let eps = number(4, "eps", 1e-8)?;
            float(input()?.try_poisson_nll_loss(&target()?, log_input, full, eps, reduction(call, 5)?)?)
        }
        "gaussian_nll_loss" => {
            let (variance, full, eps) = (call.float(2, "var")?, call.flag(3, "full", false)?, number(4, "eps", 1e-6)?);
            float(input()?.try_gaussian_nll_loss(&target()?, &variance, full, eps, reduction(call, 5)?)?)
        }
        "binary_cross_entropy" => {
            float(input()?.try_binary_cross_entropy(&target()?, weight(2)?.as_ref(), reduction(call, 3)?)?)
        }
        "binary_cross_entropy_with_logits" => {
            let (weight, positive) = (weight(2)?, call.float_or_none(4, "pos_weight")?);
            let reduction = reduction(call, 3)?;
            float(input()?.try_binary_cross_entropy_with_logits(
                &target()?,
                weight.as_ref(),
                positive.as_ref(),
                reduction,
            )?)
        }
        "hinge_embedding_loss" => {
            float(input()?.try_hinge_embedding_loss(&target()?, number(2, "margin", 1.0)?, reduction(call, 3)?)?)
        }
        "margin_ranking_loss" => {
            let (first, second, target) =
                (call.float(0, "input1")?, call.float(1, "input2")?, call.float(2, "target")?);
            let margin = number(3, "margin", 0.0)?;
            float(first.try_margin_ranking_loss(&second, &target, margin, reduction(call, 4)?)?)
        }
        "soft_margin_loss" => float(input()?.try_soft_margin_loss(&target()?, reduction(call, 2)?)?),
        "triplet_margin_loss" => {
            let (positive, negative) = (call.float(1, "positive")?, call.float(2, "negative")?);
            let options = TripletOptions {
                margin: number(3, "margin", 1.0)?,
                p: number(4, "p", 2.0)?,
                eps: number(5, "eps", 1e-6)?,
                swap: call.flag(6, "swap", false)?,
            };
            float(call.float(0, "anchor")?.try_triplet_margin_loss(
                &positive,
                &negative,
                options,
                reduction(call, 7)?,
            )?)
        }
        "nll_loss" => {
            let weight = weight(2)?;
            float(input()?.try_nll_loss(call.ints(1, "target")?, options(call, weight.as_ref())?)?)
        }
        "cross_entropy" => {
            let (x, weight) = (input()?, weight(2)?);
            let options = options(call, weight.as_ref())?;
            let options = ClassOptions { label_smoothing: number(5, "label_smoothing", 0.0)?, ..options };
            float(match call.value(1, "target")? {
                Value::Int(target) => x.try_cross_entropy(Classes::Indices(target), options)?,
                Value::Float(target) => x.try_cross_entropy(Classes::Probabilities(target), options)?,
                Value::Bool(_) => return Err(call.not_built("this element type")),
            })
        }
        _ => None,
    })
}

fn options<'w, A: Array>(call: &Call<A>, weight: Option<&'w A>) -> Result<ClassOptions<'w, A>, Stop> {
    let ignore_index = call.integer(3, "ignore_index")?.map_or(-100, |index| index as i64);
    Ok(ClassOptions { weight, ignore_index, reduction: reduction(call, 4)?, ..ClassOptions::default() })
}

fn reduction<A: Array>(call: &Call<A>, position: usize) -> Result<LossReduction, Stop> {
    match call.text(position, "reduction")? {
        None | Some("mean") => Ok(LossReduction::Mean),
        Some("sum") => Ok(LossReduction::Sum),
        Some("none") => Ok(LossReduction::None),
        Some(other) => Err(call.not_built(other)),
    }
}
