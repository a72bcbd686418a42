//! Arithmetic of two and three operands, which broadcast, elementwise predicates, and `masked_fill`. Most of these operations are made of
//! simpler operations, which give the derivatives.

use wengert_macros::twins;

use crate::ops::primitive::pair::{
    binary, broadcast_operand_shapes, broadcast_three, broadcast_two, expand, expand_number, expand_scalar,
};
use crate::ops::reduce::reductions::nonzero_mask;
use crate::ops::{
    Argument, Arithmetic, ArrayOperand, Comparison, Compose, Composite, Functions, MaskOperand, Operand, Result,
    TensorLike, Views, try_where_,
};
use crate::scalar::formula::Formula;
use crate::scalar::special;
use crate::{Binary, Element, Float, Scalar, Site, Tensor, Unary, ensure};

/// Arithmetic of two and three operands, and elementwise predicates.
#[twins(blanket)]
pub trait Mixed: TensorLike<Elem: Float> {
    /// Returns `self + weight · (end - self)`, computed as a step from `self` where |weight| < 1/2, and from `end` elsewhere. PyTorch:
    /// `lerp`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (start, end) = (Tensor::from([0.0, 10.0]), Tensor::from([1.0, 20.0]));
    /// assert_eq!(start.lerp(&end, 0.25).to_vec(), [0.25, 12.5]);
    /// ```
    #[in_place]
    fn try_lerp(&self, end: impl ArrayOperand<Self>, weight: impl Operand<Self>) -> Result<Self> {
        let end = &end.into_array(self)?;
        let at = Site::here("lerp");
        match weight.into_argument(self)? {
            Argument::Number(weight) => {
                let (x, y) = broadcast_two(self, end, at)?;
                Self::apply_elementwise_composite([&x, &y], &Lerp { weight: weight.to_f64() }, at)
            }
            Argument::Array(weight) => Self::apply_elementwise_composite([self, end, &weight], &LerpTensor, at),
        }
    }

    /// Returns `self + value · x · y`. PyTorch: `addcmul`.
    #[in_place]
    fn try_addcmul(&self, x: impl ArrayOperand<Self>, y: impl ArrayOperand<Self>, value: f64) -> Result<Self> {
        let at = Site::here("addcmul");
        Self::apply_elementwise_composite(
            [self, &x.into_array(self)?, &y.into_array(self)?],
            &AddScaled { op: Binary::Mul, value },
            at,
        )
    }

    /// Returns `self + value · x / y`. PyTorch: `addcdiv`.
    #[in_place]
    fn try_addcdiv(&self, x: impl ArrayOperand<Self>, y: impl ArrayOperand<Self>, value: f64) -> Result<Self> {
        let at = Site::here("addcdiv");
        Self::apply_elementwise_composite(
            [self, &x.into_array(self)?, &y.into_array(self)?],
            &AddScaled { op: Binary::Div, value },
            at,
        )
    }

    /// Returns `self · 2^other`, which is infinite or NaN if 2^other overflows, even if the product would not. PyTorch: `ldexp`.
    #[in_place]
    fn try_ldexp(&self, other: impl Operand<Self>) -> Result<Self> {
        let (x, y) = broadcast_two(self, other, Site::here("ldexp"))?;
        x.try_mul(&y.try_exp2()?)
    }

    /// Returns the mantissas m and exponents e of `self` = m · 2ᵉ, where ½ ≤ |m| < 1. Zeros, infinities and NaN are their own mantissas,
    /// with exponent 0. The exponents have no derivative; the derivative of a mantissa is 2⁻ᵉ. A variable on a tape is evaluated, because
    /// the exponents are not recorded. PyTorch: `frexp`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (mantissas, exponents) = Tensor::from([6.0, -0.25]).frexp();
    /// assert_eq!((mantissas.to_vec(), exponents.to_vec()), (vec![0.75, -0.5], vec![3, -1]));
    /// ```
    fn try_frexp(&self) -> Result<(Self, Tensor<i64>), Self::Error> {
        let at = Site::here("frexp");
        let values = self.to_tensor(at)?;
        let elements = values.row_major_elements(at)?;
        let exponents = Tensor::build(values.shape(), at, |out| {
            out.iter_mut().zip(elements.iter()).for_each(|(e, x)| *e = special::frexp(x.to_f64()).1);
        })?;
        if self.is_plain() {
            let mantissas = Tensor::build(values.shape(), at, |out| {
                let each = out.iter_mut().zip(elements.iter());
                each.for_each(|(m, x)| *m = Self::Elem::from_f64(special::frexp(x.to_f64()).0));
            })?;
            return Ok((self.try_constant(&mantissas)?, exponents));
        }
        // 2⁻ᵉ overflows for a small number, so the number is multiplied by two powers whose product is 2⁻ᵉ.
        let times_power = |x: &Self, part: fn(i64) -> i64| {
            let power = |out: &mut [Self::Elem]| {
                let each = out.iter_mut().zip(exponents.iter());
                each.for_each(|(out, e)| *out = Self::Elem::from_f64(libm::exp2(-part(e) as f64)));
            };
            x.times(&self.try_constant(&Tensor::build(values.shape(), at, power)?)?, at)
        };
        Ok((times_power(&times_power(self, |e| e / 2)?, |e| e - e / 2)?, exponents))
    }

    /// Returns ln(eˣ + eʸ) for x (`self`) and y (`other`), without overflow. If x and y are the same infinity, the result is this infinity,
    /// with derivative NaN. PyTorch: `logaddexp`.
    fn try_logaddexp(&self, other: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("logaddexp");
        let (x, y) = broadcast_two(self, other, at)?;
        Self::apply_elementwise_composite([&x, &y], &LogSumOfPowers(Unary::Exp), at)
    }

    /// Returns log₂(2ˣ + 2ʸ) for x (`self`) and y (`other`), without overflow. PyTorch: `logaddexp2`.
    fn try_logaddexp2(&self, other: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("logaddexp2");
        let (x, y) = broadcast_two(self, other, at)?;
        Self::apply_elementwise_composite([&x, &y], &LogSumOfPowers(Unary::Exp2), at)
    }

    /// Returns x ln y for x (`self`) and y (`other`), and 0 at x = 0 unless y is NaN. PyTorch: `xlogy`.
    #[in_place(Binary::Xlogy)]
    fn try_xlogy(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Xlogy, other, Site::here("xlogy"))
    }

    /// Returns x ln(1 + y) for x (`self`) and y (`other`), and 0 at x = 0 unless y is NaN. PyTorch: `special.xlog1py`.
    fn try_xlog1py(&self, other: impl Operand<Self>) -> Result<Self> {
        binary(self, Binary::Xlog1py, other, Site::here("xlog1py"))
    }

    /// Returns 0 where `self` is below 0 or NaN, 1 where `self` is above 0, and `values` where `self` is 0. Taking a gradient through the
    /// result is an error. PyTorch: `heaviside`.
    #[in_place]
    fn try_heaviside(&self, values: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("heaviside");
        let (x, values) = broadcast_two(self, values, at)?;
        let zeros = expand_number(&x, Self::Elem::ZERO, &x.shape(), at)?;
        let above = try_where_(&x.try_gt(0.0)?, &zeros.try_add(1.0)?, &zeros)?;
        try_where_(&Comparison::try_eq(&x, 0.0)?, &values, &above)?.refuse_gradients(at)
    }

    /// Returns a mask that is true where `self` and `other` differ by at most `atol + rtol · |other|`. Equal infinities are close. Two NaNs
    /// are close only if `equal_nan` is true. Refuses a negative or NaN `rtol` or `atol`. PyTorch: `isclose`.
    fn try_isclose(&self, other: impl Operand<Self>, rtol: f64, atol: f64, equal_nan: bool) -> Result<Self::Mask> {
        is_close(self, other, [rtol, atol], equal_nan, Site::here("isclose"))
    }

    /// Returns true if [`isclose`](Self::isclose) is true for all pairs of elements, and for operands without elements. Refuses a negative
    /// or NaN `rtol` or `atol`. PyTorch: `allclose`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([0.1 + 0.2, 1.0]);
    /// assert!(x.allclose(&Tensor::from([0.3, 1.0]), 1e-5, 1e-8, false));
    /// ```
    fn try_allclose(
        &self,
        other: impl Operand<Self>,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<bool, Self::Error> {
        let at = Site::here("allclose");
        let close = is_close(self, other, [rtol, atol], equal_nan, at)?;
        Ok(nonzero_mask(&close, at)?.iter().all(|close| close))
    }

    /// Returns a mask that is true where an element is +∞. PyTorch: `isposinf`.
    fn try_isposinf(&self) -> Result<Self::Mask> {
        Comparison::try_eq(self, f64::INFINITY)
    }

    /// Returns a mask that is true where an element is -∞. PyTorch: `isneginf`.
    fn try_isneginf(&self) -> Result<Self::Mask> {
        Comparison::try_eq(self, f64::NEG_INFINITY)
    }

    /// Returns a mask that is true where the sign bit is set: below 0, at -0, and at a NaN with this bit. PyTorch: `signbit`.
    #[doc(alias("is_sign_negative"))]
    fn try_signbit(&self) -> Result<Self::Mask> {
        let at = Site::here("signbit");
        let ones = expand_number(self, Self::Elem::ONE, &self.shape(), at)?;
        ones.apply_binary(Binary::Copysign, &self.try_detach()?, at)?.try_lt(0.0)
    }
}

/// A composite operation: [`lerp`](Mixed::try_lerp) with one weight.
struct Lerp {
    weight: f64,
}

impl Composite<2> for Lerp {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y]: [&A; 2], at: Site) -> Result<A> {
        // The formulas of `lerp`. One formula is chosen for all elements, because all elements have the same weight.
        let weight = A::Elem::from_f64(self.weight).to_f64();
        let (start, step) = if weight.abs() < 0.5 { (x, weight) } else { (y, weight - 1.0) };
        start.plus(&y.minus(x, at)?.times(step, at)?, at)
    }

    fn formula(&self) -> Option<Formula> {
        Some(Formula::Lerp { weight: self.weight })
    }
}

/// A composite operation: [`lerp`](Mixed::try_lerp) with an array of weights.
struct LerpTensor;

impl Composite<3> for LerpTensor {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y, weight]: [&A; 3], at: Site) -> Result<A> {
        let (x, y, weight) = broadcast_three(x, y, weight, at)?;
        lerp(&x, &y, &weight)
    }

    fn formula(&self) -> Option<Formula> {
        Some(Formula::LerpTensor)
    }
}

/// Returns x + weight · (y - x). All operands have the same shape.
#[track_caller]
fn lerp<A: TensorLike<Elem: Float>>(x: &A, y: &A, weight: &A) -> Result<A> {
    // The step starts at `x` if |weight| < 1/2, and otherwise at `y`, so that the results for the weights 0 and 1 are exact. The formulas
    // for both starts have the same derivatives.
    let near = weight.try_abs()?.try_lt(0.5)?;
    let step = try_where_(&near, weight, &weight.try_sub(1.0)?)?;
    try_where_(&near, x, y)?.try_add(&step.try_mul(&y.try_sub(x)?)?)
}

/// A composite operation: [`addcmul`](Mixed::try_addcmul) or [`addcdiv`](Mixed::try_addcdiv).
struct AddScaled {
    op: Binary,
    value: f64,
}

impl Composite<3> for AddScaled {
    fn apply<A: TensorLike<Elem: Float>>(&self, [own, x, y]: [&A; 3], at: Site) -> Result<A> {
        let (own, x, y) = broadcast_three(own, x, y, at)?;
        let x = if self.value == 1.0 { x } else { x.try_mul(self.value)? };
        own.try_add(&x.apply_binary(self.op, &y, at)?)
    }

    fn formula(&self) -> Option<Formula> {
        Some(Formula::AddScaled { op: self.op, value: self.value })
    }
}

/// A composite operation: the logarithm of eˣ + eʸ (`Exp`) or of 2ˣ + 2ʸ (`Exp2`), in the same base.
struct LogSumOfPowers(Unary);

impl Composite<2> for LogSumOfPowers {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y]: [&A; 2], at: Site) -> Result<A> {
        log_sum_of_powers(x, y, self.0, at)
    }
}

/// Replacement of the elements that a mask selects, for every element type.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let scores = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// let padding = Tensor::from([false, true]); // broadcasts
/// assert_eq!(scores.masked_fill(&padding, -1.0), Tensor::from([[1.0, -1.0], [3.0, -1.0]]));
/// ```
#[twins(blanket)]
pub trait Masking: TensorLike<Elem: Element> {
    /// Returns `value`, a number or an array of rank 0, where `mask` is true, and `self` elsewhere. `mask` and `self` broadcast. The
    /// gradient of `self` is 0 at replaced elements. If `value` is a variable, these elements give its gradient. PyTorch: `masked_fill`.
    fn try_masked_fill(&self, mask: impl MaskOperand<Self>, value: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("masked_fill");
        masked_fill(self, &mask.to_mask(self, at)?, value, at)
    }
}

/// Returns `value` where `mask` is true, and `x` elsewhere.
pub(crate) fn masked_fill<A: TensorLike>(x: &A, mask: &A::Mask, value: impl Operand<A>, at: Site) -> Result<A> {
    // The mask is the first operand here, because PyTorch's error message names its shape first.
    let shape = broadcast_operand_shapes(&[&mask.shape(), &x.shape()], at)?;
    let (expanded, mask) = (expand(x, &shape, at)?, expand(mask, &shape, at)?);
    let value = expand_scalar(x, value, &shape, at, |rank| {
        format!("masked_fill only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s).")
    })?;
    A::apply_select(&mask, &value, &expanded, at)
}

/// Returns the mask of [`isclose`](Mixed::isclose). The tolerances are `rtol` and `atol`.
#[track_caller]
fn is_close<A: TensorLike<Elem: Float>>(
    x: &A,
    other: impl Operand<A>,
    [rtol, atol]: [f64; 2],
    equal_nan: bool,
    at: Site,
) -> Result<A::Mask> {
    for (name, tolerance) in [("rtol", rtol), ("atol", atol)] {
        ensure!(tolerance >= 0.0, at, "{name} must be greater than or equal to zero, but got {tolerance}");
    }
    let (x, y) = broadcast_two(x, other, at)?;
    let allowed = y.try_mul(rtol)?.try_abs()?.try_add(atol)?;
    let actual = x.try_sub(&y)?.try_abs()?;
    let near = actual.try_isfinite()?.try_logical_and(&actual.try_le(&allowed)?)?;
    let close = Comparison::try_eq(&x, &y)?.try_logical_or(&near)?;
    if !equal_nan {
        return Ok(close);
    }
    close.try_logical_or(&x.try_isnan()?.try_logical_and(&y.try_isnan()?)?)
}

/// Returns the logarithm of eˣ + eʸ (`Exp`) or of 2ˣ + 2ʸ (`Exp2`), in the same base. Computes max(x, y) + log(1 + base^-|x - y|).
#[track_caller]
fn log_sum_of_powers<A: TensorLike<Elem: Float>>(x: &A, y: &A, power: Unary, at: Site) -> Result<A> {
    if x.is_plain() {
        let (larger, smaller) = (x.combine(Binary::Maximum, y, at)?, x.combine(Binary::Minimum, y, at)?);
        // For equal infinities, the difference is NaN, and `Fmin` returns 0. If an operand is NaN, so is the maximum.
        let distance = smaller.minus(&larger, at)?.combine(Binary::Fmin, 0.0, at)?;
        return larger.plus(&log1p_of_power(&distance, power, at)?, at);
    }
    let first = x.try_ge(y)?;
    let larger = try_where_(&first, x, y)?;
    let distance = try_where_(&first, &y.try_sub(x)?, &x.try_sub(y)?)?;
    let sum = larger.try_add(&log1p_of_power(&distance, power, at)?)?;
    // For equal infinities, |x - y| is NaN. The result is the infinity itself instead, and its derivative is NaN, as for ln(eˣ + eʸ).
    let same = Comparison::try_eq(x, y)?.try_logical_and(&x.try_isinf()?)?;
    let powers = try_where_(&same, x, 0.0)?.try_exp()?.try_add(&try_where_(&same, y, 0.0)?.try_exp()?)?;
    try_where_(&same, &powers.try_log()?, &sum)
}

/// Returns the logarithm of 1 + eˣ (`Exp`) or of 1 + 2ˣ (`Exp2`), in the same base.
fn log1p_of_power<A: TensorLike<Elem: Float>>(x: &A, power: Unary, at: Site) -> Result<A> {
    let log1p = x.apply_unary(power, at)?.apply_unary(Unary::Log1p, at)?;
    if power == Unary::Exp2 { log1p.divide_by(std::f64::consts::LN_2, at) } else { Ok(log1p) }
}

#[cfg(test)]
mod tests {
    use crate::Binary;
    use crate::ops::elementwise::mixed::{AddScaled, Lerp, LerpTensor};
    use crate::ops::primitive::testing::check_formula;
    use crate::prelude::*;

    #[test]
    fn formulas_have_the_bits_of_separate_operations() {
        [0.3, -0.9, 0.5].into_iter().for_each(|weight| check_formula(&Lerp { weight }));
        check_formula(&LerpTensor);
        for (op, value) in [(Binary::Mul, 0.3), (Binary::Mul, 1.0), (Binary::Div, 0.3), (Binary::Div, 1.0)] {
            check_formula(&AddScaled { op, value });
        }
    }

    #[test]
    fn logarithms_of_sums_at_edges() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Tensor::from([inf, -inf, inf, -inf, 2.0, 1000.0, nan, 1.0, inf]);
        let y = Tensor::from([inf, -inf, -inf, 3.0, 2.0, -1000.0, 1.0, nan, nan]);
        let sums = x.logaddexp(&y).to_vec();
        assert_eq!(sums[..6], [inf, -inf, inf, 3.0, 2.0 + 2f64.ln(), 1000.0]);
        assert!(sums[6..].iter().all(|sum| sum.is_nan()));
        assert_eq!(x.logaddexp2(&y).to_vec()[..6], [inf, -inf, inf, 3.0, 3.0, 1000.0]);
    }

    /// The error messages are PyTorch's.
    #[test]
    fn negative_tolerances_are_refused() {
        let x = Tensor::from([1.0]);
        let sentence = |rtol: f64, atol: f64| x.try_isclose(&x, rtol, atol, false).unwrap_err().sentence();
        assert_eq!(sentence(-1.0, 0.0), "rtol must be greater than or equal to zero, but got -1");
        assert_eq!(sentence(0.0, -0.5), "atol must be greater than or equal to zero, but got -0.5");
        assert_eq!(x.isclose(&x, 0.0, 0.0, false).to_vec(), [true]);
    }

    #[test]
    fn all_elements_are_close() {
        let (x, nan) = (Tensor::from([1.0, f64::INFINITY]), Tensor::from([f64::NAN]));
        assert!(x.allclose(Tensor::from([[1.0, f64::INFINITY], [1.0 + 1e-6, f64::INFINITY]]), 1e-5, 1e-8, false));
        assert!(!x.allclose(Tensor::from([1.0 + 1e-4, f64::INFINITY]), 1e-5, 1e-8, false));
        assert!(nan.allclose(&nan, 0.0, 0.0, true) && !nan.allclose(&nan, 0.0, 0.0, false));
        assert!(Tensor::<f64>::zeros([0]).allclose(Tensor::zeros([0]), 1e-5, 1e-8, false));
        let error = x.try_allclose(Tensor::zeros([3]), 1e-5, 1e-8, false).unwrap_err();
        assert_eq!(
            error.sentence(),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
        );
        assert_eq!(error.site().operation, "allclose");
    }
}
