//! Nested loops over several layouts of the same shape, in row-major order. Dimensions of size 1 are dropped, and adjacent dimensions that
//! one loop with a single stride can cover in every layout are merged.
//!
//! This file computes strides and positions and reads no elements.

use smallvec::{SmallVec, smallvec};

use crate::shape::shape::{INLINE_RANK, list_of};
use crate::{Layout, Shape};

/// The loops that visit the corresponding elements of `N` layouts of the same shape.
#[derive(Clone, Debug)]
pub(crate) struct IterationSpace<const N: usize> {
    /// The loops, outermost first. There is at least one loop. It has size 1 if there is a single element, and size 0 if there are no
    /// elements.
    loops: SmallVec<[Loop<N>; INLINE_RANK]>,
    /// The buffer position of each operand's first element.
    offsets: [usize; N],
}

#[derive(Clone, Copy, Debug)]
struct Loop<const N: usize> {
    size: usize,
    /// The stride of each operand along this loop.
    strides: [isize; N],
    /// ⌈2⁶⁴ / size⌉. A multiplication by this number divides an index below 2³² exactly by the size (T. Granlund and P. Montgomery,
    /// "Division by invariant integers using multiplication", 1994). The field is 0 if indices may be larger. It is also 0 for the
    /// outermost loop, which needs no division.
    reciprocal: u64,
}

/// Returns ⌈2⁶⁴ / size⌉ for a `size` of at least 2.
fn reciprocal(size: usize) -> u64 {
    (u64::MAX / size as u64).wrapping_add(1)
}

impl<const N: usize> Loop<N> {
    /// Returns the quotient and the remainder of `index` divided by the loop's size.
    #[inline(always)]
    fn divide(&self, index: usize) -> (usize, usize) {
        match self.reciprocal {
            0 => (index / self.size, index % self.size),
            reciprocal => {
                let quotient = ((index as u128 * u128::from(reciprocal)) >> 64) as usize;
                (quotient, index - quotient * self.size)
            }
        }
    }
}

/// The buffer positions of one operand for a range of consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// The elements are contiguous and start at this position.
    Slice(usize),
    /// One element, at this position, is repeated.
    Splat(usize),
    /// The elements start at this position and have this constant stride.
    Strided(usize, isize),
    /// The range covers several rows, and its elements may have no single stride: call [`walk`](IterationSpace::walk).
    Walk,
}

impl<const N: usize> IterationSpace<N> {
    /// Returns the iteration space over `layouts`, which all have the shape `shape`.
    pub(crate) fn new(shape: &Shape, layouts: [&Layout; N]) -> Self {
        let offsets = layouts.map(Layout::offset);
        if shape.contains(&0) {
            // Without elements, the space has one empty loop. The other sizes are ignored, because their product may overflow.
            return IterationSpace { loops: smallvec![Loop { size: 0, strides: [1; N], reciprocal: 0 }], offsets };
        }
        let loops = (0..shape.rank()).map(|axis| (shape[axis], layouts.map(|layout| layout.strides()[axis])));
        Self::of_loops(offsets, loops)
    }

    /// Returns the iteration space for loops with the given sizes and strides, outermost first. All sizes are above 0.
    #[inline(always)]
    pub(crate) fn of_loops(offsets: [usize; N], loops: impl IntoIterator<Item = (usize, [isize; N])>) -> Self {
        let mut space = IterationSpace { loops: SmallVec::new(), offsets };
        space.merge(loops);
        space
    }

    /// Adds loops to an iteration space that has none, and merges loops where possible. Changes `self` in place, because moving an
    /// iteration space takes longer than a small operation.
    fn merge(&mut self, loops: impl IntoIterator<Item = (usize, [isize; N])>) {
        let own = &mut self.loops;
        for (size, strides) in loops.into_iter().filter(|&(size, _)| size != 1) {
            match own.last_mut() {
                Some(outer) if (0..N).all(|k| outer.strides[k] == strides[k] * size as isize) => {
                    (outer.size, outer.strides) = (outer.size * size, strides);
                }
                _ => own.push(Loop { size, strides, reciprocal: 0 }),
            }
        }
        if own.is_empty() {
            own.push(Loop { size: 1, strides: [1; N], reciprocal: 0 });
        }
        if own.len() > 1 && own.iter().map(|own| own.size as u64).product::<u64>() < 1 << 32 {
            own[1..].iter_mut().for_each(|own| own.reciprocal = reciprocal(own.size));
        }
    }

    /// Returns the number of elements.
    pub(crate) fn numel(&self) -> usize {
        self.loops.iter().map(|own| own.size).product()
    }

    /// Returns the size of the innermost loop.
    pub(crate) fn run_length(&self) -> usize {
        self.loops[self.loops.len() - 1].size
    }

    /// Returns the number of loops.
    pub(crate) fn depth(&self) -> usize {
        self.loops.len()
    }

    /// Returns the number of elements after which the whole sequence of elements repeats, or the number of all elements if it does not
    /// repeat.
    pub(crate) fn period(&self) -> usize {
        self.loops.iter().skip_while(|own| own.strides == [0; N]).map(|own| own.size).product()
    }

    /// Returns true if each row of `row` elements repeats one element, and the elements of successive rows are adjacent in memory.
    pub(crate) fn repeats_each_element(&self, row: usize) -> bool {
        matches!(&self.loops[..], [outer, inner] if outer.strides == [1; N] && inner.strides == [0; N] && inner.size == row)
    }

    /// Returns how many times each contiguous row is repeated before the next row. Returns `None` if rows are not contiguous or not
    /// repeated.
    pub(crate) fn row_repeats(&self) -> Option<usize> {
        match &self.loops[..] {
            [.., outer, inner] if outer.strides == [0; N] && inner.strides == [1; N] => Some(outer.size),
            _ => None,
        }
    }

    /// Returns the size of each loop and the strides of the operands along it, outermost first.
    pub(crate) fn loops(&self) -> impl Iterator<Item = (usize, [isize; N])> {
        self.loops.iter().map(|own| (own.size, own.strides))
    }

    /// Returns the size of the loop with index `axis`, and the strides of the operands along it.
    pub(crate) fn loop_of(&self, axis: usize) -> (usize, [isize; N]) {
        (self.loops[axis].size, self.loops[axis].strides)
    }

    /// Returns the positions in the buffer of the elements `start .. start + len` of operand `k`.
    #[inline]
    pub(crate) fn segment(&self, k: usize, start: usize, len: usize) -> Segment {
        let Some((inner, outer)) = self.loops.split_last() else { return Segment::Walk };
        let (row, own) = if outer.is_empty() { (0, start) } else { inner.divide(start) };
        if outer.is_empty() || own + len <= inner.size {
            let stride = inner.strides[k];
            let position = (self.position_in(outer, k, row) + own as isize * stride) as usize;
            return match stride {
                1 => Segment::Slice(position),
                0 => Segment::Splat(position),
                stride => Segment::Strided(position, stride),
            };
        }
        self.segment_of_rows(k, start)
    }

    /// Returns the positions of a range of elements that begins at `start` and covers several rows (innermost loops).
    /// [`segment`](Self::segment) calls this function for such a range, and computes other ranges itself.
    fn segment_of_rows(&self, k: usize, start: usize) -> Segment {
        let (mut contiguous, mut constant) = (true, true);
        let mut expected = 1isize;
        for Loop { size, strides, .. } in self.loops.iter().rev() {
            contiguous &= strides[k] == expected;
            constant &= strides[k] == 0;
            expected *= *size as isize;
        }
        match (contiguous, constant) {
            (true, _) => Segment::Slice(self.position(k, start)),
            (_, true) => Segment::Splat(self.offsets[k]),
            _ => Segment::Walk,
        }
    }

    /// Returns the buffer position of the element of operand `k` that has the row-major index `index`.
    pub(crate) fn position(&self, k: usize, index: usize) -> usize {
        self.position_in(&self.loops, k, index) as usize
    }

    /// Returns the buffer position of operand `k` at the iteration with index `index` of the outermost loops `loops`.
    #[inline(always)]
    fn position_in(&self, loops: &[Loop<N>], k: usize, index: usize) -> isize {
        let mut position = self.offsets[k] as isize;
        let Some((outermost, inner)) = loops.split_first() else { return position };
        let mut rest = index;
        for own in inner.iter().rev() {
            let (quotient, index) = own.divide(rest);
            position += index as isize * own.strides[k];
            rest = quotient;
        }
        position + rest as isize * outermost.strides[k]
    }

    /// Calls `visit` with the buffer positions of all operands for the first element of each row (innermost loop), in row-major order.
    pub(crate) fn for_each_row(&self, visit: &mut dyn FnMut([usize; N])) {
        fn of_loops<const N: usize>(loops: &[Loop<N>], at: [isize; N], visit: &mut dyn FnMut([usize; N])) {
            let [own, inner @ ..] = loops else { return };
            if inner.is_empty() {
                return visit(at.map(|position| position as usize));
            }
            for i in 0..own.size as isize {
                of_loops(inner, std::array::from_fn(|k| at[k] + i * own.strides[k]), visit);
            }
        }
        of_loops(&self.loops, self.offsets.map(|offset| offset as isize), visit);
    }

    /// Calls `visit` with segments (position, stride, length) that together cover the elements `start .. start + len` of operand `k`.
    pub(crate) fn walk(&self, k: usize, start: usize, len: usize, mut visit: impl FnMut(usize, isize, usize)) {
        let innermost = self.loops.len() - 1;
        let Loop { size: row, strides, .. } = self.loops[innermost];
        let inner = strides[k];
        if innermost == 0 && len > 0 {
            return visit((self.offsets[k] as isize + start as isize * inner) as usize, inner, len);
        }
        let mut index = list_of(0, self.loops.len());
        let (mut rest, mut position) = (start, self.offsets[k] as isize);
        for (index, own) in index[1..].iter_mut().zip(&self.loops[1..]).rev() {
            (rest, *index) = own.divide(rest);
            position += *index as isize * own.strides[k];
        }
        index[0] = rest;
        position += rest as isize * self.loops[0].strides[k];
        let mut left = len;
        while left > 0 {
            let step = left.min(row - index[innermost]);
            visit(position as usize, inner, step);
            left -= step;
            if left == 0 {
                break;
            }
            position -= index[innermost] as isize * inner;
            index[innermost] = 0;
            for (index, own) in index[..innermost].iter_mut().zip(&self.loops[..innermost]).rev() {
                *index += 1;
                position += own.strides[k];
                if *index < own.size {
                    break;
                }
                position -= own.size as isize * own.strides[k];
                *index = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        for size in [2, 3, 7, 10, 641, 65_535, 65_537, (1 << 31) + 11, (1 << 32) - 1] {
            let own = Loop { size, strides: [1], reciprocal: reciprocal(size) };
            let indices =
                [0, 1, size - 1, size, 2 * size - 1, (1 << 32) - 1, (1 << 32) - 2, 4_294_967_291, 123_456_789];
            for index in indices.into_iter().filter(|&index| index < 1 << 32) {
                assert_eq!(own.divide(index), (index / size, index % size), "{index} by {size}");
            }
        }
    }

    fn positions<const N: usize>(space: &IterationSpace<N>, k: usize, start: usize, len: usize) -> Vec<usize> {
        let mut out = Vec::new();
        space.walk(k, start, len, |position, stride, count| {
            out.extend((0..count).map(|i| (position as isize + i as isize * stride) as usize));
        });
        out
    }

    #[test]
    fn contiguous_dimensions_merge_to_one_loop() {
        let layout = Layout::contiguous(Shape::from([2, 3, 1, 4]));
        let space = IterationSpace::new(layout.shape(), [&layout]);
        assert_eq!(space.run_length(), 24);
        assert_eq!(space.segment(0, 5, 7), Segment::Slice(5));
    }

    #[test]
    fn every_segment_agrees_with_positions() {
        let shape = Shape::from([3, 2, 4]);
        let bias = Layout::contiguous(Shape::from([2, 1])).expand(&shape).unwrap();
        let transposed = Layout::contiguous(Shape::from([4, 2, 3])).permute(&[2, 1, 0]);
        let space = IterationSpace::new(&shape, [&bias, &transposed]);
        for k in 0..2 {
            for start in 0..24 {
                for len in 1..=24 - start {
                    let expected: Vec<usize> = (start..start + len).map(|i| space.position(k, i)).collect();
                    assert_eq!(positions(&space, k, start, len), expected);
                    match space.segment(k, start, len) {
                        Segment::Slice(p) => assert_eq!((p..p + len).collect::<Vec<_>>(), expected),
                        Segment::Splat(p) => assert!(expected.iter().all(|&e| e == p)),
                        Segment::Strided(p, s) => assert!(
                            expected.iter().enumerate().all(|(i, &e)| e as isize == p as isize + i as isize * s)
                        ),
                        Segment::Walk => {}
                    }
                }
            }
        }
    }
}
