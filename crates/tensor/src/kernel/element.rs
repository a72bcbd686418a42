//! The element types: f32 and f64 for real numbers and gradients; i64, u8 and bool for data, indices and masks.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::Scalar;
use crate::kernel::conv::direct::DirectConvolutions;
use crate::kernel::elementwise::block::{BlockKernels, FloatBlockKernels};
use crate::kernel::reduce::kernels::ReductionKernels;

/// Traits of types that stand for generic functions. The attribute `precompiled` of the crate `wengert-macros` generates code that uses
/// them.
///
/// Rust has no pointers to generic functions. So a type that implements one of these traits stands for a generic function. `Of<T>` is the
/// type of a pointer to the function for elements `T`, and the methods return these pointers.
pub mod instances {
    use super::{Element, Float};

    /// A generic function with an instance for each element type. Instances for common types are compiled in the crate that defines the
    /// function.
    pub trait ElementInstances {
        /// The type of a pointer to the function for elements `T`.
        type Of<T: Element>;

        /// Returns the function for f32.
        fn f32() -> Self::Of<f32>;
        /// Returns the function for f64.
        fn f64() -> Self::Of<f64>;
        /// Returns the function for i64.
        fn i64() -> Self::Of<i64>;
        /// Returns the function for elements of a type other than f32, f64 and i64. It is compiled in the crate that calls it.
        fn generic<T: Element>() -> Self::Of<T>;
    }

    /// A generic function with an instance for each floating-point type, compiled in the crate that defines the function.
    pub trait FloatInstances {
        /// The type of a pointer to the function for elements `T`.
        type Of<T: Float>;

        /// Returns the function for f32.
        fn f32() -> Self::Of<f32>;
        /// Returns the function for f64.
        fn f64() -> Self::Of<f64>;
    }
}

use instances::{ElementInstances, FloatInstances};

/// A type that tensors can hold: `f32`, `f64`, `i64`, `u8`, `bool`. Sealed.
#[diagnostic::on_unimplemented(
    message = "a tensor cannot have elements of type `{Self}`",
    label = "the elements of a tensor are of type `f32`, `f64`, `i64`, `u8` or `bool`",
    note = "other integers, such as class numbers, become `i64`: write `0i64` for a literal, `n as i64` for a number"
)]
pub trait Element: Scalar + BlockKernels + ReductionKernels + DirectConvolutions {
    /// Returns the generic function that `F` stands for, instantiated for this element type.
    #[doc(hidden)]
    fn element_instance<F: ElementInstances>() -> F::Of<Self>;
}

/// The numeric element types: all except `bool`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of numbers",
    note = "truth values are counted by `count_nonzero`, or made numbers by `cast::<i64>()`"
)]
pub trait Number: Element {}

/// The floating-point types, which have arithmetic functions and gradients: `f32`, `f64`. Sealed.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` are not floating-point numbers",
    label = "this needs elements of type `f32` or `f64`",
    note = "convert a tensor with `x.cast::<f32>()`"
)]
pub trait Float:
    Number
    + FloatBlockKernels
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;
    /// The largest finite number.
    const MAX: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Quiet NaN.
    const NAN: Self;

    /// Returns the square root.
    fn sqrt(self) -> Self;
    /// Returns whether the number is NaN.
    fn is_nan(self) -> bool;
    /// Returns whether the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Returns the generic function that `F` stands for, instantiated for this floating-point type.
    #[doc(hidden)]
    fn float_instance<F: FloatInstances>() -> F::Of<Self>;
}

/// Integers, with bitwise operations: `i64`, `u8`. Sealed.
pub trait Integer: Number {}

macro_rules! elements {
    ($($type:ident by $method:ident $(::<$argument:ident>)?),*) => {$(
        impl Element for $type {
            #[inline(always)]
            fn element_instance<F: ElementInstances>() -> F::Of<$type> {
                F::$method$(::<$argument>)?()
            }
        }
    )*};
}

elements!(f32 by f32, f64 by f64, i64 by i64, u8 by generic::<u8>, bool by generic::<bool>);

impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u8 {}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Float for $type {
            const EPSILON: Self = $type::EPSILON;
            const MAX: Self = $type::MAX;
            const INFINITY: Self = $type::INFINITY;
            const NAN: Self = $type::NAN;

            #[inline]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }

            #[inline]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }

            #[inline]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }

            #[inline(always)]
            fn float_instance<F: FloatInstances>() -> F::Of<$type> {
                F::$type()
            }
        }
    )*};
}

floats!(f32, f64);

impl Integer for i64 {}
impl Integer for u8 {}
