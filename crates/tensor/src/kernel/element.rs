//! The element types: f32 and f64 for arithmetic and gradients; i64, u8 and bool for data, indices and masks.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::Scalar;
use crate::kernel::conv::direct::DirectConvolutions;
use crate::kernel::elementwise::block::{BlockKernels, FloatBlockKernels};

/// A type that tensors can hold: `f32`, `f64`, `i64`, `u8`, `bool`. Sealed.
pub trait Element: Scalar + BlockKernels + DirectConvolutions {}

/// Numbers: every element type but `bool`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of numbers",
    note = "truth values are counted by `count_nonzero`, or made numbers by `cast::<i64>()`"
)]
pub trait Number: Element {}

/// Floating-point types, the ones with arithmetic functions and gradients: `f32`, `f64`. Sealed.
pub trait Float:
    Number
    + FloatBlockKernels
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Distance from 1 to the next larger number.
    const EPSILON: Self;
    /// Largest finite number.
    const MAX: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Quiet NaN.
    const NAN: Self;

    /// The square root.
    fn sqrt(self) -> Self;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

/// Integers, with bitwise operations: `i64`, `u8`. Sealed.
pub trait Integer: Number {}

impl Element for i64 {}
impl Element for u8 {}
impl Element for bool {}

impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u8 {}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Element for $type {}

        impl Float for $type {
            const EPSILON: Self = $type::EPSILON;
            const MAX: Self = $type::MAX;
            const INFINITY: Self = $type::INFINITY;
            const NAN: Self = $type::NAN;

            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }

            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }

            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
        }
    )*};
}

floats!(f32, f64);

impl Integer for i64 {}
impl Integer for u8 {}
