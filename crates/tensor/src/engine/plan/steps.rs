//! A plan: steps in order, and where their operands and results are.

use std::cell::RefCell;
use std::collections::HashMap;

use smallvec::SmallVec;

use crate::engine::bound::BoundProgram;
use crate::engine::plan::expression::Index;
use crate::engine::program::AxisSet;
use crate::{Reduction, Shape, View};

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub enum OperandRef<T> {
    /// A step before, which put it into this buffer.
    Buffer(u32),
    /// It is data, or was there before: the value of this node.
    Known(Index),
    /// A number.
    Number(T),
}

/// What a step does.
#[derive(Debug)]
pub enum Work {
    /// A fused program, which remembers how it was bound to its operands the last time.
    Fused(RefCell<BoundProgram>),
    /// A reduction of a value of this shape.
    Reduce(Reduction, AxisSet, Shape),
    /// A view of a value of this shape.
    View(View, Shape),
    /// The same, its elements written out in order.
    Copy(View, Shape),
    /// The matrix product of the first two operands, added to the third; over these shapes.
    AddedProduct([Shape; 3]),
    /// The matrix product of two operands of these shapes.
    Product([Shape; 2]),
    /// The adjoint of a view: from an operand of the first shape to the second.
    Embed(View, [Shape; 2]),
    /// A concatenation.
    Cat {
        /// The dimension.
        axis: usize,
        /// The operands' shapes.
        shapes: SmallVec<[Shape; 2]>,
        /// The offset of the first operand, if operands are written where they belong.
        in_place: Option<Offset>,
    },
    /// The operation of a node, whose operands have these shapes.
    Node(Index, SmallVec<[Shape; 2]>),
}

/// One step of a plan.
#[derive(Debug)]
pub struct Step<T> {
    /// What it does.
    pub work: Work,
    /// Its operands.
    pub reads: SmallVec<[OperandRef<T>; 4]>,
    /// The buffers of its results.
    pub writes: SmallVec<[u32; 4]>,
    /// Buffers that no later step reads.
    pub drops: SmallVec<[u32; 4]>,
    /// The node to blame where memory fails.
    pub node: Index,
}

/// A position in one of the [`ConcatBuffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The number of the concatenation buffer.
    pub buffer: usize,
    /// The first element.
    pub start: usize,
}

/// Memory for concatenations whose operands are written where they belong, so that nothing is copied.
#[derive(Debug, Default)]
pub struct ConcatBuffers {
    /// The number of elements of each concatenation buffer.
    pub lengths: Vec<usize>,
    /// The offset at which each output is written, and its number of elements, by the output's buffer in the plan.
    pub offsets: HashMap<u32, (Offset, usize)>,
}

/// Steps, in order.
#[derive(Debug)]
pub struct Plan<T> {
    /// The steps.
    pub steps: Vec<Step<T>>,
    /// Number of buffers.
    pub buffers: usize,
    /// Memory that several buffers share.
    pub concat_buffers: ConcatBuffers,
    /// What was asked for, each with the shape it has for those who ask.
    pub roots: Vec<(OperandRef<T>, Shape)>,
}
