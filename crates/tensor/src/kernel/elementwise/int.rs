//! Block kernels of integers. Results wrap around.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use crate::kernel::elementwise::block::BlockKernels;
use crate::kernel::elementwise::loops::{compare, one, two};
use crate::kernel::elementwise::operand::Operand;
use crate::scalar::cpu::dispatched;
use crate::scalar::special::gcd;
use crate::{Binary, Compare, Scalar, Unary};

/// An integer type with its wrapping operations.
trait Int:
    Scalar
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const MIN: Self;
    const BITS: u32;

    fn wrapping_add(self, y: Self) -> Self;
    fn wrapping_sub(self, y: Self) -> Self;
    fn wrapping_mul(self, y: Self) -> Self;
    fn wrapping_div(self, y: Self) -> Self;
    fn wrapping_rem(self, y: Self) -> Self;
}

/// Implements [`Int`], and [`BlockKernels`] by the functions of this file. If they were default methods, they would be compiled again in
/// every dependent crate.
macro_rules! kernels {
    ($type:ident: $($name:ident),*) => {
        impl Int for $type {
            const MIN: Self = $type::MIN;
            const BITS: u32 = $type::BITS;

            $(
                #[inline(always)]
                fn $name(self, y: Self) -> Self {
                    self.$name(y)
                }
            )*
        }

        impl BlockKernels for $type {
            fn supports_unary(op: Unary) -> bool {
                supports_unary(op)
            }

            fn supports_binary(op: Binary) -> bool {
                supports_binary(op)
            }

            fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) {
                unary(op, x, out);
            }

            fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
                binary(op, x, y, out);
            }

            fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]) {
                compare_values(op, x, y, out);
            }
        }
    };
    ($($type:ident),*) => {
        $(kernels! {
            $type: wrapping_add, wrapping_sub, wrapping_mul,
            wrapping_div, wrapping_rem
        })*
    };
}

kernels!(i64, u8);

/// Returns whether integers have the operation `op`. The other operations are functions of real numbers.
fn supports_unary(op: Unary) -> bool {
    use Unary::{Abs, Ceil, Floor, Neg, Not, Relu, Round, Sign, Square, Trunc};
    matches!(op, Neg | Abs | Sign | Square | Floor | Ceil | Round | Trunc | Relu | Not)
}

/// Returns whether integers have the operation `op`. The other operations are functions of real numbers.
fn supports_binary(op: Binary) -> bool {
    use Binary::{Add, And, Div, FloorDivide, Fmax, Fmin, Fmod, Gcd, Lcm, Maximum, Minimum, Mul, Or, Pow, Remainder};
    use Binary::{ShiftLeft, ShiftRight, Sub, Xor};
    let arithmetic = matches!(op, Add | Sub | Mul | Div | Pow | Fmod | Remainder | FloorDivide);
    let order = matches!(op, Maximum | Fmax | Minimum | Fmin);
    arithmetic || order || matches!(op, And | Or | Xor | ShiftLeft | ShiftRight | Gcd | Lcm)
}

dispatched! {
    fn unary<T: Int>(op: Unary, x: Operand<'_, T>, out: &mut [T]) {
        match op {
            Unary::Neg => one(x, out, |x| T::ZERO.wrapping_sub(x)),
            Unary::Abs => one(x, out, |x| if x < T::ZERO { T::ZERO.wrapping_sub(x) } else { x }),
            Unary::Sign => one(x, out, |x| T::from_i64(i64::from(x > T::ZERO) - i64::from(x < T::ZERO))),
            Unary::Square => one(x, out, |x| x.wrapping_mul(x)),
            Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => one(x, out, |x| x),
            Unary::Relu => one(x, out, |x| x.max(T::ZERO)),
            Unary::Not => one(x, out, |x| !x),
            _ => unreachable!("integers have no {op:?}"),
        }
    }

    fn binary<T: Int>(op: Binary, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        match op {
            Binary::Add => two(x, y, out, |x, y| x.wrapping_add(y)),
            Binary::Sub => two(x, y, out, |x, y| x.wrapping_sub(y)),
            Binary::Mul => two(x, y, out, |x, y| x.wrapping_mul(y)),
            Binary::Maximum | Binary::Fmax => two(x, y, out, |x, y| x.max(y)),
            Binary::Minimum | Binary::Fmin => two(x, y, out, |x, y| x.min(y)),
            Binary::And => two(x, y, out, |x, y| x & y),
            Binary::Or => two(x, y, out, |x, y| x | y),
            Binary::Xor => two(x, y, out, |x, y| x ^ y),
            Binary::ShiftLeft => two(x, y, out, |x, y| if shift(y) < T::BITS { x << shift(y) } else { T::ZERO }),
            Binary::ShiftRight => two(x, y, out, |x, y| {
                // A shift by at least the width of the type leaves only the sign.
                let sign = if T::MIN < T::ZERO { x >> (T::BITS - 1) } else { T::ZERO };
                if shift(y) < T::BITS { x >> shift(y) } else { sign }
            }),
            _ => other_binary(op, x, y, out),
        }
    }

    fn compare_values<T: Int>(op: Compare, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [bool]) {
        compare(op, x, y, out, |holds| holds);
    }
}

/// Computes `out = op(x, y)` for a function without a vector form.
#[inline(never)]
fn other_binary<T: Int>(op: Binary, x: Operand<T>, y: Operand<T>, out: &mut [T]) {
    // Callers refuse a division by 0 before this function runs. So its result does not matter here.
    match op {
        Binary::Div => two(x, y, out, |x, y| if y == T::ZERO { y } else { x.wrapping_div(y) }),
        Binary::Pow => two(x, y, out, |x, y| T::from_i64(power(x.to_i64(), y.to_i64()))),
        Binary::Fmod => two(x, y, out, |x, y| if y == T::ZERO { y } else { x.wrapping_rem(y) }),
        Binary::Remainder => two(x, y, out, |x, y| {
            let rest = if y == T::ZERO { y } else { x.wrapping_rem(y) };
            if is_below(rest, y) { rest.wrapping_add(y) } else { rest }
        }),
        Binary::FloorDivide => two(x, y, out, |x, y| {
            if y == T::ZERO {
                return y;
            }
            // The remainder is computed from the quotient, because a division takes much longer than a multiplication.
            let quotient = x.wrapping_div(y);
            let below = is_below(x.wrapping_sub(quotient.wrapping_mul(y)), y);
            quotient.wrapping_sub(if below { T::ONE } else { T::ZERO })
        }),
        Binary::Gcd => two(x, y, out, |x, y| T::from_i64(gcd(x.to_i64(), y.to_i64()))),
        Binary::Lcm => two(x, y, out, |x, y| T::from_i64(lcm(x.to_i64(), y.to_i64()))),
        _ => unreachable!("integers have no {op:?}"),
    }
}

/// Returns `y` as a number of bits to shift by. If `y` is negative or does not fit into `u32`, returns the width of the type instead.
#[inline(always)]
fn shift<T: Int>(y: T) -> u32 {
    u32::try_from(y.to_i64()).unwrap_or(T::BITS)
}

/// Returns true if a quotient that was rounded toward 0 must be lowered by 1 to be rounded down. This is so if the remainder `rest` is not
/// 0, and its sign differs from the divisor's.
fn is_below<T: Int>(rest: T, divisor: T) -> bool {
    rest != T::ZERO && (rest < T::ZERO) != (divisor < T::ZERO)
}

/// Returns an integer power, wrapping. A negative exponent gives 0 except for the bases 1 and -1, as in PyTorch.
fn power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, 0..) => {
            let (mut result, mut square, mut left) = (1i64, base, exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            result
        }
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

fn lcm(x: i64, y: i64) -> i64 {
    let divisor = gcd(x, y);
    if divisor == 0 { 0 } else { (x / divisor).wrapping_mul(y).wrapping_abs() }
}
