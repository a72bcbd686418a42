//! Functions of one operand.

use crate::ops::{TensorLike, twin};
use crate::scalar::instruction::Unary;
use crate::{Float, Number};

/// Writes the methods that are one instruction each.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident | $try_name:ident [$($clause:tt)*] = $op:ident;)*) => {
        twin! { trait $(
            $(#[$doc])*
            fn $name | $try_name(&self) -> Self [$($clause)*] = at { self.apply_unary(Unary::$op, at) }
        )* }
    };
}

/// Elementwise functions. They work in the element's own precision and follow IEEE 754 at infinities and NaN.
/// How accurate each is, in units in the last place, is in the repository's `docs/accuracy.md`.
pub trait Functions: TensorLike {
    functions! {
        /// -x. PyTorch: `neg`.
        neg | try_neg [Self::Elem: Number] = Neg;
        /// |x|. Derivative 0 at 0. PyTorch: `abs`.
        abs | try_abs [Self::Elem: Number] = Abs;
        /// -1, 0 or 1; 0 at NaN. PyTorch: `sign`, `sgn`.
        sign | try_sign [Self::Elem: Number] = Sign;
        /// 1/x. PyTorch: `reciprocal`.
        reciprocal | try_reciprocal [Self::Elem: Float] = Reciprocal;
        /// x². PyTorch: `square`.
        square | try_square [Self::Elem: Number] = Square;
        /// √x; NaN below 0. PyTorch: `sqrt`.
        sqrt | try_sqrt [Self::Elem: Float] = Sqrt;
        /// Largest integer not above x. PyTorch: `floor`.
        floor | try_floor [Self::Elem: Number] = Floor;
        /// Smallest integer not below x. PyTorch: `ceil`.
        ceil | try_ceil [Self::Elem: Number] = Ceil;
        /// Nearest integer, ties to even. PyTorch: `round`.
        round | try_round [Self::Elem: Number] = Round;
        /// Integer part. PyTorch: `trunc`.
        trunc | try_trunc [Self::Elem: Number] = Trunc;
        /// eˣ. PyTorch: `exp`.
        exp | try_exp [Self::Elem: Float] = Exp;
        /// 2ˣ. PyTorch: `exp2`.
        exp2 | try_exp2 [Self::Elem: Float] = Exp2;
        /// eˣ - 1, accurate near 0. PyTorch: `expm1`.
        expm1 | try_expm1 [Self::Elem: Float] = Expm1;
        /// ln x; -∞ at 0, NaN below. PyTorch: `log`.
        log | try_log [Self::Elem: Float] = Log;
        /// log₂ x. PyTorch: `log2`.
        log2 | try_log2 [Self::Elem: Float] = Log2;
        /// log₁₀ x. PyTorch: `log10`.
        log10 | try_log10 [Self::Elem: Float] = Log10;
        /// ln(1 + x), accurate near 0. PyTorch: `log1p`.
        log1p | try_log1p [Self::Elem: Float] = Log1p;
        /// sin x, x in radians. PyTorch: `sin`.
        sin | try_sin [Self::Elem: Float] = Sin;
        /// cos x, x in radians. PyTorch: `cos`.
        cos | try_cos [Self::Elem: Float] = Cos;
        /// tan x, x in radians. PyTorch: `tan`.
        tan | try_tan [Self::Elem: Float] = Tan;
        /// Inverse sine, in radians; NaN outside [-1, 1]. PyTorch: `asin`.
        asin | try_asin [Self::Elem: Float] = Asin;
        /// Inverse cosine, in radians; NaN outside [-1, 1]. PyTorch: `acos`.
        acos | try_acos [Self::Elem: Float] = Acos;
        /// Inverse tangent, in radians. PyTorch: `atan`.
        atan | try_atan [Self::Elem: Float] = Atan;
        /// Hyperbolic sine. PyTorch: `sinh`.
        sinh | try_sinh [Self::Elem: Float] = Sinh;
        /// Hyperbolic cosine. PyTorch: `cosh`.
        cosh | try_cosh [Self::Elem: Float] = Cosh;
        /// Hyperbolic tangent. PyTorch: `tanh`.
        tanh | try_tanh [Self::Elem: Float] = Tanh;
        /// Inverse hyperbolic sine. PyTorch: `asinh`.
        asinh | try_asinh [Self::Elem: Float] = Asinh;
        /// Inverse hyperbolic cosine; NaN below 1. PyTorch: `acosh`.
        acosh | try_acosh [Self::Elem: Float] = Acosh;
        /// Inverse hyperbolic tangent; NaN outside [-1, 1]. PyTorch: `atanh`.
        atanh | try_atanh [Self::Elem: Float] = Atanh;
        /// 1/(1 + e⁻ˣ), exact at ±∞. PyTorch: `sigmoid`.
        sigmoid | try_sigmoid [Self::Elem: Float] = Sigmoid;
        /// max(x, 0); NaN stays NaN. Derivative 0 at 0. PyTorch: `relu`.
        relu | try_relu [Self::Elem: Number] = Relu;
        /// Error function. PyTorch: `erf`.
        erf | try_erf [Self::Elem: Float] = Erf;
        /// 1 - erf x, accurate where erf is near 1. PyTorch: `erfc`.
        erfc | try_erfc [Self::Elem: Float] = Erfc;
        /// Inverse of erf; ±∞ at ±1, NaN outside. PyTorch: `erfinv`.
        erfinv | try_erfinv [Self::Elem: Float] = Erfinv;
        /// ln |Γ(x)|; ∞ at 0 and the negative integers. PyTorch: `lgamma`.
        lgamma | try_lgamma [Self::Elem: Float] = Lgamma;
        /// Derivative of ln Γ. PyTorch: `digamma`.
        digamma | try_digamma [Self::Elem: Float] = Digamma;
        /// Derivative of digamma, to nine digits. PyTorch: `polygamma(1, x)`.
        trigamma | try_trigamma [Self::Elem: Float] = Trigamma;
        /// Not: bit by bit for integers, logical for `bool`. PyTorch: `bitwise_not`.
        bitwise_not | try_bitwise_not [] = Not;
    }

    twin! { trait
        /// 1/√x; ∞ at 0, NaN below. PyTorch: `rsqrt`.
        fn rsqrt | try_rsqrt(&self) -> Self [Self::Elem: Float] = at {
            self.apply_unary(Unary::Sqrt, at)?.apply_unary(Unary::Reciprocal, at)
        }
    }
}

impl<A: TensorLike> Functions for A {}
