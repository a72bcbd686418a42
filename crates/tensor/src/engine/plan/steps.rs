//! Plans: lists of steps, each with the buffers of its operands and results.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::expression::NodeIndex;
use crate::engine::program::AxisSet;
use crate::{Reduction, Shape, View};

/// The source from which a step reads an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperandRef {
    /// The result of an earlier step. The field is the index of the buffer that has this result.
    Buffer(u32),
    /// The data of a leaf, which is known before the plan runs. The field is the leaf's node.
    Known(NodeIndex),
    /// A number for all elements of the operand.
    Number(f64),
}

impl OperandRef {
    /// Returns the buffer that has the operand, or `None` if the operand is a number or the data of a leaf.
    pub fn buffer(&self) -> Option<u32> {
        if let OperandRef::Buffer(buffer) = self { Some(*buffer) } else { None }
    }
}

/// Returns how often each of the `buffer_count` buffers is read, by steps and as roots.
pub(super) fn count_reads(steps: &[Step], roots: &[(OperandRef, Shape)], buffer_count: u32) -> Vec<u32> {
    let mut counts = vec![0; buffer_count as usize];
    let sources = steps.iter().flat_map(|step| &step.reads).chain(roots.iter().map(|(source, _)| source));
    sources.filter_map(OperandRef::buffer).for_each(|buffer| counts[buffer as usize] += 1);
    counts
}

/// The computation of a step, with the shapes of the operands.
#[derive(Debug)]
pub enum Work {
    /// A fused program, with the binding for the operand layouts of its most recent run.
    Fused(RefCell<BoundProgram>),
    /// A reduction over the given dimensions. The operand has the given shape.
    Reduce(Reduction, AxisSet, Shape),
    /// A view of an operand. The operand has the given shape.
    View(View, Shape),
    /// A view of an operand, copied in row-major order. The operand has the given shape.
    Copy(View, Shape),
    /// The matrix product of the first two operands, plus the third one. The field has the operands' shapes.
    AddedProduct([Shape; 3]),
    /// The matrix product of two operands of these shapes.
    Product([Shape; 2]),
    /// The adjoint of a view. The operand has the first shape, and the result has the second one.
    Embed(View, [Shape; 2]),
    /// A concatenation.
    Cat {
        /// The dimension along which the operands are concatenated.
        axis: usize,
        /// The operands' shapes.
        shapes: SmallVec<[Shape; 2]>,
        /// If other steps may write operands directly into the result, the position of the first operand in the plan's [`ConcatBuffers`].
        /// Otherwise `None`. A region ignores this position and copies all operands. All operands are also copied if no step has taken
        /// memory of this concatenation buffer.
        in_place: Option<Offset>,
    },
    /// An operation that the host (such as the tape) runs. The fields are its node and the shapes of its operands.
    Node(NodeIndex, SmallVec<[Shape; 2]>),
}

/// One step of a plan.
#[derive(Debug)]
pub struct Step {
    /// The computation of the step.
    pub work: Work,
    /// The sources of the operands.
    pub reads: SmallVec<[OperandRef; 4]>,
    /// The buffers of the results.
    pub writes: SmallVec<[u32; 4]>,
    /// The buffers that this step is the last one to use, so that their memory can be released after it.
    pub drops: SmallVec<[u32; 4]>,
    /// The node whose line of code an error in this step names, for example if memory runs out.
    pub node: NodeIndex,
}

/// A position in the memory of a concatenation: see [`ConcatBuffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The index of the concatenation buffer.
    pub buffer: usize,
    /// The position of the operand's first element in this buffer.
    pub start: usize,
}

/// Memory for concatenations. Steps write operands directly into it, so that these operands are not copied.
#[derive(Debug, Default)]
pub struct ConcatBuffers {
    /// The number of elements of each concatenation buffer.
    pub lengths: Vec<usize>,
    /// For each buffer of the plan that is written into this memory: its offset and its number of elements.
    pub offsets: FxHashMap<u32, (Offset, usize)>,
}
