//! Makes the steps of a plan. Before this, the planner has assigned each value to a kernel (a fused program) or to a step of its own.

use std::cell::RefCell;

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::definition::{Concatenation, Definition, Id};
use crate::engine::plan::expression::{NodeIndex, ResultOrigin};
use crate::engine::plan::placements::{Placement, Placements};
use crate::engine::plan::regions::Region;
use crate::engine::plan::steps::{ConcatBuffers, OperandRef, Step, Work};
use crate::engine::plan::{concatenation, products, regions};
use crate::engine::program::{Output, Program};
use crate::memory::threads::ThreadChoice;
use crate::scalar::instruction::Instruction;
use crate::thresholds::ops::MANY_TERMS;
use crate::thresholds::plan as limits;
use crate::{Shape, View};

/// The steps that compute the requested values of an expression.
#[derive(Debug)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The number of buffers.
    pub buffers: usize,
    /// The memory of the concatenations whose operands are written directly into the result.
    pub concat_buffers: ConcatBuffers,
    /// The requested values, each with the shape of its node.
    pub roots: Vec<(OperandRef, Shape)>,
    /// The regions, in order. A region consists of consecutive steps that compute only small values.
    pub regions: Vec<Region>,
    /// The choice between helper threads and the calling thread alone for the runs of this plan.
    pub(crate) threads: ThreadChoice,
}

impl Placements<'_> {
    /// Returns the plan with its steps in order. `stored` marks the values that must be in memory. These are the values of `roots`, and each
    /// value that a step other than its own kernel (fused program) reads.
    pub(super) fn into_plan(self, roots: &[NodeIndex], stored: &[bool]) -> Plan {
        let mut order: Vec<(u32, bool, u32)> = Vec::with_capacity(self.separate_steps.len() + self.kernels.len());
        order.extend(self.separate_steps.iter().map(|&(level, id)| (level, false, id)));
        order.extend(self.kernels.iter().enumerate().map(|(number, kernel)| (kernel.level, true, number as u32)));
        order.sort_unstable();
        let copied_transposes = self.copied_transposes();
        let mut buffers = BufferIndices { of_values: vec![u32::MAX; self.values.list.len()], count: 0 };
        let mut steps = Vec::with_capacity(order.len());
        for (_, fused, number) in order {
            match fused {
                true => steps.extend(self.fused_step(number, stored, &mut buffers)),
                false => steps.push(self.separate_step(number, copied_transposes.contains(&number), &mut buffers)),
            }
        }
        let roots: Vec<_> = roots
            .iter()
            .map(|&root| (self.operand_ref(self.values.value_of(root), &buffers), self.expression.shape(root).clone()))
            .collect();
        let mut steps = products::fuse_additions(steps, &roots, buffers.count);
        concatenation::fuse_concatenations(&mut steps, &roots, buffers.count);
        let concat_buffers = concatenation::plan_in_place(&mut steps, &roots, buffers.count);
        set_drops(&mut steps, &roots, buffers.count);
        let mut is_root = vec![false; buffers.count as usize];
        roots.iter().filter_map(|(source, _)| source.buffer()).for_each(|buffer| is_root[buffer as usize] = true);
        let regions = regions::find(&steps, &concat_buffers, &is_root);
        Plan {
            steps,
            buffers: buffers.count as usize,
            concat_buffers,
            roots,
            regions,
            threads: ThreadChoice::default(),
        }
    }

    /// Returns the source from which a step reads a value.
    fn operand_ref(&self, id: Id, buffers: &BufferIndices) -> OperandRef {
        match (self.values.list[id as usize].definition, self.values.as_number(id)) {
            (Definition::Known(node), _) => OperandRef::Known(node),
            (_, Some(number)) => OperandRef::Number(number),
            _ => OperandRef::Buffer(buffers.of_values[id as usize]),
        }
    }

    /// Returns the permuted views (such as transposed matrices) that are copied in row-major order. A view is copied if several separate
    /// steps read it, each as the right operand of a product with few rows. Otherwise each product would rearrange the matrix itself.
    fn copied_transposes(&self) -> Vec<Id> {
        let mut readers: FxHashMap<Id, (usize, bool)> = FxHashMap::default();
        for &(_, id) in &self.separate_steps {
            for (position, read) in self.reads(id).into_iter().enumerate() {
                let rows = match self.values.list[id as usize].definition {
                    Definition::Product((_, left), _) if position == 1 => {
                        Some(&self.values.shapes[left]).filter(|shape| shape.rank() == 2).map(|shape| shape[0])
                    }
                    _ => None,
                };
                let (count, all_few) = readers.entry(read).or_insert((0, true));
                (*count, *all_few) =
                    (*count + 1, *all_few && rows.is_some_and(|rows| rows <= limits::FEW_PRODUCT_ROWS));
            }
        }
        let transposed = |&id: &Id| match self.values.list[id as usize].definition {
            Definition::View(view, ..) => matches!(self.values.views[view], View::Permute(_)),
            _ => false,
        };
        let several = |id: Id, (count, all_few): (usize, bool)| (count > 1 && all_few).then_some(id);
        readers.into_iter().filter_map(|(id, found)| several(id, found)).filter(transposed).collect()
    }

    /// Returns the step of a value that no kernel (fused program) computes. If `must_copy` is true, the step of a view copies the
    /// elements in row-major order.
    fn separate_step(&self, id: Id, must_copy: bool, buffers: &mut BufferIndices) -> Step {
        let value = self.values.list[id as usize];
        let reads = self.reads(id).iter().map(|&read| self.operand_ref(read, buffers)).collect();
        let work = match value.definition {
            Definition::Reduce(op, x, axes) => Work::Reduce(op, axes, self.values.shape(x).clone()),
            Definition::View(view, from, x) => {
                let (view, from) = (&self.values.views[view], &self.values.shapes[from]);
                // A reshape of an operand that is expanded to many elements is copied. The planner would reshape the operand before its
                // expansion if this were possible. If memory cannot hold the copy, the run fails at once. With a view instead of a copy,
                // later steps would run over all elements, which may take years.
                let copies_expansion = matches!(view, View::Reshape(_))
                    && from.numel() >= MANY_TERMS
                    && from.numel() != self.values.shape(x).numel();
                if must_copy || copies_expansion {
                    Work::Copy(view.clone(), from.clone())
                } else {
                    Work::View(view.clone(), from.clone())
                }
            }
            Definition::Embed(view, (_, from), to) => {
                let [from, to] = [from, to].map(|shape| self.values.shapes[shape].clone());
                Work::Embed(self.values.views[view].clone(), [from, to])
            }
            Definition::Product((_, left), (_, right)) => {
                Work::Product([left, right].map(|shape| self.values.shapes[shape].clone()))
            }
            Definition::Cat(number) => {
                let Concatenation { axis, parts } = &self.values.concatenations[number];
                let shapes = parts.iter().map(|&(_, shape)| self.values.shapes[shape].clone());
                Work::Cat { axis: *axis, shapes: shapes.collect(), in_place: None }
            }
            _ if self.expression.result_origin(value.node) == ResultOrigin::CheckedInput => {
                Work::Node(value.node, SmallVec::from_elem(self.values.shape(id).clone(), 1))
            }
            _ => {
                let shapes =
                    self.expression.operands(value.node).iter().map(|&input| self.expression.shape(input).clone());
                Work::Node(value.node, shapes.collect())
            }
        };
        Step { work, reads, writes: SmallVec::from_slice(&[buffers.add(id)]), drops: SmallVec::new(), node: value.node }
    }

    /// Returns the members (values) of a kernel (a fused program) that are needed for its outputs. The kernel does not compute its other
    /// members. If another kernel reads one of those, that kernel computes the member again.
    fn used_members(&self, number: u32, stored: &[bool]) -> Vec<Id> {
        let members = &self.kernels[number as usize].members;
        let mut used = vec![false; members.len()];
        for position in (0..members.len()).rev() {
            let id = members[position];
            used[position] |= matches!(self.placements[id as usize], Placement::Reduced(_))
                || stored[id as usize] && self.home_kernel(id) == Some(number);
            if used[position] {
                for read in self.reads(id) {
                    if let Ok(operand) = members.binary_search(&read) {
                        used[operand] = true;
                    }
                }
            }
        }
        members.iter().zip(used).filter(|(_, used)| *used).map(|(&id, _)| id).collect()
    }

    /// Returns the instruction that computes a value. `index_of` returns the index of an operand in the program.
    fn instruction(&self, id: Id, index_of: impl Fn(Id) -> u32) -> Instruction {
        match self.values.list[id as usize].definition {
            Definition::Unary(op, x) => Instruction::Unary(op, index_of(x)),
            Definition::Binary(op, x, y) => Instruction::Binary(op, index_of(x), index_of(y)),
            Definition::Compare(op, x, y) => Instruction::Compare(op, index_of(x), index_of(y)),
            Definition::Select(mask, x, y) => Instruction::Select(index_of(mask), index_of(x), index_of(y)),
            Definition::Reduce(op, x, _) => Instruction::Reduce(op, index_of(x)),
            definition => unreachable!("{definition:?} is a step of its own"),
        }
    }

    /// Returns the step of the kernel (fused program) with index `number`. Returns `None` if no step reads its values from memory, because
    /// other kernels compute these values themselves.
    fn fused_step(&self, number: u32, stored: &[bool], buffers: &mut BufferIndices) -> Option<Step> {
        let kernel = &self.kernels[number as usize];
        let members = self.used_members(number, stored);
        let is_instruction = |&id: &Id| !matches!(self.placements[id as usize], Placement::Reduced(_));
        let mut numbers: FxHashMap<Id, u32> = FxHashMap::with_capacity_and_hasher(2 * members.len(), FxBuildHasher);
        // The operands that no instruction computes are the program's inputs. The instructions are numbered after the inputs.
        let instructions: Vec<Id> = members.iter().copied().filter(is_instruction).collect();
        for &id in &instructions {
            numbers.insert(id, 0);
        }
        let mut reads: SmallVec<[OperandRef; 4]> = SmallVec::new();
        for &member in &members {
            for operand in self.reads(member) {
                numbers.entry(operand).or_insert_with(|| {
                    reads.push(self.operand_ref(operand, buffers));
                    (reads.len() - 1) as u32
                });
            }
        }
        let inputs = reads.len() as u32;
        for (position, id) in instructions.iter().enumerate() {
            numbers.insert(*id, inputs + position as u32);
        }
        let index_of = |id: Id| numbers[&id];
        let instruction_list = instructions.iter().map(|&id| self.instruction(id, index_of)).collect();
        let mut outputs = Vec::new();
        let mut writes = SmallVec::new();
        for &id in &members {
            let output = match (self.placements[id as usize], self.values.list[id as usize].definition) {
                (Placement::Reduced(_), Definition::Reduce(op, x, axes)) => Output::Reduced(op, index_of(x), axes),
                (home, _) if !stored[id as usize] || self.home_kernel(id) != Some(number) => {
                    debug_assert!(home != Placement::Dead);
                    continue;
                }
                (Placement::PerRow(_), _) => Output::PerRow(index_of(id)),
                _ => Output::Whole(index_of(id)),
            };
            outputs.push(output);
            writes.push(buffers.add(id));
        }
        if outputs.is_empty() {
            return None;
        }
        let node = members.last().map_or(0, |&id| self.values.list[id as usize].node);
        let program = Program::new(inputs, instruction_list, outputs, kernel.row.map(|(first, _)| first));
        let space = self.values.shapes[kernel.space].clone();
        let work = Work::Fused(RefCell::new(BoundProgram::new(program, space)));
        Some(Step { work, reads, writes, drops: SmallVec::new(), node })
    }
}

/// The buffers of a plan: for each value, the index of the buffer that stores the value (`u32::MAX` if none), and the number of buffers.
struct BufferIndices {
    of_values: Vec<u32>,
    count: u32,
}

impl BufferIndices {
    fn add(&mut self, id: Id) -> u32 {
        self.of_values[id as usize] = self.count;
        self.count += 1;
        self.count - 1
    }
}

/// Adds to each step the list of the buffers that this step is the last one to use. The buffers of roots, the results of the plan, are in
/// no list.
fn set_drops(steps: &mut [Step], roots: &[(OperandRef, Shape)], count: u32) {
    let mut done = vec![false; count as usize];
    roots.iter().filter_map(|(source, _)| source.buffer()).for_each(|buffer| done[buffer as usize] = true);
    for step in steps.iter_mut().rev() {
        let written = step.writes.iter().copied();
        let buffers: SmallVec<[u32; 8]> = step.reads.iter().filter_map(OperandRef::buffer).chain(written).collect();
        for buffer in buffers {
            if !std::mem::replace(&mut done[buffer as usize], true) {
                step.drops.push(buffer);
            }
        }
    }
}
