//! In-place comparisons, in-place fills, and the in-place forms of composed operations.

use wengert_tensor::Site;
use wengert_tensor::ops::{Activations, Arithmetic, Clamp, Comparison, InPlace, Mixed};

use super::super::call::Call;
use super::super::value::{Array, Given, Stop, Value};
use super::in_place::operands;
use super::mixed::bounds;

/// Calls an in-place method with one more operand if the target's element type is one of the listed kinds. Otherwise the call counts as not
/// built.
macro_rules! with {
    ($call:ident, $target:ident, $method:ident, $($kind:ident)*) => {
        match $target {
            $(Value::$kind(x) => x.$method(operands::$kind($call)?)?,)*
            #[allow(unreachable_patterns)]
            _ => return Err($call.not_built("this element type")),
        }
    };
}

/// Performs the operation on `target`. Returns false if this file does not have the operation for the element type of `target`.
pub fn attempt<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop> {
    match call.op {
        "eq_" => with!(call, target, try_eq_, Float Int Bool),
        "ne_" => with!(call, target, try_ne_, Float Int Bool),
        "lt_" => with!(call, target, try_lt_, Float Int Bool),
        "le_" => with!(call, target, try_le_, Float Int Bool),
        "gt_" => with!(call, target, try_gt_, Float Int Bool),
        "ge_" => with!(call, target, try_ge_, Float Int Bool),
        "logical_and_" => with!(call, target, try_logical_and_, Float Int Bool),
        "logical_or_" => with!(call, target, try_logical_or_, Float Int Bool),
        "logical_xor_" => with!(call, target, try_logical_xor_, Float Int Bool),
        "xlogy_" => with!(call, target, try_xlogy_, Float),
        "div_" if call.text(2, "rounding_mode")? == Some("trunc") => with!(call, target, try_div_trunc_, Float Int),
        "masked_fill_" | "fill_" | "zero_" => return fill(call, target),
        _ => return floats(call, target),
    }
    Ok(true)
}

fn fill<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop> {
    match (call.op, target) {
        ("zero_", Value::Float(x)) => x.try_zero_()?,
        ("zero_", Value::Int(x)) => x.try_zero_()?,
        ("zero_", Value::Bool(x)) => x.try_zero_()?,
        ("fill_", Value::Float(x)) => x.try_fill_(call.operand(1, "value")?)?,
        ("fill_", Value::Int(x)) => match call.given(1, "value") {
            Some(Given::Integer(value)) => x.try_fill_(*value)?,
            _ => return Err(call.not_built("this element type")),
        },
        ("masked_fill_", Value::Float(x)) => {
            let mask = x.constant_mask(call.bools(1, "mask")?, Site::here("mask"))?;
            x.try_masked_fill_(&mask, call.operand(2, "value")?)?;
        }
        _ => return Err(call.not_built("this element type")),
    }
    Ok(true)
}

/// Performs an operation that only floating-point tensors have.
fn floats<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop> {
    let Value::Float(x) = target else { return Ok(false) };
    match call.op {
        "clamp_" => {
            let (min, max) = bounds(call)?;
            x.try_clamp_within_(min, max)?;
        }
        "clamp_min_" => x.try_clamp_min_(call.operand(1, "min")?)?,
        "clamp_max_" => x.try_clamp_max_(call.operand(1, "max")?)?,
        "lerp_" => x.try_lerp_(&call.float(1, "end")?, call.operand(2, "weight")?)?,
        "addcmul_" => {
            let value = call.number(3, "value")?.unwrap_or(1.0);
            x.try_addcmul_(&call.float(1, "tensor1")?, &call.float(2, "tensor2")?, value)?;
        }
        "addcdiv_" => {
            let value = call.number(3, "value")?.unwrap_or(1.0);
            x.try_addcdiv_(&call.float(1, "tensor1")?, &call.float(2, "tensor2")?, value)?;
        }
        "nn.functional.leaky_relu_" => x.try_leaky_relu_(call.number(1, "negative_slope")?.unwrap_or(0.01))?,
        _ => return Ok(false),
    }
    Ok(true)
}
