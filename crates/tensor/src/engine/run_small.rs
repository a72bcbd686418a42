//! Runs programs over few elements. Every value (even a number) is stored as one block. So all operands have the same form, and an
//! instruction starts quickly. In blocks of 64, 128 or 256 bytes, each arithmetic instruction runs with one branch and a few vector
//! operations.

use smallvec::SmallVec;

use crate::Float;
use crate::engine::access::{Access, Input, ProgramArgument};
use crate::engine::program::{Output, Program};
use crate::engine::run_blocks::ReducedOutput;
use crate::engine::tiling::Tiling;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::{fill, rows};
use crate::memory::available::AllocationError;
use crate::scalar::instruction::Instruction;
use crate::thresholds::blocks::{
    MAX_MEDIUM_BLOCK_BYTES, MAX_MEDIUM_BLOCKS_BYTES, MAX_SMALL_BLOCK_VECTORS, MAX_SMALL_BLOCKS_BYTES, VECTOR_BYTES,
};

/// Returns the number of elements of the block that stores one value. An element has `size` bytes. Returns `None` if a program with
/// `values` values over `count` elements is too large for small blocks.
pub(crate) fn small_block_len(count: usize, values: usize, size: usize) -> Option<usize> {
    let block_bytes = (count * size).next_power_of_two().max(VECTOR_BYTES);
    (block_bytes <= MAX_SMALL_BLOCK_VECTORS * VECTOR_BYTES && block_bytes * values <= MAX_SMALL_BLOCKS_BYTES)
        .then_some(block_bytes / size)
}

/// Returns the number of elements of the block that stores one value, as [`small_block_len`] does, for programs that are too large for
/// small blocks. Returns `None` if [`run_blocks`](crate::engine::run_blocks) is faster, or would cut the program into several blocks.
pub(crate) fn medium_block_len(tiling: &Tiling, values: usize, size: usize) -> Option<usize> {
    let block_bytes = (tiling.numel * size).next_multiple_of(VECTOR_BYTES);
    let fits = (1..=MAX_MEDIUM_BLOCK_BYTES).contains(&block_bytes) && block_bytes * values <= MAX_MEDIUM_BLOCKS_BYTES;
    (fits && tiling.block_len >= tiling.numel).then_some(block_bytes / size)
}

/// Runs a program whose values have at most `block_len` elements. Each value is stored in one block of `block_len` elements. Returns an
/// error if there is not enough memory. For each output that [concatenates](Output::concatenated_row_len) values, `concatenated_row_lens`
/// has the number of adjacent elements that come from one value.
pub(crate) fn run<T: Float>(
    program: &Program,
    tiling: &Tiling,
    reduced: &[ReducedOutput],
    (accesses, arguments): (&[Access], &[ProgramArgument<'_, T>]),
    (block_len, concatenated_row_lens): (usize, &[usize]),
    mut results: SmallVec<[&mut [T]; 4]>,
) -> Result<(), AllocationError> {
    let instructions = program.instructions();
    let (count, row) = (tiling.numel, tiling.row_len);
    let inputs_len = arguments.len() * block_len;
    let values_len = inputs_len + instructions.len() * block_len;
    let is_small = block_len * size_of::<T>() <= MAX_SMALL_BLOCK_VECTORS * VECTOR_BYTES;
    // One spare block, in which reductions store intermediate results, comes after the blocks of the values.
    T::with_memory(values_len + block_len, |memory| {
        let (values, spare) = memory.split_at_mut(values_len);
        for ((access, argument), out) in accesses.iter().zip(arguments).zip(values.chunks_exact_mut(block_len)) {
            match argument {
                ProgramArgument::Number(value) => out.fill(*value),
                ProgramArgument::Elements(source) => read_input(&Input::new(access, source.data), count, out),
            }
        }
        let mut next = 0;
        loop {
            if is_small {
                next += T::arithmetic(&instructions[next..], &mut values[..], inputs_len + next * block_len, block_len);
            }
            let Some(instruction) = instructions.get(next) else { break };
            let (before, rest) = values.split_at_mut(inputs_len + next * block_len);
            compute_block(instruction, before, &mut rest[..block_len], (count, row), spare);
            next += 1;
        }
        let value = |number: u32| &values[number as usize * block_len..][..count];
        for ((output, result), &concatenated_row_len) in
            program.outputs().iter().zip(&mut results).zip(concatenated_row_lens)
        {
            match output {
                Output::Whole(number) => copy(value(*number), result),
                Output::Concatenated(numbers, _) => {
                    let put = |(k, &number): (usize, &u32)| {
                        rows::write_concatenated_part(
                            Operand::Slice(value(number)),
                            concatenated_row_len,
                            (k, numbers.len()),
                            result,
                        );
                    };
                    numbers.iter().enumerate().for_each(put);
                }
                Output::PerRow(number) => {
                    result.iter_mut().zip(value(*number).chunks_exact(row)).for_each(|(to, from)| *to = from[0]);
                }
                Output::Reduced(..) => {}
            }
        }
        for ReducedOutput { value: number, output, accumulator, .. } in reduced {
            let totals = &mut *results[*output];
            totals.fill(T::start(accumulator.op));
            accumulator.accumulate(Operand::Slice(value(*number as u32)), 0, count, totals, &mut spare[..count]);
        }
    })
}

/// Copies elements in a plain loop: for so few elements a call of `memcpy` costs more.
#[inline]
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
}

/// Writes an input of `count` elements to `out`, the block of this value. Fills the rest of the block with 1, because no operation is slow
/// for the argument 1. If the input is one number, fills the whole block with it.
fn read_input<T: Float>(input: &Input<'_, T>, count: usize, out: &mut [T]) {
    let (own, rest) = out.split_at_mut(count);
    match input.borrow(0, count) {
        Some(Operand::Splat(value)) => return out.fill(value),
        Some(Operand::Slice(elements)) => copy(elements, own),
        None => input.gather(0, own),
    }
    rest.fill(T::ONE);
}

/// Computes one instruction over a whole block, from the blocks of earlier values in `before`. Reductions reduce rows of `row` elements,
/// and read only the first `count` elements of a block. Reductions write the totals of rows to the block `spare`.
fn compute_block<T: Float>(
    instruction: &Instruction,
    before: &[T],
    out: &mut [T],
    (count, row): (usize, usize),
    spare: &mut [T],
) {
    let block_len = out.len();
    let value = |number: u32| Operand::Slice(&before[number as usize * block_len..][..block_len]);
    match *instruction {
        Instruction::Unary(op, x) => {
            T::unary(op, value(x), out);
        }
        Instruction::Binary(op, x, y) => {
            T::binary(op, value(x), value(y), out);
        }
        Instruction::Compare(op, x, y) => T::compare_as_float(op, value(x), value(y), out),
        Instruction::Select(mask, x, y) => T::select(value(mask), value(x), value(y), out),
        Instruction::Reduce(op, x) => {
            // Each row's total is repeated along the row.
            let totals = &mut spare[..count / row];
            T::reduce_each(op, &before[x as usize * block_len..][..count], row, row, totals);
            let (own, rest) = out.split_at_mut(count);
            match row {
                1 => copy(totals, own),
                _ => fill::by_rows(row, totals.iter().copied(), own),
            }
            rest.fill(T::ONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::bound::{Binding, run_bound};
    use crate::kernel::testing::layouts::recipes;
    use crate::kernel::testing::support::cases;
    use crate::{Binary, Compare, Reduction, Unary};
    use crate::{DType, Shape, Site, Tensor};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns an instruction for a random program. The bytes choose its kind and its operands. If `sums` is true, all values are whole
    /// numbers, so that sums are exact in any order. Otherwise operations that round are tested too, and all reductions are maxima, which
    /// are exact.
    fn instruction([kind, x, y, z]: [u8; 4], values: usize, rows: bool, sums: bool) -> Instruction {
        let [x, y, z] = [x, y, z].map(|value| u32::from(value) % values as u32);
        match kind % 14 {
            0 => Instruction::Unary(Unary::Neg, x),
            1 => Instruction::Unary(Unary::Relu, x),
            2 => Instruction::Binary(Binary::Add, x, y),
            3 => Instruction::Binary(Binary::Sub, x, y),
            4 => Instruction::Binary(Binary::Maximum, x, y),
            5 => Instruction::Compare(Compare::Lt, x, y),
            6 => Instruction::Select(x, y, z),
            7 | 8 if rows => Instruction::Reduce(if sums { Reduction::Sum } else { Reduction::Amax }, x),
            _ if sums => Instruction::Unary(Unary::Abs, x),
            8 => Instruction::Unary(Unary::Square, x),
            9 => Instruction::Unary(Unary::Sqrt, x),
            10 => Instruction::Unary(Unary::Reciprocal, x),
            11 => Instruction::Unary(Unary::Tanh, x),
            12 => Instruction::Binary(Binary::Mul, x, y),
            _ => Instruction::Binary(Binary::Div, x, y),
        }
    }

    /// Returns an output for a random program. The first three bytes choose its kind, its value and its axes.
    fn output(
        [kind, value, axes, _]: [u8; 4],
        inputs: usize,
        instructions: &[Instruction],
        rank: usize,
        sums: bool,
    ) -> Output {
        let (value, axes) = (u32::from(value) % (inputs + instructions.len()) as u32, u64::from(axes));
        match kind % 3 {
            // This output has one element per row, which is the row's total. If the program reduces no rows, the output is the first input.
            0 => instructions
                .iter()
                .position(|instruction| matches!(instruction, Instruction::Reduce(..)))
                .map_or(Output::Whole(0), |position| Output::PerRow((inputs + position) as u32)),
            1 => Output::Whole(value),
            _ => Output::Reduced(if sums { Reduction::Sum } else { Reduction::Amin }, value, axes & ((1 << rank) - 1)),
        }
    }

    proptest! {
        #![proptest_config(cases(500))]

        #[test]
        fn small_blocks_equal_blocks(
            sizes in vec(prop_oneof![1usize..5, 1usize..10], 1..4),
            expanded in vec(vec(any::<bool>(), 3), 2),
            recipes in vec(recipes(), 2),
            row in 0usize..6,
            code in vec(any::<[u8; 4]>(), 1..20),
            outputs in vec(any::<[u8; 4]>(), 1..4),
            sums in any::<bool>(),
        ) {
            let shape = Shape::from(&sizes[..]);
            // A row consists of dimension `row` and all later dimensions. Some programs have no rows.
            let row = Some(row).filter(|&row| row < shape.rank());
            let own = |expanded: &[bool]| -> Shape {
                shape.iter().zip(expanded).map(|(&size, &expanded)| if expanded { 1 } else { size }).collect()
            };
            let mut count = -4.0;
            let mut next = || {
                count += 1.0;
                if sums { count } else { count * 0.37 }
            };
            let tensors: Vec<Tensor<f64>> =
                expanded.iter().zip(&recipes).map(|(expanded, recipe)| recipe.tensor(&own(expanded), &mut next)).collect();
            let inputs = [ProgramArgument::from(&tensors[0]), ProgramArgument::Number(3.0), ProgramArgument::from(&tensors[1])];
            let read = |(number, &code): (usize, &[u8; 4])| {
                instruction(code, inputs.len() + number, row.is_some(), sums)
            };
            let instructions: Vec<Instruction> = code.iter().enumerate().map(read).collect();
            let outputs: Vec<Output> =
                outputs.iter().map(|&choice| output(choice, inputs.len(), &instructions, shape.rank(), sums)).collect();
            let program = Program::new(inputs.len() as u32, instructions, outputs, row);
            let run = |by_small_blocks: bool| {
                let layouts = inputs.iter().map(|input| input.layout().cloned()).collect();
                let mut binding = Binding::new(&program, layouts, &shape, DType::F64, Site::here("test")).unwrap();
                assert!(binding.small_block_len.is_some() || shape.numel() > 32);
                if !by_small_blocks {
                    binding.small_block_len = None;
                }
                let mut results: Vec<Vec<f64>> = binding.outputs.iter().map(|layout| vec![f64::NAN; layout.numel()]).collect();
                run_bound(&program, &binding, &inputs, results.iter_mut().map(Vec::as_mut_slice).collect()).unwrap();
                results
            };
            for (got, expected) in run(true).iter().zip(&run(false)) {
                for (&x, &y) in got.iter().zip(expected) {
                    prop_assert!(x.to_bits() == y.to_bits() || x == y || x.is_nan() && y.is_nan(), "{} for {}", x, y);
                }
            }
        }
    }
}
