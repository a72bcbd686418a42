//! Plans: lists of steps, each with the buffers of its operands and results.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::expression::Index;
use crate::engine::program::AxisSet;
use crate::{Reduction, Shape, View};

/// The source of an operand.
#[derive(Clone, Copy, Debug)]
pub enum OperandRef<T> {
    /// The result of an earlier step, in this buffer.
    Buffer(u32),
    /// The value of this node. The value is data, or is known before the plan runs.
    Known(Index),
    /// This number.
    Number(T),
}

/// The work of a step.
#[derive(Debug)]
pub enum Work {
    /// A fused program, with the binding for the operand layouts of its most recent run.
    Fused(RefCell<BoundProgram>),
    /// A reduction of a value of this shape.
    Reduce(Reduction, AxisSet, Shape),
    /// A view of a value of this shape.
    View(View, Shape),
    /// A view of a value of this shape, copied in row-major order.
    Copy(View, Shape),
    /// The matrix product of the first two operands, plus the third one. The field has the operands' shapes.
    AddedProduct([Shape; 3]),
    /// The matrix product of two operands of these shapes.
    Product([Shape; 2]),
    /// The adjoint of a view. The operand has the first shape, and the result has the second one.
    Embed(View, [Shape; 2]),
    /// A concatenation.
    Cat {
        /// The dimension.
        axis: usize,
        /// The operands' shapes.
        shapes: SmallVec<[Shape; 2]>,
        /// The position of the first operand in the [`ConcatBuffers`], if other steps write operands directly into the result; otherwise
        /// `None`.
        in_place: Option<Offset>,
    },
    /// The operation of a node, whose operands have these shapes.
    Node(Index, SmallVec<[Shape; 2]>),
}

/// One step of a plan.
#[derive(Debug)]
pub struct Step<T> {
    /// The computation.
    pub work: Work,
    /// The sources of the operands.
    pub reads: SmallVec<[OperandRef<T>; 4]>,
    /// The buffers of the results.
    pub writes: SmallVec<[u32; 4]>,
    /// The buffers that no later step reads.
    pub drops: SmallVec<[u32; 4]>,
    /// If memory runs out in this step, the error names the line of code of this node.
    pub node: Index,
}

/// A position in the memory of a concatenation: see [`ConcatBuffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The index of the concatenation buffer.
    pub buffer: usize,
    /// The position of the first element.
    pub start: usize,
}

/// Memory for concatenations. The operands are written directly into the result, so that nothing is copied.
#[derive(Debug, Default)]
pub struct ConcatBuffers {
    /// The number of elements of each concatenation buffer.
    pub lengths: Vec<usize>,
    /// For each buffer of the plan that is written into this memory: its offset and its number of elements.
    pub offsets: FxHashMap<u32, (Offset, usize)>,
}

/// The steps that compute values.
#[derive(Debug)]
pub struct Plan<T> {
    /// The steps, in order.
    pub steps: Vec<Step<T>>,
    /// The number of buffers.
    pub buffers: usize,
    /// The memory of the concatenations whose operands are written directly into the result.
    pub concat_buffers: ConcatBuffers,
    /// The requested values, each with the shape of its node.
    pub roots: Vec<(OperandRef<T>, Shape)>,
}
