//! Rewrites views of expanded values. The view of an expansion is usually the expansion of a view of fewer elements.

use crate::{Axes, Layout, Shape, View};

/// A view of a value, which replaces a view of the value's expansion. Expanded to the shape of the replaced view, it has the same elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unexpanded {
    /// The value itself.
    Operand,
    /// A view of the value, after expansion of the value to this shape. The shape has size 1 along the expanded dimensions, except along
    /// the two dimensions of a diagonal if only one of them is expanded.
    View(View, Shape),
}

/// Rewrites a view of an expanded value as the expansion of a smaller view. The value has the shape `own`, which may lack leading sizes
/// of 1. `view` applies after the expansion of the value to `from`. Returns `None` if the value is not expanded, the view has no elements
/// or is an expansion itself, or there is no smaller view.
pub(super) fn view(view: &View, own: &Shape, from: &Shape) -> Option<Unexpanded> {
    let missing = from.len().checked_sub(own.len())?;
    if from[missing..] == own[..] && from[..missing].iter().all(|&size| size == 1) {
        return None;
    }
    let mut core = from.clone();
    core[..missing].fill(1);
    core[missing..].copy_from_slice(own);
    if view.shape(from).contains(&0) {
        return None;
    }
    let is_expanded = |axis: usize| core[axis] != from[axis];
    let view = match view {
        View::Expand(_) => return None,
        View::Reshape(shape) => {
            let layout = Layout::contiguous(core.clone()).expand(from)?.reshape(shape)?;
            let sizes = layout.shape().iter().zip(layout.strides());
            let kept: Shape = sizes.map(|(&size, &stride)| if stride == 0 { 1 } else { size }).collect();
            View::Reshape((kept.numel() == core.numel()).then_some(kept)?)
        }
        View::Flip(axes) => {
            let kept: Axes = axes.iter().copied().filter(|&axis| !is_expanded(axis)).collect();
            if kept.is_empty() {
                return Some(Unexpanded::Operand);
            }
            View::Flip(kept)
        }
        &View::Slice { axis, .. } if is_expanded(axis) => return Some(Unexpanded::Operand),
        &View::Diagonal { first, second, .. } if is_expanded(first) || is_expanded(second) => {
            if core[first] == 1 && core[second] == 1 {
                View::Diagonal { offset: 0, first, second }
            } else {
                // Only one of the two dimensions is expanded. The length of the diagonal depends on both sizes, so both are kept.
                (core[first], core[second]) = (from[first], from[second]);
                if core == *from {
                    return None;
                }
                view.clone()
            }
        }
        &View::Unfold { axis, .. } if is_expanded(axis) => View::Unfold { axis, size: 1, step: 1 },
        view => view.clone(),
    };
    Some(Unexpanded::View(view, core))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    /// A view, the shapes before and after the expansion, and the number of elements of the smaller view.
    type Case<'c> = (View, &'c [usize], &'c [usize], Option<usize>);

    /// Returns the elements of `view` of `x`.
    fn apply(view: &View, x: &Tensor<i64>) -> Tensor<i64> {
        match view.apply(x.layout()) {
            Some(layout) => x.with_layout(layout),
            None => Tensor::from_vec(x.to_vec(), view.shape(x.shape())),
        }
    }

    /// Checks that the smaller view, expanded, equals the view of the expansion. Returns the number of elements of the smaller view, or
    /// `None` if there is none.
    fn check(view: &View, own: &[usize], from: &[usize]) -> Option<usize> {
        let (own, from) = (Shape::from(own), Shape::from(from));
        let x = Tensor::from_fn(own.clone(), |index| index.iter().fold(7, |sum, &i| 10 * sum + i as i64));
        let over = |x: &Tensor<i64>, shape: &Shape| x.with_layout(x.layout().expand(shape).unwrap());
        let expected = apply(view, &over(&x, &from));
        let smaller = match super::view(view, &own, &from)? {
            Unexpanded::Operand => x,
            Unexpanded::View(view, core) => apply(&view, &over(&x, &core)),
        };
        assert_eq!(over(&smaller, expected.shape()), expected, "{view:?} of {own} over {from}");
        Some(smaller.numel())
    }

    #[test]
    fn the_smaller_view_expands_to_the_view_of_the_expansion() {
        let slice = |axis, start, len, step| View::Slice { axis, start, len, step };
        let diagonal = |offset, first, second| View::Diagonal { offset, first, second };
        let unfold = |axis, size, step| View::Unfold { axis, size, step };
        let reshape = |shape: &[usize]| View::Reshape(shape.into());
        let cases: &[Case] = &[
            (View::Permute([1, 0].into_iter().collect()), &[3], &[4, 3], Some(3)),
            (View::Permute([2, 0, 1].into_iter().collect()), &[2, 1, 3], &[2, 4, 3], Some(6)),
            (View::Permute([1, 0].into_iter().collect()), &[4, 3], &[4, 3], None),
            (View::Flip([0].into_iter().collect()), &[3], &[4, 3], Some(3)),
            (View::Flip([0, 1].into_iter().collect()), &[3], &[4, 3], Some(3)),
            (slice(0, 1, 2, 1), &[3], &[4, 3], Some(3)),
            (slice(1, 2, 3, -1), &[3], &[4, 3], Some(3)),
            (slice(1, 0, 0, 1), &[3], &[4, 3], None),
            (diagonal(1, 0, 1), &[], &[4, 3], Some(1)),
            (diagonal(0, 0, 1), &[3], &[4, 3], None),
            (diagonal(-1, 1, 2), &[3], &[5, 4, 3], Some(3)),
            (diagonal(1, 0, 2), &[4, 1], &[3, 4, 3], Some(4)),
            (diagonal(7, 0, 1), &[], &[4, 3], None),
            (unfold(0, 2, 1), &[3], &[4, 3], Some(3)),
            (unfold(1, 2, 1), &[3], &[4, 3], Some(4)),
            (reshape(&[12]), &[], &[4, 3], Some(1)),
            (reshape(&[12]), &[3], &[4, 3], None),
            (reshape(&[2, 2, 3]), &[3], &[4, 3], Some(3)),
            (reshape(&[2, 2, 3, 1]), &[4, 1], &[4, 3], Some(4)),
            (reshape(&[2, 6]), &[2, 1, 1], &[2, 2, 3], Some(2)),
            (reshape(&[4, 3]), &[2, 2, 1], &[2, 2, 3], Some(4)),
            (View::Expand([5, 3].into()), &[3], &[2, 3], None),
        ];
        for (view, own, from, count) in cases {
            if let View::Expand(_) = view {
                assert_eq!(super::view(view, &Shape::from(*own), &Shape::from(*from)), None);
            } else {
                assert_eq!(check(view, own, from), *count, "{view:?} of {own:?} over {from:?}");
            }
        }
    }
}
