//! Powers: ∂/∂x xʸ = y xʸ⁻¹ and ∂/∂y xʸ = xʸ ln x, with PyTorch's results at 0 and 0⁰.

use wengert_tensor::Float;
use wengert_tensor::ops::{Arithmetic, Comparison, Functions, where_};
use wengert_tensor::plan::{NodeIndex, Op};

use super::shared::RuleResult;
use crate::Var;
use crate::tape::Record;

/// Records ∂/∂x xʸ · v = v y xʸ⁻¹, for a tangent or incoming gradient v. The result is 0 where y = 0.
pub(super) fn base_derivative<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>, v: Var<'t, T>) -> RuleResult<'t, T> {
    match constant_exponent(y) {
        Some(0.0) => RuleResult::Zero,
        Some(exponent) => RuleResult::Value(v * slope(x, exponent)),
        None => RuleResult::Value(where_(&y.eq(0.0), &v.zeros_like(), v * (y * x.pow(y - 1.0)))),
    }
}

/// Records the derivative n xⁿ⁻¹ of xⁿ for a number n.
pub(super) fn slope<'t, T: Float>(x: Var<'t, T>, n: f64) -> Var<'t, T> {
    if n == 2.0 { x * 2.0 } else { x.pow(n - 1.0) * n }
}

/// Records ∂/∂y xʸ · v = v xʸ ln x, for a tangent or incoming gradient v. The result is 0 where x = 0 and y ≥ 0.
pub(super) fn exponent_derivative<'t, T: Float>(
    x: Var<'t, T>,
    y: Var<'t, T>,
    z: Var<'t, T>,
    v: Var<'t, T>,
) -> Var<'t, T> {
    let flat = x.eq(0.0).logical_and(y.ge(0.0));
    v * where_(&flat, &v.zeros_like(), z * x.log())
}

/// Returns the common value of all elements of `y` if `y` was recorded as one number or one constant of rank 0, and `None` otherwise.
fn constant_exponent<T: Float>(y: Var<'_, T>) -> Option<f64> {
    let record = y.tape.record.borrow();
    let index = unexpanded_node(&record, y.index);
    match record.op(index) {
        Op::Number(number) => Some(record.number(number)),
        Op::Constant(number) if record.shape(index).rank() == 0 => {
            record.leaf_data(number).try_item().ok().map(T::to_f64)
        }
        _ => None,
    }
}

/// Returns true if [`base_derivative`] reads the data of the exponent `y`, which is then a constant of rank 0.
pub(super) fn reads_data<T: Float>(y: Var<'_, T>) -> bool {
    let record = y.tape.record.borrow();
    let index = unexpanded_node(&record, y.index);
    matches!(record.op(index), Op::Constant(_)) && record.shape(index).rank() == 0
}

/// Returns the node before its expansion if the node `index` is an expansion, and `index` itself otherwise.
fn unexpanded_node<T: Float>(record: &Record<T>, mut index: NodeIndex) -> NodeIndex {
    while record.op(index) == Op::Expand {
        index = record.operands(index)[0];
    }
    index
}
