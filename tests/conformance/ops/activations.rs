//! Activation functions, and functions of one operand with bounds or parameters.

use wengert_tensor::ops::{Activations, Arithmetic, Bounded};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Value};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let x = || call.float(0, "self");
    let number =
        |position: usize, name: &str, default: f64| call.number(position, name).map(|given| given.unwrap_or(default));
    Ok(float(match call.op {
        "nn.functional.relu6" => x()?.try_relu6()?,
        "nn.functional.hardtanh" => x()?.try_hardtanh(number(1, "min_val", -1.0)?, number(2, "max_val", 1.0)?)?,
        "nn.functional.leaky_relu" => x()?.try_leaky_relu(number(1, "negative_slope", 0.01)?)?,
        "nn.functional.prelu" => x()?.try_prelu(&call.float(1, "weight")?)?,
        "nn.functional.elu" => x()?.try_elu(number(1, "alpha", 1.0)?)?,
        "nn.functional.celu" => x()?.try_celu(number(1, "alpha", 1.0)?)?,
        "nn.functional.selu" => x()?.try_selu()?,
        "nn.functional.gelu" => match call.text(1, "approximate")? {
            None | Some("none") => x()?.try_gelu()?,
            Some("tanh") => x()?.try_gelu_tanh()?,
            Some(other) => return Err(call.not_built(other)),
        },
        "nn.functional.silu" => x()?.try_silu()?,
        "nn.functional.mish" => x()?.try_mish()?,
        "nn.functional.softplus" => x()?.try_softplus(number(1, "beta", 1.0)?, number(2, "threshold", 20.0)?)?,
        "nn.functional.softsign" => x()?.try_softsign()?,
        "nn.functional.tanhshrink" => x()?.try_tanhshrink()?,
        "nn.functional.hardshrink" => x()?.try_hardshrink(number(1, "lambd", 0.5)?)?,
        "nn.functional.softshrink" => x()?.try_softshrink(number(1, "lambd", 0.5)?)?,
        "nn.functional.threshold" => x()?.try_threshold(number(1, "threshold", 0.0)?, number(2, "value", 0.0)?)?,
        "nn.functional.hardswish" => x()?.try_hardswish()?,
        "nn.functional.hardsigmoid" => x()?.try_hardsigmoid()?,
        "nn.functional.logsigmoid" => x()?.try_logsigmoid()?,
        "nn.functional.glu" => x()?.try_glu(call.integer(1, "dim")?.unwrap_or(-1))?,
        "nan_to_num" => {
            x()?.try_nan_to_num(number(1, "nan", 0.0)?, call.number(2, "posinf")?, call.number(3, "neginf")?)?
        }
        "logit" => x()?.try_logit(call.number(1, "eps")?)?,
        "sinc" => x()?.try_sinc()?,
        "frac" => x()?.try_frac()?,
        "deg2rad" => x()?.try_deg2rad()?,
        "rad2deg" => x()?.try_rad2deg()?,
        "round" if matches!(call.value(0, "self")?, Value::Float(_)) => match call.integer(1, "decimals")? {
            None => x()?.try_round()?,
            Some(decimals) => x()?.try_round_to(decimals as i32)?,
        },
        _ => return Ok(None),
    }))
}
