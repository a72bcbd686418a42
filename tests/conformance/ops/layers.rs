//! Parts of layers: normalizations, attention, recurrent cells, embedding, dropout.

use wengert_tensor::ops::{
    Argument, Arithmetic, Attention, AttentionMask, CellWeights, Dropout, Embedding, EmbeddingOptions, Normalization,
    Recurrent, Views,
};
use wengert_tensor::{Generator, Tensor};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Given, Stop, Value};
use super::{float, floats};

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let input = || call.float(0, "input");
    let parameter = |position, name| call.float_or_none(position, name);
    Ok(match call.op {
        "nn.functional.layer_norm" => {
            let (weight, bias) = (parameter(2, "weight")?, parameter(3, "bias")?);
            let eps = call.number(4, "eps")?.unwrap_or(1e-5);
            let shape = call.sizes(1, "normalized_shape")?;
            float(input()?.try_layer_norm(shape, weight.as_ref(), bias.as_ref(), eps)?)
        }
        "nn.functional.rms_norm" => {
            let shape = call.sizes(1, "normalized_shape")?;
            float(input()?.try_rms_norm(shape, parameter(2, "weight")?.as_ref(), call.number(3, "eps")?)?)
        }
        "nn.functional.group_norm" => {
            let (weight, bias) = (parameter(2, "weight")?, parameter(3, "bias")?);
            let eps = call.number(4, "eps")?.unwrap_or(1e-5);
            float(input()?.try_group_norm(call.size(1, "num_groups")?, weight.as_ref(), bias.as_ref(), eps)?)
        }
        "nn.functional.instance_norm" => {
            let (weight, bias) = (parameter(3, "weight")?, parameter(4, "bias")?);
            let eps = call.number(7, "eps")?.unwrap_or(1e-5);
            float(input()?.try_instance_norm(weight.as_ref(), bias.as_ref(), eps)?)
        }
        "nn.functional.batch_norm" => batch_norm(call)?,
        "nn.functional.scaled_dot_product_attention" => attention(call)?,
        "nn.functional.dropout" => {
            let (p, training) = (call.number(1, "p")?.unwrap_or(0.5), call.flag(2, "training", true)?);
            call.flag(3, "inplace", false)?;
            if training && p > 0.0 && p < 1.0 {
                return Err(call.not_built("random numbers of the reference"));
            }
            float(input()?.try_dropout(p, training, &mut Generator::new(0))?)
        }
        "nn.functional.embedding" => {
            let options = EmbeddingOptions {
                padding_idx: call.integer(2, "padding_idx")?,
                scale_grad_by_freq: call.flag(5, "scale_grad_by_freq", false)?,
            };
            float(call.float(1, "weight")?.try_embedding(call.ints(0, "input")?, options)?)
        }
        "rnn_tanh_cell" => float(input()?.try_rnn_tanh_cell(&call.float(1, "hx")?, weights(call)?.borrowed())?),
        "rnn_relu_cell" => float(input()?.try_rnn_relu_cell(&call.float(1, "hx")?, weights(call)?.borrowed())?),
        "gru_cell" => float(input()?.try_gru_cell(&call.float(1, "hx")?, weights(call)?.borrowed())?),
        "lstm_cell" => {
            let states = call.floats(1, "hx")?;
            let [state, cell] = &states[..] else { return Err(call.not_built("these states")) };
            let (state, cell) = input()?.try_lstm_cell(state, cell, weights(call)?.borrowed())?;
            floats(vec![state, cell])
        }
        _ => None,
    })
}

/// The two weights and the two optional biases of a recurrent cell, as the call gives them.
struct Weights<A>([A; 2], [Option<A>; 2]);

impl<A> Weights<A> {
    fn borrowed(&self) -> CellWeights<'_, A> {
        let Weights([input, hidden], [input_bias, hidden_bias]) = self;
        CellWeights { input, hidden, input_bias: input_bias.as_ref(), hidden_bias: hidden_bias.as_ref() }
    }
}

fn weights<A: Array>(call: &Call<A>) -> Result<Weights<A>, Stop> {
    Ok(Weights(
        [call.float(2, "w_ih")?, call.float(3, "w_hh")?],
        [call.float_or_none(4, "b_ih")?, call.float_or_none(5, "b_hh")?],
    ))
}

/// Returns the result of batch normalization, and the new running statistics if the call changes them.
fn batch_norm<A: Array>(call: &Call<A>) -> Result<Option<Vec<Value<A>>>, Stop> {
    let x = call.float(0, "input")?;
    let running = (call.float_or_none(1, "running_mean")?, call.float_or_none(2, "running_var")?);
    let (weight, bias) = (call.float_or_none(3, "weight")?, call.float_or_none(4, "bias")?);
    let (weight, bias) = (weight.as_ref(), bias.as_ref());
    let training = call.flag(5, "training", false)?;
    let momentum = call.number(6, "momentum")?.unwrap_or(0.1);
    let eps = call.number(7, "eps")?.unwrap_or(1e-5);
    if !training {
        let (Some(mean), Some(variance)) = running else { return Err(call.not_built("no running statistics")) };
        return Ok(float(x.try_batch_norm(&mean, &variance, weight, bias, eps)?));
    }
    let normed = x.try_batch_norm_training(weight, bias, eps)?;
    let mut results = vec![normed.output];
    for (running, batch) in [(running.0, normed.mean), (running.1, normed.variance)] {
        if let Some(running) = running {
            let (kept, new) = (running.try_mul(1.0 - momentum)?, batch.try_detach()?.try_mul(momentum)?);
            results.push(kept.try_add(&new)?);
        }
    }
    Ok(floats(results))
}

fn attention<A: Array>(call: &Call<A>) -> Result<Option<Vec<Value<A>>>, Stop> {
    let (query, key, value) = (call.float(0, "query")?, call.float(1, "key")?, call.float(2, "value")?);
    if call.number(4, "dropout_p")?.is_some_and(|p| p > 0.0) {
        return Err(call.not_built("random numbers of the reference"));
    }
    let causal = call.flag(5, "is_causal", false)?;
    let scale = call.number(6, "scale")?;
    let bias;
    let mask = match call.given(3, "attn_mask") {
        None if causal => AttentionMask::Causal,
        None => AttentionMask::None,
        Some(Given::Tensor(Value::Bool(keep))) => AttentionMask::Keep(keep),
        Some(_) => match call.operand(3, "attn_mask")? {
            Argument::Array(given) => {
                bias = given;
                AttentionMask::Add(&bias)
            }
            Argument::Number(number) => {
                bias = query.constant(&Tensor::scalar(number));
                AttentionMask::Add(&bias)
            }
        },
    };
    Ok(float(if call.flag(7, "enable_gqa", false)? {
        query.try_grouped_query_attention(&key, &value, mask, scale)?
    } else {
        query.try_scaled_dot_product_attention(&key, &value, mask, scale)?
    }))
}
