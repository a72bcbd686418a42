//! The operators `+ - * / %` and unary `-` on tensors: between tensors, and with a number on either side.
//!
//! An operator panics at the caller's line if the method of the same operation does.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, RemAssign, Sub, SubAssign};

use crate::ops::{Arithmetic, TensorLike};
use crate::shape::compat::BroadcastRule;
use crate::shape::error::raise;
use crate::{Binary, Element, Float, Number, Site, Tensor};

/// The right operand of an operator whose left operand is a tensor of `T`. It is a tensor, by reference or by value, a number of type `T`,
/// or a recorded variable.
///
/// The methods of [`Arithmetic`] take any [`Operand`](crate::ops::Operand). Operators take only numbers of the element type, so that the
/// compiler can infer the type of a literal.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand beside a tensor of `{T}`",
    label = "neither a tensor of `{T}` nor a number of the type `{T}`",
    note = "both sides have one element type: convert a tensor with `x.cast::<{T}>()`, a number with `x as {T}`"
)]
pub trait OperatorOperand<T: Element> {
    /// The result of the operator.
    type Output;

    /// Returns `op` of `x` and this operand, which broadcast. Panics if the method of the operation returns an error.
    #[doc(hidden)]
    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Self::Output;
}

impl<T: Element> OperatorOperand<T> for &Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        match x.apply_broadcast(op, self, BroadcastRule::Operation, at) {
            Ok(result) => result,
            Err(error) => raise(error),
        }
    }
}

impl<T: Element> OperatorOperand<T> for Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        (&self).after(x, op, at)
    }
}

impl<T: Element> OperatorOperand<T> for T {
    type Output = Tensor<T>;

    #[track_caller]
    fn after(self, x: &Tensor<T>, op: Binary, at: Site) -> Tensor<T> {
        match x.apply_number(op, self, at) {
            Ok(result) => result,
            Err(error) => raise(error),
        }
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $assign:ident $assign_method:ident $bound:ident = $op:ident $op_in_place:ident $primitive:ident) => {
        impl<T: $bound, O: OperatorOperand<T>> $trait<O> for &Tensor<T> {
            type Output = O::Output;

            #[track_caller]
            fn $method(self, other: O) -> O::Output {
                other.after(self, Binary::$primitive, Site::here(stringify!($op)))
            }
        }

        impl<T: $bound, O: OperatorOperand<T>> $trait<O> for Tensor<T> {
            type Output = O::Output;

            #[track_caller]
            fn $method(self, other: O) -> O::Output {
                $trait::$method(&self, other)
            }
        }

        impl<T: $bound> $assign<&Tensor<T>> for Tensor<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: &Tensor<T>) {
                self.$op_in_place(other);
            }
        }

        impl<T: $bound> $assign<Tensor<T>> for Tensor<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: Tensor<T>) {
                self.$op_in_place(other);
            }
        }

        impl<T: $bound> $assign<T> for Tensor<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: T) {
                self.$op_in_place(crate::ops::Argument::Number(other));
            }
        }
    };
}

operator!(Add add AddAssign add_assign Number = add add_ Add);
operator!(Sub sub SubAssign sub_assign Number = sub sub_ Sub);
operator!(Mul mul MulAssign mul_assign Number = mul mul_ Mul);
operator!(Div div DivAssign div_assign Float = div div_ Div);
operator!(Rem rem RemAssign rem_assign Number = remainder remainder_ Remainder);

macro_rules! number_first {
    ($type:ident: $($trait:ident $method:ident $op:ident),*) => {$(
        impl $trait<&Tensor<$type>> for $type {
            type Output = Tensor<$type>;

            #[track_caller]
            fn $method(self, other: &Tensor<$type>) -> Tensor<$type> {
                let number = Tensor::scalar(self);
                let number = crate::ops::Views::expand_as(&number, other);
                Arithmetic::$op(&number, other)
            }
        }

        impl $trait<Tensor<$type>> for $type {
            type Output = Tensor<$type>;

            #[track_caller]
            fn $method(self, other: Tensor<$type>) -> Tensor<$type> {
                self.$method(&other)
            }
        }
    )*};
}

number_first!(f32: Add add add, Sub sub sub, Mul mul mul, Div div div, Rem rem remainder);
number_first!(f64: Add add add, Sub sub sub, Mul mul mul, Div div div, Rem rem remainder);
number_first!(i64: Add add add, Sub sub sub, Mul mul mul, Rem rem remainder);
number_first!(u8: Add add add, Sub sub sub, Mul mul mul, Rem rem remainder);

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
