//! How the elements of an operand are read, chosen once from where they lie.

use crate::kernel::copy;
use crate::kernel::strided::Source;
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::Nest;
use crate::{Float, Layout, Shape};

/// An input of a program as it is run: a tensor or one number. See [`Program::run`](crate::program::Program::run).
#[derive(Clone, Copy)]
pub enum Argument<'a, T> {
    /// Elements that expand to the program's shape, whatever their layout: made from a tensor by `From`. Leading sizes of 1 do
    /// not count.
    #[doc(hidden)]
    Elements(Source<'a, T>),
    /// One number for all elements.
    Number(T),
}

/// How an operand is read.
#[derive(Debug)]
pub(crate) enum Access {
    /// It is a number.
    Number,
    /// One element, at this position, for all.
    Uniform(usize),
    /// In order from this position on.
    Contiguous(usize),
    /// Row by row: slices, one element for each row, or gathered.
    Strided(Nest<1>),
    /// A large transposed matrix: copied first, to lie in order.
    Transposed(Layout),
}

impl Access {
    /// Of elements of the layout `layout`, which expands to `shape`, of one element at least.
    pub(crate) fn new(layout: &Layout, shape: &Shape) -> Self {
        let own = layout.numel();
        if own == shape.numel() && layout.is_contiguous() {
            return Access::Contiguous(layout.offset());
        }
        if own == 1 {
            return Access::Uniform(layout.offset());
        }
        // Leading sizes of 1 say nothing.
        let mut layout = layout.clone();
        while layout.shape().rank() > shape.rank() && layout.shape()[0] == 1 {
            layout = layout.select(0, 0);
        }
        match layout.expand(shape) {
            Some(layout) if copy::is_transposed(&layout) => Access::Transposed(layout),
            Some(layout) => Access::Strided(Nest::new(shape, [&layout])),
            None => panic!("an input of shape {} does not expand to {shape}", layout.shape()),
        }
    }

    /// Elements that are read in one way: no block should cross the end of so many, where that can be.
    pub(crate) fn row(&self) -> usize {
        if let Access::Strided(nest) = self { nest.row() } else { usize::MAX }
    }
}

/// An operand, with its elements.
pub(crate) enum Input<'a, T: Float> {
    Uniform(T),
    /// In order from the start.
    Contiguous(&'a [T]),
    Strided(&'a [T], &'a Nest<1>),
    /// In order, copied from a transposed matrix.
    Materialized(Scratch<T>),
}

impl<'a, T: Float> Input<'a, T> {
    /// `count` elements are read.
    pub(crate) fn new(access: &'a Access, argument: &Argument<'a, T>, count: usize) -> Self {
        let data = match *argument {
            Argument::Number(value) => return Input::Uniform(value),
            Argument::Elements(source) => source.data,
        };
        match access {
            Access::Uniform(position) => Input::Uniform(data[*position]),
            Access::Contiguous(offset) => Input::Contiguous(&data[*offset..*offset + count]),
            Access::Strided(nest) => Input::Strided(data, nest),
            Access::Transposed(layout) => match copy::straightened(Source { data, layout }) {
                Some(copy) => Input::Materialized(copy),
                None => unreachable!("its layout is that of a transposed matrix"),
            },
            Access::Number => unreachable!("a number is bound as what it is"),
        }
    }
}
