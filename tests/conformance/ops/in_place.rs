//! In-place operations.

use wengert_tensor::ops::{Argument, Arithmetic, Blas, Functions, InPlace};
use wengert_tensor::{Scalar, Tensor};

use super::super::call::Call;
use super::super::skip::Reason;
use super::super::value::{Array, Given, Stop, Value};

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

/// Calls an in-place method without another operand if the target's element type is one of the listed kinds. Otherwise the call counts as
/// not built.
macro_rules! alone {
    ($call:ident, $target:ident, $method:ident, $($kind:ident)*) => {
        match $target {
            $(Value::$kind(x) => x.$method()?,)*
            #[allow(unreachable_patterns)]
            _ => return Err($call.not_built("this element type")),
        }
    };
}

/// Performs the operation on `target`. Returns false if the operation is not in this file.
pub fn attempt<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop> {
    match call.op {
        "add_" => with!(call, target, try_add_, Float Int Bool),
        "sub_" => with!(call, target, try_sub_, Float Int),
        "mul_" => with!(call, target, try_mul_, Float Int Bool),
        "div_" => match call.text(2, "rounding_mode")? {
            None => with!(call, target, try_div_, Float),
            Some("floor") => with!(call, target, try_div_floor_, Float Int),
            Some(other) => return Err(call.not_built(other)),
        },
        "floor_divide_" => with!(call, target, try_floor_divide_, Float Int),
        "pow_" => with!(call, target, try_pow_, Float Int),
        "fmod_" => with!(call, target, try_fmod_, Float Int),
        "remainder_" => with!(call, target, try_remainder_, Float Int),
        "atan2_" => with!(call, target, try_atan2_, Float),
        "hypot_" => with!(call, target, try_hypot_, Float),
        "copysign_" => with!(call, target, try_copysign_, Float),
        "nextafter_" => with!(call, target, try_nextafter_, Float),
        "bitwise_and_" => with!(call, target, try_bitwise_and_, Int Bool),
        "bitwise_or_" => with!(call, target, try_bitwise_or_, Int Bool),
        "bitwise_xor_" => with!(call, target, try_bitwise_xor_, Int Bool),
        "copy_" => with!(call, target, try_copy_, Float Int Bool),
        "neg_" => alone!(call, target, try_neg_, Float Int),
        "abs_" => alone!(call, target, try_abs_, Float Int),
        "square_" => alone!(call, target, try_square_, Float Int),
        "sqrt_" => alone!(call, target, try_sqrt_, Float),
        "exp_" => alone!(call, target, try_exp_, Float),
        "log_" => alone!(call, target, try_log_, Float),
        "sin_" => alone!(call, target, try_sin_, Float),
        "cos_" => alone!(call, target, try_cos_, Float),
        "tanh_" => alone!(call, target, try_tanh_, Float),
        "sigmoid_" => alone!(call, target, try_sigmoid_, Float),
        "relu_" => alone!(call, target, try_relu_, Float Int),
        "addmm_" => match target {
            Value::Float(x) => {
                let factor = |name| Ok::<f64, Stop>(call.number(9, name)?.unwrap_or(1.0));
                let (first, second) = (call.float(1, "mat1")?, call.float(2, "mat2")?);
                x.try_addmm_(&first, &second, factor("beta")?, factor("alpha")?)?;
            }
            _ => return Err(call.not_built("this element type")),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// Functions that return the other operand for a target of each element type. Only the floating-point operand is multiplied by `alpha`, if
/// it is given.
#[allow(non_snake_case)]
pub(super) mod operands {
    use wengert_tensor::ops::Arithmetic;

    use super::*;

    pub fn Float<A: Array>(call: &Call<A>) -> Result<Argument<A>, Stop> {
        let operand = call.operand(1, "other")?;
        Ok(match (call.number(2, "alpha")?, operand) {
            (None, operand) => operand,
            (Some(alpha), Argument::Array(y)) => Argument::Array(y.try_mul(alpha)?),
            (Some(alpha), Argument::Number(y)) => Argument::Number(A::Elem::from_f64(y.to_f64() * alpha)),
        })
    }

    pub fn Int<A: Array>(call: &Call<A>) -> Result<Argument<Tensor<i64>>, Stop> {
        Ok(match call.given(1, "other") {
            Some(Given::Tensor(Value::Int(y))) => Argument::Array(y.clone()),
            Some(Given::Integer(value)) => Argument::Number(*value),
            Some(Given::Flag(value)) => Argument::Number(i64::from(*value)),
            _ => return Err(Stop::RuledOut(Reason::MixedTypes)),
        })
    }

    pub fn Bool<A: Array>(call: &Call<A>) -> Result<Argument<Tensor<bool>>, Stop> {
        Ok(match call.given(1, "other") {
            Some(Given::Tensor(Value::Bool(y))) => Argument::Array(y.clone()),
            Some(Given::Flag(value)) => Argument::Number(*value),
            _ => return Err(Stop::RuledOut(Reason::MixedTypes)),
        })
    }
}
