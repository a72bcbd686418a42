//! A program bound to a shape and to inputs that lie in given ways: how each input is read, and how the shape is tiled. Found
//! once for a program that runs again and again.

use smallvec::SmallVec;

use crate::engine::access::{Access, Argument};
use crate::engine::lanes::Lanes;
use crate::engine::program::{Output, Program};
use crate::engine::registers::Registers;
use crate::engine::tiling::{self, Tiling};
use crate::kernel::reduce::accumulator::Accumulator;
use crate::memory::reserve::addressable;
use crate::scalar::instruction::Instruction;
use crate::{DType, Error, Float, Layout, Shape, Site};

/// Blocks that are accumulated one after the other before their total is put aside.
pub(crate) const STAGE: usize = 16;

/// An output of a program that is a value reduced.
#[derive(Debug)]
pub(crate) struct ReducedOutput {
    /// Number of the value.
    pub(crate) value: usize,
    /// Number of the output.
    pub(crate) output: usize,
    pub(crate) accumulator: Accumulator,
    /// Blocks after which totals are put aside.
    pub(crate) stage: usize,
}

/// How a program runs over inputs of these layouts: all that does not depend on their elements.
#[derive(Debug)]
pub(crate) struct Binding {
    dtype: DType,
    /// Of each input; none of a number.
    layouts: SmallVec<[Option<Layout>; 4]>,
    pub(crate) accesses: SmallVec<[Access; 4]>,
    pub(crate) tiling: Tiling,
    pub(crate) registers: Registers,
    /// Elements of a line, where the program is [`small`](crate::engine::small).
    pub(crate) line: Option<usize>,
    /// How it runs by [`lanes`](crate::engine::lanes), where it does.
    pub(crate) lanes: Option<Lanes>,
    pub(crate) reduced: SmallVec<[ReducedOutput; 2]>,
    /// Of each output.
    pub(crate) outputs: SmallVec<[Layout; 2]>,
}

impl Binding {
    /// # Errors
    ///
    /// Where an output is larger than memory can be.
    pub(crate) fn new<T: Float>(
        program: &Program,
        inputs: &[Argument<'_, T>],
        shape: &Shape,
        at: Site,
    ) -> Result<Self, Error> {
        assert_eq!(inputs.len(), program.inputs() as usize, "a program is run with as many inputs as it has");
        assert!(program.row().is_none() || shape.numel() > 0, "rows of no elements are not reduced");
        let mut outputs: SmallVec<[Layout; 2]> = SmallVec::new();
        for output in program.outputs() {
            let shape = program.shape_of(output, shape);
            addressable::<T>(&shape, at)?;
            outputs.push(Layout::contiguous(shape));
        }
        let count = shape.numel();
        let layout = |input: &Argument<'_, T>| match input {
            Argument::Number(_) => None,
            Argument::Elements(source) => Some(source.layout.clone()),
        };
        let layouts: SmallVec<[Option<Layout>; 4]> = inputs.iter().map(layout).collect();
        // Of no elements, nothing is read.
        let access = |layout: &Option<Layout>| match layout {
            Some(layout) if count > 0 => Access::over(layout, shape),
            _ => Access::Number,
        };
        let accesses: SmallVec<[Access; 4]> = layouts.iter().map(access).collect();
        let mut row = accesses.iter().map(Access::row).fold(count, usize::min);
        let mut reduced: SmallVec<[ReducedOutput; 2]> = SmallVec::new();
        for (number, (output, layout)) in program.outputs().iter().zip(&outputs).enumerate() {
            if let Output::Reduced(op, value, _) = *output {
                let accumulator = Accumulator::new(op, shape, layout);
                row = row.min(accumulator.space.row());
                reduced.push(ReducedOutput { value: value as usize, output: number, accumulator, stage: STAGE });
            }
        }
        let cost = program.instructions().iter().map(Instruction::cost).sum();
        let tiling = match program.row() {
            _ if count == 0 => Tiling::default(),
            Some(axis) => Tiling::of_rows(count, shape[axis..].iter().product(), cost),
            None => Tiling::of_program(count, row, cost),
        };
        for reduced in &mut reduced {
            reduced.stage = STAGE * (reduced.accumulator.count / tiling.block.max(1)).max(1);
        }
        let line = tiling::line::<T>(count, inputs.len() + program.instructions().len());
        let mut lanes = None;
        if line.is_none()
            && count > 0
            && let Some((by_lanes, results)) = Lanes::new(program, &layouts, shape)
        {
            (lanes, outputs) = (Some(by_lanes), results);
        }
        Ok(Binding {
            dtype: T::DTYPE,
            layouts,
            accesses,
            tiling,
            registers: Registers::new(program),
            line,
            lanes,
            reduced,
            outputs,
        })
    }

    /// Whether these inputs lie as those that it was made for.
    pub(crate) fn serves<T: Float>(&self, inputs: &[Argument<'_, T>]) -> bool {
        let same = |(own, input): (&Option<Layout>, &Argument<'_, T>)| match (own, input) {
            (None, Argument::Number(_)) => true,
            (Some(own), Argument::Elements(source)) => own == source.layout,
            _ => false,
        };
        self.dtype == T::DTYPE && self.layouts.len() == inputs.len() && self.layouts.iter().zip(inputs).all(same)
    }
}
