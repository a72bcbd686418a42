//! Takes slices of the terms of a sum, not of the sum, if each term is the adjoint of a slice. Such a slice needs only few elements of the
//! terms, and a slice of an adjoint along the same dimension is a smaller adjoint. For example, the gradient of an array that was padded is
//! a slice of the gradient of the padded array. If the padded array was read through slices, this gradient is a sum of adjoints of slices.

use rustc_hash::FxHashSet;

use crate::engine::plan::definition::{Definition, Id, ShapedValue};
use crate::engine::plan::expression::{Expression, Index};
use crate::engine::plan::sums::Rewriting;
use crate::engine::plan::values::Values;
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
    fn from_view(view: &View) -> Option<Slice> {
        match *view {
            View::Slice { axis, start, len: len @ 1.., step: 1 } => Some(Slice { axis, start, len }),
            _ => None,
        }
    }
}

/// Rewrites the values that `roots` need, so that slices are taken of the terms of sums. Returns all values.
pub(super) fn slice_terms(mut old: Values, expression: &Expression, roots: &[Index]) -> Values {
    let is_of_slices = find_adjoints(&old, expression, roots);
    let sliced = |id: usize| match old.list[id].definition {
        Definition::View(view, from, x) if is_of_slices[id] => Some((Slice::from_view(&old.views[view])?, from, x)),
        _ => None,
    };
    let slices: Vec<_> = (0..old.list.len()).map(sliced).collect();
    if slices.iter().all(Option::is_none) {
        return old;
    }
    let mut rewriting = Rewriting::new(&mut old);
    let mut adjoints = FxHashSet::default();
    for (id, (&value, slice)) in old.list.iter().zip(slices).enumerate() {
        rewriting.new_ids[id] = match slice {
            Some((slice, from, x)) => {
                let x = (rewriting.new_ids[x as usize], from);
                define_slice(&mut rewriting.values, &mut adjoints, x, slice, value.node)
            }
            None => {
                let copy = rewriting.define_copy(&old, value);
                is_of_slices[id].then(|| adjoints.insert(copy));
                copy
            }
        };
    }
    rewriting.finish(&old)
}

/// Returns, for each value, true if it is the adjoint of a slice, a sum of such values that is read once, or a slice of such a value.
fn find_adjoints(values: &Values, expression: &Expression, roots: &[Index]) -> Vec<bool> {
    let readers = values.count_readers(expression, roots);
    let mut is_of_slices = vec![false; values.list.len()];
    let is_slice = |view| Slice::from_view(&values.views[view]).is_some();
    for (id, value) in values.list.iter().enumerate() {
        let fits = |x: Id| is_of_slices[x as usize] && values.list[x as usize].shape == value.shape;
        is_of_slices[id] = match value.definition {
            Definition::Embed(view, ..) => is_slice(view),
            Definition::Binary(Binary::Add, x, y) => readers[id] == 1 && fits(x) && fits(y),
            Definition::View(view, _, x) => is_of_slices[x as usize] && is_slice(view),
            _ => false,
        };
    }
    is_of_slices
}

/// Returns a slice of the value `x`. If `x` is in `adjoints` (the adjoints of slices and their sums), takes slices of the terms and of the
/// adjoints' operands where possible, and adds the results to `adjoints`.
fn define_slice(values: &mut Values, adjoints: &mut FxHashSet<Id>, x: ShapedValue, slice: Slice, node: Index) -> Id {
    let from = values.shapes[x.1].clone();
    let to = from.with_size(slice.axis, slice.len);
    let definition = adjoints.contains(&x.0).then_some(values.list[x.0 as usize].definition);
    let result = match definition {
        Some(Definition::Binary(Binary::Add, left, right)) => {
            let [left, right] = [left, right].map(|term| define_slice(values, adjoints, (term, x.1), slice, node));
            values.elementwise(Definition::Binary(Binary::Add, left, right), node)
        }
        Some(Definition::Embed(view, inner, whole)) if whole == x.1 => {
            let own = Slice::from_view(&values.views[view]);
            let Some(own) = own else { return values.view(slice.view(), x.0, &from, &to, node) };
            if own.axis == slice.axis {
                return define_slice_of_adjoint(values, adjoints, (inner, own), (slice, &to), node);
            }
            let size = values.shapes[inner.1].with_size(slice.axis, slice.len);
            let inner = define_slice(values, adjoints, inner, slice, node);
            let inner = (inner, values.intern_shape(&size));
            values.embed(own.view(), inner, &to, node)
        }
        _ => return values.view(slice.view(), x.0, &from, &to, node),
    };
    adjoints.insert(result);
    result
}

/// Returns a slice of the adjoint of the slice `own` along the same dimension. `to` is the shape of the result, and `x` is the operand of
/// the adjoint.
fn define_slice_of_adjoint(
    values: &mut Values,
    adjoints: &mut FxHashSet<Id>,
    (x, own): (ShapedValue, Slice),
    (slice, to): (Slice, &Shape),
    node: Index,
) -> Id {
    let (first, end) = (own.start.max(slice.start), own.end().min(slice.end()));
    if first >= end {
        return values.number(0.0, node);
    }
    let part = Slice { start: first - own.start, len: end - first, ..own };
    let size = values.shapes[x.1].with_size(own.axis, part.len);
    let inner = if part.len == own.len { x.0 } else { define_slice(values, adjoints, x, part, node) };
    if part.len == slice.len {
        return inner;
    }
    let inner = (inner, values.intern_shape(&size));
    let result = values.embed(Slice { start: first - slice.start, ..part }.view(), inner, to, node);
    adjoints.insert(result);
    result
}
