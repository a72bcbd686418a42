//! Moves slices of sums to the terms of the sums, if each term is the adjoint of a slice. A slice of such an adjoint reads few elements:
//! along the same dimension it is a part of the adjoint's operand, a smaller adjoint, or 0. For example, the gradient of a padded array is
//! sliced to get the gradient of the array. If the padded array was read through slices, its gradient is a sum of adjoints of slices.

use rustc_hash::FxHashSet;

use crate::engine::plan::definition::{Definition, Id, ShapedValue};
use crate::engine::plan::expression::{Expression, NodeIndex};
use crate::engine::plan::sums::Rewriting;
use crate::engine::plan::values::Values;
use crate::thresholds::plan::MAX_SLICED_PER_VALUE;
use crate::{Binary, Shape, View};

/// A slice along one dimension, with step 1.
#[derive(Clone, Copy)]
struct Slice {
    axis: usize,
    start: usize,
    len: usize,
}

impl Slice {
    fn end(self) -> usize {
        self.start + self.len
    }

    fn view(self) -> View {
        View::Slice { axis: self.axis, start: self.start, len: self.len, step: 1 }
    }

    /// Returns the slice that `view` takes, or `None` for another view, a slice with another step, and a slice without elements.
    fn try_from_view(view: &View) -> Option<Slice> {
        match *view {
            View::Slice { axis, start, len: len @ 1.., step: 1 } => Some(Slice { axis, start, len }),
            _ => None,
        }
    }
}

/// Rewrites the values that `roots` need: a slice of a sum becomes the sum of slices of its terms. Returns all values.
pub(super) fn slice_terms(mut old: Values, expression: &Expression, roots: &[NodeIndex]) -> Values {
    let is_adjoint = find_adjoints(&old, expression, roots);
    let sliced = |id: usize| match old.list[id].definition {
        Definition::View(view, from, x) if is_adjoint[id] => Some((Slice::try_from_view(&old.views[view])?, from, x)),
        _ => None,
    };
    let slices: Vec<_> = (0..old.list.len()).map(sliced).collect();
    if slices.iter().all(Option::is_none) {
        return old;
    }
    let (rewriting, adjoints) = (Rewriting::new(&mut old), FxHashSet::default());
    let mut slicing = Slicing { rewriting, adjoints, calls_left: MAX_SLICED_PER_VALUE * old.list.len() };
    for (id, (&value, slice)) in old.list.iter().zip(slices).enumerate() {
        let sliced = slice.map(|(slice, from, x)| {
            let x = (slicing.rewriting.new_ids[x as usize], from);
            slicing.define_slice(x, slice, value.node)
        });
        // The operand of an adjoint may be expanded, and a slice of zeros is a number. Reductions, and the map of definitions, rely on the
        // shape of a value, so such a slice remains a view.
        let fits = |id: &Id| slicing.rewriting.values.list[*id as usize].shape == value.shape;
        slicing.rewriting.new_ids[id] = match sliced.filter(fits) {
            Some(sliced) => sliced,
            None => {
                let copy = slicing.rewriting.define_copy(&old, value);
                if is_adjoint[id] && slice.is_none() {
                    slicing.adjoints.insert(copy);
                }
                copy
            }
        };
    }
    slicing.rewriting.finish(&old)
}

/// Returns, for each value, true if it is the adjoint of a slice, a slice of such a value, or a sum of such values. A sum must be read
/// exactly once, because each reader slices all of its terms.
fn find_adjoints(values: &Values, expression: &Expression, roots: &[NodeIndex]) -> Vec<bool> {
    let readers = values.count_readers(expression, roots);
    let mut is_adjoint = vec![false; values.list.len()];
    let is_slice = |view| Slice::try_from_view(&values.views[view]).is_some();
    for (id, value) in values.list.iter().enumerate() {
        let fits = |x: Id| is_adjoint[x as usize] && values.list[x as usize].shape == value.shape;
        is_adjoint[id] = match value.definition {
            Definition::Embed(view, ..) => is_slice(view),
            Definition::Binary(Binary::Add, x, y) => readers[id] == 1 && fits(x) && fits(y),
            Definition::View(view, _, x) => is_adjoint[x as usize] && is_slice(view),
            _ => false,
        };
    }
    is_adjoint
}

/// The state of the rewriting.
struct Slicing {
    rewriting: Rewriting,
    /// The new values that are adjoints of slices, or sums of such adjoints.
    adjoints: FxHashSet<Id>,
    /// The number of further calls of [`define_slice`](Self::define_slice) that may rewrite a value.
    calls_left: usize,
}

impl Slicing {
    /// Returns a slice of the value `x`. If `x` is in `adjoints`, takes slices of the terms and of the adjoints' operands where possible,
    /// and adds the results to `adjoints`.
    fn define_slice(&mut self, x: ShapedValue, slice: Slice, node: NodeIndex) -> Id {
        let values = &mut self.rewriting.values;
        let from = values.shapes[x.1].clone();
        let to = from.with_size(slice.axis, slice.len);
        let definition = match self.calls_left.checked_sub(1) {
            Some(left) if self.adjoints.contains(&x.0) => {
                self.calls_left = left;
                values.list[x.0 as usize].definition
            }
            _ => return values.view(slice.view(), x.0, &from, &to, node),
        };
        let result = match definition {
            Definition::Binary(Binary::Add, left, right) => {
                let [left, right] = [left, right].map(|term| self.define_slice((term, x.1), slice, node));
                self.rewriting.values.elementwise(Definition::Binary(Binary::Add, left, right), node)
            }
            Definition::Embed(view, inner, whole) if whole == x.1 => {
                let Some(own) = Slice::try_from_view(&values.views[view]) else {
                    return values.view(slice.view(), x.0, &from, &to, node);
                };
                if own.axis == slice.axis {
                    return self.define_slice_of_adjoint((inner, own), (slice, &to), node);
                }
                let size = values.shapes[inner.1].with_size(slice.axis, slice.len);
                let inner = self.define_slice(inner, slice, node);
                let values = &mut self.rewriting.values;
                let inner = (inner, values.intern_shape(&size));
                values.embed(own.view(), inner, &to, node)
            }
            _ => return values.view(slice.view(), x.0, &from, &to, node),
        };
        self.adjoints.insert(result);
        result
    }

    /// Returns a slice of the adjoint of the slice `own` along the same dimension. `to` is the shape of the result, and `x` is the operand
    /// of the adjoint.
    fn define_slice_of_adjoint(
        &mut self,
        (x, own): (ShapedValue, Slice),
        (slice, to): (Slice, &Shape),
        node: NodeIndex,
    ) -> Id {
        let (first, end) = (own.start.max(slice.start), own.end().min(slice.end()));
        if first >= end {
            return self.rewriting.values.number(0.0, node);
        }
        let part = Slice { start: first - own.start, len: end - first, ..own };
        let size = self.rewriting.values.shapes[x.1].with_size(own.axis, part.len);
        let inner = if part.len == own.len { x.0 } else { self.define_slice(x, part, node) };
        if part.len == slice.len {
            return inner;
        }
        let values = &mut self.rewriting.values;
        let inner = (inner, values.intern_shape(&size));
        let result = values.embed(Slice { start: first - slice.start, ..part }.view(), inner, to, node);
        self.adjoints.insert(result);
        result
    }
}
