//! In-place forms: the left side keeps its shape, or the operation is refused.
//!
//! Tensors copy on write, so an in-place operation never changes another tensor: it saves memory, it does not communicate.
//! On a recorded variable it makes the name stand for the result.

use wengert_macros::twins;

use crate::engine::elementwise;
use crate::ops::pair::{join_all, pair_in_place, same_shape};
use crate::ops::{Argument, Operand, TensorLike};
use crate::shape::compat;
use crate::shape::compat::Resolved;
use crate::{Binary, Element, Error, Float, Number, Shape, Site, Tensor, Unary, View};

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
#[twins]
pub trait InPlace: TensorLike {
    /// An error where `self` cannot be written to: it has several elements in one place, or overlaps `source`, which is read.
    #[doc(hidden)]
    fn check_write(&self, source: Option<&Self>, at: Site) -> Result<(), Self::Error>;

    /// Sets `self` to `value`, which has its shape.
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

    /// `self = op(self)`.
    #[doc(hidden)]
    fn update_unary(&mut self, op: Unary, at: Site) -> Result<(), Self::Error> {
        self.check_write(None, at)?;
        let value = self.apply_unary(op, at)?;
        self.put(value, at)
    }

    /// `self += other`. PyTorch: `add_`.
    fn try_add_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Add, other, Site::here("add_"))
    }

    /// `self -= other`. PyTorch: `sub_`.
    fn try_sub_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update(Binary::Sub, other, Site::here("sub_"))
    }

    /// `self *= other`. PyTorch: `mul_`.
    fn try_mul_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Mul, other, Site::here("mul_"))
    }

    /// `self /= other`. PyTorch: `div_`.
    fn try_div_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Div, other, Site::here("div_"))
    }

    /// `self = self.pow(exponent)`. PyTorch: `pow_`.
    fn try_pow_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update(Binary::Pow, other, Site::here("pow_"))
    }

    /// `self = self.fmod(other)`. PyTorch: `fmod_`.
    fn try_fmod_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update(Binary::Fmod, other, Site::here("fmod_"))
    }

    /// `self = self.remainder(other)`. PyTorch: `remainder_`.
    fn try_remainder_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update(Binary::Remainder, other, Site::here("remainder_"))
    }

    /// `self = self.div_floor(other)`. PyTorch: `div_` with `rounding_mode='floor'`.
    fn try_div_floor_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update(Binary::FloorDivide, other, Site::here("div_floor_"))
    }

    /// `self = self.atan2(other)`. PyTorch: `atan2_`.
    fn try_atan2_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Atan2, other, Site::here("atan2_"))
    }

    /// `self = self.hypot(other)`. PyTorch: `hypot_`.
    fn try_hypot_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Hypot, other, Site::here("hypot_"))
    }

    /// `self = self.copysign(other)`. PyTorch: `copysign_`.
    fn try_copysign_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Copysign, other, Site::here("copysign_"))
    }

    /// `self = self.nextafter(other)`. PyTorch: `nextafter_`.
    fn try_nextafter_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Nextafter, other, Site::here("nextafter_"))
    }

    /// `self = self.bitwise_and(other)`. PyTorch: `bitwise_and_`.
    fn try_bitwise_and_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::And, other, Site::here("bitwise_and_"))
    }

    /// `self = self.bitwise_or(other)`. PyTorch: `bitwise_or_`.
    fn try_bitwise_or_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Or, other, Site::here("bitwise_or_"))
    }

    /// `self = self.bitwise_xor(other)`. PyTorch: `bitwise_xor_`.
    fn try_bitwise_xor_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Xor, other, Site::here("bitwise_xor_"))
    }

    /// `self = self.bitwise_left_shift(other)`. PyTorch: `bitwise_left_shift_`.
    fn try_bitwise_left_shift_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::ShiftLeft, other, Site::here("bitwise_left_shift_"))
    }

    /// `self = self.bitwise_right_shift(other)`. PyTorch: `bitwise_right_shift_`.
    fn try_bitwise_right_shift_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::ShiftRight, other, Site::here("bitwise_right_shift_"))
    }

    /// `self = self.gcd(other)`. PyTorch: `gcd_`.
    fn try_gcd_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Gcd, other, Site::here("gcd_"))
    }

    /// `self = self.lcm(other)`. PyTorch: `lcm_`.
    fn try_lcm_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        self.update(Binary::Lcm, other, Site::here("lcm_"))
    }

    /// `self = other`, expanded to the shape of `self`. PyTorch: `copy_`.
    ///
    /// # Errors
    ///
    /// Where `other` does not expand to the shape of `self`, or `self` is expanded.
    fn try_copy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("copy_");
        let other = other.into_argument(self);
        self.check_write(if let crate::ops::Argument::Array(y) = &other { Some(y) } else { None }, at)?;
        let shape = self.shape();
        let value = match other {
            crate::ops::Argument::Number(value) => crate::ops::pair::number(self, value, &shape, at)?,
            crate::ops::Argument::Array(y) => {
                // A copy is no operation of two operands: the settings of compat do not apply.
                let joined = crate::ops::pair::join_all(&[&shape, &y.shape()], at)?;
                same_shape(&shape, &y.shape(), &joined, at)?;
                crate::ops::pair::expanded(&y, &shape, at)?
            }
        };
        self.put(value, at)
    }
}

impl<T: Element> InPlace for Tensor<T> {
    // As the default, without an expanded tensor of the other operand in between.
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
        elementwise::binary_in_place(op, data, layout, y);
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
        // The result replaces the old elements; one with several elements in one place is copied.
        *self = if value.layout().has_internal_overlap() { value.copied(at)? } else { value };
        Ok(())
    }

    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Error> {
        crate::ops::eager::check_binary(op, y, at)?;
        let (data, layout) = self.writable(at)?;
        elementwise::binary_in_place(op, data, layout, y.source());
        Ok(())
    }
}

pub(crate) fn array<A: TensorLike>(argument: &Argument<A>) -> Option<&A> {
    match argument {
        Argument::Array(y) => Some(y),
        Argument::Number(_) => None,
    }
}

/// Refuses a target that cannot be written to while `others` are read, or whose shape is not that of all together.
///
/// A function and no closure around the operation: what the operation refuses is blamed on the caller's line.
pub(crate) fn check<A: InPlace>(target: &A, others: &[&A], at: Site) -> Result<(), A::Error> {
    target.check_write(None, at)?;
    for other in others {
        target.check_write(Some(other), at)?;
    }
    let own = target.shape();
    let others: Vec<Shape> = others.iter().map(|other| other.shape()).collect();
    let shapes: Vec<&Shape> = std::iter::once(&own).chain(&others).collect();
    let joined = join_all(&shapes, at)?;
    if joined != own {
        // The error names the operand that does not expand to the target.
        let other = others.iter().find(|other| crate::ExpandMismatch::between(other, &own).is_some());
        same_shape(&own, other.unwrap_or(&joined), &joined, at)?;
    }
    Ok(())
}

/// `other` beside `target`, which is checked.
pub(crate) fn readable<A: InPlace>(target: &A, other: impl Operand<A>, at: Site) -> Result<Argument<A>, A::Error> {
    let other = other.into_argument(target);
    check(target, array(&other).as_slice(), at)?;
    Ok(other)
}
