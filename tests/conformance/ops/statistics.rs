//! Running sums and products, variances, norms, distances, softmax, and sums and means without NaN.

use wengert_tensor::ops::{Cumulative, Norms, Softmax, Statistics};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Stop, Value};
use super::float;

/// Returns the correction of the divisor, which is given as a number or as a boolean (true means 1).
fn correction<A: Array>(call: &Call<A>) -> Result<f64, Stop> {
    let unbiased = call.flag(9, "unbiased", true)?;
    Ok(call.number(9, "correction")?.unwrap_or(f64::from(u8::from(unbiased))))
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let x = || call.float(0, "self");
    let dim = || call.needed_integer(1, "dim");
    let dims = |position| call.dims(position, "dim");
    let keepdim = |position| call.flag(position, "keepdim", false);
    let power = |position, name| Ok::<f64, Stop>(call.number(position, name)?.unwrap_or(2.0));
    let two = |(first, second): (A, A)| Some(vec![Value::Float(first), Value::Float(second)]);
    Ok(match call.op {
        "cumsum" => match call.value(0, "self")? {
            Value::Int(x) => Some(vec![Value::Int(x.try_cumsum(dim()?)?)]),
            _ => float(x()?.try_cumsum(dim()?)?),
        },
        "cumprod" => float(x()?.try_cumprod(dim()?)?),
        "logcumsumexp" => float(x()?.try_logcumsumexp(dim()?)?),
        "diff" => float(x()?.try_diff(
            call.integer(1, "n")?.unwrap_or(1).try_into().map_err(|_| call.not_built("a negative 'n'"))?,
            call.integer(2, "dim")?.unwrap_or(-1),
        )?),
        "var" => float(x()?.try_var_with(dims(1)?, correction(call)?, keepdim(9)?)?),
        "std" => float(x()?.try_std_with(dims(1)?, correction(call)?, keepdim(9)?)?),
        "var_mean" => two(x()?.try_var_mean_with(dims(1)?, correction(call)?, keepdim(9)?)?),
        "std_mean" => two(x()?.try_std_mean_with(dims(1)?, correction(call)?, keepdim(9)?)?),
        "nansum" => float(x()?.try_nansum_with(dims(1)?, keepdim(2)?)?),
        "nanmean" => float(x()?.try_nanmean_with(dims(1)?, keepdim(2)?)?),
        "linalg.vector_norm" => float(x()?.try_vector_norm_with(power(1, "ord")?, dims(2)?, keepdim(3)?)?),
        "norm" => float(x()?.try_vector_norm_with(power(1, "p")?, dims(2)?, keepdim(3)?)?),
        "dist" => float(x()?.try_dist(&call.float(1, "other")?, power(2, "p")?)?),
        "cdist" => {
            // PyTorch has several formulas with the same result, so this option is read and ignored.
            call.text(3, "compute_mode")?;
            float(call.float(0, "x1")?.try_cdist(&call.float(1, "x2")?, power(2, "p")?)?)
        }
        "nn.functional.normalize" => {
            let dims = call.integers(2, "dim")?.unwrap_or(vec![1]);
            float(x()?.try_normalize(power(1, "p")?, dims, call.number(3, "eps")?.unwrap_or(1e-12))?)
        }
        "nn.functional.cosine_similarity" => {
            let (dim, eps) = (call.integer(2, "dim")?.unwrap_or(1), call.number(3, "eps")?.unwrap_or(1e-8));
            float(call.float(0, "x1")?.try_cosine_similarity(&call.float(1, "x2")?, dim, eps)?)
        }
        "nn.functional.pairwise_distance" => {
            let eps = call.number(3, "eps")?.unwrap_or(1e-6);
            let (x, y) = (call.float(0, "x1")?, call.float(1, "x2")?);
            float(x.try_pairwise_distance_with(&y, power(2, "p")?, eps, keepdim(4)?)?)
        }
        "softmax" => float(x()?.try_softmax(dim()?)?),
        "log_softmax" => float(x()?.try_log_softmax(dim()?)?),
        "nn.functional.softmin" => float(x()?.try_softmin(dim()?)?),
        "logsumexp" => float(x()?.try_logsumexp_with(dims(1)?, keepdim(2)?)?),
        _ => None,
    })
}
