//! Simplifies values while they are defined: by identities such as x · 1 = x, operations on numbers, and views of views. No simplification
//! adds or removes an infinity or a NaN.

use crate::engine::plan::definition::{Definition, Id, ShapeId};
use crate::engine::plan::expression::NodeIndex;
use crate::engine::plan::unexpanded::{self, Unexpanded};
use crate::engine::plan::values::{SCALAR, Values};
use crate::engine::program::AxisSet;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::reduce::kernels::ReductionKernels;
use crate::shape::broadcast;
use crate::thresholds::ops::MANY_TERMS;
use crate::{Axes, Binary, DType, Float, Reduction, Shape, Unary, View};

impl Values {
    /// Returns an existing value that equals `definition` by an identity (such as x · 1 = x), if there is one.
    pub(super) fn find_identity(&self, definition: Definition) -> Option<Id> {
        let is = |id: Id, number: f64| self.as_number(id).is_some_and(|value| value == number);
        match definition {
            Definition::Binary(Binary::Mul, x, y) if is(y, 1.0) => Some(x),
            Definition::Binary(Binary::Mul, x, y) if is(x, 1.0) => Some(y),
            Definition::Binary(Binary::Div, x, y) if is(y, 1.0) => Some(x),
            // x - 0 equals x for every x. But x - (-0) differs from x if x is -0, because -0 - (-0) is +0.
            Definition::Binary(Binary::Sub, x, y) if self.as_number(y).is_some_and(|y| y.to_bits() == 0) => Some(x),
            Definition::Unary(Unary::Neg, x) => match self.list[x as usize].definition {
                Definition::Unary(Unary::Neg, y) => Some(y),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the result of `definition` if it is a unary or binary function whose operands are all numbers. Returns `None` for other
    /// definitions, for example comparisons.
    pub(super) fn fold_constants(&self, definition: Definition) -> Option<f64> {
        match self.dtype {
            DType::F32 => self.fold_constants_as::<f32>(definition),
            _ => self.fold_constants_as::<f64>(definition),
        }
    }

    /// Does the same as [`fold_constants`](Self::fold_constants), in arithmetic of the type `T`.
    fn fold_constants_as<T: Float>(&self, definition: Definition) -> Option<f64> {
        let splat = |id: Id| self.as_number(id).map(|number| Operand::Splat(T::from_f64(number)));
        let mut result = [T::ZERO];
        match definition {
            Definition::Unary(op, x) if T::supports_unary(op) => T::unary(op, splat(x)?, &mut result),
            Definition::Binary(op, x, y) if T::supports_binary(op) => T::binary(op, splat(x)?, splat(y)?, &mut result),
            _ => return None,
        }
        Some(result[0].to_f64())
    }

    /// Returns the shape to which two shapes broadcast.
    pub(super) fn broadcast_shape(&mut self, x: ShapeId, y: ShapeId) -> ShapeId {
        if x == y || y == SCALAR {
            return x;
        }
        if x == SCALAR {
            return y;
        }
        match broadcast::join(&[&self.shapes[x], &self.shapes[y]]) {
            Ok(joined) => self.intern_trimmed(&joined),
            Err(mismatch) => unreachable!("the operands of a node broadcast: {mismatch:?}"),
        }
    }

    /// Returns the value of `view` of `x`, after `x` is expanded to the shape `from`. The view has the shape `to`. If `from` has at least
    /// [`MANY_TERMS`] elements, returns `x` or the value of a smaller view instead, if this value expands to the view.
    pub(super) fn view(&mut self, view: View, x: Id, from: &Shape, to: &Shape, node: NodeIndex) -> Id {
        if from.numel() < MANY_TERMS {
            return self.whole_view(view, x, from, to, node);
        }
        match unexpanded::view(&view, self.shape(x), from) {
            None => self.whole_view(view, x, from, to, node),
            Some(Unexpanded::Operand) => x,
            Some(Unexpanded::View(view, from)) => {
                let to = view.shape(&from);
                self.whole_view(view, x, &from, &to, node)
            }
        }
    }

    /// Returns the value of `view` of `x`, which has the shape `from` before the view and `to` after it. With `simplify`, merges two
    /// successive permutations or reshapes into one. Also leaves out reshapes, and pairs of permutations, that change nothing. A permutation
    /// that only moves dimensions of size 1 counts as a reshape, unless `x` is expanded or is a permutation itself.
    fn whole_view(&mut self, mut view: View, mut x: Id, from: &Shape, to: &Shape, node: NodeIndex) -> Id {
        let mut source = self.intern_shape(from);
        let result = self.intern_trimmed(to);
        if self.simplify {
            let own = self.list[x as usize];
            // True if the shapes of `x` and of the result differ only in leading dimensions of size 1.
            let is_same = |values: &Self, x: Id| values.list[x as usize].shape == result;
            // A permutation of a permutation is joined with it below. A reshape of an expanded value could copy it.
            let is_permuted = |values: &Self| match own.definition {
                Definition::View(inner, ..) => matches!(values.views[inner], View::Permute(_)),
                _ => false,
            };
            let is_expanded = self.shape(x).numel() != from.numel();
            if matches!(&view, View::Permute(axes) if !is_expanded && !is_permuted(self) && keeps_order(axes, from)) {
                view = View::Reshape(to.clone());
            }
            if matches!(view, View::Reshape(_)) && is_same(self, x) {
                return x;
            }
            if let Definition::View(inner, base, y) = own.definition
                && self.views[inner].shape(&self.shapes[base]) == *from
            {
                let joined = match (&self.views[inner], &view) {
                    (View::Permute(first), View::Permute(second)) => {
                        let axes: Axes = second.iter().map(|&axis| first[axis]).collect();
                        if axes.iter().copied().eq(0..axes.len()) {
                            return y;
                        }
                        Some(View::Permute(axes))
                    }
                    (View::Reshape(_), View::Reshape(_)) => Some(view.clone()),
                    _ => None,
                };
                if let Some(joined) = joined {
                    (view, source, x) = (joined, base, y);
                }
            }
            if matches!(view, View::Reshape(_)) && is_same(self, x) {
                return x;
            }
        }
        let number = self.views.intern(view);
        self.intern(Definition::View(number, source, x), result, node)
    }

    /// Returns the value of a reduction of `x`, after expansion of `x` to the shape `from`. `to` is the shape of the result. The reduction
    /// covers the dimensions in which `from` and `to` differ.
    pub(super) fn reduce(&mut self, op: Reduction, x: Id, from: &Shape, to: &Shape, node: NodeIndex) -> Id {
        let core = self.shape(x).clone();
        let missing = from.len() - core.len();
        let mut axes: AxisSet = 0;
        let mut times = 1usize;
        for axis in (0..from.len()).filter(|&axis| from[axis] != to[axis]) {
            match axis.checked_sub(missing).filter(|&own| core[own] != 1) {
                Some(own) => axes |= 1 << own,
                None => times = times.saturating_mul(from[axis]),
            }
        }
        if times == 0 {
            // The reduction of no elements is a start value, for example 0 for a sum. It is the same number in all floating-point types.
            return self.number(f64::start(op), node);
        }
        let mut result = x;
        if axes != 0 {
            let reduced: Shape =
                core.iter().enumerate().map(|(axis, &size)| if axes >> axis & 1 == 1 { 1 } else { size }).collect();
            let shape = self.intern_trimmed(&reduced);
            result = self.intern(Definition::Reduce(op, x, axes), shape, node);
        }
        if let (Some(function), true) = (op.repeated(), times > 1) {
            let times = self.number(times as f64, node);
            result = self.elementwise(Definition::Binary(function, result, times), node);
        }
        result
    }
}

/// Returns true if a permutation of the dimensions of `shape` only moves dimensions of size 1.
fn keeps_order(axes: &Axes, shape: &Shape) -> bool {
    axes.iter().filter(|&&axis| shape[axis] != 1).is_sorted()
}
