//! Runs fused programs on tensors. The engine itself works on slices and layouts and does not know the tensor type.

use smallvec::SmallVec;

use crate::{Element, Error, Float, Shape, Site, Tensor};

pub use crate::engine::access::ProgramArgument;
pub use crate::engine::bound::BoundProgram;
pub use crate::engine::program::{AxisSet, Output, Program};
pub use crate::scalar::instruction::{Instruction, ValueIndex};

/// The results of a program, in the order of its outputs.
pub type Results<T> = SmallVec<[Tensor<T>; 1]>;

impl<'a, T: Element> From<&'a Tensor<T>> for ProgramArgument<'a, T> {
    fn from(tensor: &'a Tensor<T>) -> Self {
        ProgramArgument::Elements(tensor.source())
    }
}

impl Program {
    /// Runs the program over `shape`, to which every input expands, and returns its outputs.
    ///
    /// # Errors
    ///
    /// If memory cannot hold an output, a copy of an input, or a temporary buffer of the program, or if one of them is too large.
    ///
    /// # Panics
    ///
    /// If the number of inputs is wrong, or an input does not expand to `shape`. The expansion is not checked for a contiguous input with
    /// as many elements as `shape`, for an input of one element, and for a `shape` without elements. Also panics if the program
    /// reduces rows and `shape` has no elements.
    pub fn run<T: Float>(
        &self,
        inputs: &[ProgramArgument<'_, T>],
        shape: &Shape,
        at: Site,
    ) -> Result<Results<T>, Error> {
        BoundProgram::new(self.clone(), shape.clone()).run(inputs, at, &mut [], Tensor::from_parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::{Binary, Compare, Reduction, Unary};

    fn at() -> Site {
        Site::here("test")
    }

    fn run<T: Float>(program: &mut BoundProgram, inputs: &[ProgramArgument<'_, T>]) -> Results<T> {
        program.run(inputs, at(), &mut [], Tensor::from_parts).unwrap()
    }

    fn shapes() -> [Shape; 9] {
        [
            // The engine computes an array in blocks of elements. With some of these shapes, a block has several rows, and the last block
            // is smaller.
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
                _ => x.slice(-1, ..1),
            };
            if !shape.is_empty() && shape.numel() > 0 {
                let sum = vec![Instruction::Binary(Binary::Add, 0, 1), Instruction::Binary(Binary::Mul, 2, 3)];
                let program = Program::new(3, sum, vec![Output::Whole(4)], None);
                let inputs = [ProgramArgument::from(&row), ProgramArgument::from(&column), ProgramArgument::from(&x)];
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
            let inputs = [ProgramArgument::from(&x), ProgramArgument::from(&y), ProgramArgument::Number(2.0)];
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
                let results = program.run(&[ProgramArgument::from(&x)], &shape, at()).unwrap();
                let sum = if list.is_empty() { x.square() } else { x.square().sum_keepdim(&list[..]) };
                // All values are small whole numbers, so every order of summation gives the same result.
                assert_eq!(results[0], sum, "{shape} over {list:?}");
                assert_eq!(results[2], x.square());
                if shape.numel() > 0 && !list.is_empty() {
                    assert_eq!(results[1], x.amax_keepdim(&list[..]));
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
            let results = program.run(&[ProgramArgument::from(&x)], &shape, at()).unwrap();
            let dims: Vec<isize> = (row as isize..2).collect();
            let largest = x.amax_keepdim(&dims[..]);
            let e = (&x - &largest).exp();
            let expected = &x - &largest - e.sum_keepdim(&dims[..]).log();
            approx::assert_relative_eq!(results[0], expected, max_relative = 1e-13, epsilon = 1e-13);
            assert_eq!(results[1], largest);
            approx::assert_relative_eq!(results[2], e.sum_keepdim(0), max_relative = 1e-13);
        }
    }

    #[test]
    fn values_per_row() {
        for shape in [[300, 9], [7, 33], [2, 3], [1, 40], [90, 600]] {
            let shape = Shape::from(shape);
            let x = Tensor::<f64>::from_fn(&shape, |index| ((index[0] * 31 + index[1] * 17) % 23) as f64);
            let column = Tensor::<f64>::from_fn([shape[0], 1], |index| index[0] as f64);
            // All values are small whole numbers, so every order of summation gives the same result.
            let instructions = vec![
                Instruction::Reduce(Reduction::Sum, 0),     // ValueIndex 2: one element per row.
                Instruction::Binary(Binary::Add, 2, 1),     // ValueIndex 3: adds an input that has one element per row.
                Instruction::Reduce(Reduction::Sum, 3),     // ValueIndex 4: sums a constant row.
                Instruction::Select(3, 0, 4),               // ValueIndex 5: selects a whole row or value 4.
                Instruction::Binary(Binary::Mul, 3, 3),     // ValueIndex 6: squares value 3.
                Instruction::Binary(Binary::Maximum, 1, 0), // ValueIndex 7: the maximum of inputs 1 and 0.
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
            let inputs = [ProgramArgument::from(&x), ProgramArgument::from(&column)];
            let results = program.run(&inputs, &shape, at()).unwrap();
            let third = x.sum_keepdim(1) + &column;
            let fourth = &third * shape[1] as f64;
            let wide = third.expand(&shape);
            assert_eq!(results[0], where_(&wide.ne(0.0), &x, fourth.expand(&shape)), "{shape}");
            assert_eq!(results[1], wide.square(), "{shape}");
            assert_eq!((&results[2], &results[3]), (&fourth, &column), "{shape}");
            assert_eq!(results[4], wide.sum_keepdim(0), "{shape}");
            assert_eq!(results[5], third.square(), "{shape}");
            assert_eq!(results[6], x.maximum(&column), "{shape}");
        }
    }

    #[test]
    fn results_larger_than_the_cache() {
        let shape = Shape::from([2100, 2053]);
        let x = Tensor::<f32>::from_fn(&shape, |index| (index[0] * 3 + index[1]) as f32 % 7.0);
        let row = x.select(0, 5).contiguous_copy(at()).unwrap();
        let instructions = vec![Instruction::Binary(Binary::Add, 0, 1), Instruction::Unary(Unary::Square, 2)];
        let outputs = vec![Output::Whole(3), Output::Whole(2), Output::Whole(1), Output::Reduced(Reduction::Sum, 2, 1)];
        let program = Program::new(2, instructions, outputs, None);
        let results = program.run(&[ProgramArgument::from(&x), ProgramArgument::from(&row)], &shape, at()).unwrap();
        assert!(results[1] == &x + &row && results[0] == (&x + &row).square() && results[2] == row.expand(&shape));
        assert_eq!(results[3], (&x + &row).sum_keepdim(0));
    }

    #[test]
    #[should_panic(expected = "reads a value that is not defined yet")]
    fn an_instruction_reads_only_what_is_before_it() {
        Program::new(1, vec![Instruction::Unary(Unary::Exp, 1)], vec![Output::Whole(1)], None);
    }

    /// Checks that running one bound program does not change the outputs of another.
    #[test]
    fn a_bound_program_has_outputs_of_its_own() {
        let x = Tensor::<f64>::ones([4096]);
        let sum = Program::new(1, vec![], vec![Output::Reduced(Reduction::Sum, 0, 1)], None);
        let double = Program::new(1, vec![Instruction::Binary(Binary::Add, 0, 0)], vec![Output::Whole(1)], None);
        let mut programs = [BoundProgram::new(sum, x.shape().clone()), BoundProgram::new(double, x.shape().clone())];
        for _ in 0..3 {
            let results = programs.each_mut().map(|program| run(program, &[ProgramArgument::from(&x)]));
            assert_eq!((&results[0][0], &results[1][0]), (&Tensor::full([1], 4096.0), &Tensor::full([4096], 2.0)));
        }
    }

    #[test]
    fn a_bound_program_is_bound_anew_to_other_layouts_and_types() {
        let program = Program::new(2, vec![Instruction::Binary(Binary::Sub, 0, 1)], vec![Output::Whole(2)], None);
        for [rows, columns] in [[2, 3], [40, 50]] {
            let mut program = BoundProgram::new(program.clone(), Shape::from([rows, columns]));
            let x = Tensor::<f64>::from_fn([rows, columns], |i| (i[0] * 100 + i[1]) as f64);
            let transposed = Tensor::<f64>::from_fn([columns, rows], |i| (i[1] * 7 + i[0]) as f64).t();
            let row = x.select(0, 1);
            for y in [&x, &transposed, &row, &x, &Tensor::scalar(2.0)] {
                let results = run(&mut program, &[ProgramArgument::from(&x), ProgramArgument::from(y)]);
                assert_eq!(results[0], &x - y);
                let (x, y) = (x.cast::<f32>(), y.cast::<f32>());
                let results = run(&mut program, &[ProgramArgument::from(&x), ProgramArgument::from(&y)]);
                assert_eq!(results[0], &x - &y);
            }
            let results = run(&mut program, &[ProgramArgument::from(&x), ProgramArgument::Number(3.0)]);
            assert_eq!(results[0], &x - 3.0);
        }
    }

    #[test]
    #[should_panic(expected = "as many inputs as it has")]
    fn too_few_inputs_are_refused() {
        let program = Program::new(2, vec![Instruction::Binary(Binary::Add, 0, 1)], vec![Output::Whole(2)], None);
        let _ = program.run(&[ProgramArgument::from(&Tensor::<f32>::ones([3]))], &Shape::from([3]), at());
    }

    #[test]
    #[should_panic(expected = "does not expand")]
    fn inputs_of_other_shapes_are_refused() {
        let program = Program::new(1, vec![], vec![Output::Whole(0)], None);
        let _ = program.run(&[ProgramArgument::from(&Tensor::<f32>::ones([3]))], &Shape::from([4]), at());
    }

    /// Tests a program in which each row is one block, longer than the buffer for a repeated operand.
    #[test]
    fn operands_that_repeat_within_long_rows() {
        let shape = Shape::from([6, 3000, 4]);
        let x = Tensor::<f64>::from_fn(&shape, |i| ((i[0] * 7 + i[1] * 3 + i[2]) % 11) as f64);
        let bias = Tensor::<f64>::from([1.0, 2.0, 3.0, 4.0]);
        let instructions = vec![Instruction::Binary(Binary::Add, 0, 1), Instruction::Reduce(Reduction::Sum, 2)];
        let program = Program::new(2, instructions, vec![Output::PerRow(3), Output::Whole(2)], Some(1));
        let results = program.run(&[ProgramArgument::from(&x), ProgramArgument::from(&bias)], &shape, at()).unwrap();
        assert_eq!((&results[0], &results[1]), (&(&x + &bias).sum_keepdim([1, 2]), &(&x + &bias)));
    }
}
