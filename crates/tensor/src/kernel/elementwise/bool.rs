//! Block kernels of truth values. Addition is "or", and multiplication is "and".

use crate::kernel::elementwise::block::{BlockKernels, by_functions};
use crate::kernel::elementwise::loops::{map_binary, map_unary};
use crate::kernel::elementwise::operand::Operand;
use crate::scalar::cpu::dispatched;
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
            Unary::Not => not(x, out),
            _ => unreachable!("truth values have no {op:?}"),
        }
    }

    by_functions! {
        fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
        fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
    }
}

dispatched! {
    fn not(x: Operand<'_, bool>, out: &mut [bool]) {
        map_unary(x, out, |x| !x);
    }

    fn binary(op: Binary, x: Operand<'_, bool>, y: Operand<'_, bool>, out: &mut [bool]) {
        match op {
            Binary::Add | Binary::Or | Binary::Maximum | Binary::Fmax => map_binary(x, y, out, |x, y| x | y),
            Binary::Mul | Binary::And | Binary::Minimum | Binary::Fmin => map_binary(x, y, out, |x, y| x & y),
            Binary::Xor => map_binary(x, y, out, |x, y| x ^ y),
            _ => unreachable!("truth values have no {op:?}"),
        }
    }

    fn compare(op: Compare, x: Operand<'_, bool>, y: Operand<'_, bool>, out: &mut [bool]) {
        // "False" is less than "true".
        match op {
            Compare::Eq => map_binary(x, y, out, |x, y| x == y),
            Compare::Ne => map_binary(x, y, out, |x, y| x ^ y),
            Compare::Lt => map_binary(x, y, out, |x, y| !x & y),
            Compare::Le => map_binary(x, y, out, |x, y| !x | y),
            Compare::Gt => map_binary(x, y, out, |x, y| x & !y),
            Compare::Ge => map_binary(x, y, out, |x, y| x | !y),
        }
    }
}
