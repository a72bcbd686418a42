//! The broadcasting rule, for lists of sizes.
//!
//! Shapes are aligned at their last dimensions. Two sizes agree if they are equal or if one size is 1. The result takes the common size, or
//! the size that is not 1. A missing dimension counts as size 1. Zero is an ordinary size: 1 and 0 give 0, but 2 and 0 do not agree. The
//! rule is defined for any list of shapes. (NumPy user guide, "Broadcasting"; PyTorch notes, "Broadcasting semantics".)
//!
//! Other code calls these functions to broadcast sizes. Only two files compare sizes themselves: `dims.rs` for `expand`, because a size may
//! be -1 there, and `contraction.rs` for the contracted dimensions of a product.

use std::fmt;

use smallvec::SmallVec;

use crate::Shape;
use crate::shape::shape::INLINE_RANK;

/// A broadcasting error. It describes the first operand that does not broadcast with the joint shape of the operands before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The joint shape of the operands before the operand that fails.
    pub merged: Shape,
    /// The position of the failing operand in the list of operands.
    pub operand: usize,
    /// The failing operand's shape.
    pub shape: Shape,
    /// The last dimension in which the two shapes do not broadcast. The dimension is counted in the longer of the two shapes.
    pub axis: usize,
    /// The size of the shape `merged` in the dimension `axis`.
    pub left: usize,
    /// The size of the failing operand in the dimension `axis`.
    pub right: usize,
}

/// The error for a shape that does not expand to another. `Display` writes the main sentence of the error message of PyTorch's `expand`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandMismatch {
    /// The tensor's shape.
    pub shape: Shape,
    /// The requested sizes, as the caller wrote them.
    pub target: Vec<isize>,
    /// The last dimension of the target to which the tensor does not expand. It is 0 if the tensor has more dimensions than the target.
    pub axis: usize,
    /// The requested size in the dimension `axis`, or 1 for a missing dimension.
    pub expected: isize,
    /// The tensor's size in the dimension `axis`.
    pub existing: usize,
}

impl ExpandMismatch {
    /// Returns the mismatch if `shape` does not expand to `target`. Otherwise returns `None`.
    pub fn between(shape: &Shape, target: &Shape) -> Option<Self> {
        let sizes: Vec<isize> = target.iter().map(|&size| size as isize).collect();
        ExpandMismatch::with_sizes(shape, &sizes)
    }

    /// Returns the mismatch, or `None`, like [`between`](Self::between), but accepts negative target sizes. Compares only the dimensions
    /// that the tensor has, because added dimensions may have any size.
    pub(crate) fn with_sizes(shape: &Shape, target: &[isize]) -> Option<Self> {
        let refused = |axis, expected, existing| {
            Some(ExpandMismatch { shape: shape.clone(), target: target.to_vec(), axis, expected, existing })
        };
        let Some(lead) = target.len().checked_sub(shape.rank()) else {
            return refused(0, 1, shape[0]);
        };
        let axis =
            (0..shape.rank()).rev().find(|&axis| shape[axis] != 1 && shape[axis] as isize != target[lead + axis])?;
        refused(lead + axis, target[lead + axis], shape[axis])
    }
}

impl fmt::Display for ExpandMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExpandMismatch { shape, target, axis, expected, existing } = self;
        if shape.rank() > target.len() {
            return write!(
                f,
                "the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
                target.len(),
                shape.rank()
            );
        }
        write!(
            f,
            "The expanded size of the tensor ({expected}) must match the existing size ({existing}) at non-singleton dimension {axis}."
        )
    }
}

impl std::error::Error for ExpandMismatch {}

/// Returns the shape to which all of `shapes` broadcast, or `[]` if `shapes` is empty.
///
/// # Errors
///
/// If the shapes do not broadcast. The mismatch describes the first failing operand, in its last failing dimension.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::{broadcast, Shape};
///
/// let joined = broadcast::join(&[&Shape::from([5, 1, 4, 1]), &Shape::from([3, 1, 1])]);
/// assert_eq!(joined.unwrap(), [5, 3, 4, 1]);
///
/// let mismatch = broadcast::join(&[&Shape::from([5, 2, 4, 1]), &Shape::from([3, 1, 1])]).unwrap_err();
/// assert_eq!((mismatch.left, mismatch.right, mismatch.axis), (2, 3, 1));
/// ```
pub fn join(shapes: &[&Shape]) -> Result<Shape, Box<Mismatch>> {
    let Some((&first, rest)) = shapes.split_first() else {
        return Ok(Shape::scalar());
    };
    let Some((&second, rest)) = rest.split_first() else {
        return Ok(first.clone());
    };
    let mut merged = join_two(first, second, 1)?;
    for (position, &shape) in rest.iter().enumerate() {
        if merged != *shape {
            merged = join_two(&merged, shape, position + 2)?;
        }
    }
    Ok(merged)
}

/// Returns the shape to which two shapes broadcast. `operand` is the position of the operand that has the second shape, for the error.
pub(crate) fn join_two(merged: &Shape, shape: &Shape, operand: usize) -> Result<Shape, Box<Mismatch>> {
    // Starts with the sizes of the longer shape, and joins the sizes of the shorter shape to them.
    let first_is_longer = merged.rank() >= shape.rank();
    let (longer, shorter) = if first_is_longer { (merged, shape) } else { (shape, merged) };
    let lead = longer.rank() - shorter.rank();
    let mut joined = longer.clone();
    for (axis, (size, &other)) in joined[lead..].iter_mut().zip(shorter.iter()).enumerate().rev() {
        let Some(both) = join_sizes(*size, other) else {
            let (left, right) = if first_is_longer { (*size, other) } else { (other, *size) };
            let (merged, shape, axis) = (merged.clone(), shape.clone(), lead + axis);
            return Err(Box::new(Mismatch { merged, operand, shape, axis, left, right }));
        };
        *size = both;
    }
    Ok(joined)
}

/// Returns the joint size of a dimension with sizes `left` and `right`, or `None` if they do not agree.
#[inline]
pub(crate) fn join_sizes(left: usize, right: usize) -> Option<usize> {
    match (left, right) {
        (1, size) | (size, 1) => Some(size),
        (left, right) => (left == right).then_some(left),
    }
}

/// Aligns `shape` with a result of rank `rank` at the last dimension. Returns the size of `shape` in dimension `axis` of the result, or 1
/// if `shape` does not have this dimension.
pub(crate) fn size_at(shape: &[usize], rank: usize, axis: usize) -> usize {
    match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    }
}

/// Returns true if `from` broadcasts to exactly `to`.
pub(crate) fn expands(from: &[usize], to: &[usize]) -> bool {
    let Some(lead) = to.len().checked_sub(from.len()) else { return false };
    from.iter().zip(&to[lead..]).all(|(&size, &target)| size == target || size == 1)
}

/// The expansion of one shape to another. It lists the new dimensions and the dimensions that are stretched from size 1.
///
/// The gradient of an expansion is the sum of the incoming gradient over these dimensions. The sum removes the new dimensions and keeps the
/// stretched dimensions, with size 1.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::{broadcast::Expansion, Shape};
///
/// let expansion = Expansion::new(&Shape::from([32, 1, 1]), &Shape::from([4, 32, 14, 14])).unwrap();
/// assert_eq!(expansion.added().collect::<Vec<_>>(), [0]);
/// assert_eq!(expansion.stretched().collect::<Vec<_>>(), [2, 3]);
/// assert_eq!(expansion.reduced().as_slice(), [0, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    from: Shape,
    to: Shape,
}

impl Expansion {
    /// Returns the expansion of `from` to `to`, or `None` if `from` does not broadcast to exactly `to`.
    pub fn new(from: &Shape, to: &Shape) -> Option<Self> {
        expands(from, to).then(|| Expansion { from: from.clone(), to: to.clone() })
    }

    /// Returns the dimensions of the result that `from` does not have.
    pub fn added(&self) -> std::ops::Range<usize> {
        0..self.to.rank() - self.from.rank()
    }

    /// Returns the dimensions in which `from` has size 1 and the result has another size, possibly 0.
    pub fn stretched(&self) -> impl Iterator<Item = usize> + '_ {
        let lead = self.to.rank() - self.from.rank();
        (lead..self.to.rank()).filter(move |&axis| self.from[axis - lead] == 1 && self.to[axis] != 1)
    }

    /// Returns the dimensions that the gradient is summed over: the new and the stretched dimensions, in ascending order.
    pub fn reduced(&self) -> SmallVec<[usize; INLINE_RANK]> {
        self.added().chain(self.stretched()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(shapes: &[&[usize]]) -> Option<Vec<usize>> {
        let shapes: Vec<Shape> = shapes.iter().map(|&sizes| Shape::from(sizes)).collect();
        join(&shapes.iter().collect::<Vec<_>>()).ok().map(|shape| shape.to_vec())
    }

    #[test]
    fn the_rule_as_a_table() {
        type Row = (&'static [&'static [usize]], Option<&'static [usize]>);
        let table: &[Row] = &[
            (&[], Some(&[])),
            (&[&[]], Some(&[])),
            (&[&[5, 7, 3], &[5, 7, 3]], Some(&[5, 7, 3])),
            (&[&[0], &[2, 2]], None),
            (&[&[], &[2, 2]], Some(&[2, 2])),
            (&[&[5, 3, 4, 1], &[3, 1, 1]], Some(&[5, 3, 4, 1])),
            (&[&[5, 1, 4, 1], &[3, 1, 1]], Some(&[5, 3, 4, 1])),
            (&[&[1], &[3, 1, 7]], Some(&[3, 1, 7])),
            (&[&[5, 2, 4, 1], &[3, 1, 1]], None),
            (&[&[1], &[0]], Some(&[0])),
            (&[&[2], &[0]], None),
            (&[&[1, 3], &[2, 1], &[4, 1, 1]], Some(&[4, 2, 3])),
        ];
        for (shapes, expected) in table {
            assert_eq!(joined(shapes).as_deref(), *expected, "{shapes:?}");
        }
    }

    #[test]
    fn the_mismatch_names_the_last_failing_dimension() {
        let (a, b) = (Shape::from([3, 5, 2]), Shape::from([4, 5, 3]));
        let mismatch = join(&[&a, &b]).unwrap_err();
        assert_eq!((mismatch.axis, mismatch.left, mismatch.right, mismatch.operand), (2, 2, 3, 1));
    }

    #[test]
    fn an_expansion_to_zero_stretches() {
        let expansion = Expansion::new(&Shape::from([1]), &Shape::from([2, 0])).unwrap();
        assert_eq!(expansion.reduced().as_slice(), &[0, 1]);
        assert!(Expansion::new(&Shape::from([0]), &Shape::from([1])).is_none());
        assert!(Expansion::new(&Shape::from([1, 2]), &Shape::from([2])).is_none());
    }

    #[test]
    fn an_expansion_adds_and_stretches() {
        let expansion = Expansion::new(&Shape::from([3, 1]), &Shape::from([2, 3, 4])).unwrap();
        assert_eq!(expansion.added(), 0..1);
        assert_eq!(expansion.stretched().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_mismatch_of_an_expansion_as_a_table() {
        type Row = (&'static [usize], &'static [usize], Option<(usize, isize, usize)>);
        // The columns of the table: the shape, the target, and the expected mismatch. A mismatch has the dimension of the target, the
        // requested size and the existing size. If the target has fewer dimensions than the shape, the mismatch is in dimension 0, with 1 as
        // the requested size.
        let table: &[Row] = &[
            (&[3, 1], &[2, 3, 4], None),
            (&[], &[2, 3], None),
            (&[3, 1], &[3, 1], None),
            (&[5, 3], &[2, 4, 3], Some((1, 4, 5))),
            (&[5, 3], &[7, 2, 4, 6], Some((3, 6, 3))),
            (&[5, 1], &[7, 2, 4, 6], Some((2, 4, 5))),
            (&[2, 3], &[3], Some((0, 1, 2))),
        ];
        for &(shape, target, expected) in table {
            let found = ExpandMismatch::between(&Shape::from(shape), &Shape::from(target));
            let parts = found.as_ref().map(|found| (found.axis, found.expected, found.existing));
            assert_eq!(parts, expected, "{shape:?} {target:?}");
            if let Some(found) = found {
                assert_eq!((&found.shape[..], found.target.len()), (shape, target.len()));
            }
        }
    }

    #[test]
    fn the_sentences_of_a_failed_expansion() {
        let text = |shape: &[usize], target: &[usize]| {
            ExpandMismatch::between(&Shape::from(shape), &Shape::from(target)).unwrap().to_string()
        };
        let mismatch =
            "The expanded size of the tensor (4) must match the existing size (5) at non-singleton dimension";
        assert_eq!(text(&[5, 3], &[2, 4, 3]), format!("{mismatch} 1."));
        assert_eq!(text(&[5, 3], &[4, 3]), format!("{mismatch} 0."));
        assert_eq!(
            text(&[2, 3], &[3]),
            "the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (2)"
        );
    }
}
