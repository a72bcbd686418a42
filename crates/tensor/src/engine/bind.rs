//! How a fused program runs over inputs that lie in given ways: how each is read, and how the shape is cut into blocks and
//! tasks. Found once for a program that runs again and again.

use smallvec::SmallVec;

use crate::engine::accumulate::Reducer;
use crate::engine::program::{Argument, Instruction, Output, Program};
use crate::engine::small;
use crate::kernel::copy;
use crate::kernel::strided::{BLOCK, PARALLEL, Source, TASK, TASKS};
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::Nest;
use crate::{Float, Layout, Shape};

/// Rows at least this long are cut into blocks; shorter ones are several to a block.
const LONG_ROW: usize = 512;

/// How an input is read.
#[derive(Debug)]
pub(crate) enum Route {
    /// It is a number.
    Number,
    /// One element, at this position, for all.
    Single(usize),
    /// In order from this position on.
    Plain(usize),
    Strided(Nest<1>),
    /// Copied first: it is a transposed matrix.
    Turned(Layout),
}

impl Route {
    fn new(layout: &Layout, shape: &Shape, count: usize) -> Self {
        let own = layout.numel();
        if own == count && layout.is_contiguous() {
            return Route::Plain(layout.offset());
        }
        if own == 1 {
            return Route::Single(layout.offset());
        }
        // Leading sizes of 1 say nothing.
        let mut layout = layout.clone();
        while layout.shape().rank() > shape.rank() && layout.shape()[0] == 1 {
            layout = layout.select(0, 0);
        }
        match layout.expand(shape) {
            Some(layout) if copy::is_transposed(&layout) => Route::Turned(layout),
            Some(layout) => Route::Strided(Nest::new(shape, [&layout])),
            None => unreachable!("an input of shape {} does not expand to {shape}", layout.shape()),
        }
    }
}

/// An input, bound.
pub(crate) enum Bound<'a, T: Float> {
    Number(T),
    /// In order from the start.
    Plain(&'a [T]),
    Strided(&'a [T], &'a Nest<1>),
    /// In order, copied from what was transposed.
    Copied(Scratch<T>),
}

impl<'a, T: Float> Bound<'a, T> {
    pub(crate) fn new(route: &'a Route, input: &Argument<'a, T>, count: usize) -> Self {
        let tensor = match *input {
            Argument::Number(value) => return Bound::Number(value),
            Argument::Tensor(tensor) => tensor,
        };
        let data = tensor.source().data;
        match route {
            Route::Single(position) => Bound::Number(data[*position]),
            Route::Plain(offset) => Bound::Plain(&data[*offset..*offset + count]),
            Route::Strided(nest) => Bound::Strided(data, nest),
            Route::Turned(layout) => match copy::straightened(Source { data, layout }) {
                Some(copy) => Bound::Copied(copy),
                None => unreachable!("it was transposed when the route was chosen"),
            },
            Route::Number => unreachable!("a number is bound as what it is"),
        }
    }
}

/// How a program runs over inputs of these layouts: all that does not depend on their elements.
#[derive(Debug)]
pub struct Binding {
    /// Of each input; none of a number.
    layouts: SmallVec<[Option<Layout>; 4]>,
    pub(crate) routes: SmallVec<[Route; 4]>,
    pub(crate) cut: Cut,
    /// Elements of a line, where the program is [`few`](crate::engine::small).
    pub(crate) line: Option<usize>,
    pub(crate) reducers: SmallVec<[Reducer; 2]>,
    /// Of each output.
    pub(crate) outputs: SmallVec<[Layout; 2]>,
}

impl Binding {
    /// `outputs` are the shapes of the outputs of `program` over `shape`.
    pub(crate) fn new<T: Float>(
        program: &Program,
        inputs: &[Argument<'_, T>],
        shape: &Shape,
        outputs: SmallVec<[Shape; 2]>,
    ) -> Self {
        let count = shape.numel();
        let layout = |input: &Argument<'_, T>| match input {
            Argument::Number(_) => None,
            Argument::Tensor(tensor) => Some(tensor.layout().clone()),
        };
        let layouts: SmallVec<[Option<Layout>; 4]> = inputs.iter().map(layout).collect();
        // Of no elements, nothing is read.
        let route = |layout: &Option<Layout>| match layout {
            Some(layout) if count > 0 => Route::new(layout, shape, count),
            _ => Route::Number,
        };
        let routes: SmallVec<[Route; 4]> = layouts.iter().map(route).collect();
        let mut row = count;
        for route in &routes {
            if let Route::Strided(nest) = route {
                row = row.min(nest.row());
            }
        }
        let mut reducers: SmallVec<[Reducer; 2]> = SmallVec::new();
        for (number, (output, shape_of)) in program.outputs().iter().zip(&outputs).enumerate() {
            if let Output::Reduced(op, value, axes) = *output {
                let reducer = Reducer::new(op, value, axes, shape, (number, shape_of.numel()));
                row = row.min(reducer.nest.row());
                reducers.push(reducer);
            }
        }
        let work = program.instructions().iter().map(cost).sum();
        let cut = match program.row() {
            _ if count == 0 => Cut::default(),
            Some(axis) => Cut::new(count, shape[axis..].iter().product(), true, work),
            None => Cut::new(count, row, false, work),
        };
        for reducer in &mut reducers {
            reducer.cut(cut.block);
        }
        let line = small::line::<T>(count, inputs.len() + program.instructions().len());
        Binding { layouts, routes, cut, line, reducers, outputs: outputs.into_iter().map(Layout::contiguous).collect() }
    }

    /// Whether these inputs lie as those that it was made for.
    pub(crate) fn serves<T: Float>(&self, inputs: &[Argument<'_, T>]) -> bool {
        let same = |(own, input): (&Option<Layout>, &Argument<'_, T>)| match (own, input) {
            (None, Argument::Number(_)) => true,
            (Some(own), Argument::Tensor(tensor)) => own == tensor.layout(),
            _ => false,
        };
        self.layouts.len() == inputs.len() && self.layouts.iter().zip(inputs).all(same)
    }
}

/// What an instruction costs for an element, in additions.
fn cost(instruction: &Instruction) -> usize {
    match instruction {
        Instruction::Unary(op, _) => op.cost(),
        Instruction::Binary(op, ..) => op.cost(),
        Instruction::Compare(..) | Instruction::Select(..) | Instruction::Reduce(..) => 1,
    }
}

/// How the shape is cut into blocks and tasks.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub(crate) count: usize,
    /// Elements of a row that instructions reduce; 0 where none does.
    pub(crate) line: usize,
    /// Elements of a row, or of several lines: no block crosses the end of one.
    row: usize,
    /// Blocks of a row, and elements of each but the last.
    parts: usize,
    pub(crate) block: usize,
    pub(crate) blocks: usize,
    /// Blocks of a task.
    pub(crate) each: usize,
}

impl Cut {
    fn new(count: usize, row: usize, whole_rows: bool, cost: usize) -> Self {
        let line = if whole_rows { row } else { 0 };
        let (row, block) = match whole_rows {
            true if row < LONG_ROW => (BLOCK / row * row, BLOCK / row * row),
            true => (row, row),
            false if count <= BLOCK && row >= count => (count, count),
            false => {
                // Of short rows, as many whole ones as there is room for.
                let row = if row >= LONG_ROW { row } else { BLOCK / row * row };
                (row, row.div_ceil(row.div_ceil(BLOCK)))
            }
        };
        let parts = row.div_ceil(block);
        let blocks = count / row * parts + (count % row).div_ceil(block);
        // Reading counts as a cheap instruction.
        let work = cost + 1;
        let each = match count.saturating_mul(work) < 2 * PARALLEL {
            true => blocks,
            false => (2 * TASK / work / block).max(blocks.div_ceil(TASKS)).max(1),
        };
        Cut { count, line, row, parts, block, blocks, each }
    }

    /// The first element and the length of a block.
    pub(crate) fn block(&self, number: usize) -> (usize, usize) {
        let (row, part) = (number / self.parts, number % self.parts);
        let start = row * self.row + part * self.block;
        (start, self.block.min(self.row - part * self.block).min(self.count - start))
    }
}
