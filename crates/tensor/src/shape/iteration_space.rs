//! The iteration space over several layouts: dimensions of size 1 are dropped, adjacent dimensions that are contiguous in every
//! layout are merged, and the others are iterated in row-major order.
//!
//! Pure arithmetic: it knows strides and positions, no data.

use smallvec::{SmallVec, smallvec};

use crate::{Layout, Shape};

/// The loops that visit every element of `N` layouts of the same shape in step.
#[derive(Clone, Debug)]
pub(crate) struct IterationSpace<const N: usize> {
    /// Sizes of the loops, outermost first; never empty (a single element is one loop of size 1, no elements one of size 0).
    sizes: SmallVec<[usize; 6]>,
    /// For each loop, the stride of each operand.
    strides: SmallVec<[[isize; N]; 6]>,
    /// The start position of each operand.
    offsets: [usize; N],
    /// For each loop ⌈2⁶⁴ / size⌉, by which an index below 2³² is divided exactly (T. Granlund and P. Montgomery, "Division by
    /// invariant integers using multiplication", 1994); 0 where indices may be larger.
    reciprocals: SmallVec<[u64; 6]>,
}

/// The positions of one operand over consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Contiguous, starting at this position.
    Slice(usize),
    /// The same element throughout, at this position.
    Splat(usize),
    /// Constant stride, starting at this position.
    Strided(usize, isize),
    /// No single stride: use [`walk`](IterationSpace::walk).
    Walk,
}

impl<const N: usize> IterationSpace<N> {
    /// The iteration space over `layouts`, which all have the shape `shape`.
    pub(crate) fn new(shape: &Shape, layouts: [&Layout; N]) -> Self {
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
        let mut strides: SmallVec<[[isize; N]; 6]> = SmallVec::new();
        let offsets = layouts.map(Layout::offset);
        if shape.contains(&0) {
            // Without elements: one empty loop. The other sizes are ignored, since their product may overflow.
            return IterationSpace {
                sizes: smallvec![0],
                strides: smallvec![[1; N]],
                offsets,
                reciprocals: smallvec![0],
            };
        }
        for axis in 0..shape.rank() {
            let size = shape[axis];
            if size == 1 {
                continue;
            }
            let own = layouts.map(|layout| layout.strides()[axis]);
            match (sizes.last_mut(), strides.last_mut()) {
                (Some(outer), Some(last)) if (0..N).all(|k| last[k] == own[k] * size as isize) => {
                    *outer *= size;
                    *last = own;
                }
                _ => {
                    sizes.push(size);
                    strides.push(own);
                }
            }
        }
        if sizes.is_empty() {
            sizes.push(1);
            strides = smallvec![[1; N]];
        }
        let small = sizes.iter().product::<usize>() < 1 << 32;
        let reciprocal = |&size: &usize| if small && size > 1 { (u64::MAX / size as u64).wrapping_add(1) } else { 0 };
        let reciprocals = sizes.iter().map(reciprocal).collect();
        IterationSpace { sizes, strides, offsets, reciprocals }
    }

    /// `index` divided by the size of a loop, and the rest.
    #[inline]
    fn divide(&self, index: usize, axis: usize) -> (usize, usize) {
        divide(index, self.sizes[axis], self.reciprocals[axis])
    }

    /// Number of elements.
    pub(crate) fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Length of the innermost loop.
    pub(crate) fn row(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// Number of loops.
    pub(crate) fn depth(&self) -> usize {
        self.sizes.len()
    }

    /// The period with which elements repeat; the element count where nothing repeats.
    pub(crate) fn period(&self) -> usize {
        let repeated = self.strides.iter().take_while(|strides| **strides == [0; N]).count();
        self.sizes[repeated..].iter().product()
    }

    /// Whether each row of `row` elements repeats one element, and the elements of successive rows are contiguous.
    pub(crate) fn counts_rows(&self, row: usize) -> bool {
        self.sizes.len() == 2 && self.sizes[1] == row && self.strides[0] == [1; N] && self.strides[1] == [0; N]
    }

    /// Whether all rows are the same contiguous row.
    pub(crate) fn repeats(&self) -> bool {
        self.sizes.len() == 2 && self.strides[0] == [0; N] && self.strides[1] == [1; N]
    }

    /// Size of loop `axis` and the operands' strides along it.
    pub(crate) fn loop_of(&self, axis: usize) -> (usize, [isize; N]) {
        (self.sizes[axis], self.strides[axis])
    }

    /// The positions of operand `k` over elements `start .. start + len`.
    pub(crate) fn segment(&self, k: usize, start: usize, len: usize) -> Segment {
        let last = self.sizes.len() - 1;
        let inner = self.strides[last][k];
        let (outer, own) = if last == 0 { (0, start) } else { self.divide(start, last) };
        if last == 0 || own + len <= self.sizes[last] {
            let position = (self.outer_position(k, outer, last) + own as isize * inner) as usize;
            return match inner {
                1 => Segment::Slice(position),
                0 => Segment::Splat(position),
                stride => Segment::Strided(position, stride),
            };
        }
        let mut contiguous = inner == 1;
        let mut constant = inner == 0;
        let mut expected = 1isize;
        for (&size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            contiguous &= stride[k] == expected;
            constant &= stride[k] == 0;
            expected *= size as isize;
        }
        match (contiguous, constant) {
            (true, _) => Segment::Slice(self.position(k, start)),
            (_, true) => Segment::Splat(self.offsets[k]),
            _ => Segment::Walk,
        }
    }

    /// Position of element number `index` of operand `k`.
    pub(crate) fn position(&self, k: usize, index: usize) -> usize {
        self.outer_position(k, index, self.sizes.len()) as usize
    }

    /// Position of operand `k` at iteration number `index` of the `depth` outermost loops.
    #[inline]
    fn outer_position(&self, k: usize, index: usize, depth: usize) -> isize {
        let offset = self.offsets[k] as isize;
        if depth == 0 {
            return offset;
        }
        let (sizes, strides, reciprocals) = (&self.sizes[..depth], &self.strides[..depth], &self.reciprocals[..depth]);
        let (mut rest, mut position) = (index, offset);
        for ((&size, stride), &reciprocal) in sizes[1..].iter().zip(&strides[1..]).zip(&reciprocals[1..]).rev() {
            let (quotient, own) = divide(rest, size, reciprocal);
            position += own as isize * stride[k];
            rest = quotient;
        }
        position + rest as isize * strides[0][k]
    }

    /// Calls `visit` with segments (position, stride, length) that cover elements `start .. start + len` of operand `k`.
    pub(crate) fn walk(&self, k: usize, start: usize, len: usize, mut visit: impl FnMut(usize, isize, usize)) {
        let row = self.row();
        let inner = self.strides[self.strides.len() - 1][k];
        let mut index: SmallVec<[usize; 6]> = smallvec![0; self.sizes.len()];
        let mut rest = start;
        for (slot, &size) in index.iter_mut().zip(&self.sizes).rev() {
            *slot = rest % size;
            rest /= size;
        }
        let mut position = self.position(k, start) as isize;
        let mut left = len;
        let innermost = self.sizes.len() - 1;
        while left > 0 {
            let step = left.min(row - index[innermost]);
            visit(position as usize, inner, step);
            left -= step;
            if left == 0 {
                break;
            }
            position -= index[innermost] as isize * inner;
            index[innermost] = 0;
            for axis in (0..innermost).rev() {
                index[axis] += 1;
                position += self.strides[axis][k];
                if index[axis] < self.sizes[axis] {
                    break;
                }
                position -= self.sizes[axis] as isize * self.strides[axis][k];
                index[axis] = 0;
            }
        }
    }
}

/// `index` divided by `size`, whose reciprocal this is, and the rest.
#[inline(always)]
fn divide(index: usize, size: usize, reciprocal: u64) -> (usize, usize) {
    match reciprocal {
        0 => (index / size, index % size),
        reciprocal => {
            let quotient = ((index as u128 * u128::from(reciprocal)) >> 64) as usize;
            (quotient, index - quotient * size)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_divides_exactly() {
        for size in [2, 3, 7, 10, 641, 65_535, 65_537, (1 << 31) + 11, (1 << 32) - 1] {
            let space = IterationSpace::new(&Shape::from([1, size]), [&Layout::contiguous(Shape::from([1, size]))]);
            assert_ne!(space.reciprocals[0], 0);
            let indices =
                [0, 1, size - 1, size, 2 * size - 1, (1 << 32) - 1, (1 << 32) - 2, 4_294_967_291, 123_456_789];
            for index in indices.into_iter().filter(|&index| index < 1 << 32) {
                assert_eq!(space.divide(index, 0), (index / size, index % size), "{index} by {size}");
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
        assert_eq!(space.row(), 24);
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
