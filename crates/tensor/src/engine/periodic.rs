//! Operands that repeat a few elements, as blocks read them: the three channels of a picture's pixels, the bias of a row of
//! logits. Written out once, over more than a block, they are read like any other elements.

use crate::Element;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill;
use crate::kernel::strided::{BLOCK, LONG_ROW, Source};
use crate::shape::iteration_space::Nest;

/// Rows of fewer elements are worth it: at longer ones loops go along well enough.
const SHORT_ROW: usize = 128;

/// Elements of which every vector register holds a part, or all.
const VECTOR: usize = 16;

/// Elements that are repeated, at most.
const LONGEST: usize = 4096;

/// An operand, ready to be read at any place.
pub(crate) enum Reader<'a, T> {
    /// It lies in order, or is one element.
    Whole(Operand<'a, T>),
    /// The same elements again and again; those of one period, and as many after it as a block has.
    Periodic(Vec<T>, usize),
}

impl<'a, T: Element> Reader<'a, T> {
    /// `None` where an operand, of one element at least, is read in a better way.
    pub(crate) fn new(x: Source<'a, T>) -> Option<Self> {
        if let Some(whole) = x.whole() {
            return Some(Reader::Whole(whole));
        }
        let nest = Nest::new(x.layout.shape(), [x.layout]);
        let total = nest.numel();
        let period = match total {
            // What fills no block is written out whatever it is.
            ..=BLOCK => total,
            _ if nest.row() >= SHORT_ROW => return None,
            _ => nest.period(),
        };
        let len = total.min(period + BLOCK);
        if period > LONGEST || (total > BLOCK && 2 * len > total) {
            return None;
        }
        let mut elements = vec![T::ZERO; len];
        fill::spread(&nest, x.data, 0, &mut elements);
        Some(Reader::Periodic(elements, period))
    }

    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self, Reader::Periodic(..))
    }

    /// Elements `start .. start + len`, of a block at most.
    pub(crate) fn at(&self, start: usize, len: usize) -> Operand<'_, T> {
        match self {
            Reader::Whole(Operand::Splat(value)) => Operand::Splat(*value),
            Reader::Whole(Operand::Slice(elements)) => Operand::Slice(&elements[start..start + len]),
            Reader::Periodic(elements, period) => Operand::Slice(&elements[start % period..][..len]),
        }
    }
}

/// An operand of an operation on a block of elements or fewer, read in pieces, the first one first.
pub(crate) enum Few<'a, T> {
    /// It lies in order, or is one element.
    Whole(Operand<'a, T>),
    /// The same short row again and again.
    Row(&'a [T]),
    /// Of short rows, which are written out as they are asked for.
    Rows(Nest<1>, &'a [T]),
}

impl<'a, T: Element> Few<'a, T> {
    /// `None` where rows are long. There is one element at least.
    #[inline]
    pub(crate) fn new(x: Source<'a, T>) -> Option<Self> {
        if let Some(whole) = x.whole() {
            return Some(Few::Whole(whole));
        }
        if let Some(row) = x.row() {
            return (row.len() < LONG_ROW).then_some(Few::Row(row));
        }
        let nest = Nest::new(x.layout.shape(), [x.layout]);
        (nest.row() < LONG_ROW).then_some(Few::Rows(nest, x.data))
    }

    /// Whether it needs no room to be written out.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Few::Whole(_))
    }

    /// How many elements [`at`](Self::at) is to be asked for, at most, where there is `room` for as many, a long row at least:
    /// whole rows, and whole vectors where that can be.
    #[inline]
    pub(crate) fn piece(&self, room: usize) -> usize {
        let row = match self {
            Few::Whole(_) => return BLOCK,
            Few::Row(row) => row.len(),
            Few::Rows(nest, _) => nest.row(),
        };
        let both = row << (VECTOR.trailing_zeros() - row.trailing_zeros().min(VECTOR.trailing_zeros()));
        if both <= room { room / both * both } else { room / row * row }
    }

    /// The first `len` elements of piece `number` of those of `piece` elements. `scratch` has room for them, and keeps what was
    /// written there for the piece before.
    #[inline]
    pub(crate) fn at<'b>(&'b self, number: usize, piece: usize, len: usize, scratch: &'b mut [T]) -> Operand<'b, T> {
        let start = number * piece;
        match self {
            Few::Whole(Operand::Splat(value)) => Operand::Splat(*value),
            Few::Whole(Operand::Slice(elements)) => Operand::Slice(&elements[start..start + len]),
            Few::Row(row) => {
                let scratch = &mut scratch[..len];
                // One piece is like the other if they are of whole rows.
                if number == 0 || !piece.is_multiple_of(row.len()) {
                    fill::repeat(row, start, scratch);
                }
                Operand::Slice(scratch)
            }
            Few::Rows(nest, data) => {
                fill::spread(nest, data, start, &mut scratch[..len]);
                Operand::Slice(&scratch[..len])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// The pieces of one operand are not of whole rows of the other.
    #[test]
    fn rows_of_two_lengths() {
        for [outer, middle, inner] in [[5, 10, 10], [3, 7, 9], [9, 4, 25], [2, 40, 12], [4, 100, 2], [6, 16, 7]] {
            let shape = [outer, middle, inner];
            let x = Tensor::<f64>::from_fn([middle, inner], |i| (i[0] * 31 + i[1]) as f64);
            let y = Tensor::<f64>::from_fn([outer, 1, inner], |i| (i[0] * 1000 + i[2] * 7) as f64);
            let expected = Tensor::from_fn(shape, |i| (i[1] * 31 + i[2]) as f64 - (i[0] * 1000 + i[2] * 7) as f64);
            assert_eq!(&x - &y, expected);
            assert_eq!(&y - &x, -&expected);
            assert_eq!(x.lt(&y), expected.lt(0.0));
            let mut out = Tensor::<f64>::zeros(shape);
            out -= &y;
            out += &x;
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn what_repeats_is_read_where_it_is() {
        for [outer, middle, inner] in [[5, 7, 3], [400, 9, 3], [1000, 3, 1], [33, 65, 17], [900, 1, 10]] {
            let x = Tensor::<f64>::from_fn([outer, middle, inner], |i| (i[0] * 31 + i[1] * 7 + i[2]) as f64);
            let at = |i: &[usize]| (i[0] * 31 + i[1] * 7 + i[2]) as f64;
            let last = Tensor::from_fn([inner], |i| i[0] as f64 * 0.5);
            let column = Tensor::from_fn([middle, 1], |i| i[0] as f64 * 100.0);
            let shape = [outer, middle, inner];
            assert_eq!(&x - &last, Tensor::from_fn(shape, |i| at(i) - i[2] as f64 * 0.5));
            assert_eq!(&column - &x, Tensor::from_fn(shape, |i| i[1] as f64 * 100.0 - at(i)));
            assert_eq!(x.lt(&column), Tensor::from_fn(shape, |i| at(i) < i[1] as f64 * 100.0));
            let chosen = where_(&column.gt(100.0).expand(shape), &x, last.expand(shape));
            assert_eq!(chosen, Tensor::from_fn(shape, |i| if i[1] > 1 { at(i) } else { i[2] as f64 * 0.5 }));
        }
    }
}
