//! Running a fused program: for each block of elements all instructions, over registers of one block each.
//!
//! A value that is an output is computed in the output's own memory, the others in registers ([`places`](crate::engine::registers)). A
//! value that is the same over the block (a number, an operand's repeated element, the reduction of a row) is kept as one
//! number, and what is computed of such values alone is computed once. How inputs are read and blocks are cut is found
//! before ([`binding`](crate::engine::bind)).
//!
//! Reductions that leave the program are accumulated block by block ([`reducer`](crate::engine::accumulate)), in every task apart and
//! then over the tasks, each in two stages, so that no number is the sum of very many one after the other. Blocks, tasks and
//! stages depend on the shape alone: any number of threads gives the same bits.
#![allow(unsafe_code)]

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::Float;
use crate::engine::accumulate::{Reducer, total_of};
use crate::engine::bind::{Binding, Bound, Cut};
use crate::engine::program::{Argument, Instruction, Output, Program};
use crate::engine::registers::Place;
use crate::engine::small;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::fill;
use crate::kernel::strided::STREAM;
use crate::memory::threads;
use crate::memory::threads::Start;
use crate::scalar::cpu;
use crate::scalar::instruction::Reduction;
use crate::shape::iteration_space::{Nest, Run};

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
    if let Some(line) = binding.line {
        return small::run(program, binding, &bound, line, results);
    }
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
            let plan = program.plan();
            let width = cut.block.next_multiple_of(64 / size_of::<T>());
            let mut task = Task {
                program,
                inputs: &bound,
                cut,
                outputs: &starts,
                streams,
                slots: Slots::new(arena, width, plan.registers, starts.len(), bound.len()),
                cells: smallvec![Cell::Splat(T::ZERO); bound.len() + plan.places.len()],
                written: smallvec![0; bound.len()],
            };
            task.run(number * cut.each..cut.blocks.min((number + 1) * cut.each), reducers, &mut accumulators);
        });
        if streams {
            cpu::streamed();
        }
    };
    threads::sweep(tasks, cut.count * size_of::<T>(), task);
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

/// Which elements a block has.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    len: usize,
    /// Whole rows, where rows are reduced.
    rows: usize,
}

/// The memory of a task: slots of one block each, no two of them overlapping. First come the registers, then places for
/// outputs that are not computed where they stay, then [`Slots::SPARE`] blocks for what must be written out to be read, then
/// the inputs that are gathered.
struct Slots<T> {
    base: Start<T>,
    width: usize,
    registers: usize,
    outputs: usize,
}

impl<T: Float> Slots<T> {
    const SPARE: usize = 3;

    /// In `arena`, which grows where it is too small.
    fn new(arena: &mut Vec<T>, width: usize, registers: usize, outputs: usize, inputs: usize) -> Self {
        let needed = (registers + outputs + Self::SPARE + inputs) * width + 64;
        if arena.len() < needed {
            arena.resize(needed, T::ZERO);
        }
        let align = arena.as_ptr().align_offset(64).min(64);
        Slots { base: Start(arena[align..].as_mut_ptr()), width, registers, outputs }
    }

    fn at(&self, number: usize) -> *mut T {
        // SAFETY: there are as many slots of `width` elements in the arena as `new` was asked for, after at most 64 elements
        // for the alignment, and the numbers below are those of such slots.
        unsafe { self.base.at(number * self.width) }
    }

    fn register(&self, number: usize) -> *mut T {
        self.at(number)
    }

    fn output(&self, number: usize) -> *mut T {
        self.at(self.registers + number)
    }

    fn spare(&self, number: usize) -> *mut T {
        self.at(self.registers + self.outputs + number)
    }

    fn gathered(&self, number: usize) -> *mut T {
        self.at(self.registers + self.outputs + Self::SPARE + number)
    }
}

/// Some blocks, one after the other on one thread.
struct Task<'a, T: Float> {
    program: &'a Program,
    inputs: &'a [Bound<'a, T>],
    cut: &'a Cut,
    /// Where each output starts.
    outputs: &'a [Start<T>],
    /// Whether outputs are written past the caches.
    streams: bool,
    slots: Slots<T>,
    /// The values over this block.
    cells: SmallVec<[Cell<T>; 32]>,
    /// Of inputs that repeat one row, and so are the same in every block: the elements written out already.
    written: SmallVec<[usize; 8]>,
}

impl<T: Float> Task<'_, T> {
    fn run(&mut self, blocks: Range<usize>, reducers: &[Reducer], totals: &mut [&mut [T]]) {
        let mut aside: SmallVec<[Vec<T>; 2]> = smallvec![Vec::new(); reducers.len()];
        let first = blocks.start;
        for number in blocks {
            let (start, len) = self.cut.block(number);
            let block = Block { start, len, rows: len.checked_div(self.cut.line).unwrap_or(0) };
            for k in 0..self.inputs.len() {
                self.cells[k] = self.read(k, block);
            }
            for (position, instruction) in self.program.instructions().iter().enumerate() {
                self.cells[self.inputs.len() + position] = self.compute(position, instruction, block);
            }
            for (k, output) in self.program.outputs().iter().enumerate() {
                self.write(k, *output, block);
            }
            for ((reducer, total), aside) in reducers.iter().zip(&mut *totals).zip(&mut aside) {
                if (number - first).is_multiple_of(reducer.stage) && number > first {
                    if aside.is_empty() {
                        aside.resize(reducer.count, T::start(reducer.op));
                    }
                    T::accumulate(reducer.op, aside, total);
                    total.fill(T::start(reducer.op));
                }
                // SAFETY: cells hold `len` elements, and a spare slot has room for them; the value lies in another one.
                let (value, spare) = unsafe {
                    let value = self.spread(self.cells[reducer.value], 0, block).operand(len);
                    (value, std::slice::from_raw_parts_mut(self.slots.spare(1), len))
                };
                reducer.accumulate(value, start, len, total, spare);
            }
        }
        for ((reducer, total), aside) in reducers.iter().zip(totals).zip(&aside) {
            if !aside.is_empty() {
                T::accumulate(reducer.op, total, aside);
            }
        }
    }

    /// An input over a block.
    fn read(&mut self, k: usize, Block { start, len, rows }: Block) -> Cell<T> {
        let (data, nest) = match self.inputs[k] {
            Bound::Number(value) => return Cell::Splat(value),
            Bound::Plain(data) => return Cell::Slice(data[start..start + len].as_ptr()),
            Bound::Copied(ref copy) => return Cell::Slice(copy.0[start..start + len].as_ptr()),
            Bound::Strided(data, nest) => (data, nest),
        };
        match nest.run(0, start, len) {
            Run::Splat(position) => Cell::Splat(data[position]),
            _ if rows > 0 && nest.counts_rows(self.cut.line) => {
                let position = nest.position(0, start);
                Cell::Rows(data[position..position + rows].as_ptr())
            }
            Run::Slice(position) => Cell::Slice(data[position..position + len].as_ptr()),
            _ => {
                let gathered = self.slots.gathered(k);
                if self.written[k] < len {
                    if self.repeats(nest, start) {
                        self.written[k] = len;
                    }
                    // SAFETY: the slot has room for a block, and no other input uses it.
                    fill::spread(nest, data, start, unsafe { std::slice::from_raw_parts_mut(gathered, len) });
                }
                Cell::Slice(gathered)
            }
        }
    }

    /// Whether an input has the same elements in every block.
    fn repeats(&self, nest: &Nest<1>, start: usize) -> bool {
        nest.repeats() && start.is_multiple_of(nest.row()) && self.cut.block.is_multiple_of(nest.row())
    }

    /// The cell, written out over the rows to a spare slot where there is one number for each row.
    fn spread(&self, cell: Cell<T>, number: usize, block: Block) -> Cell<T> {
        let Cell::Rows(from) = cell else { return cell };
        let to = self.slots.spare(number);
        // SAFETY: a cell of rows has as many elements as the block has rows, and a spare slot has room for a block; they do
        // not overlap.
        let (from, out) =
            unsafe { (std::slice::from_raw_parts(from, block.rows), std::slice::from_raw_parts_mut(to, block.len)) };
        out.chunks_exact_mut(self.cut.line).zip(from).for_each(|(out, &value)| out.fill(value));
        Cell::Slice(to)
    }

    /// The result of an instruction over a block.
    fn compute(&self, position: usize, instruction: &Instruction, block: Block) -> Cell<T> {
        let Block { start, len, rows } = block;
        let cell = |value: u32| self.cells[value as usize];
        let reads = |is: fn(Cell<T>) -> bool| instruction.operands().any(|value| is(cell(value)));
        let by_rows = rows > 0 && reads(|cell| matches!(cell, Cell::Rows(_)));
        // Is there one number for each row, of such numbers and of those that are the same everywhere?
        let one_for_each = match *instruction {
            Instruction::Reduce(_, x) => !matches!(cell(x), Cell::Splat(_)),
            _ => by_rows && !reads(|cell| matches!(cell, Cell::Slice(_))),
        };
        let target = match self.program.plan().places[position] {
            Place::Register(register) => self.slots.register(register as usize),
            Place::Output(output) if self.streams || one_for_each => self.slots.output(output as usize),
            // SAFETY: a whole output has as many elements as the shape, and the block lies within it.
            Place::Output(output) => unsafe { self.outputs[output as usize].at(start) },
        };
        // SAFETY: `len` elements of a register, of an output's slot, or of this block's part of an output. No cell that is
        // read below lies there: a place is given to one value at a time (`Plan::new`), blocks of outputs do not overlap, and
        // no input is an output.
        let out = unsafe { std::slice::from_raw_parts_mut(target, len) };
        match *instruction {
            Instruction::Reduce(op, x) => self.reduce(op, cell(x), block, out),
            instruction if one_for_each => {
                // SAFETY: a cell of rows has as many elements as there are rows.
                let read = |value: u32| unsafe {
                    match cell(value) {
                        Cell::Rows(from) => Operand::Slice(std::slice::from_raw_parts(from, rows)),
                        cell => cell.operand(rows),
                    }
                };
                match execute(instruction, read, &mut out[..rows]) {
                    Cell::Slice(from) => Cell::Rows(from),
                    cell => cell,
                }
            }
            instruction if by_rows => {
                let wide: SmallVec<[(u32, Cell<T>); 3]> = instruction
                    .operands()
                    .enumerate()
                    .map(|(number, value)| (value, self.spread(cell(value), number, block)))
                    .collect();
                let read = |value: u32| {
                    let cell = wide.iter().find(|(own, _)| *own == value).map_or(Cell::Splat(T::ZERO), |found| found.1);
                    // SAFETY: cells hold `len` elements, those that were written out too.
                    unsafe { cell.operand(len) }
                };
                execute(instruction, read, out)
            }
            // SAFETY: cells hold `len` elements: inputs by `read`, results by what is said above.
            instruction => execute(instruction, |value| unsafe { cell(value).operand(len) }, out),
        }
    }

    /// The reduction of each row of a block.
    fn reduce(&self, op: Reduction, x: Cell<T>, Block { len, rows, .. }: Block, out: &mut [T]) -> Cell<T> {
        let line = self.cut.line;
        match x {
            Cell::Splat(x) => Cell::Splat(total_of(op, Operand::Splat(x), line)),
            Cell::Slice(x) => {
                // SAFETY: a slice cell has `len` elements; `compute` says why nobody writes to them.
                let x = unsafe { std::slice::from_raw_parts(x, len) };
                if rows == 1 {
                    return Cell::Splat(total_of(op, Operand::Slice(x), len));
                }
                T::reduce_each(op, x, line, line, &mut out[..rows]);
                Cell::Rows(out.as_ptr())
            }
            Cell::Rows(x) => {
                // SAFETY: a cell of rows has as many elements as there are rows.
                let x = unsafe { std::slice::from_raw_parts(x, rows) };
                out.iter_mut().zip(x).for_each(|(out, &x)| *out = total_of(op, Operand::Splat(x), line));
                Cell::Rows(out.as_ptr())
            }
        }
    }

    /// Brings a block of an output that is not reduced to where it belongs, unless it was computed there.
    fn write(&self, k: usize, output: Output, block: Block) {
        let Block { start, len, rows } = block;
        match output {
            Output::Whole(value) => {
                let cell = self.spread(self.cells[value as usize], 0, block);
                // SAFETY: this block's part of an output of the whole shape, which no other block has.
                let out = unsafe { std::slice::from_raw_parts_mut(self.outputs[k].at(start), len) };
                match cell {
                    Cell::Splat(value) => out.fill(value),
                    Cell::Rows(_) => unreachable!("it was written out"),
                    Cell::Slice(from) if std::ptr::eq(from, out.as_ptr()) => {}
                    Cell::Slice(from) => {
                        // SAFETY: `len` elements of an input, a slot or another output.
                        let from = unsafe { std::slice::from_raw_parts(from, len) };
                        if self.streams { cpu::stream(from, out) } else { out.copy_from_slice(from) }
                    }
                }
            }
            Output::PerRow(value) => {
                let line = self.cut.line;
                // SAFETY: where there are rows, blocks are whole ones, and the output has one element for each.
                let out = unsafe { std::slice::from_raw_parts_mut(self.outputs[k].at(start / line), rows) };
                match self.cells[value as usize] {
                    Cell::Splat(value) => out.fill(value),
                    // SAFETY: a cell of rows has as many elements as there are rows.
                    Cell::Rows(from) => out.copy_from_slice(unsafe { std::slice::from_raw_parts(from, rows) }),
                    Cell::Slice(from) => {
                        for (row, out) in out.iter_mut().enumerate() {
                            // SAFETY: the first element of a row of the block.
                            *out = unsafe { *from.add(row * line) };
                        }
                    }
                }
            }
            Output::Reduced(..) => {}
        }
    }
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
