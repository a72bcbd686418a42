//! Each elementwise operation over a block of elements, for each element type.
//!
//! A block is a few hundred to a few thousand elements. An operand is a slice of as many, or one number for all. The loop
//! over a block is chosen once per block, so that the compiler sees a plain loop over slices.
#![allow(clippy::needless_range_loop)]

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::kernel::elementwise::loops::{
    compare_body, once, one, one_guarded, one_inlined, one_line, one_mended, power_inlined, three, two, two_lines,
};
use crate::kernel::elementwise::operand::{Operand, Plane};
use crate::kernel::reduce::fold::{
    each_extreme, each_lanes, each_onto, lanes, onto_operand, rows, rows_onto, short_rows_onto,
};
use crate::scalar::instruction::{Binary, Compare, Instruction, Reduction, Unary};
use crate::scalar::special;

/// Block operations of an element type. Sealed: it is implemented here, for the five element types.
///
/// A function returns `false`, and writes nothing, where the type does not have the operation.
#[doc(hidden)]
pub trait Blocks: Sized {
    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) -> bool;
    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) -> bool;
    /// `out = op(x, y)` over rows of columns, for the few operations that are worth a loop of their own; `false`, and nothing
    /// done, for the others.
    fn plane(op: Binary, plane: Plane, x: &[Self], y: &[Self], out: &mut [Self]) -> bool {
        let _ = (op, plane, x, y, out);
        false
    }
    /// `x = op(x, y)`, for the few operations that are worth a loop of their own; `false`, and nothing done, for the others.
    fn onto(op: Binary, x: &mut [Self], y: Operand<Self>) -> bool {
        let _ = (op, x, y);
        false
    }
    fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]);
    /// `total[i] = op(total[i], x[i])`.
    fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool;
    /// The reduction of a slice that is not long; `None` where the type does not have it.
    fn reduce(op: Reduction, x: &[Self]) -> Option<Self>;
    /// `total[i] = op(total[i], x[i], x[stride + i], …)`, `rows` rows, each as long as `total`; several at a time, so that
    /// at most `rows` / 8 + 7 follow one after the other.
    fn accumulate_rows(op: Reduction, total: &mut [Self], x: &[Self], stride: usize, rows: usize) {
        let width = total.len();
        for row in 0..rows {
            Self::accumulate(op, total, &x[row * stride..][..width]);
        }
    }
    /// [`reduce`](Self::reduce) of slices of `len` elements, `stride` apart: one for each of `out`.
    fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
        for (row, out) in out.iter_mut().enumerate() {
            if let Some(total) = Self::reduce(op, &x[row * stride..][..len]) {
                *out = total;
            }
        }
    }
    /// What the reduction of nothing is, where that is defined.
    fn identity(op: Reduction) -> Option<Self>;
}

/// What fused programs need besides: floating-point numbers as masks, and where a reduction starts.
#[doc(hidden)]
pub trait FloatBlocks: Blocks {
    /// `out = x op y`, as 0 and 1.
    fn flags(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `out = mask != 0 ? x : y`.
    fn choose(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]);
    /// `totals[i] = op(totals[i], row i of x)`, rows of `row` elements, each reduced one after the other.
    fn short_rows(op: Reduction, x: &[Self], row: usize, totals: &mut [Self]);
    /// What changes nothing when it is reduced with something.
    fn start(op: Reduction) -> Self;
    /// Runs the first of `instructions`, up to one that is not plain arithmetic, over values that are lines of `line`
    /// elements, 64, 128 or 256 bytes: the result of the first is at `from`, those of the others follow. Gives how many were
    /// run.
    fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, line: usize) -> usize;
    /// Memory that a thread keeps for the registers of programs.
    fn arena() -> &'static LocalKey<RefCell<Vec<Self>>>;
}

crate::scalar::cpu::dispatched! {
    /// `out = mask ? x : y`.
    pub(crate) fn select<T: Copy>(mask: Operand<'_, bool>, x: Operand<'_, T>, y: Operand<'_, T>, out: &mut [T]) {
        three(mask, x, y, out, |mask, x, y| if mask { x } else { y });
    }
}

macro_rules! compare {
    () => {
        fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]) {
            compare_body!(op, x, y, out, |holds| holds);
        }
    };
}

macro_rules! floats {
    ($($type:ident $module:ident $by_table:ident, $nextafter:path);*) => {$(
        impl Blocks for $type {
            fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) -> bool {
                $module::unary(op, x, out)
            }

            fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) -> bool {
                $module::binary(op, x, y, out)
            }

            fn plane(op: Binary, plane: Plane, x: &[Self], y: &[Self], out: &mut [Self]) -> bool {
                $module::plane(op, plane, x, y, out)
            }

            fn onto(op: Binary, x: &mut [Self], y: Operand<Self>) -> bool {
                $module::onto(op, x, y)
            }

            fn compare(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [bool]) {
                $module::compare(op, x, y, out);
            }

            fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool {
                $module::accumulate(op, total, x);
                true
            }

            fn reduce(op: Reduction, x: &[Self]) -> Option<Self> {
                let mut total = [0.0];
                $module::reduce_each(op, x, x.len(), 0, &mut total);
                Some(total[0])
            }

            fn accumulate_rows(op: Reduction, total: &mut [Self], x: &[Self], stride: usize, rows: usize) {
                $module::accumulate_rows(op, total, x, stride, rows);
            }

            fn reduce_each(op: Reduction, x: &[Self], len: usize, stride: usize, out: &mut [Self]) {
                $module::reduce_each(op, x, len, stride, out);
            }

            fn identity(op: Reduction) -> Option<Self> {
                match op {
                    Reduction::Sum => Some(0.0),
                    Reduction::Prod => Some(1.0),
                    Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => None,
                }
            }
        }

        impl FloatBlocks for $type {
            fn flags(op: Compare, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
                $module::flags(op, x, y, out);
            }

            fn choose(mask: Operand<Self>, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) {
                $module::choose(mask, x, y, out);
            }

            fn short_rows(op: Reduction, x: &[Self], row: usize, totals: &mut [Self]) {
                $module::short_rows(op, x, row, totals);
            }

            fn arithmetic(instructions: &[Instruction], values: &mut [Self], from: usize, line: usize) -> usize {
                $module::arithmetic(instructions, values, from, line)
            }

            fn start(op: Reduction) -> Self {
                match op {
                    Reduction::Sum => 0.0,
                    Reduction::Prod => 1.0,
                    Reduction::Amax | Reduction::Max => <$type>::NEG_INFINITY,
                    Reduction::Amin | Reduction::Min => <$type>::INFINITY,
                }
            }

            fn arena() -> &'static LocalKey<RefCell<Vec<Self>>> {
                thread_local! {
                    static ARENA: RefCell<Vec<$type>> = const { RefCell::new(Vec::new()) };
                }
                &ARENA
            }
        }

        mod $module {
            use crate::scalar::math::$module as math;
            use crate::scalar::cpu::dispatched;
            use super::*;

            /// Truth values: no instruction set makes much of a difference.
            pub(crate) fn compare(op: Compare, x: Operand<$type>, y: Operand<$type>, out: &mut [bool]) {
                compare_body!(op, x, y, out, |holds| holds);
            }

            /// The functions that are calls into libraries, element by element: no instruction set makes a difference.
            fn by_library(op: Unary, x: Operand<$type>, out: &mut [$type]) -> bool {
                let via_f64 = |f: fn(f64) -> f64| move |x: $type| f(f64::from(x)) as $type;
                match op {
                    Unary::Tan => one(x, out, |x| x.tan()),
                    Unary::Asin => one(x, out, |x| x.asin()),
                    Unary::Acos => one(x, out, |x| x.acos()),
                    Unary::Atan => one(x, out, |x| x.atan()),
                    Unary::Sinh => one(x, out, |x| x.sinh()),
                    Unary::Cosh => one(x, out, |x| x.cosh()),
                    Unary::Asinh => one(x, out, via_f64(libm::asinh)),
                    Unary::Acosh => one(x, out, via_f64(libm::acosh)),
                    Unary::Atanh => one(x, out, via_f64(libm::atanh)),
                    Unary::Sinc => one(x, out, via_f64(special::sinc)),
                    Unary::Logit => one(x, out, via_f64(special::logit)),
                    Unary::Erfinv => one(x, out, via_f64(special::erfinv)),
                    Unary::Lgamma => one(x, out, via_f64(special::lgamma)),
                    Unary::Digamma => one(x, out, via_f64(special::digamma)),
                    Unary::Trigamma => one(x, out, via_f64(special::trigamma)),
                    _ => false,
                }
            }

            /// As [`by_library`], of two operands.
            fn two_by_library(op: Binary, x: Operand<$type>, y: Operand<$type>, out: &mut [$type]) -> bool {
                match op {
                    Binary::Pow => two(x, y, out, |x, y| x.powf(y)),
                    Binary::Atan2 => two(x, y, out, |x, y| x.atan2(y)),
                    Binary::Hypot => two(x, y, out, |x, y| x.hypot(y)),
                    Binary::Fmod => two(x, y, out, |x, y| x % y),
                    Binary::Remainder => two(x, y, out, |x, y| {
                        let rest = x % y;
                        if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
                    }),
                    Binary::FloorDivide => two(x, y, out, |x, y| {
                        // Python's rule: the quotient of what remains after the remainder is taken off.
                        if y == 0.0 {
                            return x / y;
                        }
                        let rest = x % y;
                        let opposite = rest != 0.0 && (rest < 0.0) != (y < 0.0);
                        let quotient = (x - rest) / y - if opposite { 1.0 } else { 0.0 };
                        if quotient == 0.0 {
                            return (0.0 as $type).copysign(x / y);
                        }
                        let floor = quotient.floor();
                        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                    }),
                    Binary::LogitWithin => two(x, y, out, |x, y| {
                        let x = if x < y { y } else if x > 1.0 - y { 1.0 - y } else { x };
                        x.ln() - (-x).ln_1p()
                    }),
                    Binary::Xlogy => two(x, y, out, |x, y| if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln() }),
                    Binary::Xlog1py => two(x, y, out, |x, y| if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln_1p() }),
                    Binary::Nextafter => two(x, y, out, $nextafter),
                    Binary::Zeta => two(x, y, out, |x, y| special::zeta(f64::from(x), f64::from(y)) as $type),
                    _ => false,
                }
            }

            /// `arithmetic`, by lines of `N`.
            #[inline(always)]
            fn by_lines<const N: usize>(instructions: &[Instruction], values: &mut [$type], from: usize) -> usize {
                use Instruction as I;
                let (lines, _) = values.as_chunks_mut::<N>();
                for (number, instruction) in instructions.iter().enumerate() {
                    let (before, rest) = lines.split_at_mut(from / N + number);
                    let (out, value) = (&mut rest[0], |value: u32| &before[value as usize]);
                    match *instruction {
                        I::Unary(Unary::Neg, x) => one_line(value(x), out, |x| -x),
                        I::Unary(Unary::Square, x) => one_line(value(x), out, |x| x * x),
                        I::Unary(Unary::Sqrt, x) => one_line(value(x), out, |x| x.sqrt()),
                        I::Unary(Unary::Reciprocal, x) => one_line(value(x), out, |x| 1.0 / x),
                        I::Unary(Unary::Relu, x) => one_line(value(x), out, |x| if x < 0.0 { 0.0 } else { x }),
                        I::Binary(Binary::Add, x, y) => two_lines(value(x), value(y), out, |x, y| x + y),
                        I::Binary(Binary::Sub, x, y) => two_lines(value(x), value(y), out, |x, y| x - y),
                        I::Binary(Binary::Mul, x, y) => two_lines(value(x), value(y), out, |x, y| x * y),
                        I::Binary(Binary::Div, x, y) => two_lines(value(x), value(y), out, |x, y| x / y),
                        _ => return number,
                    }
                }
                instructions.len()
            }

            dispatched! {
                pub(crate) fn unary(op: Unary, x: Operand<$type>, out: &mut [$type]) -> bool {
                    match op {
                        Unary::Neg => one(x, out, |x| -x),
                        Unary::Abs => one(x, out, |x| x.abs()),
                        Unary::Sign => one(x, out, |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)) as $type),
                        Unary::Reciprocal => one(x, out, |x| 1.0 / x),
                        Unary::Square => one(x, out, |x| x * x),
                        Unary::Sqrt | Unary::SqrtFlat => one(x, out, |x| x.sqrt()),
                        Unary::Floor => one(x, out, |x| x.floor()),
                        Unary::Ceil => one(x, out, |x| x.ceil()),
                        Unary::Round => one(x, out, |x| x.round_ties_even()),
                        Unary::Trunc => one(x, out, |x| x.trunc()),
                        Unary::Exp => one_inlined!(x, out, math::exp::<FMA>),
                        Unary::Log => one_guarded!(x, out, math::is_ordinary, math::log_ordinary::<FMA>, math::log::<FMA>),
                        Unary::Tanh => $by_table(op, x, out) || one_inlined!(x, out, math::tanh::<FMA>),
                        Unary::Sigmoid => one_inlined!(x, out, math::sigmoid::<FMA>),
                        Unary::Relu => one(x, out, |x| if x < 0.0 { 0.0 } else { x }),
                        Unary::Hardsigmoid => one(x, out, |x| {
                            if x.is_nan() { x } else { (x + 3.0).max(0.0).min(6.0) / 6.0 }
                        }),
                        Unary::Erf => one_inlined!(x, out, math::erf::<FMA>),
                        Unary::Erfc => one_inlined!(x, out, math::erfc::<FMA>),
                        Unary::Ndtr => $by_table(op, x, out) || one_inlined!(x, out, math::ndtr::<FMA>),
                        Unary::Exp2 => one_inlined!(x, out, math::exp2::<FMA>),
                        Unary::Expm1 => one_inlined!(x, out, math::expm1::<FMA>),
                        Unary::Log2 => {
                            one_mended!(x, out, math::is_ordinary, math::log2_ordinary::<FMA>, $type::log2)
                        }
                        Unary::Log10 => {
                            one_mended!(x, out, math::is_ordinary, math::log10_ordinary::<FMA>, $type::log10)
                        }
                        Unary::Log1p => {
                            one_mended!(x, out, math::is_above_minus_one, math::log1p_ordinary::<FMA>, $type::ln_1p)
                        }
                        Unary::Sin => one_mended!(x, out, math::is_moderate, math::sin_moderate::<FMA>, $type::sin),
                        Unary::Cos => one_mended!(x, out, math::is_moderate, math::cos_moderate::<FMA>, $type::cos),
                        _ => return by_library(op, x, out),
                    }
                }

                pub(crate) fn binary(op: Binary, x: Operand<$type>, y: Operand<$type>, out: &mut [$type]) -> bool {
                    match op {
                        Binary::Add => two(x, y, out, |x, y| x + y),
                        Binary::Sub => two(x, y, out, |x, y| x - y),
                        Binary::Mul => two(x, y, out, |x, y| x * y),
                        Binary::Div => two(x, y, out, |x, y| x / y),
                        Binary::Maximum => two(x, y, out, |x, y| if x >= y || x.is_nan() { x } else { y }),
                        Binary::Minimum => two(x, y, out, |x, y| if x <= y || x.is_nan() { x } else { y }),
                        Binary::Fmax => two(x, y, out, |x, y| x.max(y)),
                        Binary::Fmin => two(x, y, out, |x, y| x.min(y)),
                        Binary::Copysign => two(x, y, out, |x, y| x.copysign(y)),
                        Binary::Prelu => two(x, y, out, |x, y| if x > 0.0 { x } else { x * y }),
                        Binary::Pow if math::has_pow(FMA) => power_inlined!(x, y, out, math),
                        _ => return two_by_library(op, x, y, out),
                    }
                }

                pub(crate) fn plane(op: Binary, plane: Plane, x: &[$type], y: &[$type], out: &mut [$type]) -> bool {
                    match op {
                        Binary::Add => rows(plane, x, y, out, |x, y| x + y),
                        Binary::Sub => rows(plane, x, y, out, |x, y| x - y),
                        Binary::Mul => rows(plane, x, y, out, |x, y| x * y),
                        Binary::Div => rows(plane, x, y, out, |x, y| x / y),
                        _ => return false,
                    }
                    true
                }

                pub(crate) fn onto(op: Binary, x: &mut [$type], y: Operand<$type>) -> bool {
                    match op {
                        Binary::Add => onto_operand(x, y, |x, y| x + y),
                        Binary::Sub => onto_operand(x, y, |x, y| x - y),
                        Binary::Mul => onto_operand(x, y, |x, y| x * y),
                        Binary::Div => onto_operand(x, y, |x, y| x / y),
                        _ => return false,
                    }
                    true
                }


                pub(crate) fn flags(op: Compare, x: Operand<$type>, y: Operand<$type>, out: &mut [$type]) {
                    compare_body!(op, x, y, out, |holds| if holds { 1.0 } else { 0.0 });
                }

                pub(crate) fn choose(mask: Operand<$type>, x: Operand<$type>, y: Operand<$type>, out: &mut [$type]) {
                    three(mask, x, y, out, |mask, x, y| if mask != 0.0 { x } else { y });
                }

                pub(crate) fn arithmetic(
                    instructions: &[Instruction], values: &mut [$type], from: usize, line: usize,
                ) -> usize {
                    const VECTOR: usize = 64 / size_of::<$type>();
                    match line / VECTOR {
                        1 => by_lines::<VECTOR>(instructions, values, from),
                        2 => by_lines::<{ 2 * VECTOR }>(instructions, values, from),
                        4 => by_lines::<{ 4 * VECTOR }>(instructions, values, from),
                        _ => unreachable!("lines are of 1, 2 or 4 vectors"),
                    }
                }

                pub(crate) fn accumulate(op: Reduction, total: &mut [$type], x: &[$type]) {
                    match op {
                        Reduction::Sum => each_onto(total, x, |total, x| total + x),
                        Reduction::Prod => each_onto(total, x, |total, x| total * x),
                        Reduction::Amax | Reduction::Max => {
                            each_onto(total, x, |total, x| if total >= x || total.is_nan() { total } else { x });
                        }
                        Reduction::Amin | Reduction::Min => {
                            each_onto(total, x, |total, x| if total <= x || total.is_nan() { total } else { x });
                        }
                    }
                }

                pub(crate) fn short_rows(op: Reduction, x: &[$type], row: usize, totals: &mut [$type]) {
                    let larger = |total: $type, x: $type| if total >= x || total.is_nan() { total } else { x };
                    let smaller = |total: $type, x: $type| if total <= x || total.is_nan() { total } else { x };
                    match op {
                        Reduction::Sum => short_rows_onto(x, row, totals, |total, x| total + x),
                        Reduction::Prod => short_rows_onto(x, row, totals, |total, x| total * x),
                        Reduction::Amax | Reduction::Max => short_rows_onto(x, row, totals, larger),
                        Reduction::Amin | Reduction::Min => short_rows_onto(x, row, totals, smaller),
                    }
                }

                pub(crate) fn accumulate_rows(
                    op: Reduction, total: &mut [$type], x: &[$type], stride: usize, rows: usize,
                ) {
                    let larger = |total: $type, x: $type| if total >= x || total.is_nan() { total } else { x };
                    let smaller = |total: $type, x: $type| if total <= x || total.is_nan() { total } else { x };
                    match op {
                        Reduction::Sum => rows_onto(total, x, stride, rows, |total, x| total + x),
                        Reduction::Prod => rows_onto(total, x, stride, rows, |total, x| total * x),
                        Reduction::Amax | Reduction::Max => rows_onto(total, x, stride, rows, larger),
                        Reduction::Amin | Reduction::Min => rows_onto(total, x, stride, rows, smaller),
                    }
                }

                pub(crate) fn reduce_each(
                    op: Reduction, x: &[$type], len: usize, stride: usize, out: &mut [$type],
                ) {
                    match op {
                        Reduction::Sum => each_lanes(x, len, stride, out, 0.0, |total, x| total + x),
                        Reduction::Prod => each_lanes(x, len, stride, out, 1.0, |total, x| total * x),
                        Reduction::Amax | Reduction::Max => {
                            let larger = |total: $type, x: $type| if x > total { x } else { total };
                            each_extreme(x, len, stride, out, <$type>::NEG_INFINITY, larger);
                        }
                        Reduction::Amin | Reduction::Min => {
                            let smaller = |total: $type, x: $type| if x < total { x } else { total };
                            each_extreme(x, len, stride, out, <$type>::INFINITY, smaller);
                        }
                    }
                }
            }
        }
    )*};
}

floats!(f32 single by_table, special::nextafter_f32; f64 double by_no_table, special::nextafter);

/// By tables, where the instruction set in use can look up in them, and the function has one.
#[cfg(target_arch = "x86_64")]
fn by_table(op: Unary, x: Operand<f32>, out: &mut [f32]) -> bool {
    once!(x, out, |from, to| {
        if !crate::scalar::math::tables::unary(op, from, to) {
            return false;
        }
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn by_table(_: Unary, _: Operand<f32>, _: &mut [f32]) -> bool {
    false
}

fn by_no_table(_: Unary, _: Operand<f64>, _: &mut [f64]) -> bool {
    false
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Blocks for $type {
            fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) -> bool {
                match op {
                    Unary::Neg => one(x, out, |x| x.wrapping_neg()),
                    Unary::Abs => one(x, out, |x| if x < (0 as $type) { x.wrapping_neg() } else { x }),
                    Unary::Sign => one(x, out, |x| if x < (0 as $type) { (0 as $type).wrapping_sub(1) } else { $type::from(x > 0) }),
                    Unary::Square => one(x, out, |x| x.wrapping_mul(x)),
                    Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => one(x, out, |x| x),
                    Unary::Relu => one(x, out, |x| x.max(0)),
                    Unary::Not => one(x, out, |x| !x),
                    _ => false,
                }
            }

            fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) -> bool {
                // A divisor of 0 is refused before; the value given here is never seen.
                match op {
                    Binary::Add => two(x, y, out, |x, y| x.wrapping_add(y)),
                    Binary::Sub => two(x, y, out, |x, y| x.wrapping_sub(y)),
                    Binary::Mul => two(x, y, out, |x, y| x.wrapping_mul(y)),
                    Binary::Div => two(x, y, out, |x, y| if y == 0 { 0 } else { x.wrapping_div(y) }),
                    Binary::Pow => two(x, y, out, |x, y| power(i128::from(x), i128::from(y)) as $type),
                    Binary::Maximum | Binary::Fmax => two(x, y, out, |x, y| x.max(y)),
                    Binary::Minimum | Binary::Fmin => two(x, y, out, |x, y| x.min(y)),
                    Binary::Fmod => two(x, y, out, |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) }),
                    Binary::Remainder => two(x, y, out, |x, y| {
                        let rest = if y == 0 { 0 } else { x.wrapping_rem(y) };
                        if rest != 0 && ((rest ^ y) >> ($type::BITS - 1)) != 0 && $type::MIN != 0 { rest.wrapping_add(y) } else { rest }
                    }),
                    Binary::FloorDivide => two(x, y, out, |x, y| {
                        if y == 0 {
                            return 0;
                        }
                        let rest = x.wrapping_rem(y);
                        let below = rest != 0 && ((rest ^ y) >> ($type::BITS - 1)) != 0 && $type::MIN != 0;
                        x.wrapping_div(y).wrapping_sub($type::from(below))
                    }),
                    Binary::And => two(x, y, out, |x, y| x & y),
                    Binary::Or => two(x, y, out, |x, y| x | y),
                    Binary::Xor => two(x, y, out, |x, y| x ^ y),
                    Binary::ShiftLeft => two(x, y, out, |x, y| u32::try_from(y).ok().and_then(|y| x.checked_shl(y)).unwrap_or(0)),
                    Binary::ShiftRight => {
                        // Beyond the width only the sign is left.
                        two(x, y, out, |x, y| {
                            let width = $type::BITS - 1;
                            let all = if $type::MIN == 0 { 0 } else { x >> width };
                            u32::try_from(y).ok().and_then(|y| x.checked_shr(y)).unwrap_or(all)
                        })
                    }
                    Binary::Gcd => two(x, y, out, |x, y| special::gcd(x as i64, y as i64) as $type),
                    Binary::Lcm => two(x, y, out, |x, y| {
                        let divisor = special::gcd(x as i64, y as i64);
                        if divisor == 0 { 0 } else { ((x as i64 / divisor).wrapping_mul(y as i64)).wrapping_abs() as $type }
                    }),
                    _ => false,
                }
            }

            compare!();

            fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool {
                let pairs = total.iter_mut().zip(x);
                match op {
                    Reduction::Sum => pairs.for_each(|(total, &x)| *total = total.wrapping_add(x)),
                    Reduction::Prod => pairs.for_each(|(total, &x)| *total = total.wrapping_mul(x)),
                    Reduction::Amax | Reduction::Max => pairs.for_each(|(total, &x)| *total = x.max(*total)),
                    Reduction::Amin | Reduction::Min => pairs.for_each(|(total, &x)| *total = x.min(*total)),
                }
                true
            }

            fn reduce(op: Reduction, x: &[Self]) -> Option<Self> {
                Some(match op {
                    Reduction::Sum => lanes(x, 0, |total, x| total.wrapping_add(x)),
                    Reduction::Prod => lanes(x, 1, |total, x| total.wrapping_mul(x)),
                    Reduction::Amax | Reduction::Max => lanes(x, $type::MIN, |total, x| total.max(x)),
                    Reduction::Amin | Reduction::Min => lanes(x, $type::MAX, |total, x| total.min(x)),
                })
            }

            fn identity(op: Reduction) -> Option<Self> {
                match op {
                    Reduction::Sum => Some(0),
                    Reduction::Prod => Some(1),
                    Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => None,
                }
            }
        }
    )*};
}

integers!(i64, u8);

/// Integer power, wrapping; a negative exponent gives 0 but for the bases 1 and -1, as in PyTorch.
fn power(base: i128, exponent: i128) -> i128 {
    match (base, exponent) {
        (_, 0..) => {
            let (mut result, mut square, mut left) = (1i64, base as i64, exponent as u64);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            i128::from(result)
        }
        (1, _) => 1,
        (-1, exponent) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

impl Blocks for bool {
    fn unary(op: Unary, x: Operand<Self>, out: &mut [Self]) -> bool {
        match op {
            Unary::Not => one(x, out, |x| !x),
            _ => false,
        }
    }

    fn binary(op: Binary, x: Operand<Self>, y: Operand<Self>, out: &mut [Self]) -> bool {
        match op {
            Binary::Add | Binary::Or | Binary::Maximum | Binary::Fmax => two(x, y, out, |x, y| x | y),
            Binary::Mul | Binary::And | Binary::Minimum | Binary::Fmin => two(x, y, out, |x, y| x & y),
            Binary::Xor => two(x, y, out, |x, y| x ^ y),
            _ => false,
        }
    }

    compare!();

    fn accumulate(op: Reduction, total: &mut [Self], x: &[Self]) -> bool {
        let pairs = total.iter_mut().zip(x);
        match op {
            Reduction::Sum | Reduction::Amax | Reduction::Max => pairs.for_each(|(total, &x)| *total |= x),
            Reduction::Prod | Reduction::Amin | Reduction::Min => pairs.for_each(|(total, &x)| *total &= x),
        }
        true
    }

    fn reduce(op: Reduction, x: &[Self]) -> Option<Self> {
        Some(match op {
            // By chunks: within one, stopping early would keep vectors out.
            Reduction::Sum | Reduction::Amax | Reduction::Max => {
                x.chunks(512).any(|x| x.iter().fold(false, |any, &x| any | x))
            }
            Reduction::Prod | Reduction::Amin | Reduction::Min => {
                x.chunks(512).all(|x| x.iter().fold(true, |all, &x| all & x))
            }
        })
    }

    fn identity(op: Reduction) -> Option<Self> {
        match op {
            Reduction::Sum => Some(false),
            Reduction::Prod => Some(true),
            Reduction::Amax | Reduction::Amin | Reduction::Max | Reduction::Min => None,
        }
    }
}
