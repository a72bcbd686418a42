//! Operands that repeat a few elements, as blocks read them: the three channels of a picture's pixels, the bias of a row of
//! logits. Written out once, over more than a block, they are read like any other elements.

use super::block::Operand;
use super::map::{BLOCK, Source};
use super::rows;
use crate::Element;
use crate::nest::Nest;

/// Rows of fewer elements are worth it: at longer ones loops go along well enough.
const SHORT_ROW: usize = 128;

/// Elements that are repeated, at most.
const LONGEST: usize = 4096;

/// An operand, ready to be read at any place.
pub(super) enum Reader<'a, T> {
    /// It lies in order, or is one element.
    Whole(Operand<'a, T>),
    /// The same elements again and again; those of one period, and as many after it as a block has.
    Periodic(Vec<T>, usize),
}

impl<'a, T: Element> Reader<'a, T> {
    /// `None` where an operand, of one element at least, is read in a better way.
    pub(super) fn new(x: Source<'a, T>) -> Option<Self> {
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
        rows::spread(&nest, x.data, 0, &mut elements);
        Some(Reader::Periodic(elements, period))
    }

    pub(super) fn is_periodic(&self) -> bool {
        matches!(self, Reader::Periodic(..))
    }

    /// Elements `start .. start + len`, of a block at most.
    pub(super) fn at(&self, start: usize, len: usize) -> Operand<'_, T> {
        match self {
            Reader::Whole(Operand::Splat(value)) => Operand::Splat(*value),
            Reader::Whole(Operand::Slice(elements)) => Operand::Slice(&elements[start..start + len]),
            Reader::Periodic(elements, period) => Operand::Slice(&elements[start % period..][..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

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
