//! Block kernels of truth values. Addition is "or", and multiplication is "and".

use crate::kernel::elementwise::block::BlockKernels;
use crate::kernel::elementwise::loops::{compare, one, two};
use crate::kernel::elementwise::operand::Operand;
use crate::{Binary, Compare, Unary};

impl BlockKernels for bool {
    fn supports_unary(op: Unary) -> bool {
        op == Unary::Not
    }

    fn supports_binary(op: Binary) -> bool {
        use Binary::{Add, And, Fmax, Fmin, Maximum, Minimum, Mul, Or, Xor};
        matches!(op, Add | Or | Maximum | Fmax | Mul | And | Minimum | Fmin | Xor)
    }

    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) {
        match op {
            Unary::Not => one(x, out, |x| !x),
            _ => unreachable!("truth values have no {op:?}"),
        }
    }

    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
        match op {
            Binary::Add | Binary::Or | Binary::Maximum | Binary::Fmax => two(x, y, out, |x, y| x | y),
            Binary::Mul | Binary::And | Binary::Minimum | Binary::Fmin => two(x, y, out, |x, y| x & y),
            Binary::Xor => two(x, y, out, |x, y| x ^ y),
            _ => unreachable!("truth values have no {op:?}"),
        }
    }

    fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]) {
        compare(op, x, y, out, |holds| holds);
    }
}
