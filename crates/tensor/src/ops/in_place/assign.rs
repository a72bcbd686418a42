//! Operations in place, which write their result to the left operand. They return an error if the result does not have the shape of the
//! left operand.
//!
//! Tensors copy on write, so an operation in place never changes another tensor; it only saves memory. An operation in place on a recorded
//! variable replaces the variable by the result.

use wengert_macros::twins;

use crate::engine::elementwise;
use crate::ops::elementwise::arithmetic::{check_exponent, root};
use crate::ops::elementwise::mixed::masked_fill;
use crate::ops::primitive::eager::check_binary;
use crate::ops::primitive::pair::{
    broadcast_operand_shapes, broadcast_two_under, check_fits, check_in_place_shape, check_number, expand,
    expand_number, expand_scalar,
};
use crate::ops::{Argument, MaskOperand, Operand, TensorLike};
use crate::shape::compat::{BroadcastRule, Resolved};
use crate::{Binary, Element, Error, ExpandMismatch, Number, Scalar, Shape, Site, Tensor, Unary, View};

/// The primitives of in-place operations, and some in-place operations that `#[in_place]` does not generate.
///
/// The in-place form of a function has an underscore after the name. Most forms are in the trait of the function: `add_` is in
/// [`Arithmetic`](crate::ops::Arithmetic). An in-place form may not change the shape of the left operand. As in PyTorch, it refuses a
/// tensor with several elements at one position (an expanded tensor). The exceptions are [`fill_`](Self::fill_), [`zero_`](Self::zero_),
/// [`masked_fill_`](Self::masked_fill_) and [`index_put_`](crate::ops::ScatterInPlace::index_put_).
/// [`index_set_`](crate::ops::ScatterInPlace::index_set_) with index tensors or masks is another exception.
///
/// ```
/// # use wengert_tensor::prelude::*;
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
    /// Returns an error if several elements of `self` share a position in memory, or if `self` partly overlaps `source`, which the
    /// operation reads.
    #[doc(hidden)]
    fn check_write(&self, source: Option<&Self>, at: Site) -> Result<(), Self::Error>;

    /// Sets `self` to `value`, which has the same shape as `self`.
    #[doc(hidden)]
    fn put(&mut self, value: Self, at: Site) -> Result<(), Self::Error>;

    /// Sets `self` to `value`, as `put` does. The old value of `self` has the gradient zero, instead of no gradient.
    #[doc(hidden)]
    fn replace(&mut self, value: Self, at: Site) -> Result<(), Self::Error> {
        let value = value.with_zero_gradients(&[self], at)?;
        self.put(value, at)
    }

    /// Sets `self` to `op(self, y)`, where `y` is a result of [`resolve_other`](Self::resolve_other). Writes to the buffer of `self` if
    /// possible.
    #[doc(hidden)]
    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Self::Error>;

    /// Computes `self = op(self, other)`. As in PyTorch, overlaps in memory are refused before unequal shapes.
    #[doc(hidden)]
    fn update(&mut self, op: Binary, other: impl Operand<Self>, at: Site) -> Result<(), Self::Error> {
        if op == Binary::Pow {
            check_exponent::<Self>(&other, at)?;
        } else {
            check_number(op, &other, at)?;
        }
        let other = other.into_argument(self)?;
        self.check_write(array(&other), at)?;
        if op == Binary::Pow
            && let Some(root) = root(&other)
        {
            let value = self.apply_unary(root, at)?;
            return self.put(value, at);
        }
        let y = self.resolve_other(other, at)?;
        self.put_binary(op, &y, at)
    }

    /// Returns the other operand as [`put_binary`](Self::put_binary) takes it. The default is the operand, expanded to the shape of `self`.
    #[doc(hidden)]
    fn resolve_other(&self, other: Argument<Self>, at: Site) -> Result<Self, Self::Error> {
        Ok(broadcast_two_under(self, other, BroadcastRule::InPlace, at)?.1)
    }

    /// Sets `self` to `op(self)`.
    #[doc(hidden)]
    fn update_unary(&mut self, op: Unary, at: Site) -> Result<(), Self::Error> {
        self.check_write(None, at)?;
        let value = self.apply_unary(op, at)?;
        self.put(value, at)
    }

    /// Sets `self` to 1 where `mask` is true, and to 0 elsewhere.
    #[doc(hidden)]
    fn put_mask(&mut self, mask: Self::Mask, at: Site) -> Result<(), Self::Error> {
        let shape = mask.shape();
        let (one, zero) =
            (expand_number(self, Self::Elem::ONE, &shape, at)?, expand_number(self, Self::Elem::ZERO, &shape, at)?);
        let value = Self::apply_select(&mask, &one, &zero, at)?;
        self.put(value, at)
    }

    /// Sets `self` to `other`, expanded to the shape of `self`. PyTorch: `copy_`.
    ///
    /// # Errors
    ///
    /// If `other` does not expand to the shape of `self`, or partly overlaps `self` in memory. If several elements of `self` share one
    /// position in memory, or memory cannot hold the result.
    fn try_copy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("copy_");
        check_fits::<Self>(other.number(), at)?;
        let other = other.into_argument(self)?;
        self.check_write(array(&other), at)?;
        let shape = self.shape();
        let value = match other {
            Argument::Number(value) => expand_number(self, value, &shape, at)?,
            Argument::Array(y) => {
                // `broadcast_operand_shapes` does not warn about the broadcast. Only operations that combine two operands warn, and a copy
                // does not combine operands.
                let joined = broadcast_operand_shapes(&[&shape, &y.shape()], at)?;
                check_in_place_shape(&shape, &y.shape(), &joined, at)?;
                expand(&y, &shape, at)?
            }
        };
        self.replace(value, at)
    }

    /// Sets `self` to `self.floor_divide(other)`. Taking a gradient through the result is an error. PyTorch: `floor_divide_`.
    fn try_floor_divide_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("floor_divide_");
        self.update(Binary::FloorDivide, other, at)?;
        let value = self.refuse_gradients(at)?;
        self.put(value, at)
    }

    /// Sets `self` to `self.masked_fill(mask, value)`. `mask` expands to the shape of `self`. PyTorch: `masked_fill_`.
    fn try_masked_fill_(&mut self, mask: impl MaskOperand<Self>, value: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("masked_fill_");
        let mask = mask.to_mask(self, at)?;
        let (own, other) = (self.shape(), mask.shape());
        check_in_place_shape(&own, &other, &broadcast_operand_shapes(&[&own, &other], at)?, at)?;
        let value = masked_fill(self, &mask, value, at)?;
        self.put(value, at)
    }

    /// Sets every element to `value`, a number or a tensor without dimensions. PyTorch: `fill_`.
    fn try_fill_(&mut self, value: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("fill_");
        let shape = self.shape();
        let filled = expand_scalar(self, value, &shape, at, |rank| {
            format!("fill_ only supports 0-dimension value tensor but got tensor with {rank} dimensions.")
        })?;
        self.replace(filled, at)
    }

    /// Sets every element to 0. PyTorch: `zero_`.
    fn try_zero_(&mut self) -> Result<(), Self::Error> {
        let at = Site::here("zero_");
        let zeros = expand_number(self, Self::Elem::ZERO, &self.shape(), at)?;
        self.replace(zeros, at)
    }

    /// Sets `self` to `op(self)`, where `op` is any function of one operand. This method is for programs that choose the function at run
    /// time: most functions have in-place forms of their own, such as `floor_`.
    fn try_apply_(&mut self, op: Unary) -> Result<(), Self::Error> {
        self.update_unary(op, Site { operation: op.name(), ..Site::here("apply_") })
    }
}

#[wengert_macros::precompiled]
impl<T: Element> InPlace for Tensor<T> {
    // Does not expand an array, because the loop over its elements does.
    fn resolve_other(&self, other: Argument<Self>, at: Site) -> Result<Self, Error> {
        match other {
            Argument::Number(value) => Tensor::splat(value, self.shape(), at),
            Argument::Array(y) => match self.resolve(&y, BroadcastRule::InPlace, at)? {
                Resolved::Flat => y.apply_view(View::Reshape(self.shape().clone()), at),
                Resolved::Equal | Resolved::Broadcast(_) => Ok(y),
            },
        }
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
        // The buffer of `value` replaces the buffer of `self`. If several elements of `value` share one position in memory, `value` is
        // copied first, so that it can be written to.
        *self = if value.layout().has_internal_overlap() { value.contiguous_copy(at)? } else { value };
        Ok(())
    }

    fn put_binary(&mut self, op: Binary, y: &Self, at: Site) -> Result<(), Error> {
        check_binary(op, y, self.shape(), at)?;
        let (data, layout) = self.writable_data(at)?;
        elementwise::update(op, data, layout, y.source());
        Ok(())
    }
}

/// Returns the array of an operand, or `None` if the operand is a number.
pub(crate) fn array<A: TensorLike>(argument: &Argument<A>) -> Option<&A> {
    match argument {
        Argument::Array(y) => Some(y),
        Argument::Number(_) => None,
    }
}

/// Returns an error if `target` cannot be written to while `others` are read, or if the shape of `target` differs from the broadcast shape
/// of all operands.
pub(crate) fn check_in_place<A: InPlace>(target: &A, others: &[Option<&A>], at: Site) -> Result<(), A::Error> {
    target.check_write(None, at)?;
    for other in others.iter().flatten() {
        target.check_write(Some(other), at)?;
    }
    let shape = target.shape();
    let others: Vec<Shape> = others.iter().flatten().map(|other| other.shape()).collect();
    let shapes: Vec<&Shape> = std::iter::once(&shape).chain(&others).collect();
    let joined = broadcast_operand_shapes(&shapes, at)?;
    if joined != shape {
        // The error names the operand that does not expand to the target.
        let other = others.iter().find(|other| ExpandMismatch::between(other, &shape).is_some());
        check_in_place_shape(&shape, other.unwrap_or(&joined), &joined, at)?;
    }
    Ok(())
}

/// Sets `target` to `value`, which must have the same shape.
pub(crate) fn put_same_shape<A: InPlace>(target: &mut A, value: A, at: Site) -> Result<(), A::Error> {
    check_in_place_shape(&target.shape(), &value.shape(), &value.shape(), at)?;
    target.put(value, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn the_left_side_keeps_its_shape() {
        let mut x = Tensor::<f64>::zeros([2, 1]);
        let error = x.try_addcmul_(Tensor::ones([2, 3]), Tensor::ones([1]), 1.0).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [2, 1] doesn't match the broadcast shape [2, 3]");
        let mut expanded = Tensor::<f64>::ones([1]).expand([3]);
        assert!(expanded.try_clamp_(0.0, 1.0).is_err());
        expanded.fill_(2.0);
        assert_eq!(expanded.to_vec(), [2.0; 3]);
    }

    #[test]
    fn comparisons_in_place_give_numbers() {
        let mut x = Tensor::from([1.0, 2.0, 3.0]);
        x.lt_(2.5);
        assert_eq!(x.to_vec(), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn an_empty_tensor_of_integers_is_divided_by_zero() {
        let (mut empty, zero) = (Tensor::<i64>::zeros([0]), Tensor::from([0i64]));
        assert_eq!(empty.remainder(&zero).shape(), &[0]);
        empty.remainder_(&zero);
        assert_eq!(empty.floor_divide(0).shape(), &[0]);
        assert!(Tensor::from([1i64]).try_remainder_(&zero).is_err());
    }
}
