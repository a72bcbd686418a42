//! Single elements: the element type as a value, zero and one, conversions, and the arithmetic of reductions and matrix products.

use crate::DType;
use std::fmt::{Debug, Display};

/// A number or truth value. The trait has no operations on slices. Tensors need the trait [`Element`](crate::Element), which other crates
/// cannot implement.
pub trait Scalar: Copy + Default + PartialEq + PartialOrd + Debug + Display + Send + Sync + 'static {
    /// The element type as a value.
    const DTYPE: DType;
    /// The number 0, or `false`.
    const ZERO: Self;
    /// The number 1, or `true`.
    const ONE: Self;

    /// Converts a number to this type like `as`. Conversions to integers round toward zero and saturate, and turn NaN into 0. For `bool`,
    /// the result is true if the number is not 0, also for NaN.
    fn from_f64(value: f64) -> Self;

    /// Returns the value as a number. Integers beyond 2⁵³ are rounded, and `true` is 1.
    fn to_f64(self) -> f64;

    /// Converts an integer to this type like `as`: `u8` wraps, and floating-point types round. For `bool`, the result is true if the
    /// integer is not 0.
    fn from_i64(value: i64) -> Self;

    /// Converts the value to an integer like `as`.
    fn to_i64(self) -> i64;
}

macro_rules! numbers {
    ($($type:ident $dtype:ident),*) => {$(
        impl Scalar for $type {
            const DTYPE: DType = DType::$dtype;
            const ZERO: Self = 0 as $type;
            const ONE: Self = 1 as $type;

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn from_i64(value: i64) -> Self {
                value as $type
            }

            #[inline]
            fn to_i64(self) -> i64 {
                self as i64
            }
        }
    )*};
}

numbers!(f32 F32, f64 F64, i64 I64, u8 U8);

impl Scalar for bool {
    const DTYPE: DType = DType::Bool;
    const ZERO: Self = false;
    const ONE: Self = true;

    #[inline]
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }

    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }

    #[inline]
    fn from_i64(value: i64) -> Self {
        value != 0
    }

    #[inline]
    fn to_i64(self) -> i64 {
        i64::from(self)
    }
}

/// The arithmetic of reductions and matrix products. Integers wrap around. For truth values, "plus" is "or", and "times" is "and".
/// Sealed: implemented for the five element types.
#[doc(hidden)]
pub trait Semiring: Scalar {
    /// The smallest value; -∞ for floating-point numbers.
    const LOWEST: Self;
    /// The largest value; ∞ for floating-point numbers.
    const HIGHEST: Self;
    /// True if results are rounded, so that the order of additions matters.
    const ROUNDS: bool = Self::DTYPE.is_float();

    fn plus(self, other: Self) -> Self;

    fn times(self, other: Self) -> Self;
}

macro_rules! semirings {
    ($($type:ident $lowest:expr, $highest:expr, |$x:ident, $y:ident| $sum:expr, $product:expr;)*) => {$(
        impl Semiring for $type {
            const LOWEST: Self = $lowest;
            const HIGHEST: Self = $highest;

            #[inline(always)]
            fn plus(self, $y: Self) -> Self {
                let $x = self;
                $sum
            }

            #[inline(always)]
            fn times(self, $y: Self) -> Self {
                let $x = self;
                $product
            }
        }
    )*};
}

semirings!(
    f32 -f32::INFINITY, f32::INFINITY, |x, y| x + y, x * y;
    f64 -f64::INFINITY, f64::INFINITY, |x, y| x + y, x * y;
    i64 i64::MIN, i64::MAX, |x, y| x.wrapping_add(y), x.wrapping_mul(y);
    u8 u8::MIN, u8::MAX, |x, y| x.wrapping_add(y), x.wrapping_mul(y);
    bool false, true, |x, y| x | y, x & y;
);
