//! The operands of operations, and their broadcasting. [`compat`] decides how two operands get a common shape.

use crate::ops::{Result, TensorLike};
use crate::shape::broadcast;
use crate::shape::compat::{self, BroadcastRule};
use crate::{Binary, Compare, DType, Element, Error, Scalar, Shape, Site, Tensor, View};

/// The second operand of an operation on an `A`: another `A`, a number, a `bool`, or, if `A` is a recorded variable, a plain tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operand beside `{A}`",
    note = "operands are tensors and variables of the same element type, by reference or by value, and numbers",
    note = "the element type of a tensor is converted with `x.cast::<f32>()`; a parameter is put on the tape with `tape.parameter(&p)`"
)]
pub trait Operand<A: TensorLike> {
    /// Converts `self` to the second operand of an operation whose first operand is `first`.
    fn into_argument(self, first: &A) -> Result<Argument<A>, A::Error>;

    /// Returns the number before its conversion to an element, or `None` for an array.
    #[doc(hidden)]
    fn number(&self) -> Option<f64> {
        None
    }
}

/// The second operand of an operation that takes no numbers, such as a matrix product. It is another `A`, by reference or by value, or, if
/// `A` is a recorded variable, a plain tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array beside `{A}`",
    note = "operands are tensors and variables of the same element type, by reference or by value",
    note = "the element type of a tensor is converted with `x.cast::<f32>()`; a parameter is put on the tape with `tape.parameter(&p)`",
    note = "a tensor `x` whose method is called with a variable is put on the tape too: `tape.constant(&x)`"
)]
pub trait ArrayOperand<A: TensorLike>: Operand<A> {
    /// Converts `self` to an array. If the other operand is a variable, a plain tensor becomes a constant on the variable's tape.
    ///
    /// # Errors
    ///
    /// If the tape is full.
    fn into_array(self, first: &A) -> Result<A>
    where
        Self: Sized,
    {
        match self.into_argument(first)? {
            Argument::Array(array) => Ok(array),
            Argument::Number(value) => first.try_number(value),
        }
    }
}

/// An optional array operand, such as a bias: `None`, `Some(&b)`, or the array itself by reference or by value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no optional array beside `{A}`",
    label = "write `None`, `&b` or `Some(&b)`",
    note = "the array is a tensor or a variable of the same element type; beside a variable it may be a tensor, without `Some`"
)]
pub trait OptionalOperand<A: TensorLike> {
    /// Converts `self` to an array or to `None`. If the other operand is a variable, a plain tensor becomes a constant on the variable's
    /// tape.
    ///
    /// # Errors
    ///
    /// If the tape is full.
    fn into_option(self, first: &A) -> Result<Option<A>, A::Error>;
}

impl<A: TensorLike> OptionalOperand<A> for Option<&A> {
    fn into_option(self, _first: &A) -> Result<Option<A>, A::Error> {
        Ok(self.cloned())
    }
}

impl<A: TensorLike> OptionalOperand<A> for &A {
    fn into_option(self, _first: &A) -> Result<Option<A>, A::Error> {
        Ok(Some(self.clone()))
    }
}

impl<T: Element> OptionalOperand<Tensor<T>> for Tensor<T> {
    fn into_option(self, _first: &Tensor<T>) -> Result<Option<Tensor<T>>, Error> {
        Ok(Some(self))
    }
}

/// A second operand: an array or a number.
#[derive(Clone, Debug)]
pub enum Argument<A: TensorLike> {
    /// An array, whose shape takes part in broadcasting.
    Array(A),
    /// A plain number, which fits any shape.
    Number(A::Elem),
}

impl<A: TensorLike> Operand<A> for &A {
    fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
        Ok(Argument::Array(self.clone()))
    }
}

impl<A: TensorLike> ArrayOperand<A> for &A {}

impl<A: TensorLike> Operand<A> for Argument<A> {
    fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
        Ok(self)
    }

    fn number(&self) -> Option<f64> {
        match self {
            Argument::Number(value) => Some(value.to_f64()),
            Argument::Array(_) => None,
        }
    }
}

impl<T: Element> Operand<Tensor<T>> for Tensor<T> {
    fn into_argument(self, _first: &Tensor<T>) -> Result<Argument<Tensor<T>>, Error> {
        Ok(Argument::Array(self))
    }
}

impl<T: Element> ArrayOperand<Tensor<T>> for Tensor<T> {}

macro_rules! numbers {
    ($($number:ty: $from:ident;)*) => {$(
        impl<A: TensorLike> Operand<A> for $number {
            fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
                Ok(Argument::Number(A::Elem::$from(self as _)))
            }

            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )*};
}

/// Calls the macro `$implement` with the types of numbers that can be the second operand of an operation, each with its conversion to an
/// element.
#[doc(hidden)]
#[macro_export]
macro_rules! with_number_types {
    ($implement:ident) => {
        $implement! {
            f64: from_f64;
            f32: from_f64;
            i64: from_i64;
            i32: from_i64;
            usize: from_i64;
        }
    };
}

with_number_types!(numbers);

impl<A: TensorLike> Operand<A> for bool {
    fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
        Ok(Argument::Number(A::Elem::from_i64(self.into())))
    }
}

/// Refuses a number beside an array of integers or truth values if the number is not whole. PyTorch promotes the array to floating-point
/// numbers instead.
pub(crate) fn check_whole_number<A: TensorLike>(other: &impl Operand<A>, at: Site) -> Result<(), Error> {
    let target = match A::Elem::DTYPE {
        DType::F32 | DType::F64 => return Ok(()),
        DType::I64 => "Long",
        DType::U8 => "Byte",
        DType::Bool => "Bool",
    };
    if let Some(number) = other.number()
        && (number.fract() != 0.0 || !number.is_finite())
    {
        let message = format!("result type Float can't be cast to the desired output type {target}");
        return Err(Error::argument(at, message).with_hint(format_args!(
            "the elements are {}, but {number} is no whole number; convert the tensor first, for example with `cast::<f64>()`",
            A::Elem::DTYPE
        )));
    }
    Ok(())
}

/// Returns the constant `value`, expanded to `shape`. The constant is on the tape of `x`, if `x` has a tape.
pub(crate) fn expand_number<A: TensorLike>(x: &A, value: A::Elem, shape: &Shape, at: Site) -> Result<A> {
    expand(&x.try_number(value)?, shape, at)
}

/// Returns `value`, a number or an array of rank 0, expanded to `shape`. For an array of another rank, returns an error with the message
/// that `refusal` makes.
pub(crate) fn expand_scalar<A: TensorLike>(
    x: &A,
    value: impl Operand<A>,
    shape: &Shape,
    at: Site,
    refusal: impl FnOnce(usize) -> String,
) -> Result<A> {
    match value.into_argument(x)? {
        Argument::Number(value) => expand_number(x, value, shape, at),
        Argument::Array(value) if value.shape().rank() == 0 => expand(&value, shape, at),
        Argument::Array(value) => Err(Error::argument(at, refusal(value.shape().rank())).into()),
    }
}

/// Returns `x` expanded to `shape`, or `x` itself if it has that shape. The caller must have checked that `x` expands.
pub(crate) fn expand<A: TensorLike>(x: &A, shape: &Shape, at: Site) -> Result<A> {
    if x.shape() == *shape { Ok(x.clone()) } else { x.apply_view(View::Expand(shape.clone()), at) }
}

/// Returns both operands, expanded to their common shape under `rule`.
pub(crate) fn broadcast_two_under<A: TensorLike>(
    x: &A,
    other: impl Operand<A>,
    rule: BroadcastRule,
    at: Site,
) -> Result<(A, A), A::Error> {
    check_whole_number(&other, at)?;
    let y = match other.into_argument(x)? {
        Argument::Array(y) => y,
        Argument::Number(value) => return Ok((x.clone(), expand_number(x, value, &x.shape(), at)?)),
    };
    x.broadcast_with(&y, rule, at)
}

/// Returns both operands of an operation that a user called, expanded to their common shape.
pub(crate) fn broadcast_two<A: TensorLike>(x: &A, other: impl Operand<A>, at: Site) -> Result<(A, A), A::Error> {
    broadcast_two_under(x, other, BroadcastRule::Operation, at)
}

/// Returns three operands, expanded to their broadcast shape.
pub(crate) fn broadcast_three<A: TensorLike>(x: &A, y: &A, z: &A, at: Site) -> Result<(A, A, A), A::Error> {
    let shapes = [x.shape(), y.shape(), z.shape()];
    let shape = broadcast_operand_shapes(&shapes.each_ref(), at)?;
    Ok((expand(x, &shape, at)?, expand(y, &shape, at)?, expand(z, &shape, at)?))
}

/// Computes `op` of both operands, which broadcast.
#[inline]
pub fn binary<A: TensorLike>(x: &A, op: Binary, other: impl Operand<A>, at: Site) -> Result<A> {
    combine(x, op, other, BroadcastRule::Operation, at)
}

/// Computes `op` of both operands, which broadcast under `rule`.
#[inline]
pub(crate) fn combine<A: TensorLike>(
    x: &A,
    op: Binary,
    other: impl Operand<A>,
    rule: BroadcastRule,
    at: Site,
) -> Result<A> {
    check_whole_number(&other, at)?;
    match other.into_argument(x)? {
        Argument::Array(y) => x.apply_broadcast(op, &y, rule, at),
        Argument::Number(value) => x.apply_number(op, value, at),
    }
}

/// Compares both operands, which broadcast.
pub(crate) fn compare<A: TensorLike>(x: &A, op: Compare, other: impl Operand<A>, at: Site) -> Result<A::Mask> {
    let (x, y) = broadcast_two(x, other, at)?;
    x.apply_compare(op, &y, at)
}

/// Refuses a result of shape `result` that an operation in place would write to a tensor of shape `output`, unless both shapes are equal.
/// The error names `other`, the shape of the second operand.
pub(crate) fn check_in_place_shape(output: &Shape, other: &Shape, result: &Shape, at: Site) -> Result<(), Error> {
    if output == result { Ok(()) } else { Err(compat::in_place_error(output, other, result, at)) }
}

/// Returns the broadcast shape of two shapes. The settings of [`compat`] do not apply.
pub(crate) fn broadcast_shape(x: &Shape, y: &Shape, at: Site) -> Result<Shape, Error> {
    broadcast::join(&[x, y]).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Returns the broadcast shape of a user's operands with the shapes `shapes`. Of the settings of [`compat`], only the refusal of tensors
/// without dimensions applies.
pub(crate) fn broadcast_operand_shapes(shapes: &[&Shape], at: Site) -> Result<Shape, Error> {
    compat::check_zero_dim(shapes, at)?;
    broadcast::join(shapes).map_err(|mismatch| Error::Broadcast(mismatch, at))
}
