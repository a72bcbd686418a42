//! The registers of a fused program. A slot is used again after its value has been read for the last time.

use smallvec::SmallVec;

use crate::engine::program::{Output, Program};
use crate::scalar::instruction::{Instruction, ValueIndex};
use crate::{Binary, Unary};

/// The memory in which the result of an instruction is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// The slot with this index, in the memory of the thread that runs the program.
    Slot(u32),
    /// The current block's part of the output with this index.
    Output(u32),
}

/// The registers of the instructions of a program.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) results: Vec<Register>,
    /// For each instruction, true if its result is one output, and neither another output nor an instruction reads it. Such a result may be
    /// written with stores that bypass the caches.
    pub(crate) only_written: Vec<bool>,
    /// For each instruction, true if it computes a product that is [only summed](only_summed). Such an instruction may be skipped, because
    /// the sum multiplies the operands itself.
    pub(crate) only_summed: Vec<bool>,
    /// True if there is a product that is only summed.
    pub(crate) sums_products: bool,
    /// The number of slots in the memory of a thread.
    pub(crate) slots: usize,
}

impl Registers {
    /// Chooses the registers. `summed` has the operands of sums. An operand that is an [only summed](only_summed) product may be left out.
    pub(crate) fn new(program: &Program, summed: impl Iterator<Item = ValueIndex>) -> Self {
        let (inputs, instructions) = (program.inputs() as usize, program.instructions());
        let (reads, direct) = (reads(program), direct_outputs(program));
        let only_summed = only_summed(program, &reads, summed);
        let last_use = last_uses(program, &only_summed);
        let mut results: Vec<Register> = Vec::with_capacity(instructions.len());
        let mut free: Vec<u32> = Vec::new();
        let mut slots = 0;
        for position in 0..instructions.len() {
            let value = inputs + position;
            // The result gets its register before the registers of the operands become free. So no instruction writes to a register that it
            // reads.
            let result = match direct[value] {
                Some(output) => Register::Output(output),
                None => Register::Slot(free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                })),
            };
            results.push(result);
            let mut seen = [u32::MAX; 3];
            for (number, operand) in values_read(program, &only_summed, position).into_iter().enumerate() {
                let computed = (operand as usize).checked_sub(inputs).map(|number| results[number]);
                if let (Some(Register::Slot(slot)), false) = (computed, seen.contains(&operand))
                    && last_use[operand as usize] == position
                {
                    free.push(slot);
                }
                seen[number] = operand;
            }
            if let (Register::Slot(slot), 0) = (result, last_use[value]) {
                // No instruction reads the result.
                free.push(slot);
            }
        }
        let only_written = (inputs..direct.len()).map(|value| direct[value].is_some() && reads[value] == 1).collect();
        let sums_products = only_summed.contains(&true);
        Registers { results, only_written, only_summed, sums_products, slots: slots as usize }
    }
}

/// Returns, for each instruction, true if it computes a product or a square that is one of the values `summed`, and is not read otherwise.
/// The sum multiplies the operands itself, so the product need not be stored.
fn only_summed(program: &Program, reads: &[usize], summed: impl Iterator<Item = ValueIndex>) -> Vec<bool> {
    let (inputs, instructions) = (program.inputs(), program.instructions());
    let mut only_summed = vec![false; instructions.len()];
    for value in summed.filter(|&value| value >= inputs && reads[value as usize] == 1) {
        let position = (value - inputs) as usize;
        only_summed[position] = matches!(
            instructions[position],
            Instruction::Binary(Binary::Mul, ..) | Instruction::Unary(Unary::Square, _)
        );
    }
    only_summed
}

/// Returns the values that are read when the instruction at `position` runs. For the sum of a product that is not stored, also returns the
/// operands of this product.
fn values_read(program: &Program, only_summed: &[bool], position: usize) -> SmallVec<[ValueIndex; 3]> {
    let instruction = program.instructions()[position];
    let mut values: SmallVec<[ValueIndex; 3]> = instruction.operands().collect();
    if let Instruction::Reduce(_, value) = instruction {
        values.extend(operands_of_product(program, only_summed, value));
    }
    values
}

/// Returns the operands of the product `value` if it is one of the products that are only summed. Otherwise returns no values.
fn operands_of_product(program: &Program, only_summed: &[bool], value: ValueIndex) -> SmallVec<[ValueIndex; 3]> {
    match value.checked_sub(program.inputs()) {
        Some(position) if only_summed[position as usize] => {
            program.instructions()[position as usize].operands().collect()
        }
        _ => SmallVec::new(),
    }
}

/// Returns, for each value, the position of the last instruction that reads it. The position is `usize::MAX` if an output reads the value, or
/// reads a product of the value that is only summed. It is 0 if nothing reads the value.
fn last_uses(program: &Program, only_summed: &[bool]) -> Vec<usize> {
    let mut last_use = vec![0; program.inputs() as usize + program.instructions().len()];
    for position in 0..program.instructions().len() {
        for value in values_read(program, only_summed, position) {
            last_use[value as usize] = position;
        }
    }
    for &value in program.outputs().iter().flat_map(Output::values) {
        for value in operands_of_product(program, only_summed, value).into_iter().chain([value]) {
            last_use[value as usize] = usize::MAX;
        }
    }
    last_use
}

/// Returns, for each value, the number of times that instructions and outputs read it.
fn reads(program: &Program) -> Vec<usize> {
    let mut reads = vec![0; program.inputs() as usize + program.instructions().len()];
    let of_outputs = program.outputs().iter().flat_map(|output| output.values().iter().copied());
    let of_instructions = program.instructions().iter().flat_map(|instruction| instruction.operands());
    of_outputs.chain(of_instructions).for_each(|value| reads[value as usize] += 1);
    reads
}

/// Returns, for each value, the index of its first [`Output::Whole`], if there is one. If an instruction computes the value, this output is
/// the register of its result.
fn direct_outputs(program: &Program) -> Vec<Option<u32>> {
    let mut direct = vec![None; program.inputs() as usize + program.instructions().len()];
    for (number, output) in program.outputs().iter().enumerate() {
        if let Output::Whole(value) = output {
            direct[*value as usize].get_or_insert(number as u32);
        }
    }
    direct
}
