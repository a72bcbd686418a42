//! Comparisons, functions of masks, and selection by a mask.

use wengert_macros::twins;

use crate::ops::primitive::pair::{
    broadcast_operand_shapes, broadcast_two, check_fits, check_whole_number, compare, expand, expand_number,
};
use crate::ops::{Argument, IntoArray, MaskOperand, Operand, Result, TensorLike};
use crate::{Binary, Compare, Element, Error, Float, Scalar, Site, Tensor, Unary};

/// Comparisons of two operands, which broadcast; functions of masks.
///
/// Comparing tensors gives a `Tensor<bool>`; comparing recorded variables gives zeros and ones. NaN is unequal to everything,
/// including itself. No gradient flows through a comparison.
///
/// Integers and truth values are compared exactly with a number of any size or fraction: `lt(2.5)` of integers, and `lt(300)` of bytes.
/// PyTorch wraps 300 around to 44 beside bytes, and compares large integers with fractions after rounding both.
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
    let (x, y) = match other.number() {
        // The element type may not have the number, for example 256 beside bytes.
        Some(number) => {
            let value = if number == 0.0 { A::Elem::ZERO } else { A::Elem::ONE };
            (x.clone(), expand_number(x, value, &x.shape(), at)?)
        }
        None => broadcast_two(x, other, at)?,
    };
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
    check_fits::<X::Array>(y.number(), at)?;
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

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const NUMBERS: [f64; 16] = [
        f64::NEG_INFINITY,
        -1e30,
        -256.5,
        -256.0,
        -1.0,
        -0.5,
        0.0,
        0.5,
        1.0,
        2.0,
        2.5,
        44.0,
        255.5,
        300.0,
        1e30,
        f64::NAN,
    ];

    /// Compares `x` with each number, and checks the results with comparisons of `f64`. Every element of `x` is exact in `f64`.
    fn check<T: Element>(x: &Tensor<T>) {
        for number in NUMBERS {
            let results = [x.eq(number), x.ne(number), x.lt(number), x.le(number), x.gt(number), x.ge(number)];
            for (k, x) in x.iter().map(T::to_f64).enumerate() {
                let expected = [x == number, x != number, x < number, x <= number, x > number, x >= number];
                let found: Vec<bool> = results.iter().map(|result| result.to_vec()[k]).collect();
                assert_eq!(found, expected, "{x} {number} {:?}", T::DTYPE);
            }
        }
    }

    #[test]
    fn integers_and_numbers_are_compared_exactly() {
        check(&Tensor::from([-300i64, -256, -1, 0, 1, 2, 3, 44, 255, 300]));
        check(&Tensor::from([i64::MIN, 1 << 62]));
        check(&Tensor::from([0u8, 1, 2, 3, 44, 45, 255]));
        check(&Tensor::from([false, true]));
        let mut x = Tensor::from([1i64, 2, 3]);
        assert_eq!(x.isin(2.5).to_vec(), [false; 3]);
        x.lt_(2.5);
        assert_eq!(x.to_vec(), [1, 1, 0]);
        let mut bytes = Tensor::from([1u8, 44, 255]);
        assert_eq!((bytes.eq(300).to_vec(), bytes.isin(300).to_vec()), (vec![false; 3], vec![false; 3]));
        bytes.lt_(300);
        assert_eq!(bytes.to_vec(), [1; 3]);
        assert_eq!(Tensor::from([i64::MAX, i64::MAX - 1]).lt(i64::MAX).to_vec(), [false, true]);
        // 2⁶³ is above every element, although the largest element is rounded to it in f64.
        let (largest, bound) = (Tensor::from([i64::MAX, i64::MIN]), 2f64.powi(63));
        assert_eq!((largest.lt(bound).to_vec(), largest.le(bound).to_vec()), (vec![true; 2], vec![true; 2]));
        assert_eq!((largest.gt(bound).to_vec(), largest.ge(bound).to_vec()), (vec![false; 2], vec![false; 2]));
        assert_eq!((largest.eq(bound).to_vec(), largest.eq(i64::MAX).to_vec()), (vec![false; 2], vec![true, false]));
        assert_eq!(largest.ge(-bound).to_vec(), [true; 2]);
        assert_eq!((largest.isin(bound).to_vec(), largest.isin(-bound).to_vec()), (vec![false; 2], vec![false, true]));
        assert_eq!((largest.isin(i64::MAX).to_vec(), largest.isin(0.5).to_vec()), (vec![true, false], vec![false; 2]));
    }
}
