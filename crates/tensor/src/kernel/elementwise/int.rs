//! Block kernels of integers. A result that overflows wraps around.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use crate::kernel::elementwise::block::{BlockKernels, by_functions};
use crate::kernel::elementwise::loops::{self, map_binary, map_binary_guarded, map_unary, to_float, to_integer};
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
            by_functions! {
                fn supports_unary(op: Unary) -> bool;
                fn supports_binary(op: Binary) -> bool;
                fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]);
                fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
                fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
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
            Unary::Neg => map_unary(x, out, |x| T::ZERO.wrapping_sub(x)),
            Unary::Abs => map_unary(x, out, |x| if x < T::ZERO { T::ZERO.wrapping_sub(x) } else { x }),
            Unary::Sign => map_unary(x, out, |x| T::from_i64(i64::from(x > T::ZERO) - i64::from(x < T::ZERO))),
            Unary::Square => map_unary(x, out, |x| x.wrapping_mul(x)),
            Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => map_unary(x, out, |x| x),
            Unary::Relu => map_unary(x, out, |x| x.max(T::ZERO)),
            Unary::Not => map_unary(x, out, |x| !x),
            _ => unreachable!("integers have no {op:?}"),
        }
    }

    fn binary<T: Int>(op: Binary, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        match op {
            Binary::Add => map_binary(x, y, out, |x, y| x.wrapping_add(y)),
            Binary::Sub => map_binary(x, y, out, |x, y| x.wrapping_sub(y)),
            Binary::Mul => map_binary(x, y, out, |x, y| x.wrapping_mul(y)),
            Binary::Maximum | Binary::Fmax => map_binary(x, y, out, |x, y| x.max(y)),
            Binary::Minimum | Binary::Fmin => map_binary(x, y, out, |x, y| x.min(y)),
            Binary::And => map_binary(x, y, out, |x, y| x & y),
            Binary::Or => map_binary(x, y, out, |x, y| x | y),
            Binary::Xor => map_binary(x, y, out, |x, y| x ^ y),
            Binary::ShiftLeft => map_binary(x, y, out, |x, y| if shift_amount(y) < T::BITS { x << shift_amount(y) } else { T::ZERO }),
            Binary::ShiftRight => map_binary(x, y, out, |x, y| {
                // A shift by at least the width of the type leaves only copies of the sign bit.
                let sign = if T::MIN < T::ZERO { x >> (T::BITS - 1) } else { T::ZERO };
                if shift_amount(y) < T::BITS { x >> shift_amount(y) } else { sign }
            }),
            Binary::Div => divide(x, y, out, #[inline(always)] |x, y| (x / y).trunc(), |x, y| x.wrapping_div(y)),
            Binary::Fmod => {
                divide(x, y, out, #[inline(always)] |x, y| x - (x / y).trunc() * y, |x, y| x.wrapping_rem(y));
            }
            Binary::FloorDivide => divide(x, y, out, #[inline(always)] |x, y| (x / y).floor(), |x, y| {
                // The remainder is computed from the quotient, because a division takes much longer than a multiplication.
                let quotient = x.wrapping_div(y);
                let below = is_below(x.wrapping_sub(quotient.wrapping_mul(y)), y);
                quotient.wrapping_sub(if below { T::ONE } else { T::ZERO })
            }),
            Binary::Remainder => {
                divide(x, y, out, #[inline(always)] |x, y| x - (x / y).floor() * y, |x, y| {
                    let rest = x.wrapping_rem(y);
                    if is_below(rest, y) { rest.wrapping_add(y) } else { rest }
                });
            }
            _ => other_binary(op, x, y, out),
        }
    }

    fn compare<T: Int>(op: Compare, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [bool]) {
        loops::compare(op, x, y, out, |holds| holds);
    }
}

/// Computes `out = f(x, y)`, where `f` is a division. `by_f64` does the same for whole numbers below 2⁵¹ in f64, where division has a
/// vector form. A quotient x / y that is not a whole number differs from each whole number by at least 1 / |y|. This is more than the
/// rounding error, so rounding does not move the quotient to a whole number or across one. Callers refuse a division by 0 before this
/// function runs, so the result for y = 0 does not matter.
#[inline(always)]
fn divide<T: Int>(
    x: Operand<T>,
    y: Operand<T>,
    out: &mut [T],
    by_f64: impl Fn(f64, f64) -> f64,
    f: impl Fn(T, T) -> T,
) {
    map_binary_guarded(
        x,
        y,
        out,
        #[inline(always)]
        |x, y| is_exact(x) & is_exact(y) & (y != T::ZERO),
        #[inline(always)]
        |x, y| T::from_i64(to_integer(by_f64(to_float(x.to_i64()), to_float(y.to_i64())))),
        |x, y| if y == T::ZERO { y } else { f(x, y) },
    );
}

/// Returns true if |x| is below 2⁵¹, so that [`to_float`] and [`to_integer`] convert `x` without an error.
#[inline(always)]
fn is_exact<T: Int>(x: T) -> bool {
    const BOUND: i64 = 1 << 51;
    let x = x.to_i64();
    (x > -BOUND) & (x < BOUND)
}

/// Computes `out = op(x, y)` for a function without a vector form.
#[inline(never)]
fn other_binary<T: Int>(op: Binary, x: Operand<T>, y: Operand<T>, out: &mut [T]) {
    match op {
        Binary::Pow => map_binary(x, y, out, |x, y| T::from_i64(power(x.to_i64(), y.to_i64()))),
        Binary::Gcd => map_binary(x, y, out, |x, y| T::from_i64(gcd(x.to_i64(), y.to_i64()))),
        Binary::Lcm => map_binary(x, y, out, |x, y| T::from_i64(lcm(x.to_i64(), y.to_i64()))),
        _ => unreachable!("integers have no {op:?}"),
    }
}

/// Returns `y` as a number of bits to shift by. If `y` is negative or does not fit into `u32`, returns the width of the type instead.
#[inline(always)]
fn shift_amount<T: Int>(y: T) -> u32 {
    u32::try_from(y.to_i64()).unwrap_or(T::BITS)
}

/// Returns true if a quotient that was rounded toward 0 must be lowered by 1 to be rounded down. This is so if the remainder `rest` is not
/// 0, and its sign differs from the divisor's.
fn is_below<T: Int>(rest: T, divisor: T) -> bool {
    rest != T::ZERO && (rest < T::ZERO) != (divisor < T::ZERO)
}

/// Returns `base` to the power `exponent`. A result that overflows wraps around. A negative exponent gives 0 except for the bases 1 and -1,
/// as in PyTorch.
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

#[cfg(test)]
mod tests {
    use super::*;

    type Division = fn(i64, i64) -> i64;

    /// Returns the quotient, rounded down, and the corresponding remainder.
    fn floor(x: i64, y: i64) -> (i64, i64) {
        let (quotient, rest) = (x.wrapping_div(y), x.wrapping_rem(y));
        if rest != 0 && (rest < 0) != (y < 0) { (quotient - 1, rest + y) } else { (quotient, rest) }
    }

    /// Compares divisions with the operators of Rust, for numbers below and above the bound of the divisions in f64, and for all bytes.
    #[test]
    fn divisions_equal_the_operators() {
        let mut numbers = vec![i64::MIN, i64::MAX, i64::MIN + 1];
        for bits in [0, 1, 2, 5, 26, 50, 51, 52, 53, 62] {
            numbers.extend((-2..=2).flat_map(|i| [(1 << bits) + i, -(1 << bits) + i, ((1 << bits) + i) / 3 * 2]));
        }
        let pairs: Vec<(i64, i64)> = numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| (x, y))).collect();
        // Small pairs come first, so that some groups of 16 pairs have no large number. Only these groups are divided in f64.
        let small = pairs.iter().copied().filter(|&(x, y)| is_exact(x) && is_exact(y));
        let pairs: Vec<(i64, i64)> = small.chain(pairs.iter().copied()).filter(|&(_, y)| y != 0).collect();
        let (x, y): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        let expected: [(Binary, Division); 4] = [
            (Binary::Div, i64::wrapping_div),
            (Binary::Fmod, i64::wrapping_rem),
            (Binary::FloorDivide, |x, y| floor(x, y).0),
            (Binary::Remainder, |x, y| floor(x, y).1),
        ];
        let mut out = vec![0; x.len()];
        for (op, expected) in expected {
            i64::binary(op, Operand::Slice(&x), Operand::Slice(&y), &mut out);
            for (&(x, y), &got) in pairs.iter().zip(&out) {
                assert_eq!(got, expected(x, y), "{op:?} {x} {y}");
            }
            for divisor in [7, -3, 1 << 60] {
                i64::binary(op, Operand::Slice(&x), Operand::Splat(divisor), &mut out);
                assert!(x.iter().zip(&out).all(|(&x, &got)| got == expected(x, divisor)), "{op:?} {divisor}");
            }
        }
        let bytes: Vec<u8> = (0..=255).collect();
        let mut out = [0; 256];
        for (op, expected) in expected {
            for y in 1..=255 {
                u8::binary(op, Operand::Slice(&bytes), Operand::Splat(y), &mut out);
                let equal = |(&x, got): (&u8, u8)| i64::from(got) == expected(i64::from(x), i64::from(y));
                assert!(bytes.iter().zip(out).all(equal), "{op:?} {y}");
            }
        }
    }
}
