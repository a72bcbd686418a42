//! Which rule gives the derivative of a node, and which inputs are differentiable.

use std::cell::RefCell;

use wengert_tensor::broadcast::Expansion;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{Index, Op};
use wengert_tensor::{Binary, Float, Reduction, Shape, Site, View};

use super::binary::Slope;
use super::mode::Mode;
use super::{binary, linear, movement, reduction, unary};
use crate::record::DETACH;
use crate::tape::Reverse;
use crate::{Call, Error, Tape, Var};

/// The first differentiable input of an operation; all later inputs are differentiable too. `None` if none is, so that derivatives
/// stop at this node.
#[inline]
pub(crate) fn flows_from(op: Op) -> Option<usize> {
    match op {
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) | DETACH | Op::Compare(_) => None,
        Op::Select => Some(1),
        _ => Some(0),
    }
}

/// Whether the operation is differentiable with respect to input number `input`.
pub(crate) fn flows(op: Op, input: usize) -> bool {
    flows_from(op).is_some_and(|first| input >= first)
}

/// The derivative of node `index` with respect to its input number `input`, applied to `v`: the incoming gradient in reverse mode,
/// the input's tangent in forward mode. `None` if it is zero. `op` and `inputs` are the node's; `reverse` is reverse mode, for
/// operations that have no rule for forward mode.
#[allow(clippy::too_many_arguments)]
pub(crate) fn derivative<'t, T: Float>(
    tape: &'t Tape<T>,
    index: Index,
    op: Op,
    inputs: &[Index],
    input: usize,
    v: Var<'t, T>,
    mode: Mode,
    reverse: Reverse<'t, T>,
    at: Site,
) -> Result<Option<Var<'t, T>>, Error> {
    if let Some(slope) = Slope::of(op, input) {
        let mut record = tape.record.borrow_mut();
        let (shape, location) = (record.node(index).shape, record.location(index));
        let Some(term) = slope.times(&mut record, [v.index, inputs[1 - input]], shape, location) else {
            return Err(Error::TapeFull { at });
        };
        return Ok(Some(tape.at(term)));
    }
    let said = || {
        let record = tape.record.borrow();
        (record.name(index), record.location(index))
    };
    let none = || {
        let (operation, recorded) = said();
        Err(Error::NotDifferentiable { operation, recorded, at })
    };
    let z = tape.at(index);
    let x = tape.at(inputs[input]);
    let first = tape.at(inputs[0]);
    let result = match op {
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) | DETACH | Op::Compare(_) => None,
        Op::Alias(_) => return none(),
        Op::Unary(op) => match unary::derivative(op, x, z, v) {
            Some(result) => result,
            None => return none(),
        },
        Op::Binary(op) => match binary::derivative(op, input, first, tape.at(inputs[1]), z, v) {
            Some(result) => result,
            None => return none(),
        },
        Op::Select => binary::choice(input, first, v),
        Op::Expand => Some(match mode {
            Mode::Vjp => summed(v, &x.shape(), at)?,
            Mode::Jvp => v.apply_view(View::Expand(z.shape()), at)?,
        }),
        Op::Reshape => Some(match mode {
            Mode::Vjp => v.apply_view(View::Reshape(x.shape()), at)?,
            Mode::Jvp => v.apply_view(View::Reshape(z.shape()), at)?,
        }),
        Op::Reduce(op) => reduction::derivative(op, x, z, v, mode),
        Op::Matmul => Some(linear::derivative(input, first, tape.at(inputs[1]), v, mode, at)?),
        Op::View(number) => {
            let view = tape.record.borrow().view(number).clone();
            Some(movement::derivative(view, x, v, mode, at)?)
        }
        Op::Other(number) => {
            let operation = tape.record.borrow().operation(number).clone();
            if !operation.is_differentiable() {
                return none();
            }
            let inputs = inputs.iter().map(|&input| tape.at(input)).collect();
            let call = Call { inputs, output: z, reverse, error: RefCell::default(), at };
            let result = match mode {
                Mode::Vjp => operation.vjp(&call, input, v),
                Mode::Jvp => operation.jvp(&call, input, v),
            };
            if let Some(error) = call.error.take() {
                return Err(error);
            }
            result
        }
    };
    if let Some(result) = &result {
        let expected = if mode == Mode::Vjp { x } else { z };
        if !std::ptr::eq(result.tape, tape) {
            return Err(Error::OtherTape { at });
        }
        if !result.same_shape(&expected) {
            let (got, expected) = (Box::new(result.shape()), Box::new(expected.shape()));
            let (operation, recorded) = said();
            return Err(Error::RuleShape { rule: mode.name(), operation, input, got, expected, recorded });
        }
    }
    Ok(result)
}

/// `v` summed over the dimensions that an expansion from `shape` added or stretched.
fn summed<'t, T: Float>(v: Var<'t, T>, shape: &Shape, at: Site) -> Result<Var<'t, T>, Error> {
    let Some(expansion) = Expansion::new(shape, &v.shape()) else {
        unreachable!("what was expanded from {shape} sums to it")
    };
    let axes = expansion.reduced();
    let sum = if axes.is_empty() { v } else { v.apply_reduce(Reduction::Sum, &axes, at)? };
    if expansion.added().is_empty() { Ok(sum) } else { sum.apply_view(View::Reshape(shape.clone()), at) }
}

/// Adds `term` to `total`, if there is a total already.
pub(crate) fn accumulate<'t, T: Float>(
    total: Option<Var<'t, T>>,
    term: Var<'t, T>,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    match total {
        Some(total) => movement::added(total, term, at).unwrap_or_else(|| total.apply_binary(Binary::Add, &term, at)),
        None => Ok(term),
    }
}
