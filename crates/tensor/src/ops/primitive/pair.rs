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
            Argument::Number(value) if A::Elem::DTYPE == DType::I64 => Some(value.to_f64().min(LARGEST_IN_I64)),
            Argument::Number(value) => Some(value.to_f64()),
            Argument::Array(_) => None,
        }
    }
}

/// An operand after its conversion, with the number that it was before.
pub(crate) struct Converted<A: TensorLike> {
    argument: Argument<A>,
    number: Option<f64>,
}

impl<A: TensorLike> Converted<A> {
    /// Converts `operand` to the second operand of an operation whose first operand is `first`.
    pub(crate) fn new(operand: impl Operand<A>, first: &A) -> Result<Self, A::Error> {
        let number = operand.number();
        Ok(Converted { argument: operand.into_argument(first)?, number })
    }

    /// Returns the array, or `None` for a number.
    pub(crate) fn array(&self) -> Option<&A> {
        match &self.argument {
            Argument::Array(array) => Some(array),
            Argument::Number(_) => None,
        }
    }
}

impl<A: TensorLike> Operand<A> for Converted<A> {
    fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
        Ok(self.argument)
    }

    fn number(&self) -> Option<f64> {
        self.number
    }
}

impl<T: Element> Operand<Tensor<T>> for Tensor<T> {
    fn into_argument(self, _first: &Tensor<T>) -> Result<Argument<Tensor<T>>, Error> {
        Ok(Argument::Array(self))
    }
}

impl<T: Element> ArrayOperand<Tensor<T>> for Tensor<T> {}

/// Converts `value` to an element. Beside `u8`, a whole number wraps around, as an integer does; [`Scalar::from_f64`] would saturate.
pub(crate) fn wrap_f64<T: Scalar>(value: f64) -> T {
    if T::DTYPE == DType::U8 && value.fract() == 0.0 { T::from_i64(value as i64) } else { T::from_f64(value) }
}

/// Converts `value` to `f64`. A number of `i64` that would be rounded to 2⁶³ becomes [`LARGEST_IN_I64`], so that it stays in the range.
fn round_integer(value: i128) -> f64 {
    let rounded = value as f64;
    if i64::try_from(value).is_ok() { rounded.min(LARGEST_IN_I64) } else { rounded }
}

/// Converts a number to an element (`element`) or to `f64` (`real`). The first word is the name of the conversion in `with_number_types`.
macro_rules! convert {
    (from_f64 element $number:expr) => {
        wrap_f64($number.into())
    };
    (from_i64 element $number:expr) => {
        Scalar::from_i64($number as i64)
    };
    (from_f64 real $number:expr) => {
        $number.into()
    };
    (from_i64 real $number:expr) => {
        round_integer($number as i128)
    };
}

macro_rules! numbers {
    ($($number:ty: $from:ident;)*) => {$(
        impl<A: TensorLike> Operand<A> for $number {
            fn into_argument(self, _first: &A) -> Result<Argument<A>, A::Error> {
                Ok(Argument::Number(convert!($from element self)))
            }

            fn number(&self) -> Option<f64> {
                Some(convert!($from real *self))
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

/// The absolute value of the smallest `i64`, 2⁶³. This number is not in the range of `i64`.
const I64_BOUND: f64 = 9_223_372_036_854_775_808.0;

/// The largest `f64` in the range of `i64`, 2⁶³ - 1024.
const LARGEST_IN_I64: f64 = I64_BOUND.next_down();

/// Refuses a number beside integers or truth values if the result of an operation would need another element type. This is a number that is
/// not whole, or not from -2⁶³ to 2⁶³ - 1. Beside truth values, it is every number except 0 and 1. PyTorch promotes the array instead. A
/// whole number beyond `u8` wraps around, as in PyTorch.
pub(crate) fn check_whole_number<A: TensorLike>(other: &impl Operand<A>, at: Site) -> Result<(), Error> {
    let target = match A::Elem::DTYPE {
        DType::F32 | DType::F64 => return Ok(()),
        DType::I64 => "Long",
        DType::U8 => "Byte",
        DType::Bool => "Bool",
    };
    let Some(number) = other.number() else { return Ok(()) };
    let to_float = "convert the tensor first, for example with `cast::<f64>()`";
    let (found, reason, advice) = if number.fract() != 0.0 || !number.is_finite() {
        ("Float", "is no whole number", to_float)
    } else if !(-I64_BOUND..=LARGEST_IN_I64).contains(&number) {
        ("Float", "is beyond the range of 64-bit integers", to_float)
    } else if A::Elem::DTYPE == DType::Bool && number != 0.0 && number != 1.0 {
        ("Long", "is neither 0 nor 1", "convert the tensor first, for example with `cast::<i64>()`")
    } else {
        return Ok(());
    };
    let message = format!("result type {found} can't be cast to the desired output type {target}");
    let hint = format!("the elements are {}, but {number} {reason}; {advice}", A::Elem::DTYPE);
    Err(Error::argument(at, message).with_hint(hint))
}

/// Refuses a number outside -255 to 255 beside `u8`, and a number outside the range of `i64` beside `i64`. The message is PyTorch's. As in
/// PyTorch, the numbers from -255 to -1 stand for 1 to 255 beside `u8`.
pub(crate) fn check_fits<A: TensorLike>(number: Option<f64>, at: Site) -> Result<(), Error> {
    let (range, name) = match A::Elem::DTYPE {
        DType::U8 => (-255.0..=255.0, "uint8_t"),
        DType::I64 => (-I64_BOUND..=LARGEST_IN_I64, "int64_t"),
        DType::F32 | DType::F64 | DType::Bool => return Ok(()),
    };
    match number.filter(|number| !range.contains(number)) {
        None => Ok(()),
        Some(number) => Err(Error::argument(at, format!("value cannot be converted to type {name} without overflow"))
            .with_hint(format_args!("the elements are {}, but the number is {number}", A::Elem::DTYPE))),
    }
}

/// Refuses a number that the operation `op` cannot take beside integers or truth values.
pub(crate) fn check_number<A: TensorLike>(op: Binary, other: &impl Operand<A>, at: Site) -> Result<(), Error> {
    check_whole_number(other, at)?;
    // Sums, differences, products, "and", "or" and "exclusive or" have the same last 8 bits if the number wraps around. Other results do not.
    let wraps = matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::And | Binary::Or | Binary::Xor);
    if wraps { Ok(()) } else { check_fits::<A>(other.number(), at) }
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
    check_fits::<A>(value.number(), at)?;
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
    check_number(op, &other, at)?;
    match other.into_argument(x)? {
        Argument::Array(y) => x.apply_broadcast(op, &y, rule, at),
        Argument::Number(value) => x.apply_number(op, value, at),
    }
}

/// Compares both operands, which broadcast. Beside integers and truth values, a number that is no element of the type is compared exactly.
pub(crate) fn compare<A: TensorLike>(x: &A, op: Compare, other: impl Operand<A>, at: Site) -> Result<A::Mask> {
    let number = other.number();
    let value = match other.into_argument(x)? {
        Argument::Array(y) => {
            let (x, y) = x.broadcast_with(&y, BroadcastRule::Operation, at)?;
            return x.apply_compare(op, &y, at);
        }
        Argument::Number(value) => value,
    };
    let (op, value) = match number {
        Some(number) if !is_element(number, value) => whole_comparison(op, number),
        _ => (op, value),
    };
    x.apply_compare(op, &expand_number(x, value, &x.shape(), at)?, at)
}

/// Returns whether a number is an element of type `T`. `converted` is the number converted to `T`. A number beside floating-point elements
/// always counts as an element.
pub(crate) fn is_element<T: Scalar>(number: f64, converted: T) -> bool {
    match T::DTYPE {
        DType::F32 | DType::F64 => true,
        DType::I64 => number.fract() == 0.0 && (-I64_BOUND..=LARGEST_IN_I64).contains(&number),
        DType::U8 | DType::Bool => converted.to_f64() == number,
    }
}

/// Returns a comparison with an element of type `T` that has the same result for every element as the comparison `op` with `number`.
/// `number` is not an element of `T`.
fn whole_comparison<T: Scalar>(op: Compare, number: f64) -> (Compare, T) {
    let (lowest, highest) = match T::DTYPE {
        DType::Bool => (0, 1),
        DType::U8 => (0, 255),
        _ => (i64::MIN, i64::MAX),
    };
    let (never, always) = ((Compare::Lt, T::from_i64(lowest)), (Compare::Ge, T::from_i64(lowest)));
    let (below, above) = (number < lowest as f64, number > highest as f64 || number >= I64_BOUND);
    match op {
        Compare::Ne => always,
        Compare::Eq => never,
        _ if number.is_nan() => never,
        Compare::Lt | Compare::Le if below => never,
        Compare::Lt | Compare::Le if above => always,
        Compare::Lt | Compare::Le => (Compare::Le, T::from_i64(number.floor() as i64)),
        Compare::Gt | Compare::Ge if below => always,
        Compare::Gt | Compare::Ge if above => never,
        Compare::Gt | Compare::Ge => (Compare::Ge, T::from_i64(number.ceil() as i64)),
    }
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
