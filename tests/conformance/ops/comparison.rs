//! Comparisons, masks and choices.

use wengert_tensor::ops::{Argument, Comparison, TensorLike, try_where_};
use wengert_tensor::{Scalar, Site, Tensor};

use super::super::call::{Call, Pair};
use super::super::value::{Array, Attempt, Given, Stop, Value};
use super::float;

macro_rules! compare {
    ($call:ident, $method:ident) => {
        match $call.pair()? {
            Pair::Float(x, y) => mask::<A>(Comparison::$method(&x, y)?)?,
            Pair::Int(x, y) => Comparison::$method(&x, y)?,
            Pair::Bool(x, y) => Comparison::$method(&x, y)?,
        }
    };
}

macro_rules! classify {
    ($call:ident, $method:ident) => {
        mask::<A>($call.float(0, "self")?.$method()?)?
    };
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    Ok(Some(vec![Value::Bool(match call.op {
        "eq" => compare!(call, try_eq),
        "ne" => compare!(call, try_ne),
        "lt" => compare!(call, try_lt),
        "le" => compare!(call, try_le),
        "gt" => compare!(call, try_gt),
        "ge" => compare!(call, try_ge),
        "logical_and" => compare!(call, try_logical_and),
        "logical_or" => compare!(call, try_logical_or),
        "logical_xor" => compare!(call, try_logical_xor),
        "isnan" => classify!(call, try_isnan),
        "isinf" => classify!(call, try_isinf),
        "isfinite" => classify!(call, try_isfinite),
        "logical_not" => match call.value(0, "self")? {
            Value::Float(x) => mask::<A>(x.try_logical_not()?)?,
            Value::Int(x) => x.try_logical_not()?,
            Value::Bool(x) => x.try_logical_not()?,
        },
        "where" if call.count() == 3 => return choose(call),
        _ => return Ok(None),
    })]))
}

/// Returns the result of a comparison as plain data; recorded variables give zeros and ones.
pub fn mask<A: Array>(mask: A::Mask) -> Result<Tensor<bool>, Stop> {
    Ok(mask.to_tensor(Site::here("mask"))?.try_cast()?)
}

fn choose<A: Array>(call: &Call<A>) -> Attempt<A> {
    let condition = call.bools(0, "condition")?;
    let scalar = |value: f64| call.constant(&Tensor::scalar(A::Elem::from_f64(value)));
    let (x, y) = match (call.given(1, "self"), call.given(2, "other")) {
        (Some(Given::Tensor(Value::Float(x))), _) => (x.clone(), call.operand(2, "other")?),
        (_, Some(Given::Tensor(Value::Float(y)))) => match call.operand(1, "self")? {
            Argument::Array(x) => (x, Argument::Array(y.clone())),
            Argument::Number(x) => (scalar(x.to_f64()), Argument::Array(y.clone())),
        },
        _ => return Err(call.not_built("this element type")),
    };
    Ok(float(try_where_(&x.constant_mask(condition, Site::here("where"))?, &x, y)?))
}
