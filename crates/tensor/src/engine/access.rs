//! How the elements of an operand are read: chosen once, from where they lie.

use crate::engine::driver;
use crate::engine::tiling::{Tiling, is_streamed};
use crate::kernel::elementwise::loops;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill;
use crate::kernel::strided::{BLOCK, Source};
use crate::kernel::transpose::{Tile, Tiles};
use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::{Element, Layout, Shape};

/// Rows of fewer elements are written out where they repeat: at longer ones loops go along well enough.
const SHORT_ROW: usize = 128;

/// The longest period of an operand that is written out.
const LONGEST_PERIOD: usize = 4096;

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
    /// The first elements, so many, come again and again.
    Periodic(IterationSpace<1>, usize),
    /// Row by row: slices, one element for each row, or gathered.
    Strided(IterationSpace<1>),
    /// A large transposed matrix, or a batch of them: by tiles, or copied first.
    Transposed(IterationSpace<1>, Tiles),
}

impl Access {
    /// Of one element at least.
    pub(crate) fn new(layout: &Layout) -> Self {
        if layout.is_contiguous() {
            return Access::Contiguous(layout.offset());
        }
        let space = IterationSpace::new(layout.shape(), [layout]);
        if let Some(tiles) = Tiles::new(&space) {
            return Access::Transposed(space, tiles);
        }
        let (total, period) = (space.numel(), space.period());
        if period == 1 {
            return Access::Uniform(layout.offset());
        }
        // One period and a block after it are written out: not worth it where that is half of all.
        let worth = space.row() < SHORT_ROW && period <= LONGEST_PERIOD && 2 * (period + BLOCK) <= total;
        if worth { Access::Periodic(space, period) } else { Access::Strided(space) }
    }

    /// Of elements that expand to `shape`; leading sizes of 1 say nothing.
    ///
    /// # Panics
    ///
    /// Where they do not.
    pub(crate) fn over(layout: &Layout, shape: &Shape) -> Self {
        if layout.numel() == shape.numel() && layout.is_contiguous() {
            return Access::Contiguous(layout.offset());
        }
        if layout.numel() == 1 {
            return Access::Uniform(layout.offset());
        }
        let mut own = layout.clone();
        while own.shape().rank() > shape.rank() && own.shape()[0] == 1 {
            own = own.select(0, 0);
        }
        match own.expand(shape) {
            Some(layout) => Access::new(&layout),
            None => panic!("an input of shape {} does not expand to {shape}", layout.shape()),
        }
    }

    /// Elements that are read in one way: a block that does not cross the end of so many need not be gathered.
    pub(crate) fn row(&self) -> usize {
        match self {
            Access::Strided(space) => space.row(),
            _ => usize::MAX,
        }
    }

    /// Whether one loop writes several rows out, or none need be.
    pub(crate) fn is_written_by_rows(&self) -> bool {
        match self {
            Access::Strided(space) => fill::writes_by_rows(space),
            _ => true,
        }
    }

    /// A copy in order of a transposed operand; `None` of others, and of one matrix that is repeated.
    pub(crate) fn materialized<T: Element>(&self, data: &[T]) -> Result<Option<Scratch<T>>, AllocationError> {
        let Access::Transposed(space, tiles) = self else { return Ok(None) };
        if (0..space.depth()).any(|axis| space.loop_of(axis).1 == [0]) {
            return Ok(None);
        }
        let mut copy = Scratch::new(space.numel())?;
        let (input, tiling) = (Input::new(self, data), Tiling::of_tiles(space.numel(), *tiles));
        let bytes = size_of_val(&*copy);
        driver::fill(&tiling, &mut copy, is_streamed(bytes, bytes), &|blocks| {
            let mut x = input.reader(&tiling);
            blocks(&mut |start, out| loops::one(x.read(start, out.len()), out, |x| x));
        });
        Ok(Some(copy))
    }

    /// The tiles by which it is read best.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        if let Access::Transposed(_, tiles) = self { Some(*tiles) } else { None }
    }
}

/// An operand, with its elements.
pub(crate) enum Input<'a, T> {
    Uniform(T),
    /// In order from the start.
    Contiguous(&'a [T]),
    /// The elements of one period, and a block after them.
    Periodic(Vec<T>, usize),
    Strided(&'a [T], &'a IterationSpace<1>),
    Transposed(&'a [T], &'a IterationSpace<1>, Tiles),
}

impl<'a, T: Element> Input<'a, T> {
    /// `data` is what the layout of `access` is of.
    pub(crate) fn new(access: &'a Access, data: &'a [T]) -> Self {
        match access {
            Access::Uniform(position) => Input::Uniform(data[*position]),
            Access::Contiguous(offset) => Input::Contiguous(&data[*offset..]),
            Access::Periodic(space, period) => {
                let mut elements = vec![T::ZERO; period + BLOCK];
                fill::spread(space, data, 0, &mut elements);
                Input::Periodic(elements, *period)
            }
            Access::Strided(space) => Input::Strided(data, space),
            Access::Transposed(space, tiles) => Input::Transposed(data, space, *tiles),
            Access::Number => unreachable!("a number has no elements"),
        }
    }

    /// Elements `start .. start + len`, where they lie in order or are all the same.
    #[inline(always)]
    pub(crate) fn borrow(&self, start: usize, len: usize) -> Option<Operand<'_, T>> {
        Some(match self {
            Input::Uniform(value) => Operand::Splat(*value),
            Input::Contiguous(data) => Operand::Slice(&data[start..start + len]),
            Input::Periodic(elements, period) => Operand::Slice(elements[start % period..].get(..len)?),
            Input::Strided(data, space) | Input::Transposed(data, space, _) => match space.segment(0, start, len) {
                Segment::Slice(position) => Operand::Slice(&data[position..position + len]),
                Segment::Splat(position) => Operand::Splat(data[position]),
                Segment::Strided(..) | Segment::Walk => return None,
            },
        })
    }

    /// Copies the elements from `start` on to `out`: those that cannot be [borrowed](Self::borrow).
    pub(crate) fn gather(&self, start: usize, out: &mut [T]) {
        match self {
            Input::Strided(data, space) | Input::Transposed(data, space, _) => fill::spread(space, data, start, out),
            Input::Periodic(elements, period) => fill::repeat(&elements[..*period], start, out),
            Input::Uniform(_) | Input::Contiguous(_) => unreachable!("it is borrowed"),
        }
    }

    /// Bytes of memory that it is in, at most.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Input::Uniform(_) | Input::Periodic(..) => 0,
            Input::Contiguous(data) | Input::Strided(data, _) | Input::Transposed(data, ..) => size_of_val(*data),
        }
    }

    /// For the blocks of one task of `tiling`.
    pub(crate) fn reader(&self, tiling: &Tiling) -> Reader<'_, T> {
        let tile = match self {
            &Input::Transposed(data, space, tiles) if tiling.tiles() == Some(tiles) => Tile::new(data, space, tiles),
            _ => None,
        };
        Reader { input: self, gathered: Vec::new(), tile }
    }
}

/// An operand as the blocks of one task read it.
pub(crate) struct Reader<'a, T: Element> {
    input: &'a Input<'a, T>,
    gathered: Vec<T>,
    tile: Option<Tile<'a, T>>,
}

impl<T: Element> Reader<'_, T> {
    /// Elements `start .. start + len`, of a block.
    #[inline(always)]
    pub(crate) fn read(&mut self, start: usize, len: usize) -> Operand<'_, T> {
        if let Some(tile) = &mut self.tile {
            return Operand::Slice(tile.row(start, len));
        }
        if let Some(operand) = self.input.borrow(start, len) {
            return operand;
        }
        self.gathered.resize(len, T::ZERO);
        self.input.gather(start, &mut self.gathered);
        Operand::Slice(&self.gathered)
    }
}
