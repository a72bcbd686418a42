//! Regions of a plan: consecutive steps that compute only small values. A region runs in one block of memory, and compiles the steps to
//! *operations* whose operands have fixed locations. So it makes no tensor, and compares no layout, for each of its values.
//!
//! The first run of a plan executes each step separately, and the second run compiles the regions. So a plan that runs only once finds its
//! regions, but does not compile them. A region computes the same bits as its steps: it runs the same programs and the same products.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::engine::access::ProgramArgument;
use crate::engine::bound::{Binding, BoundProgram, run_bound};
use crate::engine::elementwise;
use crate::engine::plan::steps::{ConcatBuffers, OperandRef, Step, Work};
use crate::engine::program::Program;
use crate::kernel::fill;
use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::memory::scratch::Scratch;
use crate::shape::iteration_space::IterationSpace;
use crate::thresholds::plan::{
    MAX_REGION_COMPILATIONS, MAX_REGION_CONCAT_OPERAND, MAX_REGION_LEN, MAX_REGION_PRODUCT, MAX_REGION_VALUE,
    MAX_SEARCHED_PROGRAMS, MIN_REGION_STEPS,
};
use crate::{DType, Float, Layout, Shape, Site, View};

/// Consecutive steps of a plan that compute only small values.
#[derive(Debug)]
pub struct Region {
    /// The positions of the steps in the plan.
    pub(crate) steps: Range<usize>,
    /// The operands that no step of the region computes, except numbers.
    pub(crate) inputs: Vec<OperandRef>,
    /// The buffers that later steps or the plan's roots read.
    results: Vec<u32>,
    state: RefCell<State>,
}

/// The state of a region: whether it has run, how often it was compiled, and its operations.
#[derive(Debug)]
struct State {
    has_run: bool,
    compilations: usize,
    compiled: Option<Compiled>,
}

/// The operations of a region, for inputs with certain shapes and strides.
#[derive(Debug)]
struct Compiled {
    /// The layout of each input, with the offset relative to the input's lowest element in memory.
    inputs: Vec<Layout>,
    /// The number of elements of the region's memory.
    len: usize,
    operations: Vec<Operation>,
    results: Vec<Location>,
}

/// The location of a value: in the region's memory if `input` is `None`, or in the input with this index. For an input, the layout's offset
/// is relative to the input's lowest element.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) input: Option<usize>,
    pub(crate) layout: Layout,
}

/// An operation of a region. In the region's memory, it writes elements from `start` on, and reads only elements before `start`.
#[derive(Debug)]
struct Operation {
    start: usize,
    kind: OperationKind,
}

/// The kinds of operations of a region, with their operands.
#[derive(Debug)]
enum OperationKind {
    Program(Rc<SharedProgram>, SmallVec<[Argument; 4]>),
    /// A batch of products of two matrices.
    Products(Box<Products>),
    /// Writes that together produce the result, in order. The last field is the number of elements of the result.
    Writes(Vec<PreparedWrite>, usize),
}

/// A fused program and its binding. The steps of a recurrence often run equal programs on operands with equal layouts. They share the
/// program, so that it stays in the first-level cache.
#[derive(Debug)]
struct SharedProgram {
    program: Program,
    shape: Shape,
    /// The binding of the program to the layouts of its operands. The lowest element of each layout is at position 0, so that operands
    /// anywhere in memory can share the binding.
    binding: Binding,
}

/// An argument of a program. The layout of its elements is in the program's binding.
#[derive(Debug)]
enum Argument {
    Number(f64),
    /// The elements in the input with index `input`, or in the region's memory if `input` is `None`. The lowest element is at position
    /// `start`.
    Elements {
        input: Option<usize>,
        start: usize,
    },
}

/// The products of two batches of matrices.
#[derive(Debug)]
struct Products {
    sizes: Sizes,
    operands: [Matrices; 2],
    /// For each product of the batch, the positions of the first elements of its two matrices.
    first_elements: SmallVec<[[usize; 2]; 1]>,
    /// The values to which the products are added.
    sum: Option<Box<Location>>,
}

/// The matrices of a batch, in an input or in the region's memory. Their first elements are in [`Products::first_elements`].
#[derive(Debug)]
struct Matrices {
    input: Option<usize>,
    row_stride: isize,
    column_stride: isize,
}

/// A write to an operation's result. Positions in the result count from the operation's `start`.
#[derive(Debug)]
enum PreparedWrite {
    /// Fills the whole result with a number.
    Number(f64),
    /// Copies rows of adjacent elements.
    Rows {
        /// The index of the input that has the rows, or `None` if they are in the region's memory.
        input: Option<usize>,
        /// The loops over the rows and over their positions in the result.
        space: IterationSpace<2>,
    },
    /// Copies the elements at a location to the positions of a layout.
    Elements { from: Location, to: Layout },
}

impl PreparedWrite {
    /// Returns the copy of the elements at `from` to the positions of `to`.
    fn new(from: Location, to: Layout) -> Self {
        let space = IterationSpace::new(to.shape(), [&from.layout, &to]);
        if fill::has_adjacent_elements(&space) {
            PreparedWrite::Rows { input: from.input, space }
        } else {
            PreparedWrite::Elements { from, to }
        }
    }

    /// Writes the elements to `out`, given the inputs' elements and the region's memory.
    fn run<T: Float>(&self, inputs: &[&[T]], memory: &[T], out: &mut [T]) {
        match self {
            PreparedWrite::Number(value) => out.fill(T::from_f64(*value)),
            PreparedWrite::Rows { input, space } => {
                fill::copy_rows(space, input.map_or(memory, |input| inputs[input]), out);
            }
            PreparedWrite::Elements { from, to } => elementwise::assign(out, to, from.source(inputs, memory)),
        }
    }
}

/// An operand of a step that is being compiled.
#[derive(Clone, Debug)]
enum Operand {
    Number(f64),
    Elements(Location),
}

/// Returns the regions of a plan with these steps. `is_root` marks the buffers that the plan's roots read.
pub(super) fn find(steps: &[Step], concatenations: &ConcatBuffers, is_root: &[bool]) -> Vec<Region> {
    let mut last_reader = vec![0; is_root.len()];
    for (number, step) in steps.iter().enumerate() {
        buffers(&step.reads).for_each(|buffer| last_reader[buffer as usize] = number);
    }
    let mut regions: Vec<Region> = Vec::new();
    let (mut start, mut elements) = (0, 0);
    // For each buffer, the position of the step that computes its elements. A reshaped view has the elements of its operand.
    let mut writers = vec![0; is_root.len()];
    for number in 0..=steps.len() {
        let size = steps.get(number).and_then(|step| {
            let writer = match (&step.work, &step.reads[..]) {
                (Work::View(View::Reshape(_), _), &[OperandRef::Buffer(of)]) => writers[of as usize],
                _ => number,
            };
            step.writes.iter().for_each(|&buffer| writers[buffer as usize] = writer);
            // A fused program outside of all regions writes its operand directly into the memory of a concatenation, so the operand is not
            // copied. The results of other steps outside of all regions also keep the concatenation outside, and so do data and numbers
            // that are read without a reshape.
            let is_regional = |source: &OperandRef| match source.buffer().map(|buffer| writers[buffer as usize]) {
                Some(writer) if writer < start => {
                    let after = regions.partition_point(|region| region.steps.start <= writer);
                    after.checked_sub(1).is_some_and(|region| regions[region].contains(writer))
                }
                Some(_) => true,
                None => false,
            };
            let is_in_place = matches!(step.work, Work::Cat { in_place: Some(_), .. });
            written_numel(step, concatenations).filter(|_| !is_in_place || step.reads.iter().all(is_regional))
        });
        if let Some(size) = size.filter(|size| elements + size <= MAX_REGION_LEN) {
            elements += size;
            continue;
        }
        if number - start >= MIN_REGION_STEPS {
            regions.push(Region::new(steps, start..number, &last_reader, is_root));
        }
        // If the step is small enough for a region, but this region is full, the step begins the next region.
        (start, elements) = if size.is_some() { (number, size.unwrap_or(0)) } else { (number + 1, 0) };
    }
    regions
}

/// Returns the indices of the buffers from which operands are read. Omits operands that are data or numbers.
fn buffers(reads: &[OperandRef]) -> impl Iterator<Item = u32> {
    reads.iter().filter_map(OperandRef::buffer)
}

/// Returns an upper bound for the number of elements that a step writes to the memory of its region. Returns `None` if a region cannot
/// contain this step.
fn written_numel(step: &Step, concatenations: &ConcatBuffers) -> Option<usize> {
    let part = |buffer| concatenations.offsets.get(buffer).map_or(0, |&(_, count)| count);
    if step.writes.iter().any(|buffer| part(buffer) > MAX_REGION_CONCAT_OPERAND) {
        return None;
    }
    let small = |count: usize| (1..=MAX_REGION_VALUE).contains(&count).then_some(count);
    match &step.work {
        Work::Fused(bound) => {
            let bound = bound.borrow();
            let (program, shape) = (bound.program(), bound.shape());
            small(shape.numel())?;
            program.outputs().iter().map(|output| small(program.shape_of(output, shape).numel())).sum()
        }
        // Other views than reshapes copy nothing, so their size does not matter.
        Work::View(view, from) if !matches!(view, View::Reshape(_)) => (view.shape(from).numel() > 0).then_some(0),
        Work::View(view, from) | Work::Copy(view, from) => small(view.shape(from).numel()),
        Work::Product([left, right]) | Work::AddedProduct([left, right, _]) => {
            let columns = right[right.rank() - 1];
            let work = left.iter().fold(columns, |work, &size| work.saturating_mul(size));
            (1..=MAX_REGION_PRODUCT).contains(&work).then(|| small(Shape::of_product(left, right).numel()))?
        }
        // A region copies the operands. This takes less time than a tensor for each operand.
        Work::Cat { shapes, .. } if shapes.iter().all(|shape| shape.numel() > 0) => {
            small(shapes.iter().map(|shape| shape.numel()).sum())
        }
        Work::Embed(view, [from, to]) if !view.may_repeat() && from.numel() > 0 => small(to.numel()),
        Work::Cat { .. } | Work::Reduce(..) | Work::Embed(..) | Work::Node(..) => None,
    }
}

impl Region {
    fn new(steps: &[Step], range: Range<usize>, last_reader: &[usize], is_root: &[bool]) -> Self {
        let mut inside: FxHashSet<u32> = FxHashSet::default();
        let mut known = FxHashSet::default();
        let (mut inputs, mut results) = (Vec::new(), Vec::new());
        for step in &steps[range.clone()] {
            for &read in &step.reads {
                let is_new = match read {
                    OperandRef::Buffer(buffer) => !inside.contains(&buffer) && known.insert((0, buffer)),
                    OperandRef::Known(node) => known.insert((1, node)),
                    OperandRef::Number(_) => false,
                };
                inputs.extend(is_new.then_some(read));
            }
            inside.extend(&step.writes);
            let is_read = |buffer: &&u32| is_root[**buffer as usize] || last_reader[**buffer as usize] >= range.end;
            results.extend(step.writes.iter().filter(is_read));
        }
        let state = State { has_run: false, compilations: 0, compiled: None };
        Region { steps: range, inputs, results, state: RefCell::new(state) }
    }

    /// Returns the number of steps.
    #[expect(clippy::len_without_is_empty, reason = "a region has steps")]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if the step at position `step` of the plan is a step of the region.
    pub fn contains(&self, step: usize) -> bool {
        self.steps.contains(&step)
    }

    /// Returns true if the region's operations are compiled.
    pub fn is_compiled(&self) -> bool {
        self.state.borrow().compiled.is_some()
    }

    /// Runs the region on the values of its inputs, if it is compiled or can be compiled for them. `steps` are the plan's steps. Passes
    /// each buffer that is read later to `visit_result`, with its location and the region's memory. Returns false, without a call of
    /// `visit_result`, if the region's steps must run separately. Returns the errors of `visit_result`.
    pub(crate) fn run<T: Float>(
        &self,
        steps: &[Step],
        inputs: &[Source<'_, T>],
        mut visit_result: impl FnMut(u32, &Location, &[T]) -> Result<(), AllocationError>,
    ) -> Result<bool, AllocationError> {
        let state = &mut *self.state.borrow_mut();
        let matches = |compiled: &&Compiled| compiled.matches(inputs);
        if state.compiled.as_ref().filter(matches).is_none()
            && std::mem::replace(&mut state.has_run, true)
            && state.compilations < MAX_REGION_COMPILATIONS
        {
            state.compilations += 1;
            let layout =
                |input: &Source<'_, T>| input.layout.with_offset(input.layout.offset() - input.layout.extent().0);
            state.compiled = compile(self, steps, inputs.iter().map(layout).collect(), T::DTYPE);
        }
        let Some(compiled) = state.compiled.as_ref().filter(matches) else { return Ok(false) };
        let data: SmallVec<[&[T]; 16]> = inputs.iter().map(|input| &input.data[input.layout.extent().0..]).collect();
        // If there is not enough memory, the steps run separately, so that the error names the step that fails.
        let Ok(mut memory) = Scratch::new(compiled.len) else { return Ok(false) };
        if execute(compiled, &data, &mut memory).is_err() {
            return Ok(false);
        }
        for (&buffer, location) in self.results.iter().zip(&compiled.results) {
            visit_result(buffer, location, &memory)?;
        }
        Ok(true)
    }
}

impl Compiled {
    /// Returns true if the region was compiled for inputs with these shapes and strides.
    fn matches<T>(&self, inputs: &[Source<'_, T>]) -> bool {
        let same = |(own, input): (&Layout, &Source<'_, T>)| {
            own.shape() == input.layout.shape() && own.strides() == input.layout.strides()
        };
        self.inputs.iter().zip(inputs).all(same)
    }
}

impl Location {
    /// Returns the elements of the value in this location and their layout, given the inputs' elements and the region's memory.
    #[inline]
    fn source<'a, T>(&'a self, inputs: &[&'a [T]], memory: &'a [T]) -> Source<'a, T> {
        let data = self.input.map_or(memory, |input| inputs[input]);
        Source { data, layout: &self.layout }
    }

    /// Returns the value in this location as a batch of matrices, which are its last two dimensions.
    fn matrices(&self) -> Matrices {
        let &[.., row_stride, column_stride] = self.layout.strides() else {
            unreachable!("matrices have two dimensions")
        };
        Matrices { input: self.input, row_stride, column_stride }
    }
}

impl Matrices {
    /// Returns the matrix whose first element is at `offset`, given the inputs' elements and the region's memory.
    #[inline]
    fn matrix<'a, T>(&self, offset: usize, inputs: &[&'a [T]], memory: &'a [T]) -> Matrix<'a, T> {
        let data = self.input.map_or(memory, |input| inputs[input]);
        Matrix { data, offset, row_stride: self.row_stride, column_stride: self.column_stride }
    }
}

/// Compiles a region for inputs of the type `dtype` with the layouts `inputs`. Each layout has the offset at which the input's first
/// element in memory is at position 0. Returns `None` if a step cannot be compiled for these layouts, for example because an operand would
/// have to be copied to get its shape.
fn compile(region: &Region, steps: &[Step], inputs: Vec<Layout>, dtype: DType) -> Option<Compiled> {
    let (locations, known) = (FxHashMap::default(), FxHashMap::default());
    let mut compilation = Compilation { dtype, locations, known, programs: Vec::new(), len: 0, operations: Vec::new() };
    for (number, (source, layout)) in region.inputs.iter().zip(&inputs).enumerate() {
        let location = Location { input: Some(number), layout: layout.clone() };
        match *source {
            OperandRef::Buffer(buffer) => compilation.locations.insert(buffer, location),
            OperandRef::Known(node) => compilation.known.insert(node, location),
            OperandRef::Number(_) => unreachable!("numbers are no inputs of a region"),
        };
    }
    for number in region.steps.clone() {
        compilation.add_step(&steps[number])?;
    }
    let results = region.results.iter().map(|buffer| compilation.locations[buffer].clone()).collect();
    Some(Compiled { inputs, len: compilation.len, operations: compilation.operations, results })
}

/// A region that is being compiled: the operations so far, and the locations of the values.
struct Compilation {
    dtype: DType,
    /// For each buffer, the memory that has its elements: an input or the region's memory, and a layout.
    locations: FxHashMap<u32, Location>,
    /// The same for each leaf, whose data is known before the plan runs.
    known: FxHashMap<u32, Location>,
    /// The programs of the steps that were added before. A step shares the program of an earlier step if
    /// [`shared_program`](Self::shared_program) finds an equal one.
    programs: Vec<Rc<SharedProgram>>,
    len: usize,
    operations: Vec<Operation>,
}

impl Compilation {
    /// Adds the operations of a step, and records the locations of the step's results. Returns `None` if a region cannot contain the step.
    fn add_step(&mut self, step: &Step) -> Option<()> {
        match &step.work {
            Work::Fused(program) => self.add_program(step, &program.borrow())?,
            Work::View(view, from) => {
                let whole = self.elements(&step.reads[0], from)?;
                match view.apply(&whole.layout) {
                    Some(layout) => {
                        self.locations.insert(step.writes[0], Location { layout, ..whole });
                    }
                    None => {
                        // Only a reshape needs a copy. The copy has the operand's shape, and is row-major.
                        let layout = Layout::contiguous(from.clone());
                        let to = view.apply(&layout)?.shape().clone();
                        self.add_writes(vec![PreparedWrite::new(whole, layout)], &to, step.writes[0]);
                    }
                }
            }
            Work::Copy(view, from) => {
                let whole = self.elements(&step.reads[0], from)?;
                let layout = view.apply(&whole.layout)?;
                let (shape, to) = (layout.shape().clone(), Layout::contiguous(layout.shape().clone()));
                self.add_writes(vec![PreparedWrite::new(Location { layout, ..whole }, to)], &shape, step.writes[0]);
            }
            Work::Cat { axis, shapes, .. } => {
                let mut shape = shapes[0].clone();
                shape[*axis] = shapes.iter().map(|part| part[*axis]).sum();
                let whole = Layout::contiguous(shape.clone());
                let (mut writes, mut start) = (Vec::with_capacity(shapes.len()), 0);
                for (read, part) in step.reads.iter().zip(shapes) {
                    let to = whole.slice(*axis, start, part[*axis], 1);
                    writes.push(PreparedWrite::new(self.elements(read, part)?, to));
                    start += part[*axis];
                }
                self.add_writes(writes, &shape, step.writes[0]);
            }
            Work::Product([left, right]) => self.add_products(step, [left, right], None)?,
            Work::AddedProduct([left, right, sum]) => {
                let sum = self.elements(&step.reads[2], sum)?;
                self.add_products(step, [left, right], Some(sum))?;
            }
            Work::Embed(view, [from, to]) => {
                let window = view.apply(&Layout::contiguous(to.clone()))?;
                let copy = PreparedWrite::new(self.elements(&step.reads[0], from)?, window);
                self.add_writes(vec![PreparedWrite::Number(0.0), copy], to, step.writes[0]);
            }
            Work::Reduce(..) | Work::Node(..) => return None,
        }
        Some(())
    }

    /// Adds the fused program of a step. Returns `None` if the program cannot be bound to the operands' layouts.
    fn add_program(&mut self, step: &Step, program: &BoundProgram) -> Option<()> {
        let (mut layouts, mut arguments): (SmallVec<[Option<Layout>; 4]>, SmallVec<_>) = Default::default();
        for read in &step.reads {
            let (layout, argument) = match self.operand(read) {
                Operand::Number(value) => (None, Argument::Number(value)),
                Operand::Elements(Location { input, layout }) => {
                    let start = layout.extent().0;
                    (Some(layout.with_offset(layout.offset() - start)), Argument::Elements { input, start })
                }
            };
            layouts.push(layout);
            arguments.push(argument);
        }
        let shared = self.shared_program(program, layouts)?;
        self.operations
            .push(Operation { start: self.len, kind: OperationKind::Program(Rc::clone(&shared), arguments) });
        // A program may compute an output in another order than the row-major one.
        for (&buffer, layout) in step.writes.iter().zip(&shared.binding.outputs) {
            self.allocate(buffer, layout);
        }
        Some(())
    }

    /// Returns a program bound to operands with the layouts `layouts`. If one of the last [`MAX_SEARCHED_PROGRAMS`] stored programs is equal
    /// and has equal layouts, returns that program. Returns `None` if the program cannot be bound.
    fn shared_program(
        &mut self,
        program: &BoundProgram,
        layouts: SmallVec<[Option<Layout>; 4]>,
    ) -> Option<Rc<SharedProgram>> {
        let (program, shape) = (program.program(), program.shape());
        let is_same = |own: &&Rc<SharedProgram>| {
            own.shape == *shape && own.program == *program && own.binding.layouts() == &layouts[..]
        };
        if let Some(own) = self.programs.iter().rev().take(MAX_SEARCHED_PROGRAMS).find(is_same) {
            return Some(Rc::clone(own));
        }
        let binding = Binding::new(program, layouts, shape, self.dtype, Site::here("plan")).ok()?;
        let shared = Rc::new(SharedProgram { program: program.clone(), shape: shape.clone(), binding });
        self.programs.push(Rc::clone(&shared));
        Some(shared)
    }

    /// Adds the products of two batches of matrices of shapes `left` and `right`, plus `sum`. Returns `None` if an operand would have to be
    /// copied to get its shape.
    fn add_products(&mut self, step: &Step, [left, right]: [&Shape; 2], sum: Option<Location>) -> Option<()> {
        let operands = [self.elements(&step.reads[0], left)?, self.elements(&step.reads[1], right)?];
        let (shape, rank) = (Shape::of_product(left, right), left.rank());
        let sizes = Sizes { m: left[rank - 2], n: right[rank - 1], k: left[rank - 1], add: sum.is_some() };
        let [outer_left, outer_right] =
            [0, 1].map(|operand| operands[operand].layout.keep_axes(|axis| axis < rank - 2));
        let space = IterationSpace::new(outer_left.shape(), [&outer_left, &outer_right]);
        let first_elements =
            (0..outer_left.numel()).map(|b| [0, 1].map(|operand| space.position(operand, b))).collect();
        let operands = operands.map(|operand| operand.matrices());
        let kind =
            OperationKind::Products(Box::new(Products { sizes, operands, first_elements, sum: sum.map(Box::new) }));
        self.operations.push(Operation { start: self.len, kind });
        self.allocate(step.writes[0], &Layout::contiguous(shape));
        Some(())
    }

    /// Adds writes that together produce the value of `buffer`, which has the shape `shape`.
    fn add_writes(&mut self, writes: Vec<PreparedWrite>, shape: &Shape, buffer: u32) {
        self.operations.push(Operation { start: self.len, kind: OperationKind::Writes(writes, shape.numel()) });
        self.allocate(buffer, &Layout::contiguous(shape.clone()));
    }

    /// Reserves the next elements of the region's memory for the value of a buffer. `layout` is the layout of the value within these
    /// elements.
    fn allocate(&mut self, buffer: u32, layout: &Layout) {
        let layout = layout.with_offset(self.len + layout.offset());
        self.len += layout.numel();
        self.locations.insert(buffer, Location { input: None, layout });
    }

    /// Returns an operand of a step: a number, or the location of its elements. The location has the shape in which the elements are stored.
    fn operand(&self, source: &OperandRef) -> Operand {
        match source {
            OperandRef::Number(value) => Operand::Number(*value),
            OperandRef::Buffer(buffer) => Operand::Elements(self.locations[buffer].clone()),
            OperandRef::Known(node) => Operand::Elements(self.known[node].clone()),
        }
    }

    /// Returns the location of an operand as a view of shape `shape`, or `None` if this needs a copy. If the operand is a number, adds an
    /// operation that first stores the number in the region's memory.
    fn elements(&mut self, source: &OperandRef, shape: &Shape) -> Option<Location> {
        let Location { input, layout } = match self.operand(source) {
            Operand::Elements(location) => location,
            Operand::Number(number) => {
                let layout = Layout::contiguous(Shape::scalar()).with_offset(self.len);
                let writes = vec![PreparedWrite::Number(number)];
                self.operations.push(Operation { start: self.len, kind: OperationKind::Writes(writes, 1) });
                self.len += 1;
                Location { input: None, layout }
            }
        };
        if layout.shape() == shape {
            return Some(Location { input, layout });
        }
        // The stored elements are those before the value's expansion to `shape`. They may have more leading dimensions of size 1 than
        // `shape`. This conversion gives the strides that the operand has in a separate step, even for dimensions of size 1.
        let own = layout.shape();
        let layout = match own.rank().checked_sub(shape.rank()) {
            Some(extra @ 1..) => layout.reshape(&Shape::from(&own[extra..]))?,
            _ => layout,
        };
        Some(Location { input, layout: layout.expand(shape)? })
    }
}

impl Argument {
    /// Returns the argument with the layout `layout`, given the inputs' elements and the region's memory.
    #[inline]
    fn with_layout<'a, T: Float>(
        &self,
        layout: Option<&'a Layout>,
        inputs: &[&'a [T]],
        memory: &'a [T],
    ) -> ProgramArgument<'a, T> {
        match (self, layout) {
            (&Argument::Elements { input, start }, Some(layout)) => {
                let data = input.map_or(memory, |input| inputs[input]);
                ProgramArgument::Elements(Source { data: &data[start..], layout })
            }
            (&Argument::Number(value), None) => ProgramArgument::Number(T::from_f64(value)),
            _ => unreachable!("an argument has elements if it has a layout"),
        }
    }
}

/// Runs the operations of a region. `inputs` are the elements of the inputs, and `memory` is the region's memory. Returns an error if there
/// is not enough memory for an operation.
#[wengert_macros::precompiled]
fn execute<T: Float>(compiled: &Compiled, inputs: &[&[T]], memory: &mut [T]) -> Result<(), AllocationError> {
    for Operation { start, kind } in &compiled.operations {
        let (before, after) = memory.split_at_mut(*start);
        let before = &*before;
        match kind {
            OperationKind::Program(shared, arguments) => {
                let SharedProgram { program, binding, .. } = &**shared;
                let mut bound_arguments: SmallVec<[ProgramArgument<'_, T>; 8]> = SmallVec::new();
                for (argument, layout) in arguments.iter().zip(binding.layouts()) {
                    bound_arguments.push(argument.with_layout(layout.as_ref(), inputs, before));
                }
                let mut results: SmallVec<[&mut [T]; 4]> = SmallVec::new();
                let mut rest = after;
                for layout in &binding.outputs {
                    let (result, others) = rest.split_at_mut(layout.numel());
                    results.push(result);
                    rest = others;
                }
                run_bound(program, binding, &bound_arguments, results)?;
            }
            OperationKind::Products(products) => {
                let Products { sizes, operands: [left, right], first_elements, sum } = &**products;
                let product_len = sizes.m * sizes.n;
                let out = &mut after[..first_elements.len() * product_len];
                if let Some(sum) = sum {
                    elementwise::copy(sum.source(inputs, before), out);
                }
                for (&[first_left, first_right], out) in first_elements.iter().zip(out.chunks_exact_mut(product_len)) {
                    let (x, y) = (left.matrix(first_left, inputs, before), right.matrix(first_right, inputs, before));
                    T::standalone_product(*sizes, x, y, out)?;
                }
            }
            OperationKind::Writes(writes, len) => {
                writes.iter().for_each(|write| write.run(inputs, before, &mut after[..*len]));
            }
        }
    }
    Ok(())
}
