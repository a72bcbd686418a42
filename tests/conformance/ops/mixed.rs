//! Operations that are made of arithmetic, most of them on two or three operands.

use wengert_tensor::Site;
use wengert_tensor::ops::{Argument, Clamp, Masking, Mixed};

use super::super::call::{Call, Pair};
use super::super::value::{Array, Attempt, Given, Stop, Value};
use super::comparison::mask;
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let x = || call.float(0, "self");
    let other = || call.operand(1, "other");
    Ok(float(match call.op {
        "clamp" => {
            let (min, max) = bounds(call)?;
            x()?.try_clamp_within(min, max)?
        }
        "clamp_min" => x()?.try_clamp_min(call.operand(1, "min")?)?,
        "clamp_max" => x()?.try_clamp_max(call.operand(1, "max")?)?,
        "lerp" => x()?.try_lerp(&call.float(1, "end")?, call.operand(2, "weight")?)?,
        "addcmul" => {
            let value = call.number(3, "value")?.unwrap_or(1.0);
            x()?.try_addcmul(&call.float(1, "tensor1")?, &call.float(2, "tensor2")?, value)?
        }
        "addcdiv" => {
            let value = call.number(3, "value")?.unwrap_or(1.0);
            x()?.try_addcdiv(&call.float(1, "tensor1")?, &call.float(2, "tensor2")?, value)?
        }
        "ldexp" => {
            // The library's `ldexp` needs a floating-point exponent, so a program converts an integer exponent first.
            let exponent = match call.value(1, "other")? {
                Value::Int(y) => call.constant(&y.try_cast()?),
                _ => call.float(1, "other")?,
            };
            x()?.try_ldexp(&exponent)?
        }
        "logaddexp" => x()?.try_logaddexp(other()?)?,
        "logaddexp2" => x()?.try_logaddexp2(other()?)?,
        "xlogy" | "special.xlog1py" => {
            let Pair::Float(x, y) = call.pair()? else { return Err(call.not_built("this element type")) };
            if call.op == "xlogy" { x.try_xlogy(y)? } else { x.try_xlog1py(y)? }
        }
        "heaviside" => x()?.try_heaviside(call.operand(1, "values")?)?,
        "masked_fill" => match call.value(0, "self")? {
            Value::Float(x) => {
                let mask = x.constant_mask(call.bools(1, "mask")?, Site::here("mask"))?;
                x.try_masked_fill(&mask, call.operand(2, "value")?)?
            }
            Value::Int(x) => match call.given(2, "value") {
                Some(Given::Integer(value)) => {
                    let filled = x.try_masked_fill(call.bools(1, "mask")?, *value)?;
                    return Ok(Some(vec![Value::Int(filled)]));
                }
                _ => return Err(call.not_built("this element type")),
            },
            Value::Bool(_) => return Err(call.not_built("this element type")),
        },
        "isclose" | "isposinf" | "isneginf" | "signbit" => {
            let x = x()?;
            let result = match call.op {
                "isclose" => x.try_isclose(
                    other()?,
                    call.number(2, "rtol")?.unwrap_or(1e-5),
                    call.number(3, "atol")?.unwrap_or(1e-8),
                    call.flag(4, "equal_nan", false)?,
                )?,
                "isposinf" => x.try_isposinf()?,
                "isneginf" => x.try_isneginf()?,
                _ => x.try_signbit()?,
            };
            return Ok(Some(vec![Value::Bool(mask::<A>(result)?)]));
        }
        _ => return Ok(None),
    }))
}

/// Returns a lower and an upper bound; each is optional.
#[allow(clippy::type_complexity)]
pub fn bounds<A: Array>(call: &Call<A>) -> Result<(Option<Argument<A>>, Option<Argument<A>>), Stop> {
    let bound = |position: usize, name: &str| match call.given(position, name) {
        None => Ok(None),
        Some(_) => call.operand(position, name).map(Some),
    };
    Ok((bound(1, "min")?, bound(2, "max")?))
}
