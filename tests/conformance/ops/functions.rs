//! Functions of one operand.

use wengert_tensor::ops::{Arithmetic, Functions};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Value};

/// Calls a method on the operand if its element type is one of the listed kinds. Otherwise the call counts as not built.
macro_rules! on {
    ($call:ident, $method:ident, $($kind:ident)*) => {
        match $call.value(0, "self")? {
            $(Value::$kind(x) => Value::$kind(x.$method()?),)*
            #[allow(unreachable_patterns)]
            _ => return Err($call.not_built("this element type")),
        }
    };
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    Ok(Some(vec![match call.op {
        "neg" => on!(call, try_neg, Float Int),
        "positive" => call.value(0, "self")?.clone(),
        "abs" => on!(call, try_abs, Float Int),
        "sign" | "sgn" => on!(call, try_sign, Float Int),
        "reciprocal" => on!(call, try_reciprocal, Float),
        "square" => on!(call, try_square, Float Int),
        "sqrt" => on!(call, try_sqrt, Float),
        "rsqrt" => on!(call, try_rsqrt, Float),
        "floor" => on!(call, try_floor, Float Int),
        "ceil" => on!(call, try_ceil, Float Int),
        "round" => on!(call, try_round, Float Int),
        "trunc" => on!(call, try_trunc, Float Int),
        "exp" => on!(call, try_exp, Float),
        "exp2" => on!(call, try_exp2, Float),
        "expm1" => on!(call, try_expm1, Float),
        "log" => on!(call, try_log, Float),
        "log2" => on!(call, try_log2, Float),
        "log10" => on!(call, try_log10, Float),
        "log1p" => on!(call, try_log1p, Float),
        "sin" => on!(call, try_sin, Float),
        "cos" => on!(call, try_cos, Float),
        "tan" => on!(call, try_tan, Float),
        "asin" => on!(call, try_asin, Float),
        "acos" => on!(call, try_acos, Float),
        "atan" => on!(call, try_atan, Float),
        "sinh" => on!(call, try_sinh, Float),
        "cosh" => on!(call, try_cosh, Float),
        "tanh" => on!(call, try_tanh, Float),
        "asinh" => on!(call, try_asinh, Float),
        "acosh" => on!(call, try_acosh, Float),
        "atanh" => on!(call, try_atanh, Float),
        "sigmoid" => on!(call, try_sigmoid, Float),
        "nn.functional.relu" => on!(call, try_relu, Float Int),
        "erf" => on!(call, try_erf, Float),
        "erfc" => on!(call, try_erfc, Float),
        "erfinv" => on!(call, try_erfinv, Float),
        "lgamma" => on!(call, try_lgamma, Float),
        "digamma" => on!(call, try_digamma, Float),
        "bitwise_not" => on!(call, try_bitwise_not, Int Bool),
        _ => return Ok(None),
    }]))
}
