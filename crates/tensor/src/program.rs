//! A fused elementwise program: several operations over one shape, run block by block, so that what lies between them stays
//! in the first-level cache and is never written to memory.
//!
//! A program is a list of instructions in order. Its values are numbered: first its inputs, then the result of each
//! instruction. It knows nothing of who made it and why.

use crate::error::{Error, Site};
use crate::kernel::fused;
use crate::kernel::instruction::{Binary, Compare, Unary};
use crate::memory;
use crate::storage::Storage;
use crate::tensor::addressable;
use crate::{Float, Layout, Shape, Tensor};

/// Number of a value within a program: inputs first, then the results of the instructions.
pub type Value = u32;

/// One instruction of a [`Program`]. A comparison gives 0 and 1; a selection takes what is not 0 as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A function of one value.
    Unary(Unary, Value),
    /// A function of two.
    Binary(Binary, Value, Value),
    /// A comparison, as 0 and 1.
    Compare(Compare, Value, Value),
    /// The second where the first is not 0, the third elsewhere.
    Select(Value, Value, Value),
}

impl Instruction {
    /// The values it reads.
    pub fn operands(&self) -> impl Iterator<Item = Value> + use<> {
        let (count, operands) = match *self {
            Instruction::Unary(_, x) => (1, [x, 0, 0]),
            Instruction::Binary(_, x, y) | Instruction::Compare(_, x, y) => (2, [x, y, 0]),
            Instruction::Select(mask, x, y) => (3, [mask, x, y]),
        };
        operands.into_iter().take(count)
    }
}

/// Elementwise instructions over one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    inputs: u32,
    instructions: Vec<Instruction>,
    outputs: Vec<Value>,
}

impl Program {
    /// A program of `inputs` inputs.
    ///
    /// # Panics
    ///
    /// Where an instruction reads a value that comes after it, or an output does not exist: a mistake of whoever made the
    /// program, not of its data.
    pub fn new(inputs: u32, instructions: Vec<Instruction>, outputs: Vec<Value>) -> Self {
        for (position, instruction) in instructions.iter().enumerate() {
            let defined = inputs + position as u32;
            assert!(instruction.operands().all(|value| value < defined), "{instruction:?} reads what is not there yet");
        }
        let count = inputs + instructions.len() as u32;
        assert!(outputs.iter().all(|&value| value >= inputs && value < count), "an output is an instruction's result");
        Program { inputs, instructions, outputs }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The values that are results of the program.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The outputs, for inputs that all have the shape `shape` (whatever their layouts).
    ///
    /// # Errors
    ///
    /// Where memory cannot hold an output, or the element type lacks an operation.
    pub fn run<T: Float>(&self, inputs: &[Tensor<T>], shape: &Shape, at: Site) -> Result<Vec<Tensor<T>>, Error> {
        debug_assert!(inputs.len() == self.inputs as usize && inputs.iter().all(|input| input.shape() == shape));
        fused::check::<T>(&self.instructions).map_err(|()| Error::ElementType { dtype: T::DTYPE, at })?;
        let count = addressable::<T>(shape, at)?;
        let mut results = Vec::with_capacity(self.outputs.len());
        for _ in &self.outputs {
            let refused = |_| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
            results.push(memory::zeroed::<T>(count).map_err(refused)?);
        }
        fused::run(self, inputs, shape, &mut results);
        Ok(results
            .into_iter()
            .map(|data| Tensor::from_parts(Storage::from_vec(data), Layout::contiguous(shape.clone())))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::TensorLike;
    use crate::prelude::*;

    #[test]
    fn a_program_equals_its_operations_one_at_a_time() {
        let at = Site::here("test");
        for shape in [Shape::from([3, 700]), Shape::from([70_000]), Shape::scalar(), Shape::from([2, 0])] {
            let x = Tensor::<f64>::from_fn(&shape, |index| index.iter().sum::<usize>() as f64 * 0.01 - 1.0);
            let y = Tensor::scalar(0.75).expand(&shape);
            let program = Program::new(
                2,
                vec![
                    Instruction::Binary(Binary::Mul, 0, 1),
                    Instruction::Unary(Unary::Tanh, 2),
                    Instruction::Compare(Compare::Lt, 3, 1),
                    Instruction::Select(4, 0, 3),
                    Instruction::Binary(Binary::Add, 5, 3),
                ],
                vec![6, 4],
            );
            let results = program.run(&[x.clone(), y.clone()], &shape, at).unwrap();
            let t = (&x * &y).tanh();
            let mask = t.lt(&y);
            let expected = where_(&mask, &x, &t) + &t;
            assert_eq!(results[0], expected);
            assert_eq!(results[1], mask.cast());
            assert_eq!(TensorLike::shape(&results[0]), shape);
        }
    }

    #[test]
    #[should_panic(expected = "reads what is not there yet")]
    fn an_instruction_reads_only_what_is_before_it() {
        Program::new(1, vec![Instruction::Unary(Unary::Exp, 1)], vec![1]);
    }
}
