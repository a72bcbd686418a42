//! Places values in kernels (fused programs) or in separate steps. A kernel has elementwise values of one shape, most reductions of these
//! values, and values computed from the totals of rows. Products, views and their adjoints, concatenations and operations of the host are
//! separate steps. So are all other reductions.
//!
//! Each value has a level: the length of the longest chain of kernels that must finish before the value can be computed. An elementwise
//! value has the level of its operands of the same shape, so that a chain of such values is one kernel. An operand that is complete only
//! after its kernel (a sum over columns, a value of another shape) raises the level. A sum within each row does not raise the level,
//! because later instructions read the sum in the same pass. So softmax and layer norm of rows that are not too long are one pass. Values
//! of one level and one shape form one kernel. A separate step runs before the kernels of its level, so it does not raise the level.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::engine::plan::definition::{Definition, Id, ShapeId, Value};
use crate::engine::plan::expression::Expression;
use crate::engine::plan::values::Values;
use crate::engine::program::AxisSet;
use crate::thresholds::plan as limits;

/// The part of a plan that computes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// The value exists before the plan runs: it is data or a number.
    Source,
    /// A separate step computes the value.
    SeparateStep,
    /// The kernel (fused program) with this index computes the value over the whole shape.
    Whole(u32),
    /// The kernel (fused program) with this index computes the value, which has one element for each row.
    PerRow(u32),
    /// The kernel (fused program) with this index computes the value as a reduction, which is complete when the kernel has finished.
    Reduced(u32),
    /// The value is not computed, because no root (requested value) depends on it.
    Dead,
}

/// A fused program to which values are still being added.
pub(super) struct Kernel {
    pub(super) level: u32,
    pub(super) space: ShapeId,
    /// If the program reduces rows: the first dimension of a row, and the shape of a value with one element for each row.
    pub(super) row: Option<(usize, ShapeId)>,
    /// The values of the kernel, in ascending order. They include values of other kernels that this kernel computes again. Members that no
    /// output needs are not computed.
    pub(super) members: Vec<Id>,
}

/// The state of the placement: the kernels (fused programs) and separate steps that compute the values placed so far.
pub(super) struct Placements<'a> {
    pub(super) expression: &'a Expression,
    pub(super) values: &'a Values,
    pub(super) placements: Vec<Placement>,
    /// For each value, the length of the longest chain of kernels (fused programs) that must finish before the value is complete in memory.
    ready_levels: Vec<u32>,
    pub(super) kernels: Vec<Kernel>,
    kernel_indices: FxHashMap<(u32, ShapeId), u32>,
    /// For each value that a separate step computes: its level, and the value's index. The level is the length of the longest chain of
    /// kernels (fused programs) that must finish before the step can run.
    pub(super) separate_steps: Vec<(u32, Id)>,
}

impl<'a> Placements<'a> {
    /// Places all values that are marked in `live`, in kernels (fused programs) or as separate steps.
    pub(super) fn new(expression: &'a Expression, values: &'a Values, live: &[bool]) -> Self {
        let mut placements = Placements {
            expression,
            values,
            placements: vec![Placement::Dead; values.list.len()],
            ready_levels: vec![0; values.list.len()],
            kernels: Vec::new(),
            kernel_indices: FxHashMap::default(),
            separate_steps: Vec::new(),
        };
        for id in (0..values.list.len() as Id).filter(|&id| live[id as usize]) {
            placements.place(id);
        }
        placements
    }

    /// Returns the operands of a value.
    pub(super) fn reads(&self, id: Id) -> SmallVec<[Id; 3]> {
        self.values.reads(self.expression, id)
    }

    /// Returns the kernel (fused program) in which a value is placed, or `None` if no kernel computes the value.
    pub(super) fn home_kernel(&self, id: Id) -> Option<u32> {
        match self.placements[id as usize] {
            Placement::Whole(kernel) | Placement::PerRow(kernel) | Placement::Reduced(kernel) => Some(kernel),
            Placement::Source | Placement::SeparateStep | Placement::Dead => None,
        }
    }

    /// Returns the kernel (fused program) over the shape `space` whose instructions can read the value while the kernel runs, or `None` if
    /// there is none.
    pub(super) fn kernel_over(&self, id: Id, space: ShapeId) -> Option<u32> {
        match self.placements[id as usize] {
            Placement::Whole(kernel) | Placement::PerRow(kernel) if self.kernels[kernel as usize].space == space => {
                Some(kernel)
            }
            _ => None,
        }
    }

    /// Returns the level of a value over `space` that is computed from `operands`. The level is the length of the longest chain of kernels
    /// (fused programs) that must finish before the value can be computed.
    fn level(&self, operands: &[Id], space: ShapeId) -> u32 {
        let needs = |&operand: &Id| match self.kernel_over(operand, space) {
            Some(kernel) => self.kernels[kernel as usize].level,
            None => self.ready_levels[operand as usize],
        };
        operands.iter().map(needs).max().unwrap_or(0)
    }

    /// Returns the kernel (fused program) over the shape `space` that runs after a chain of `level` other kernels. Adds this kernel if it
    /// does not exist.
    fn get_or_add_kernel(&mut self, level: u32, space: ShapeId) -> u32 {
        *self.kernel_indices.entry((level, space)).or_insert_with(|| {
            self.kernels.push(Kernel { level, space, row: None, members: Vec::new() });
            (self.kernels.len() - 1) as u32
        })
    }

    /// Adds a value to the members of a kernel (fused program), and records the given placement of the value.
    fn add_to_kernel(&mut self, id: Id, kernel: u32, placement: Placement) {
        let joined_kernel = &mut self.kernels[kernel as usize];
        joined_kernel.members.push(id);
        self.ready_levels[id as usize] = joined_kernel.level + 1;
        self.placements[id as usize] = placement;
    }

    /// Places a value whose operands have already been placed.
    fn place(&mut self, id: Id) {
        let value = self.values.list[id as usize];
        match value.definition {
            Definition::Known(_) | Definition::Number(_) => self.placements[id as usize] = Placement::Source,
            Definition::Node(_)
            | Definition::View(..)
            | Definition::Embed(..)
            | Definition::Product(..)
            | Definition::Cat(_) => self.place_as_step(id),
            Definition::Reduce(_, x, axes) => self.place_reduction(id, x, axes),
            definition => {
                let operands = definition.operands();
                let level = self.level(&operands, value.shape);
                // A value with one element for each row is placed in the kernel (fused program) that reduces the rows of its operand. This
                // kernel must also be able to read the other operands.
                for &operand in &operands {
                    if let Placement::PerRow(kernel) = self.placements[operand as usize] {
                        let Kernel { level: own, space, row, .. } = self.kernels[kernel as usize];
                        let fits = row.is_some_and(|(_, shape)| shape == value.shape);
                        let others = |&other: &Id| {
                            self.placements[other as usize] == Placement::PerRow(kernel)
                                || self.ready_levels[other as usize] <= own
                        };
                        if fits && space != value.shape && own < level && operands.iter().all(others) {
                            return self.add_to_kernel(id, kernel, Placement::PerRow(kernel));
                        }
                    }
                }
                let kernel = self.get_or_add_kernel(level, value.shape);
                self.add_to_kernel(id, kernel, Placement::Whole(kernel));
            }
        }
    }

    /// Places a value as a separate step.
    fn place_as_step(&mut self, id: Id) {
        let level = self.reads(id).iter().map(|&input| self.ready_levels[input as usize]).max().unwrap_or(0);
        self.ready_levels[id as usize] = level;
        self.placements[id as usize] = Placement::SeparateStep;
        self.separate_steps.push((level, id));
    }

    /// Places a reduction. A reduction of whole rows becomes an instruction of a kernel (fused program) if this is fast and the kernel
    /// reduces no other rows. Other reductions become an output of a kernel or a separate step.
    fn place_reduction(&mut self, id: Id, x: Id, axes: AxisSet) {
        let space = self.values.list[x as usize].shape;
        let sizes = &self.values.shapes[space];
        let (rank, total) = (sizes.len(), sizes.numel());
        let kept = self.values.shape(id).numel();
        let level = self.level(&[x], space);
        // `covers_rows` is true if the reduced dimensions are the last ones, so that the reduction covers whole rows.
        let first = axes.trailing_zeros() as usize;
        let covers_rows = (axes >> first) + 1 == 1 << (rank - first);
        let length: usize = sizes[first..].iter().product();
        let longest = if first == 0 { limits::MAX_SINGLE_ROW } else { limits::MAX_ROW };
        let worth =
            length >= limits::MIN_ROW || total / length.max(1) <= limits::FEW_ROWS || self.is_computed_from_smaller(x);
        if covers_rows && total > 0 && length <= longest && worth {
            let kernel = self.get_or_add_kernel(level, space);
            let shape = self.values.list[id as usize].shape;
            let row = self.kernels[kernel as usize].row.get_or_insert((first, shape));
            if *row == (first, shape) {
                return self.add_to_kernel(id, kernel, Placement::PerRow(kernel));
            }
        }
        // Each task of a kernel (fused program) has its own copy of all totals (results of the reduction). Many totals would take much
        // memory, so the reduction becomes a separate step then.
        if kept.saturating_mul(limits::MIN_TERMS_PER_TOTAL) <= total || total <= limits::MAX_ROW {
            let kernel = self.get_or_add_kernel(level, space);
            return self.add_to_kernel(id, kernel, Placement::Reduced(kernel));
        }
        self.place_as_step(id);
    }

    /// Returns true if a value is computed only from expanded operands, which have fewer elements than the value. A reduction of the
    /// value's rows then becomes an instruction of a kernel even if the rows are short. Returns false if the computation has too many
    /// values to search.
    fn is_computed_from_smaller(&self, id: Id) -> bool {
        let mut open: SmallVec<[Id; 8]> = SmallVec::from_slice(&[id]);
        let mut seen = 0;
        while let Some(id) = open.pop() {
            let Value { definition, shape, .. } = self.values.list[id as usize];
            seen += 1;
            if !definition.is_elementwise() || seen > limits::MAX_SEARCHED_VALUES {
                return false;
            }
            let same = |operand: &Id| self.values.list[*operand as usize].shape == shape;
            open.extend(definition.operands().into_iter().filter(same));
        }
        true
    }
}
