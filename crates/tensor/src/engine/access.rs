//! The ways in which a program reads the elements of an operand. The way is chosen once for each operand, from its layout.

use crate::engine::driver;
use crate::engine::tiling::Tiling;
use crate::kernel::elementwise::loops;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill;
use crate::kernel::source::Source;
use crate::kernel::transpose::{Tiles, TransposedTile};
use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::blocks::{BLOCK, LONG_ROW_OF_PROGRAM};
use crate::thresholds::rows::{MAX_PERIOD, MIN_READ_ROW};
use crate::{Element, Layout, Shape};

/// An input of a program: a tensor, or one number for all elements. See [`Program::run`](crate::program::Program::run).
#[derive(Clone, Copy)]
pub enum ProgramArgument<'a, T> {
    /// The elements of a tensor, which must expand to the program's shape. Extra leading dimensions of size 1 are ignored. `From` makes
    /// this variant from a tensor.
    #[doc(hidden)]
    Elements(Source<'a, T>),
    /// One number for all elements.
    Number(T),
}

impl<T> ProgramArgument<'_, T> {
    /// Returns the layout of a tensor, or `None` for a number.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        match self {
            ProgramArgument::Elements(source) => Some(source.layout),
            ProgramArgument::Number(_) => None,
        }
    }
}

/// The way in which an operand is read.
#[derive(Debug)]
pub(crate) enum Access {
    Number,
    /// The operand repeats the element at this position.
    Uniform(usize),
    /// The operand's elements are contiguous, and the first one is at this position.
    Contiguous(usize),
    /// The operand repeats a sequence of elements. The last field is the length of this sequence (the period), in elements.
    Periodic(IterationSpace<1>, usize),
    /// The operand consists of rows with a constant stride. A block that lies within one row is read in place if the stride is 0 or 1. The
    /// elements of other blocks are copied to a buffer.
    Strided(IterationSpace<1>),
    /// The operand is a large transposed matrix, or a batch of transposed matrices. It is read tile by tile, copied to a contiguous buffer
    /// first, or copied block by block.
    Transposed(IterationSpace<1>, Tiles),
}

impl Access {
    /// Returns the way in which an operand with the layout `layout` is read. The layout must have at least one element.
    pub(crate) fn new(layout: &Layout) -> Self {
        Self::with_min_row(layout, MIN_READ_ROW)
    }

    /// Does the same as [`new`](Self::new). An operand is [periodic](Access::Periodic) only if its rows, in which the stride is constant,
    /// have fewer than `min_row_len` elements.
    fn with_min_row(layout: &Layout, min_row_len: usize) -> Self {
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
        // `Periodic` reads from a copy of one period plus one block, in which the elements of every block of at most [`BLOCK`] elements are
        // contiguous. The copy is worth its cost only if it has at most half as many elements as the shape.
        let is_worth_copying =
            space.run_length() < min_row_len && period <= MAX_PERIOD && 2 * (period + BLOCK) <= total;
        if is_worth_copying { Access::Periodic(space, period) } else { Access::Strided(space) }
    }

    /// Returns the way in which a program reads an operand with this layout after expansion to `shape`. Extra leading dimensions of size 1
    /// are ignored. Panics if the layout does not expand to `shape`. This is not checked for a single element, or for a contiguous layout
    /// with as many elements as `shape`.
    pub(crate) fn of_expanded(layout: &Layout, shape: &Shape) -> Self {
        if layout.numel() == shape.numel() && layout.is_contiguous() {
            return Access::Contiguous(layout.offset());
        }
        if layout.numel() == 1 {
            return Access::Uniform(layout.offset());
        }
        match expand(layout, shape) {
            Some(layout) => Access::with_min_row(&layout, LONG_ROW_OF_PROGRAM),
            None => panic!("an input of shape {} does not expand to {shape}", layout.shape()),
        }
    }

    /// Returns the length of a row of a strided operand, and `usize::MAX` for every other operand. In a row, the stride is constant. A
    /// block within one row is read without a copy if this stride is 0 or 1.
    pub(crate) fn run_length(&self) -> usize {
        match self {
            Access::Strided(space) => space.run_length(),
            _ => usize::MAX,
        }
    }

    /// Returns true if the operand is not strided, or if one loop of [`fill::spread`] writes several of its rows. Then reading the operand
    /// block by block is fast even if its rows are short.
    pub(crate) fn is_written_by_rows(&self) -> bool {
        match self {
            Access::Strided(space) => fill::writes_by_rows(space),
            _ => true,
        }
    }

    /// Returns a contiguous copy of a transposed operand. Returns `None` for other operands, and for a transposed operand that repeats
    /// elements along a dimension.
    pub(crate) fn materialize<T: Element>(&self, data: &[T]) -> Result<Option<Scratch<T>>, AllocationError> {
        let Access::Transposed(space, tiles) = self else { return Ok(None) };
        if (0..space.depth()).any(|axis| space.loop_of(axis).1 == [0]) {
            return Ok(None);
        }
        let mut copy = Scratch::new(space.numel())?;
        let (input, tiling) = (Input::new(self, data), Tiling::of_tiles(space.numel(), *tiles));
        let bytes = size_of_val(&*copy);
        driver::fill(&tiling, &mut copy, driver::is_streamed(bytes, bytes), &|blocks| {
            let mut x = input.reader(&tiling);
            blocks(&mut |start, out| loops::map_unary(x.read(start, out.len()), out, |x| x));
        });
        Ok(Some(copy))
    }

    /// Returns the tiles into which a transposed operand is cut, or `None` if the operand is not transposed.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        if let Access::Transposed(_, tiles) = self { Some(*tiles) } else { None }
    }
}

/// An operand with its elements, ready to be read block by block.
pub(crate) enum Input<'a, T> {
    Uniform(T),
    /// All elements of the operand are contiguous.
    Contiguous(&'a [T]),
    /// A copy of one period of the operand (the elements that it repeats) plus one further block, and the length of the period in elements.
    Periodic(Vec<T>, usize),
    Strided(&'a [T], &'a IterationSpace<1>),
    Transposed(&'a [T], &'a IterationSpace<1>, Tiles),
}

impl<'a, T: Element> Input<'a, T> {
    /// Returns the operand whose elements are read as `access` says. `data` is the whole buffer of the operand, which its layout describes.
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

    /// Returns the operand's elements `start .. start + len` without a copy. Returns `None` if they are neither contiguous nor one repeated
    /// element, or if they exceed the copy of a periodic operand.
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

    /// Fills `out` with consecutive elements of the operand. The first of them has index `start`. Callers use this function for elements
    /// that cannot be [borrowed](Self::borrow).
    pub(crate) fn gather(&self, start: usize, out: &mut [T]) {
        match self {
            Input::Strided(data, space) | Input::Transposed(data, space, _) => fill::spread(space, data, start, out),
            Input::Periodic(elements, period) => fill::repeat(&elements[..*period], start, out),
            Input::Uniform(_) | Input::Contiguous(_) => unreachable!("such an operand is borrowed"),
        }
    }

    /// Returns an upper limit of the memory outside the caches that reading the operand touches, in bytes. A [uniform](Access::Uniform) or
    /// [periodic](Access::Periodic) operand counts as 0 bytes.
    pub(crate) fn max_bytes_read(&self) -> usize {
        match self {
            Input::Uniform(_) | Input::Periodic(..) => 0,
            Input::Contiguous(data) | Input::Strided(data, _) | Input::Transposed(data, ..) => size_of_val(*data),
        }
    }

    pub(crate) fn reader(&self, tiling: &Tiling) -> Reader<'_, T> {
        let tile = match self {
            &Input::Transposed(data, space, tiles) if tiling.tiles() == Some(tiles) => {
                TransposedTile::new(data, space, tiles)
            }
            _ => None,
        };
        Reader { input: self, gathered: Vec::new(), tile }
    }
}

/// A reader of an operand, which reads block by block. Each task has its own readers.
pub(crate) struct Reader<'a, T: Element> {
    input: &'a Input<'a, T>,
    gathered: Vec<T>,
    tile: Option<TransposedTile<'a, T>>,
}

impl<T: Element> Reader<'_, T> {
    /// Returns the operand's elements `start .. start + len`, which form one block.
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

/// Expands a layout to `shape`. Extra leading dimensions of size 1 are removed first. Returns `None` if the layout does not expand.
pub(crate) fn expand(layout: &Layout, shape: &Shape) -> Option<Layout> {
    let mut own = layout.clone();
    while own.shape().rank() > shape.rank() && own.shape()[0] == 1 {
        own = own.select(0, 0);
    }
    own.expand(shape)
}
