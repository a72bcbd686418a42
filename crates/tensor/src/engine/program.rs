//! A fused program: several operations over one shape. It runs block by block, so that the values between operations stay in the caches and
//! are not written to memory.
//!
//! A program is a list of instructions. Its values have indices: first come the inputs, then the results of the instructions.
//!
//! There are two kinds of reductions. [`Instruction::Reduce`] reduces whole rows, and later instructions of the same pass read the result,
//! so that softmax reads its operand only once. [`Output::Reduced`] reduces any dimensions, and its result is complete when the program has
//! run.

use crate::scalar::instruction::{Instruction, ValueIndex};
use crate::{Reduction, Shape};

/// A set of dimensions: bit k is 1 if dimension k is in the set.
pub type AxisSet = u64;

/// An output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value that has the program's shape.
    Whole(ValueIndex),
    /// Values that have the program's shape, concatenated along the dimension in the last field.
    Concatenated(Box<[ValueIndex]>, usize),
    /// A value with one element for each row. The output has the program's shape, but its row dimensions have size 1.
    PerRow(ValueIndex),
    /// A value reduced over some dimensions, which keep size 1.
    Reduced(Reduction, ValueIndex, AxisSet),
}

impl Output {
    /// For an [`Output::Concatenated`] over `shape`, returns the number of adjacent elements that come from one value. Returns 0 for other
    /// outputs.
    pub(crate) fn concatenated_row_len(&self, shape: &Shape) -> usize {
        if let Output::Concatenated(_, axis) = self { shape[*axis..].iter().product() } else { 0 }
    }

    /// Returns the values that the output contains.
    pub fn values(&self) -> &[ValueIndex] {
        match self {
            Output::Whole(value) | Output::PerRow(value) | Output::Reduced(_, value, _) => std::slice::from_ref(value),
            Output::Concatenated(values, _) => values,
        }
    }
}

/// Instructions that run over one shape, with their inputs and outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    inputs: u32,
    instructions: Vec<Instruction>,
    outputs: Vec<Output>,
    row_axis: Option<usize>,
}

impl Program {
    /// Makes a program with `inputs` inputs. A row consists of dimension `row_axis` and all later dimensions. Only programs that reduce
    /// rows need rows.
    ///
    /// # Panics
    ///
    /// If an instruction reads a value that is neither an input nor an earlier result, or if the value of an output does not exist. Also if
    /// `row_axis` is `None`, but rows are reduced or an output is an [`Output::PerRow`]. These are mistakes in the program and not in its
    /// data.
    pub fn new(inputs: u32, instructions: Vec<Instruction>, outputs: Vec<Output>, row_axis: Option<usize>) -> Self {
        for (position, instruction) in instructions.iter().enumerate() {
            let defined = inputs + position as u32;
            assert!(
                instruction.operands().all(|value| value < defined),
                "{instruction:?} reads a value that is not defined yet"
            );
            let reduces = matches!(instruction, Instruction::Reduce(..));
            assert!(!reduces || row_axis.is_some(), "{instruction:?} needs rows");
        }
        let count = inputs + instructions.len() as u32;
        for output in &outputs {
            let exist = output.values().iter().all(|&value| value < count);
            assert!(exist && (!matches!(output, Output::PerRow(_)) || row_axis.is_some()), "{output:?} does not exist");
        }
        Program { inputs, instructions, outputs, row_axis }
    }

    /// Returns the number of inputs.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Returns the instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Returns the first dimension of a row, or `None` if the program has no rows.
    pub fn row_axis(&self) -> Option<usize> {
        self.row_axis
    }

    /// Returns the shape of `output` when the program runs over `shape`.
    pub(crate) fn shape_of(&self, output: &Output, shape: &Shape) -> Shape {
        let mut result = shape.clone();
        match output {
            Output::Whole(_) => {}
            // If the size overflows, it is clamped. The clamped size is too large for a tensor, so the check of the output's shape returns
            // an error.
            Output::Concatenated(values, axis) => result[*axis] = result[*axis].saturating_mul(values.len()),
            Output::PerRow(_) => result[self.row_axis.unwrap_or(0)..].fill(1),
            Output::Reduced(_, _, axes) => {
                result.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, size)| *size = 1);
            }
        }
        result
    }
}
