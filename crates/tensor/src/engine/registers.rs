//! The registers of a fused program. A slot is used again after its value has been read for the last time.

use crate::engine::program::{Output, Program};

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
    /// The register of each instruction's result.
    pub(crate) results: Vec<Register>,
    /// For each instruction, true if its result is one output, and neither another output nor an instruction reads it. Such a result may be
    /// written with stores that bypass the caches.
    pub(crate) only_written: Vec<bool>,
    /// The number of slots in the memory of a thread.
    pub(crate) slots: usize,
}

impl Registers {
    pub(crate) fn new(program: &Program) -> Self {
        let (inputs, instructions) = (program.inputs() as usize, program.instructions());
        let (last_use, direct) = (last_uses(program), direct_outputs(program));
        let mut results: Vec<Register> = Vec::with_capacity(instructions.len());
        let mut free: Vec<u32> = Vec::new();
        let mut slots = 0;
        for (position, instruction) in instructions.iter().enumerate() {
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
            for (number, operand) in instruction.operands().enumerate() {
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
        let reads = reads(program);
        let only_written = (inputs..direct.len()).map(|value| direct[value].is_some() && reads[value] == 1).collect();
        Registers { results, only_written, slots: slots as usize }
    }
}

/// Returns, for each value, the position of the last instruction that reads it. The position is `usize::MAX` if the value is an output, and
/// 0 if no instruction reads the value.
fn last_uses(program: &Program) -> Vec<usize> {
    let mut last_use = vec![0; program.inputs() as usize + program.instructions().len()];
    for (position, instruction) in program.instructions().iter().enumerate() {
        instruction.operands().for_each(|value| last_use[value as usize] = position);
    }
    for output in program.outputs() {
        output.values().iter().for_each(|&value| last_use[value as usize] = usize::MAX);
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

/// Returns, for each value, the index of its first [`Output::Whole`], if there is one. The result of an instruction is computed directly in
/// this output where possible.
fn direct_outputs(program: &Program) -> Vec<Option<u32>> {
    let mut direct = vec![None; program.inputs() as usize + program.instructions().len()];
    for (number, output) in program.outputs().iter().enumerate() {
        if let Output::Whole(value) = output {
            direct[*value as usize].get_or_insert(number as u32);
        }
    }
    direct
}
