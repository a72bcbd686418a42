//! Functions of one operand.

use wengert_macros::twins;

use crate::ops::TensorLike;
use crate::scalar::instruction::Unary;
use crate::shape::error::Site;
use crate::{Float, Number};

/// Elementwise functions. They work in the element's own precision and follow IEEE 754 at infinities and NaN.
/// How accurate each is, in units in the last place, is in the repository's `docs/accuracy.md`.
#[twins]
pub trait Functions: TensorLike {
    /// -x. PyTorch: `neg`.
    fn try_neg(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Neg, Site::here("neg"))
    }

    /// |x|. Derivative 0 at 0. PyTorch: `abs`.
    fn try_abs(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Abs, Site::here("abs"))
    }

    /// -1, 0 or 1; 0 at NaN. PyTorch: `sign`, `sgn`.
    fn try_sign(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Sign, Site::here("sign"))
    }

    /// 1/x. PyTorch: `reciprocal`.
    fn try_reciprocal(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Reciprocal, Site::here("reciprocal"))
    }

    /// x². PyTorch: `square`.
    fn try_square(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Square, Site::here("square"))
    }

    /// √x; NaN below 0. PyTorch: `sqrt`.
    fn try_sqrt(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Sqrt, Site::here("sqrt"))
    }

    /// Largest integer not above x. PyTorch: `floor`.
    fn try_floor(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Floor, Site::here("floor"))
    }

    /// Smallest integer not below x. PyTorch: `ceil`.
    fn try_ceil(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Ceil, Site::here("ceil"))
    }

    /// Nearest integer, ties to even. PyTorch: `round`.
    fn try_round(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Round, Site::here("round"))
    }

    /// Integer part. PyTorch: `trunc`.
    fn try_trunc(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Trunc, Site::here("trunc"))
    }

    /// eˣ. PyTorch: `exp`.
    fn try_exp(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Exp, Site::here("exp"))
    }

    /// 2ˣ. PyTorch: `exp2`.
    fn try_exp2(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Exp2, Site::here("exp2"))
    }

    /// eˣ - 1, accurate near 0. PyTorch: `expm1`.
    fn try_expm1(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Expm1, Site::here("expm1"))
    }

    /// ln x; -∞ at 0, NaN below. PyTorch: `log`.
    fn try_log(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Log, Site::here("log"))
    }

    /// log₂ x. PyTorch: `log2`.
    fn try_log2(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Log2, Site::here("log2"))
    }

    /// log₁₀ x. PyTorch: `log10`.
    fn try_log10(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Log10, Site::here("log10"))
    }

    /// ln(1 + x), accurate near 0. PyTorch: `log1p`.
    fn try_log1p(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Log1p, Site::here("log1p"))
    }

    /// sin x, x in radians. PyTorch: `sin`.
    fn try_sin(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Sin, Site::here("sin"))
    }

    /// cos x, x in radians. PyTorch: `cos`.
    fn try_cos(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Cos, Site::here("cos"))
    }

    /// tan x, x in radians. PyTorch: `tan`.
    fn try_tan(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Tan, Site::here("tan"))
    }

    /// Inverse sine, in radians; NaN outside [-1, 1]. PyTorch: `asin`.
    fn try_asin(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Asin, Site::here("asin"))
    }

    /// Inverse cosine, in radians; NaN outside [-1, 1]. PyTorch: `acos`.
    fn try_acos(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Acos, Site::here("acos"))
    }

    /// Inverse tangent, in radians. PyTorch: `atan`.
    fn try_atan(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Atan, Site::here("atan"))
    }

    /// Hyperbolic sine. PyTorch: `sinh`.
    fn try_sinh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Sinh, Site::here("sinh"))
    }

    /// Hyperbolic cosine. PyTorch: `cosh`.
    fn try_cosh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Cosh, Site::here("cosh"))
    }

    /// Hyperbolic tangent. PyTorch: `tanh`.
    fn try_tanh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Tanh, Site::here("tanh"))
    }

    /// Inverse hyperbolic sine. PyTorch: `asinh`.
    fn try_asinh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Asinh, Site::here("asinh"))
    }

    /// Inverse hyperbolic cosine; NaN below 1. PyTorch: `acosh`.
    fn try_acosh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Acosh, Site::here("acosh"))
    }

    /// Inverse hyperbolic tangent; NaN outside [-1, 1]. PyTorch: `atanh`.
    fn try_atanh(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Atanh, Site::here("atanh"))
    }

    /// 1/(1 + e⁻ˣ), exact at ±∞. PyTorch: `sigmoid`.
    fn try_sigmoid(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Sigmoid, Site::here("sigmoid"))
    }

    /// max(x, 0); NaN stays NaN. Derivative 0 at 0. PyTorch: `relu`.
    fn try_relu(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Number,
    {
        self.apply_unary(Unary::Relu, Site::here("relu"))
    }

    /// Error function. PyTorch: `erf`.
    fn try_erf(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Erf, Site::here("erf"))
    }

    /// 1 - erf x, accurate where erf is near 1. PyTorch: `erfc`.
    fn try_erfc(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Erfc, Site::here("erfc"))
    }

    /// Inverse of erf; ±∞ at ±1, NaN outside. PyTorch: `erfinv`.
    fn try_erfinv(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Erfinv, Site::here("erfinv"))
    }

    /// ln |Γ(x)|; ∞ at 0 and the negative integers. PyTorch: `lgamma`.
    fn try_lgamma(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Lgamma, Site::here("lgamma"))
    }

    /// Derivative of ln Γ. PyTorch: `digamma`.
    fn try_digamma(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Digamma, Site::here("digamma"))
    }

    /// Derivative of digamma, to nine digits. PyTorch: `polygamma(1, x)`.
    fn try_trigamma(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        self.apply_unary(Unary::Trigamma, Site::here("trigamma"))
    }

    /// Not: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_not`.
    fn try_bitwise_not(&self) -> Result<Self, Self::Error> {
        self.apply_unary(Unary::Not, Site::here("bitwise_not"))
    }

    /// 1/√x; ∞ at 0, NaN below. PyTorch: `rsqrt`.
    fn try_rsqrt(&self) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        let at = Site::here("rsqrt");
        self.apply_unary(Unary::Sqrt, at)?.apply_unary(Unary::Reciprocal, at)
    }
}

impl<A: TensorLike> Functions for A {}
