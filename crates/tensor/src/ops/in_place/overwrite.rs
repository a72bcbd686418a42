//! In-place forms of composed operations: the result is computed, then replaces the left side.
//!
//! PyTorch's order of checks: that the left side may be written to, then that the result has its shape.

use wengert_macros::twins;

use crate::ops::in_place::assign::{array, check, readable};
use crate::ops::pair::{compare, expanded, join_all, number, same_shape};
use crate::ops::{Argument, Clamp, Comparison, InPlace, Masking, Mixed, Operand, TensorLike};
use crate::{Binary, Compare, Error, Float, Number, Scalar, Site, Unary};

/// In-place forms. The left side's shape may not change; one with several elements in one place is refused, but by
/// [`fill_`](Self::fill_), [`zero_`](Self::zero_) and [`masked_fill_`](Self::masked_fill_), as in PyTorch.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let mut x = Tensor::from([-1.0, 0.5, 3.0]);
/// x.clamp_(0.0, 1.0);
/// x.lerp_(&Tensor::from([10.0]), 0.5);
/// assert_eq!(x.to_vec(), [5.0, 5.25, 5.5]);
/// ```
#[twins]
pub trait Overwrite: InPlace {
    /// `self = self.addcmul(x, y, value)`. PyTorch: `addcmul_`.
    fn try_addcmul_(&mut self, x: &Self, y: &Self, value: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("addcmul_");
        check(self, &[x, y], at)?;
        let value = self.try_addcmul(x, y, value)?;
        self.put(value, at)
    }

    /// `self = self.addcdiv(x, y, value)`. PyTorch: `addcdiv_`.
    fn try_addcdiv_(&mut self, x: &Self, y: &Self, value: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("addcdiv_");
        check(self, &[x, y], at)?;
        let value = self.try_addcdiv(x, y, value)?;
        self.put(value, at)
    }

    /// `self = self.lerp(end, weight)`. PyTorch: `lerp_`.
    fn try_lerp_(&mut self, end: &Self, weight: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("lerp_");
        let weight = weight.into_argument(self);
        check(self, &[Some(end), array(&weight)].into_iter().flatten().collect::<Vec<_>>(), at)?;
        let value = self.try_lerp(end, weight)?;
        self.put(value, at)
    }

    /// `self = self.clamp(min, max)`. PyTorch: `clamp_`.
    fn try_clamp_(&mut self, min: impl Operand<Self>, max: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("clamp_");
        let (min, max) = (min.into_argument(self), max.into_argument(self));
        check(self, &[&min, &max].into_iter().filter_map(array).collect::<Vec<_>>(), at)?;
        let value = self.try_clamp(min, max)?;
        self.put(value, at)
    }

    /// [`clamp_`](Self::clamp_) where a bound may be left out, but not both.
    fn try_clamp_within_(&mut self, min: Option<Argument<Self>>, max: Option<Argument<Self>>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("clamp_within_");
        check(self, &[&min, &max].into_iter().flatten().filter_map(array).collect::<Vec<_>>(), at)?;
        let value = self.try_clamp_within(min, max)?;
        self.put(value, at)
    }

    /// `self = self.xlogy(other)`. PyTorch: `xlogy_`.
    fn try_xlogy_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update(Binary::Xlogy, other, Site::here("xlogy_"))
    }

    /// `self = self.floor_divide(other)`, through which a gradient must not be asked for either. PyTorch: `floor_divide_`.
    fn try_floor_divide_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        let at = Site::here("floor_divide_");
        self.update(Binary::FloorDivide, other, at)?;
        let value = self.opaque(at)?;
        self.put(value, at)
    }

    /// `self = self.masked_fill(mask, value)`; the mask expands to `self`. PyTorch: `masked_fill_`.
    fn try_masked_fill_(&mut self, mask: &Self::Mask, value: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("masked_fill_");
        let (own, other) = (self.shape(), mask.shape());
        same_shape(&own, &other, &join_all(&[&own, &other], at)?, at)?;
        let value = self.try_masked_fill(mask, value)?;
        self.put(value, at)
    }

    /// Every element `value`: a number, or a tensor without dimensions. PyTorch: `fill_`.
    fn try_fill_(&mut self, value: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("fill_");
        let shape = self.shape();
        let filled = match value.into_argument(self) {
            Argument::Number(value) => number(self, value, &shape, at)?,
            Argument::Array(value) if value.shape().rank() == 0 => expanded(&value, &shape, at)?,
            Argument::Array(value) => {
                let message = format!(
                    "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                    value.shape().rank()
                );
                return Err(Error::argument(at, message).into());
            }
        };
        self.put(filled, at)
    }

    /// Every element 0. PyTorch: `zero_`.
    fn try_zero_(&mut self) -> Result<(), Self::Error> {
        let at = Site::here("zero_");
        let zeros = number(self, Self::Elem::ZERO, &self.shape(), at)?;
        self.put(zeros, at)
    }

    /// 1 where both are equal, 0 elsewhere. PyTorch: `eq_`.
    fn try_eq_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Eq, other, Site::here("eq_"))
    }

    /// 1 where they differ, 0 elsewhere. PyTorch: `ne_`.
    fn try_ne_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Ne, other, Site::here("ne_"))
    }

    /// 1 where `self` is smaller, 0 elsewhere. PyTorch: `lt_`.
    fn try_lt_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Lt, other, Site::here("lt_"))
    }

    /// 1 where `self` is smaller or equal, 0 elsewhere. PyTorch: `le_`.
    fn try_le_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Le, other, Site::here("le_"))
    }

    /// 1 where `self` is larger, 0 elsewhere. PyTorch: `gt_`.
    fn try_gt_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Gt, other, Site::here("gt_"))
    }

    /// 1 where `self` is larger or equal, 0 elsewhere. PyTorch: `ge_`.
    fn try_ge_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        compared(self, Compare::Ge, other, Site::here("ge_"))
    }

    /// 1 where both are not 0, 0 elsewhere. PyTorch: `logical_and_`.
    fn try_logical_and_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("logical_and_");
        let other = readable(self, other, at)?;
        let mask = self.try_logical_and(other)?;
        put_mask(self, &mask, at)
    }

    /// 1 where one at least is not 0, 0 elsewhere. PyTorch: `logical_or_`.
    fn try_logical_or_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("logical_or_");
        let other = readable(self, other, at)?;
        let mask = self.try_logical_or(other)?;
        put_mask(self, &mask, at)
    }

    /// 1 where exactly one is not 0, 0 elsewhere. PyTorch: `logical_xor_`.
    fn try_logical_xor_(&mut self, other: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("logical_xor_");
        let other = readable(self, other, at)?;
        let mask = self.try_logical_xor(other)?;
        put_mask(self, &mask, at)
    }

    /// 1 where `self` is 0, 0 elsewhere. PyTorch: `logical_not_`.
    fn try_logical_not_(&mut self) -> Result<(), Self::Error> {
        let at = Site::here("logical_not_");
        check(self, &[], at)?;
        let mask = self.try_logical_not()?;
        put_mask(self, &mask, at)
    }

    /// `self = op(self)` for any function of one operand: `x.apply_(Unary::Floor)` is PyTorch's `floor_`.
    fn try_apply_(&mut self, op: Unary) -> Result<(), Self::Error> {
        let at = Site::here("apply_");
        self.update_unary(op, Site { operation: op.name(), ..at })
    }
}

impl<A: InPlace> Overwrite for A {}

fn compared<A: InPlace>(target: &mut A, op: Compare, other: impl Operand<A>, at: Site) -> Result<(), A::Error> {
    let other = readable(target, other, at)?;
    let mask = compare(target, op, other, at)?;
    put_mask(target, &mask, at)
}

/// `target` becomes 1 where `mask` holds, 0 elsewhere.
fn put_mask<A: InPlace>(target: &mut A, mask: &A::Mask, at: Site) -> Result<(), A::Error> {
    let shape = mask.shape();
    let (one, zero) = (number(target, A::Elem::ONE, &shape, at)?, number(target, A::Elem::ZERO, &shape, at)?);
    let value = A::apply_select(mask, &one, &zero, at)?;
    target.put(value, at)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn the_left_side_keeps_its_shape() {
        let mut x = Tensor::<f64>::zeros([2, 1]);
        let error = x.try_addcmul_(&Tensor::ones([2, 3]), &Tensor::ones([1]), 1.0).unwrap_err();
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
}
