//! Where the values of a fused program are computed: registers, each taken again as soon as its value has been read for the
//! last time.

use crate::engine::program::{Output, Program};

/// Where a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Register(u32),
    Output(u32),
}

/// Where each instruction's result is computed, and how many registers that takes.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) places: Vec<Place>,
    pub(crate) count: usize,
}

impl Registers {
    pub(crate) fn new(program: &Program) -> Self {
        let (inputs, instructions, outputs) = (program.inputs() as usize, program.instructions(), program.outputs());
        let mut last_use = vec![0; inputs + instructions.len()];
        for (position, instruction) in instructions.iter().enumerate() {
            for value in instruction.operands() {
                last_use[value as usize] = position;
            }
        }
        // What is reduced or copied at the end is read at the end.
        for output in outputs {
            output.values().iter().for_each(|&value| last_use[value as usize] = usize::MAX);
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
        Registers { places, count: registers as usize }
    }
}
