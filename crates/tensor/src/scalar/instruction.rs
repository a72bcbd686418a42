//! The instructions of fused programs, each with its cost.

use crate::{Binary, Compare, Reduction, Unary};

/// The index of a value within a program. Inputs come first, then the results of the instructions.
pub type ValueIndex = u32;

/// One instruction of a [`Program`](crate::program::Program). A comparison gives 0 or 1, and a selection treats nonzero as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A function of one value.
    Unary(Unary, ValueIndex),
    /// A function of two values.
    Binary(Binary, ValueIndex, ValueIndex),
    /// A comparison of two values, with result 0 or 1.
    Compare(Compare, ValueIndex, ValueIndex),
    /// The second value where the first is not 0, otherwise the third.
    Select(ValueIndex, ValueIndex, ValueIndex),
    /// The reduction of each row. The result has one element per row, which later instructions read as if it were repeated along the row.
    Reduce(Reduction, ValueIndex),
}

impl Instruction {
    /// Returns the values that the instruction reads.
    pub fn operands(&self) -> impl Iterator<Item = ValueIndex> + use<> {
        let (count, operands) = match *self {
            Instruction::Unary(_, x) | Instruction::Reduce(_, x) => (1, [x, 0, 0]),
            Instruction::Binary(_, x, y) | Instruction::Compare(_, x, y) => (2, [x, y, 0]),
            Instruction::Select(mask, x, y) => (3, [mask, x, y]),
        };
        operands.into_iter().take(count)
    }

    /// Returns the same instruction with each operand replaced by `of(operand)`.
    pub(crate) fn with_operands(self, mut of: impl FnMut(ValueIndex) -> ValueIndex) -> Self {
        match self {
            Instruction::Unary(op, x) => Instruction::Unary(op, of(x)),
            Instruction::Binary(op, x, y) => Instruction::Binary(op, of(x), of(y)),
            Instruction::Compare(op, x, y) => Instruction::Compare(op, of(x), of(y)),
            Instruction::Select(mask, x, y) => Instruction::Select(of(mask), of(x), of(y)),
            Instruction::Reduce(op, x) => Instruction::Reduce(op, of(x)),
        }
    }

    /// Returns the cost per element, in additions.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Instruction::Unary(op, _) => op.cost(),
            Instruction::Binary(op, ..) => op.cost(),
            Instruction::Compare(..) | Instruction::Select(..) | Instruction::Reduce(..) => 1,
        }
    }
}
