//! The derivative of every primitive.
//!
//! Letters: `x`, `y` inputs, `z` output, `g` incoming gradient, `v` a tangent. A rule is a formula over recorded variables,
//! so it serves every order of derivative. No rule mentions broadcasting: by the time an operation is recorded, `expand`
//! has been recorded before it, and its adjoint is a sum.
//!
//! An elementwise operation has a diagonal derivative: the same formula, ∂z/∂x · v, serves the incoming gradient in reverse
//! mode and the tangent in forward mode. The others have one formula for each.
//!
//! | file | primitives |
//! |---|---|
//! | [`unary`] | functions of one operand |
//! | [`binary`] | functions of two, and the choice between two |
//! | [`power`] | powers, by an array of exponents or a number |
//! | [`reduction`] | sum, amax, amin; prod as a tree of products |
//! | [`norm`] | p-norms |
//! | [`variance`] | variances |
//! | [`cumulative`] | running sums |
//! | [`movement`] | views and their adjoints; take, put, cat |
//! | [`linear`] | matrix products |
//! | [`windows`] | convolutions; the largest and the mean of a window |
//! | [`meta`] | what changes no value: another derivative, a condition |
//!
//! `docs/derivatives.md` has all the formulas on one page, and why each primitive is one. A test fails where it lacks one.

mod binary;
mod cumulative;
mod linear;
mod meta;
mod movement;
mod norm;
mod power;
mod reduction;
mod unary;
mod variance;
mod windows;

use wengert_tensor::broadcast::Expansion;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::{Binary, Float, Reduction, Shape, Site, View};

pub(crate) use cumulative::CumSum;
pub(crate) use meta::{Guard, WithDerivative};
pub(crate) use movement::{Cat, Embed, Put, Take};
pub(crate) use norm::Norm;
pub(crate) use power::Root;
pub(crate) use reduction::product_over;
pub(crate) use variance::Variance;

use crate::record::{Index, Op};
use crate::{Call, Error, Tape, Var};

/// Which of the two modes a rule is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reverse: from the output to an input.
    Vjp,
    /// Forward: from an input to the output.
    Jvp,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Vjp => "vjp",
            Mode::Jvp => "jvp",
        }
    }
}

/// The first of an operation's inputs through which a derivative flows, as it does through those after it; `None` where it
/// flows through none. What lies behind is then not reached.
#[inline]
pub(crate) fn flows_from(op: Op) -> Option<usize> {
    match op {
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) | Op::Detach | Op::Compare(_) => None,
        Op::Select => Some(1),
        _ => Some(0),
    }
}

/// Whether a derivative flows through an operation's input number `input`.
pub(crate) fn flows(op: Op, input: usize) -> bool {
    flows_from(op).is_some_and(|first| input >= first)
}

/// The derivative of node `index` with respect to its input number `input`, applied to `v`: the incoming gradient in reverse
/// mode, the input's tangent in forward mode. `None` where it is zero. `op` and `inputs` are the node's.
#[allow(clippy::too_many_arguments)]
pub(crate) fn derivative<'t, T: Float>(
    tape: &'t Tape<T>,
    index: Index,
    op: Op,
    inputs: &[Index],
    input: usize,
    v: Var<'t, T>,
    mode: Mode,
    at: Site,
) -> Result<Option<Var<'t, T>>, Error> {
    // What has neither a formula to write nor a shape to check.
    match op {
        Op::Binary(Binary::Add) => return Ok(Some(v)),
        Op::Binary(Binary::Sub) if input == 0 => return Ok(Some(v)),
        Op::Binary(Binary::Mul) => {
            let other = tape.at(inputs[1 - input]);
            return v.apply_binary(Binary::Mul, &other, at).map(Some);
        }
        _ => {}
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
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) | Op::Detach | Op::Compare(_) => None,
        Op::Opaque(_) => return none(),
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
            let call = Call { inputs: inputs.iter().map(|&input| tape.at(input)).collect(), output: z };
            match mode {
                Mode::Vjp => operation.vjp(&call, input, v),
                Mode::Jvp => operation.jvp(&call, input, v),
            }
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

/// `v` summed over the dimensions that an expansion from `shape` has added or stretched.
fn summed<'t, T: Float>(v: Var<'t, T>, shape: &Shape, at: Site) -> Result<Var<'t, T>, Error> {
    let Some(expansion) = Expansion::new(shape, &v.shape()) else {
        unreachable!("what was expanded from {shape} sums to it")
    };
    let axes = expansion.reduced();
    let sum = if axes.is_empty() { v } else { v.apply_reduce(Reduction::Sum, &axes, at)? };
    if expansion.added().is_empty() { Ok(sum) } else { sum.apply_view(View::Reshape(shape.clone()), at) }
}

/// Sums `term` to `total`, where there is one already.
pub(crate) fn accumulate<'t, T: Float>(
    total: Option<Var<'t, T>>,
    term: Var<'t, T>,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    match total {
        Some(total) => total.apply_binary(Binary::Add, &term, at),
        None => Ok(term),
    }
}
