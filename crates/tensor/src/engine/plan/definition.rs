//! The definition of a value: how it is computed from other values.

use smallvec::SmallVec;

use crate::engine::plan::expression::NodeIndex;
use crate::engine::program::AxisSet;
use crate::scalar::instruction::Instruction;
use crate::{Binary, Compare, Reduction, Unary};

/// The index of a value in the planner's list. It is larger than the indices of the value's operands.
pub(super) type Id = u32;

/// The index of a shape in `Values::shapes`.
pub(super) type ShapeId = u32;

/// The way in which a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Definition {
    /// The data of a leaf. The field is the leaf's node.
    Known(NodeIndex),
    /// A number, by its index in `Values::numbers`.
    Number(u32),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Compare(Compare, Id, Id),
    Select(Id, Id, Id),
    Reduce(Reduction, Id, AxisSet),
    /// A view of an operand. The fields are the view's index in `Values::views`, the operand's full shape including leading dimensions of
    /// size 1, and the operand.
    View(u32, ShapeId, Id),
    /// The adjoint of a view. The fields are the view's index in `Values::views`, the operand, and the shape of the result.
    Embed(u32, ShapedValue, ShapeId),
    /// The matrix product of two operands.
    Product(ShapedValue, ShapedValue),
    /// A concatenation, by its index in `Values::concatenations`.
    Cat(u32),
    /// An operation that the host (the tape or an eager operation) runs itself, outside of the compiled programs. The field is the
    /// operation's node.
    Node(NodeIndex),
}

/// An operand with its full shape, including leading dimensions of size 1.
pub(super) type ShapedValue = (Id, ShapeId);

/// A concatenation of operands along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Concatenation {
    pub(super) axis: usize,
    pub(super) parts: Vec<ShapedValue>,
}

impl Definition {
    /// Returns the operands that the definition contains. [`Definition::Node`] (an operation that runs outside of the compiled programs)
    /// and [`Definition::Cat`] do not contain their operands, so the list is empty for them.
    pub(super) fn operands(&self) -> SmallVec<[Id; 3]> {
        let mut operands = SmallVec::new();
        let mut copy = *self;
        copy.replace_operands(|id| {
            operands.push(id);
            id
        });
        operands
    }

    /// Replaces each operand `id` by `replacement(id)`. Leaves [`Definition::Node`] and [`Definition::Cat`] unchanged, because they do not
    /// contain their operands.
    pub(super) fn replace_operands(&mut self, mut replacement: impl FnMut(Id) -> Id) {
        match self {
            Definition::Known(_) | Definition::Number(_) | Definition::Cat(_) | Definition::Node(_) => {}
            Definition::Unary(_, x)
            | Definition::Reduce(_, x, _)
            | Definition::View(_, _, x)
            | Definition::Embed(_, (x, _), _) => *x = replacement(*x),
            Definition::Binary(_, x, y) | Definition::Compare(_, x, y) | Definition::Product((x, _), (y, _)) => {
                (*x, *y) = (replacement(*x), replacement(*y));
            }
            Definition::Select(mask, x, y) => (*mask, *x, *y) = (replacement(*mask), replacement(*x), replacement(*y)),
        }
    }

    pub(super) fn is_elementwise(&self) -> bool {
        self.cost().is_some()
    }

    /// Returns the cost of computing an elementwise value, in additions per element. Returns `None` for other values.
    pub(super) fn cost(&self) -> Option<usize> {
        match *self {
            Definition::Unary(op, x) => Some(Instruction::Unary(op, x).cost()),
            Definition::Binary(op, x, y) => Some(Instruction::Binary(op, x, y).cost()),
            Definition::Compare(op, x, y) => Some(Instruction::Compare(op, x, y).cost()),
            Definition::Select(mask, x, y) => Some(Instruction::Select(mask, x, y).cost()),
            _ => None,
        }
    }
}

/// A value that the plan computes or reads. Several nodes can have the same value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) definition: Definition,
    /// The value's shape without leading dimensions of size 1.
    pub(super) shape: ShapeId,
    /// The first node that has this value.
    pub(super) node: NodeIndex,
}
