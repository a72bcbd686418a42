//! Single elements: the element type as a value, zero and one, and conversions.

use crate::DType;
use std::fmt::{Debug, Display};

/// An element of a tensor. The trait has no kernels, and is sealed.
pub trait Scalar: Copy + Default + PartialEq + PartialOrd + Debug + Display + Send + Sync + 'static {
    /// The element type as a value.
    const DTYPE: DType;
    /// The number 0, or `false`.
    const ZERO: Self;
    /// The number 1, or `true`.
    const ONE: Self;

    /// Converts a number to this type like `as`: integer types saturate and round toward zero. For `bool`, the result is true if the number
    /// is not 0.
    fn from_f64(value: f64) -> Self;

    /// Returns the value as a number. Integers beyond 2⁵³ are rounded, and `true` is 1.
    fn to_f64(self) -> f64;

    /// Converts an integer to this type like `as`: smaller types wrap. For `bool`, the result is true if the integer is not 0.
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
