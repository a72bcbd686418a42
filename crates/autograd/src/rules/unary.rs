//! Derivatives of functions of one operand. Each rule records ∂z/∂x · v, for the result z, the operand x, and v, which is a tangent or an
//! incoming gradient. Most formulas are in Abramowitz and Stegun, chapters 4, 6 and 7. At kinks the formulas are written so that they give
//! PyTorch's result.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI};

use wengert_tensor::ops::{Arithmetic, Comparison, Functions, TensorLike, where_};
use wengert_tensor::{Float, Site, Unary};

use super::power;
use super::shared::RuleResult;
use crate::{Error, Var};

/// Records ∂z/∂x · v for z = `op`(x).
pub(super) fn derivative<'t, T: Float>(
    op: Unary,
    x: Var<'t, T>,
    z: Var<'t, T>,
    v: Var<'t, T>,
    at: Site,
) -> Result<RuleResult<'t, T>, Error> {
    Ok(RuleResult::Value(match op {
        Unary::Neg => -v,
        Unary::Abs => v * x.sign(),
        Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => return Ok(RuleResult::Zero),
        Unary::Reciprocal => -v * z * z,
        Unary::Square => v * x * 2.0,
        Unary::Sqrt => v / (z * 2.0),
        Unary::SqrtFlat => where_(&z.eq(0.0), &v.zeros_like(), v / (z * 2.0)),
        Unary::PowHalf => v * power::slope(x, 0.5),
        Unary::PowMinusHalf => v * power::slope(x, -0.5),
        Unary::Exp => v * z,
        Unary::Exp2 => v * z * LN_2,
        Unary::Expm1 => v * (z + 1.0),
        Unary::Log => v / x,
        Unary::Log2 => v / (x * LN_2),
        Unary::Log10 => v / (x * LN_10),
        Unary::Log1p => v / (x + 1.0),
        Unary::Sin => v * x.cos(),
        Unary::Cos => v * -x.sin(),
        Unary::Tan => v * (z * z + 1.0),
        Unary::Asin => v * (1.0 - x * x).rsqrt(),
        Unary::Acos => v * -(1.0 - x * x).rsqrt(),
        Unary::Atan => v / (x * x + 1.0),
        Unary::Sinh => v * x.cosh(),
        Unary::Cosh => v * x.sinh(),
        Unary::Tanh => v * (1.0 - z * z),
        Unary::Asinh => v * (x * x + 1.0).rsqrt(),
        Unary::Acosh => v * (x * x - 1.0).rsqrt(),
        Unary::Atanh => v / (1.0 - x * x),
        Unary::Sigmoid => v * (1.0 - z) * z,
        // Records 0 for x ≤ 0, and v elsewhere. At NaN it is v, because the comparison is false.
        Unary::Relu => where_(&z.le(0.0), &v.zeros_like(), v),
        Unary::Hardsigmoid => {
            // PyTorch's slope is 1/6 rounded to an f32. As in PyTorch, there is no second derivative: a request for it is an error.
            let inside = x.gt(-3.0).logical_and(x.lt(3.0));
            let slope = where_(&inside, &(v * f64::from(1.0f32 / 6.0)), v.zeros_like());
            slope.refuse_gradients(Site { operation: "hardsigmoid_backward", ..at })?
        }
        Unary::Sinc => {
            let angle = x * PI;
            let square = angle * x;
            let slope = (angle * angle.cos() - angle.sin()) / square;
            where_(&square.eq(0.0), &v.zeros_like(), v * slope)
        }
        // The derivative is NaN outside [0, 1], as the value is. The derivative is ∞ at both ends of this interval, also at -0, because
        // adding 0 to -0 gives 0.
        Unary::Logit => {
            let inside = x.ge(0.0).logical_and(x.le(1.0));
            let positive = x + 0.0;
            where_(&inside, &(v / (positive * (1.0 - x))), f64::NAN)
        }
        Unary::Erf => v * (-(x * x)).exp() * FRAC_2_SQRT_PI,
        Unary::Erfc => v * (-(x * x)).exp() * -FRAC_2_SQRT_PI,
        Unary::Ndtr => v * (x * x * -0.5).exp() * (0.5 * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI),
        Unary::Erfinv => v * (z * z).exp() * (1.0 / FRAC_2_SQRT_PI),
        Unary::Lgamma => v * x.digamma(),
        Unary::Digamma => v * x.trigamma(),
        // The trigamma function is ζ(2, x), whose derivative is -2 ζ(3, x).
        Unary::Trigamma => v * x.filled(&x.shape(), T::from_f64(3.0)).zeta(x) * -2.0,
        _ => return Ok(RuleResult::Undefined),
    }))
}
