//! Views, which are the same elements with another shape or order, and `sum_to_size`.

use wengert_tensor::ops::{TensorLike, Views, try_broadcast_tensors};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Results, Stop, Value};

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    if call.op == "broadcast_tensors" {
        let tensors = try_broadcast_tensors(&call.rest(0)?)?;
        return Ok(Some(tensors.into_iter().map(Value::Float).collect()));
    }
    if call.op == "view" {
        let sizes = call.sizes(1, "size")?;
        return Ok(Some(vec![match call.value(0, "self")? {
            Value::Float(x) => Value::Float(Array::view(x, sizes)?),
            Value::Int(x) => Value::Int(x.try_view(sizes)?),
            Value::Bool(x) => Value::Bool(x.try_view(sizes)?),
        }]));
    }
    if !NAMES.contains(&call.op) {
        return Ok(None);
    }
    let results: Results<A> = match call.value(0, "self")? {
        Value::Float(x) => Ok(vec![Value::Float(view(call, x)?)]),
        Value::Int(x) => Ok(vec![Value::Int(view(call, x)?)]),
        Value::Bool(x) => Ok(vec![Value::Bool(view(call, x)?)]),
    };
    results.map(Some)
}

const NAMES: &[&str] = &[
    "broadcast_to",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "movedim",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "squeeze",
    "sum_to_size",
    "t",
    "transpose",
    "unflatten",
    "unfold",
    "unsqueeze",
];

/// Returns the result of an operation in [`NAMES`] on a tensor of any element type.
fn view<A: Array, V: TensorLike>(call: &Call<A>, x: &V) -> Result<V, Stop> {
    let dim = |position, name| call.needed_integer(position, name);
    Ok(match call.op {
        "expand" => x.try_expand(call.sizes(1, "size")?)?,
        "broadcast_to" => x.try_broadcast_to(call.sizes(1, "size")?)?,
        "expand_as" => match call.value(1, "other")? {
            Value::Float(other) => x.try_expand(other.shape())?,
            Value::Int(other) => x.try_expand(other.shape())?,
            Value::Bool(other) => x.try_expand(other.shape())?,
        },
        "sum_to_size" => x.try_sum_to(call.sizes(1, "size")?)?,
        "reshape" => x.try_reshape(call.sizes(1, "shape")?)?,
        "flatten" => {
            let (start, end) = (call.integer(1, "start_dim")?, call.integer(2, "end_dim")?);
            x.try_flatten(start.unwrap_or(0), end.unwrap_or(-1))?
        }
        "unflatten" => x.try_unflatten(dim(1, "dim")?, call.sizes(2, "sizes")?)?,
        "permute" => x.try_permute(call.dims(1, "dims")?)?,
        "transpose" => x.try_transpose(dim(1, "dim0")?, dim(2, "dim1")?)?,
        "t" => x.try_t()?,
        "movedim" => x.try_movedim(call.dims(1, "source")?, call.dims(2, "destination")?)?,
        "squeeze" => x.try_squeeze(call.dims(1, "dim")?)?,
        "unsqueeze" => x.try_unsqueeze(dim(1, "dim")?)?,
        "flip" => x.try_flip(call.dims(1, "dims")?)?,
        "narrow" => x.try_narrow(dim(1, "dim")?, dim(2, "start")?, dim(3, "length")?)?,
        "slice" => {
            let (start, end) = (call.integer(2, "start")?, call.integer(3, "end")?);
            let span = (start, end, call.integer(4, "step")?.unwrap_or(1));
            x.try_slice(call.integer(1, "dim")?.unwrap_or(0), span)?
        }
        "select" => x.try_select(dim(1, "dim")?, dim(2, "index")?)?,
        "diagonal" => {
            let (first, second) = (call.integer(2, "dim1")?.unwrap_or(0), call.integer(3, "dim2")?.unwrap_or(1));
            x.try_diagonal(call.integer(1, "offset")?.unwrap_or(0), first, second)?
        }
        "unfold" => x.try_unfold(dim(1, "dimension")?, call.size(2, "size")?, call.size(3, "step")?)?,
        "detach" => x.detach(),
        _ => return Err(call.not_built("")),
    })
}
