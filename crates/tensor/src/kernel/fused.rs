//! Running a fused program: for each block of elements all instructions, over registers of one block each.
//!
//! Registers are reused as soon as their value has been read for the last time; a value that is an output is computed in
//! the output's own memory. Blocks do not depend on one another and their boundaries on the shape alone: any number of
//! threads gives the same bits.

use rayon::prelude::*;

use super::block::{self, Operand};
use super::map::{self, PARALLEL};
use crate::nest::Nest;
use crate::program::{Instruction, Program};
use crate::{Float, Layout, Shape, Tensor};

/// Where a value lives while a block is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Input(usize),
    Register(usize),
    Output(usize),
}

/// Whether the element type has every instruction.
pub(crate) fn check<T: Float>(instructions: &[Instruction]) -> Result<(), ()> {
    let nothing = Operand::Splat(T::ZERO);
    let has = |instruction: &Instruction| match *instruction {
        Instruction::Unary(op, _) => T::unary(op, nothing, &mut []),
        Instruction::Binary(op, _, _) => T::binary(op, nothing, nothing, &mut []),
        Instruction::Compare(..) | Instruction::Select(..) => true,
    };
    if instructions.iter().all(has) { Ok(()) } else { Err(()) }
}

/// Runs `program`; each of `results` has as many elements as `shape`.
pub(crate) fn run<T: Float>(program: &Program, inputs: &[Tensor<T>], shape: &Shape, results: &mut [Vec<T>]) {
    let count = shape.numel();
    if count == 0 {
        return;
    }
    let plan = Plan::new(program);
    let sources: Vec<(&[T], Nest<1>)> = inputs
        .iter()
        .map(|input| {
            let layout: &Layout = input.layout();
            (input.source().data, Nest::new(shape, [layout]))
        })
        .collect();
    // Where an operand has rows, blocks are made of whole rows or of parts of one.
    let row = sources.iter().map(|(_, nest)| nest.row()).min().unwrap_or(count);
    let block = map::block_length(row);
    let task = if count < PARALLEL { count } else { (PARALLEL / 4).div_ceil(block) * block };

    let mut tasks: Vec<Vec<&mut [T]>> = (0..count.div_ceil(task)).map(|_| Vec::with_capacity(results.len())).collect();
    for result in results {
        for (parts, part) in tasks.iter_mut().zip(result.chunks_mut(task)) {
            parts.push(part);
        }
    }
    let work = |(number, mut parts): (usize, Vec<&mut [T]>)| {
        let mut registers = vec![vec![T::ZERO; block]; plan.registers];
        let mut gathered = vec![Vec::new(); sources.len()];
        let mut flags = vec![false; block];
        let len = parts.first().map_or(0, |part| part.len());
        for start in (0..len).step_by(block) {
            let size = block.min(len - start);
            let operands: Vec<Operand<'_, T>> = sources
                .iter()
                .zip(&mut gathered)
                .map(|((data, nest), scratch)| map::operand(nest, 0, data, number * task + start, size, scratch))
                .collect();
            plan.run_block(program, &operands, &mut registers, &mut parts, start, size, &mut flags);
        }
    };
    if tasks.len() == 1 {
        tasks.into_iter().enumerate().for_each(work);
    } else {
        tasks.into_par_iter().enumerate().for_each(work);
    }
}

/// Where each value of a program lives.
struct Plan {
    places: Vec<Place>,
    registers: usize,
}

impl Plan {
    fn new(program: &Program) -> Self {
        let inputs = program.inputs() as usize;
        let count = inputs + program.instructions().len();
        let mut last_use = vec![0; count];
        for (position, instruction) in program.instructions().iter().enumerate() {
            for value in instruction.operands() {
                last_use[value as usize] = position;
            }
        }
        let mut places: Vec<Place> = (0..inputs).map(Place::Input).collect();
        let mut free: Vec<usize> = Vec::new();
        let mut registers = 0;
        for (position, instruction) in program.instructions().iter().enumerate() {
            let value = inputs + position;
            let output = program.outputs().iter().position(|&output| output as usize == value);
            // The result's place is taken before the operands' are given back: no instruction reads where it writes.
            places.push(match output {
                Some(output) => Place::Output(output),
                None => Place::Register(free.pop().unwrap_or_else(|| {
                    registers += 1;
                    registers - 1
                })),
            });
            let mut seen = [u32::MAX; 3];
            for (slot, operand) in instruction.operands().enumerate() {
                if let (Place::Register(register), false) = (places[operand as usize], seen.contains(&operand))
                    && last_use[operand as usize] == position
                {
                    free.push(register);
                }
                seen[slot] = operand;
            }
            if let (Place::Register(register), 0) = (places[value], last_use[value]) {
                // Nobody reads it.
                free.push(register);
            }
        }
        Plan { places, registers }
    }

    #[allow(clippy::too_many_arguments)]
    fn run_block<T: Float>(
        &self,
        program: &Program,
        operands: &[Operand<'_, T>],
        registers: &mut [Vec<T>],
        outputs: &mut [&mut [T]],
        start: usize,
        size: usize,
        flags: &mut [bool],
    ) {
        let inputs = operands.len();
        for (position, instruction) in program.instructions().iter().enumerate() {
            // The destination is taken out of its list, so that the others can be read meanwhile.
            let place = self.places[inputs + position];
            let mut register = Vec::new();
            let mut output: &mut [T] = &mut [];
            let target: &mut [T] = match place {
                Place::Register(number) => {
                    register = std::mem::take(&mut registers[number]);
                    &mut register[..size]
                }
                Place::Output(number) => {
                    output = std::mem::take(&mut outputs[number]);
                    &mut output[start..start + size]
                }
                Place::Input(_) => unreachable!("an instruction does not write to an input"),
            };
            {
                let read = |value: u32| match self.places[value as usize] {
                    Place::Input(number) => operands[number],
                    Place::Register(number) => Operand::Slice(&registers[number][..size]),
                    Place::Output(number) => Operand::Slice(&outputs[number][start..start + size]),
                };
                match *instruction {
                    Instruction::Unary(op, x) => {
                        T::unary(op, read(x), target);
                    }
                    Instruction::Binary(op, x, y) => {
                        T::binary(op, read(x), read(y), target);
                    }
                    Instruction::Compare(op, x, y) => {
                        T::compare(op, read(x), read(y), &mut flags[..size]);
                        let one = |flag: bool| if flag { T::ONE } else { T::ZERO };
                        block::one(Operand::Slice(&flags[..size]), target, one);
                    }
                    Instruction::Select(mask, x, y) => {
                        block::one(read(mask), &mut flags[..size], |mask| mask != T::ZERO);
                        block::select(Operand::Slice(&flags[..size]), read(x), read(y), target);
                    }
                }
            }
            match place {
                Place::Register(number) => registers[number] = register,
                Place::Output(number) => outputs[number] = output,
                Place::Input(_) => {}
            }
        }
    }
}
