//! The operators `+ - * / %` and unary `-` on tensors: between tensors, and with a number on either side. Also the assigning operators, such
//! as `+=`. Masks have `& | ^ !`.
//!
//! An operator panics at the caller's line if the method of the same operation does. Division is for floating-point elements only. A number
//! on the right of a tensor of f32 or f64 may be an f32, f64, i32, i64 or usize. On the right of i64, it may be an i64, i32 or usize; on
//! the right of u8, a u8 or i32. A number on the left of a tensor has the element type, or it is an i32 and the elements are f32 or f64. If
//! the element type is a generic parameter, only numbers of this type are allowed, and only on the right.

use std::borrow::Borrow;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign};
use std::ops::{Mul, MulAssign, Neg, Not, Rem, RemAssign, Sub, SubAssign};

use crate::ops::primitive::pair::check_number;
use crate::ops::{Argument, Arithmetic, TensorLike};
use crate::shape::compat::BroadcastRule;
use crate::shape::error::raise;
use crate::{Binary, Element, Error, Float, Number, Scalar, Site, Tensor};

/// The right operand of an operator whose left operand is a tensor of `T`: a tensor, by reference or by value, or a number. The result has
/// the type of the tensor's elements.
///
/// The methods of [`Arithmetic`] take any [`Operand`](crate::ops::Operand). For these operators, a number has the type `T` if `T` is a
/// generic parameter. If `T` is f32 or f64, a number may be an f32, f64, i32, i64 or usize. If `T` is i64, it may be an i64, i32 or usize;
/// if `T` is u8, a u8 or i32.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand beside a tensor of `{T}`",
    label = "neither a tensor of `{T}` nor a number",
    note = "both sides have one element type: convert a tensor with `x.cast::<{T}>()`, a number of a generic type with `T::from_f64(x)`"
)]
pub trait OperatorOperand<T: Element> {
    /// Computes `op` of `x` and this operand, which broadcast. Panics if the operation returns an error.
    #[doc(hidden)]
    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T>;

    /// Returns this operand as an argument of an operation in place.
    #[doc(hidden)]
    fn argument(self) -> Argument<Tensor<T>>;

    /// Returns an error if this operand is a number that `op` cannot take beside elements of type `T`.
    #[doc(hidden)]
    fn check(&self, _op: Binary, _at: Site) -> Result<(), Error> {
        Ok(())
    }
}

impl<T: Element> OperatorOperand<T> for &Tensor<T> {
    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        match x.apply_broadcast(op, self, BroadcastRule::Operation, at) {
            Ok(result) => result,
            Err(error) => raise(error),
        }
    }

    fn argument(self) -> Argument<Tensor<T>> {
        Argument::Array(self.clone())
    }
}

impl<T: Element> OperatorOperand<T> for Tensor<T> {
    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        (&self).after(x, op, at)
    }

    fn argument(self) -> Argument<Tensor<T>> {
        Argument::Array(self)
    }
}

impl<T: Element> OperatorOperand<T> for T {
    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        match x.apply_number(op, self, at) {
            Ok(result) => result,
            Err(error) => raise(error),
        }
    }

    fn argument(self) -> Argument<Tensor<T>> {
        Argument::Number(self)
    }
}

/// Implements [`OperatorOperand`] for numbers whose type differs from the element type. Each number is converted to the element type.
macro_rules! other_numbers {
    ($($element:ty: $($number:ty = $from:ident)*;)*) => {$($(
        impl OperatorOperand<$element> for $number {
            #[track_caller]
            fn after(self, x: &Tensor<$element>, op: Binary, at: Site) -> Tensor<$element> {
                if let Err(error) = OperatorOperand::<$element>::check(&self, op, at) {
                    raise(error);
                }
                <$element as Scalar>::$from(self as _).after(x, op, at)
            }

            fn argument(self) -> Argument<Tensor<$element>> {
                Argument::Number(<$element as Scalar>::$from(self as _))
            }

            fn check(&self, op: Binary, at: Site) -> Result<(), Error> {
                check_number::<Tensor<$element>>(op, self, at)
            }
        }
    )*)*};
}

other_numbers! {
    f32: f64 = from_f64 i32 = from_i64 i64 = from_i64 usize = from_i64;
    f64: f32 = from_f64 i32 = from_i64 i64 = from_i64 usize = from_i64;
    i64: i32 = from_i64 usize = from_i64;
    u8: i32 = from_i64;
}

/// The bound of the operators whose left operand is a number of a type that [the module](self) does not list. No type implements this trait.
///
/// So these operators cannot be called, and the compiler still infers the type of a literal on the left. The operators exist for the text
/// below, which the compiler shows if a program uses one of them. `A` is the array on the right.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a number of type `{Self}` cannot stand on the left of `{A}`",
    label = "write the number on the right: `x * a`, `-x + a`, `x.reciprocal() * a`",
    note = "a literal may stand on the left: `2.0 * x`",
    note = "on the left of a tensor, a number has the element type, or it is an i32 before f32 and f64",
    note = "on the left of a variable, a number is an f64 or an i32"
)]
pub trait LeftNumber<'a, A> {}

macro_rules! operator {
    ($trait:ident $method:ident $assign:ident $assign_method:ident $bound:ident = $op:ident $op_in_place:ident $primitive:ident) => {
        impl<T: $bound, O: OperatorOperand<T>> $trait<O> for &Tensor<T> {
            type Output = Tensor<T>;

            #[track_caller]
            fn $method(self, other: O) -> Tensor<T> {
                other.after(self, Binary::$primitive, Site::here(stringify!($op)))
            }
        }

        impl<T: $bound, O: OperatorOperand<T>> $trait<O> for Tensor<T> {
            type Output = Tensor<T>;

            #[track_caller]
            fn $method(self, other: O) -> Tensor<T> {
                $trait::$method(&self, other)
            }
        }

        impl<T: $bound, O: OperatorOperand<T>> $assign<O> for Tensor<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: O) {
                if let Err(error) = other.check(Binary::$primitive, Site::here(stringify!($op_in_place))) {
                    raise(error);
                }
                self.$op_in_place(other.argument());
            }
        }
    };
}

operator!(Add add AddAssign add_assign Number = add add_ Add);
operator!(Sub sub SubAssign sub_assign Number = sub sub_ Sub);
operator!(Mul mul MulAssign mul_assign Number = mul mul_ Mul);
operator!(Div div DivAssign div_assign Float = div div_ Div);
operator!(Rem rem RemAssign rem_assign Number = remainder remainder_ Remainder);

/// Implements the operators with a number on the left. The number has the element type, or it is an i32 and the elements are f32 or f64. A
/// second type of floating-point numbers would make the type of the literal in `(1.0 - &x).sqrt()` ambiguous.
macro_rules! number_first {
    ($($element:ty: $number:ty = $from:ident, $($trait:ident $method:ident $op:ident)*;)*) => {$($(
        impl $trait<&Tensor<$element>> for $number {
            type Output = Tensor<$element>;

            #[track_caller]
            fn $method(self, other: &Tensor<$element>) -> Tensor<$element> {
                let number = Tensor::scalar(<$element as Scalar>::$from(self.into()));
                let number = crate::ops::Views::expand_as(&number, other);
                Arithmetic::$op(&number, other)
            }
        }

        impl $trait<Tensor<$element>> for $number {
            type Output = Tensor<$element>;

            #[track_caller]
            fn $method(self, other: Tensor<$element>) -> Tensor<$element> {
                self.$method(&other)
            }
        }
    )*)*};
}

number_first! {
    f32: f32 = from_f64, Add add add Sub sub sub Mul mul mul Div div div Rem rem remainder;
    f32: i32 = from_i64, Add add add Sub sub sub Mul mul mul Div div div Rem rem remainder;
    f64: f64 = from_f64, Add add add Sub sub sub Mul mul mul Div div div Rem rem remainder;
    f64: i32 = from_i64, Add add add Sub sub sub Mul mul mul Div div div Rem rem remainder;
    i64: i64 = from_i64, Add add add Sub sub sub Mul mul mul Rem rem remainder;
    u8: u8 = from_i64, Add add add Sub sub sub Mul mul mul Rem rem remainder;
}

/// Implements the operators for numbers that cannot stand on the left, with the bound [`LeftNumber`], which never holds. The bound has a
/// lifetime parameter, because the compiler refuses a bound without parameters that never holds.
macro_rules! refused_first {
    ($($element:ty: $number:ty = $from:ident, $($trait:ident $method:ident)*;)*) => {$($(
        refused_first!(@ $element: $number = $from, $trait $method &'a Tensor<$element>);
        refused_first!(@ $element: $number = $from, $trait $method Tensor<$element>);
    )*)*};
    (@ $element:ty: $number:ty = $from:ident, $trait:ident $method:ident $tensor:ty) => {
        impl<'a> $trait<$tensor> for $number
        where
            $number: LeftNumber<'a, Tensor<$element>>,
        {
            type Output = Tensor<$element>;

            #[track_caller]
            fn $method(self, other: $tensor) -> Tensor<$element> {
                <$element as Scalar>::$from(self as _).$method(other)
            }
        }
    };
}

refused_first! {
    f32: f64 = from_f64, Add add Sub sub Mul mul Div div Rem rem;
    f32: i64 = from_i64, Add add Sub sub Mul mul Div div Rem rem;
    f32: usize = from_i64, Add add Sub sub Mul mul Div div Rem rem;
    f64: f32 = from_f64, Add add Sub sub Mul mul Div div Rem rem;
    f64: i64 = from_i64, Add add Sub sub Mul mul Div div Rem rem;
    f64: usize = from_i64, Add add Sub sub Mul mul Div div Rem rem;
    i64: i32 = from_i64, Add add Sub sub Mul mul Rem rem;
    i64: usize = from_i64, Add add Sub sub Mul mul Rem rem;
    u8: i32 = from_i64, Add add Sub sub Mul mul Rem rem;
}

impl<T: Number> Neg for &Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn neg(self) -> Tensor<T> {
        Arithmetic::neg(self)
    }
}

impl<T: Number> Neg for Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn neg(self) -> Tensor<T> {
        Arithmetic::neg(&self)
    }
}

impl Not for &Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        Arithmetic::bitwise_not(self)
    }
}

impl Not for Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        !&self
    }
}

/// Implements an operator of two masks, which broadcast.
macro_rules! mask_operator {
    ($trait:ident $method:ident = $op:ident) => {
        mask_operator!($trait $method = $op, &Tensor<bool>, &Tensor<bool>);
        mask_operator!($trait $method = $op, &Tensor<bool>, Tensor<bool>);
        mask_operator!($trait $method = $op, Tensor<bool>, &Tensor<bool>);
        mask_operator!($trait $method = $op, Tensor<bool>, Tensor<bool>);
    };
    ($trait:ident $method:ident = $op:ident, $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Tensor<bool>;

            #[track_caller]
            fn $method(self, other: $right) -> Tensor<bool> {
                let (x, y): (&Tensor<bool>, &Tensor<bool>) = (self.borrow(), other.borrow());
                Arithmetic::$op(x, y)
            }
        }
    };
}

mask_operator!(BitAnd bitand = bitwise_and);
mask_operator!(BitOr bitor = bitwise_or);
mask_operator!(BitXor bitxor = bitwise_xor);

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn numbers_of_any_type_on_the_right() {
        let (x, y) = (Tensor::<f32>::full([2], 5.0), Tensor::<f64>::full([2], 5.0));
        assert_eq!([&x - 2.0f32, &x - 2.0f64, &x - 2, &x - 2i64, &x - 2usize].map(|z| z.get(&[1])), [Some(3.0); 5]);
        assert_eq!([&y / 2.0f32, &y / 2.0, &y / 2, &y / 2i64, &y / 2usize].map(|z| z.get(&[0])), [Some(2.5); 5]);
        assert_eq!((&Tensor::from([7i64]) % 4).to_vec(), [3]);
        let mut z = x.clone();
        z *= 2;
        z += &x;
        z -= 1.5f64;
        assert_eq!(z.to_vec(), [13.5, 13.5]);
        assert_eq!((&x + 4).sqrt().to_vec(), [3.0, 3.0]);
    }

    /// Checks numbers on the left, by reference and by value. The type of a literal is not ambiguous, so a method call may follow.
    #[test]
    #[allow(clippy::op_ref)]
    fn numbers_of_the_element_type_or_i32_on_the_left() {
        let (x, y) = (Tensor::<f32>::full([2], 4.0), Tensor::<f64>::full([2], 4.0));
        let (scale, count) = (9.0f32, 9i32);
        for z in [9 - &x, 9.0 - &x, count - x.clone(), scale - x.clone()] {
            assert_eq!(z.to_vec(), [5.0, 5.0]);
        }
        for z in [9 - &y, 9.0 - &y, count - y.clone(), 9.0f64 - y.clone()] {
            assert_eq!(z.to_vec(), [5.0, 5.0]);
        }
        assert_eq!([2 + &x, 2 * &x, 2 / &x, 6 % &x].map(|z| z.get(&[1])), [6.0, 8.0, 0.5, 2.0].map(Some));
        assert_eq!([2 + &y, 2 * &y, 2 / &y, 6 % &y].map(|z| z.get(&[1])), [6.0, 8.0, 0.5, 2.0].map(Some));
        assert_eq!((1 / &x).sqrt().to_vec(), [0.5, 0.5]);
        assert_eq!((1.0 / &x).sqrt().to_vec(), [0.5, 0.5]);
        assert_eq!((1 / y.clone()).sqrt().to_vec(), [0.5, 0.5]);
        assert_eq!((1.0 / &y).sqrt().to_vec(), [0.5, 0.5]);
        // 2²⁴ + 1 lies between two numbers of f32, and rounds to the even one. In f64, it is exact.
        assert_eq!((16_777_217 - &x).to_vec(), [16_777_212.0; 2]);
        assert_eq!((16_777_217 - &y).to_vec(), [16_777_213.0; 2]);
        assert_eq!((i32::MIN + &y).to_vec(), [-2_147_483_644.0; 2]);
        let (indices, bytes) = (Tensor::from([3i64, 5]), Tensor::from([3u8, 5]));
        assert_eq!((2 * &indices).sum(..).item(), 16);
        assert_eq!((7 % indices).to_vec(), [1, 2]);
        assert_eq!((9 - &bytes).square().to_vec(), [36, 16]);
    }

    #[test]
    fn masks_combine() {
        let x = Tensor::from([-1.0, 0.5, 2.0]);
        let inside = x.gt(0.0) & x.lt(1.0);
        assert_eq!(inside.to_vec(), [false, true, false]);
        assert_eq!((!x.gt(0.0) | &inside).to_vec(), [true, true, false]);
        assert_eq!((&inside ^ &x.gt(0.0)).to_vec(), [false, false, true]);
        assert_eq!(!&inside, !inside.clone());
        assert_eq!((&inside | Tensor::from([[true], [false]])).shape(), &[2, 3]);
    }
}
