//! In-place forms: the left side keeps its shape, or the operation is refused.
//!
//! Tensors copy on write, so an in-place operation never changes another tensor: it saves memory, it does not communicate.
//! On a recorded variable it makes the name stand for the result.

use crate::engine::map;
use crate::ops::pair::{pair_in_place, same_shape};
use crate::ops::{Operand, TensorLike};
use crate::scalar::instruction::{Binary, Unary};
use crate::shape::compat;
use crate::shape::compat::Resolved;
use crate::shape::error::{Error, Site, raise};
use crate::shape::view::View;
use crate::{Element, Float, Number, Tensor};

/// Writes the in-place methods that are one instruction each, in pairs of a panicking one and one that returns the error.
macro_rules! in_place {
    (binary $($(#[$doc:meta])* $name:ident | $try_name:ident [$($clause:tt)*] = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name(&mut self, other: impl Operand<Self>) where $($clause)* {
            self.$try_name(other).unwrap_or_else(|error| raise(error));
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), "), with the error as a value.")]
        ///
        /// # Errors
        ///
        /// Where the result would not have the shape of `self`, or `self` is expanded.
        #[track_caller]
        fn $try_name(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> where $($clause)* {
            self.update(Binary::$op, other, Site::here(stringify!($name)))
        }
    )*};
    (unary $($(#[$doc:meta])* $name:ident | $try_name:ident [$($clause:tt)*] = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        fn $name(&mut self) where $($clause)* {
            self.$try_name().unwrap_or_else(|error| raise(error));
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), "), with the error as a value.")]
        ///
        /// # Errors
        ///
        /// Where `self` is expanded.
        #[track_caller]
        fn $try_name(&mut self) -> Result<(), Self::Error> where $($clause)* {
            let at = Site::here(stringify!($name));
            self.check_write(None, at)?;
            let value = self.apply_unary(Unary::$op, at)?;
            self.put(value, at)
        }
    )*};
}

/// Operations in place. The left side's shape may not change, and a tensor with several elements in one place (an expanded
/// one) is refused, as in PyTorch.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let mut x = Tensor::<f64>::zeros([5, 3, 4, 1]);
/// x.add_(&Tensor::ones([3, 1, 1]));
/// assert_eq!(x, Tensor::ones([5, 3, 4, 1]));
///
/// let mut y = Tensor::<f64>::zeros([1, 3, 1]);
/// let error = y.try_add_(&Tensor::ones([3, 1, 7])).unwrap_err();
/// assert_eq!(error.sentence(), "output with shape [1, 3, 1] doesn't match the broadcast shape [3, 3, 7]");
/// ```
pub trait InPlace: TensorLike {
    /// Refuses a left side that cannot be written to, alone or while `source` is read.
    #[doc(hidden)]
    fn check_write(&self, source: Option<&Self>, at: Site) -> Result<(), Self::Error>;

    /// Makes this one `value`, which has its shape.
    #[doc(hidden)]
    fn put(&mut self, value: Self, at: Site) -> Result<(), Self::Error>;

    /// `self = op(self, y)`, shapes equal, written in place where that is possible.
    #[doc(hidden)]
    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Self::Error>;

    /// `self = op(self, other)`, all rules checked, in PyTorch's order: overlap, then shape.
    #[doc(hidden)]
    fn update(&mut self, op: Binary, other: impl Operand<Self>, at: Site) -> Result<(), Self::Error> {
        let other = other.into_argument(self);
        self.check_write(if let crate::ops::Argument::Array(y) = &other { Some(y) } else { None }, at)?;
        if let (Binary::Pow, Some(inverse)) = (op, crate::ops::elementwise::arithmetic::is_root(&other)) {
            let value = self.apply_root(inverse, at)?;
            return self.put(value, at);
        }
        let y = pair_in_place(self, other, at)?;
        self.put_binary(op, &y, at)
    }

    in_place! { binary
        /// `self += other`. PyTorch: `add_`.
        add_ | try_add_ [] = Add;
        /// `self -= other`. PyTorch: `sub_`.
        sub_ | try_sub_ [Self::Elem: Number] = Sub;
        /// `self *= other`. PyTorch: `mul_`.
        mul_ | try_mul_ [] = Mul;
        /// `self /= other`. PyTorch: `div_`.
        div_ | try_div_ [Self::Elem: Float] = Div;
        /// `self = self.pow(exponent)`. PyTorch: `pow_`.
        pow_ | try_pow_ [Self::Elem: Number] = Pow;
        /// `self = self.fmod(other)`. PyTorch: `fmod_`.
        fmod_ | try_fmod_ [Self::Elem: Number] = Fmod;
        /// `self = self.remainder(other)`. PyTorch: `remainder_`.
        remainder_ | try_remainder_ [Self::Elem: Number] = Remainder;
        /// `self = self.div_floor(other)`. PyTorch: `div_` with `rounding_mode='floor'`.
        div_floor_ | try_div_floor_ [Self::Elem: Number] = FloorDivide;
        /// `self = self.atan2(other)`. PyTorch: `atan2_`.
        atan2_ | try_atan2_ [Self::Elem: Float] = Atan2;
        /// `self = self.hypot(other)`. PyTorch: `hypot_`.
        hypot_ | try_hypot_ [Self::Elem: Float] = Hypot;
        /// `self = self.copysign(other)`. PyTorch: `copysign_`.
        copysign_ | try_copysign_ [Self::Elem: Float] = Copysign;
        /// `self = self.nextafter(other)`. PyTorch: `nextafter_`.
        nextafter_ | try_nextafter_ [Self::Elem: Float] = Nextafter;
        /// `self = self.bitwise_and(other)`. PyTorch: `bitwise_and_`.
        bitwise_and_ | try_bitwise_and_ [] = And;
        /// `self = self.bitwise_or(other)`. PyTorch: `bitwise_or_`.
        bitwise_or_ | try_bitwise_or_ [] = Or;
        /// `self = self.bitwise_xor(other)`. PyTorch: `bitwise_xor_`.
        bitwise_xor_ | try_bitwise_xor_ [] = Xor;
        /// `self = self.bitwise_left_shift(other)`. PyTorch: `bitwise_left_shift_`.
        bitwise_left_shift_ | try_bitwise_left_shift_ [] = ShiftLeft;
        /// `self = self.bitwise_right_shift(other)`. PyTorch: `bitwise_right_shift_`.
        bitwise_right_shift_ | try_bitwise_right_shift_ [] = ShiftRight;
        /// `self = self.gcd(other)`. PyTorch: `gcd_`.
        gcd_ | try_gcd_ [] = Gcd;
        /// `self = self.lcm(other)`. PyTorch: `lcm_`.
        lcm_ | try_lcm_ [] = Lcm;
    }

    in_place! { unary
        /// `self = -self`. PyTorch: `neg_`.
        neg_ | try_neg_ [Self::Elem: Number] = Neg;
        /// `self = |self|`. PyTorch: `abs_`.
        abs_ | try_abs_ [Self::Elem: Number] = Abs;
        /// `self = self²`. PyTorch: `square_`.
        square_ | try_square_ [Self::Elem: Number] = Square;
        /// `self = √self`. PyTorch: `sqrt_`.
        sqrt_ | try_sqrt_ [Self::Elem: Float] = Sqrt;
        /// `self = exp(self)`. PyTorch: `exp_`.
        exp_ | try_exp_ [Self::Elem: Float] = Exp;
        /// `self = ln(self)`. PyTorch: `log_`.
        log_ | try_log_ [Self::Elem: Float] = Log;
        /// `self = sin(self)`. PyTorch: `sin_`.
        sin_ | try_sin_ [Self::Elem: Float] = Sin;
        /// `self = cos(self)`. PyTorch: `cos_`.
        cos_ | try_cos_ [Self::Elem: Float] = Cos;
        /// `self = tanh(self)`. PyTorch: `tanh_`.
        tanh_ | try_tanh_ [Self::Elem: Float] = Tanh;
        /// `self = sigmoid(self)`. PyTorch: `sigmoid_`.
        sigmoid_ | try_sigmoid_ [Self::Elem: Float] = Sigmoid;
        /// `self = max(self, 0)`. PyTorch: `relu_`.
        relu_ | try_relu_ [Self::Elem: Number] = Relu;
    }

    /// `self = other`, expanded to the shape of `self`. PyTorch: `copy_`.
    #[track_caller]
    fn copy_(&mut self, other: impl Operand<Self>) {
        self.try_copy_(other).unwrap_or_else(|error| raise(error));
    }

    /// [`copy_`](Self::copy_), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where `other` does not expand to the shape of `self`, or `self` is expanded.
    #[track_caller]
    fn try_copy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("copy_");
        let other = other.into_argument(self);
        self.check_write(if let crate::ops::Argument::Array(y) = &other { Some(y) } else { None }, at)?;
        let shape = self.shape();
        let value = match other {
            crate::ops::Argument::Number(value) => crate::ops::pair::number(self, value, &shape, at)?,
            crate::ops::Argument::Array(y) => {
                // Not an operation on two tensors of equal standing: compat has no say.
                let joined = crate::ops::pair::join_all(&[&shape, &y.shape()], at)?;
                same_shape(&shape, &y.shape(), &joined, at)?;
                crate::ops::pair::expanded(&y, &shape, at)?
            }
        };
        self.put(value, at)
    }
}

impl<T: Element> InPlace for Tensor<T> {
    // As for all that is like a tensor, without one in between that is the other operand expanded.
    fn update(&mut self, op: Binary, other: impl Operand<Self>, at: Site) -> Result<(), Error> {
        let other = other.into_argument(self);
        let y = match &other {
            crate::ops::Argument::Array(y) => y,
            crate::ops::Argument::Number(value) => {
                self.check_write(None, at)?;
                if let (Binary::Pow, Some(inverse)) = (op, crate::ops::elementwise::arithmetic::is_root(&other)) {
                    let value = self.apply_root(inverse, at)?;
                    return self.put(value, at);
                }
                let y = Tensor::splat(*value, self.shape(), at)?;
                return self.put_binary(op, &y, at);
            }
        };
        self.check_write(Some(y), at)?;
        if self.shape() == y.shape() && compat::zero_dim_allowed() {
            return self.put_binary(op, y, at);
        }
        match compat::resolve_in_place(self.shape(), y.shape(), at)? {
            Resolved::Broadcast(joined) => same_shape(self.shape(), y.shape(), &joined, at)?,
            Resolved::Flat => {
                let y = y.apply_view(View::Reshape(self.shape().clone()), at)?;
                return self.put_binary(op, &y, at);
            }
        }
        crate::ops::eager::check_binary(op, y, at)?;
        let mut expanded = None;
        let y = crate::ops::eager::over(y, self.shape(), &mut expanded);
        let (data, layout) = self.writable(at)?;
        map::binary_in_place(op, data, layout, y);
        Ok(())
    }

    fn check_write(&self, source: Option<&Self>, at: Site) -> Result<(), Error> {
        if self.layout().has_internal_overlap() {
            return Err(Error::Overlap { internal: true, at });
        }
        match source {
            Some(source) if self.shares_storage(source) && self.layout().overlaps_partly(source.layout()) => {
                Err(Error::Overlap { internal: false, at })
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, value: Self, at: Site) -> Result<(), Error> {
        // A fresh result takes the place of the old elements; one that something else holds is copied.
        *self = if value.layout().has_internal_overlap() { value.copied(at)? } else { value };
        Ok(())
    }

    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Error> {
        crate::ops::eager::check_binary(op, y, at)?;
        let (data, layout) = self.writable(at)?;
        map::binary_in_place(op, data, layout, y.source());
        Ok(())
    }
}
