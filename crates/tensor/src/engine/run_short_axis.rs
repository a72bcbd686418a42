//! Runs a program with a [short last dimension](crate::engine::short_axis), block by block. A *lane* consists of a block's elements at one
//! position of the last dimension.
//!
//! A value over a block has one of four forms. It is one number, one number per lane, the same elements for all lanes, or separate elements
//! for each lane. An instruction runs once for all lanes if its operands have the same form and lanes that are adjacent in memory. Operands
//! that are single numbers do not count. Otherwise arithmetic of two operands that are not single numbers runs in one loop over lanes. Other
//! instructions run lane by lane.
//!
//! Blocks, tasks and totals do not depend on the number of threads, so any number of threads gives the same bits.

use std::mem::take;

use smallvec::{SmallVec, smallvec};

use crate::engine::access::{Input, ProgramArgument};
use crate::engine::driver::{self, OutputSplit};
use crate::engine::elementwise;
use crate::engine::execute::{RowOperand, execute, execute_rows};
use crate::engine::program::{Output, Program};
use crate::engine::registers::{Register, Registers};
use crate::engine::short_axis::{LaneAccess, LaneTotals, ShortAxis};
use crate::engine::stages::Stages;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::reduce::accumulator::{Accumulator, operand_total};
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::scalar::instruction::Instruction;
use crate::shape::iteration_space::{IterationSpace, Segment};
use crate::thresholds::blocks::{BLOCKS_PER_STAGE, VECTOR_BYTES};
use crate::{Float, Reduction};

/// Runs `program` on the inputs `arguments`. Each slice in `results` has as many elements as the shape of its output. Returns an error if
/// there is not enough memory for copies of inputs, the values of a block, or the totals of each task.
pub(crate) fn run<T: Float>(
    program: &Program,
    registers: &Registers,
    lanes: &ShortAxis,
    arguments: &[ProgramArgument<'_, T>],
    mut results: SmallVec<[&mut [T]; 4]>,
) -> Result<(), AllocationError> {
    let mut copies: SmallVec<[Scratch<T>; 4]> = SmallVec::new();
    for (access, argument) in lanes.inputs.iter().zip(arguments) {
        if let (LaneAccess::Copied { arrangement, .. }, ProgramArgument::Elements(source)) = (access, argument) {
            let mut copy = Scratch::new(arrangement.numel())?;
            elementwise::copy(source.with_layout(arrangement), &mut copy);
            copies.push(copy);
        }
    }
    let mut copied = copies.iter();
    let mut inputs: SmallVec<[LaneInput<'_, T>; 4]> = SmallVec::new();
    for (access, argument) in lanes.inputs.iter().zip(arguments) {
        inputs.push(match (argument, access) {
            (ProgramArgument::Number(value), _) => LaneInput::Same(Input::Uniform(*value)),
            (ProgramArgument::Elements(source), LaneAccess::Same(access)) => {
                LaneInput::Same(Input::new(access, source.data))
            }
            (ProgramArgument::Elements(source), LaneAccess::Numbers { space, step }) => {
                LaneInput::Lanes(source.data, space, *step)
            }
            (ProgramArgument::Elements(_), LaneAccess::Copied { space, step, .. }) => {
                LaneInput::Lanes(copied.next().map_or(&[], |copy| &copy[..]), space, *step as isize)
            }
        });
    }
    let run = LaneRun { program, registers, lanes, inputs: &inputs };
    let mut numbers = lanes.reduced.iter();
    let outputs = program.outputs().iter().zip(&mut results).map(|(output, result)| {
        let split = match output {
            Output::Reduced(op, ..) => {
                OutputSplit::Totals(*op, numbers.next().map_or(0, |own| own.arrangement.numel()))
            }
            _ => OutputSplit::PerElement(1),
        };
        (split, &mut **result)
    });
    let totals = driver::run(&lanes.tiling, outputs.collect(), &|task, parts| run.task(task, parts))?;
    for (LaneTotals { output, arrangement, .. }, totals) in lanes.reduced.iter().zip(&totals) {
        elementwise::copy(Source { data: totals, layout: arrangement }, results[*output]);
    }
    Ok(())
}

/// An input with its elements, ready to be read lane by lane. A lane is one position of the short last dimension.
enum LaneInput<'a, T> {
    /// The same elements for all lanes (positions of the short last dimension).
    Same(Input<'a, T>),
    /// Separate elements for each lane. The last field is the distance between adjacent lanes, in elements.
    Lanes(&'a [T], &'a IterationSpace<1>, isize),
}

/// A value over one block. A lane is one position of the short last dimension. A value in a slot begins at the slot's start.
#[derive(Clone, Copy)]
enum LaneValue<'a, T> {
    /// One number for all elements of all lanes.
    Splat(T),
    /// One number for each lane. The numbers are stored in the slot with this index.
    Numbers(usize),
    /// The same elements for all lanes. They are stored in an input of the program.
    SameInput(&'a [T]),
    /// The same elements for all lanes. They are stored in the slot with this index.
    Same(usize),
    /// Separate elements for each lane. They are stored in an input of the program. The last field is the distance between adjacent lanes,
    /// in elements.
    LanesInput(&'a [T], usize),
    /// Separate elements for each lane. They are stored in the slot with this index, one lane after the other.
    Lanes(usize),
}

/// The data that all tasks of a program's run share.
struct LaneRun<'a, T: Float> {
    program: &'a Program,
    registers: &'a Registers,
    lanes: &'a ShortAxis,
    inputs: &'a [LaneInput<'a, T>],
}

impl<T: Float> LaneRun<'_, T> {
    /// Runs the blocks of one task. `outputs` has, for each output, the part that the task writes. For a reduction, it has the task's own
    /// totals.
    fn task(&self, task: usize, outputs: SmallVec<[&mut [T]; 4]>) -> Result<(), AllocationError> {
        // Slots of registers come first, then slots of inputs, then two spare slots. Each slot begins at a cache line.
        let width =
            (self.lanes.lane_count * self.lanes.tiling.block_len).next_multiple_of(VECTOR_BYTES / size_of::<T>());
        let count = self.registers.slots + self.inputs.len() + 2;
        T::with_memory(count * width, |memory| {
            let mut slots: SmallVec<[&mut [T]; 16]> = memory.chunks_exact_mut(width).collect();
            let count = self.inputs.len() + self.program.instructions().len();
            let mut values: SmallVec<[LaneValue<'_, T>; 32]> = smallvec![LaneValue::Splat(T::ZERO); count];
            LaneTask { run: self, slots: &mut slots, values: &mut values }.run(task, outputs)
        })?
    }
}

/// The state of a task, which runs its blocks one after the other on one thread.
struct LaneTask<'s, 'r, 'm, T: Float> {
    run: &'r LaneRun<'r, T>,
    slots: &'s mut [&'m mut [T]],
    /// The values over the current block: the inputs, then the results of the instructions.
    values: &'s mut [LaneValue<'r, T>],
}

impl<T: Float> LaneTask<'_, '_, '_, T> {
    fn run(&mut self, task: usize, mut outputs: SmallVec<[&mut [T]; 4]>) -> Result<(), AllocationError> {
        let &LaneRun { program, registers, lanes, inputs } = self.run;
        let tiling = &lanes.tiling;
        let mut stages: SmallVec<[Stages<T>; 2]> = smallvec![];
        for LaneTotals { output, accumulator, .. } in &lanes.reduced {
            let blocks_per_stage = BLOCKS_PER_STAGE * (accumulator.total_count / tiling.block_len.max(1)).max(1);
            stages.push(Stages::new(
                accumulator.op,
                blocks_per_stage,
                tiling.max_blocks_per_task(),
                &mut *outputs[*output],
            )?);
        }
        let (mut number, first) = (0usize, tiling.task_start(task));
        tiling.for_each_block(task, |start, len| {
            for (k, input) in inputs.iter().enumerate() {
                self.values[k] = self.read(registers.slots + k, input, start, len);
            }
            for (position, (&instruction, &place)) in program.instructions().iter().zip(&registers.results).enumerate()
            {
                let (Register::Slot(slot) | Register::Output(slot)) = place;
                self.values[inputs.len() + position] = self.compute(instruction, slot as usize, len);
            }
            for (k, output) in program.outputs().iter().enumerate() {
                if let Output::PerRow(value) = *output {
                    let out = &mut outputs[k][start - first..][..len];
                    match self.operand(value as usize, 0, len) {
                        Operand::Splat(value) => out.fill(value),
                        Operand::Slice(from) => out.copy_from_slice(from),
                    }
                }
            }
            for (LaneTotals { value, output, accumulator, reduces_lanes, .. }, stages) in
                lanes.reduced.iter().zip(&mut stages)
            {
                let totals = &mut *outputs[*output];
                stages.begin_block(number, totals);
                let (aside, spare) = (self.slots.len() - 1, self.slots.len() - 2);
                let (total, room) = (take(&mut self.slots[aside]), take(&mut self.slots[spare]));
                if *reduces_lanes {
                    let sum = match self.reduce(accumulator.op, *value, &mut total[..len]) {
                        Some(sum) => Operand::Splat(sum),
                        None => Operand::Slice(&total[..len]),
                    };
                    accumulator.accumulate(sum, start, len, totals, &mut room[..len]);
                } else {
                    self.accumulate(accumulator, *value, (start, len), totals, (&mut *total, &mut *room));
                }
                (self.slots[aside], self.slots[spare]) = (total, room);
            }
            number += 1;
        });
        lanes.reduced.iter().zip(&stages).for_each(|(reduced, stages)| stages.finish(&mut *outputs[reduced.output]));
        Ok(())
    }

    /// Accumulates each lane of a value (the block's elements at one position of the short last dimension) into the totals of the lane.
    /// Covers the block of `len` elements that begins with element `start`.
    fn accumulate(
        &self,
        accumulator: &Accumulator,
        value: usize,
        (start, len): (usize, usize),
        totals: &mut [T],
        (sums, room): (&mut [T], &mut [T]),
    ) {
        let (op, each, count) = (accumulator.op, accumulator.total_count, self.run.lanes.lane_count);
        let lanes = match &self.values[value] {
            LaneValue::Lanes(slot) => Some((&*self.slots[*slot], len)),
            LaneValue::LanesInput(elements, step) => Some((*elements, *step)),
            _ => None,
        };
        match (accumulator.space.segment(0, start, len), lanes) {
            (Segment::Splat(position), Some((elements, step))) => {
                T::reduce_each(op, elements, len, step, &mut sums[..count]);
                for (sum, totals) in sums[..count].iter().zip(totals.chunks_exact_mut(each)) {
                    T::accumulate(op, &mut totals[position..=position], std::slice::from_ref(sum));
                }
            }
            (Segment::Slice(position), Some((elements, step))) => {
                for (lane, totals) in totals.chunks_exact_mut(each).enumerate().take(count) {
                    T::accumulate(op, &mut totals[position..position + len], &elements[lane * step..][..len]);
                }
            }
            _ => {
                for (lane, totals) in totals.chunks_exact_mut(each).enumerate().take(count) {
                    accumulator.accumulate(self.operand(value, lane, len), start, len, totals, &mut room[..len]);
                }
            }
        }
    }

    /// Reads the `len` elements of a block that begins with element `start`, from an input of the program.
    fn read<'r>(&mut self, slot: usize, input: &'r LaneInput<'_, T>, start: usize, len: usize) -> LaneValue<'r, T> {
        match input {
            LaneInput::Same(input) => match input.borrow(start, len) {
                Some(Operand::Splat(value)) => LaneValue::Splat(value),
                Some(Operand::Slice(elements)) => LaneValue::SameInput(elements),
                None => {
                    input.gather(start, &mut self.slots[slot][..len]);
                    LaneValue::Same(slot)
                }
            },
            &LaneInput::Lanes(data, space, step) => {
                let lane = |position: usize, number: usize| (position as isize + number as isize * step) as usize;
                match space.segment(0, start, len) {
                    // Lanes are contiguous only in copies of inputs. In a copy, the lanes are in ascending order, so `step` is not
                    // negative.
                    Segment::Slice(position) => LaneValue::LanesInput(&data[position..], step.unsigned_abs()),
                    Segment::Splat(position) => {
                        let numbers = self.slots[slot].iter_mut().take(self.run.lanes.lane_count);
                        numbers.enumerate().for_each(|(k, number)| *number = data[lane(position, k)]);
                        LaneValue::Numbers(slot)
                    }
                    segment => unreachable!("lanes are runs of memory, not {segment:?}"),
                }
            }
        }
    }

    /// Returns the elements of a value in one lane, which is one position of the short last dimension.
    #[inline(always)]
    fn operand(&self, value: usize, lane: usize, len: usize) -> Operand<'_, T> {
        match &self.values[value] {
            LaneValue::Splat(value) => Operand::Splat(*value),
            LaneValue::Numbers(slot) => Operand::Splat(self.slots[*slot][lane]),
            LaneValue::SameInput(elements) => Operand::Slice(&elements[..len]),
            LaneValue::Same(slot) => Operand::Slice(&self.slots[*slot][..len]),
            LaneValue::LanesInput(elements, step) => Operand::Slice(&elements[lane * step..][..len]),
            LaneValue::Lanes(slot) => Operand::Slice(&self.slots[*slot][lane * len..][..len]),
        }
    }

    /// Returns a value over all lanes (positions of the short last dimension) at once, as one operand. The operand has, for each lane,
    /// `len` elements or one number. If all lanes are equal, returns one lane.
    fn all_lanes(&self, value: usize, len: usize) -> Operand<'_, T> {
        match &self.values[value] {
            LaneValue::Numbers(slot) => Operand::Slice(&self.slots[*slot][..self.run.lanes.lane_count]),
            LaneValue::Lanes(slot) => Operand::Slice(&self.slots[*slot][..self.run.lanes.lane_count * len]),
            _ => self.operand(value, 0, len),
        }
    }

    /// Returns a value as rows and columns. Each lane (position of the short last dimension) is a row. Returns `None` if the value is a
    /// single number.
    fn row_operand(&self, value: u32, len: usize) -> Option<RowOperand<'_, T>> {
        let (data, row_stride, has_columns) = match &self.values[value as usize] {
            LaneValue::Splat(_) => return None,
            LaneValue::Numbers(slot) => (&*self.slots[*slot], 1, false),
            LaneValue::SameInput(elements) => (*elements, 0, true),
            LaneValue::Same(slot) => (&*self.slots[*slot], 0, true),
            LaneValue::LanesInput(elements, step) => (*elements, *step, true),
            LaneValue::Lanes(slot) => (&*self.slots[*slot], len, true),
        };
        Some(RowOperand { data, row_stride, has_columns })
    }

    /// Computes an instruction over a block. Writes the result to `slot`, unless the result is one number.
    fn compute<'r>(&mut self, instruction: Instruction, slot: usize, len: usize) -> LaneValue<'r, T> {
        let out = take(&mut self.slots[slot]);
        let result = self.compute_into(instruction, slot, len, out);
        self.slots[slot] = out;
        result
    }

    fn compute_into<'r>(&self, instruction: Instruction, slot: usize, len: usize, out: &mut [T]) -> LaneValue<'r, T> {
        if let Instruction::Reduce(op, x) = instruction {
            return self.reduce(op, x as usize, &mut out[..len]).map_or(LaneValue::Same(slot), LaneValue::Splat);
        }
        let (mut numbers, mut same, mut lanes, mut is_strided) = (false, false, false, false);
        for value in instruction.operands() {
            match self.values[value as usize] {
                LaneValue::Splat(_) => {}
                LaneValue::Numbers(_) => numbers = true,
                LaneValue::SameInput(_) | LaneValue::Same(_) => same = true,
                LaneValue::LanesInput(..) => is_strided = true,
                LaneValue::Lanes(_) => lanes = true,
            }
        }
        let count = self.run.lanes.lane_count;
        let read = |value: u32| self.all_lanes(value as usize, len);
        if is_strided || usize::from(numbers) + usize::from(same) + usize::from(lanes) > 1 {
            if execute_rows(instruction, len, |value| self.row_operand(value, len), &mut out[..count * len]) {
                return LaneValue::Lanes(slot);
            }
            for (lane, out) in out.chunks_exact_mut(len).enumerate().take(count) {
                if let Some(value) = execute(instruction, |value| self.operand(value as usize, lane, len), out) {
                    out.fill(value);
                }
            }
            return LaneValue::Lanes(slot);
        }
        let (result, len) = match (numbers, same) {
            (true, _) => (LaneValue::Numbers(slot), count),
            (_, true) => (LaneValue::Same(slot), len),
            _ => (LaneValue::Lanes(slot), count * len),
        };
        execute(instruction, read, &mut out[..len]).map_or(result, LaneValue::Splat)
    }

    /// Reduces each row of a block. The elements of a row are in different lanes (positions of the short last dimension). If the value is one
    /// number, or one number for each lane, all rows have the same result, which is returned. Otherwise writes one result for each row to
    /// `out`, and returns `None`.
    fn reduce(&self, op: Reduction, x: usize, out: &mut [T]) -> Option<T> {
        let (count, len) = (self.run.lanes.lane_count, out.len());
        let (elements, step) = match self.values[x] {
            LaneValue::Splat(x) => return Some(operand_total(op, Operand::Splat(x), count)),
            LaneValue::Numbers(slot) => {
                return Some(operand_total(op, Operand::Slice(&self.slots[slot][..count]), count));
            }
            LaneValue::SameInput(_) | LaneValue::Same(_) => {
                if let Operand::Slice(x) = self.operand(x, 0, len) {
                    out.iter_mut().zip(x).for_each(|(out, &x)| *out = operand_total(op, Operand::Splat(x), count));
                }
                return None;
            }
            LaneValue::LanesInput(elements, step) => (elements, step),
            LaneValue::Lanes(slot) => (&*self.slots[slot], len),
        };
        out.fill(T::start(op));
        T::accumulate_rows(op, out, elements, step, count);
        None
    }
}
