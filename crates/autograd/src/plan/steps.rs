//! A plan: steps in order, and where their operands and results are.

use std::cell::RefCell;

use smallvec::SmallVec;
use wengert_tensor::program::{AxisSet, BoundProgram};
use wengert_tensor::{Reduction, Shape, View};

use crate::record::Index;

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<T> {
    /// A step before.
    Slot(u32),
    /// It is data, or was computed before.
    Known(Index),
    /// A number.
    Number(T),
}

#[derive(Debug)]
pub(crate) enum Work {
    /// A fused program over a shape.
    Fused(RefCell<BoundProgram>),
    /// A reduction of a value of this shape.
    Reduce(Reduction, AxisSet, Shape),
    /// A view of a value of this shape.
    View(View, Shape),
    /// The operation of a node, whose operands have these shapes.
    Node(Index, SmallVec<[Shape; 2]>),
}

#[derive(Debug)]
pub(crate) struct Step<T> {
    pub(crate) work: Work,
    pub(crate) reads: SmallVec<[Source<T>; 4]>,
    /// The slots of its results.
    pub(crate) writes: SmallVec<[u32; 4]>,
    /// Slots that nobody reads any more.
    pub(crate) drops: SmallVec<[u32; 4]>,
    /// The node whose line is to blame where memory fails.
    pub(crate) node: Index,
}

/// Steps, in order.
#[derive(Debug)]
pub(crate) struct Plan<T> {
    pub(crate) steps: Vec<Step<T>>,
    pub(crate) slots: usize,
    /// What was asked for, each with the shape it has for those who ask.
    pub(crate) roots: Vec<(Source<T>, Shape)>,
}
