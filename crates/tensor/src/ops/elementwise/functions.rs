//! Functions of one floating-point operand.

use wengert_macros::twins;

use crate::ops::{Result, TensorLike};
use crate::{Float, Site, Unary};

/// Elementwise functions. They follow IEEE 754 at infinities and NaN. Some functions of f32 are computed in f64 and rounded. The
/// repository's `docs/accuracy.md` lists the accuracy of the functions in units in the last place.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([1.0, 4.0, 9.0]);
/// assert_eq!(x.sqrt().to_vec(), [1.0, 2.0, 3.0]);
/// assert!((x.log().exp() - &x).abs().amax(..).item() < 1e-14);
/// ```
#[twins(blanket)]
pub trait Functions: TensorLike<Elem: Float> {
    /// Returns 1/x. PyTorch: `reciprocal`.
    #[in_place]
    #[doc(alias("recip"))]
    fn try_reciprocal(&self) -> Result<Self> {
        self.apply_unary(Unary::Reciprocal, Site::here("reciprocal"))
    }

    /// Returns √x; NaN below 0. PyTorch: `sqrt`.
    #[in_place]
    fn try_sqrt(&self) -> Result<Self> {
        self.apply_unary(Unary::Sqrt, Site::here("sqrt"))
    }

    /// Returns eˣ. PyTorch: `exp`.
    #[in_place]
    fn try_exp(&self) -> Result<Self> {
        self.apply_unary(Unary::Exp, Site::here("exp"))
    }

    /// Returns 2ˣ. PyTorch: `exp2`.
    #[in_place]
    fn try_exp2(&self) -> Result<Self> {
        self.apply_unary(Unary::Exp2, Site::here("exp2"))
    }

    /// Returns eˣ - 1, accurate near 0. PyTorch: `expm1`.
    #[in_place]
    #[doc(alias("exp_m1"))]
    fn try_expm1(&self) -> Result<Self> {
        self.apply_unary(Unary::Expm1, Site::here("expm1"))
    }

    /// Returns ln x; -∞ at 0, NaN below. PyTorch: `log`.
    #[in_place]
    #[doc(alias("ln"))]
    fn try_log(&self) -> Result<Self> {
        self.apply_unary(Unary::Log, Site::here("log"))
    }

    /// Returns log₂ x. PyTorch: `log2`.
    #[in_place]
    fn try_log2(&self) -> Result<Self> {
        self.apply_unary(Unary::Log2, Site::here("log2"))
    }

    /// Returns log₁₀ x. PyTorch: `log10`.
    #[in_place]
    fn try_log10(&self) -> Result<Self> {
        self.apply_unary(Unary::Log10, Site::here("log10"))
    }

    /// Returns ln(1 + x), accurate near 0. PyTorch: `log1p`.
    #[in_place]
    #[doc(alias("ln_1p"))]
    fn try_log1p(&self) -> Result<Self> {
        self.apply_unary(Unary::Log1p, Site::here("log1p"))
    }

    /// Returns sin x, with x in radians. PyTorch: `sin`.
    #[in_place]
    fn try_sin(&self) -> Result<Self> {
        self.apply_unary(Unary::Sin, Site::here("sin"))
    }

    /// Returns cos x, with x in radians. PyTorch: `cos`.
    #[in_place]
    fn try_cos(&self) -> Result<Self> {
        self.apply_unary(Unary::Cos, Site::here("cos"))
    }

    /// Returns tan x, with x in radians. PyTorch: `tan`.
    #[in_place]
    fn try_tan(&self) -> Result<Self> {
        self.apply_unary(Unary::Tan, Site::here("tan"))
    }

    /// Returns the inverse sine, in radians; NaN outside [-1, 1]. PyTorch: `asin`.
    #[in_place]
    #[doc(alias("arcsin"))]
    fn try_asin(&self) -> Result<Self> {
        self.apply_unary(Unary::Asin, Site::here("asin"))
    }

    /// Returns the inverse cosine, in radians; NaN outside [-1, 1]. PyTorch: `acos`.
    #[in_place]
    #[doc(alias("arccos"))]
    fn try_acos(&self) -> Result<Self> {
        self.apply_unary(Unary::Acos, Site::here("acos"))
    }

    /// Returns the inverse tangent, in radians. PyTorch: `atan`.
    #[in_place]
    #[doc(alias("arctan"))]
    fn try_atan(&self) -> Result<Self> {
        self.apply_unary(Unary::Atan, Site::here("atan"))
    }

    /// Returns the hyperbolic sine. PyTorch: `sinh`.
    #[in_place]
    fn try_sinh(&self) -> Result<Self> {
        self.apply_unary(Unary::Sinh, Site::here("sinh"))
    }

    /// Returns the hyperbolic cosine. PyTorch: `cosh`.
    #[in_place]
    fn try_cosh(&self) -> Result<Self> {
        self.apply_unary(Unary::Cosh, Site::here("cosh"))
    }

    /// Returns the hyperbolic tangent. PyTorch: `tanh`.
    #[in_place]
    fn try_tanh(&self) -> Result<Self> {
        self.apply_unary(Unary::Tanh, Site::here("tanh"))
    }

    /// Returns the inverse hyperbolic sine. PyTorch: `asinh`.
    #[in_place]
    #[doc(alias("arcsinh"))]
    fn try_asinh(&self) -> Result<Self> {
        self.apply_unary(Unary::Asinh, Site::here("asinh"))
    }

    /// Returns the inverse hyperbolic cosine; NaN below 1. PyTorch: `acosh`.
    #[in_place]
    #[doc(alias("arccosh"))]
    fn try_acosh(&self) -> Result<Self> {
        self.apply_unary(Unary::Acosh, Site::here("acosh"))
    }

    /// Returns the inverse hyperbolic tangent; NaN outside [-1, 1]. PyTorch: `atanh`.
    #[in_place]
    #[doc(alias("arctanh"))]
    fn try_atanh(&self) -> Result<Self> {
        self.apply_unary(Unary::Atanh, Site::here("atanh"))
    }

    /// Returns 1/(1 + e⁻ˣ), exact at ±∞. PyTorch: `sigmoid`.
    #[in_place]
    #[doc(alias("expit", "logistic"))]
    fn try_sigmoid(&self) -> Result<Self> {
        self.apply_unary(Unary::Sigmoid, Site::here("sigmoid"))
    }

    /// Returns the error function erf x. PyTorch: `erf`.
    #[in_place]
    fn try_erf(&self) -> Result<Self> {
        self.apply_unary(Unary::Erf, Site::here("erf"))
    }

    /// Returns 1 - erf x, accurate where erf is near 1. PyTorch: `erfc`.
    #[in_place]
    fn try_erfc(&self) -> Result<Self> {
        self.apply_unary(Unary::Erfc, Site::here("erfc"))
    }

    /// Returns the inverse of erf; ±∞ at ±1, NaN outside. PyTorch: `erfinv`.
    #[in_place]
    fn try_erfinv(&self) -> Result<Self> {
        self.apply_unary(Unary::Erfinv, Site::here("erfinv"))
    }

    /// Returns ln |Γ(x)|; ∞ at 0 and the negative integers. PyTorch: `lgamma`.
    #[doc(alias("gammaln", "ln_gamma"))]
    #[in_place]
    fn try_lgamma(&self) -> Result<Self> {
        self.apply_unary(Unary::Lgamma, Site::here("lgamma"))
    }

    /// Returns the derivative of ln Γ; ∓∞ at ±0, and NaN at negative integers. PyTorch: `digamma`.
    #[doc(alias("psi"))]
    #[in_place]
    fn try_digamma(&self) -> Result<Self> {
        self.apply_unary(Unary::Digamma, Site::here("digamma"))
    }

    /// Returns the derivative of digamma, accurate to nine digits for positive x. PyTorch: `polygamma(1, x)`.
    fn try_trigamma(&self) -> Result<Self> {
        self.apply_unary(Unary::Trigamma, Site::here("trigamma"))
    }

    /// Returns 1/√x; ∞ at 0, -∞ at -0, NaN below. PyTorch: `rsqrt`.
    #[in_place]
    fn try_rsqrt(&self) -> Result<Self> {
        let at = Site::here("rsqrt");
        self.apply_unary(Unary::Sqrt, at)?.apply_unary(Unary::Reciprocal, at)
    }
}
