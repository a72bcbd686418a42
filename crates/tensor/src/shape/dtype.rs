//! Element types as values.

use std::fmt::Display;

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
    /// Returns the name in Rust: `f32`, `f64`, `i64`, `u8`, `bool`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// Returns the size of an element in bytes.
    pub(crate) const fn size(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::F64 | DType::I64 => 8,
            DType::U8 | DType::Bool => 1,
        }
    }

    /// Returns true for the floating-point types `f32` and `f64`. PyTorch: `is_floating_point`.
    #[doc(alias("is_floating_point"))]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// Returns true for the integer types `i64` and `u8`.
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::I64 | DType::U8)
    }

    /// Returns the name of PyTorch's tensor class, as in its error messages: `torch.DoubleTensor`.
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
