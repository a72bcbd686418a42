//! Comparisons, functions of masks, and selection by a mask.

use wengert_macros::twins;

use crate::ops::primitive::pair::{
    broadcast_operand_shapes, broadcast_two, check_whole_number, compare, expand, expand_number,
};
use crate::ops::{Argument, IntoArray, MaskOperand, Operand, Result, TensorLike};
use crate::{Binary, Compare, Element, Error, Float, Scalar, Site, Tensor, Unary};

/// Comparisons of two operands, which broadcast; functions of masks.
///
/// Comparing tensors gives a `Tensor<bool>`; comparing recorded variables gives zeros and ones. NaN is unequal to everything,
/// including itself. No gradient flows through a comparison.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([1.0, 5.0, 3.0]);
/// let large = x.gt(2.0);
/// assert_eq!(large.to_vec(), [false, true, true]);
/// assert_eq!(where_(&large, &x, &Tensor::scalar(0.0)).to_vec(), [0.0, 5.0, 3.0]);
/// ```
#[twins(blanket)]
pub trait Comparison: TensorLike {
    /// Returns a mask that is true where both operands are equal. PyTorch: `eq`.
    #[in_place]
    #[doc(alias("equal"))]
    fn try_eq(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Eq, other, Site::here("eq"))
    }

    /// Returns a mask that is true where the operands differ. PyTorch: `ne`.
    #[in_place]
    #[doc(alias("not_equal"))]
    fn try_ne(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Ne, other, Site::here("ne"))
    }

    /// Returns a mask that is true where `self` is smaller than `other`. PyTorch: `lt`.
    #[in_place]
    #[doc(alias("less"))]
    fn try_lt(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Lt, other, Site::here("lt"))
    }

    /// Returns a mask that is true where `self` is smaller than `other` or equal to it. PyTorch: `le`.
    #[in_place]
    #[doc(alias("less_equal"))]
    fn try_le(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Le, other, Site::here("le"))
    }

    /// Returns a mask that is true where `self` is larger than `other`. PyTorch: `gt`.
    #[in_place]
    #[doc(alias("greater"))]
    fn try_gt(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Gt, other, Site::here("gt"))
    }

    /// Returns a mask that is true where `self` is larger than `other` or equal to it. PyTorch: `ge`.
    #[in_place]
    #[doc(alias("greater_equal"))]
    fn try_ge(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        compare(self, Compare::Ge, other, Site::here("ge"))
    }

    /// Returns a mask that is true where an element is NaN. PyTorch: `isnan`.
    #[doc(alias("is_nan"))]
    fn try_isnan(&self) -> Result<Self::Mask> {
        self.apply_compare(Compare::Ne, self, Site::here("isnan"))
    }

    /// Returns a mask that is true where an element is infinite, of either sign. PyTorch: `isinf`.
    #[doc(alias("is_infinite"))]
    fn try_isinf(&self) -> Result<Self::Mask>
    where
        Self::Elem: Float,
    {
        let at = Site::here("isinf");
        let infinity = expand_number(self, Self::Elem::INFINITY, &self.shape(), at)?;
        self.apply_unary(Unary::Abs, at)?.apply_compare(Compare::Eq, &infinity, at)
    }

    /// Returns a mask that is true where an element is neither infinite nor NaN. PyTorch: `isfinite`.
    #[doc(alias("is_finite"))]
    fn try_isfinite(&self) -> Result<Self::Mask>
    where
        Self::Elem: Float,
    {
        let at = Site::here("isfinite");
        let infinity = expand_number(self, Self::Elem::INFINITY, &self.shape(), at)?;
        self.apply_unary(Unary::Abs, at)?.apply_compare(Compare::Lt, &infinity, at)
    }

    /// Returns a mask that is true where both operands are nonzero (or `true`). PyTorch: `logical_and`.
    #[in_place]
    fn try_logical_and(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        let at = Site::here("logical_and");
        let (x, y) = nonzero_masks(self, other, at)?;
        x.apply_binary(Binary::Mul, &y, at)
    }

    /// Returns a mask that is true where at least one operand is nonzero (or `true`). PyTorch: `logical_or`.
    #[in_place]
    fn try_logical_or(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        let at = Site::here("logical_or");
        let (x, y) = nonzero_masks(self, other, at)?;
        x.apply_binary(Binary::Maximum, &y, at)
    }

    /// Returns a mask that is true where exactly one operand is nonzero (or `true`). PyTorch: `logical_xor`.
    #[in_place]
    fn try_logical_xor(&self, other: impl Operand<Self>) -> Result<Self::Mask> {
        let at = Site::here("logical_xor");
        let (x, y) = nonzero_masks(self, other, at)?;
        x.apply_compare(Compare::Ne, &y, at)
    }

    /// Returns a mask that is true where an element is zero (or `false`). PyTorch: `logical_not`.
    #[in_place]
    fn try_logical_not(&self) -> Result<Self::Mask> {
        let at = Site::here("logical_not");
        let zero = expand_number(self, Scalar::from_i64(0), &self.shape(), at)?;
        self.apply_compare(Compare::Eq, &zero, at)
    }
}

#[twins]
impl<T: Element> Tensor<T> {
    /// Returns a mask that is true where both operands are equal, element by element. The shapes broadcast. This method does the same as
    /// [`Comparison::eq`]. Because this method is inherent, it takes precedence over [`PartialEq::eq`]. PyTorch: `eq`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).eq(2.0).to_vec(), [false, true, false]);
    /// ```
    #[doc(alias("equal"))]
    pub fn try_eq(&self, other: impl Operand<Self>) -> Result<Tensor<bool>, Error> {
        Comparison::try_eq(self, other)
    }

    /// Returns a mask that is true where the operands differ, element by element. The shapes broadcast. PyTorch: `ne`.
    #[doc(alias("not_equal"))]
    pub fn try_ne(&self, other: impl Operand<Self>) -> Result<Tensor<bool>, Error> {
        Comparison::try_ne(self, other)
    }
}

/// Broadcasts both operands and returns the masks of their nonzero elements. Callers combine the masks: the product is "and", the maximum
/// is "or", and the comparison ≠ is "exclusive or".
fn nonzero_masks<A: TensorLike>(x: &A, other: impl Operand<A>, at: Site) -> Result<(A::Mask, A::Mask), A::Error> {
    let (x, y) = broadcast_two(x, other, at)?;
    Ok((x.apply_nonzero(at)?, y.apply_nonzero(at)?))
}

/// Returns the elements of `x` where `mask` is true, and the elements of `y` elsewhere. All three broadcast. The mask is a `Tensor<bool>`
/// or, for variables, also the result of a comparison. PyTorch: `where`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([-2.0, 3.0]);
/// let shrunk = where_(&x.lt(0.0), &x, 0.5);
/// assert_eq!(shrunk.to_vec(), [-2.0, 0.5]);
/// ```
///
/// The operand that was not selected gets a gradient of 0. If that operand was computed with an infinite derivative, the chain
/// rule gives 0 · ∞ = NaN: `where_(x > 0, 1/x, 0)` has a NaN gradient at 0, in PyTorch and here.
#[twins]
#[doc(alias("where"))]
pub fn try_where_<X: IntoArray>(mask: impl MaskOperand<X::Array>, x: X, y: impl Operand<X::Array>) -> Result<X::Array> {
    let at = Site::here("where");
    let x = &x.array();
    let mask = &mask.to_mask(x, at)?;
    let mask_shape = mask.shape();
    check_whole_number(&y, at)?;
    let (x, y, shape) = match y.into_argument(x)? {
        Argument::Number(value) => {
            let shape = broadcast_operand_shapes(&[&mask_shape, &x.shape()], at)?;
            (expand(x, &shape, at)?, expand_number(x, value, &shape, at)?, shape)
        }
        Argument::Array(y) => {
            let shape = broadcast_operand_shapes(&[&mask_shape, &x.shape(), &y.shape()], at)?;
            (expand(x, &shape, at)?, expand(&y, &shape, at)?, shape)
        }
    };
    TensorLike::apply_select(&expand(mask, &shape, at)?, &x, &y, at)
}
