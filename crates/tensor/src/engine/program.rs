//! A fused program: several operations over one shape, run block by block, so that what lies between them stays in the
//! first-level cache and is never written to memory.
//!
//! A program is a list of instructions in order. Its values are numbered: first its inputs, then the result of each
//! instruction. It knows nothing of who made it and why.
//!
//! Reductions come in two kinds. One that [`Instruction::Reduce`] makes along a whole row is there for the instructions
//! after it, in the same pass: softmax reads its operand once. One that an [`Output::Reduced`] makes over any dimensions is
//! there when the program has run.

use crate::scalar::instruction::{Instruction, Value};
use crate::{Reduction, Shape};

/// A set of dimensions: bit k is dimension k.
pub type AxisSet = u64;

/// What a program is run for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value over the whole shape.
    Whole(Value),
    /// Values over the whole shape, one after the other along this dimension.
    Joined(Box<[Value]>, usize),
    /// A value that is one number for each row: the row's dimensions have size 1.
    PerRow(Value),
    /// A value reduced over some dimensions, which stay with size 1.
    Reduced(Reduction, Value, AxisSet),
}

impl Output {
    /// Elements of one value that lie together before those of the next, where values are joined over `shape`; else 0.
    pub(crate) fn joined_row(&self, shape: &Shape) -> usize {
        if let Output::Joined(_, axis) = self { shape[*axis..].iter().product() } else { 0 }
    }

    /// The values it is made of.
    pub fn values(&self) -> &[Value] {
        match self {
            Output::Whole(value) | Output::PerRow(value) | Output::Reduced(_, value, _) => std::slice::from_ref(value),
            Output::Joined(values, _) => values,
        }
    }
}

/// Instructions over one shape.
#[derive(Clone, Debug)]
pub struct Program {
    inputs: u32,
    instructions: Vec<Instruction>,
    outputs: Vec<Output>,
    row: Option<usize>,
}

impl Program {
    /// A program of `inputs` inputs. Where it reduces rows, `row` is the first dimension of a row, which ends with the last.
    ///
    /// # Panics
    ///
    /// Where an instruction reads a value that comes after it, an output does not exist, or rows are reduced and `row` does
    /// not say what a row is: mistakes of whoever made the program, not of its data.
    pub fn new(inputs: u32, instructions: Vec<Instruction>, outputs: Vec<Output>, row: Option<usize>) -> Self {
        for (position, instruction) in instructions.iter().enumerate() {
            let defined = inputs + position as u32;
            assert!(instruction.operands().all(|value| value < defined), "{instruction:?} reads what is not there yet");
            let reduces = matches!(instruction, Instruction::Reduce(..));
            assert!(!reduces || row.is_some(), "{instruction:?} needs rows");
        }
        let count = inputs + instructions.len() as u32;
        for output in &outputs {
            let exist = output.values().iter().all(|&value| value < count);
            assert!(exist && (!matches!(output, Output::PerRow(_)) || row.is_some()), "{output:?} does not exist");
        }
        Program { inputs, instructions, outputs, row }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// What the program is run for.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The first dimension of a row, where rows are reduced.
    pub fn row(&self) -> Option<usize> {
        self.row
    }

    /// The shape of an output of the program over `shape`.
    pub(crate) fn shape_of(&self, output: &Output, shape: &Shape) -> Shape {
        let mut result = shape.clone();
        match output {
            Output::Whole(_) => {}
            // Clamped, a size is more than memory can be.
            Output::Joined(values, axis) => result[*axis] = result[*axis].saturating_mul(values.len()),
            Output::PerRow(_) => result[self.row.unwrap_or(0)..].fill(1),
            Output::Reduced(_, _, axes) => {
                result.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, size)| *size = 1);
            }
        }
        result
    }
}
