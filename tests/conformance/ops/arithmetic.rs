//! Operations on two operands that broadcast.

use wengert_tensor::ops::{Argument, Arithmetic, Operand, TensorLike};
use wengert_tensor::{Number, Scalar};

use super::super::call::{Call, Pair};
use super::super::skip::Reason;
use super::super::value::{Array, Attempt, Stop, Value};

/// Calls a method on a pair of operands if their element type is one of the listed kinds. Otherwise the call counts as not built.
macro_rules! on {
    ($call:ident, $method:ident, $($kind:ident)*) => {
        on!(@pair $call, $call.pair()?, $method, $($kind)*)
    };
    (@pair $call:ident, $pair:expr, $method:ident, $($kind:ident)*) => {
        match $pair {
            $(Pair::$kind(x, y) => vec![Value::$kind(x.$method(y)?)],)*
            #[allow(unreachable_patterns)]
            _ => return Err($call.not_built("this element type")),
        }
    };
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    Ok(Some(match call.op {
        "add" => on!(@pair call, scaled(call)?, try_add, Float Int Bool),
        "sub" => on!(@pair call, scaled(call)?, try_sub, Float Int),
        "rsub" => {
            let (Pair::Float(x, y), alpha) = (call.pair()?, call.number(2, "alpha")?) else {
                return Err(call.not_built("this element type"));
            };
            let x = times(&x, alpha)?;
            let y = match y {
                Argument::Array(y) => y,
                Argument::Number(y) => x.constant(&wengert_tensor::Tensor::scalar(y)),
            };
            vec![Value::Float(y.try_sub(&x)?)]
        }
        "mul" => on!(call, try_mul, Float Int Bool),
        "div" | "true_divide" => match call.text(2, "rounding_mode")? {
            None => match call.pair()? {
                Pair::Float(x, y) => vec![Value::Float(x.try_div(y)?)],
                // PyTorch's quotient of integers is a floating-point number. A program converts its operands first.
                Pair::Int(x, Argument::Array(y)) => {
                    let (x, y) = (call.constant(&x.try_cast()?), call.constant(&y.try_cast()?));
                    vec![Value::Float(x.try_div(&y)?)]
                }
                _ => return Err(Stop::RuledOut(Reason::MixedTypes)),
            },
            Some("trunc") => on!(call, try_div_trunc, Float Int),
            Some("floor") => on!(call, try_div_floor, Float Int),
            Some(other) => return Err(call.not_built(other)),
        },
        "floor_divide" => on!(call, try_floor_divide, Float Int),
        "fmod" => on!(call, try_fmod, Float Int),
        "remainder" => on!(call, try_remainder, Float Int),
        "pow" => on!(call, try_pow, Float Int),
        // PyTorch's `float_power` computes in f64, so it equals `pow` for f64.
        "float_power" if A::Elem::DTYPE == wengert_tensor::DType::F64 => on!(call, try_pow, Float),
        "maximum" => on!(call, try_maximum, Float Int Bool),
        "minimum" => on!(call, try_minimum, Float Int Bool),
        "max" if call.is_tensor(1, "other") => on!(call, try_maximum, Float Int Bool),
        "min" if call.is_tensor(1, "other") => on!(call, try_minimum, Float Int Bool),
        "fmax" => on!(call, try_fmax, Float Int),
        "fmin" => on!(call, try_fmin, Float Int),
        "atan2" => on!(call, try_atan2, Float),
        "hypot" => on!(call, try_hypot, Float),
        "copysign" => on!(call, try_copysign, Float),
        "special.zeta" => on!(call, try_zeta, Float),
        "nextafter" => on!(call, try_nextafter, Float),
        "bitwise_and" => on!(call, try_bitwise_and, Int Bool),
        "bitwise_or" => on!(call, try_bitwise_or, Int Bool),
        "bitwise_xor" => on!(call, try_bitwise_xor, Int Bool),
        "bitwise_left_shift" => on!(call, try_bitwise_left_shift, Int),
        "bitwise_right_shift" => on!(call, try_bitwise_right_shift, Int),
        "gcd" => on!(call, try_gcd, Int),
        "lcm" => on!(call, try_lcm, Int),
        _ => return Ok(None),
    }))
}

/// Returns the first two operands, with the second one multiplied by `alpha` if it is given. A program writes
/// `x.add(&y.mul(alpha))`.
pub fn scaled<A: Array>(call: &Call<A>) -> Result<Pair<A>, Stop> {
    let pair = call.pair()?;
    let Some(alpha) = call.number(2, "alpha")? else {
        return Ok(pair);
    };
    Ok(match pair {
        Pair::Float(x, y) => Pair::Float(x, times_argument(y, alpha)?),
        Pair::Int(x, y) if alpha.fract() == 0.0 => Pair::Int(x, times_argument(y, alpha)?),
        _ => return Err(Stop::RuledOut(Reason::MixedTypes)),
    })
}

fn times_argument<A: TensorLike<Elem: Number>>(y: Argument<A>, factor: f64) -> Result<Argument<A>, Stop> {
    Ok(match y {
        Argument::Array(y) => Argument::Array(times(&y, Some(factor))?),
        Argument::Number(y) => Argument::Number(A::Elem::from_f64(y.to_f64() * factor)),
    })
}

fn times<A: TensorLike<Elem: Number>>(x: &A, factor: Option<f64>) -> Result<A, Stop>
where
    f64: Operand<A>,
{
    Ok(match factor {
        Some(factor) if factor != 1.0 => x.try_mul(factor)?,
        _ => x.clone(),
    })
}
