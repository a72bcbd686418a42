//! Indexed writes, as functions and in place.

use wengert_tensor::ops::{Argument, Scatter, ScatterInPlace};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Stop, Value};
use super::float;
use super::indexing::items;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let dim = || call.needed_integer(1, "dim");
    let index = || call.ints(2, "index");
    let x = || call.float(0, "self");
    let source = || call.float(3, "source");
    Ok(match call.op {
        "scatter" => float(match call.operand(3, "src")? {
            Argument::Array(source) => x()?.try_scatter(dim()?, index()?, &source)?,
            Argument::Number(value) => x()?.try_scatter_value(dim()?, index()?, value)?,
        }),
        "scatter_add" => float(x()?.try_scatter_add(dim()?, index()?, &call.float(3, "src")?)?),
        "index_add" => float(x()?.try_index_add(dim()?, index()?, &source()?, alpha(call)?)?),
        "index_copy" => float(x()?.try_index_copy(dim()?, index()?, &source()?)?),
        "index_fill" => float(x()?.try_index_fill(dim()?, index()?, call.operand(3, "value")?)?),
        "index_put" => {
            let accumulate = call.flag(3, "accumulate", false)?;
            float(x()?.try_index_put(&items(call, 1, "indices")?, &call.float(2, "values")?, accumulate)?)
        }
        "masked_scatter" => float(x()?.try_masked_scatter(call.bools(1, "mask")?, &call.float(2, "source")?)?),
        _ => None,
    })
}

/// Performs the operation on `target`. Returns false if the operation is not in this file, or if `target` has no floating-point elements.
pub fn attempt_in_place<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop> {
    let Value::Float(x) = target else { return Ok(false) };
    let dim = || call.needed_integer(1, "dim");
    let index = || call.ints(2, "index");
    match call.op {
        "scatter_" => match call.operand(3, "src")? {
            Argument::Array(source) => x.try_scatter_(dim()?, index()?, &source)?,
            Argument::Number(value) => x.try_scatter_value_(dim()?, index()?, value)?,
        },
        "scatter_add_" => x.try_scatter_add_(dim()?, index()?, &call.float(3, "src")?)?,
        "index_add_" => x.try_index_add_(dim()?, index()?, &call.float(3, "source")?, alpha(call)?)?,
        "index_copy_" => x.try_index_copy_(dim()?, index()?, &call.float(3, "source")?)?,
        "index_fill_" => x.try_index_fill_(dim()?, index()?, call.operand(3, "value")?)?,
        "index_put_" => {
            let accumulate = call.flag(3, "accumulate", false)?;
            x.try_index_put_(&items(call, 1, "indices")?, &call.float(2, "values")?, accumulate)?;
        }
        "masked_scatter_" => x.try_masked_scatter_(call.bools(1, "mask")?, &call.float(2, "source")?)?,
        "setitem_" => x.try_index_set_(&items(call, 1, "items")?, call.operand(2, "value")?)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn alpha<A: Array>(call: &Call<A>) -> Result<f64, Stop> {
    Ok(call.number(4, "alpha")?.unwrap_or(1.0))
}
