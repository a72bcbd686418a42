//! Running a fused program: for each block of elements all instructions, over registers of one block each.
//!
//! Registers are reused as soon as their value has been read for the last time; a value that is an output is computed in
//! the output's own memory. A value that is the same over the block (a number, an operand's repeated element, the reduction
//! of a row) is kept as one number, and what is computed of such values alone is computed once.
//!
//! Reductions that leave the program are accumulated block by block, in every task apart and then over the tasks, each in two
//! stages, so that no number is the sum of very many one after the other. Blocks, tasks and stages depend on the shape alone:
//! any number of threads gives the same bits.
#![allow(unsafe_code)]

use smallvec::{SmallVec, smallvec};

use super::block::Operand;
use super::instruction::{Binary, Reduction};
use super::map::{self, BLOCK, PARALLEL, STREAM, Source, TASKS};
use super::product::Scratch;
use super::reduce;
use super::rows;
use super::simd;
use crate::nest::{Nest, Run};
use crate::program::{Argument, AxisSet, Instruction, Output, Program};
use crate::threads::{self, Start};
use crate::{Float, Layout, Shape};

/// Rows at least this long are cut into blocks; shorter ones are several to a block.
const LONG_ROW: usize = 512;

/// Elements of a row, at most, whose numbers are reduced one after the other.
const SHORT_ROW: usize = 32;

/// Blocks that are accumulated one after the other before their total is put aside.
const STAGE: usize = 16;

/// Where a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Register(u32),
    Output(u32),
}

/// Where each instruction's result is computed, and how many registers that takes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    places: Vec<Place>,
    registers: usize,
}

impl Plan {
    pub(crate) fn new(inputs: usize, instructions: &[Instruction], outputs: &[Output]) -> Self {
        let mut last_use = vec![0; inputs + instructions.len()];
        for (position, instruction) in instructions.iter().enumerate() {
            for value in instruction.operands() {
                last_use[value as usize] = position;
            }
        }
        // What is reduced or copied at the end is read at the end.
        for output in outputs {
            last_use[output.value() as usize] = usize::MAX;
        }
        let mut direct = vec![None; inputs + instructions.len()];
        for (number, output) in outputs.iter().enumerate() {
            if let Output::Whole(value) = output {
                direct[*value as usize].get_or_insert(number as u32);
            }
        }
        let mut places: Vec<Place> = Vec::with_capacity(instructions.len());
        let mut free: Vec<u32> = Vec::new();
        let mut registers = 0;
        for (position, instruction) in instructions.iter().enumerate() {
            let value = inputs + position;
            // The result's place is taken before the operands' are given back: no instruction reads where it writes.
            let place = match direct[value] {
                Some(output) => Place::Output(output),
                None => Place::Register(free.pop().unwrap_or_else(|| {
                    registers += 1;
                    registers - 1
                })),
            };
            places.push(place);
            let mut seen = [u32::MAX; 3];
            for (slot, operand) in instruction.operands().enumerate() {
                let computed = (operand as usize).checked_sub(inputs).map(|number| places[number]);
                if let (Some(Place::Register(register)), false) = (computed, seen.contains(&operand))
                    && last_use[operand as usize] == position
                {
                    free.push(register);
                }
                seen[slot] = operand;
            }
            if let (Place::Register(register), 0) = (place, last_use[value]) {
                // Nobody reads it.
                free.push(register);
            }
        }
        Plan { places, registers: registers as usize }
    }
}

/// A value over one block.
#[derive(Clone, Copy)]
enum Cell<T> {
    /// As many elements as the block has, from here on.
    Slice(*const T),
    /// One for all.
    Splat(T),
    /// One for each row of the block, from here on.
    Rows(*const T),
}

impl<T: Copy> Cell<T> {
    /// # Safety
    ///
    /// A slice must hold `len` elements, and nobody write to them for as long as the operand lives.
    unsafe fn operand<'a>(self, len: usize) -> Operand<'a, T> {
        match self {
            // SAFETY: the caller's promise.
            Cell::Slice(start) => Operand::Slice(unsafe { std::slice::from_raw_parts(start, len) }),
            Cell::Splat(value) => Operand::Splat(value),
            Cell::Rows(_) => unreachable!("what there is one of for each row is written out before"),
        }
    }
}

/// How an input is read.
#[derive(Debug)]
enum Route {
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
            Some(layout) if map::is_transposed(&layout) => Route::Turned(layout),
            Some(layout) => Route::Strided(Nest::new(shape, [&layout])),
            None => unreachable!("an input of shape {} does not expand to {shape}", layout.shape()),
        }
    }
}

/// An input, bound.
enum Bound<'a, T: Float> {
    Number(T),
    /// In order from the start.
    Plain(&'a [T]),
    Strided(&'a [T], &'a Nest<1>),
    /// In order, copied from what was transposed.
    Copied(Scratch<T>),
}

impl<'a, T: Float> Bound<'a, T> {
    fn new(route: &'a Route, input: &Argument<'a, T>, count: usize) -> Self {
        let tensor = match *input {
            Argument::Number(value) => return Bound::Number(value),
            Argument::Tensor(tensor) => tensor,
        };
        let data = tensor.source().data;
        match route {
            Route::Single(position) => Bound::Number(data[*position]),
            Route::Plain(offset) => Bound::Plain(&data[*offset..*offset + count]),
            Route::Strided(nest) => Bound::Strided(data, nest),
            Route::Turned(layout) => match map::straightened(Source { data, layout }) {
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
    routes: SmallVec<[Route; 4]>,
    cut: Cut,
    reducers: SmallVec<[Reducer; 2]>,
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
                let nest = reducing(shape, axes);
                row = row.min(nest.row());
                let count = shape_of.numel();
                reducers.push(Reducer { op, value: value as usize, output: number, nest, count, stage: 0 });
            }
        }
        let work = program.instructions().len();
        let cut = match program.row() {
            _ if count == 0 => Cut::default(),
            Some(axis) => Cut::new(count, shape[axis..].iter().product(), true, work),
            None => Cut::new(count, row, false, work),
        };
        for reducer in &mut reducers {
            reducer.stage = STAGE * (reducer.count / cut.block.max(1)).max(1);
        }
        Binding { layouts, routes, cut, reducers, outputs: outputs.into_iter().map(Layout::contiguous).collect() }
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

/// How the shape is cut into blocks and tasks.
#[derive(Debug, Default)]
struct Cut {
    count: usize,
    /// Elements of a row that instructions reduce; 0 where none does.
    line: usize,
    /// Elements of a row, or of several lines: no block crosses the end of one.
    row: usize,
    /// Blocks of a row, and elements of each but the last.
    parts: usize,
    block: usize,
    blocks: usize,
    /// Blocks of a task.
    each: usize,
}

impl Cut {
    fn new(count: usize, row: usize, whole_rows: bool, instructions: usize) -> Self {
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
        // Reading counts as an instruction.
        let work = instructions + 1;
        let each = match count.saturating_mul(work) < 2 * PARALLEL {
            true => blocks,
            false => (2 * map::TASK / work / block).max(blocks.div_ceil(TASKS)).max(1),
        };
        Cut { count, line, row, parts, block, blocks, each }
    }

    /// The first element and the length of a block.
    fn block(&self, number: usize) -> (usize, usize) {
        let (row, part) = (number / self.parts, number % self.parts);
        let start = row * self.row + part * self.block;
        (start, self.block.min(self.row - part * self.block).min(self.count - start))
    }
}

/// A reduction that leaves the program.
#[derive(Debug)]
struct Reducer {
    op: Reduction,
    value: usize,
    /// Number of the output.
    output: usize,
    /// Where each element of the shape is accumulated.
    nest: Nest<1>,
    count: usize,
    /// Blocks after which a total is put aside.
    stage: usize,
}

/// Runs `program`; each of `results` has as many elements as the output's shape.
pub(crate) fn run<T: Float>(
    program: &Program,
    binding: &Binding,
    inputs: &[Argument<'_, T>],
    results: &mut [&mut [T]],
) {
    let Binding { routes, cut, reducers, .. } = binding;
    if cut.count == 0 {
        reducers.iter().for_each(|reducer| results[reducer.output].fill(T::start(reducer.op)));
        return;
    }
    let bind = |(route, input)| Bound::new(route, input, cut.count);
    let bound: SmallVec<[Bound<'_, T>; 8]> = routes.iter().zip(inputs).map(bind).collect();
    let tasks = cut.blocks.div_ceil(cut.each);
    // Accumulators of each task, one after the other; of a single task, the results themselves.
    let width: usize = reducers.iter().map(|reducer| reducer.count).sum();
    let mut totals: Vec<T> = if tasks > 1 { vec![T::ZERO; width * tasks] } else { Vec::new() };
    let shared_totals = Start(totals.as_mut_ptr());
    let streams = results.iter().map(|result| size_of_val(*result)).sum::<usize>() >= STREAM;
    let starts: SmallVec<[Start<T>; 4]> = results.iter_mut().map(|result| Start(result.as_mut_ptr())).collect();

    let task = |number: usize| {
        let mut accumulators: SmallVec<[&mut [T]; 2]> = SmallVec::new();
        let mut from = number * width;
        for reducer in reducers {
            // SAFETY: where there are several tasks, each has `width` elements of `totals` for itself, and each reducer
            // `count` of them; where there is one, it has the result, of `count` elements, for itself. Both are
            // borrowed mutably until all tasks are done.
            let total = unsafe {
                let start = if tasks > 1 { shared_totals.at(from) } else { starts[reducer.output].at(0) };
                std::slice::from_raw_parts_mut(start, reducer.count)
            };
            total.fill(T::start(reducer.op));
            accumulators.push(total);
            from += reducer.count;
        }
        T::arena().with_borrow_mut(|arena| {
            let blocks = number * cut.each..cut.blocks.min((number + 1) * cut.each);
            run_task(program, &bound, cut, blocks, reducers, &mut accumulators, &starts, streams, arena);
        });
        if streams {
            simd::streamed();
        }
    };
    threads::for_each(tasks, task);
    if tasks > 1 {
        combine(&mut totals, width, tasks, reducers);
        let mut from = 0;
        for reducer in reducers {
            results[reducer.output].copy_from_slice(&totals[from..from + reducer.count]);
            from += reducer.count;
        }
    }
}

/// Totals of tasks brought together in a balanced tree, into those of the first.
fn combine<T: Float>(totals: &mut [T], width: usize, tasks: usize, reducers: &[Reducer]) {
    let mut step = 1;
    while step < tasks {
        for left in (0..tasks - step).step_by(2 * step) {
            let (low, high) = totals.split_at_mut((left + step) * width);
            let (low, high) = (&mut low[left * width..][..width], &high[..width]);
            let mut from = 0;
            for reducer in reducers {
                let range = from..from + reducer.count;
                T::accumulate(reducer.op, &mut low[range.clone()], &high[range]);
                from += reducer.count;
            }
        }
        step *= 2;
    }
}

/// For each element of `shape`, the position of its total in the result of a reduction over `axes`.
fn reducing(shape: &Shape, axes: AxisSet) -> Nest<1> {
    let mut kept = shape.clone();
    kept.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, size)| *size = 1);
    match Layout::contiguous(kept).expand(shape) {
        Some(layout) => Nest::new(shape, [&layout]),
        None => unreachable!("sizes of 1 expand"),
    }
}

#[allow(clippy::too_many_arguments)]
fn run_task<T: Float>(
    program: &Program,
    inputs: &[Bound<'_, T>],
    cut: &Cut,
    blocks: std::ops::Range<usize>,
    reducers: &[Reducer],
    accumulators: &mut [&mut [T]],
    outputs: &[Start<T>],
    streams: bool,
    arena: &mut Vec<T>,
) {
    let plan = program.plan();
    let vector = 64 / size_of::<T>();
    let width = cut.block.next_multiple_of(vector);
    // A few elements are computed as a whole line of them: one vector, and no loop over what does not fill one.
    let padded = cut.count <= vector;
    let staging = streams || padded;
    // Registers first, then places for outputs that are not computed where they stay, then blocks for what must be written out
    // to be read, then the inputs that are gathered.
    let staged = plan.registers;
    let spare = staged + outputs.len();
    let gathered = spare + 3;
    let needed = (gathered + inputs.len()) * width + 64;
    if arena.len() < needed {
        arena.resize(needed, T::ZERO);
    }
    let align = arena.as_ptr().align_offset(64).min(64);
    let base = Start(arena[align..].as_mut_ptr());
    // SAFETY: slot `k` of `width` elements lies within `arena`, which holds `gathered + inputs.len()` of them after `align`
    // elements, and no `k` is above that.
    let slot = |k: usize| -> *mut T { unsafe { base.at(k * width) } };

    let mut cells: SmallVec<[Cell<T>; 32]> = smallvec![Cell::Splat(T::ZERO); inputs.len() + plan.places.len()];
    let mut aside: SmallVec<[Vec<T>; 2]> = smallvec![Vec::new(); reducers.len()];
    // Of inputs that repeat one row, and so are the same in every block: the elements written out already.
    let mut written: SmallVec<[usize; 8]> = smallvec![0; inputs.len()];
    let first = blocks.start;
    for number in blocks {
        let (start, len) = cut.block(number);
        let lanes = if padded { vector } else { len };
        let lines = len.checked_div(cut.line).unwrap_or(0);
        let spread = |cell: Cell<T>, number: usize| match cell {
            // SAFETY: one of the slots that are for this holds `width >= lanes` elements, and a cell of rows `lines` of them.
            Cell::Rows(from) => unsafe { spread_rows(from, lines, cut.line, slot(spare + number), lanes) },
            cell => cell,
        };
        for (k, input) in inputs.iter().enumerate() {
            let gathered = slot(gathered + k);
            cells[k] = match input {
                Bound::Number(value) => Cell::Splat(*value),
                Bound::Plain(data) if padded => {
                    // SAFETY: the slot holds `width >= vector` elements, and no other input uses it.
                    let out = unsafe { std::slice::from_raw_parts_mut(gathered, vector) };
                    let (own, rest) = out.split_at_mut(len);
                    own.iter_mut().zip(&data[start..]).for_each(|(own, &value)| *own = value);
                    rest.fill(T::ONE);
                    Cell::Slice(gathered)
                }
                Bound::Plain(data) => Cell::Slice(data[start..start + len].as_ptr()),
                Bound::Copied(copy) => Cell::Slice(copy.0[start..start + len].as_ptr()),
                Bound::Strided(data, nest) => match nest.run(0, start, len) {
                    Run::Splat(position) => Cell::Splat(data[position]),
                    _ if cut.line > 0 && nest.counts_rows(cut.line) => {
                        let position = nest.position(0, start);
                        Cell::Rows(data[position..position + lines].as_ptr())
                    }
                    Run::Slice(position) if !padded => Cell::Slice(data[position..position + len].as_ptr()),
                    _ if written[k] >= len => Cell::Slice(gathered),
                    _ => {
                        if nest.repeats() && start.is_multiple_of(nest.row()) && cut.block.is_multiple_of(nest.row()) {
                            written[k] = len;
                        }
                        // SAFETY: the slot holds `width >= lanes` elements, and no other input uses it.
                        let out = unsafe { std::slice::from_raw_parts_mut(gathered, lanes) };
                        let (own, rest) = out.split_at_mut(len);
                        rows::spread(nest, data, start, own);
                        rest.fill(T::ONE);
                        Cell::Slice(gathered)
                    }
                },
            };
        }
        for (position, instruction) in program.instructions().iter().enumerate() {
            let reads = |is: fn(&Cell<T>) -> bool| instruction.operands().any(|value| is(&cells[value as usize]));
            let by_rows = cut.line > 0 && reads(|cell| matches!(cell, Cell::Rows(_)));
            let one_for_each = match *instruction {
                Instruction::Reduce(_, x) => !matches!(cells[x as usize], Cell::Splat(_)),
                _ => by_rows && !reads(|cell| matches!(cell, Cell::Slice(_))),
            };
            let target = match plan.places[position] {
                Place::Register(register) => slot(register as usize),
                Place::Output(output) if staging || one_for_each => slot(staged + output as usize),
                // SAFETY: a whole output has as many elements as the shape, and the block lies within it.
                Place::Output(output) => unsafe { outputs[output as usize].at(start) },
            };
            // SAFETY: `lanes` elements of a register, of a staging slot or, where they are not padded, of this block's part of
            // an output. No cell that is read below lies there: a place is given to one value at a time (`Plan::new`),
            // blocks of outputs do not overlap, and no input is an output.
            let out = unsafe { std::slice::from_raw_parts_mut(target, lanes) };
            cells[inputs.len() + position] = match *instruction {
                Instruction::Reduce(op, x) => match cells[x as usize] {
                    // SAFETY: as above, and `len <= lanes`.
                    x @ Cell::Splat(_) => Cell::Splat(total_of(op, unsafe { x.operand(cut.line) }, cut.line)),
                    Cell::Slice(x) => {
                        // SAFETY: as above.
                        let x = unsafe { std::slice::from_raw_parts(x, len) };
                        if lines == 1 {
                            Cell::Splat(total_of(op, Operand::Slice(x), len))
                        } else {
                            T::reduce_each(op, x, cut.line, cut.line, &mut out[..lines]);
                            Cell::Rows(target)
                        }
                    }
                    Cell::Rows(x) => {
                        // SAFETY: a cell of rows has `lines` elements.
                        let x = unsafe { std::slice::from_raw_parts(x, lines) };
                        let totals = out.iter_mut().zip(x);
                        totals.for_each(|(out, &x)| *out = total_of(op, Operand::Splat(x), cut.line));
                        Cell::Rows(target)
                    }
                },
                instruction if one_for_each => {
                    // SAFETY: a cell of rows has `lines` elements.
                    let read = |value: u32| unsafe {
                        match cells[value as usize] {
                            Cell::Rows(from) => Operand::Slice(std::slice::from_raw_parts(from, lines)),
                            cell => cell.operand(lines),
                        }
                    };
                    match execute(instruction, read, &mut out[..lines]) {
                        Cell::Slice(from) => Cell::Rows(from),
                        cell => cell,
                    }
                }
                instruction if by_rows => {
                    let mut wide = cells_of(&instruction, &cells);
                    for (number, (_, cell)) in wide.iter_mut().enumerate() {
                        *cell = spread(*cell, number);
                    }
                    let cell = |value: u32| {
                        wide.iter().find(|(own, _)| *own == value).map_or(Cell::Splat(T::ZERO), |found| found.1)
                    };
                    // SAFETY: cells hold `lanes` elements, those that were written out too.
                    execute(instruction, |value| unsafe { cell(value).operand(lanes) }, out)
                }
                // SAFETY: cells hold `lanes` elements: inputs by the loop above, results by this one; see above for who writes.
                instruction => execute(instruction, |value| unsafe { cells[value as usize].operand(lanes) }, out),
            };
        }
        for (k, output) in program.outputs().iter().enumerate() {
            match *output {
                Output::Whole(value) => {
                    let cell = spread(cells[value as usize], 0);
                    // SAFETY: this block's part of an output of the whole shape; see above.
                    let out = unsafe { std::slice::from_raw_parts_mut(outputs[k].at(start), len) };
                    match cell {
                        Cell::Splat(value) => out.fill(value),
                        Cell::Rows(_) => unreachable!("it was written out"),
                        Cell::Slice(from) if std::ptr::eq(from, out.as_ptr()) => {}
                        Cell::Slice(from) => {
                            // SAFETY: `len` elements of an input, a register, a staging slot or another output.
                            let from = unsafe { std::slice::from_raw_parts(from, len) };
                            if streams { simd::stream(from, out) } else { out.copy_from_slice(from) }
                        }
                    }
                }
                Output::PerRow(value) => {
                    // SAFETY: where there are rows, blocks are whole ones, and the output has one element for each.
                    let out = unsafe { std::slice::from_raw_parts_mut(outputs[k].at(start / cut.line), lines) };
                    match cells[value as usize] {
                        Cell::Splat(value) => out.fill(value),
                        // SAFETY: a cell of rows has `lines` elements.
                        Cell::Rows(from) => out.copy_from_slice(unsafe { std::slice::from_raw_parts(from, lines) }),
                        Cell::Slice(from) => {
                            for (row, out) in out.iter_mut().enumerate() {
                                // SAFETY: the first element of a row of the block.
                                *out = unsafe { *from.add(row * cut.line) };
                            }
                        }
                    }
                }
                Output::Reduced(..) => {}
            }
        }
        for (k, reducer) in reducers.iter().enumerate() {
            let (total, aside) = (&mut *accumulators[k], &mut aside[k]);
            if (number - first).is_multiple_of(reducer.stage) && number > first {
                if aside.is_empty() {
                    aside.resize(reducer.count, T::start(reducer.op));
                }
                T::accumulate(reducer.op, aside, total);
                total.fill(T::start(reducer.op));
            }
            // SAFETY: as for `read` above.
            let value = unsafe { spread(cells[reducer.value], 0).operand(len) };
            // SAFETY: the slot holds `width >= len` elements, and nothing else lies there.
            let spare = unsafe { std::slice::from_raw_parts_mut(slot(spare + 1), len) };
            accumulate(reducer, value, start, len, total, spare);
        }
    }
    for ((reducer, total), aside) in reducers.iter().zip(accumulators).zip(&aside) {
        if !aside.is_empty() {
            T::accumulate(reducer.op, total, aside);
        }
    }
}

/// `lines` numbers, each written out over a row of `line` elements, to `lanes` elements from `to` on.
///
/// # Safety
///
/// `lines` elements from `from` on are read and `lanes` from `to` on are written, which do not overlap.
unsafe fn spread_rows<T: Float>(from: *const T, lines: usize, line: usize, to: *mut T, lanes: usize) -> Cell<T> {
    // SAFETY: the caller's promise.
    let (from, out) = unsafe { (std::slice::from_raw_parts(from, lines), std::slice::from_raw_parts_mut(to, lanes)) };
    let (own, rest) = out.split_at_mut(lines * line);
    for (out, &value) in own.chunks_exact_mut(line).zip(from) {
        out.fill(value);
    }
    rest.fill(T::ONE);
    Cell::Slice(to)
}

/// The values that an instruction reads, and where they are.
fn cells_of<T: Copy>(instruction: &Instruction, cells: &[Cell<T>]) -> SmallVec<[(u32, Cell<T>); 3]> {
    instruction.operands().map(|value| (value, cells[value as usize])).collect()
}

/// The result of an instruction over a block: in `out`, or one number.
#[inline(always)]
fn execute<'a, T: Float>(instruction: Instruction, read: impl Fn(u32) -> Operand<'a, T>, out: &mut [T]) -> Cell<T> {
    use Operand::Splat;
    let mut one = [T::ZERO];
    let single = match instruction {
        Instruction::Unary(op, x) => match read(x) {
            x @ Splat(_) => {
                T::unary(op, x, &mut one);
                true
            }
            x => {
                T::unary(op, x, out);
                false
            }
        },
        Instruction::Binary(op, x, y) => match (read(x), read(y)) {
            (x @ Splat(_), y @ Splat(_)) => {
                T::binary(op, x, y, &mut one);
                true
            }
            (x, y) => {
                T::binary(op, x, y, out);
                false
            }
        },
        Instruction::Compare(op, x, y) => match (read(x), read(y)) {
            (x @ Splat(_), y @ Splat(_)) => {
                T::flags(op, x, y, &mut one);
                true
            }
            (x, y) => {
                T::flags(op, x, y, out);
                false
            }
        },
        Instruction::Select(mask, x, y) => match (read(mask), read(x), read(y)) {
            (Splat(mask), x, y) => match if mask != T::ZERO { x } else { y } {
                Splat(value) => {
                    one[0] = value;
                    true
                }
                Operand::Slice(values) => {
                    out.copy_from_slice(values);
                    false
                }
            },
            (mask, x, y) => {
                T::choose(mask, x, y, out);
                false
            }
        },
        Instruction::Reduce(..) => unreachable!("reductions are of as many elements as there are"),
    };
    if single { Cell::Splat(one[0]) } else { Cell::Slice(out.as_ptr()) }
}

/// The reduction of `len` elements.
fn total_of<T: Float>(op: Reduction, x: Operand<'_, T>, len: usize) -> T {
    match x {
        Operand::Slice(x) => reduce::slice_total(op, x),
        Operand::Splat(x) => match op {
            Reduction::Sum => times(Binary::Mul, x, len),
            Reduction::Prod => times(Binary::Pow, x, len),
            Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => x,
        },
    }
}

fn times<T: Float>(op: Binary, x: T, len: usize) -> T {
    let mut result = [x];
    T::binary(op, Operand::Splat(x), Operand::Splat(T::from_i64(len as i64)), &mut result);
    result[0]
}

/// Where these elements are whole short rows, each reduced to one number, and the numbers lie one after the other: the length
/// of a row, and where the first number is.
fn short_rows(reducer: &Reducer, start: usize, len: usize) -> Option<(usize, usize)> {
    let nest = &reducer.nest;
    let innermost = nest.depth() - 1;
    let (row, [stride]) = nest.loop_of(innermost);
    let (_, [next]) = nest.loop_of(innermost.checked_sub(1)?);
    let rows = stride == 0 && row <= SHORT_ROW && start.is_multiple_of(row) && len.is_multiple_of(row);
    let in_order = rows && next == 1 && (innermost == 1 || nest.loop_of(innermost - 1).0 * row == nest.numel());
    in_order.then(|| (row, nest.position(0, start)))
}

/// Accumulates the elements `start .. start + len` of the shape, whose values are `value`.
fn accumulate<T: Float>(
    reducer: &Reducer,
    value: Operand<'_, T>,
    start: usize,
    len: usize,
    total: &mut [T],
    spare: &mut [T],
) {
    match reducer.nest.run(0, start, len) {
        Run::Splat(position) => {
            let sum = total_of(reducer.op, value, len);
            T::accumulate(reducer.op, &mut total[position..=position], &[sum]);
        }
        Run::Slice(position) => {
            let values = match value {
                Operand::Slice(values) => values,
                Operand::Splat(value) => {
                    spare.fill(value);
                    spare
                }
            };
            T::accumulate(reducer.op, &mut total[position..position + len], values);
        }
        Run::Strided(..) | Run::Walk => {
            let values = match value {
                Operand::Slice(values) => values,
                Operand::Splat(value) => {
                    spare.fill(value);
                    spare
                }
            };
            if let Some((row, position)) = short_rows(reducer, start, len) {
                let totals = &mut total[position..position + len / row];
                T::short_rows(reducer.op, values, row, totals);
                return;
            }
            if reducer.nest.repeats() && start.is_multiple_of(reducer.nest.row()) {
                let row = reducer.nest.row();
                let position = reducer.nest.position(0, 0);
                let (whole, rest) = values.split_at(len / row * row);
                let totals = &mut total[position..position + row];
                T::accumulate_rows(reducer.op, totals, whole, row, len / row);
                T::accumulate(reducer.op, &mut totals[..rest.len()], rest);
                return;
            }
            let mut done = 0;
            reducer.nest.walk(0, start, len, |position, stride, count| {
                let part = &values[done..done + count];
                done += count;
                match stride {
                    0 => {
                        let sum = total_of(reducer.op, Operand::Slice(part), count);
                        T::accumulate(reducer.op, &mut total[position..=position], &[sum]);
                    }
                    1 => {
                        T::accumulate(reducer.op, &mut total[position..position + count], part);
                    }
                    _ => {
                        for (i, value) in part.iter().enumerate() {
                            let position = position + i * stride as usize;
                            T::accumulate(reducer.op, &mut total[position..=position], std::slice::from_ref(value));
                        }
                    }
                }
            });
        }
    }
}
