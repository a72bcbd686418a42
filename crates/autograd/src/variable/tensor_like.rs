//! Records the primitives of the trait `TensorLike`. Each is one node, except the product over dimensions, which is a tree of nodes.

use std::rc::Rc;

use wengert_macros::precompiled;
use wengert_tensor::compat::{self, BroadcastRule};
use wengert_tensor::ops::{Argument, ArrayOperand, InPlace, IntoArray, Operand, TensorLike};
use wengert_tensor::plan::Op;
use wengert_tensor::{self as tensor, Binary, Compare, Float, Reduction, Shape, Site, Tensor, Unary, View};

use crate::record::DETACH;
use crate::rules::{CumSum, Guard, IndexAdd, IndexSelect, Norm, ScatterAdd, Take, Variance, WithDerivative};
use crate::{Error, Var};

#[precompiled]
impl<'t, T: Float> TensorLike for Var<'t, T> {
    type Elem = T;
    type Mask = Self;
    type Error = Error;

    #[inline]
    fn shape(&self) -> Shape {
        Var::shape(*self)
    }

    #[inline]
    fn same_shape(&self, other: &Self) -> bool {
        // Each shape is stored once per tape, so this function compares the indices of the shapes. For variables of different tapes, it
        // returns false. The operation that follows then returns an error.
        let record = self.tape.record.borrow();
        self.tape.owns(*other) && record.node(self.index).shape == record.node(other.index).shape
    }

    #[inline]
    fn try_constant(&self, data: &Tensor<T>) -> Result<Self, Error> {
        self.tape.try_leaf(data, Op::Constant, None)
    }

    #[inline]
    fn try_number(&self, value: T) -> Result<Self, Error> {
        self.tape.try_number(value, None)
    }

    fn constant_mask(&self, mask: &Tensor<bool>, at: Site) -> Result<Self, Error> {
        self.tape.try_leaf(&mask.cast_to(at)?, Op::Constant, None)
    }

    fn to_tensor(&self, at: Site) -> Result<Tensor<T>, Error> {
        let mut values = self.tape.evaluate(&[self.index], at)?;
        Ok(values.swap_remove(0))
    }

    #[inline]
    fn apply_detach(&self, at: Site) -> Result<Self, Error> {
        self.record(DETACH, at)
    }

    fn refuse_gradients(&self, at: Site) -> Result<Self, Error> {
        let op = self.tape.record.borrow_mut().add_opaque(at.operation);
        self.record(op, at)
    }

    fn with_derivative(
        &self,
        terms: impl FnOnce() -> Result<Vec<(Self, Option<Self>)>, Error>,
        at: Site,
    ) -> Result<Self, Error> {
        with_slopes(*self, terms()?, at)
    }

    fn with_zero_gradients(&self, others: &[&Self], at: Site) -> Result<Self, Error> {
        let inputs: Vec<Self> = std::iter::once(*self).chain(others.iter().map(|&&x| x)).collect();
        self.tape.record_operation(Rc::new(WithDerivative::ZeroGradients), &inputs, at)
    }

    fn as_softmax(&self, x: &Self, axis: usize, log: bool, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(WithDerivative::Softmax { axis, log }), &[*self, *x], at)
    }

    fn check_elements(&self, holds: fn(T) -> bool, message: &'static str, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(Guard { holds, message, at }), &[*self], at)
    }

    #[inline]
    fn apply_unary(&self, op: Unary, at: Site) -> Result<Self, Error> {
        self.record(Op::Unary(op), at)
    }

    #[inline]
    fn apply_binary(&self, op: Binary, other: &Self, at: Site) -> Result<Self, Error> {
        self.check_tape(*other, at)?;
        self.tape.push(Op::Binary(op), [self.index, other.index], |record| record.node(self.index).shape, at)
    }

    // This does the same as the default method, but borrows the tape only once if the shapes are equal. It borrows the tape twice if one
    // operand expands to the shape of the other.
    #[inline]
    fn apply_broadcast(&self, op: Binary, other: &Self, rule: BroadcastRule, at: Site) -> Result<Self, Error> {
        if compat::accepts_equal(rule) && self.tape.owns(*other) {
            let mut record = self.tape.record.borrow_mut();
            let shape = record.node(self.index).shape;
            if record.node(other.index).shape == shape {
                let pushed = record.push(Op::Binary(op), [self.index, other.index], shape, Some(at.location));
                return pushed.map(|index| self.tape.var_of(index)).ok_or_else(|| Error::TapeFull { at });
            }
            drop(record);
            return broadcast_different(*self, op, *other, rule, at);
        }
        let (x, y) = self.broadcast_with(other, rule, at)?;
        x.apply_binary(op, &y, at)
    }

    // This does the same as the default method, but borrows the tape only once, and an error names the operation. A number beside a
    // variable without dimensions is not expanded.
    fn apply_number(&self, op: Binary, number: T, at: Site) -> Result<Self, Error> {
        let mut record = self.tape.record.borrow_mut();
        let shape = record.node(self.index).shape;
        let number = record.push_filled(number, shape, at).ok_or_else(|| Error::TapeFull { at })?;
        let pushed = record.push(Op::Binary(op), [self.index, number], shape, Some(at.location));
        pushed.map(|index| self.tape.var_of(index)).ok_or_else(|| Error::TapeFull { at })
    }

    fn apply_compare(&self, op: Compare, other: &Self, at: Site) -> Result<Self, Error> {
        self.check_tape(*other, at)?;
        self.tape.push(Op::Compare(op), [self.index, other.index], |record| record.node(self.index).shape, at)
    }

    fn apply_select(mask: &Self, x: &Self, y: &Self, at: Site) -> Result<Self, Error> {
        x.check_tape(*mask, at)?;
        x.check_tape(*y, at)?;
        x.tape.push(Op::Select, [mask.index, x.index, y.index], |record| record.node(x.index).shape, at)
    }

    fn apply_view(&self, view: View, at: Site) -> Result<Self, Error> {
        match view {
            View::Expand(shape) => {
                // This returns an error if a tensor of this shape would be too large.
                tensor::addressable::<T>(&shape, at)?;
                self.record_over(Op::Expand, &shape, at)
            }
            View::Reshape(shape) => {
                // This returns an error if a size is too large. The number of elements stays the same, so this can happen only for a
                // tensor without elements.
                tensor::addressable::<T>(&shape, at)?;
                self.record_over(Op::Reshape, &shape, at)
            }
            view => {
                let mut record = self.tape.record.borrow_mut();
                let shape = view.shape(record.shape(self.index));
                // Windows overlap, so they may have more elements than any tensor.
                tensor::addressable::<T>(&shape, at)?;
                let (op, shape) = (record.expression.add_view(view), record.expression.intern(&shape));
                let pushed = record.push(op, [self.index], shape, Some(at.location));
                pushed.map(|index| self.tape.var_of(index)).ok_or_else(|| Error::TapeFull { at })
            }
        }
    }

    fn apply_embed(&self, view: View, shape: &Shape, at: Site) -> Result<Self, Error> {
        tensor::addressable::<T>(shape, at)?;
        let op = self.tape.record.borrow_mut().expression.add_embed(view);
        self.record_over(op, shape, at)
    }

    fn apply_reduce(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Error> {
        if op == Reduction::Prod {
            return crate::rules::product_over(*self, axes, at);
        }
        self.record_over(Op::Reduce(op), &self.shape().with_ones(axes), at)
    }

    fn apply_cumsum(&self, axis: usize, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(CumSum { axis }), &[*self], at)
    }

    fn apply_variance(&self, axes: &[usize], correction: f64, is_total: bool, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(Variance { axes: axes.into(), correction, is_total }), &[*self], at)
    }

    fn apply_norm(&self, ord: f64, axes: &[usize], at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(Norm { ord, axes: axes.into() }), &[*self], at)
    }

    fn apply_matmul(&self, other: &Self, at: Site) -> Result<Self, Error> {
        let shape = Shape::of_product(&self.shape(), &other.shape());
        self.check_tape(*other, at)?;
        tensor::addressable::<T>(&shape, at)?;
        self.tape.push(Op::Matmul, [self.index, other.index], |record| record.expression.intern(&shape), at)
    }

    fn apply_take(&self, positions: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(Take(positions.clone())), &[*self], at)
    }

    fn apply_scatter_add(&self, positions: &Tensor<i64>, shape: &Shape, at: Site) -> Result<Self, Error> {
        let operation = ScatterAdd { positions: positions.clone(), shape: shape.clone() };
        self.tape.record_operation(Rc::new(operation), &[*self], at)
    }

    fn apply_index_select(&self, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        // This returns an error if a tensor of the result's shape would be too large.
        tensor::addressable::<T>(&self.shape().replaced(axis..axis + 1, index.shape()), at)?;
        self.tape.record_operation(Rc::new(IndexSelect { axis, index: index.clone() }), &[*self], at)
    }

    fn apply_index_add(terms: &[(&Self, &Tensor<i64>)], axis: usize, size: usize, at: Site) -> Result<Self, Error> {
        let (inputs, indices): (Vec<Self>, Vec<Tensor<i64>>) =
            terms.iter().map(|&(&x, index)| (x, index.clone())).unzip();
        inputs[0].tape.record_operation(Rc::new(IndexAdd { axis, indices, size }), &inputs, at)
    }

    fn apply_cat(parts: &[Self], axis: usize, at: Site) -> Result<Self, Error> {
        let mut shape = parts[0].shape();
        shape[axis] = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.shape()[axis]));
        tensor::addressable::<T>(&shape, at)?;
        parts[0].tape.record_cat(parts, axis, &shape, at)
    }
}

/// Records `op` of two variables of the same tape that have different shapes.
#[precompiled]
fn broadcast_different<'t, T: Float>(
    x: Var<'t, T>,
    op: Binary,
    y: Var<'t, T>,
    rule: BroadcastRule,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    // The first lookup of the rules may call the user's handler of warnings, which may use this tape. So it comes before the borrow.
    let rules = compat::rules_for(rule);
    let mut record = x.tape.record.borrow_mut();
    let (shapes, numbers) = ([x, y].map(|x| record.shape(x.index)), [x, y].map(|x| record.node(x.index).shape));
    let larger = match shapes {
        [own, other] if compat::only_expands(other, own, rules) => 0,
        [own, other] if rule != BroadcastRule::InPlace && compat::only_expands(own, other, rules) => 1,
        _ => {
            drop(record);
            let (x, y) = x.broadcast_with(&y, rule, at)?;
            return x.apply_binary(op, &y, at);
        }
    };
    let (mut inputs, shape) = ([x.index, y.index], numbers[larger]);
    let expanded = record.push(Op::Expand, [inputs[1 - larger]], shape, Some(at.location));
    inputs[1 - larger] = expanded.ok_or_else(|| Error::TapeFull { at })?;
    let index = record.push(Op::Binary(op), inputs, shape, Some(at.location)).ok_or_else(|| Error::TapeFull { at })?;
    Ok(x.tape.var_of(index))
}

/// Records the values of `x` with the derivative Σ slope · d input over the pairs (input, slope) in `terms`. The slope `None` stands for 1.
#[precompiled]
#[allow(clippy::type_complexity)]
fn with_slopes<'t, T: Float>(
    x: Var<'t, T>,
    terms: Vec<(Var<'t, T>, Option<Var<'t, T>>)>,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let (operation, mut inputs) = WithDerivative::slopes(terms);
    inputs.insert(0, x);
    x.tape.record_operation(Rc::new(operation), &inputs, at)
}

impl<T: Float> InPlace for Var<'_, T> {
    fn check_write(&self, _source: Option<&Self>, at: Site) -> Result<(), Error> {
        // A variable is immutable, so a write only replaces the handle and is always safe. But PyTorch refuses writes to expanded tensors and
        // to views of them, and so does this function.
        if self.tape.record.borrow().has_internal_overlap(self.index) {
            return Err(tensor::Error::Overlap { internal: true, at }.into());
        }
        Ok(())
    }

    fn put(&mut self, value: Self, _at: Site) -> Result<(), Error> {
        *self = value;
        Ok(())
    }

    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Error> {
        *self = self.apply_binary(op, y, at)?;
        Ok(())
    }
}

impl<'t, T: Float> Operand<Var<'t, T>> for Var<'t, T> {
    fn into_argument(self, _first: &Var<'t, T>) -> Result<Argument<Var<'t, T>>, Error> {
        Ok(Argument::Array(self))
    }
}

impl<'t, T: Float> ArrayOperand<Var<'t, T>> for Var<'t, T> {}

impl<T: Float> IntoArray for Var<'_, T> {
    type Array = Self;

    fn array(self) -> Self {
        self
    }
}

impl<'t, T: Float> Operand<Var<'t, T>> for &Tensor<T> {
    fn into_argument(self, first: &Var<'t, T>) -> Result<Argument<Var<'t, T>>, Error> {
        Ok(Argument::Array(first.try_constant(self)?))
    }
}

impl<'t, T: Float> ArrayOperand<Var<'t, T>> for &Tensor<T> {}

impl<'t, T: Float> Operand<Var<'t, T>> for Tensor<T> {
    fn into_argument(self, first: &Var<'t, T>) -> Result<Argument<Var<'t, T>>, Error> {
        (&self).into_argument(first)
    }
}

impl<'t, T: Float> ArrayOperand<Var<'t, T>> for Tensor<T> {}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::{Error, Tape};

    /// Checks the number of recorded nodes: an expansion and an operation for different shapes, and also a leaf for a number. Scalars are not
    /// expanded.
    #[test]
    fn operands_are_expanded_once() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
        let row = tape.var(&Tensor::from([10.0, 20.0]));
        let number = tape.var(&Tensor::scalar(0.5));
        let before = tape.len();
        let sums = [x + row, row + x, x + row.unsqueeze(0)];
        assert_eq!(tape.len() - before, 7);
        assert!(sums.iter().all(|sum| sum.value() == Tensor::from([[11.0, 22.0], [13.0, 24.0]])));
        let before = tape.len();
        assert_eq!(
            [number - row, 0.5 - row, row - 0.5].map(|y| y.value().to_vec()),
            [[-9.5, -19.5], [-9.5, -19.5], [9.5, 19.5]]
        );
        assert_eq!(tape.len() - before, 8);
        let before = tape.len();
        assert_eq!([number * number, number * 2.0, 2.0 * number].map(|y| y.item()), [0.25, 1.0, 1.0]);
        assert_eq!(tape.len() - before, 5);
        assert!(x.try_add(tape.var(&Tensor::ones([3]))).is_err());
    }

    #[test]
    fn views_of_expanded_variables_are_not_written_to() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, 2.0, 3.0]));
        let rows = x.expand([4, 3]);
        let one = tape.var(&Tensor::ones([1]));
        let refused = [
            rows,
            rows.t(),
            rows.unsqueeze(0),
            rows.slice(0, 0..2),
            rows.reshape([2, 2, 3]),
            rows.reshape([2, 2, 3]).select(1, 0),
            rows.t().t().unsqueeze(1).squeeze(1),
            rows.unfold(0, 2, 2),
            rows.detach(),
            rows.detach().t(),
            one.expand([12]).reshape([3, 4]),
            tape.var(&Tensor::ones([3])).unsqueeze(1).expand([3, 2]).select(0, 1),
        ];
        for (k, view) in refused.into_iter().enumerate() {
            let mut written = view;
            let error = written.try_add_(1.0).expect_err(&k.to_string());
            assert!(
                matches!(error, Error::Tensor(wengert_tensor::Error::Overlap { internal: true, .. })),
                "{k}: {error}"
            );
        }
        let accepted = [
            x,
            x.unsqueeze(0).expand([1, 3]),
            rows.select(0, 0),
            rows.slice(0, 1..2),
            rows.reshape([12]),
            rows.reshape([12]).reshape([4, 3]),
            x.expand([3, 3]).diagonal(0, 0, 1),
            x.unfold(0, 2, 1),
            rows.slice(1, 0..0),
            rows + 0.0,
            (rows + 0.0).t(),
            tape.var(&Tensor::ones([0])).expand([4, 0]),
            // The zeros that replace a missing gradient, and other filled arrays.
            rows.sum(..).try_grad_or_zeros([one]).unwrap()[0],
            tape.constant(2.0).expand([3]),
            // The data of a variable may be an expanded tensor.
            tape.var(&Tensor::ones([3]).expand([4, 3])).t(),
        ];
        for (k, view) in accepted.into_iter().enumerate() {
            let (mut written, before) = (view, view.value());
            written.try_add_(1.0).unwrap_or_else(|error| panic!("{k}: {error}"));
            assert_eq!(written.value(), before + 1.0, "{k}");
        }
    }
}
