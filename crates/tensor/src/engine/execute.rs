//! One instruction over one block.

use crate::Float;
use crate::kernel::elementwise::operand::Operand;
use crate::scalar::instruction::{Instruction, Value};

/// The result of an instruction over a block: one number, or, where that is `None`, in `out`. `read` gives the operands.
#[inline(always)]
pub(crate) fn execute<'a, T: Float>(
    instruction: Instruction,
    read: impl Fn(Value) -> Operand<'a, T>,
    out: &mut [T],
) -> Option<T> {
    use Operand::{Slice, Splat};
    let mut one = [T::ZERO];
    match instruction {
        Instruction::Unary(op, x) => {
            let x = read(x);
            let single = matches!(x, Splat(_));
            T::unary(op, x, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Binary(op, x, y) => {
            let (x, y) = (read(x), read(y));
            let single = matches!((&x, &y), (Splat(_), Splat(_)));
            T::binary(op, x, y, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Compare(op, x, y) => {
            let (x, y) = (read(x), read(y));
            let single = matches!((&x, &y), (Splat(_), Splat(_)));
            T::flags(op, x, y, if single { &mut one } else { out });
            single.then_some(one[0])
        }
        Instruction::Select(mask, x, y) => match (read(mask), read(x), read(y)) {
            (Splat(mask), x, y) => match if mask != T::ZERO { x } else { y } {
                Splat(value) => Some(value),
                Slice(values) => {
                    out.copy_from_slice(values);
                    None
                }
            },
            (mask, x, y) => {
                T::choose(mask, x, y, out);
                None
            }
        },
        Instruction::Reduce(..) => unreachable!("reductions have as many results as there are rows"),
    }
}
