//! Block kernels of floating-point numbers. The functions are generic over [`FloatMath`]. The loops are compiled for every instruction set,
//! except loops over library functions and other long functions.
#![allow(clippy::needless_range_loop)]

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::block::{BlockKernels, FloatBlockKernels, by_functions};
use crate::kernel::elementwise::loops::{
    self, by_slices, compare, map_binary, map_binary_arrays, map_binary_corrected, map_binary_streamed, map_ternary,
    map_unary, map_unary_array, map_unary_corrected, map_unary_guarded, map_unary_large_fn,
};
use crate::kernel::elementwise::operand::{Operand, RowBroadcast};
use crate::scalar::cpu::dispatched;
use crate::scalar::formula::Formula;
use crate::scalar::instruction::Instruction;
use crate::scalar::math::{FloatMath, angles, double, is_nan, larger, smaller, wide};
use crate::scalar::special;
use crate::thresholds::blocks::BLOCK;
use crate::{Binary, Compare, DType, Unary};

/// Implements the traits of block kernels by the functions of this file. Default methods of the traits would be compiled again in every
/// dependent crate.
macro_rules! kernels {
    ($type:ident) => {
        impl BlockKernels for $type {
            fn supports_unary(op: Unary) -> bool {
                op != Unary::Not
            }

            fn has_row_loop(op: Binary) -> bool {
                is_arithmetic(op)
            }

            fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]) {
                compare(op, x, y, out, |holds| holds);
            }

            by_functions! {
                fn supports_binary(op: Binary) -> bool;
                fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]);
                fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
                fn rows(op: Binary, rows: RowBroadcast, x: Option<&[Self]>, y: &[Self], out: &mut [Self]);
                fn stream(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
                fn update(op: Binary, x: &mut [Self], y: Operand<Self>);
            }
        }

        impl FloatBlockKernels for $type {
            by_functions! {
                fn formula(formula: Formula, operands: &[Operand<Self>], out: &mut [Self]);
                fn compare_as_float(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
                fn select(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
                fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, len: usize) -> usize;
            }

            fn arena() -> &'static LocalKey<RefCell<Vec<Self>>> {
                thread_local! {
                    static ARENA: RefCell<Vec<$type>> = const { RefCell::new(Vec::new()) };
                }
                &ARENA
            }
        }
    };
}

kernels!(f32);
kernels!(f64);

/// Applies [`FloatMath::by_table`] to a block. Returns false if it does not support the operation, the element type or the instruction set.
/// Then the elements of `out` are unspecified.
fn map_by_table<T: FloatMath>(op: Unary, x: Operand<T>, out: &mut [T]) -> bool {
    let mut done = false;
    by_slices(x, out, |from, to| done = T::by_table(op, from, to));
    done
}

/// Applies a library function. Wider instruction sets do not make it faster, so it is compiled once for all of them.
#[inline(never)]
fn map_library<T: FloatMath>(x: Operand<T>, out: &mut [T], f: fn(T) -> T) {
    map_unary(x, out, f);
}

/// Applies a function of f64 to elements of any floating-point type, by conversion to f64 and back.
#[inline(never)]
fn map_in_f64<T: FloatMath>(x: Operand<T>, out: &mut [T], f: fn(f64) -> f64) {
    map_unary(x, out, |x| T::from_f64(f(x.to_f64())));
}

/// Applies a library function or another long function of two operands. It is compiled once for all instruction sets, as in
/// [`map_library`].
#[inline(never)]
fn map_binary_library<T: FloatMath>(x: Operand<T>, y: Operand<T>, out: &mut [T], f: impl Fn(T, T) -> T) {
    map_binary(x, y, out, f);
}

/// Returns the remainder of `x / y` with the sign of `y`. `rest` is the remainder with the sign of `x`.
#[inline(always)]
fn remainder<T: FloatMath>(y: T, rest: T) -> T {
    if rest != T::ZERO && (rest < T::ZERO) != (y < T::ZERO) { rest + y } else { rest }
}

/// Computes PyTorch's floor division: subtracts the remainder from `x` and divides by `y`. Subtracts 1 if the signs of the remainder and
/// `y` differ, and rounds to a whole number. A quotient of 0 gets the sign of `x / y`. If `y` is 0, returns `x / y`. `rest` is the
/// remainder with the sign of `x`.
#[inline(always)]
fn floor_divide<T: FloatMath>(x: T, y: T, rest: T) -> T {
    if y == T::ZERO {
        return x / y;
    }
    let opposite = rest != T::ZERO && (rest < T::ZERO) != (y < T::ZERO);
    let quotient = (x - rest) / y - if opposite { T::ONE } else { T::ZERO };
    if quotient == T::ZERO {
        return T::ZERO.copysign(x / y);
    }
    let floor = quotient.floor();
    if quotient - floor > T::from_f64(0.5) { floor + T::ONE } else { floor }
}

/// Returns the remainder of `x / y` with the sign of `y`, from the remainder that the operator `%` computes without rounding.
#[inline]
fn exact_remainder<T: FloatMath>(x: T, y: T) -> T {
    remainder(y, x % y)
}

/// Returns the quotient `x / y`, rounded down as in PyTorch's `floor_divide`, from the remainder that `%` computes without rounding.
#[inline]
fn exact_floor_divide<T: FloatMath>(x: T, y: T) -> T {
    floor_divide(x, y, x % y)
}

/// Returns x + weight · (y - x) if |weight| < 1/2. Otherwise returns y + (weight - 1) · (y - x), which has the same exact value.
/// PyTorch's `lerp` chooses between the same formulas.
#[inline(always)]
fn lerp<T: FloatMath>(x: T, y: T, weight: T) -> T {
    let near = weight.abs() < T::from_f64(0.5);
    let (start, step) = (if near { x } else { y }, if near { weight } else { weight - T::ONE });
    start + step * (y - x)
}

/// Returns x (x + 3) / 6 between -3 and 3, 0 below and x above. At -∞, the result is NaN.
#[inline(always)]
fn hardswish<T: FloatMath>(x: T) -> T {
    let (low, high) = (x <= T::from_f64(-3.0), x >= T::from_f64(3.0));
    let inner = if low | high { T::ZERO } else { x };
    let curved = inner * (inner + T::from_f64(3.0)) / T::from_f64(6.0);
    let above = if high { x } else { curved };
    if low { x * T::ZERO } else { above }
}

/// Returns d² / 2 where |d| < `delta`, and `delta` (|d| - `delta` / 2) elsewhere.
#[inline(always)]
fn huber<T: FloatMath>(d: T, delta: T) -> T {
    let clamped = if d >= delta { delta } else { d };
    let clamped = if d <= -delta { -delta } else { clamped };
    clamped * (d - clamped * T::from_f64(0.5))
}

/// Returns `x`, clamped to the range from `eps` to 1 - `eps`.
#[inline(always)]
fn clamp_to_unit<T: FloatMath>(x: T, eps: T) -> T {
    let above = T::ONE - eps;
    let below = if x > above { above } else { x };
    if x < eps { eps } else { below }
}

fn logit_clamped<T: FloatMath>(x: T, y: T) -> T {
    let x = clamp_to_unit(x, y);
    x.ln() - (-x).ln_1p()
}

fn xlogy<T: FloatMath>(x: T, y: T) -> T {
    if x == T::ZERO && !y.is_nan() { T::ZERO } else { x * y.ln() }
}

fn xlog1py<T: FloatMath>(x: T, y: T) -> T {
    if x == T::ZERO && !y.is_nan() { T::ZERO } else { x * y.ln_1p() }
}

fn zeta<T: FloatMath>(x: T, y: T) -> T {
    T::from_f64(special::zeta(x.to_f64(), y.to_f64()))
}

/// Returns the next representable number after `x` toward `y`. Computes all cases and selects one, so that the loop has no branches.
#[inline(always)]
fn nextafter<T: FloatMath>(x: T, y: T) -> T {
    let (up, down) = (x.next_up(), x.next_down());
    let moved = if y < x { down } else { y };
    let moved = if y > x { up } else { moved };
    if x.is_nan() { x } else { moved }
}

/// Computes powers. The powers with the exponents -1, 2 and 3 are quotients and products, also for a negative base, 0, ∞ and NaN.
#[inline(always)]
fn map_powers<T: FloatMath, const FMA: bool>(x: Operand<T>, y: Operand<T>, out: &mut [T]) {
    match y {
        Operand::Splat(y) if y == -T::ONE => map_unary(x, out, |x| T::ONE / x),
        Operand::Splat(y) if y == T::from_f64(2.0) => map_unary(x, out, |x| x * x),
        Operand::Splat(y) if y == T::from_f64(3.0) => map_unary(x, out, |x| T::cube::<FMA>(x)),
        _ if FMA || !T::POW_NEEDS_FMA => map_ordinary_powers::<T, FMA>(x, y, out),
        _ => map_binary_library(x, y, out, unusual_power::<T, FMA>),
    }
}

/// Computes powers by [`FloatMath::pow_ordinary`]. If the exponent is one whole number, computes powers of |x| and restores the signs. For
/// pairs of a base and an exponent that `pow_ordinary` does not support, and for the exponents -1, 2 and 3, calls [`unusual_power`].
#[inline(always)]
fn map_ordinary_powers<T: FloatMath, const FMA: bool>(x: Operand<T>, y: Operand<T>, out: &mut [T]) {
    let parity = if let Operand::Splat(y) = y { T::integer_parity(y) } else { None };
    // An operand that is one number is copied to an array, so that one loop serves both kinds of operands. The array of a slice first holds
    // ones.
    let splat = |operand| if let Operand::Splat(number) = operand { [number; 64] } else { [T::ONE; 64] };
    let (mut bases, mut exponents) = (splat(x), splat(y));
    for (number, out) in out.chunks_mut(64).enumerate() {
        let len = out.len();
        if let Operand::Slice(x) = x {
            bases[..len].copy_from_slice(&x[64 * number..][..len]);
        }
        if let Operand::Slice(y) = y {
            exponents[..len].copy_from_slice(&y[64 * number..][..len]);
        }
        let (mut powers, mut ordinary) = ([T::ZERO; 64], true);
        // The number of elements is rounded up to whole vectors. The extra elements hold numbers of an earlier chunk or 1, and their
        // results are not used.
        let width = len.next_multiple_of(16).min(64);
        let (x, y, z) = (&bases[..width], &exponents[..width], &mut powers[..width]);
        match parity {
            None => {
                for i in 0..width {
                    ordinary &= is_ordinary_power(x[i], y[i]);
                    z[i] = T::pow_ordinary::<FMA>(x[i], y[i]);
                }
            }
            Some(odd) => {
                for i in 0..width {
                    ordinary &= T::is_ordinary_pow(x[i].abs(), y[i]);
                    let power = T::pow_ordinary::<FMA>(x[i].abs(), y[i]);
                    z[i] = if odd { power.copysign(x[i]) } else { power };
                }
            }
        }
        out.copy_from_slice(&powers[..len]);
        if !ordinary {
            for i in 0..len {
                if !is_ordinary_power(bases[i], exponents[i]) {
                    out[i] = unusual_power::<T, FMA>(bases[i], exponents[i]);
                }
            }
        }
    }
}

/// Returns true if [`FloatMath::pow_ordinary`] supports `x` and `y`, and `y` is not -1, 2 or 3.
#[inline(always)]
fn is_ordinary_power<T: FloatMath>(x: T, y: T) -> bool {
    T::is_ordinary_pow(x, y) & (y != -T::ONE) & (y != T::from_f64(2.0)) & (y != T::from_f64(3.0))
}

/// Computes a power `x` to the `y`. Uses a quotient or a product for the exponents -1, 2 and 3, and the power of |x| for a negative `x` and a
/// whole `y`. Uses `powf` otherwise, if [`FloatMath::pow_ordinary`] does not support |x| and `y`, and if it would be slow without FMA
/// instructions. The loops of [`map_powers`] and [`map_ordinary_powers`] give the same bits for the same operands.
#[inline(always)]
fn unusual_power<T: FloatMath, const FMA: bool>(x: T, y: T) -> T {
    if y == -T::ONE {
        return T::ONE / x;
    }
    if y == T::from_f64(2.0) {
        return x * x;
    }
    if y == T::from_f64(3.0) {
        return T::cube::<FMA>(x);
    }
    match T::integer_parity(y) {
        Some(odd) if (FMA || !T::POW_NEEDS_FMA) && x < T::ZERO && T::is_ordinary_pow(-x, y) => {
            let power = T::pow_ordinary::<FMA>(-x, y);
            if odd { -power } else { power }
        }
        _ => x.powf(y),
    }
}

/// Returns whether `op` is an addition, subtraction, multiplication or division: the operations of `with_arithmetic!`.
fn is_arithmetic(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
}

/// Evaluates `$body` with `$f` as the function of `$op`, if `$op` is an addition, subtraction, multiplication or division.
/// Otherwise evaluates `$other`. All loops over these four operations take their function from here.
macro_rules! with_arithmetic {
    ($op:expr, $f:ident => $body:expr, _ => $other:expr) => {
        match $op {
            Binary::Add => {
                let $f = |x: T, y: T| x + y;
                $body
            }
            Binary::Sub => {
                let $f = |x: T, y: T| x - y;
                $body
            }
            Binary::Mul => {
                let $f = |x: T, y: T| x * y;
                $body
            }
            Binary::Div => {
                let $f = |x: T, y: T| x / y;
                $body
            }
            _ => $other,
        }
    };
}

/// Returns whether floating-point numbers have the operation `op`. The other operations are for integers, and some of them for truth
/// values.
fn supports_binary(op: Binary) -> bool {
    use Binary::{And, Gcd, Lcm, Or, ShiftLeft, ShiftRight, Xor};
    !matches!(op, And | Or | Xor | ShiftLeft | ShiftRight | Gcd | Lcm)
}

/// Computes `x = op(x, y)` over a block.
fn update<T: FloatMath + BlockKernels>(op: Binary, x: &mut [T], y: Operand<T>) {
    if !is_arithmetic(op) {
        let mut before = [T::ZERO; BLOCK];
        let before = &mut before[..x.len()];
        before.copy_from_slice(x);
        return binary(op, Operand::Slice(before), y, x);
    }
    let (y_has_columns, number) = match y {
        Operand::Slice(_) => (true, T::ZERO),
        Operand::Splat(number) => (false, number),
    };
    let y = if let Operand::Slice(y) = y { y } else { std::slice::from_ref(&number) };
    let row = RowBroadcast {
        rows: 1,
        columns: x.len(),
        x_row_stride: 0,
        y_row_stride: 0,
        x_has_columns: true,
        y_has_columns,
    };
    rows(op, row, None, y, x);
}

/// Computes `out = op(x, y)` for an addition, subtraction, multiplication or division.
#[inline(always)]
fn apply_to_arrays<T: FloatMath, const N: usize>(op: Binary, x: &[T; N], y: &[T; N], out: &mut [T; N]) {
    with_arithmetic!(op, f => map_binary_arrays(x, y, out, f), _ => unreachable!("{op:?} has no loop over arrays"));
}

/// Does the same as [`arithmetic`], for values of `N` elements. `N` is a constant, so that the loops over a value have a fixed length.
#[inline(always)]
fn compute_by_arrays<T: FloatMath, const N: usize>(
    instructions: &[Instruction],
    values: &mut [T],
    from: usize,
) -> usize {
    use Instruction as I;
    let (lines, _) = values.as_chunks_mut::<N>();
    for (number, instruction) in instructions.iter().enumerate() {
        let (before, rest) = lines.split_at_mut(from / N + number);
        let (out, value) = (&mut rest[0], |value: u32| &before[value as usize]);
        match *instruction {
            I::Unary(Unary::Neg, x) => map_unary_array(value(x), out, |x| -x),
            I::Unary(Unary::Square, x) => map_unary_array(value(x), out, |x| x * x),
            I::Unary(Unary::Sqrt, x) => map_unary_array(value(x), out, |x| x.sqrt()),
            I::Unary(Unary::Reciprocal, x) => map_unary_array(value(x), out, |x| T::ONE / x),
            I::Unary(Unary::Relu, x) => map_unary_array(value(x), out, |x| if x < T::ZERO { T::ZERO } else { x }),
            // Each operation has its own match arm, and thus its own store instruction. Some processors predict by the store instruction
            // which load depends on it. With a shared store instruction, each load would wait for the store before it.
            I::Binary(Binary::Add, x, y) => apply_to_arrays(Binary::Add, value(x), value(y), out),
            I::Binary(Binary::Sub, x, y) => apply_to_arrays(Binary::Sub, value(x), value(y), out),
            I::Binary(Binary::Mul, x, y) => apply_to_arrays(Binary::Mul, value(x), value(y), out),
            I::Binary(Binary::Div, x, y) => apply_to_arrays(Binary::Div, value(x), value(y), out),
            _ => return number,
        }
    }
    instructions.len()
}

/// Returns true if vector forms of functions of f32 in [`wide`], in [`angles`] and in this file replace library functions. This is so for
/// f32, except in the mode of equal bits, which calls the crate `libm`. Every other mode has `FMA`, so the result is a constant. The vector
/// forms of `hypot` and of remainders of f64 replace library functions if `FMA` is true.
#[inline(always)]
fn is_narrow<T: FloatMath, const FMA: bool>() -> bool {
    FMA && T::DTYPE == DType::F32
}

/// Computes [`wide::fmod_of_short_quotient`] for elements of f32, by conversion to f64 and back, and [`double::fmod_of_short_quotient`] for
/// elements of f64.
#[inline(always)]
fn fmod_of_short_quotient<T: FloatMath>(x: T, y: T) -> T {
    let (x, y) = (x.to_f64(), y.to_f64());
    T::from_f64(match T::DTYPE {
        DType::F32 => wide::fmod_of_short_quotient(x, y),
        _ => double::fmod_of_short_quotient(x, y),
    })
}

/// Makes a closure that is always inlined: from its arguments and its body, or from a function of one argument. A function passed by name
/// might be compiled without the target features of its caller.
macro_rules! inlined {
    ($($x:ident),+ => $result:expr) => {
        #[inline(always)]
        |$($x),+| $result
    };
    ($f:expr) => {
        inlined!(x => $f(x))
    };
}

/// Wraps a function of one or two f64 numbers in an inlined closure, which converts elements to f64 and the result back.
macro_rules! widened {
    ($($x:ident),+ => $result:expr) => {
        #[inline(always)]
        |$($x),+| {
            $(let $x = $x.to_f64();)+
            T::from_f64($result)
        }
    };
}

/// Wraps a function of one or two f32 numbers in an inlined closure over elements of any floating-point type. The conversions of elements
/// of f32 to f64 and back cost nothing.
macro_rules! narrowed {
    ($($x:ident),+ => $result:expr) => {
        widened!($($x),+ => {
            $(let $x = $x as f32;)+
            f64::from($result)
        })
    };
}

/// Computes ln |Γ(x)| of elements of f32 in f64. The functions of positive and of negative numbers have a loop each. The second loop runs
/// only if there are negative numbers. The crate `libm` computes the results that both loops leave out.
#[inline(always)]
fn map_log_gamma<T: FloatMath, const FMA: bool>(x: Operand<T>, out: &mut [T]) {
    by_slices(
        x,
        out,
        #[inline(always)]
        |from, to| {
            let (mut all, mut any_negative) = (true, false);
            for i in 0..to.len() {
                let x = from[i].to_f64();
                (all, any_negative) = (all & wide::has_log_gamma(x), any_negative | (x < 0.0));
                let value = if wide::has_log_gamma(x) { wide::log_gamma::<FMA>(x) } else { f64::NAN };
                to[i] = T::from_f64(value);
            }
            if any_negative {
                for i in 0..to.len() {
                    let x = from[i].to_f64();
                    let other = T::from_f64(wide::log_gamma_of_negative::<FMA>(x));
                    to[i] = if wide::has_log_gamma(x) { to[i] } else { other };
                }
            }
            if !all {
                for i in 0..to.len() {
                    if is_nan(to[i]) {
                        to[i] = T::from_f64(libm::lgamma(from[i].to_f64()));
                    }
                }
            }
        },
    );
}

/// Computes x ln y for an ordinary `y`, and 0 if `x` is 0. Returns NaN for other `y`.
#[inline(always)]
fn xlogy_ordinary<T: FloatMath, const FMA: bool>(x: T, y: T) -> T {
    let product = if x == T::ZERO { T::ZERO } else { x * T::log_ordinary::<FMA>(y) };
    if T::is_ordinary(y) { product } else { T::from_f64(f64::NAN) }
}

/// Computes x ln(1 + y) if `y` is above -1 and not close to the largest number, and 0 if `x` is 0. Returns NaN for other `y`.
#[inline(always)]
fn xlog1py_ordinary<T: FloatMath, const FMA: bool>(x: T, y: T) -> T {
    let product = if x == T::ZERO { T::ZERO } else { x * T::log1p_ordinary::<FMA>(y) };
    if T::is_above_minus_one(y) { product } else { T::from_f64(f64::NAN) }
}

/// Computes `out = op(x, y)` for an operation other than addition, subtraction, multiplication and division.
#[inline(always)]
fn other_binary<T: FloatMath, const FMA: bool>(op: Binary, x: Operand<T>, y: Operand<T>, out: &mut [T]) {
    match op {
        Binary::Pow => map_powers::<T, FMA>(x, y, out),
        Binary::Maximum => map_binary(x, y, out, |x, y| larger(x, y)),
        Binary::Minimum => map_binary(x, y, out, |x, y| smaller(x, y)),
        // The standard library's `max` and `min` do not define the sign of the result for two zeros.
        Binary::Fmax => map_binary(x, y, out, |x, y| if y > x || x.is_nan() { y } else { x }),
        Binary::Fmin => map_binary(x, y, out, |x, y| if y < x || x.is_nan() { y } else { x }),
        Binary::Atan2 if is_narrow::<T, FMA>() => map_binary(x, y, out, narrowed!(x, y => angles::atan2::<FMA>(x, y))),
        Binary::Atan2 => map_binary_library(x, y, out, T::atan2),
        Binary::Hypot if is_narrow::<T, FMA>() => map_binary(x, y, out, widened!(x, y => wide::hypot(x, y))),
        Binary::Hypot if FMA => map_binary_corrected(x, y, out, widened!(x, y => double::hypot(x, y)), T::hypot),
        Binary::Hypot => map_binary_library(x, y, out, T::hypot),
        Binary::Copysign => map_binary(x, y, out, |x, y| x.copysign(y)),
        Binary::Fmod if FMA => map_binary_corrected(x, y, out, fmod_of_short_quotient, T::rem),
        Binary::Fmod => map_binary_library(x, y, out, T::rem),
        Binary::Remainder if FMA => {
            map_binary_corrected(
                x,
                y,
                out,
                inlined!(x, y => remainder(y, fmod_of_short_quotient(x, y))),
                exact_remainder,
            );
        }
        Binary::Remainder => map_binary_library(x, y, out, exact_remainder),
        Binary::FloorDivide if FMA => {
            map_binary_corrected(
                x,
                y,
                out,
                inlined!(x, y => floor_divide(x, y, fmod_of_short_quotient(x, y))),
                exact_floor_divide,
            );
        }
        Binary::FloorDivide => map_binary_library(x, y, out, exact_floor_divide),
        Binary::Prelu => map_binary(x, y, out, |x, y| if x > T::ZERO { x } else { x * y }),
        Binary::LogitWithin if is_narrow::<T, FMA>() => {
            map_binary_corrected(
                x,
                y,
                out,
                inlined!(x, y => T::from_f64(wide::logit::<FMA>(clamp_to_unit(x, y).to_f64()))),
                logit_clamped,
            );
        }
        Binary::LogitWithin => map_binary_library(x, y, out, logit_clamped),
        Binary::Xlogy if is_narrow::<T, FMA>() => {
            map_binary_corrected(x, y, out, inlined!(x, y => xlogy_ordinary::<T, FMA>(x, y)), xlogy);
        }
        Binary::Xlogy => map_binary_library(x, y, out, xlogy),
        Binary::Xlog1py if is_narrow::<T, FMA>() => {
            map_binary_corrected(x, y, out, widened!(x, y => xlog1py_ordinary::<f64, FMA>(x, y)), xlog1py);
        }
        Binary::Xlog1py => map_binary_library(x, y, out, xlog1py),
        Binary::Nextafter => map_binary(x, y, out, inlined!(x, y => nextafter(x, y))),
        Binary::Zeta => map_binary_library(x, y, out, zeta),
        _ => unreachable!("floating-point numbers have no {op:?}"),
    }
}

dispatched! {
    with FMA;

    fn unary<T: FloatMath>(op: Unary, x: Operand<'_, T>, out: &mut [T]) {
        match op {
            Unary::Neg => map_unary(x, out, |x| -x),
            Unary::Abs => map_unary(x, out, |x| x.abs()),
            Unary::Sign => map_unary(x, out, |x| T::from_f64(f64::from(i8::from(x > T::ZERO) - i8::from(x < T::ZERO)))),
            Unary::Reciprocal => map_unary(x, out, |x| T::ONE / x),
            Unary::Square => map_unary(x, out, |x| x * x),
            Unary::Sqrt | Unary::SqrtFlat | Unary::PowHalf if map_by_table(Unary::Sqrt, x, out) => {}
            Unary::Sqrt | Unary::SqrtFlat | Unary::PowHalf => map_unary(x, out, |x| x.sqrt()),
            Unary::PowMinusHalf => map_unary(x, out, |x| T::ONE / x.sqrt()),
            Unary::Floor => map_unary(x, out, |x| x.floor()),
            Unary::Ceil => map_unary(x, out, |x| x.ceil()),
            Unary::Round => map_unary(x, out, |x| x.round_ties_even()),
            Unary::Trunc => map_unary(x, out, |x| x.trunc()),
            Unary::Exp | Unary::Log | Unary::Tanh | Unary::Ndtr if map_by_table(op, x, out) => {}
            Unary::Exp => map_unary_large_fn(x, out, inlined!(T::exp::<FMA>)),
            Unary::Exp2 => map_unary_large_fn(x, out, inlined!(T::exp2::<FMA>)),
            Unary::Expm1 => map_unary_large_fn(x, out, inlined!(T::expm1::<FMA>)),
            Unary::Log => {
                map_unary_guarded(x, out, inlined!(T::is_ordinary), inlined!(T::log_ordinary::<FMA>), inlined!(T::log::<FMA>))
            }
            Unary::Log2 => map_unary_corrected(x, out, inlined!(T::is_ordinary), inlined!(T::log2_ordinary::<FMA>), T::log2),
            Unary::Log10 => map_unary_corrected(x, out, inlined!(T::is_ordinary), inlined!(T::log10_ordinary::<FMA>), T::log10),
            Unary::Log1p => {
                map_unary_corrected(x, out, inlined!(T::is_above_minus_one), inlined!(T::log1p_ordinary::<FMA>), T::ln_1p)
            }
            Unary::Sin => map_unary_corrected(x, out, inlined!(T::is_moderate_angle), #[inline(always)] |x| T::sine::<FMA>(x, 0), T::sin),
            Unary::Cos => map_unary_corrected(x, out, inlined!(T::is_moderate_angle), #[inline(always)] |x| T::sine::<FMA>(x, 1), T::cos),
            Unary::Tan if is_narrow::<T, FMA>() => {
                map_unary_corrected(x, out, inlined!(T::is_moderate_angle), widened!(x => wide::tan::<FMA>(x)), T::tan)
            }
            Unary::Asin if is_narrow::<T, FMA>() => map_unary_large_fn(x, out, narrowed!(x => angles::asin::<FMA>(x))),
            Unary::Acos if is_narrow::<T, FMA>() => map_unary_large_fn(x, out, narrowed!(x => angles::acos::<FMA>(x))),
            Unary::Atan if is_narrow::<T, FMA>() => map_unary_large_fn(x, out, narrowed!(x => angles::atan2::<FMA>(x, 1.0))),
            Unary::Tan => map_library(x, out, T::tan),
            Unary::Asin => map_library(x, out, T::asin),
            Unary::Acos => map_library(x, out, T::acos),
            Unary::Atan => map_library(x, out, T::atan),
            Unary::Sinh => map_library(x, out, T::sinh),
            Unary::Cosh => map_library(x, out, T::cosh),
            Unary::Tanh => map_unary_large_fn(x, out, inlined!(T::tanh::<FMA>)),
            Unary::Asinh => map_in_f64(x, out, libm::asinh),
            // `libm::acosh` returns a finite number for some x below -2.
            Unary::Acosh => map_in_f64(x, out, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
            Unary::Atanh if is_narrow::<T, FMA>() => map_unary_corrected(
                x,
                out,
                #[inline(always)] |x| x.abs() < T::ONE,
                widened!(x => wide::atanh::<FMA>(x)),
                |x| T::from_f64(libm::atanh(x.to_f64())),
            ),
            Unary::Atanh => map_in_f64(x, out, libm::atanh),
            Unary::Sigmoid => map_unary_large_fn(x, out, inlined!(T::sigmoid::<FMA>)),
            Unary::Relu => map_unary(x, out, |x| if x < T::ZERO { T::ZERO } else { x }),
            Unary::Hardsigmoid => map_unary(x, out, |x| {
                let six = T::from_f64(6.0);
                if x.is_nan() { x } else { larger(smaller(x + T::from_f64(3.0), six), T::ZERO) / six }
            }),
            Unary::Sinc if is_narrow::<T, FMA>() => map_unary_corrected(
                x,
                out,
                #[inline(always)] |x| wide::has_sinc(x.to_f64()),
                widened!(x => wide::sinc::<FMA>(x)),
                |x| T::from_f64(special::sinc(x.to_f64())),
            ),
            Unary::Sinc => map_in_f64(x, out, special::sinc),
            Unary::Logit if is_narrow::<T, FMA>() => map_unary_corrected(
                x,
                out,
                #[inline(always)] |x| (x > T::ZERO) & (x < T::ONE),
                widened!(x => wide::logit::<FMA>(x)),
                |x| T::from_f64(special::logit(x.to_f64())),
            ),
            Unary::Logit => map_in_f64(x, out, special::logit),
            Unary::Erf => map_unary_large_fn(x, out, inlined!(T::erf::<FMA>)),
            Unary::Erfc => map_unary_large_fn(x, out, inlined!(T::erfc::<FMA>)),
            Unary::Ndtr => map_unary_large_fn(x, out, inlined!(T::ndtr::<FMA>)),
            Unary::Erfinv if is_narrow::<T, FMA>() => map_unary_corrected(
                x,
                out,
                #[inline(always)] |x| x.abs() < T::ONE,
                widened!(x => wide::erfinv::<FMA>(x)),
                |x| T::from_f64(special::erfinv(x.to_f64())),
            ),
            Unary::Erfinv => map_in_f64(x, out, special::erfinv),
            Unary::Lgamma if is_narrow::<T, FMA>() => map_log_gamma::<T, FMA>(x, out),
            Unary::Lgamma => map_in_f64(x, out, libm::lgamma),
            Unary::Digamma => map_in_f64(x, out, special::digamma),
            Unary::Trigamma => map_in_f64(x, out, special::trigamma),
            Unary::Not => unreachable!("floating-point numbers have no {op:?}"),
        }
    }

    fn binary<T: FloatMath>(op: Binary, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        with_arithmetic!(op, f => map_binary(x, y, out, f), _ => other_binary::<T, FMA>(op, x, y, out));
    }
}

dispatched! {
    fn rows<T: FloatMath>(op: Binary, rows: RowBroadcast, x: Option<&[T]>, y: &[T], out: &mut [T]) {
        with_arithmetic!(op, f => loops::rows(rows, x, y, out, f), _ => unreachable!("{op:?} has no loop over rows"));
    }

    fn stream<T: FloatMath>(op: Binary, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        with_arithmetic!(op, f => map_binary_streamed(x, y, out, f), _ => unreachable!("{op:?} has no loop that streams"));
    }

    fn compare_as_float<T: FloatMath>(op: Compare, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        compare(op, x, y, out, |holds| if holds { T::ONE } else { T::ZERO });
    }

    fn select<T: FloatMath>(mask: Operand<'_, T>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        map_ternary(mask, x, y, out, |mask, x, y| if mask != T::ZERO { x } else { y });
    }

    fn formula<T: FloatMath>(formula: Formula, operands: &[Operand<'_, T>], out: &mut [T]) {
        let operand = |k: usize| operands[k];
        let number = |x: Option<f64>, other: T| x.map_or(other, T::from_f64);
        match formula {
            Formula::Clamp { low, high } => {
                let (low, high) = (T::from_f64(low), T::from_f64(high));
                map_unary(operand(0), out, #[inline(always)] |x| smaller(larger(x, low), high));
            }
            Formula::AddScaled { op: Binary::Div, value } => {
                let value = T::from_f64(value);
                map_ternary(operand(0), operand(1), operand(2), out, |own, x, y| own + x * value / y);
            }
            Formula::AddScaled { op: _, value } => {
                let value = T::from_f64(value);
                map_ternary(operand(0), operand(1), operand(2), out, |own, x, y| own + x * value * y);
            }
            Formula::Lerp { weight } => {
                let weight = T::from_f64(weight);
                map_binary(operand(0), operand(1), out, #[inline(always)] |x, y| lerp(x, y, weight));
            }
            Formula::LerpTensor => map_ternary(operand(0), operand(1), operand(2), out, #[inline(always)] |x, y, z| lerp(x, y, z)),
            Formula::NanToNum { nan, posinf, neginf } => {
                let (nan, posinf, neginf) = (T::from_f64(nan), number(posinf, T::MAX), number(neginf, -T::MAX));
                map_unary(operand(0), out, #[inline(always)] |x| {
                    let finite = if x > T::MAX { posinf } else { x };
                    let finite = if x < -T::MAX { neginf } else { finite };
                    if x.is_nan() { nan } else { finite }
                });
            }
            Formula::Hardswish => map_unary(operand(0), out, #[inline(always)] |x| hardswish(x)),
            Formula::Hardshrink { bound } => {
                let bound = T::from_f64(bound);
                map_unary(operand(0), out, |x| if (x >= -bound) & (x <= bound) { T::ZERO } else { x });
            }
            Formula::Softshrink { bound } => {
                let bound = T::from_f64(bound);
                map_unary(operand(0), out, #[inline(always)] |x| {
                    let moved = if x > bound { x - bound } else { x + bound };
                    if (x >= -bound) & (x <= bound) { T::ZERO } else { moved }
                });
            }
            Formula::Threshold { threshold, value } => {
                let (threshold, value) = (T::from_f64(threshold), T::from_f64(value));
                map_unary(operand(0), out, |x| if x <= threshold { value } else { x });
            }
            Formula::TruncatedQuotient => map_binary(operand(0), operand(1), out, #[inline(always)] |x, y| (x / y).trunc()),
            Formula::SquaredDifference => map_binary(operand(0), operand(1), out, |x, y| (x - y) * (x - y)),
            Formula::Distance => map_binary(operand(0), operand(1), out, |x, y| (x - y).abs()),
            Formula::Huber { delta, divisor } => {
                let (delta, divisor) = (T::from_f64(delta), T::from_f64(divisor));
                map_binary(operand(0), operand(1), out, #[inline(always)] |x, y| huber(x - y, delta) / divisor);
            }
        }
    }

    fn arithmetic<T: FloatMath>(instructions: &[Instruction], values: &mut [T], from: usize, len: usize) -> usize {
        match len {
            8 if size_of::<T>() == 8 => compute_by_arrays::<T, 8>(instructions, values, from),
            16 => compute_by_arrays::<T, 16>(instructions, values, from),
            32 => compute_by_arrays::<T, 32>(instructions, values, from),
            64 if size_of::<T>() == 4 => compute_by_arrays::<T, 64>(instructions, values, from),
            _ => unreachable!("lines are of 64, 128 or 256 bytes"),
        }
    }
}
