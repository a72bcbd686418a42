//! Splitting, repeating, diagonals, padding.

use wengert_tensor::ops::{Diagonals, PadMode, Padding, Repetition, Splitting};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Given, Stop};
use super::{float, floats};

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let dim = |position| call.integer(position, "dim").map(Option::unwrap_or_default);
    let x = || call.float(0, "self");
    let offset = |name| call.integer(1, name).map(Option::unwrap_or_default);
    Ok(match call.op {
        "chunk" => floats(x()?.try_chunk(call.size(1, "chunks")?, dim(2)?)?),
        "split" => match list(call, 1, "split_size")? {
            Some(sizes) => floats(x()?.try_split_sizes(&sizes, dim(2)?)?),
            None => floats(x()?.try_split(call.size(1, "split_size")?, dim(2)?)?),
        },
        "tensor_split" => match call.given(1, "indices_or_sections") {
            Some(Given::List(_)) => {
                let places = call.integers(1, "indices_or_sections")?.unwrap_or_default();
                floats(x()?.try_tensor_split_at(&places, dim(2)?)?)
            }
            _ => floats(x()?.try_tensor_split(call.size(1, "indices_or_sections")?, dim(2)?)?),
        },
        "unbind" => floats(x()?.try_unbind(dim(1)?)?),
        "repeat" => float(x()?.try_repeat(list(call, 1, "repeats")?.unwrap_or_default())?),
        "tile" => float(x()?.try_tile(list(call, 1, "dims")?.unwrap_or_default())?),
        "repeat_interleave" => float(if call.is_tensor(1, "repeats") {
            x()?.try_repeat_interleave_each(call.ints(1, "repeats")?, call.integer(2, "dim")?)?
        } else {
            x()?.try_repeat_interleave(call.size(1, "repeats")?, call.integer(2, "dim")?)?
        }),
        "roll" => {
            let (shifts, dims) = (call.integers(1, "shifts")?, call.integers(2, "dims")?);
            float(x()?.try_roll(shifts.unwrap_or_default(), dims.unwrap_or_default())?)
        }
        "tril" => float(x()?.try_tril(offset("diagonal")?)?),
        "triu" => float(x()?.try_triu(offset("diagonal")?)?),
        "diag" => float(x()?.try_diag(offset("diagonal")?)?),
        "diag_embed" => {
            let (first, second) = (call.integer(2, "dim1")?.unwrap_or(-2), call.integer(3, "dim2")?.unwrap_or(-1));
            float(x()?.try_diag_embed(offset("offset")?, first, second)?)
        }
        "nn.functional.pad" => {
            let value = call.number(3, "value")?.unwrap_or(0.0);
            let mode = match call.text(2, "mode")? {
                None | Some("constant") => PadMode::Constant(value),
                Some("reflect") => PadMode::Reflect,
                Some("replicate") => PadMode::Replicate,
                Some("circular") => PadMode::Circular,
                Some(other) => return Err(call.not_built(other)),
            };
            float(call.float(0, "input")?.try_pad(&call.integers(1, "pad")?.unwrap_or_default(), mode)?)
        }
        _ => None,
    })
}

/// Returns an argument that is a list of sizes, or `None` if the argument is a single number.
fn list<A: Array>(call: &Call<A>, position: usize, name: &str) -> Result<Option<Vec<usize>>, Stop> {
    if !matches!(call.given(position, name), Some(Given::List(_))) {
        return Ok(None);
    }
    let sizes = call.integers(position, name)?.unwrap_or_default();
    let sizes: Result<Vec<usize>, _> = sizes.into_iter().map(usize::try_from).collect();
    sizes.map(Some).map_err(|_| call.not_built("negative sizes"))
}
