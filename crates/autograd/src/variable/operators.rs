//! The operators `+ - * / %`, their assignments such as `+=`, and unary `-` on variables. The other operand is a
//! variable, a tensor or a number.
//!
//! Tensors and numbers may stand on either side. On the right, a number may have any type that implements [`Operand`].
//! On the left, it is an f64 or an i32, for tapes of f32 and of f64: `2.0 * x`, `2 * x`. These literals may also stand on the left of a
//! tensor of f32 or f64. Numbers of other types, such as f32, must stand on the right: `x * scale`.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use wengert_tensor::ops::{Arithmetic, Comparison, IntoArray, LeftNumber, Operand, TensorLike, binary};
use wengert_tensor::{Binary, Float, Site, Tensor};

use crate::Var;
use crate::error::or_raise;

macro_rules! operator {
    ($($trait:ident $method:ident = $op:ident, $primitive:ident;)*) => {$(
        // A single implementation covers all types of operands. So the compiler knows the type of `x - 1.0` before it knows the type of the
        // literal. `(x - 1.0).sqrt()` needs this.
        impl<'t, T: Float, O: Operand<Var<'t, T>>> $trait<O> for Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            #[inline]
            fn $method(self, other: O) -> Var<'t, T> {
                Arithmetic::$op(&self, other)
            }
        }

        impl<'t, T: Float, O: Operand<Var<'t, T>>> $trait<O> for &Var<'t, T> {
            type Output = Var<'t, T>;

            #[track_caller]
            #[inline]
            fn $method(self, other: O) -> Var<'t, T> {
                Arithmetic::$op(self, other)
            }
        }

        number_first!($trait $method $primitive, f64 i32);
        refused_first!($trait $method, f32 i64 usize);
        tensor_first!($trait $method $primitive, f32);
        tensor_first!($trait $method $primitive, f64);
    )*};
}

// If a number stands on the left, f64 is its only floating-point type. If f32 were allowed too, the type of the literal in
// `(1.0 - x).sqrt()` would be ambiguous. Two implementations, for `f32 - Var<f32>` and `f64 - Var<f64>`, would not be ambiguous. But with
// them, `1.0 - x` would not compile in a function or a `formula!` with a generic element type.
macro_rules! number_first {
    ($trait:ident $method:ident $primitive:ident, $($number:ident)*) => {$(
        impl<'t, T: Float> $trait<Var<'t, T>> for $number {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: Var<'t, T>) -> Var<'t, T> {
                let at = Site::here(Binary::$primitive.name());
                let number = or_raise(other.try_filled_like_at(T::from_f64(self.into()), at));
                or_raise(number.apply_binary(Binary::$primitive, &other, at))
            }
        }

        impl<'t, T: Float> $trait<&Var<'t, T>> for $number {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: &Var<'t, T>) -> Var<'t, T> {
                $trait::$method(self, *other)
            }
        }
    )*};
}

// A number of another type on the left is a compile error, whose message suggests a remedy; see `LeftNumber`.
macro_rules! refused_first {
    ($trait:ident $method:ident, $($number:ident)*) => {$(
        refused_first!(@ $trait $method $number, Var<'t, T>);
        refused_first!(@ $trait $method $number, &Var<'t, T>);
    )*};
    (@ $trait:ident $method:ident $number:ident, $variable:ty) => {
        impl<'t, T: Float> $trait<$variable> for $number
        where
            $number: LeftNumber<'t, Var<'t, T>>,
        {
            type Output = Var<'t, T>;

            #[track_caller]
            fn $method(self, other: $variable) -> Var<'t, T> {
                (self as f64).$method(other)
            }
        }
    };
}

// There is one implementation for each element type. The compiler refuses a generic implementation, because another crate could make `Var`
// an operand of a tensor.
macro_rules! tensor_first {
    ($trait:ident $method:ident $primitive:ident, $element:ty) => {
        tensor_first!($trait $method $primitive, $element, Tensor<$element>, Var<'t, $element>);
        tensor_first!($trait $method $primitive, $element, &Tensor<$element>, Var<'t, $element>);
        tensor_first!($trait $method $primitive, $element, Tensor<$element>, &Var<'t, $element>);
        tensor_first!($trait $method $primitive, $element, &Tensor<$element>, &Var<'t, $element>);
    };
    ($trait:ident $method:ident $primitive:ident, $element:ty, $tensor:ty, $variable:ty) => {
        impl<'t> $trait<$variable> for $tensor {
            type Output = Var<'t, $element>;

            #[track_caller]
            fn $method(self, other: $variable) -> Var<'t, $element> {
                let (at, other) = (Site::here(Binary::$primitive.name()), other.array());
                or_raise(binary(&TensorLike::constant(&other, &self), Binary::$primitive, other, at))
            }
        }
    };
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
        impl<'t, T: Float, O: Operand<Var<'t, T>>> $trait<O> for Var<'t, T> {
            #[track_caller]
            fn $method(&mut self, other: O) {
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
    RemAssign rem_assign = remainder_;
}

impl<'t, T: Float> Neg for &Var<'t, T> {
    type Output = Var<'t, T>;

    #[track_caller]
    fn neg(self) -> Var<'t, T> {
        Arithmetic::neg(self)
    }
}

impl<'t, T: Float> Neg for Var<'t, T> {
    type Output = Var<'t, T>;

    #[track_caller]
    fn neg(self) -> Var<'t, T> {
        Arithmetic::neg(&self)
    }
}

impl<'t, T: Float> Var<'t, T> {
    /// Returns ones where the elements of `self` and `other` are equal, and zeros elsewhere. NaN equals nothing. The shapes broadcast.
    /// PyTorch: `eq`.
    ///
    /// # Panics
    ///
    /// If the shapes do not broadcast, the operands belong to two tapes, or the tape is full.
    #[track_caller]
    #[allow(clippy::should_implement_trait)]
    pub fn eq(self, other: impl Operand<Self>) -> Self {
        Comparison::eq(&self, other)
    }

    /// Returns ones where the elements of `self` and `other` differ, and zeros elsewhere. NaN differs from everything, even from NaN. The
    /// shapes broadcast. PyTorch: `ne`.
    ///
    /// # Panics
    ///
    /// If the shapes do not broadcast, the operands belong to two tapes, or the tape is full.
    #[track_caller]
    #[allow(clippy::should_implement_trait)]
    pub fn ne(self, other: impl Operand<Self>) -> Self {
        Comparison::ne(&self, other)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Checks differences and assignments with variables, tensors and numbers as operands, on tapes of f32 and f64. A tensor stands on the
    /// left only on a tape of f32.
    #[test]
    #[allow(clippy::op_ref)]
    fn tensors_and_numbers_on_either_side() {
        fn check<T: Float>() {
            let tape = Tape::<T>::new();
            let three = Tensor::scalar(T::from_f64(3.0));
            let x = tape.var(&Tensor::scalar(T::from_f64(5.0)));
            let y = tape.var(&three);
            let left = [x - y, x - &three, x - three.clone(), x - 3.0, x - 3.0f32, x - 3, x - 3i64];
            assert!(left.iter().all(|z| z.item() == T::from_f64(2.0)));
            assert!([&x - y, x - &y, &x - &y, &x - 3.0, x - 3usize].iter().all(|z| z.item() == T::from_f64(2.0)));
            assert_eq!((-&x).item(), T::from_f64(-5.0));
            let right = [3.0 - x, 3 - x, 3.0 - &x];
            assert!(right.iter().all(|z| z.item() == T::from_f64(-2.0)));
            let mut z = x;
            z *= three;
            z -= 1;
            z /= 2.0f32;
            z += y;
            assert_eq!(z.item(), T::from_f64(10.0));
        }
        check::<f32>();
        check::<f64>();
        let (tape, three) = (Tape::new(), Tensor::<f32>::scalar(3.0));
        let x = tape.var(&Tensor::scalar(5.0));
        let right = [&three - x, three.clone() - x, &three - &x, three.clone() - &x];
        assert!(right.iter().all(|z| z.item() == -2.0));
    }

    /// Checks expressions with a literal whose type the compiler does not know yet when it looks for the next method.
    #[test]
    fn a_method_may_follow_a_number() {
        let tape = Tape::<f32>::new();
        let x = tape.var(&Tensor::scalar(-8.0));
        assert_eq!((1.0 - x).sqrt().item(), 3.0);
        assert_eq!((x + 9.0).exp().log().item(), 1.0);
        assert_eq!((1 - x).sqrt().item(), 3.0);
        assert_eq!((&Tensor::scalar(1.0) - x).sqrt().item(), 3.0);
        assert_eq!((&Tensor::<f32>::scalar(5.0) - 1.0).sqrt().item(), 2.0);
    }

    #[test]
    fn products_take_tensors_and_variables_by_value() {
        let tape = Tape::new();
        let matrix = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let vector = Tensor::from([1.0, -1.0]);
        let (x, y) = (tape.var(&matrix), tape.var(&vector));
        for product in [x.mv(&vector), x.mv(y), x.mv(vector.clone()), x.matmul(y), x.matmul(&y), x.matmul(&vector)] {
            assert_eq!(product.value(), Tensor::from([-1.0, -1.0]));
        }
        assert_eq!(matrix.matmul(matrix.clone()), matrix.mm(&matrix));
        assert_eq!(y.dot(&vector).item(), 2.0);
        for product in [matrix.matmul(y), matrix.matmul(&y)] {
            assert_eq!(product.value(), Tensor::from([-1.0, -1.0]));
        }
        let [gradient] = x.mv(&vector).sum(..).grad([x]);
        assert_eq!(gradient.value(), Tensor::from([[1.0, -1.0], [1.0, -1.0]]));
    }
}
