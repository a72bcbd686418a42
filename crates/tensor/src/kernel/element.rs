//! The element types: f32 and f64 for arithmetic and gradients; i64, u8 and bool for data, indices and masks.

use std::fmt::{Debug, Display};
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::kernel::elementwise::block::{Blocks, FloatBlocks};
use crate::kernel::matmul::product::Products;
use crate::kernel::reduce::short::ShortLines;

/// The type of a tensor's elements, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit floating point, PyTorch's `float32`.
    F32,
    /// 64-bit floating point, PyTorch's `float64`.
    F64,
    /// 64-bit signed integer, PyTorch's `int64`.
    I64,
    /// 8-bit unsigned integer, PyTorch's `uint8`.
    U8,
    /// True or false.
    Bool,
}

impl DType {
    /// The name in Rust: `f32`, `f64`, `i64`, `u8`, `bool`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// The name of PyTorch's tensor class, as its error sentences have it: `torch.DoubleTensor`.
    pub fn torch_class(self) -> &'static str {
        match self {
            DType::F32 => "torch.FloatTensor",
            DType::F64 => "torch.DoubleTensor",
            DType::I64 => "torch.LongTensor",
            DType::U8 => "torch.ByteTensor",
            DType::Bool => "torch.BoolTensor",
        }
    }
}

impl Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A type that tensors can hold: `f32`, `f64`, `i64`, `u8`, `bool`. Sealed.
pub trait Element:
    Blocks + Products + ShortLines + Copy + Default + PartialEq + PartialOrd + Debug + Display + Send + Sync + 'static
{
    /// The type as a value.
    const DTYPE: DType;
    /// Zero; `false`.
    const ZERO: Self;
    /// One; `true`.
    const ONE: Self;

    /// The number as this type, as `as` converts (saturating, toward zero for integers); for `bool`, whether it is not zero.
    fn from_f64(value: f64) -> Self;

    /// The value as a number; integers beyond 2⁵³ are rounded; `true` is 1.
    fn to_f64(self) -> f64;

    /// The integer as this type, as `as` converts (wrapping); for `bool`, whether it is not zero.
    fn from_i64(value: i64) -> Self;

    /// The value as an integer, as `as` converts.
    fn to_i64(self) -> i64;
}

/// Numbers: every element type but `bool`. Sealed.
pub trait Number: Element {}

/// Floating-point types, the ones with arithmetic functions and gradients: `f32`, `f64`. Sealed.
pub trait Float:
    Number
    + FloatBlocks
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

macro_rules! numbers {
    ($($type:ident $dtype:ident),*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            const ZERO: Self = 0 as $type;
            const ONE: Self = 1 as $type;

            fn from_f64(value: f64) -> Self {
                value as $type
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_i64(value: i64) -> Self {
                value as $type
            }

            fn to_i64(self) -> i64 {
                self as i64
            }
        }

        impl Number for $type {}
    )*};
}

numbers!(f32 F32, f64 F64, i64 I64, u8 U8);

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    const ZERO: Self = false;
    const ONE: Self = true;

    fn from_f64(value: f64) -> Self {
        value != 0.0
    }

    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn from_i64(value: i64) -> Self {
        value != 0
    }

    fn to_i64(self) -> i64 {
        i64::from(self)
    }
}

macro_rules! floats {
    ($($type:ident),*) => {$(
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
