//! Runs a program block by block.
//!
//! Every instruction is computed over one block of [`BLOCK`](crate::kernel::strided::BLOCK) elements, about, before the next
//! block begins: what lies between instructions stays in the first-level cache. Blocks are handed out as slots: registers and
//! scratch of the thread, and each block's part of the outputs. While an instruction runs, its target is taken out of the slots, so that
//! the operands can be read from the others.
//!
//! A value that is the same over a block is kept as one number, one that is the same over each row as a number for each row; what
//! is computed from such values alone is computed once.
//!
//! Reductions that leave the program are accumulated for each task apart, in two stages, and then over the tasks in a
//! balanced tree. Blocks, tasks and stages depend on the shape alone: any number of threads gives the same bits.

use std::mem::take;

use smallvec::{SmallVec, smallvec};

use crate::engine::access::{Argument, Input};
use crate::engine::accumulate::{Reducer, total_of};
use crate::engine::bind::Binding;
use crate::engine::program::{Output, Program};
use crate::engine::registers::{Place, Registers};
use crate::engine::small;
use crate::engine::tiling::Tiling;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::strided::STREAM;
use crate::memory::partition::{self, Partition};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::scalar::cpu;
use crate::scalar::instruction::Instruction;
use crate::{Float, Reduction};

/// Runs `program`, for which `binding` was made, over `arguments`; each of `results` has as many elements as the output's shape.
pub(crate) fn run<T: Float>(
    program: &Program,
    binding: &Binding,
    arguments: &[Argument<'_, T>],
    mut results: SmallVec<[&mut [T]; 4]>,
) {
    let Binding { accesses, tiling, registers, reducers, .. } = binding;
    if tiling.count == 0 {
        reducers.iter().for_each(|reducer| results[reducer.output].fill(T::start(reducer.op)));
        return;
    }
    let mut copies: SmallVec<[Option<Scratch<T>>; 8]> = SmallVec::new();
    if accesses.iter().any(|access| access.tiles().is_some()) {
        copies.extend(accesses.iter().zip(arguments).map(|(access, argument)| match argument {
            Argument::Elements(source) => access.materialized(source.data),
            Argument::Number(_) => None,
        }));
    }
    let mut inputs: SmallVec<[Input<'_, T>; 8]> = SmallVec::new();
    for (k, (access, argument)) in accesses.iter().zip(arguments).enumerate() {
        inputs.push(match (argument, copies.get(k)) {
            (Argument::Number(value), _) => Input::Uniform(*value),
            (_, Some(Some(copy))) => Input::Contiguous(copy),
            (Argument::Elements(source), _) => Input::new(access, source.data),
        });
    }
    if let Some(line) = binding.line {
        return small::run(program, binding, &inputs, line, results);
    }
    let tasks = tiling.tasks();
    let bytes = results.iter().map(|result| size_of_val(*result)).sum::<usize>();
    let blocks = Blocks { program, registers, reducers, inputs: &inputs, tiling, streams: bytes >= STREAM };
    if tasks == 1 {
        return blocks.run(0, results);
    }
    // Each task has totals of its own.
    let mut totals: SmallVec<[Vec<T>; 2]> = smallvec![];
    totals.extend(reducers.iter().map(|reducer| vec![T::ZERO; reducer.count * tasks]));
    let ends: Vec<usize> = (1..=tasks).map(|task| tiling.start(task)).collect();
    let row_ends: Vec<usize> = ends.iter().map(|end| end.checked_div(tiling.row).unwrap_or(0)).collect();
    let mut own_totals = totals.iter_mut().zip(reducers);
    let parts: SmallVec<[Partition<'_, T>; 4]> = program
        .outputs()
        .iter()
        .zip(&mut results)
        .map(|(output, result)| match (output, result) {
            (Output::Whole(_), result) => Partition::ends(result, &ends),
            (Output::PerRow(_), result) => Partition::ends(result, &row_ends),
            (Output::Reduced(..), result) => match own_totals.next() {
                Some((totals, reducer)) => Partition::chunks(totals, reducer.count),
                None => Partition::chunks(result, 0),
            },
        })
        .collect();
    partition::run(tasks, Schedule::Sweep { bytes: tiling.count * size_of::<T>() }, parts, |task, parts| {
        blocks.run(task, parts);
    });
    for (reducer, totals) in reducers.iter().zip(&mut totals) {
        combine(reducer.op, totals, reducer.count);
        results[reducer.output].copy_from_slice(&totals[..reducer.count]);
    }
}

/// Combines the totals of all tasks, `count` for each, in a balanced tree, into those of the first.
fn combine<T: Float>(op: Reduction, totals: &mut [T], count: usize) {
    let mut step = count;
    while step < totals.len() {
        for left in (0..totals.len() - step).step_by(2 * step) {
            let (low, high) = totals.split_at_mut(left + step);
            T::accumulate(op, &mut low[left..left + count], &high[..count]);
        }
        step *= 2;
    }
}

/// Where elements of a value lie.
#[derive(Clone, Copy)]
enum Elements<'a, T> {
    Input(&'a [T]),
    Slot(usize),
}

/// A value over one block.
#[derive(Clone, Copy)]
enum BlockValue<'a, T> {
    /// As many elements as the block has.
    Slice(Elements<'a, T>),
    /// One for all.
    Splat(T),
    /// One for each row of the block.
    Rows(Elements<'a, T>),
}

/// Which elements a block has.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    len: usize,
    /// Whole rows, where rows are reduced.
    rows: usize,
}

/// What all tasks of a run share.
struct Blocks<'a, T: Float> {
    program: &'a Program,
    registers: &'a Registers,
    reducers: &'a [Reducer],
    inputs: &'a [Input<'a, T>],
    tiling: &'a Tiling,
    /// Whether outputs are written past the caches.
    streams: bool,
}

impl<T: Float> Blocks<'_, T> {
    /// Runs the blocks of one task; `outputs` are its parts of the outputs, or totals of its own.
    fn run(&self, task: usize, outputs: SmallVec<[&mut [T]; 4]>) {
        T::arena().with_borrow_mut(|arena| {
            // Slots begin at a cache line and are whole cache lines.
            let width = self.tiling.block.next_multiple_of(64 / size_of::<T>());
            let layout = Slots::new(self.registers.count, outputs.len());
            let count = layout.gathered + self.inputs.len();
            let needed = count * width + 64;
            if arena.len() < needed {
                arena.resize(needed, T::ZERO);
            }
            let align = arena.as_ptr().align_offset(64).min(64);
            let mut slots: SmallVec<[&mut [T]; 16]> = arena[align..].chunks_exact_mut(width).take(count).collect();
            let first_output = slots.len();
            slots.extend(outputs.iter().map(|_| Default::default()));
            let values = self.inputs.len() + self.program.instructions().len();
            let mut values: SmallVec<[BlockValue<'_, T>; 32]> = smallvec![BlockValue::Splat(T::ZERO); values];
            // Borrowed for as long as the slots.
            let outputs = outputs.into_iter().map(|part| &mut *part).collect();
            let (slots, values) = (&mut slots[..], &mut values[..]);
            Task { run: self, layout, first_output, slots, values }.run(task, outputs);
        });
        if self.streams {
            cpu::streamed();
        }
    }
}

/// Numbers of the slots of a task: first the registers, then scratch for outputs that are not computed where they stay, then
/// [`Slots::SPARE`] for values that must be expanded to be read, then the inputs that are gathered, then the outputs.
#[derive(Clone, Copy)]
struct Slots {
    aside: usize,
    spare: usize,
    gathered: usize,
}

impl Slots {
    const SPARE: usize = 3;

    fn new(registers: usize, outputs: usize) -> Self {
        let spare = registers + outputs;
        Slots { aside: registers, spare, gathered: spare + Self::SPARE }
    }
}

/// Some blocks, one after the other on one thread.
struct Task<'a, 's, 'r, T: Float> {
    run: &'r Blocks<'a, T>,
    layout: Slots,
    first_output: usize,
    slots: &'s mut [&'r mut [T]],
    /// The values over this block.
    values: &'s mut [BlockValue<'r, T>],
}

impl<'r, T: Float> Task<'_, '_, 'r, T> {
    fn run(&mut self, task: usize, mut outputs: SmallVec<[&'r mut [T]; 4]>) {
        let &Blocks { program, reducers, inputs, tiling, .. } = self.run;
        let mut staged: SmallVec<[Vec<T>; 2]> = smallvec![Vec::new(); reducers.len()];
        for reducer in reducers {
            outputs[reducer.output].fill(T::start(reducer.op));
        }
        let mut number = 0usize;
        tiling.for_each_block(task, |start, len| {
            let block = Block { start, len, rows: len.checked_div(tiling.row).unwrap_or(0) };
            for (k, output) in program.outputs().iter().enumerate() {
                let len = match output {
                    Output::Whole(_) => len,
                    Output::PerRow(_) => block.rows,
                    Output::Reduced(..) => continue,
                };
                let (part, rest) = take(&mut outputs[k]).split_at_mut(len);
                (self.slots[self.first_output + k], outputs[k]) = (part, rest);
            }
            for k in 0..inputs.len() {
                self.values[k] = self.read(k, block);
            }
            for (position, &instruction) in program.instructions().iter().enumerate() {
                self.values[inputs.len() + position] = self.compute(position, instruction, block);
            }
            for (k, output) in program.outputs().iter().enumerate() {
                self.write(k, *output, block);
            }
            for (reducer, staged) in reducers.iter().zip(&mut staged) {
                let total = &mut *outputs[reducer.output];
                if number > 0 && number.is_multiple_of(reducer.stage) {
                    if staged.is_empty() {
                        staged.resize(reducer.count, T::start(reducer.op));
                    }
                    T::accumulate(reducer.op, staged, total);
                    total.fill(T::start(reducer.op));
                }
                let expanded = self.expand(reducer.value, 0, block);
                let spare = take(&mut self.slots[self.layout.spare + 1]);
                let value = self.operand(reducer.value, expanded, len);
                reducer.accumulate(value, start, len, total, &mut spare[..len]);
                self.slots[self.layout.spare + 1] = spare;
            }
            number += 1;
        });
        for (reducer, staged) in reducers.iter().zip(&staged) {
            if !staged.is_empty() {
                T::accumulate(reducer.op, outputs[reducer.output], staged);
            }
        }
    }

    #[inline(always)]
    fn elements(&self, elements: &Elements<'r, T>, len: usize) -> &[T] {
        match *elements {
            Elements::Input(elements) => &elements[..len],
            Elements::Slot(slot) => &self.slots[slot][..len],
        }
    }

    /// A value as an operand of `len` elements: of a block, or, of a value that has one for each row, of its rows; a value that
    /// was [expanded](Self::expand) is read from that slot.
    #[inline(always)]
    fn operand(&self, value: usize, expanded: Option<usize>, len: usize) -> Operand<'_, T> {
        // Values are matched where they lie: one that was just written in parts is not copied as a whole before all stores
        // are done.
        match (expanded, &self.values[value]) {
            (Some(slot), _) => Operand::Slice(&self.slots[slot][..len]),
            (None, BlockValue::Slice(elements) | BlockValue::Rows(elements)) => {
                Operand::Slice(self.elements(elements, len))
            }
            (None, BlockValue::Splat(value)) => Operand::Splat(*value),
        }
    }

    /// An input over a block.
    fn read(&mut self, k: usize, Block { start, len, rows }: Block) -> BlockValue<'r, T> {
        let &Blocks { inputs, tiling, .. } = self.run;
        match (inputs[k].borrow(start, len), &inputs[k]) {
            (Some(Operand::Splat(value)), _) => BlockValue::Splat(value),
            (Some(Operand::Slice(elements)), _) => BlockValue::Slice(Elements::Input(elements)),
            (None, Input::Strided(data, space)) if rows > 0 && space.counts_rows(tiling.row) => {
                let position = space.position(0, start);
                BlockValue::Rows(Elements::Input(&data[position..position + rows]))
            }
            (None, input) => {
                let slot = self.layout.gathered + k;
                input.gather(start, &mut self.slots[slot][..len]);
                BlockValue::Slice(Elements::Slot(slot))
            }
        }
    }

    /// Expands a value over the rows into spare slot `number`, whose place is given, where there is one number for each row.
    #[inline]
    fn expand(&mut self, value: usize, number: usize, block: Block) -> Option<usize> {
        match self.values[value] {
            BlockValue::Rows(rows) => Some(self.expand_rows(rows, number, block)),
            _ => None,
        }
    }

    #[inline(never)]
    fn expand_rows(&mut self, rows: Elements<'r, T>, number: usize, block: Block) -> usize {
        let slot = self.layout.spare + number;
        let out = take(&mut self.slots[slot]);
        let rows = self.elements(&rows, block.rows);
        out[..block.len].chunks_exact_mut(self.run.tiling.row).zip(rows).for_each(|(out, &value)| out.fill(value));
        self.slots[slot] = out;
        slot
    }

    /// The result of an instruction over a block.
    fn compute(&mut self, position: usize, instruction: Instruction, block: Block) -> BlockValue<'r, T> {
        let Block { len, rows, .. } = block;
        let (mut by_rows, mut slices) = (false, false);
        for value in instruction.operands() {
            by_rows |= matches!(self.values[value as usize], BlockValue::Rows(_));
            slices |= matches!(self.values[value as usize], BlockValue::Slice(_));
        }
        // Is there one number for each row, of such numbers and of those that are the same everywhere?
        let one_for_each = match instruction {
            Instruction::Reduce(..) => by_rows || slices,
            _ => by_rows && !slices,
        };
        let slot = match self.run.registers.places[position] {
            Place::Register(register) => register as usize,
            Place::Output(output) if self.run.streams || one_for_each => self.layout.aside + output as usize,
            Place::Output(output) => self.first_output + output as usize,
        };
        let mut operands = [(0, None); 3];
        for (number, value) in instruction.operands().enumerate() {
            let value = value as usize;
            let expanded = if by_rows && !one_for_each { self.expand(value, number, block) } else { None };
            operands[number] = (value, expanded);
        }
        let out = take(&mut self.slots[slot]);
        let len = if one_for_each { rows } else { len };
        let single = match instruction {
            Instruction::Reduce(op, x) => self.reduce(op, &self.values[x as usize], block, out),
            _ => {
                let read = |number: usize| self.operand(operands[number].0, operands[number].1, len);
                execute(instruction, read, &mut out[..len])
            }
        };
        self.slots[slot] = out;
        match single {
            Some(value) => BlockValue::Splat(value),
            None if one_for_each => BlockValue::Rows(Elements::Slot(slot)),
            None => BlockValue::Slice(Elements::Slot(slot)),
        }
    }

    /// The reduction of each row of a block: one number where the block is one row or all are equal, else one for each row in `out`.
    fn reduce(&self, op: Reduction, x: &BlockValue<'r, T>, block: Block, out: &mut [T]) -> Option<T> {
        let (row, out) = (self.run.tiling.row, &mut out[..block.rows]);
        match x {
            &BlockValue::Splat(x) => return Some(total_of(op, Operand::Splat(x), row)),
            BlockValue::Slice(x) => {
                let x = self.elements(x, block.len);
                if block.rows == 1 {
                    return Some(total_of(op, Operand::Slice(x), block.len));
                }
                T::reduce_each(op, x, row, row, out);
            }
            BlockValue::Rows(x) => {
                let x = self.elements(x, block.rows);
                out.iter_mut().zip(x).for_each(|(out, &x)| *out = total_of(op, Operand::Splat(x), row));
            }
        }
        None
    }

    /// Brings a block of an output that is not reduced to where it belongs, unless it was computed there.
    fn write(&mut self, k: usize, output: Output, block: Block) {
        let slot = self.first_output + k;
        match output {
            Output::Whole(value) => {
                let value = value as usize;
                if matches!(self.values[value], BlockValue::Slice(Elements::Slot(own)) if own == slot) {
                    return;
                }
                let expanded = self.expand(value, 0, block);
                let out = take(&mut self.slots[slot]);
                match self.operand(value, expanded, block.len) {
                    Operand::Splat(value) => out.fill(value),
                    Operand::Slice(from) if self.run.streams => cpu::stream(from, out),
                    Operand::Slice(from) => out.copy_from_slice(from),
                }
                self.slots[slot] = out;
            }
            Output::PerRow(value) => {
                let out = take(&mut self.slots[slot]);
                match &self.values[value as usize] {
                    BlockValue::Splat(value) => out.fill(*value),
                    BlockValue::Rows(rows) => out.copy_from_slice(self.elements(rows, block.rows)),
                    BlockValue::Slice(elements) => {
                        let firsts = self.elements(elements, block.len).iter().step_by(self.run.tiling.row);
                        out.iter_mut().zip(firsts).for_each(|(out, &first)| *out = first);
                    }
                }
                self.slots[slot] = out;
            }
            Output::Reduced(..) => {}
        }
    }
}

/// The result of an instruction over a block: one number, or, where that is `None`, in `out`. `read` gives operand 0, 1 or 2.
#[inline(always)]
fn execute<'a, T: Float>(instruction: Instruction, read: impl Fn(usize) -> Operand<'a, T>, out: &mut [T]) -> Option<T> {
    use Operand::Splat;
    let mut one = [T::ZERO];
    let is_number = |number| matches!(read(number), Splat(_));
    let single = match instruction {
        Instruction::Unary(..) => is_number(0),
        Instruction::Binary(..) | Instruction::Compare(..) => is_number(0) && is_number(1),
        Instruction::Select(..) => match read(0) {
            Splat(mask) => match read(if mask != T::ZERO { 1 } else { 2 }) {
                Splat(value) => return Some(value),
                Operand::Slice(values) => {
                    out.copy_from_slice(values);
                    return None;
                }
            },
            Operand::Slice(_) => false,
        },
        Instruction::Reduce(..) => unreachable!("reductions have as many results as there are rows"),
    };
    let target = if single { &mut one[..] } else { out };
    match instruction {
        Instruction::Unary(op, _) => {
            T::unary(op, read(0), target);
        }
        Instruction::Binary(op, ..) => {
            T::binary(op, read(0), read(1), target);
        }
        Instruction::Compare(op, ..) => T::flags(op, read(0), read(1), target),
        Instruction::Select(..) => T::choose(read(0), read(1), read(2), target),
        Instruction::Reduce(..) => {}
    }
    single.then_some(one[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_combined_in_a_tree() {
        for tasks in 1..20 {
            let mut totals: Vec<f64> = (0..tasks * 3).map(|i| i as f64).collect();
            combine(Reduction::Sum, &mut totals, 3);
            let sum = |k: usize| (0..tasks).map(|task| (3 * task + k) as f64).sum::<f64>();
            assert_eq!(totals[..3], [sum(0), sum(1), sum(2)]);
        }
    }
}
