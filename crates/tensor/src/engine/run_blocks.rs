//! Runs a program block by block.
//!
//! All instructions run over one block of about [`BLOCK`](crate::thresholds::blocks::BLOCK) elements, or of one long row, before the next
//! block begins. So the values between instructions stay in the caches. Each value that is copied from an input, or computed as several
//! elements, is in a slot. A slot is a register, scratch memory of the thread, or the block's part of an output. While an instruction runs,
//! its result's slot is removed from the list of slots, so that operands can be borrowed from the other slots.
//!
//! A value that is constant over a block is stored as one number. If the program reduces rows, a value that is constant over each row is
//! stored as one number per row where possible. An instruction whose operands are all of these two kinds computes only these numbers.
//!
//! Each task accumulates the reductions of the program in [stages](Stages). The [`driver`] combines the totals of the tasks. Blocks, tasks
//! and stages do not depend on the number of threads, so any number of threads gives the same bits.

use std::mem::take;

use smallvec::{SmallVec, smallvec};

use crate::engine::access::Input;
use crate::engine::driver::{self, OutputSplit};
use crate::engine::execute::{RowOperand, execute, execute_rows};
use crate::engine::program::{Output, Program};
use crate::engine::registers::{Register, Registers};
use crate::engine::stages::Stages;
use crate::engine::tiling::Tiling;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::reduce::accumulator::{Accumulator, operand_total, total_of_products};
use crate::kernel::rows;
use crate::memory::available::AllocationError;
use crate::scalar::cpu;
use crate::scalar::instruction::{Instruction, ValueIndex};
use crate::thresholds::blocks::VECTOR_BYTES;
use crate::thresholds::rows::MIN_SCALED_ROW;
use crate::{Float, Reduction};

/// One output of a program, if the output is the reduction of a value.
#[derive(Debug)]
pub(crate) struct ReducedOutput {
    /// The index of the value that is reduced.
    pub(crate) value: usize,
    /// The index of the output in the program's list of outputs.
    pub(crate) output: usize,
    pub(crate) accumulator: Accumulator,
    /// The number of blocks after which a task stores its totals and clears them; see [`Stages`].
    pub(crate) blocks_per_stage: usize,
}

/// Runs `program` block by block over `inputs`. Each slice in `results` has as many elements as the shape of its output. For each output
/// that [concatenates](Output::concatenated_row_len) values, `concatenated_row_lens` has the number of adjacent elements that come from one
/// value. A block never cuts these adjacent elements, or a row that instructions reduce. Returns an error if there is not enough memory for
/// the values of a block, or for the totals of each task.
pub(crate) fn run<T: Float>(
    program: &Program,
    (registers, concatenated_row_lens): (&Registers, &[usize]),
    reduced: &[ReducedOutput],
    tiling: &Tiling,
    inputs: &[Input<'_, T>],
    mut results: SmallVec<[&mut [T]; 4]>,
) -> Result<(), AllocationError> {
    let tasks = tiling.task_count();
    let bytes = results.iter().map(|result| size_of_val(*result)).sum::<usize>();
    let is_streamed = driver::is_streamed(bytes, inputs.iter().map(Input::max_bytes_read).sum());
    let blocks = BlockRun { program, registers, concatenated_row_lens, reduced, inputs, tiling, is_streamed };
    if tasks == 1 {
        return blocks.run(0, results);
    }
    let mut numbers = reduced.iter();
    let outputs = program.outputs().iter().zip(&mut results).map(|(output, result)| {
        let split = match output {
            Output::Whole(_) => OutputSplit::PerElement(1),
            Output::Concatenated(values, _) => OutputSplit::PerElement(values.len()),
            Output::PerRow(_) => OutputSplit::PerRow,
            Output::Reduced(op, ..) => {
                OutputSplit::Totals(*op, numbers.next().map_or(0, |own| own.accumulator.total_count))
            }
        };
        (split, &mut **result)
    });
    let totals = driver::run(tiling, outputs.collect(), &|task, parts| blocks.run(task, parts))?;
    for (reduced, totals) in reduced.iter().zip(&totals) {
        results[reduced.output].copy_from_slice(&totals[..reduced.accumulator.total_count]);
    }
    Ok(())
}

/// A value over one block.
///
/// `repr(u32)` keeps the number of a `Splat` apart from the bytes of a slice's length. The documentation of [`Operand`] has the reason.
#[derive(Clone, Copy)]
#[repr(u32)]
enum BlockValue<'a, T> {
    /// One number for all elements.
    Splat(T),
    /// All elements of the block. They are stored in an input of the program.
    Input(&'a [T]),
    /// All elements of the block. They are stored in the slot with this index.
    Slot(usize),
    /// One element for each row of the block. These elements are stored in an input of the program.
    InputRows(&'a [T]),
    /// One element for each row of the block. These elements are stored in the slot with this index.
    SlotRows(usize),
}

/// The range of elements of a block.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    len: usize,
    /// The number of rows in the block, if instructions reduce rows. Otherwise 0.
    rows: usize,
}

/// The data that all tasks of a program's run share.
struct BlockRun<'a, T: Float> {
    program: &'a Program,
    registers: &'a Registers,
    concatenated_row_lens: &'a [usize],
    reduced: &'a [ReducedOutput],
    inputs: &'a [Input<'a, T>],
    tiling: &'a Tiling,
    /// True if [whole](Output::Whole) outputs are written with stores that bypass the caches: by [`cpu::stream`], or by the loop of an
    /// instruction.
    is_streamed: bool,
}

impl<T: Float> BlockRun<'_, T> {
    /// Runs the blocks of one task. `outputs` has, for each output, the part that the task writes. For a reduction, it has the task's own
    /// totals.
    fn run(&self, task: usize, outputs: SmallVec<[&mut [T]; 4]>) -> Result<(), AllocationError> {
        // Slots begin at a cache line and consist of whole cache lines.
        let width = self.tiling.block_len.next_multiple_of(VECTOR_BYTES / size_of::<T>());
        let first = FirstSlots::new(self.registers.slots, outputs.len());
        let count = first.gathered + self.inputs.len();
        T::with_memory(count * width, |memory| {
            let mut slots: SmallVec<[&mut [T]; 16]> = memory.chunks_exact_mut(width).collect();
            let first_output = slots.len();
            slots.extend(outputs.iter().map(|_| Default::default()));
            let values = self.inputs.len() + self.program.instructions().len() + FirstSlots::SPARE;
            let mut values: SmallVec<[BlockValue<'_, T>; 32]> = smallvec![BlockValue::Splat(T::ZERO); values];
            // The list of slots includes parts of the outputs. So the slots and the outputs need the same lifetime.
            let outputs = outputs.into_iter().map(|part| &mut *part).collect();
            let (slots, values) = (&mut slots[..], &mut values[..]);
            BlockTask { shared: self, first_slots: first, first_output, slots, values, products: smallvec![] }
                .run(task, outputs)
        })??;
        if self.is_streamed {
            cpu::fence_streams();
        }
        Ok(())
    }
}

/// The index of the first slot of each kind of slots. The order of the kinds is: registers, scratch memory for outputs that are not
/// computed in place, [`FirstSlots::SPARE`] slots for expanded values, copied inputs, outputs.
#[derive(Clone, Copy)]
struct FirstSlots {
    scratch: usize,
    spare: usize,
    gathered: usize,
}

impl FirstSlots {
    const SPARE: usize = 3;

    fn new(registers: usize, outputs: usize) -> Self {
        let spare = registers + outputs;
        FirstSlots { scratch: registers, spare, gathered: spare + Self::SPARE }
    }
}

/// The state of a task, which runs its blocks one after the other on one thread.
struct BlockTask<'a, 's, 'r, T: Float> {
    shared: &'r BlockRun<'a, T>,
    first_slots: FirstSlots,
    first_output: usize,
    slots: &'s mut [&'r mut [T]],
    /// The values over the current block: the inputs, then the results of the instructions, then [expanded](Self::expand) values.
    values: &'s mut [BlockValue<'r, T>],
    /// The products of the current block that are not stored, because they are only summed: the index of each product and of its factors.
    products: SmallVec<[(usize, ValueIndex, ValueIndex); 2]>,
}

impl<'r, T: Float> BlockTask<'_, '_, 'r, T> {
    fn run(&mut self, task: usize, mut outputs: SmallVec<[&'r mut [T]; 4]>) -> Result<(), AllocationError> {
        let &BlockRun { program, registers, reduced, inputs, tiling, .. } = self.shared;
        let mut stages: SmallVec<[Stages<T>; 2]> = smallvec![];
        for ReducedOutput { output, accumulator, blocks_per_stage, .. } in reduced {
            stages.push(Stages::new(
                accumulator.op,
                *blocks_per_stage,
                tiling.max_blocks_per_task(),
                &mut *outputs[*output],
            )?);
        }
        let mut number = 0usize;
        tiling.for_each_block(task, |start, len| {
            let block = Block { start, len, rows: len.checked_div(tiling.row_len).unwrap_or(0) };
            for (k, output) in program.outputs().iter().enumerate() {
                let len = match output {
                    Output::Whole(_) => len,
                    Output::Concatenated(values, _) => len * values.len(),
                    Output::PerRow(_) => block.rows,
                    Output::Reduced(..) => continue,
                };
                let (part, rest) = take(&mut outputs[k]).split_at_mut(len);
                (self.slots[self.first_output + k], outputs[k]) = (part, rest);
            }
            if registers.sums_products {
                self.products.clear();
            }
            for (k, input) in inputs.iter().enumerate() {
                self.values[k] = self.read(k, input, block);
            }
            for (position, (&instruction, &register)) in
                program.instructions().iter().zip(&registers.results).enumerate()
            {
                if registers.sums_products
                    && registers.only_summed[position]
                    && self.skip_product(inputs.len() + position, instruction)
                {
                    continue;
                }
                let streamed = match self.shared.is_streamed && registers.only_written[position] {
                    true => self.stream(instruction, register, block),
                    false => None,
                };
                self.values[inputs.len() + position] = match streamed {
                    Some(value) => value,
                    None => self.compute(instruction, register, block),
                };
            }
            for (k, output) in program.outputs().iter().enumerate() {
                self.write_output(k, output, block);
            }
            for (ReducedOutput { value, output, accumulator, .. }, stages) in reduced.iter().zip(&mut stages) {
                let totals = &mut *outputs[*output];
                stages.begin_block(number, totals);
                let value = self.expand(*value, 0, block);
                let spare = take(&mut self.slots[self.first_slots.spare + 1]);
                match self.factors_of(value) {
                    Some((x, y)) => {
                        let (x, y) = (self.factor_elements(x, len), self.factor_elements(y, len));
                        accumulator.accumulate_products(x, y, start, totals, &mut spare[..len]);
                    }
                    None => accumulator.accumulate(self.operand(value, len), start, len, totals, &mut spare[..len]),
                }
                self.slots[self.first_slots.spare + 1] = spare;
            }
            number += 1;
        });
        reduced.iter().zip(&stages).for_each(|(reduced, stages)| stages.finish(&mut *outputs[reduced.output]));
        Ok(())
    }

    /// Returns a value as an operand: one number, the `len` elements of the block, or one element for each of `len` rows.
    #[inline(always)]
    fn operand(&self, value: usize, len: usize) -> Operand<'_, T> {
        // The value is matched by reference. A copy of the whole value would have to wait until the separate stores of its fields have
        // finished.
        match &self.values[value] {
            BlockValue::Splat(value) => Operand::Splat(*value),
            BlockValue::Input(elements) | BlockValue::InputRows(elements) => Operand::Slice(&elements[..len]),
            BlockValue::Slot(slot) | BlockValue::SlotRows(slot) => Operand::Slice(&self.slots[*slot][..len]),
        }
    }

    /// Returns the `len` elements of one factor of a product. The factor is stored, and the product is not.
    #[inline(never)]
    fn factor_elements(&self, factor: ValueIndex, len: usize) -> &[T] {
        match self.operand(factor as usize, len) {
            Operand::Slice(elements) => elements,
            Operand::Splat(_) => unreachable!("the factors are elements of the block"),
        }
    }

    /// Leaves out the computation of `product`, a multiplication or a square, and returns true, if each operand has all elements of the
    /// block. The sum of the product then multiplies the operands. Returns false if an operand is one number or has one element per row.
    #[inline(never)]
    fn skip_product(&mut self, product: usize, instruction: Instruction) -> bool {
        let is_stored =
            |value: ValueIndex| matches!(self.values[value as usize], BlockValue::Input(_) | BlockValue::Slot(_));
        let (x, y) = match instruction {
            Instruction::Binary(_, x, y) => (x, y),
            Instruction::Unary(_, x) => (x, x),
            _ => return false,
        };
        let is_skipped = is_stored(x) && is_stored(y);
        if is_skipped {
            self.products.push((product, x, y));
            self.values[product] = BlockValue::Input(&[]);
        }
        is_skipped
    }

    /// Returns the factors of the value with index `value`, if it is a product that is not stored.
    #[inline]
    fn factors_of(&self, value: usize) -> Option<(ValueIndex, ValueIndex)> {
        if !self.shared.registers.sums_products {
            return None;
        }
        self.products.iter().find(|(product, ..)| *product == value).map(|&(_, x, y)| (x, y))
    }

    /// Reads the elements of a block from the input with index `k`.
    #[inline(always)]
    fn read(&mut self, k: usize, input: &'r Input<'_, T>, block: Block) -> BlockValue<'r, T> {
        match input.borrow(block.start, block.len) {
            Some(Operand::Splat(value)) => BlockValue::Splat(value),
            Some(Operand::Slice(elements)) => BlockValue::Input(elements),
            None => self.gather(k, input, block),
        }
    }

    /// Reads a block whose elements are not contiguous from the input with index `k`. If each row of the block repeats one element, and
    /// these elements are contiguous, returns one element per row. Otherwise copies the block to a slot.
    fn gather(&mut self, k: usize, input: &'r Input<'_, T>, Block { start, len, rows }: Block) -> BlockValue<'r, T> {
        match input {
            Input::Strided(data, space) if rows > 1 && space.repeats_each_element(self.shared.tiling.row_len) => {
                let position = space.position(0, start);
                BlockValue::InputRows(&data[position..position + rows])
            }
            input => {
                let slot = self.first_slots.gathered + k;
                input.gather(start, &mut self.slots[slot][..len]);
                BlockValue::Slot(slot)
            }
        }
    }

    fn is_per_row(&self, value: usize) -> bool {
        matches!(self.values[value], BlockValue::InputRows(_) | BlockValue::SlotRows(_))
    }

    /// If the value with index `value` has one element per row, copies it to the spare slot `number` and repeats each element along its
    /// row. Returns the index of this copy. Returns `value` if no copy is needed.
    #[inline]
    fn expand(&mut self, value: usize, number: usize, block: Block) -> usize {
        if block.rows > 1 && self.is_per_row(value) { self.expand_rows(value, number, block) } else { value }
    }

    #[inline(never)]
    fn expand_rows(&mut self, value: usize, number: usize, block: Block) -> usize {
        let slot = self.first_slots.spare + number;
        let out = take(&mut self.slots[slot]);
        if let Operand::Slice(rows) = self.operand(value, block.rows) {
            out[..block.len]
                .chunks_exact_mut(self.shared.tiling.row_len)
                .zip(rows)
                .for_each(|(out, &value)| out.fill(value));
        }
        self.slots[slot] = out;
        let expanded = self.values.len() - FirstSlots::SPARE + number;
        self.values[expanded] = BlockValue::Slot(slot);
        expanded
    }

    /// Computes an instruction over a block. Returns the result if it is one number for the whole block. Otherwise writes the result to the
    /// slot of the register `register`, and returns this slot.
    #[inline(always)]
    fn compute(&mut self, instruction: Instruction, register: Register, block: Block) -> BlockValue<'r, T> {
        let (instruction, for_each_row) = match block.rows {
            // In a block of one row, a value with one element per row is a single number.
            ..=1 => (instruction, false),
            _ => match self.compute_rows(instruction, register, block) {
                Some(value) => return value,
                None => self.with_equal_forms(instruction, block),
            },
        };
        let slot = self.slot(register, for_each_row);
        let out = take(&mut self.slots[slot]);
        let len = if for_each_row { block.rows } else { block.len };
        let single = match instruction {
            Instruction::Reduce(op, x) => self.reduce(op, x as usize, block, out),
            _ => execute(instruction, |value| self.operand(value as usize, len), &mut out[..len]),
        };
        self.slots[slot] = out;
        match single {
            Some(value) => BlockValue::Splat(value),
            None if for_each_row => BlockValue::SlotRows(slot),
            None => BlockValue::Slot(slot),
        }
    }

    /// Computes addition, subtraction, multiplication or division over a block with stores that bypass the caches. The result must be
    /// written to one output and not be read by another instruction. Returns `None` for other instructions, for blocks of several rows, and
    /// if the result is one number.
    #[inline(never)]
    fn stream(&mut self, instruction: Instruction, register: Register, block: Block) -> Option<BlockValue<'r, T>> {
        let (Instruction::Binary(op, x, y), Register::Output(output)) = (instruction, register) else { return None };
        let is_number = |value: ValueIndex| matches!(self.values[value as usize], BlockValue::Splat(_));
        if !T::has_row_loop(op) || block.rows > 1 || is_number(x) && is_number(y) {
            return None;
        }
        let slot = self.first_output + output as usize;
        let out = take(&mut self.slots[slot]);
        let operand = |value: ValueIndex| self.operand(value as usize, block.len);
        T::stream(op, operand(x), operand(y), &mut out[..block.len]);
        self.slots[slot] = out;
        Some(BlockValue::Slot(slot))
    }

    /// Returns the slot of a result: a register, the output itself, or scratch memory that is copied to the output later.
    #[inline(always)]
    fn slot(&self, register: Register, for_each_row: bool) -> usize {
        match register {
            Register::Slot(slot) => slot as usize,
            Register::Output(output) if self.shared.is_streamed || for_each_row => {
                self.first_slots.scratch + output as usize
            }
            Register::Output(output) => self.first_output + output as usize,
        }
    }

    /// Computes an operation on two values: one has all elements of the block, the other has one element per row. Returns `None` for other
    /// operands, for short rows, or if there is no loop for the operation.
    #[inline(never)]
    fn compute_rows(
        &mut self,
        instruction: Instruction,
        register: Register,
        block: Block,
    ) -> Option<BlockValue<'r, T>> {
        let (Instruction::Binary(_, x, y), columns) = (instruction, self.shared.tiling.row_len) else { return None };
        if columns < MIN_SCALED_ROW || self.is_per_row(x as usize) == self.is_per_row(y as usize) {
            return None;
        }
        let slot = self.slot(register, false);
        let out = take(&mut self.slots[slot]);
        let operand = |value: ValueIndex| {
            let has_columns = !self.is_per_row(value as usize);
            let row_stride = if has_columns { columns } else { 1 };
            match self.operand(value as usize, if has_columns { block.len } else { block.rows }) {
                Operand::Slice(data) => Some(RowOperand { data, row_stride, has_columns }),
                Operand::Splat(_) => None,
            }
        };
        let computed = execute_rows(instruction, columns, operand, &mut out[..block.len]);
        self.slots[slot] = out;
        computed.then_some(BlockValue::Slot(slot))
    }

    /// Returns the instruction for a block of several rows, and true if its result has one element per row. If operands of both kinds occur
    /// (one element per row, and all elements of the block), the returned instruction reads [expanded](Self::expand) operands.
    #[inline(never)]
    fn with_equal_forms(&mut self, instruction: Instruction, block: Block) -> (Instruction, bool) {
        let (mut rows, mut elements) = (false, false);
        for value in instruction.operands() {
            match self.values[value as usize] {
                BlockValue::Splat(_) => {}
                BlockValue::Input(_) | BlockValue::Slot(_) => elements = true,
                BlockValue::InputRows(_) | BlockValue::SlotRows(_) => rows = true,
            }
        }
        if let Instruction::Reduce(..) = instruction {
            return (instruction, rows || elements);
        }
        if !(rows && elements) {
            return (instruction, rows);
        }
        let mut number = 0;
        let expanded = instruction.with_operands(|value| {
            number += 1;
            self.expand(value as usize, number - 1, block) as ValueIndex
        });
        (expanded, false)
    }

    /// Reduces each row of a block. If all rows have the same result, returns this result. Otherwise writes the result of each row to
    /// `out`, and returns `None`.
    fn reduce(&self, op: Reduction, x: usize, block: Block, out: &mut [T]) -> Option<T> {
        let (row, by_rows) = (self.shared.tiling.row_len, self.is_per_row(x));
        if let Some(factors) = self.factors_of(x) {
            return self.sum_products(factors, block, out);
        }
        match self.operand(x, if by_rows { block.rows } else { block.len }) {
            Operand::Slice(x) if by_rows => {
                out.iter_mut().zip(x).for_each(|(out, &x)| *out = operand_total(op, Operand::Splat(x), row));
            }
            Operand::Slice(x) if block.rows > 1 => T::reduce_each(op, x, row, row, &mut out[..block.rows]),
            x => return Some(operand_total(op, x, row)),
        }
        None
    }

    /// Does the same as [`reduce`](Self::reduce) for the sum of a product that is not stored: multiplies and adds the two factors.
    #[inline(never)]
    fn sum_products(&self, (x, y): (ValueIndex, ValueIndex), block: Block, out: &mut [T]) -> Option<T> {
        let (x, y) = (self.factor_elements(x, block.len), self.factor_elements(y, block.len));
        if block.rows <= 1 {
            return Some(total_of_products(x, y));
        }
        T::sums_of_products(x, y, self.shared.tiling.row_len, &mut out[..block.rows]);
        None
    }

    /// Writes a block of the output with index `k`. Does nothing if the block was computed in place, or if the output is a reduction.
    #[inline]
    fn write_output(&mut self, k: usize, output: &Output, block: Block) {
        let slot = self.first_output + k;
        match *output {
            Output::Whole(value) => {
                if !matches!(self.values[value as usize], BlockValue::Slot(own) if own == slot) {
                    self.copy(value as usize, slot, block);
                }
            }
            Output::Concatenated(ref values, _) => {
                for (number, &value) in values.iter().enumerate() {
                    let value = self.expand(value as usize, 0, block);
                    let out = take(&mut self.slots[slot]);
                    let place = (number, values.len());
                    rows::write_concatenated_part(
                        self.operand(value, block.len),
                        self.shared.concatenated_row_lens[k],
                        place,
                        out,
                    );
                    self.slots[slot] = out;
                }
            }
            Output::PerRow(value) => {
                let value = value as usize;
                let (len, step) =
                    if self.is_per_row(value) { (block.rows, 1) } else { (block.len, self.shared.tiling.row_len) };
                let out = take(&mut self.slots[slot]);
                match self.operand(value, len) {
                    Operand::Splat(value) => out.fill(value),
                    Operand::Slice(from) => {
                        out.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &from)| *to = from);
                    }
                }
                self.slots[slot] = out;
            }
            Output::Reduced(..) => {}
        }
    }

    fn copy(&mut self, value: usize, slot: usize, block: Block) {
        let value = self.expand(value, 0, block);
        let out = take(&mut self.slots[slot]);
        match self.operand(value, block.len) {
            Operand::Splat(value) => out.fill(value),
            Operand::Slice(from) if self.shared.is_streamed => cpu::stream(from, out),
            Operand::Slice(from) => out.copy_from_slice(from),
        }
        self.slots[slot] = out;
    }
}
