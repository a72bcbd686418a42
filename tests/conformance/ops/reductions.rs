//! Reductions over some dimensions.

use wengert_tensor::ops::{Extremes, Reductions};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Value};

/// Calls a reduction on the operand if its element type is one of the listed kinds. Otherwise the call counts as not built.
macro_rules! on {
    ($call:ident, $method:ident, $($kind:ident)*) => {{
        let (dims, keepdim) = ($call.dims(1, "dim")?, $call.flag(2, "keepdim", false)?);
        match $call.value(0, "self")? {
            $(Value::$kind(x) => Value::$kind(x.$method(dims, keepdim)?),)*
            #[allow(unreachable_patterns)]
            _ => return Err($call.not_built("this element type")),
        }
    }};
}

/// Calls a reduction on an operand of any element type. The result has the element type `$kind`.
macro_rules! to {
    ($kind:ident, $call:ident, |$x:ident| $body:expr) => {
        Value::$kind(match $call.value(0, "self")? {
            Value::Float($x) => $body,
            Value::Int($x) => $body,
            Value::Bool($x) => $body,
        })
    };
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let dims = |position| call.dims(position, "dim");
    let keepdim = || call.flag(2, "keepdim", false);
    Ok(Some(vec![match call.op {
        "sum" => on!(call, try_sum_with, Float Int),
        "mean" => on!(call, try_mean_with, Float),
        "prod" => on!(call, try_prod_with, Float Int),
        "amax" => on!(call, try_amax_with, Float Int Bool),
        "amin" => on!(call, try_amin_with, Float Int Bool),
        "any" => to!(Bool, call, |x| x.try_any_with(dims(1)?, keepdim()?)?),
        "all" => to!(Bool, call, |x| x.try_all_with(dims(1)?, keepdim()?)?),
        "count_nonzero" => to!(Int, call, |x| x.try_count_nonzero(dims(1)?)?),
        "argmax" => match call.integer(1, "dim")? {
            Some(dim) => to!(Int, call, |x| x.try_argmax_with(dim, keepdim()?)?),
            None => to!(Int, call, |x| x.try_argmax_all()?),
        },
        "argmin" => match call.integer(1, "dim")? {
            Some(dim) => to!(Int, call, |x| x.try_argmin_with(dim, keepdim()?)?),
            None => to!(Int, call, |x| x.try_argmin_all()?),
        },
        _ => return Ok(None),
    }]))
}
