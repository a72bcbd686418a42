//! The operators `+ - * / %` and unary `-` on variables: with variables, tensors, and numbers on either side.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};
use std::panic::Location;

use wengert_tensor::ops::{Arithmetic, Comparison, Operand, TensorLike};
use wengert_tensor::plan::Op;
use wengert_tensor::{Binary, Float, Site, Tensor, compat};

use crate::Var;
use crate::error::or_raise;

macro_rules! operator {
    ($($trait:ident $method:ident = $op:ident, $primitive:ident;)*) => {$(
        impl<'t, T: Float> $trait for Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            #[inline]
            fn $method(self, other: Var<'t, T>) -> Var<'t, T> {
                match self.recorded_with(Binary::$primitive, other, Location::caller()) {
                    Some(result) => result,
                    None => Arithmetic::$op(&self, other),
                }
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

        // Numbers are f64 whatever the tape's type is: with a second type, `(1.0 - x).sqrt()` would be ambiguous.
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
        Arithmetic::neg(&self)
    }
}

impl<'t, T: Float> Var<'t, T> {
    /// Ones where both are equal, zeros elsewhere. The shapes broadcast. PyTorch: `eq`.
    ///
    /// # Panics
    ///
    /// If the shapes do not broadcast.
    #[track_caller]
    #[allow(clippy::should_implement_trait)]
    pub fn eq(self, other: impl Operand<Self>) -> Self {
        Comparison::eq(&self, other)
    }

    /// Ones where they differ, zeros elsewhere. The shapes broadcast. PyTorch: `ne`.
    ///
    /// # Panics
    ///
    /// If the shapes do not broadcast.
    #[track_caller]
    #[allow(clippy::should_implement_trait)]
    pub fn ne(self, other: impl Operand<Self>) -> Self {
        Comparison::ne(&self, other)
    }

    /// `op` of two variables of the same tape and shape, recorded directly: nothing to broadcast, no compatibility rule to apply.
    /// `None` otherwise; then the method of the same name records it.
    #[inline]
    pub(crate) fn recorded_with(self, op: Binary, other: Self, location: &'static Location<'static>) -> Option<Self> {
        if !std::ptr::eq(self.tape, other.tape) || !compat::zero_dim_allowed() {
            return None;
        }
        let mut record = self.tape.record.borrow_mut();
        let shape = record.node(self.index).shape;
        if record.node(other.index).shape != shape {
            return None;
        }
        let index = record.push(Op::Binary(op), [self.index, other.index], shape, Some(location))?;
        Some(Var::new(self.tape, index))
    }
}
