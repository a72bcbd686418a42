//! Chooses the derivative rule of a recorded operation, and checks the tape and the shape of its result.

use std::cell::{Cell, OnceCell};

use wengert_tensor::broadcast::Expansion;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::{Inputs, NodeIndex, Op};
use wengert_tensor::{Binary, Float, Reduction, Shape, Site, Unary, View};

use super::binary::LinearFactor;
use super::shared::{JacobianProduct, RuleResult, ensure_room};
use super::{binary, linear, movement, power, reduction, unary};
use crate::record::DETACH;
use crate::tape::{Record, RuleFailure};
use crate::{Call, Error, Tape, Var};

/// Returns the position of an operation's first differentiable input. All later inputs are differentiable too. Returns `None` if no input
/// is differentiable. Derivatives then stop at the operation. An operation that refuses derivatives counts as differentiable, so that the
/// derivative reaches it and becomes an error.
#[inline]
pub(crate) fn first_differentiable_input(op: Op) -> Option<usize> {
    match op {
        Op::Constant(_) | Op::Variable(_) | Op::Number(_) | DETACH | Op::Compare(_) => None,
        Op::Select => Some(1),
        _ => Some(0),
    }
}

/// Returns true if the operation is differentiable with respect to the input with index `input`, as in [`first_differentiable_input`].
#[inline]
pub(crate) fn is_differentiable_in(op: Op, input: usize) -> bool {
    first_differentiable_input(op).is_some_and(|first| input >= first)
}

/// Returns true if a derivative with respect to the input with index `input` is an error. An operation refuses the derivative with respect to
/// its first input if it refuses any.
#[inline]
pub(crate) fn refuses_derivative<T: Float>(record: &Record<T>, op: Op, input: usize) -> bool {
    match op {
        DETACH => false,
        Op::Alias(_) => true,
        Op::Unary(Unary::Not) => true,
        Op::Binary(Binary::Zeta) => input == 0,
        Op::Binary(
            Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight | Binary::Gcd | Binary::Lcm,
        ) => true,
        Op::Other(number) => !record.operation(number).is_differentiable(),
        _ => false,
    }
}

/// Returns true if the operation counts its input with index `input` as a constant, so that no derivative passes to this input.
pub(crate) fn is_constant_in<T: Float>(record: &Record<T>, op: Op, input: usize) -> bool {
    matches!(op, Op::Other(number) if record.operation(number).is_constant_in(input))
}

/// A recorded operation whose derivative is being recorded.
pub(crate) struct Primitive<'t, T: Float> {
    pub(crate) tape: &'t Tape<T>,
    /// The node of the operation's result.
    pub(crate) index: NodeIndex,
    pub(crate) op: Op,
    pub(crate) inputs: Inputs,
    /// The operation and the line of code that requested the derivative.
    pub(crate) at: Site,
    /// For a concatenation, the index in the result at which each input starts. Computed with the first derivative that needs it.
    pub(crate) part_starts: OnceCell<Vec<usize>>,
}

impl<'t, T: Float> Primitive<'t, T> {
    /// Records the incoming gradient `g` times the derivative with respect to the input with index `input`. Returns `None` if this
    /// derivative is zero for all values. Returns an error if the operation has no derivative, its rule fails, or the tape is full. Also
    /// returns an error if the rule returns a wrong shape or a variable of another tape.
    #[inline]
    pub(crate) fn vjp(&self, input: usize, g: Var<'t, T>) -> Result<Option<Var<'t, T>>, Error> {
        if let Some(factor) = LinearFactor::for_input(self.op, input) {
            return self.multiply_linear(factor, input, g).map(Some);
        }
        match self.derivative(input, g, JacobianProduct::Vjp)? {
            RuleResult::Value(result) => self.check_result(JacobianProduct::Vjp, input, result).map(Some),
            RuleResult::Zero => Ok(None),
            RuleResult::Undefined | RuleResult::FromReverse => Err(self.not_differentiable_error()),
        }
    }

    /// Records the derivative with respect to the input with index `input`, times the input's tangent `v`. The [`RuleResult`] also says if
    /// the derivative is zero, undefined or only known from the reverse rule. Returns an error if the rule fails, returns a wrong shape or
    /// a variable of another tape, or the tape is full.
    pub(crate) fn jvp(&self, input: usize, v: Var<'t, T>) -> Result<RuleResult<'t, T>, Error> {
        if let Some(factor) = LinearFactor::for_input(self.op, input) {
            return self.multiply_linear(factor, input, v).map(RuleResult::Value);
        }
        match self.derivative(input, v, JacobianProduct::Jvp)? {
            RuleResult::Value(result) => self.check_result(JacobianProduct::Jvp, input, result).map(RuleResult::Value),
            other => Ok(other),
        }
    }

    /// Records `v` times `factor`, the derivative of a sum, a difference or a product. The result always has the right shape, so its shape
    /// is not checked.
    #[inline]
    fn multiply_linear(&self, factor: LinearFactor, input: usize, v: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        let mut record = self.tape.record.borrow_mut();
        let shape = record.node(self.index).shape;
        let term = factor.multiply(&mut record, [v.index, self.inputs[1 - input]], shape, self.at.location);
        term.map(|term| self.tape.var_of(term)).ok_or(Error::TapeFull { at: self.at })
    }

    /// Returns true if the rule for the input with index `input` may record different nodes on two tapes with equal nodes. This is the case
    /// for an [`Operation`](crate::Operation) object, and for a rule that reads data.
    #[inline]
    pub(crate) fn rule_may_vary(&self, input: usize) -> bool {
        match self.op {
            Op::Other(_) => true,
            Op::Binary(Binary::Pow) => input == 0 && power::reads_data(self.tape.var_of(self.inputs[1])),
            _ => false,
        }
    }

    /// Returns the error that says that this operation has no derivative.
    pub(crate) fn not_differentiable_error(&self) -> Error {
        let record = self.tape.record.borrow();
        let (operation, recorded) = (record.name(self.index), record.location(self.index));
        Error::NotDifferentiable { operation, recorded, at: self.at }
    }

    /// Records the derivative with respect to the input with index `input`, applied to `v`. Depending on `product`, `v` is an incoming
    /// gradient or the tangent of this input.
    fn derivative(&self, input: usize, v: Var<'t, T>, product: JacobianProduct) -> Result<RuleResult<'t, T>, Error> {
        let (tape, at) = (self.tape, self.at);
        // The rules use operators, which panic on a full tape.
        ensure_room(tape, at)?;
        let z = tape.var_of(self.index);
        let x = tape.var_of(self.inputs[input]);
        let operand = |position: usize| tape.var_of(self.inputs[position]);
        Ok(match self.op {
            Op::Constant(_) | Op::Variable(_) | Op::Number(_) | DETACH | Op::Compare(_) => RuleResult::Zero,
            Op::Alias(_) => RuleResult::Undefined,
            Op::Unary(op) => unary::derivative(op, x, z, v, at)?,
            Op::Binary(op) => binary::derivative(op, input, [operand(0), operand(1)], z, v),
            Op::Select => binary::select_derivative(input, operand(0), v),
            Op::Expand => RuleResult::Value(match product {
                JacobianProduct::Vjp => sum_to_shape(v, &x.shape(), at)?,
                JacobianProduct::Jvp => v.apply_view(View::Expand(z.shape()), at)?,
            }),
            Op::Reshape => RuleResult::Value(match product {
                JacobianProduct::Vjp => v.apply_view(View::Reshape(x.shape()), at)?,
                JacobianProduct::Jvp => v.apply_view(View::Reshape(z.shape()), at)?,
            }),
            Op::Reduce(op) => RuleResult::Value(reduction::derivative(op, x, z, v, product)),
            Op::Matmul => RuleResult::Value(linear::derivative(input, operand(0), operand(1), v, product, at)?),
            Op::View(number) => {
                let view = tape.record.borrow().view(number).clone();
                RuleResult::Value(movement::derivative(view, x, v, product, at)?)
            }
            Op::Embed(number) => {
                let view = tape.record.borrow().view(number).clone();
                RuleResult::Value(movement::embed_derivative(view, z, v, product, at)?)
            }
            Op::Cat(axis) => {
                let axis = axis as usize;
                let start = self.part_starts.get_or_init(|| self.compute_part_starts(axis))[input];
                let slice = View::Slice { axis, start, len: x.shape()[axis], step: 1 };
                RuleResult::Value(movement::embed_derivative(slice, z, v, product, Site { operation: "cat", ..at })?)
            }
            Op::Other(number) => self.custom_derivative(number, input, v, product)?,
        })
    }

    /// Returns the index in this concatenation along the dimension `axis` at which each input starts.
    fn compute_part_starts(&self, axis: usize) -> Vec<usize> {
        let record = self.tape.record.borrow();
        let sizes = self.inputs.iter().map(|&part| record.shape(part)[axis]);
        let starts = sizes.scan(0, |end, size| Some(std::mem::replace(end, *end + size)));
        starts.collect()
    }

    /// Records the derivative of an operation that is an object of the trait `Operation`, applied to `v`. `number` is the operation's index
    /// in the tape's list of such objects.
    fn custom_derivative(
        &self,
        number: u32,
        input: usize,
        v: Var<'t, T>,
        product: JacobianProduct,
    ) -> Result<RuleResult<'t, T>, Error> {
        let operation = self.tape.record.borrow().operation(number).clone();
        if !operation.is_differentiable() {
            return Ok(RuleResult::Undefined);
        }
        let inputs = self.inputs.iter().map(|&input| self.tape.var_of(input)).collect();
        let (lacks_jvp, failure) = (Cell::new(false), RuleFailure::default());
        let call = Call { inputs, output: self.tape.var_of(self.index), at: self.at, lacks_jvp, failure };
        let result = match product {
            JacobianProduct::Vjp => operation.vjp(&call, input, v),
            JacobianProduct::Jvp => operation.jvp(&call, input, v),
        };
        call.failure.take()?;
        Ok(match result {
            _ if call.lacks_jvp.get() => RuleResult::FromReverse,
            Some(result) => RuleResult::Value(result),
            None => RuleResult::Zero,
        })
    }

    /// Returns the result of a derivative rule, or an error if the result belongs to another tape or has the wrong shape.
    fn check_result(&self, product: JacobianProduct, input: usize, result: Var<'t, T>) -> Result<Var<'t, T>, Error> {
        self.tape.check_owns([result], self.at)?;
        let expected = self.tape.var_of(if product == JacobianProduct::Vjp { self.inputs[input] } else { self.index });
        if result.same_shape(&expected) {
            return Ok(result);
        }
        let (got, expected) = (Box::new(result.shape()), Box::new(expected.shape()));
        let record = self.tape.record.borrow();
        let (operation, recorded) = (record.name(self.index), record.location(self.index));
        Err(Error::RuleShape { rule: product.name(), operation, input, got, expected, recorded })
    }
}

/// Sums `v` over the dimensions that an expansion from `shape` added or stretched.
fn sum_to_shape<'t, T: Float>(v: Var<'t, T>, shape: &Shape, at: Site) -> Result<Var<'t, T>, Error> {
    let Some(expansion) = Expansion::new(shape, &v.shape()) else {
        unreachable!("{} was expanded from {shape}", v.shape())
    };
    let axes = expansion.reduced();
    let sum = if axes.is_empty() { v } else { v.apply_reduce(Reduction::Sum, &axes, at)? };
    if expansion.added().is_empty() { Ok(sum) } else { sum.apply_view(View::Reshape(shape.clone()), at) }
}

/// Records the sum of `term` and `total`. Returns `term` itself if `total` is `None`.
#[inline]
pub(crate) fn accumulate<'t, T: Float>(
    total: Option<Var<'t, T>>,
    term: Var<'t, T>,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let Some(total) = total else { return Ok(term) };
    let is_custom = matches!(total.tape.record.borrow().op(total.index), Op::Other(_));
    match is_custom.then(|| movement::add_index_adds(total, term, at)).flatten() {
        Some(sum) => sum,
        None => {
            let shape = |record: &mut Record<T>| record.node(term.index).shape;
            total.tape.push(Op::Binary(Binary::Add), [total.index, term.index], shape, at)
        }
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;

    /// Checks all functions of one and two operands: a derivative is refused if and only if there is no rule for it.
    #[test]
    fn operations_without_a_rule_refuse_derivatives() {
        let tape = Tape::<f64>::new();
        let [x, y] = [0.25, 0.5].map(|value| tape.var(&Tensor::from([value])));
        let at = Site::here("test");
        let mut refused = 0;
        let mut check = |op: Op, input: usize, formula: RuleResult<'_, f64>| {
            let refuses = refuses_derivative(&tape.record.borrow(), op, input);
            assert_eq!(matches!(formula, RuleResult::Undefined), refuses, "{op:?} {input}");
            assert!(!refuses || refuses_derivative(&tape.record.borrow(), op, 0), "{op:?}");
            refused += usize::from(refuses);
        };
        for &op in Unary::ALL {
            check(Op::Unary(op), 0, unary::derivative(op, x, x, y, at).unwrap());
        }
        for &op in Binary::ALL {
            for input in 0..2 {
                if LinearFactor::for_input(Op::Binary(op), input).is_none() {
                    check(Op::Binary(op), input, binary::derivative(op, input, [x, y], x, y));
                }
            }
        }
        // The derivatives of the bitwise complement, of seven functions of two integers, and of `zeta` with respect to its first operand.
        assert_eq!(refused, 1 + 2 * 7 + 1);
    }
}
