//! Powers: ∂/∂x xʸ = y xʸ⁻¹ and ∂/∂y xʸ = xʸ ln x, with PyTorch's results at 0 and 0⁰.

use wengert_tensor::Float;
use wengert_tensor::ops::{Arithmetic, Comparison, Functions, where_};
use wengert_tensor::plan::Op;

use super::mode::Formula;
use crate::Var;

/// Records ∂/∂x xʸ · v = v y xʸ⁻¹, for a tangent or incoming gradient v. The result is 0 where y = 0.
pub(super) fn to_base<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>, v: Var<'t, T>) -> Formula<'t, T> {
    match plain_number(y) {
        Some(0.0) => Formula::Zero,
        Some(exponent) => Formula::Is(v * slope(x, exponent)),
        None => Formula::Is(where_(&y.eq(0.0), &v.zeros_like(), v * (y * x.pow(y - 1.0)))),
    }
}

/// Records the derivative n xⁿ⁻¹ of xⁿ for a number n.
pub(super) fn slope<'t, T: Float>(x: Var<'t, T>, n: f64) -> Var<'t, T> {
    if n == 2.0 { x * 2.0 } else { x.pow(n - 1.0) * n }
}

/// Records ∂/∂y xʸ · v = v xʸ ln x, for a tangent or incoming gradient v. The result is 0 where x = 0 and y ≥ 0.
pub(super) fn to_exponent<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>, z: Var<'t, T>, v: Var<'t, T>) -> Var<'t, T> {
    let flat = x.eq(0.0).logical_and(y.ge(0.0));
    v * where_(&flat, &v.zeros_like(), z * x.log())
}

/// Returns the common value of all elements of `y` if `y` was recorded as one number or one constant of rank 0, and `None` otherwise.
fn plain_number<T: Float>(y: Var<'_, T>) -> Option<f64> {
    let record = y.tape.record.borrow();
    let mut index = y.index;
    while record.node(index).op == Op::Expand {
        index = record.inputs(index)[0];
    }
    match record.node(index).op {
        Op::Number(number) => Some(record.number(number)),
        Op::Constant(number) if record.shape(index).rank() == 0 => {
            record.leaf_data(number).try_item().ok().map(T::to_f64)
        }
        _ => None,
    }
}
