//! Derivatives of functions of two operands of the same shape, and of selection. Each rule records ∂z/∂xᵢ · v, for the result z, an operand
//! xᵢ, and v, which is a tangent or an incoming gradient.
//!
//! Ties and edge cases follow PyTorch. If the operands of `maximum` or `minimum` are equal, each gets half of the gradient. If one operand is
//! NaN, both get the whole gradient.

use std::panic::Location;

use wengert_tensor::ops::{Arithmetic, Comparison, Functions, Mixed, Views, where_};
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Binary, Float, Unary};

use super::power;
use super::shared::RuleResult;
use crate::Var;
use crate::tape::Record;

/// The derivative of a sum, a difference or a product with respect to one operand: the number 1 or -1, or the other operand.
#[derive(Clone, Copy)]
pub(crate) enum LinearFactor {
    One,
    MinusOne,
    Other,
}

impl LinearFactor {
    /// Returns the factor in the derivative of an operation with respect to the input with index `input`. Returns `None` if the operation
    /// is not a sum, a difference or a product.
    #[inline(always)]
    pub(crate) fn for_input(op: Op, input: usize) -> Option<LinearFactor> {
        match (op, input) {
            (Op::Binary(Binary::Add), _) | (Op::Binary(Binary::Sub), 0) => Some(LinearFactor::One),
            (Op::Binary(Binary::Sub), _) => Some(LinearFactor::MinusOne),
            (Op::Binary(Binary::Mul), _) => Some(LinearFactor::Other),
            _ => None,
        }
    }

    /// Records `v` times this factor. `shape` is the index of the shape of `v`, and `other` is the other operand of the operation. Returns
    /// `None` if the tape is full.
    #[inline(always)]
    pub(crate) fn multiply<T: Float>(
        self,
        record: &mut Record<T>,
        [v, other]: [NodeIndex; 2],
        shape: u32,
        line: &'static Location<'static>,
    ) -> Option<NodeIndex> {
        match self {
            LinearFactor::One => Some(v),
            LinearFactor::MinusOne => record.push(Op::Unary(Unary::Neg), [v], shape, Some(line)),
            LinearFactor::Other => record.push(Op::Binary(Binary::Mul), [v, other], shape, Some(line)),
        }
    }
}

/// Records the derivative of z = `op`(x, y), applied to `v`: ∂z/∂x · v for `input` 0, and ∂z/∂y · v for `input` 1.
pub(super) fn derivative<'t, T: Float>(
    op: Binary,
    input: usize,
    [x, y]: [Var<'t, T>; 2],
    z: Var<'t, T>,
    v: Var<'t, T>,
) -> RuleResult<'t, T> {
    let zero = || v.zeros_like();
    RuleResult::Value(match (op, input) {
        (Binary::Div, 0) => v / y,
        (Binary::Div, _) => -v * (z / y),
        (Binary::Pow, 0) => return power::base_derivative(x, y, v),
        (Binary::Pow, _) => power::exponent_derivative(x, y, z, v),
        (Binary::Maximum, 0) => maximum_derivative(x, y, v),
        (Binary::Maximum, _) => maximum_derivative(y, x, v),
        (Binary::Minimum, 0) => maximum_derivative(-x, -y, v),
        (Binary::Minimum, _) => maximum_derivative(-y, -x, v),
        (Binary::Fmax, _) => fmax_derivative(x.gt(y), x, y, v, input == 0),
        (Binary::Fmin, _) => fmax_derivative(x.lt(y), x, y, v, input == 0),
        // For z = atan2(x, y), ∂z/∂x = y / (x² + y²) and ∂z/∂y = -x / (x² + y²). Both derivatives are 0 at the origin.
        (Binary::Atan2, 0) => v * y * inverse_square(x, y),
        (Binary::Atan2, _) => v * -x * inverse_square(x, y),
        (Binary::Hypot, 0) => v * (x / z),
        (Binary::Hypot, _) => v * (y / z),
        // The derivative is 1 where `copysign` kept the sign of x, -1 where it changed the sign, and 0 where x is 0. It is NaN where x is
        // infinite.
        (Binary::Copysign, 0) => v * where_(&x.eq(0.0), &zero(), z / x),
        (Binary::Copysign, _) => return RuleResult::Zero,
        (Binary::Fmod, 0) => v,
        (Binary::Fmod, _) => -v * (x / y).trunc(),
        (Binary::Remainder, 0) => v,
        (Binary::Remainder, _) => -v * x.div_floor(y),
        // As in PyTorch, the slope at x = 0 is y, but derivatives of the slope are taken as for positive x.
        (Binary::Prelu, 0) => {
            let kink = (v * y).detach() + (v - v.detach());
            where_(&x.gt(0.0), &v, where_(&x.eq(0.0), &kink, v * y))
        }
        (Binary::Prelu, _) => where_(&x.ge(0.0), &zero(), v * x),
        // The derivative is 0 where the operation clamped x to [y, 1 - y]. The bound y counts as a constant.
        (Binary::LogitWithin, 0) => {
            let outside = x.lt(y).logical_or(x.gt(1.0 - y));
            where_(&outside, &zero(), v / (x * (1.0 - x)))
        }
        (Binary::LogitWithin, _) => return RuleResult::Zero,
        (Binary::Xlogy, 0) => where_(&x.eq(0.0).logical_and(y.le(0.0)), &zero(), v.xlogy(y)),
        (Binary::Xlogy, _) => v * x / y,
        (Binary::Xlog1py, 0) => where_(&x.eq(0.0).logical_and(y.le(-1.0)), &zero(), v.xlog1py(y)),
        (Binary::Xlog1py, _) => v * x / (y + 1.0),
        (Binary::Nextafter, 0) => where_(&x.eq(y), &zero(), v),
        (Binary::Nextafter, _) => return RuleResult::Zero,
        // ∂/∂y ζ(x, y) = -x ζ(x + 1, y). As in PyTorch, there is no derivative with respect to x.
        (Binary::Zeta, 1) => v * -x * (x + 1.0).zeta(y),
        (Binary::FloorDivide, _) => return RuleResult::Zero,
        _ => return RuleResult::Undefined,
    })
}

/// Records 1 / (x² + y²), or 0 where x² + y² is 0: at the origin, or where the squares are too small.
fn inverse_square<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>) -> Var<'t, T> {
    let square = x * x + y * y;
    where_(&square.eq(0.0), &x.zeros_like(), square.reciprocal())
}

/// Records `v` where `x` is larger or an operand is NaN, half of `v` where both are equal, and 0 where `x` is smaller.
fn maximum_derivative<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>, v: Var<'t, T>) -> Var<'t, T> {
    let shared = where_(&x.eq(y), &(v * 0.5), v);
    where_(&x.lt(y), &v.zeros_like(), shared)
}

/// Records the derivative of `fmax(x, y)` or `fmin(x, y)`, with respect to `x` if `is_for_x` is true, and otherwise with respect to `y`.
/// The derivative is half of `v` where both operands are equal. Elsewhere it is `v` for the selected operand and 0 for the other one. `x`
/// is selected where `x_wins` is true or `y` is NaN.
fn fmax_derivative<'t, T: Float>(
    x_wins: Var<'t, T>,
    x: Var<'t, T>,
    y: Var<'t, T>,
    v: Var<'t, T>,
    is_for_x: bool,
) -> Var<'t, T> {
    let first = x_wins.logical_or(y.isnan());
    let zero = v.zeros_like();
    let chosen = if is_for_x { where_(&first, &v, zero) } else { where_(&first, &zero, v) };
    where_(&x.eq(y), &(v * 0.5), chosen)
}

/// Records the derivative of z = mask ? x : y, which is `v` for the operand that the mask selects, and 0 for the other one.
pub(super) fn select_derivative<'t, T: Float>(input: usize, mask: Var<'t, T>, v: Var<'t, T>) -> RuleResult<'t, T> {
    match input {
        1 => RuleResult::Value(where_(&mask, &v, v.zeros_like())),
        2 => RuleResult::Value(where_(&mask, &v.zeros_like(), v)),
        _ => RuleResult::Zero,
    }
}
