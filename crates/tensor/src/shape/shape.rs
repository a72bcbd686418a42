//! The sizes of a tensor, one per dimension.
//!
//! [`Layout`](crate::Layout) describes where the elements are in memory, and [`broadcast`](crate::shape::broadcast) how shapes
//! combine.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut, Range};

use smallvec::SmallVec;

/// The largest rank whose sizes are stored without an allocation. With the value 4, a few vector instructions copy a shape or a tensor.
/// With the value 6, each copy was a function call, which took most of the time of small operations.
pub(crate) const INLINE_RANK: usize = 4;

/// Returns a copy of `list`. This function is faster than `SmallVec`'s own `clone`, which copies element by element through an iterator.
#[inline]
pub(crate) fn copy_of<T: Copy + Default>(list: &SmallVec<[T; INLINE_RANK]>) -> SmallVec<[T; INLINE_RANK]> {
    let own = list.as_slice();
    if own.len() > INLINE_RANK {
        return SmallVec::from_slice(own);
    }
    // Copies all `INLINE_RANK` elements. The compiler would turn a loop over the list's actual length into a call of `memcpy`.
    let copy = std::array::from_fn(|axis| if axis < own.len() { own[axis] } else { T::default() });
    SmallVec::from_buf_and_len(copy, own.len())
}

/// Returns a list of `len` copies of `value`. This function is faster than `SmallVec`'s own constructor, which pushes each element
/// separately.
#[inline]
pub(crate) fn list_of<T: Copy>(value: T, len: usize) -> SmallVec<[T; INLINE_RANK]> {
    match len {
        ..=INLINE_RANK => SmallVec::from_buf_and_len([value; INLINE_RANK], len),
        _ => SmallVec::from_elem(value, len),
    }
}

/// The sizes of a tensor, outermost first: `[n, c, h, w]`. Rank 0 (`[]`) is a single number. A size may be 0.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let shape = Shape::from([5, 3, 4, 1]);
/// assert_eq!(shape.rank(), 4);
/// assert_eq!(shape.numel(), 60);
/// assert_eq!(shape.to_string(), "[5, 3, 4, 1]");
/// ```
#[derive(Eq, Default, PartialOrd, Ord)]
pub struct Shape(SmallVec<[usize; INLINE_RANK]>);

impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Self {
        Shape(copy_of(&self.0))
    }
}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

// Compares the sizes in a loop, because a call of `memcmp` takes longer for short shapes.
impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(x, y)| x == y)
    }
}

impl Shape {
    /// Returns the shape of a single number, `[]`.
    pub fn scalar() -> Self {
        Shape::default()
    }

    /// Returns a shape of `rank` dimensions of size 1.
    #[inline]
    pub fn ones(rank: usize) -> Self {
        Shape(list_of(1, rank))
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Returns the shape of the product of two matrices, or of two batches of matrices with equal batch dimensions.
    #[doc(hidden)]
    pub fn of_product(left: &Shape, right: &Shape) -> Shape {
        let mut shape = left.clone();
        shape[left.rank() - 1] = right[right.rank() - 1];
        shape
    }

    /// Returns the shape without the dimensions `axes`.
    pub(crate) fn without(&self, axes: &[usize]) -> Self {
        let mut kept = Shape::scalar();
        for (axis, &size) in self.0.iter().enumerate() {
            if !axes.contains(&axis) {
                kept.0.push(size);
            }
        }
        kept
    }

    /// Returns the shape with size 1 along the dimensions `axes`: the shape of a reduction over `axes` that keeps the dimensions.
    #[must_use]
    #[inline]
    pub fn with_ones(&self, axes: &[usize]) -> Self {
        let mut shape = self.clone();
        for &axis in axes {
            shape[axis] = 1;
        }
        shape
    }

    /// Returns the product of the sizes along the dimensions `axes`: the number of elements that a reduction over them combines.
    pub fn numel_over(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self[axis]).collect::<Shape>().numel()
    }

    /// Returns the number of elements: the product of the sizes, 1 for `[]`.
    ///
    /// If the product overflows, returns `usize::MAX`, which no tensor can have. See [`checked_numel`](Self::checked_numel).
    #[inline]
    pub fn numel(&self) -> usize {
        self.checked_numel().unwrap_or(usize::MAX)
    }

    /// Returns the number of elements, or `None` if the product of the sizes overflows. If one size is 0, the result is 0, whatever the
    /// other sizes are.
    #[inline]
    pub fn checked_numel(&self) -> Option<usize> {
        let (mut count, mut overflows) = (1usize, false);
        for &size in &self.0 {
            let (product, overflow) = count.overflowing_mul(size);
            (count, overflows) = (product, overflows | overflow);
        }
        if !overflows {
            return Some(count);
        }
        self.contains(&0).then_some(0)
    }

    /// Returns the sizes as a slice.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.0
    }

    /// Appends a dimension at the end.
    pub fn push(&mut self, size: usize) {
        self.0.push(size);
    }

    /// Inserts a dimension before position `axis`.
    pub fn insert(&mut self, axis: usize, size: usize) {
        self.0.insert(axis, size);
    }

    /// Removes the dimension at position `axis` and returns its size.
    pub fn remove(&mut self, axis: usize) -> usize {
        self.0.remove(axis)
    }

    /// Returns the shape with the size of dimension `axis` replaced by `size`.
    #[must_use]
    pub(crate) fn with_size(&self, axis: usize, size: usize) -> Self {
        let mut shape = self.clone();
        shape[axis] = size;
        shape
    }

    /// Returns the shape with the dimensions `axes` replaced by dimensions of sizes `new`.
    #[must_use]
    pub fn replaced(&self, axes: Range<usize>, new: &[usize]) -> Self {
        self[..axes.start].iter().chain(new).chain(&self[axes.end..]).copied().collect()
    }

    /// Returns the strides, in elements, of a row-major (C order) tensor of this shape.
    ///
    /// A dimension of size 0 counts as size 1, as in PyTorch.
    #[inline]
    pub fn row_major_strides(&self) -> SmallVec<[isize; INLINE_RANK]> {
        let next_stride =
            |stride: isize, size: usize| stride.saturating_mul(isize::try_from(size.max(1)).unwrap_or(isize::MAX));
        let (sizes, mut next) = (self.sizes(), 1isize);
        if sizes.len() <= INLINE_RANK {
            // A loop of fixed length keeps the strides in registers. A loop of variable length writes them to memory one at a time, and a
            // later copy of the list would wait for these writes.
            let mut strides = [1; INLINE_RANK];
            for axis in (0..INLINE_RANK).rev() {
                strides[axis] = next;
                next = if axis < sizes.len() { next_stride(next, sizes[axis]) } else { next };
            }
            return SmallVec::from_buf_and_len(strides, sizes.len());
        }
        let mut strides: SmallVec<[isize; INLINE_RANK]> = list_of(1, sizes.len());
        for (stride, &size) in strides.iter_mut().zip(self.iter()).rev() {
            *stride = next;
            next = next_stride(next, size);
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl DerefMut for Shape {
    #[inline]
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(sizes: [usize; N]) -> Self {
        Shape(SmallVec::from_slice(&sizes))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(sizes: &[usize; N]) -> Self {
        Shape(SmallVec::from_slice(sizes))
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Self {
        Shape(SmallVec::from_slice(sizes))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(sizes: Vec<usize>) -> Self {
        Shape(SmallVec::from_vec(sizes))
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Shape::scalar()
    }
}

impl From<usize> for Shape {
    fn from(size: usize) -> Self {
        Shape::from([size])
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(sizes: I) -> Self {
        // This function is compiled for each type of iterator. A loop over `push` gives less code than `collect`.
        let mut shape = Shape::scalar();
        for size in sizes {
            shape.push(size);
        }
        shape
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.sizes() == other
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.sizes() == other
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for (axis, size) in self.iter().enumerate() {
            write!(f, "{}{size}", if axis == 0 { "" } else { ", " })?;
        }
        write!(f, "]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_size_prevents_overflow() {
        assert_eq!(Shape::from([usize::MAX, usize::MAX, 0]).checked_numel(), Some(0));
        assert_eq!(Shape::from([usize::MAX, 2]).checked_numel(), None);
    }

    #[test]
    fn strides_are_row_major_and_count_zero_as_one() {
        assert_eq!(Shape::from([2, 3, 4]).row_major_strides().as_slice(), &[12, 4, 1]);
        assert_eq!(Shape::from([2, 0, 4]).row_major_strides().as_slice(), &[4, 4, 1]);
        assert!(Shape::scalar().row_major_strides().is_empty());
    }
}
