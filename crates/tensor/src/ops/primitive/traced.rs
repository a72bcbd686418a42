//! Runs operations that are made of several primitives on plain tensors. The operation is recorded as an expression, planned, and run in
//! few passes over memory.
//!
//! Primitives that the planner does not fuse, such as a running sum or a selection by positions, are computed immediately. Their results
//! enter the expression as data.

use std::cell::RefCell;

use wengert_macros::precompiled;

use crate::engine::plan::{Expression, NodeIndex, Op, plan_for};
use crate::memory::reserve::{addressable, check_fits};
use crate::ops::primitive::evaluate::Evaluate;
use crate::ops::primitive::tensor_like::{Composite, IntoArray, MaskOperand, TensorLike};
use crate::{Binary, Compare, Error, Float, Reduction, Shape, Site, Tensor, Unary, View};

/// Applies `composite` to `operands`: records its primitives as an expression, plans them together, and runs the plan.
pub(crate) fn compute_composite<T: Float, const N: usize>(
    composite: &impl Composite<N>,
    operands: [&Tensor<T>; N],
    at: Site,
) -> Result<Tensor<T>, Error> {
    let trace = RefCell::new(Trace { expression: Expression::default(), data: Vec::new(), at });
    let leaves = record_leaves(&trace, operands);
    composite.apply(leaves.each_ref(), at)?.into_value(at)
}

/// Records the operands of a composite as leaves of `trace`.
fn record_leaves<'e, T: Float, const N: usize>(
    trace: &'e RefCell<Trace<T>>,
    operands: [&Tensor<T>; N],
) -> [Traced<'e, T>; N] {
    operands.map(|x| Traced::leaf(trace, x))
}

/// An expression, and the data of its leaves.
struct Trace<T: Float> {
    expression: Expression,
    data: Vec<Tensor<T>>,
    at: Site,
}

#[precompiled]
impl<T: Float> Evaluate<T> for Trace<T> {
    type Error = Error;

    fn expression(&self) -> &Expression {
        &self.expression
    }

    fn known(&self, node: NodeIndex) -> Option<&Tensor<T>> {
        match self.expression.op(node) {
            Op::Constant(number) => self.data.get(number as usize),
            _ => None,
        }
    }

    fn site(&self, _node: NodeIndex) -> Site {
        self.at
    }

    fn run_other(&self, node: NodeIndex, _operands: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        unreachable!("node %{node} of a trace is a primitive")
    }
}

/// A node of the expression that is being recorded. It takes the place of a tensor in the code of the operation.
struct Traced<'e, T: Float> {
    trace: &'e RefCell<Trace<T>>,
    index: NodeIndex,
}

impl<T: Float> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        Traced { trace: self.trace, index: self.index }
    }
}

impl<'e, T: Float> Traced<'e, T> {
    /// Returns the value of the node.
    fn into_value(self, at: Site) -> Result<Tensor<T>, Error> {
        check_fits::<T>(&self.shape(), at)?;
        // If the operands are expanded, the value can be expanded too. It is then copied, because operations in place refuse expanded
        // tensors.
        let value = self.to_tensor(at)?;
        if value.layout().has_internal_overlap() { value.contiguous_copy(at) } else { Ok(value) }
    }

    fn leaf(trace: &'e RefCell<Trace<T>>, data: &Tensor<T>) -> Self {
        let number = trace.borrow().data.len() as u32;
        let leaf = Self::push(trace, Op::Constant(number), [], data.shape());
        let Trace { expression, data: leaves, .. } = &mut *trace.borrow_mut();
        leaves.push(match data.unexpanded() {
            Some(before) => {
                expression.set_unexpanded(leaf.index, before.shape());
                before
            }
            None => data.clone(),
        });
        leaf
    }

    fn push<const N: usize>(trace: &'e RefCell<Trace<T>>, op: Op, inputs: [NodeIndex; N], shape: &Shape) -> Self {
        let mut borrowed = trace.borrow_mut();
        let shape = borrowed.expression.intern(shape);
        match borrowed.expression.push(op, inputs, shape) {
            Some(index) => Traced { trace, index },
            None => unreachable!("an operation is made of a few primitives"),
        }
    }

    /// Records the operation `op` of `self`. Returns the new node, which has the shape `shape`.
    fn record(&self, op: Op, shape: &Shape) -> Result<Self, Error> {
        Ok(Self::push(self.trace, op, [self.index], shape))
    }

    /// Computes `operation` of the value of `self` immediately, because the planner does not fuse this operation. Adds the result to the
    /// trace as data.
    fn compute_now(&self, at: Site, operation: &Eager<'_, T>) -> Result<Self, Error> {
        self.try_constant(&operation(&self.to_tensor(at)?)?)
    }
}

/// An operation that is computed immediately on a tensor.
type Eager<'f, T> = dyn Fn(&Tensor<T>) -> Result<Tensor<T>, Error> + 'f;

impl<T: Float> IntoArray for Traced<'_, T> {
    type Array = Self;

    fn array(self) -> Self {
        self
    }
}

impl<T: Float> MaskOperand<Self> for Traced<'_, T> {
    fn to_mask(&self, _masked: &Self, _at: Site) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

#[precompiled]
impl<'e, T: Float> TensorLike for Traced<'e, T> {
    type Elem = T;
    type Mask = Self;
    type Error = Error;

    fn shape(&self) -> Shape {
        self.trace.borrow().expression.shape(self.index).clone()
    }

    fn same_shape(&self, other: &Self) -> bool {
        let expression = &self.trace.borrow().expression;
        expression.node(self.index).shape == expression.node(other.index).shape
    }

    fn try_constant(&self, data: &Tensor<T>) -> Result<Self, Error> {
        Ok(Self::leaf(self.trace, data))
    }

    fn try_number(&self, value: T) -> Result<Self, Error> {
        let op = self.trace.borrow_mut().expression.add_number(value.to_f64());
        Ok(Self::push(self.trace, op, [], &Shape::scalar()))
    }

    fn constant_mask(&self, mask: &Tensor<bool>, at: Site) -> Result<Self, Error> {
        self.try_constant(&mask.cast_to(at)?)
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn to_tensor(&self, at: Site) -> Result<Tensor<T>, Error> {
        let trace = self.trace.borrow();
        let plan = plan_for(&trace.expression, &[self.index], T::DTYPE);
        Ok(trace.run(&plan, at)?.swap_remove(0))
    }

    fn check_elements(&self, holds: fn(T) -> bool, message: &'static str, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.check_elements(holds, message, at))
    }

    fn apply_unary(&self, op: Unary, _at: Site) -> Result<Self, Error> {
        self.record(Op::Unary(op), &self.shape())
    }

    fn apply_binary(&self, op: Binary, other: &Self, _at: Site) -> Result<Self, Error> {
        Ok(Self::push(self.trace, Op::Binary(op), [self.index, other.index], &self.shape()))
    }

    fn apply_compare(&self, op: Compare, other: &Self, _at: Site) -> Result<Self, Error> {
        Ok(Self::push(self.trace, Op::Compare(op), [self.index, other.index], &self.shape()))
    }

    fn apply_select(mask: &Self, x: &Self, y: &Self, _at: Site) -> Result<Self, Error> {
        Ok(Self::push(x.trace, Op::Select, [mask.index, x.index, y.index], &x.shape()))
    }

    fn apply_view(&self, view: View, at: Site) -> Result<Self, Error> {
        match view {
            View::Expand(shape) => {
                addressable::<T>(&shape, at)?;
                self.record(Op::Expand, &shape)
            }
            View::Reshape(shape) => self.record(Op::Reshape, &shape),
            view => {
                let shape = view.shape(&self.shape());
                let op = self.trace.borrow_mut().expression.add_view(view);
                self.record(op, &shape)
            }
        }
    }

    fn apply_embed(&self, view: View, shape: &Shape, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_embed(view.clone(), shape, at))
    }

    fn apply_reduce(&self, op: Reduction, axes: &[usize], _at: Site) -> Result<Self, Error> {
        self.record(Op::Reduce(op), &self.shape().with_ones(axes))
    }

    fn apply_cumsum(&self, axis: usize, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_cumsum(axis, at))
    }

    fn apply_variance(&self, axes: &[usize], correction: f64, is_total: bool, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_variance(axes, correction, is_total, at))
    }

    fn apply_norm(&self, ord: f64, axes: &[usize], at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_norm(ord, axes, at))
    }

    fn apply_matmul(&self, other: &Self, at: Site) -> Result<Self, Error> {
        let y = other.to_tensor(at)?;
        self.compute_now(at, &|x| x.apply_matmul(&y, at))
    }

    fn apply_take(&self, positions: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_take(positions, at))
    }

    fn apply_scatter_add(&self, positions: &Tensor<i64>, shape: &Shape, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_scatter_add(positions, shape, at))
    }

    fn apply_index_select(&self, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        self.compute_now(at, &|x| x.apply_index_select(axis, index, at))
    }

    fn apply_index_add(terms: &[(&Self, &Tensor<i64>)], axis: usize, size: usize, at: Site) -> Result<Self, Error> {
        let values: Vec<Tensor<T>> = terms.iter().map(|(x, _)| x.to_tensor(at)).collect::<Result<_, _>>()?;
        let added: Vec<_> = values.iter().zip(terms.iter().map(|&(_, index)| index)).collect();
        terms[0].0.try_constant(&Tensor::apply_index_add(&added, axis, size, at)?)
    }

    fn apply_cat(parts: &[Self], axis: usize, at: Site) -> Result<Self, Error> {
        let values: Vec<Tensor<T>> = parts.iter().map(|part| part.to_tensor(at)).collect::<Result<_, _>>()?;
        parts[0].try_constant(&Tensor::apply_cat(&values, axis, at)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::thresholds::ops::MANY_TERMS;

    #[test]
    fn the_result_for_an_expanded_tensor_can_be_written_in_place() {
        let mut y = Tensor::from([0.5f32]).expand([MANY_TERMS]).gelu();
        let before = y.get(&[7]).unwrap();
        y.add_(1.0);
        assert!(y.is_contiguous() && y.get(&[7]) == Some(before + 1.0));
    }
}
