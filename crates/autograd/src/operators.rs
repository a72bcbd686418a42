//! The operators `+ - * / %` and unary `-` on variables: with variables, tensors, and numbers on either side.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use wengert_tensor::ops::{Arithmetic, Functions, InPlace, TensorLike};
use wengert_tensor::{Binary, Float, Site, Tensor};

use crate::Var;
use crate::error::or_raise;

macro_rules! operator {
    ($($trait:ident $method:ident = $op:ident, $primitive:ident;)*) => {$(
        impl<'t, T: Float> $trait for Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: Var<'t, T>) -> Var<'t, T> {
                Arithmetic::$op(&self, other)
            }
        }

        impl<'t, T: Float> $trait<&Tensor<T>> for Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: &Tensor<T>) -> Var<'t, T> {
                Arithmetic::$op(&self, other)
            }
        }

        impl<'t, T: Float> $trait<Var<'t, T>> for &Tensor<T> {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: Var<'t, T>) -> Var<'t, T> {
                Arithmetic::$op(&TensorLike::constant(&other, self), other)
            }
        }

        // Numbers are f64 whatever the tape computes in: with a second type, `(1.0 - x).sqrt()` would be ambiguous.
        impl<'t, T: Float> $trait<f64> for Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: f64) -> Var<'t, T> {
                Arithmetic::$op(&self, other)
            }
        }

        impl<'t, T: Float> $trait<Var<'t, T>> for f64 {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: Var<'t, T>) -> Var<'t, T> {
                let at = Site::here(Binary::$primitive.name());
                let number = other.filled_at(&other.shape(), T::from_f64(self), at);
                or_raise(number.apply_binary(Binary::$primitive, &other, at))
            }
        }
    )*};
}

operator! {
    Add add = add, Add;
    Sub sub = sub, Sub;
    Mul mul = mul, Mul;
    Div div = div, Div;
    Rem rem = remainder, Remainder;
}

macro_rules! assign {
    ($($trait:ident $method:ident = $op:ident;)*) => {$(
        impl<'t, T: Float> $trait for Var<'t, T> {
            #[track_caller]
            fn $method(&mut self, other: Var<'t, T>) {
                self.$op(other);
            }
        }

        impl<T: Float> $trait<&Tensor<T>> for Var<'_, T> {
            #[track_caller]
            fn $method(&mut self, other: &Tensor<T>) {
                self.$op(other);
            }
        }

        impl<T: Float> $trait<f64> for Var<'_, T> {
            #[track_caller]
            fn $method(&mut self, other: f64) {
                self.$op(other);
            }
        }
    )*};
}

assign! {
    AddAssign add_assign = add_;
    SubAssign sub_assign = sub_;
    MulAssign mul_assign = mul_;
    DivAssign div_assign = div_;
}

impl<'t, T: Float> Neg for Var<'t, T> {
    type Output = Var<'t, T>;

    #[track_caller]
    fn neg(self) -> Var<'t, T> {
        Functions::neg(&self)
    }
}
