//! A fused program: several operations over one shape, run block by block, so that what lies between them stays in the
//! first-level cache and is never written to memory.
//!
//! A program is a list of instructions in order. Its values are numbered: first its inputs, then the result of each
//! instruction. It knows nothing of who made it and why.
//!
//! Reductions come in two kinds. One that [`Instruction::Reduce`] makes along a whole row is there for the instructions
//! after it, in the same pass: softmax reads its operand once. One that an [`Output::Reduced`] makes over any dimensions is
//! there when the program has run.

use smallvec::SmallVec;

use crate::engine::registers::Plan;
use crate::engine::run;
use crate::memory::reserve::Refused;
use crate::memory::storage::Storage;
use crate::scalar::instruction::Reduction;
use crate::shape::error::{Error, Site};
use crate::tensor::tensor::addressable;
use crate::{Float, Layout, Shape, Tensor};

pub use crate::engine::bind::Binding;
pub use crate::scalar::instruction::{Instruction, Value};

/// A set of dimensions: bit k is dimension k.
pub type AxisSet = u64;

/// What a program is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A value over the whole shape.
    Whole(Value),
    /// A value that is one number for each row: the row's dimensions have size 1.
    PerRow(Value),
    /// A value reduced over some dimensions, which stay with size 1.
    Reduced(Reduction, Value, AxisSet),
}

impl Output {
    /// The value it is made of.
    pub fn value(&self) -> Value {
        match *self {
            Output::Whole(value) | Output::PerRow(value) | Output::Reduced(_, value, _) => value,
        }
    }
}

/// An input of a program as it is run.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a, T: Float> {
    /// A tensor that expands to the program's shape, whatever its layout. Leading sizes of 1 do not count.
    Tensor(&'a Tensor<T>),
    /// One number for all elements.
    Number(T),
}

/// The results of a program, in the order of its outputs.
pub type Results<T> = SmallVec<[Tensor<T>; 1]>;

/// Instructions over one shape.
#[derive(Clone, Debug)]
pub struct Program {
    inputs: u32,
    instructions: Vec<Instruction>,
    outputs: Vec<Output>,
    row: Option<usize>,
    plan: Plan,
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
            let exists = output.value() < count && (!matches!(output, Output::PerRow(_)) || row.is_some());
            assert!(exists, "{output:?} does not exist");
        }
        let plan = Plan::new(inputs as usize, &instructions, &outputs);
        Program { inputs, instructions, outputs, row, plan }
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

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The outputs over `shape`, to which every input expands.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold an output.
    ///
    /// # Panics
    ///
    /// Where an input does not expand to `shape`, or rows are reduced and have no elements.
    pub fn run<T: Float>(&self, inputs: &[Argument<'_, T>], shape: &Shape, at: Site) -> Result<Results<T>, Error> {
        self.run_again(inputs, shape, &mut None, at)
    }

    /// [`run`](Self::run), over the same shape as before: how inputs of their layouts are read is kept in `binding`.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold an output.
    ///
    /// # Panics
    ///
    /// Where an input does not expand to `shape`, or rows are reduced and have no elements.
    pub fn run_again<T: Float>(
        &self,
        inputs: &[Argument<'_, T>],
        shape: &Shape,
        binding: &mut Option<Box<Binding>>,
        at: Site,
    ) -> Result<Results<T>, Error> {
        debug_assert_eq!(inputs.len(), self.inputs as usize);
        assert!(self.row.is_none() || shape.numel() > 0, "rows of no elements are not reduced");
        let binding = match binding {
            Some(binding) if binding.serves(inputs) => binding,
            binding => {
                let outputs: SmallVec<[Shape; 2]> =
                    self.outputs.iter().map(|output| self.shape_of(output, shape)).collect();
                for shape in &outputs {
                    addressable::<T>(shape, at)?;
                }
                binding.insert(Box::new(Binding::new(self, inputs, shape, outputs)))
            }
        };
        let mut buffers: SmallVec<[Storage<T>; 2]> = SmallVec::new();
        for layout in &binding.outputs {
            let shape = layout.shape();
            let refused = |_: Refused| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
            buffers.push(Storage::scratch(shape.numel()).map_err(refused)?);
        }
        let mut results: SmallVec<[&mut [T]; 4]> = SmallVec::new();
        for storage in &mut buffers {
            match storage.get_mut() {
                Some(data) => results.push(data),
                None => unreachable!("a fresh buffer has one holder"),
            }
        }
        run::run(self, binding, inputs, &mut results);
        drop(results);
        let tensor = |(storage, layout): (_, &Layout)| Tensor::from_parts(storage, layout.clone());
        Ok(buffers.into_iter().zip(&binding.outputs).map(tensor).collect())
    }

    /// The shape of an output of the program over `shape`.
    pub(crate) fn shape_of(&self, output: &Output, shape: &Shape) -> Shape {
        let mut result = shape.clone();
        match *output {
            Output::Whole(_) => {}
            Output::PerRow(_) => result[self.row.unwrap_or(0)..].fill(1),
            Output::Reduced(_, _, axes) => {
                result.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, size)| *size = 1);
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::scalar::instruction::{Binary, Compare, Unary};

    fn at() -> Site {
        Site::here("test")
    }

    fn shapes() -> [Shape; 9] {
        [
            // Rows that are reduced and repeated several to a block, in blocks that they fill and do not.
            Shape::from([307, 10]),
            Shape::from([41, 9, 7]),
            Shape::from([5, 3, 400]),
            Shape::from([3, 700]),
            Shape::from([70_000]),
            Shape::scalar(),
            Shape::from([2, 0]),
            Shape::from([5, 4, 3, 2]),
            Shape::from([40, 30, 70]),
        ]
    }

    #[test]
    fn a_program_equals_its_operations_one_at_a_time() {
        for shape in shapes() {
            let x = Tensor::<f64>::from_fn(&shape, |index| index.iter().sum::<usize>() as f64 * 0.01 - 1.0);
            let y = Tensor::scalar(0.75);
            let row = Tensor::<f64>::from_fn([*shape.last().unwrap_or(&1)], |index| index[0] as f64 * 0.25);
            let column = match shape.rank() {
                0 | 1 => Tensor::scalar(3.0),
                _ => x.slice(-1, None, Some(1), 1),
            };
            if !shape.is_empty() && shape.numel() > 0 {
                let sum = vec![Instruction::Binary(Binary::Add, 0, 1), Instruction::Binary(Binary::Mul, 2, 3)];
                let program = Program::new(3, sum, vec![Output::Whole(4)], None);
                let inputs = [Argument::Tensor(&row), Argument::Tensor(&column), Argument::Tensor(&x)];
                assert_eq!(program.run(&inputs, &shape, at()).unwrap()[0], (&row + &column) * &x, "{shape}");
            }
            let program = Program::new(
                3,
                vec![
                    Instruction::Binary(Binary::Mul, 0, 1),
                    Instruction::Unary(Unary::Tanh, 3),
                    Instruction::Compare(Compare::Lt, 4, 1),
                    Instruction::Select(5, 0, 4),
                    Instruction::Binary(Binary::Add, 6, 2),
                    Instruction::Unary(Unary::Exp, 1),
                ],
                vec![Output::Whole(7), Output::Whole(5), Output::Whole(0), Output::Whole(8)],
                None,
            );
            let inputs = [Argument::Tensor(&x), Argument::Tensor(&y), Argument::Number(2.0)];
            let results = program.run(&inputs, &shape, at()).unwrap();
            let y = y.expand(&shape);
            let t = (&x * &y).tanh();
            let mask = t.lt(&y);
            assert_eq!(results[0], where_(&mask, &x, &t) + 2.0);
            assert_eq!(results[1], mask.cast());
            assert_eq!(results[2], x);
            assert_eq!(results[3], y.exp());
        }
    }

    #[test]
    fn reductions_over_every_set_of_dimensions() {
        for shape in shapes() {
            let x =
                Tensor::<f64>::from_fn(&shape, |index| index.iter().fold(1, |sum, i| 7 * sum + i) as f64 % 13.0 - 5.0);
            for axes in 0..1u64 << shape.rank() {
                let list: Vec<isize> = (0..shape.rank()).filter(|&k| axes >> k & 1 == 1).map(|k| k as isize).collect();
                let outputs = vec![
                    Output::Reduced(Reduction::Sum, 1, axes),
                    Output::Reduced(Reduction::Amax, 0, axes),
                    Output::Whole(1),
                ];
                let program = Program::new(1, vec![Instruction::Unary(Unary::Square, 0)], outputs, None);
                let results = program.run(&[Argument::Tensor(&x)], &shape, at()).unwrap();
                let sum = if list.is_empty() { x.square() } else { x.square().sum(&list[..], true) };
                // The squares are whole numbers: every order of summation gives the same.
                assert_eq!(results[0], sum, "{shape} over {list:?}");
                assert_eq!(results[2], x.square());
                if shape.numel() > 0 && !list.is_empty() {
                    assert_eq!(results[1], x.amax(&list[..], true));
                }
            }
        }
    }

    #[test]
    fn a_row_is_read_again_after_its_reduction() {
        for (shape, row) in [([60, 50], 1), ([3, 4], 1), ([1, 20_000], 1), ([300, 9], 0)] {
            let shape = Shape::from(shape);
            let x = Tensor::<f64>::from_fn(&shape, |index| (index[0] * 31 + index[1] * 17 % 23) as f64 * 0.1);
            let instructions = vec![
                Instruction::Reduce(Reduction::Amax, 0),
                Instruction::Binary(Binary::Sub, 0, 1),
                Instruction::Unary(Unary::Exp, 2),
                Instruction::Reduce(Reduction::Sum, 3),
                Instruction::Unary(Unary::Log, 4),
                Instruction::Binary(Binary::Sub, 2, 5),
            ];
            let outputs = vec![Output::Whole(6), Output::PerRow(1), Output::Reduced(Reduction::Sum, 3, 1)];
            let program = Program::new(1, instructions, outputs, Some(row));
            let results = program.run(&[Argument::Tensor(&x)], &shape, at()).unwrap();
            let dims: Vec<isize> = (row as isize..2).collect();
            let largest = x.amax(&dims[..], true);
            let e = (&x - &largest).exp();
            let expected = &x - &largest - e.sum(&dims[..], true).log();
            approx::assert_relative_eq!(results[0], expected, max_relative = 1e-13, epsilon = 1e-13);
            assert_eq!(results[1], largest);
            approx::assert_relative_eq!(results[2], e.sum(0, true), max_relative = 1e-13);
        }
    }

    #[test]
    fn what_there_is_one_of_for_each_row() {
        for shape in [[300, 9], [7, 33], [2, 3], [1, 40], [90, 600]] {
            let shape = Shape::from(shape);
            let x = Tensor::<f64>::from_fn(&shape, |index| ((index[0] * 31 + index[1] * 17) % 23) as f64);
            let column = Tensor::<f64>::from_fn([shape[0], 1], |index| index[0] as f64);
            // Whole numbers: every order of summation gives the same.
            let instructions = vec![
                Instruction::Reduce(Reduction::Sum, 0),     // 2: a number for each row
                Instruction::Binary(Binary::Add, 2, 1),     // 3: of it and an input that has one for each row
                Instruction::Reduce(Reduction::Sum, 3),     // 4: as many times as a row has elements
                Instruction::Select(3, 0, 4),               // 5: over the row, of all three kinds
                Instruction::Binary(Binary::Mul, 3, 3),     // 6
                Instruction::Binary(Binary::Maximum, 1, 0), // 7
            ];
            let outputs = vec![
                Output::Whole(5),
                Output::Whole(6),
                Output::PerRow(4),
                Output::PerRow(1),
                Output::Reduced(Reduction::Sum, 3, 1),
                Output::Reduced(Reduction::Amax, 6, 2),
                Output::Whole(7),
            ];
            let program = Program::new(2, instructions, outputs, Some(1));
            let inputs = [Argument::Tensor(&x), Argument::Tensor(&column)];
            let results = program.run(&inputs, &shape, at()).unwrap();
            let third = x.sum(1, true) + &column;
            let fourth = &third * shape[1] as f64;
            let wide = third.expand(&shape);
            assert_eq!(results[0], where_(&wide.ne(0.0), &x, fourth.expand(&shape)), "{shape}");
            assert_eq!(results[1], wide.square(), "{shape}");
            assert_eq!((&results[2], &results[3]), (&fourth, &column), "{shape}");
            assert_eq!(results[4], wide.sum(0, true), "{shape}");
            assert_eq!(results[5], third.square(), "{shape}");
            assert_eq!(results[6], x.maximum(&column), "{shape}");
        }
    }

    #[test]
    fn results_larger_than_the_cache() {
        let shape = Shape::from([2100, 2053]);
        let x = Tensor::<f32>::from_fn(&shape, |index| (index[0] * 3 + index[1]) as f32 % 7.0);
        let row = x.select(0, 5).copied(at()).unwrap();
        let instructions = vec![Instruction::Binary(Binary::Add, 0, 1), Instruction::Unary(Unary::Square, 2)];
        let outputs = vec![Output::Whole(3), Output::Whole(2), Output::Whole(1), Output::Reduced(Reduction::Sum, 2, 1)];
        let program = Program::new(2, instructions, outputs, None);
        let results = program.run(&[Argument::Tensor(&x), Argument::Tensor(&row)], &shape, at()).unwrap();
        assert!(results[1] == &x + &row && results[0] == (&x + &row).square() && results[2] == row.expand(&shape));
        assert_eq!(results[3], (&x + &row).sum(0, true));
    }

    #[test]
    #[should_panic(expected = "reads what is not there yet")]
    fn an_instruction_reads_only_what_is_before_it() {
        Program::new(1, vec![Instruction::Unary(Unary::Exp, 1)], vec![Output::Whole(1)], None);
    }
}
