//! Programs bound to a shape and to the layouts of their inputs. A binding records how each input is read and how the shape is cut into
//! blocks. A run reuses the binding of the previous run if its inputs have the same element type and layouts.

use smallvec::SmallVec;

use crate::engine::access::{Access, Input, ProgramArgument};
use crate::engine::program::{Output, Program};
use crate::engine::registers::Registers;
use crate::engine::run_blocks::{self, ReducedOutput};
use crate::engine::short_axis::ShortAxis;
use crate::engine::tiling::Tiling;
use crate::engine::{run_short_axis, run_small};
use crate::kernel::reduce::accumulator::Accumulator;
use crate::memory::available::AllocationError;
use crate::memory::reserve::addressable_as;
use crate::memory::scratch::Scratch;
use crate::memory::storage::Storage;
use crate::scalar::instruction::{Instruction, ValueIndex};
use crate::thresholds::blocks::{BLOCKS_PER_STAGE, MIN_ELEMENTS_PER_TOTAL};
use crate::thresholds::rows::MIN_SUMMED_ROW;
use crate::{DType, Error, Float, Layout, Reduction, Shape, Site};

/// A program with the shape to which its inputs expand, and the binding (the prepared run) for the input layouts of its most recent run.
#[derive(Debug)]
pub struct BoundProgram {
    program: Program,
    shape: Shape,
    binding: Option<Box<Binding>>,
}

impl BoundProgram {
    /// Returns `program` over `shape`, not yet bound to layouts of inputs.
    pub fn new(program: Program, shape: Shape) -> Self {
        BoundProgram { program, shape, binding: None }
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the shape to which every input expands.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Runs the program. Passes the elements and the layout of each output to `make_result`, and returns the results of `make_result`.
    /// Reuses the binding if the inputs have the same element type and layouts as in the last run. If `output_buffers[k]` is a buffer, the
    /// output with index `k` is written to it. That buffer must have as many elements as the output, and no other owner. `output_buffers`
    /// may have fewer elements than there are outputs. Returns an error if an output is larger than the address space, or if there is not
    /// enough memory.
    pub(crate) fn run<T: Float, R>(
        &mut self,
        inputs: &[ProgramArgument<'_, T>],
        at: Site,
        output_buffers: &mut [Option<Storage<T>>],
        make_result: impl Fn(Storage<T>, Layout) -> R,
    ) -> Result<SmallVec<[R; 1]>, Error> {
        let BoundProgram { program, shape, binding } = self;
        let prepared = match binding.take().filter(|binding| binding.matches(inputs)) {
            Some(prepared) => prepared,
            None => {
                let layouts = inputs.iter().map(|input| input.layout().cloned()).collect();
                Box::new(Binding::new(program, layouts, shape, T::DTYPE, at)?)
            }
        };
        let binding = &**binding.insert(prepared);
        let refused = |shape: &Shape| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
        let mut buffers: SmallVec<[Storage<T>; 2]> = SmallVec::new();
        for (number, layout) in binding.outputs.iter().enumerate() {
            buffers.push(match output_buffers.get_mut(number).and_then(Option::take) {
                Some(buffer) => buffer,
                None => Storage::scratch(layout.numel()).map_err(|_| refused(layout.shape()))?,
            });
        }
        let mut results: SmallVec<[&mut [T]; 4]> = SmallVec::new();
        for storage in &mut buffers {
            match storage.get_mut() {
                Some(data) => results.push(data),
                None => unreachable!("a new or given buffer has one holder"),
            }
        }
        run_bound(program, binding, inputs, results).map_err(|_| refused(shape))?;
        Ok(buffers
            .into_iter()
            .zip(&binding.outputs)
            .map(|(storage, layout)| make_result(storage, layout.clone()))
            .collect())
    }
}

/// Runs `program` on the inputs `arguments`, in the way that `binding` describes. Each slice in `results` has as many elements as the shape
/// of its output. Returns an error if there is not enough memory for copies of inputs, the values of a block, or the totals of each task.
#[wengert_macros::precompiled]
pub(crate) fn run_bound<T: Float>(
    program: &Program,
    binding: &Binding,
    arguments: &[ProgramArgument<'_, T>],
    mut results: SmallVec<[&mut [T]; 4]>,
) -> Result<(), AllocationError> {
    let Binding { accesses, tiling, registers, reduced, concatenated_row_lens, .. } = binding;
    if tiling.numel == 0 {
        reduced.iter().for_each(|reduced| results[reduced.output].fill(T::start(reduced.accumulator.op)));
        return Ok(());
    }
    if let Some(short_axis) = &binding.short_axis {
        return run_short_axis::run(program, registers, short_axis, arguments, results);
    }
    if let Some(elements) = binding.small_block_len {
        return run_small::run(
            program,
            tiling,
            reduced,
            (accesses, arguments),
            (elements, concatenated_row_lens),
            results,
        );
    }
    let mut copies: SmallVec<[Option<Scratch<T>>; 8]> = SmallVec::new();
    if accesses.iter().any(|access| access.tiles().is_some()) {
        for (access, argument) in accesses.iter().zip(arguments) {
            copies.push(match argument {
                ProgramArgument::Elements(source) => access.materialize(source.data)?,
                ProgramArgument::Number(_) => None,
            });
        }
    }
    let mut inputs: SmallVec<[Input<'_, T>; 8]> = SmallVec::new();
    for (k, (access, argument)) in accesses.iter().zip(arguments).enumerate() {
        inputs.push(match (argument, copies.get(k)) {
            (ProgramArgument::Number(value), _) => Input::Uniform(*value),
            (_, Some(Some(copy))) => Input::Contiguous(copy),
            (ProgramArgument::Elements(source), _) => Input::new(access, source.data),
        });
    }
    run_blocks::run(program, (registers, concatenated_row_lens), reduced, tiling, &inputs, results)
}

/// A program's run, prepared for inputs of given layouts. The next run with the same layouts reuses it for other elements.
#[derive(Debug)]
pub(crate) struct Binding {
    dtype: DType,
    /// The layout of each input, or `None` if the input is a number.
    layouts: SmallVec<[Option<Layout>; 4]>,
    accesses: SmallVec<[Access; 4]>,
    pub(crate) tiling: Tiling,
    registers: Registers,
    /// If [`run_small`] runs the program, the number of elements in the block that stores one value. Otherwise `None`.
    pub(crate) small_block_len: Option<usize>,
    /// The plan of the run, if the last dimension is so short that instructions run along the dimensions before it. Otherwise `None`.
    short_axis: Option<ShortAxis>,
    reduced: SmallVec<[ReducedOutput; 2]>,
    /// For each output that [concatenates](Output::concatenated_row_len) values, the number of adjacent elements of the output that come
    /// from one value. For other outputs, 0.
    concatenated_row_lens: SmallVec<[usize; 4]>,
    pub(crate) outputs: SmallVec<[Layout; 2]>,
}

impl Binding {
    /// Returns the binding of `program` over `shape` to inputs of the type `dtype`. `layouts` has the layout of each input, or `None` for a
    /// number. Panics if the number of inputs is wrong, or if the program has rows and `shape` has no elements. For inputs that do not
    /// expand to `shape`, see [`Access::of_expanded`]. Returns an error if an output is larger than the address space.
    pub(crate) fn new(
        program: &Program,
        layouts: SmallVec<[Option<Layout>; 4]>,
        shape: &Shape,
        dtype: DType,
        at: Site,
    ) -> Result<Binding, Error> {
        assert_eq!(layouts.len(), program.inputs() as usize, "a program is run with as many inputs as it has");
        assert!(program.row_axis().is_none() || shape.numel() > 0, "rows of no elements are not reduced");
        let mut outputs = contiguous_outputs(program, shape, dtype, at)?;
        let count = shape.numel();
        // A program over a shape without elements reads no input.
        let access = |layout: &Option<Layout>| match layout {
            Some(layout) if count > 0 => Access::of_expanded(layout, shape),
            _ => Access::Number,
        };
        let accesses: SmallVec<[Access; 4]> = layouts.iter().map(access).collect();
        let mut reduced = reduced_outputs(program, shape, &outputs);
        let concatenated_row_lens: SmallVec<[usize; 4]> =
            program.outputs().iter().map(|output| output.concatenated_row_len(shape)).collect();
        let concatenated_row_len = concatenated_row_lens.iter().copied().max().unwrap_or(0);
        let cost = program.instructions().iter().map(Instruction::cost).sum();
        let rows = reduced.iter().map(|reduced| reduced.accumulator.space.run_length());
        let row = accesses.iter().map(Access::run_length).chain(rows).fold(count, usize::min);
        let mut tiling = match program.row_axis() {
            _ if count == 0 => Tiling::default(),
            None if concatenated_row_len == 0 => Tiling::of_program(count, row, cost),
            axis => Tiling::of_rows(
                count,
                axis.map_or(0, |axis| shape[axis..].iter().product()),
                concatenated_row_len,
                cost,
            ),
        };
        for reduced in &mut reduced {
            tiling.lengthen_tasks(MIN_ELEMENTS_PER_TOTAL * reduced.accumulator.total_count);
            reduced.blocks_per_stage =
                BLOCKS_PER_STAGE * (reduced.accumulator.total_count / tiling.block_len.max(1)).max(1);
        }
        let values = layouts.len() + program.instructions().len();
        let mut small_block_len = run_small::small_block_len(count, values, dtype.size());
        let mut short_axis = None;
        if small_block_len.is_none()
            && count > 0
            && let Some((plan, results)) = ShortAxis::new(program, &layouts, shape)
        {
            (short_axis, outputs) = (Some(plan), results);
        } else if small_block_len.is_none() {
            small_block_len = run_small::medium_block_len(&tiling, values, dtype.size());
        }
        let summed = summed_values(program, &reduced, tiling.row_len).filter(|_| short_axis.is_none());
        let registers = Registers::new(program, summed);
        Ok(Binding {
            dtype,
            layouts,
            accesses,
            tiling,
            registers,
            small_block_len,
            short_axis,
            reduced,
            concatenated_row_lens,
            outputs,
        })
    }

    /// Returns the layout of each input, or `None` for a number.
    pub(crate) fn layouts(&self) -> &[Option<Layout>] {
        &self.layouts
    }

    /// Returns true if this binding was made for the layouts of `inputs`.
    fn matches<T: Float>(&self, inputs: &[ProgramArgument<'_, T>]) -> bool {
        let layouts = self.layouts.iter().map(Option::as_ref);
        self.dtype == T::DTYPE && layouts.eq(inputs.iter().map(ProgramArgument::layout))
    }
}

/// Returns a row-major layout for each output of `program` over `shape`, or an error if an output is larger than the address space.
fn contiguous_outputs(
    program: &Program,
    shape: &Shape,
    dtype: DType,
    at: Site,
) -> Result<SmallVec<[Layout; 2]>, Error> {
    let mut outputs = SmallVec::new();
    for output in program.outputs() {
        let shape = program.shape_of(output, shape);
        addressable_as(dtype, &shape, at)?;
        outputs.push(Layout::contiguous(shape));
    }
    Ok(outputs)
}

/// Returns the values whose long rows are summed, for outputs or by instructions. Instructions sum rows of `row_len` elements.
fn summed_values(program: &Program, reduced: &[ReducedOutput], row_len: usize) -> impl Iterator<Item = ValueIndex> {
    let is_sum =
        |reduced: &&ReducedOutput| reduced.accumulator.op == Reduction::Sum && reduced.accumulator.has_long_rows();
    let of_outputs = reduced.iter().filter(is_sum).map(|reduced| reduced.value as ValueIndex);
    let of_instructions = program.instructions().iter().filter_map(move |instruction| match *instruction {
        Instruction::Reduce(Reduction::Sum, value) if row_len >= MIN_SUMMED_ROW => Some(value),
        _ => None,
    });
    of_outputs.chain(of_instructions)
}

/// Describes the outputs of `program` over `shape` that are reductions. `outputs` has the layouts of all outputs.
fn reduced_outputs(program: &Program, shape: &Shape, outputs: &[Layout]) -> SmallVec<[ReducedOutput; 2]> {
    let mut reduced = SmallVec::new();
    for (number, (output, layout)) in program.outputs().iter().zip(outputs).enumerate() {
        if let Output::Reduced(op, value, _) = *output {
            let accumulator = Accumulator::new(op, shape, layout);
            reduced.push(ReducedOutput {
                value: value as usize,
                output: number,
                accumulator,
                blocks_per_stage: BLOCKS_PER_STAGE,
            });
        }
    }
    reduced
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::kernel::source::Source;
    use crate::{Binary, Unary};

    /// Returns the binding of `program` to inputs of the type f64, each with the contiguous layout of `shape`.
    fn bound(program: &Program, shape: &Shape) -> Binding {
        let layouts = smallvec![Some(Layout::contiguous(shape.clone())); program.inputs() as usize];
        Binding::new(program, layouts, shape, DType::F64, Site::here("test")).unwrap()
    }

    /// Returns a program with `inputs` inputs that applies the absolute value `steps` times in a row to the first input.
    fn chain(inputs: u32, steps: u32) -> Program {
        let first = Instruction::Unary(Unary::Abs, 0);
        let others = (1..steps).map(|step| Instruction::Unary(Unary::Abs, inputs + step - 1));
        let output = Output::Whole(inputs + steps - 1);
        Program::new(inputs, std::iter::once(first).chain(others).collect(), vec![output], None)
    }

    #[test]
    fn a_binding_serves_the_same_layouts_and_the_same_type() {
        let (program, shape) = (chain(1, 1), Shape::from([4, 3]));
        let (own, other) =
            (Layout::contiguous(shape.clone()), Layout::contiguous(Shape::from([3, 4])).permute(&[1, 0]));
        let binding = bound(&program, &shape);
        let matches =
            |layout: &Layout| binding.matches::<f64>(&[ProgramArgument::Elements(Source { data: &[0.5; 12], layout })]);
        assert!(matches(&own) && !matches(&other));
        assert!(!binding.matches::<f64>(&[ProgramArgument::Number(0.5)]));
        assert!(!binding.matches::<f32>(&[ProgramArgument::Elements(Source { data: &[0.5; 12], layout: &own })]));
        // Each run uses the layouts of its own inputs, also if the run before had other layouts.
        let data: Vec<f64> = (0..12).map(f64::from).collect();
        let mut program = BoundProgram::new(program, shape);
        for layout in [&own, &own, &other, &own] {
            let argument = [ProgramArgument::Elements(Source { data: &data, layout })];
            let results =
                program.run(&argument, Site::here("test"), &mut [], |storage, _| storage.as_slice().to_vec()).unwrap();
            let expected = (0..12).map(|i| if std::ptr::eq(layout, &other) { i % 3 * 4 + i / 3 } else { i });
            assert_eq!(results[0], expected.map(f64::from).collect::<Vec<f64>>());
        }
    }

    #[test]
    fn a_program_with_few_small_values_runs_in_small_blocks() {
        let block = |inputs, steps, count: usize| bound(&chain(inputs, steps), &Shape::from([count])).small_block_len;
        assert_eq!([block(1, 1, 5), block(40, 40, 32)], [Some(8), Some(32)]);
        assert_eq!([block(1, 1, 33), block(2, 5, 512)], [Some(40), Some(512)]);
        assert_eq!([block(2, 1100, 32), block(1, 1, 513), block(2, 7, 512)], [None, None, None]);
    }

    #[test]
    fn blocks_do_not_cut_the_rows_of_joined_values() {
        let program = Program::new(2, vec![], vec![Output::Concatenated(Box::new([0, 1]), 1)], None);
        assert_eq!(bound(&program, &Shape::from([4096, 3])).tiling.block_len, 1023);
        assert_eq!(bound(&program, &Shape::from([40, 3000])).tiling.block_len, 3000);
    }

    #[test]
    fn a_program_with_a_short_last_dimension_runs_along_the_other_dimensions() {
        let product = vec![Instruction::Binary(Binary::Mul, 0, 1)];
        let program = Program::new(2, product, vec![Output::Reduced(Reduction::Sum, 2, 1)], None);
        let layouts = [Shape::from([70, 1, 5]), Shape::from([90, 5])].map(|shape| Some(Layout::contiguous(shape)));
        let shape = Shape::from([70, 90, 5]);
        let binding =
            Binding::new(&program, layouts.into_iter().collect(), &shape, DType::F64, Site::here("test")).unwrap();
        assert!(binding.short_axis.is_some() && binding.small_block_len.is_none());
        assert!(bound(&program, &shape).short_axis.is_none());
    }

    /// Tests the length of tasks, and the number of blocks whose results are accumulated in one set of totals.
    #[test]
    fn tasks_with_many_totals_are_longer() {
        for (rows, columns, expected) in [(4096, 300, (900, 36, 16)), (100, 200_000, (1024, 782, 16 * 195))] {
            let program = Program::new(1, vec![], vec![Output::Reduced(Reduction::Sum, 0, 1)], None);
            let Binding { tiling, reduced, .. } = bound(&program, &Shape::from([rows, columns]));
            assert_eq!((tiling.block_len, tiling.max_blocks_per_task(), reduced[0].blocks_per_stage), expected);
        }
    }

    /// Compares sums of products that are not stored with sums of the same products in a program that also returns the products, bit by
    /// bit. Between a product and its sum, an instruction computes a value for which the register of a factor must not be used again.
    #[test]
    fn sums_of_products_that_are_not_stored_have_the_same_bits() {
        let shape = Shape::from([40, 300]);
        let data: Vec<f64> = (0..12_000).map(|i| (i as f64 * 0.37).sin()).collect();
        let layout = Layout::contiguous(shape.clone());
        let of_rows = Layout::contiguous(Shape::from([40, 1])).expand(&shape).unwrap();
        let elements = |layout| ProgramArgument::Elements(Source { data: &data[..], layout });
        let (factors, after) = (
            [Instruction::Unary(Unary::Abs, 0), Instruction::Unary(Unary::Neg, 1)],
            [Instruction::Unary(Unary::Neg, 0), Instruction::Unary(Unary::Abs, 5)],
        );
        let of_output = |axes| (None, Output::Reduced(Reduction::Sum, 4, axes));
        let of_rows_in_program = (Some(Instruction::Reduce(Reduction::Sum, 4)), Output::PerRow(7));
        let sums = [of_output(1), of_output(2), of_output(3), of_rows_in_program];
        for product in [Instruction::Binary(Binary::Mul, 2, 3), Instruction::Unary(Unary::Square, 2)] {
            for (sum, output) in &sums {
                let instructions: Vec<_> = [&factors[..], &[product], &after, sum.as_slice()].concat();
                for second in [elements(&layout), elements(&of_rows), ProgramArgument::Number(0.7)] {
                    let run = |more: &[Output]| {
                        let outputs = [&[output.clone(), Output::Whole(6)], more].concat();
                        let program = Program::new(2, instructions.clone(), outputs, sum.is_some().then_some(1));
                        let arguments = [elements(&layout), second];
                        BoundProgram::new(program, shape.clone())
                            .run(&arguments, Site::here("test"), &mut [], |storage, _| storage.as_slice().to_vec())
                            .unwrap()
                    };
                    let bits = |results: &[Vec<f64>]| results.concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&run(&[])), bits(&run(&[Output::Whole(4)])[..2]), "{product:?} {output:?}");
                }
            }
        }
        let sum = Output::Reduced(Reduction::Sum, 2, 3);
        let dot = Program::new(2, vec![Instruction::Binary(Binary::Mul, 0, 1)], vec![sum], None);
        assert!(bound(&dot, &shape).registers.sums_products);
    }

    #[test]
    #[should_panic(expected = "rows of no elements are not reduced")]
    fn rows_of_no_elements_are_refused() {
        let program = Program::new(1, vec![Instruction::Reduce(Reduction::Sum, 0)], vec![Output::PerRow(1)], Some(1));
        bound(&program, &Shape::from([0, 3]));
    }

    /// Tests that a lack of memory gives an error. First the totals of the tasks are too large for any memory, and then the copy of an
    /// input.
    #[test]
    fn copies_and_totals_that_exceed_memory_are_errors() {
        let program = Program::new(1, vec![], vec![Output::Reduced(Reduction::Sum, 0, 1)], None);
        let shape = Shape::from([16, 1 << 52]);
        let layout = Layout::contiguous(Shape::scalar()).expand(&shape).unwrap();
        let argument = [ProgramArgument::Elements(Source { data: &[1.0], layout: &layout })];
        let layouts = smallvec![Some(layout.clone())];
        let binding = Binding::new(&program, layouts, &shape, DType::F64, Site::here("test")).unwrap();
        assert!(binding.tiling.task_count() > 1);
        assert_eq!(run_bound::<f64>(&program, &binding, &argument, smallvec![&mut [][..]]), Err(AllocationError));

        let transposed = Layout::contiguous(Shape::from([1 << 28, 1 << 28])).permute(&[1, 0]);
        assert!(Access::new(&transposed).materialize::<f64>(&[]).is_err());
    }
}
