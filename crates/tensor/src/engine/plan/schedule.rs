//! From values to steps: elementwise values of one shape are fused into one program, every other value is a step of its own.
//!
//! Each value has a level, the number of kernels that must finish before it can be computed. An elementwise value has the
//! level of its operands of the same shape, so that a chain is one kernel. An operand that is complete only when its kernel has
//! run (a product, a sum over columns, a value of another shape) raises the level. A sum over rows does not: the instructions
//! after it read it in the same pass, so that softmax and layer norm are one pass. Values of one level and one shape depend on
//! each other only within the fused program, so they are one kernel.
//!
//! A value that several kernels of one shape read is computed in each where that is cheaper than reading it from memory.

use std::cell::RefCell;
use std::collections::HashMap;

use smallvec::SmallVec;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::expression::{ByNode, Expression, Index};
use crate::engine::plan::steps::{Plan, Source, Step, Work};
use crate::engine::plan::values::{Concatenation, Definition, Id, ShapeId, Value, Values};
use crate::engine::plan::{concatenation, products};
use crate::engine::program::{AxisSet, Output, Program};
use crate::scalar::instruction::Instruction;
use crate::{Binary, Float, Reduction, Unary, View};

/// Maximum length of a row that is reduced within the pass: a row's registers stay in the second-level cache.
const LONGEST_ROW: usize = 1 << 14;

/// Maximum size of a tensor that is reduced to one number within the pass: a row is computed by one thread.
const LONGEST_WHOLE: usize = 1 << 12;

/// Minimum length of a row for processing one row at a time to pay, unless there are at most [`FEW_ROWS`].
const SHORTEST_ROW: usize = 16;
const FEW_ROWS: usize = 4;

/// Values that are looked at, at most, to find out what a row is computed from.
const FEW_VALUES: usize = 64;

/// Rows of a product that uses each element of the right matrix so seldom that rearranging the matrix is a good part of the work.
const FEW_FACTORS: usize = 64;

/// A value at most this many cheap instructions away from memory is computed again rather than stored and read.
const CHEAP: u32 = 6;

/// Instructions that an expensive one counts as.
const DEAR: u32 = 1000;

/// Where a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// Before the plan: data, a number, or a value that was known.
    Source,
    /// By a step of its own.
    Single,
    /// In a kernel, over the whole shape.
    Whole(u32),
    /// In a kernel, one for each row.
    PerRow(u32),
    /// By a kernel, complete when it has run.
    Reduced(u32),
    /// Nowhere: no root depends on it.
    Dead,
}

/// A fused program in the making.
struct Kernel {
    level: u32,
    space: ShapeId,
    /// The first dimension of a row, where rows are reduced, and the shape of one number for each row.
    row: Option<(usize, ShapeId)>,
    /// Ascending, including values of other kernels that are computed again here.
    members: Vec<Id>,
}

struct Schedule<'a, T: Float> {
    expression: &'a Expression<T>,
    values: &'a Values<T>,
    placements: Vec<Placement>,
    /// The lowest level at which a value is complete in memory.
    ready: Vec<u32>,
    kernels: Vec<Kernel>,
    by_place: HashMap<(u32, ShapeId), u32>,
    singles: Vec<(u32, Id)>,
}

/// The steps that compute the values of `roots`, where those of the nodes in `known` are there already; simplified or not.
pub fn plan<T: Float, V>(expression: &Expression<T>, known: &ByNode<V>, roots: &[Index], simplify: bool) -> Plan<T> {
    let values = Values::new(expression, known, roots, simplify);
    let mut schedule = Schedule {
        expression,
        values: &values,
        placements: vec![Placement::Dead; values.list.len()],
        ready: vec![0; values.list.len()],
        kernels: Vec::new(),
        by_place: HashMap::new(),
        singles: Vec::new(),
    };
    let live = schedule.live(roots);
    for id in (0..values.list.len() as Id).filter(|&id| live[id as usize]) {
        schedule.place(id);
    }
    let outside = schedule.recompute(roots, &live);
    schedule.steps(roots, &outside)
}

impl<T: Float> Schedule<'_, T> {
    fn live(&self, roots: &[Index]) -> Vec<bool> {
        let mut live = vec![false; self.values.list.len()];
        let mut open: Vec<Id> = roots.iter().map(|&root| self.values.of(root)).collect();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut live[id as usize], true) {
                open.extend(self.reads(id));
            }
        }
        live
    }

    /// The operands of a value.
    fn reads(&self, id: Id) -> SmallVec<[Id; 3]> {
        self.values.reads(self.expression, id)
    }

    /// The kernel in which a value can be read while it is computed, over the shape `space`.
    fn kernel_over(&self, id: Id, space: ShapeId) -> Option<u32> {
        match self.placements[id as usize] {
            Placement::Whole(kernel) | Placement::PerRow(kernel) if self.kernels[kernel as usize].space == space => {
                Some(kernel)
            }
            _ => None,
        }
    }

    /// The level of a reader of `operands` that is computed over `space`.
    fn level(&self, operands: &[Id], space: ShapeId) -> u32 {
        let needs = |&operand: &Id| match self.kernel_over(operand, space) {
            Some(kernel) => self.kernels[kernel as usize].level,
            None => self.ready[operand as usize],
        };
        operands.iter().map(needs).max().unwrap_or(0)
    }

    fn kernel(&mut self, level: u32, space: ShapeId) -> u32 {
        *self.by_place.entry((level, space)).or_insert_with(|| {
            self.kernels.push(Kernel { level, space, row: None, members: Vec::new() });
            (self.kernels.len() - 1) as u32
        })
    }

    fn join(&mut self, id: Id, kernel: u32, home: Placement) {
        let joined = &mut self.kernels[kernel as usize];
        joined.members.push(id);
        self.ready[id as usize] = joined.level + 1;
        self.placements[id as usize] = home;
    }

    fn place(&mut self, id: Id) {
        let value = self.values.list[id as usize];
        match value.definition {
            Definition::Known(_) | Definition::Number(_) => self.placements[id as usize] = Placement::Source,
            Definition::Node(_)
            | Definition::View(..)
            | Definition::Embed(..)
            | Definition::Product(..)
            | Definition::Cat(_) => self.alone(id),
            Definition::Reduce(op, x, axes) => self.place_reduction(id, op, x, axes),
            definition => {
                let operands = definition.operands();
                let level = self.level(&operands, value.shape);
                // One number for each row, of a kernel that has just reduced its rows?
                for &operand in &operands {
                    if let Placement::PerRow(kernel) = self.placements[operand as usize] {
                        let Kernel { level: own, space, row, .. } = self.kernels[kernel as usize];
                        let fits = row.is_some_and(|(_, shape)| shape == value.shape);
                        let others = |&other: &Id| {
                            self.placements[other as usize] == Placement::PerRow(kernel)
                                || self.ready[other as usize] <= own
                        };
                        if fits && space != value.shape && own < level && operands.iter().all(others) {
                            return self.join(id, kernel, Placement::PerRow(kernel));
                        }
                    }
                }
                let kernel = self.kernel(level, value.shape);
                self.join(id, kernel, Placement::Whole(kernel));
            }
        }
    }

    fn alone(&mut self, id: Id) {
        let level = self.reads(id).iter().map(|&input| self.ready[input as usize]).max().unwrap_or(0);
        self.ready[id as usize] = level;
        self.placements[id as usize] = Placement::Single;
        self.singles.push((level, id));
    }

    fn place_reduction(&mut self, id: Id, op: Reduction, x: Id, axes: AxisSet) {
        let space = self.values.list[x as usize].shape;
        let sizes = &self.values.shapes[space as usize];
        let (rank, total) = (sizes.len(), sizes.numel());
        let kept = self.values.shape(id).numel();
        let level = self.level(&[x], space);
        // Does it reduce whole rows, the last dimensions?
        let first = axes.trailing_zeros() as usize;
        let rows = (axes >> first) + 1 == 1 << (rank - first);
        let length: usize = sizes[first..].iter().product();
        let longest = if first == 0 { LONGEST_WHOLE } else { LONGEST_ROW };
        let worth = length >= SHORTEST_ROW || total / length.max(1) <= FEW_ROWS || self.of_smaller(x);
        if rows && total > 0 && length <= longest && worth {
            let kernel = self.kernel(level, space);
            let shape = self.values.list[id as usize].shape;
            let row = self.kernels[kernel as usize].row.get_or_insert((first, shape));
            if *row == (first, shape) {
                return self.join(id, kernel, Placement::PerRow(kernel));
            }
        }
        // Every task has totals of its own; many totals are better kept apart.
        if op != Reduction::Prod && (kept.saturating_mul(16) <= total || total <= LONGEST_ROW) {
            let kernel = self.kernel(level, space);
            return self.join(id, kernel, Placement::Reduced(kernel));
        }
        self.alone(id);
    }

    /// Whether a value is computed from operands of fewer elements alone, expanded.
    fn of_smaller(&self, id: Id) -> bool {
        let mut open: SmallVec<[Id; 8]> = SmallVec::from_slice(&[id]);
        let mut seen = 0;
        while let Some(id) = open.pop() {
            let Value { definition, shape, .. } = self.values.list[id as usize];
            seen += 1;
            if !definition.is_elementwise() || seen > FEW_VALUES {
                return false;
            }
            let same = |operand: &Id| self.values.list[*operand as usize].shape == shape;
            open.extend(definition.operands().into_iter().filter(same));
        }
        true
    }

    /// Decides which values are computed again by their readers; gives those that must be stored.
    fn recompute(&mut self, roots: &[Index], live: &[bool]) -> Vec<bool> {
        let mut outside = vec![false; self.values.list.len()];
        for &root in roots {
            outside[self.values.of(root) as usize] = true;
        }
        for id in (0..live.len() as Id).filter(|&id| live[id as usize]) {
            let space = self.home_kernel(id).map(|kernel| self.kernels[kernel as usize].space);
            for read in self.reads(id) {
                // Read by a step of its own, or over another shape.
                if self.home_kernel(read).is_some_and(|kernel| Some(self.kernels[kernel as usize].space) != space) {
                    outside[read as usize] = true;
                }
            }
        }
        let costs = self.costs(&outside);
        for kernel in 0..self.kernels.len() as u32 {
            let Kernel { space, .. } = self.kernels[kernel as usize];
            let mut members = std::mem::take(&mut self.kernels[kernel as usize].members);
            let mut has = vec![false; 0];
            let mut open: Vec<Id> = Vec::new();
            let elsewhere = |schedule: &Self, id: Id| schedule.home_kernel(id).is_some_and(|home| home != kernel);
            for &member in &members {
                open.extend(self.reads(member).into_iter().filter(|&read| elsewhere(self, read)));
            }
            if !open.is_empty() {
                has = vec![false; self.values.list.len()];
            }
            while let Some(id) = open.pop() {
                if has[id as usize] || outside[id as usize] {
                    continue;
                }
                let whole = matches!(self.placements[id as usize], Placement::Whole(_))
                    && self.kernel_over(id, space).is_some();
                if whole && costs[id as usize] <= CHEAP {
                    has[id as usize] = true;
                    members.push(id);
                    open.extend(self.reads(id).into_iter().filter(|&read| elsewhere(self, read)));
                } else {
                    outside[id as usize] = true;
                }
            }
            members.sort_unstable();
            self.kernels[kernel as usize].members = members;
        }
        outside
    }

    fn home_kernel(&self, id: Id) -> Option<u32> {
        match self.placements[id as usize] {
            Placement::Whole(kernel) | Placement::PerRow(kernel) | Placement::Reduced(kernel) => Some(kernel),
            Placement::Source | Placement::Single | Placement::Dead => None,
        }
    }

    /// Cheap instructions from memory to each value, those of operands of other shapes not counted. Reading a second whole
    /// operand counts as reading the value itself would. In memory is also what is dear and read by another kernel, or is
    /// `outside` anyway: the derivative of a sigmoid is computed again from the sigmoid, which is stored.
    fn costs(&self, outside: &[bool]) -> Vec<u32> {
        let mut shared = outside.to_vec();
        for kernel in 0..self.kernels.len() as u32 {
            for &member in &self.kernels[kernel as usize].members {
                for read in self.reads(member) {
                    shared[read as usize] |= self.home_kernel(read).is_some_and(|home| home != kernel);
                }
            }
        }
        let mut costs = vec![0u32; self.values.list.len()];
        let mut reads: Vec<SmallVec<[Id; 2]>> = vec![SmallVec::new(); self.values.list.len()];
        for (id, value) in self.values.list.iter().enumerate() {
            if !value.definition.is_elementwise() {
                reads[id].push(id as Id);
                continue;
            }
            costs[id] = match value.definition {
                Definition::Unary(op, _) if op.is_cheap() => 1,
                Definition::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Maximum | Binary::Minimum, ..) => {
                    1
                }
                Definition::Binary(Binary::Div, ..) => 2,
                Definition::Compare(..) | Definition::Select(..) => 1,
                // No slower than writing and reading the value, and activations that are not kept are most of a model's memory.
                Definition::Unary(Unary::Exp | Unary::Ndtr, _) => 2,
                _ => DEAR,
            };
            let same = |operand: &Id| self.values.list[*operand as usize].shape == value.shape;
            for x in value.definition.operands().into_iter().filter(same) {
                let (before, own) = reads.split_at_mut(id);
                let (cost, loads) = match shared[x as usize] && costs[x as usize] > CHEAP {
                    true => (0, &[x][..]),
                    false => (costs[x as usize], &before[x as usize][..]),
                };
                costs[id] = costs[id].saturating_add(cost);
                own[0]
                    .extend(loads.iter().copied().filter(|load| !own[0].contains(load)).collect::<SmallVec<[Id; 2]>>());
            }
            if reads[id].len() > 2 {
                costs[id] = DEAR;
                reads[id].truncate(3);
            }
        }
        costs
    }

    fn steps(self, roots: &[Index], outside: &[bool]) -> Plan<T> {
        let mut order: Vec<(u32, bool, u32)> = Vec::with_capacity(self.singles.len() + self.kernels.len());
        order.extend(self.singles.iter().map(|&(level, id)| (level, false, id)));
        order.extend(self.kernels.iter().enumerate().map(|(number, kernel)| (kernel.level, true, number as u32)));
        order.sort_unstable();
        let written_out = self.written_out();
        let mut buffers = BufferNumbers { of: vec![u32::MAX; self.values.list.len()], count: 0 };
        let mut steps = Vec::with_capacity(order.len());
        for (_, fused, number) in order {
            match fused {
                true => steps.extend(self.fused(number, outside, &mut buffers)),
                false => steps.push(self.single(number, written_out.contains(&number), &mut buffers)),
            }
        }
        let roots: Vec<_> = roots
            .iter()
            .map(|&root| (self.source(self.values.of(root), &buffers), self.expression.shape(root).clone()))
            .collect();
        let mut steps = products::accumulate(steps, &roots, buffers.count);
        concatenation::side_by_side(&mut steps, &roots, buffers.count);
        let chains = concatenation::chains(&mut steps, &roots, buffers.count);
        drops(&mut steps, &roots, buffers.count);
        Plan { steps, buffers: buffers.count as usize, chains, roots }
    }

    fn source(&self, id: Id, buffers: &BufferNumbers) -> Source<T> {
        match self.values.list[id as usize].definition {
            Definition::Known(node) => Source::Known(node),
            Definition::Number(number) => Source::Number(self.values.numbers[number as usize]),
            _ => Source::Buffer(buffers.of[id as usize]),
        }
    }

    /// Transposed matrices that several products of few rows read, each of which would rearrange the whole matrix for itself.
    fn written_out(&self) -> Vec<Id> {
        let mut readers: HashMap<Id, (usize, bool)> = HashMap::new();
        for &(_, id) in &self.singles {
            for (position, read) in self.reads(id).into_iter().enumerate() {
                let rows = match self.values.list[id as usize].definition {
                    Definition::Product((_, left), _) if position == 1 => {
                        Some(&self.values.shapes[left as usize]).filter(|shape| shape.rank() == 2).map(|shape| shape[0])
                    }
                    _ => None,
                };
                let (count, all_few) = readers.entry(read).or_insert((0, true));
                (*count, *all_few) = (*count + 1, *all_few && rows.is_some_and(|rows| rows <= FEW_FACTORS));
            }
        }
        let transposed = |&id: &Id| match self.values.list[id as usize].definition {
            Definition::View(view, ..) => matches!(self.values.views[view as usize], View::Permute(_)),
            _ => false,
        };
        let several = |id: Id, (count, all_few): (usize, bool)| (count > 1 && all_few).then_some(id);
        readers.into_iter().filter_map(|(id, found)| several(id, found)).filter(transposed).collect()
    }

    /// A value that is a step of its own; a view `written_out` in order or not.
    fn single(&self, id: Id, written_out: bool, buffers: &mut BufferNumbers) -> Step<T> {
        let value = self.values.list[id as usize];
        let reads = self.reads(id).iter().map(|&read| self.source(read, buffers)).collect();
        let work = match value.definition {
            Definition::Reduce(op, x, axes) => Work::Reduce(op, axes, self.values.shape(x).clone()),
            Definition::View(view, from, _) => {
                let (view, from) = (&self.values.views[view as usize], &self.values.shapes[from as usize]);
                if written_out {
                    Work::Copy(view.clone(), from.clone())
                } else {
                    Work::View(view.clone(), from.clone())
                }
            }
            Definition::Embed(view, (_, from), to) => {
                let [from, to] = [from, to].map(|shape| self.values.shapes[shape as usize].clone());
                Work::Embed(self.values.views[view as usize].clone(), [from, to])
            }
            Definition::Product((_, left), (_, right)) => {
                Work::Product([left, right].map(|shape| self.values.shapes[shape as usize].clone()))
            }
            Definition::Cat(number) => {
                let Concatenation { axis, parts } = &self.values.concatenations[number as usize];
                let shapes = parts.iter().map(|&(_, shape)| self.values.shapes[shape as usize].clone());
                Work::Cat(*axis, shapes.collect())
            }
            _ => {
                let shapes =
                    self.expression.operands(value.node).iter().map(|&input| self.expression.shape(input).clone());
                Work::Node(value.node, shapes.collect())
            }
        };
        Step { work, reads, writes: SmallVec::from_slice(&[buffers.add(id)]), drops: SmallVec::new(), node: value.node }
    }

    /// The members of a kernel that its outputs depend on: others are computed again where they are read.
    fn used(&self, number: u32, outside: &[bool]) -> Vec<Id> {
        let members = &self.kernels[number as usize].members;
        let mut used = vec![false; members.len()];
        for position in (0..members.len()).rev() {
            let id = members[position];
            used[position] |= matches!(self.placements[id as usize], Placement::Reduced(_))
                || outside[id as usize] && self.home_kernel(id) == Some(number);
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

    /// `None` where all that the kernel makes is computed again by its readers.
    fn fused(&self, number: u32, outside: &[bool], buffers: &mut BufferNumbers) -> Option<Step<T>> {
        let kernel = &self.kernels[number as usize];
        let members = self.used(number, outside);
        let is_instruction = |&id: &Id| !matches!(self.placements[id as usize], Placement::Reduced(_));
        let mut numbers: HashMap<Id, u32> = HashMap::with_capacity(2 * members.len());
        // Operands that no member computes are inputs; how many they are is known only when all have been seen.
        let instructions: Vec<Id> = members.iter().copied().filter(is_instruction).collect();
        for &id in &instructions {
            numbers.insert(id, 0);
        }
        let mut reads: SmallVec<[Source<T>; 4]> = SmallVec::new();
        for &member in &members {
            for operand in self.reads(member) {
                numbers.entry(operand).or_insert_with(|| {
                    reads.push(self.source(operand, buffers));
                    (reads.len() - 1) as u32
                });
            }
        }
        let inputs = reads.len() as u32;
        for (position, id) in instructions.iter().enumerate() {
            numbers.insert(*id, inputs + position as u32);
        }
        let at = |id: Id| numbers[&id];
        let code = instructions
            .iter()
            .map(|&id| match self.values.list[id as usize].definition {
                Definition::Unary(op, x) => Instruction::Unary(op, at(x)),
                Definition::Binary(op, x, y) => Instruction::Binary(op, at(x), at(y)),
                Definition::Compare(op, x, y) => Instruction::Compare(op, at(x), at(y)),
                Definition::Select(mask, x, y) => Instruction::Select(at(mask), at(x), at(y)),
                Definition::Reduce(op, x, _) => Instruction::Reduce(op, at(x)),
                definition => unreachable!("{definition:?} is a step of its own"),
            })
            .collect();
        let mut outputs = Vec::new();
        let mut writes = SmallVec::new();
        for &id in &members {
            let output = match (self.placements[id as usize], self.values.list[id as usize].definition) {
                (Placement::Reduced(_), Definition::Reduce(op, x, axes)) => Output::Reduced(op, at(x), axes),
                (home, _) if !outside[id as usize] || self.home_kernel(id) != Some(number) => {
                    debug_assert!(home != Placement::Dead);
                    continue;
                }
                (Placement::PerRow(_), _) => Output::PerRow(at(id)),
                _ => Output::Whole(at(id)),
            };
            outputs.push(output);
            writes.push(buffers.add(id));
        }
        if outputs.is_empty() {
            return None;
        }
        let node = members.last().map_or(0, |&id| self.values.list[id as usize].node);
        let program = Program::new(inputs, code, outputs, kernel.row.map(|(first, _)| first));
        let space = self.values.shapes[kernel.space as usize].clone();
        let work = Work::Fused(RefCell::new(BoundProgram::new(program, space)));
        Some(Step { work, reads, writes, drops: SmallVec::new(), node })
    }
}

/// Numbers of stored values.
struct BufferNumbers {
    of: Vec<u32>,
    count: u32,
}

impl BufferNumbers {
    fn add(&mut self, id: Id) -> u32 {
        self.of[id as usize] = self.count;
        self.count += 1;
        self.count - 1
    }
}

/// Notes with each step what is read for the last time.
fn drops<T: Copy>(steps: &mut [Step<T>], roots: &[(Source<T>, crate::Shape)], count: u32) {
    let mut done = vec![false; count as usize];
    for (source, _) in roots {
        if let Source::Buffer(buffer) = source {
            done[*buffer as usize] = true;
        }
    }
    for step in steps.iter_mut().rev() {
        let written = step.writes.iter().copied();
        let buffers =
            step.reads.iter().filter_map(|read| if let Source::Buffer(buffer) = read { Some(*buffer) } else { None });
        let buffers: SmallVec<[u32; 8]> = buffers.chain(written).collect();
        for buffer in buffers {
            if !std::mem::replace(&mut done[buffer as usize], true) {
                step.drops.push(buffer);
            }
        }
    }
}
