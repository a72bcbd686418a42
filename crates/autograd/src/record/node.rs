//! One recorded operation, small: its number, its inputs, the number of its shape.

use smallvec::SmallVec;
use wengert_tensor::{Binary, Compare, Reduction, Unary};

/// Position of a node on its tape.
pub(crate) type Index = u32;

/// Positions of a node's inputs.
pub(crate) type Inputs = SmallVec<[Index; 3]>;

/// What a node does. The inputs' and the result's shapes say the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Plain data, through which no gradient flows.
    Constant(u32),
    /// Data that gradients are taken with respect to.
    Variable(u32),
    /// A number, through which no gradient flows.
    Number(u32),
    /// The input, through which no gradient flows.
    Detach,
    /// The input, through which a gradient must not be asked for: the number of the name of who refuses.
    Opaque(u32),
    Unary(Unary),
    Binary(Binary),
    Compare(Compare),
    /// Inputs: mask, x, y.
    Select,
    /// To the node's shape.
    Expand,
    /// To the node's shape.
    Reshape,
    /// Over the dimensions in which the input's shape and the node's differ.
    Reduce(Reduction),
    Matmul,
    /// One of `Record::views`: elements in other places, none computed.
    View(u32),
    /// An operation with parameters, or a custom one, kept beside the nodes.
    Other(u32),
}

/// One recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) op: Op,
    /// Up to three inputs; of an [`Op::Other`], where its inputs start in `Record::inputs` and how many they are.
    pub(super) operands: [Index; 3],
    pub(super) arity: u8,
    pub(crate) shape: u32,
}

impl Node {
    /// The inputs, where they are two.
    #[inline]
    pub(crate) fn pair(&self) -> Option<[Index; 2]> {
        let [x, y, _] = self.operands;
        (self.arity == 2).then_some([x, y])
    }
}
