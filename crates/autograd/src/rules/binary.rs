//! Derivatives of functions of two operands of one shape, and of the choice between two: ∂z/∂xᵢ · v.
//!
//! Ties and edges are PyTorch's: half to each of two equal operands of `maximum`; at NaN the gradient goes to both.

use wengert_tensor::ops::{Arithmetic, Comparison, Functions, where_};
use wengert_tensor::{Binary, Float};

use super::power;
use crate::Var;

/// ∂z/∂x · v for `input` 0, ∂z/∂y · v for 1. The outer `None`: there is no derivative. The inner one: it is zero.
pub(super) fn derivative<'t, T: Float>(
    op: Binary,
    input: usize,
    x: Var<'t, T>,
    y: Var<'t, T>,
    z: Var<'t, T>,
    v: Var<'t, T>,
) -> Option<Option<Var<'t, T>>> {
    let to_x = input == 0;
    Some(Some(match op {
        Binary::Add => v,
        Binary::Sub => {
            if to_x {
                v
            } else {
                -v
            }
        }
        Binary::Mul => {
            if to_x {
                v * y
            } else {
                v * x
            }
        }
        Binary::Div => {
            if to_x {
                v / y
            } else {
                -v * (z / y)
            }
        }
        Binary::Pow => {
            if to_x {
                return Some(power::to_base(x, y, v));
            } else {
                power::to_exponent(x, y, z, v)
            }
        }
        Binary::Maximum => larger(if to_x { x } else { y }, if to_x { y } else { x }, v),
        Binary::Minimum => larger(-if to_x { x } else { y }, -if to_x { y } else { x }, v),
        Binary::Fmax => ignoring_nan(x.gt(y), x, y, v, to_x),
        Binary::Fmin => ignoring_nan(x.lt(y), x, y, v, to_x),
        Binary::Atan2 => {
            // z = atan2(x, y): ∂z/∂x = y / (x² + y²), ∂z/∂y = -x / (x² + y²); 0 at the origin.
            let square = x * x + y * y;
            let inverse = where_(&square.eq(0.0), &v.zeros_like(), square.reciprocal());
            if to_x { v * y * inverse } else { v * -x * inverse }
        }
        Binary::Hypot => v * if to_x { x / z } else { y / z },
        // ±1 by whether the sign was changed; 0 where x is 0.
        Binary::Copysign => {
            if to_x {
                v * where_(&x.eq(0.0), &v.zeros_like(), z / x)
            } else {
                return Some(None);
            }
        }
        Binary::Fmod => {
            if to_x {
                v
            } else {
                -v * (x / y).trunc()
            }
        }
        Binary::Remainder => {
            if to_x {
                v
            } else {
                -v * x.div_floor(y)
            }
        }
        Binary::Nextafter => {
            if to_x {
                where_(&x.eq(y), &v.zeros_like(), v)
            } else {
                return Some(None);
            }
        }
        // ∂/∂y ζ(x, y) = -x ζ(x + 1, y)
        Binary::Zeta => {
            if to_x {
                return None;
            } else {
                v * -x * (x + 1.0).zeta(y)
            }
        }
        Binary::FloorDivide => return Some(None),
        _ => return None,
    }))
}

/// `v` where `x` is larger (or either is NaN), half of it at a tie, 0 where it is smaller.
fn larger<'t, T: Float>(x: Var<'t, T>, y: Var<'t, T>, v: Var<'t, T>) -> Var<'t, T> {
    let shared = where_(&x.eq(y), &(v * 0.5), v);
    where_(&x.lt(y), &v.zeros_like(), shared)
}

/// Half of `v` at a tie; else all of it to the one that was chosen: `x` where it `wins` or `y` is NaN.
fn ignoring_nan<'t, T: Float>(wins: Var<'t, T>, x: Var<'t, T>, y: Var<'t, T>, v: Var<'t, T>, to_x: bool) -> Var<'t, T> {
    let first = wins.logical_or(y.isnan());
    let zero = v.zeros_like();
    let chosen = if to_x { where_(&first, &v, zero) } else { where_(&first, &zero, v) };
    where_(&x.eq(y), &(v * 0.5), chosen)
}

/// z = mask ? x : y. `v` to the side that was chosen, 0 to the other.
pub(super) fn choice<'t, T: Float>(input: usize, mask: Var<'t, T>, v: Var<'t, T>) -> Option<Var<'t, T>> {
    match input {
        1 => Some(where_(&mask, &v, v.zeros_like())),
        2 => Some(where_(&mask, &v.zeros_like(), v)),
        _ => None,
    }
}
