//! Activation functions of neural networks, by PyTorch's names (`torch.nn.functional`).
//!
//! Most activations are composed of other operations, which give their derivatives. At a kink, the formula is chosen so that the derivative
//! equals PyTorch's. A selection computes both branches for every element. An overflow in the branch that is not selected would give the
//! gradient 0 · ∞ = NaN. So a branch that can overflow gets a harmless argument for the elements where it is not selected.

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use wengert_macros::twins;

use crate::ops::{
    Arithmetic, ArrayOperand, Comparison, Compose, Composite, Functions, Result, TensorLike, Views, try_where_,
};
use crate::scalar::formula::Formula;
use crate::{Binary, Compare, Float, Position, Scalar, Shape, Site, Unary, ensure};

/// Activation functions.
#[twins(blanket)]
pub trait Activations: TensorLike<Elem: Float> {
    /// Returns min(max(x, 0), 6). Derivative 0 at both bounds. PyTorch: `relu6`.
    fn try_relu6(&self) -> Result<Self> {
        clamp_strictly(self, 0.0, 6.0)
    }

    /// Returns min(max(x, `low`), `high`). Derivative 0 at both bounds. Refuses a `low` above `high`. PyTorch: `hardtanh`.
    #[in_place]
    fn try_hardtanh(&self, low: f64, high: f64) -> Result<Self> {
        let is_reversed = low > high;
        ensure!(!is_reversed, Site::here("hardtanh"), "min_val cannot be greater than max_val");
        clamp_strictly(self, low, high)
    }

    /// Returns x where x > 0, and `slope`·x elsewhere. PyTorch: `leaky_relu`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([-2.0, 3.0]).leaky_relu(0.1).to_vec(), [-0.2, 3.0]);
    /// ```
    #[in_place]
    fn try_leaky_relu(&self, slope: f64) -> Result<Self> {
        activate(self, Activation::LeakyRelu(slope), Site::here("leaky_relu"))
    }

    /// Returns [`leaky_relu`](Self::leaky_relu) with the slopes `weight`, which can be trained: one slope for all elements, or one per
    /// channel (dimension 1). Refuses other numbers of slopes, and a `weight` of rank above 1. PyTorch: `prelu`.
    fn try_prelu(&self, weight: impl ArrayOperand<Self>) -> Result<Self> {
        let weight = &weight.into_array(self)?;
        let at = Site::here("prelu");
        let (shape, slopes) = (self.shape(), weight.shape());
        let (rank, count) = (slopes.rank(), slopes.numel());
        ensure!(rank <= 1, at, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {rank}");
        let channels = if shape.rank() > 1 { shape[1] } else { 1 };
        ensure!(
            count == 1 || shape.rank() > 0 && count == channels,
            at,
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel size = \
             {channels}."
        );
        let mut aligned = Shape::ones(shape.rank());
        if count != 1 && shape.rank() > 1 {
            aligned[1] = channels;
        }
        let slope = weight.try_reshape(aligned)?.try_expand(&shape)?;
        self.apply_binary(Binary::Prelu, &slope, at)
    }

    /// Returns x where x > 0, and α(eˣ - 1) elsewhere. Derivative α at 0. PyTorch: `elu`.
    #[in_place]
    fn try_elu(&self, alpha: f64) -> Result<Self> {
        activate(self, Activation::Exponential { scale: 1.0, alpha, rate: 1.0 }, Site::here("elu"))
    }

    /// Returns x where x > 0, and α(e^(x/α) - 1) elsewhere. Derivative 1 at 0. Refuses α = 0. PyTorch: `celu`.
    #[in_place]
    fn try_celu(&self, alpha: f64) -> Result<Self> {
        let at = Site::here("celu");
        ensure!(alpha != 0.0, at, "ZeroDivisionError: alpha cannot be 0 for CELU");
        activate(self, Activation::Exponential { scale: 1.0, alpha, rate: 1.0 / alpha }, at)
    }

    /// Returns [`elu`](Self::elu) with a fixed α, times a fixed scale. Both constants keep activations at mean 0 and variance 1 (Klambauer
    /// et al., "Self-Normalizing Neural Networks", 2017). PyTorch: `selu`.
    #[in_place]
    fn try_selu(&self) -> Result<Self> {
        const SCALE: f64 = 1.050_700_987_355_480_5;
        const ALPHA: f64 = 1.673_263_242_354_377_2;
        let unit = Activation::Exponential { scale: SCALE, alpha: SCALE * ALPHA, rate: 1.0 };
        activate(self, unit, Site::here("selu"))
    }

    /// Returns x Φ(x), where Φ is the normal distribution function. NaN at -∞. PyTorch: `gelu`.
    fn try_gelu(&self) -> Result<Self> {
        Self::apply_composite([self], &Activation::Gelu, Site::here("gelu"))
    }

    /// Returns the approximation x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))). NaN at -∞. PyTorch: `gelu` with `approximate='tanh'`.
    fn try_gelu_tanh(&self) -> Result<Self> {
        activate(self, Activation::GeluTanh, Site::here("gelu_tanh"))
    }

    /// Returns x σ(x), where σ is the [`sigmoid`](crate::ops::Functions::sigmoid). NaN at -∞. PyTorch: `silu`.
    fn try_silu(&self) -> Result<Self> {
        activate(self, Activation::Silu, Site::here("silu"))
    }

    /// Returns x tanh(ln(1 + eˣ)). NaN at -∞. PyTorch: `mish`.
    fn try_mish(&self) -> Result<Self> {
        activate(self, Activation::Mish, Site::here("mish"))
    }

    /// Returns ln(1 + e^(βx)) / β, and x where βx is above `threshold`. PyTorch: `softplus`.
    fn try_softplus(&self, beta: f64, threshold: f64) -> Result<Self> {
        activate(self, Activation::Softplus { beta, threshold }, Site::here("softplus"))
    }

    /// Returns x / (1 + |x|). The result is NaN at ±∞. PyTorch: `softsign`.
    fn try_softsign(&self) -> Result<Self> {
        activate(self, Activation::Softsign, Site::here("softsign"))
    }

    /// Returns x - tanh x. PyTorch: `tanhshrink`.
    fn try_tanhshrink(&self) -> Result<Self> {
        activate(self, Activation::Tanhshrink, Site::here("tanhshrink"))
    }

    /// Returns x, except that values from -λ to λ (both included) become 0. PyTorch: `hardshrink`.
    fn try_hardshrink(&self, lambda: f64) -> Result<Self> {
        activate(self, Activation::Hardshrink(lambda), Site::here("hardshrink"))
    }

    /// Returns x moved by λ toward 0. Values from -λ to λ become 0. Refuses a negative or NaN λ. PyTorch: `softshrink`.
    fn try_softshrink(&self, lambda: f64) -> Result<Self> {
        let at = Site::here("softshrink");
        ensure!(lambda >= 0.0, at, "lambda must be greater or equal to 0, but found to be {lambda}.");
        activate(self, Activation::Softshrink(lambda), at)
    }

    /// Returns x where x > `threshold` or x is NaN, and `value` elsewhere. PyTorch: `threshold`.
    #[in_place]
    fn try_threshold(&self, threshold: f64, value: f64) -> Result<Self> {
        activate(self, Activation::Threshold { threshold, value }, Site::here("threshold"))
    }

    /// Returns x · min(max(x + 3, 0), 6) / 6. NaN at -∞, with derivative 0. Derivative 0 at -3 and 1 at 3. x itself is the result for x ≥ 3,
    /// so that nothing overflows. PyTorch: `hardswish`.
    fn try_hardswish(&self) -> Result<Self> {
        activate(self, Activation::Hardswish, Site::here("hardswish"))
    }

    /// Returns min(max(x + 3, 0), 6) / 6. Derivative 0 at ±3. As in PyTorch, taking a second derivative is an error. PyTorch:
    /// `hardsigmoid`.
    fn try_hardsigmoid(&self) -> Result<Self> {
        self.apply_unary(Unary::Hardsigmoid, Site::here("hardsigmoid"))
    }

    /// Returns ln σ(x), where σ is the sigmoid, without loss of accuracy for large |x|. PyTorch: `logsigmoid`.
    fn try_logsigmoid(&self) -> Result<Self> {
        activate(self, Activation::LogSigmoid, Site::here("logsigmoid"))
    }

    /// Returns the first half along `dim` times the sigmoid of the second half. Refuses an odd size, and rank 0. PyTorch: `glu`.
    fn try_glu(&self, dim: impl Position) -> Result<Self> {
        let at = Site::here("glu");
        let shape = self.shape();
        ensure!(shape.rank() > 0, at, "glu does not support 0-dimensional tensors");
        let axis = crate::axis(dim, shape.rank(), at)?;
        let size = shape[axis];
        ensure!(size.is_multiple_of(2), at, "Halving dimension must be even, but dimension {axis} is size {size}");
        let half = (size / 2) as isize;
        let gate = self.try_narrow(axis as isize, half, half)?.try_sigmoid()?;
        self.try_narrow(axis as isize, 0, half)?.try_mul(&gate)
    }
}

/// The activations that are composed of several elementwise operations.
enum Activation {
    /// min(max(x, low), high). The fields are `low` and `high`.
    Clamp(f64, f64),
    LeakyRelu(f64),
    /// See [`exponential_unit`].
    Exponential {
        scale: f64,
        alpha: f64,
        rate: f64,
    },
    Gelu,
    GeluTanh,
    Silu,
    Mish,
    Softplus {
        beta: f64,
        threshold: f64,
    },
    Softsign,
    Tanhshrink,
    Hardshrink(f64),
    Softshrink(f64),
    Threshold {
        threshold: f64,
        value: f64,
    },
    Hardswish,
    LogSigmoid,
}

impl Composite for Activation {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        match *self {
            Activation::Clamp(low, high) => clamp(x, low, high),
            Activation::LeakyRelu(slope) if x.is_plain() => x.combine(Binary::Prelu, slope, at),
            Activation::LeakyRelu(slope) => try_where_(&x.try_gt(0.0)?, x, &x.try_mul(slope)?),
            Activation::Exponential { scale, alpha, rate } => exponential_unit(x, scale, alpha, rate),
            Activation::Gelu => x.apply_binary(Binary::Mul, &x.apply_unary(Unary::Ndtr, at)?, at),
            Activation::GeluTanh => {
                let cube = x.try_mul(x)?.try_mul(x)?;
                let inner = x.try_add(&cube.try_mul(0.044_715)?)?.try_mul(SQRT_2 * FRAC_2_SQRT_PI * 0.5)?;
                x.try_mul(0.5)?.try_mul(&inner.try_tanh()?.try_add(1.0)?)
            }
            Activation::Silu => x.try_mul(&x.try_sigmoid()?),
            Activation::Mish => x.try_mul(&softplus(x, 1.0, 20.0)?.try_tanh()?),
            Activation::Softplus { beta, threshold } => softplus(x, beta, threshold),
            Activation::Softsign => x.try_div(&x.try_abs()?.try_add(1.0)?),
            Activation::Tanhshrink => x.try_sub(&x.try_tanh()?),
            Activation::Hardshrink(lambda) => try_where_(&is_within(x, lambda)?, &zero(x)?, x),
            Activation::Softshrink(lambda) => {
                let above = try_where_(&x.try_gt(lambda)?, &x.try_sub(lambda)?, &x.try_add(lambda)?)?;
                try_where_(&is_within(x, lambda)?, &zero(x)?, &above)
            }
            Activation::Threshold { threshold, value } => {
                try_where_(&x.try_le(threshold)?, &zero(x)?.try_add(value)?, x)
            }
            Activation::Hardswish => {
                let (low, high) = (x.try_le(-3.0)?, x.try_ge(3.0)?);
                let inner = try_where_(&low.try_logical_or(&high)?, &zero(x)?, x)?;
                let curved = inner.try_mul(&inner.try_add(3.0)?)?.try_div(6.0)?;
                // For x ≤ -3, the result is 0 · x, which is NaN at -∞, as in PyTorch.
                try_where_(&low, &x.try_detach()?.try_mul(0.0)?, &try_where_(&high, x, &curved)?)
            }
            Activation::LogSigmoid => log_sigmoid(x, at),
        }
    }

    fn formula(&self) -> Option<Formula> {
        match *self {
            Activation::Clamp(low, high) => Some(Formula::Clamp { low, high }),
            Activation::Hardswish => Some(Formula::Hardswish),
            Activation::Hardshrink(bound) => Some(Formula::Hardshrink { bound }),
            Activation::Softshrink(bound) => Some(Formula::Softshrink { bound }),
            Activation::Threshold { threshold, value } => Some(Formula::Threshold { threshold, value }),
            _ => None,
        }
    }
}

#[track_caller]
fn activate<A: TensorLike<Elem: Float>>(x: &A, activation: Activation, at: Site) -> Result<A> {
    A::apply_elementwise_composite([x], &activation, at)
}

/// Returns ln σ(x) as min(x, 0) - ln(1 + e^-|x|), which does not overflow. The derivative at 0 is 1/2.
pub(crate) fn log_sigmoid<A: TensorLike<Elem: Float>>(x: &A, at: Site) -> Result<A> {
    let negative = x.apply_unary(Unary::Neg, at)?;
    let positive = x.compare(Compare::Ge, 0.0, at)?;
    let below = negative.choose(&positive, x, at)?;
    let part = x.fill_shape(0.0, &x.shape(), at)?.choose(&positive, x, at)?;
    part.minus(&below.apply_unary(Unary::Exp, at)?.apply_unary(Unary::Log1p, at)?, at)
}

#[track_caller]
fn is_within<A: TensorLike<Elem: Float>>(x: &A, bound: f64) -> Result<A::Mask> {
    x.try_ge(-bound)?.try_logical_and(&x.try_le(bound)?)
}

/// Returns a constant zero in the shape of `x`.
#[track_caller]
fn zero<A: TensorLike<Elem: Float>>(x: &A) -> Result<A> {
    let zero = x.try_constant(&crate::Tensor::scalar(A::Elem::ZERO))?;
    zero.try_expand(x.shape())
}

/// Returns min(max(`x`, `low`), `high`), which is NaN where `x` is NaN. The derivative is 1 strictly between the bounds, and 0 elsewhere.
#[track_caller]
pub(crate) fn clamp_strictly<A: TensorLike<Elem: Float>>(x: &A, low: f64, high: f64) -> Result<A> {
    activate(x, Activation::Clamp(low, high), Site::here("clamp"))
}

/// Does the same as [`clamp_strictly`], primitive by primitive.
#[track_caller]
fn clamp<A: TensorLike<Elem: Float>>(x: &A, low: f64, high: f64) -> Result<A> {
    if x.is_plain() {
        return x.try_maximum(low)?.try_minimum(high);
    }
    let inside = x.try_gt(low)?.try_logical_and(&x.try_lt(high)?)?;
    let bounded = x.try_detach()?.try_maximum(low)?.try_minimum(high)?;
    try_where_(&inside, x, &bounded)
}

/// Returns ln(1 + e^(βx)) / β, and x where βx is above `threshold`.
#[track_caller]
fn softplus<A: TensorLike<Elem: Float>>(x: &A, beta: f64, threshold: f64) -> Result<A> {
    let scaled = x.try_mul(beta)?;
    let linear = scaled.try_gt(threshold)?;
    let curved = try_where_(&linear, &zero(x)?, &scaled)?;
    let curved = curved.try_exp()?.try_log1p()?.try_div(beta)?;
    let curved = try_where_(&linear, x, &curved)?;
    if x.is_plain() {
        return Ok(curved);
    }
    // As in PyTorch, the slope at the threshold is the slope of the curve, σ(threshold), and the second derivative is 0.
    let tangent = x.try_mul(1.0 / (1.0 + libm::exp(-threshold)))?;
    let tangent = tangent.try_add(&curved.try_sub(&tangent)?.try_detach()?)?;
    try_where_(&Comparison::try_eq(&scaled, threshold)?, &tangent, &curved)
}

/// Returns `scale`·x where x > 0, and `alpha`·(e^(`rate`·x) - 1) elsewhere.
#[track_caller]
fn exponential_unit<A: TensorLike<Elem: Float>>(x: &A, scale: f64, alpha: f64, rate: f64) -> Result<A> {
    // The comparison is false for NaN, so that NaN takes the curved branch and stays NaN.
    let (values, positive) = (x.try_detach()?, x.try_gt(0.0)?);
    let negative = try_where_(&positive, &zero(x)?, &values)?;
    let curved = negative.try_mul(rate)?.try_expm1()?.try_mul(alpha)?;
    let result = try_where_(&positive, &values.try_mul(scale)?, &curved)?;
    if x.is_plain() {
        return Ok(result);
    }
    // The slope `alpha` · `rate` · e^(`rate`·x) is accurate where the curve is flat. Computed from the result as 1 + (eˣ - 1), it would be
    // 0 there. As in PyTorch, the slope at 0 is the slope of the curve, and the second derivative is 0.
    let below = try_where_(&x.try_ge(0.0)?, &zero(x)?, x)?;
    let slope = below.try_mul(rate)?.try_exp()?.try_mul(alpha * rate)?;
    let slope = try_where_(&positive, &zero(x)?.try_add(scale)?, &slope)?;
    result.with_derivative(|| Ok(vec![(x.clone(), Some(slope))]), Site::here("elu"))
}

#[cfg(test)]
mod tests {
    use crate::ops::elementwise::activations::Activation;
    use crate::ops::primitive::testing::check_formula;
    use crate::prelude::*;

    #[test]
    fn formulas_have_the_bits_of_separate_operations() {
        for (low, high) in [(-0.7, 1.5), (2.0, -1.0), (-1.0, 1.0), (0.0, 6.0)] {
            check_formula(&Activation::Clamp(low, high));
        }
        let threshold = Activation::Threshold { threshold: 0.1, value: 2.0 };
        let others = [Activation::Hardshrink(0.5), Activation::Softshrink(0.5), Activation::Softshrink(0.0)];
        others.iter().chain([&Activation::Hardswish, &threshold]).for_each(check_formula);
    }

    #[test]
    fn edges() {
        let inf = f64::INFINITY;
        let x = Tensor::from([-inf, -3.0, 0.0, 3.0, inf]);
        assert_eq!(x.relu6().to_vec(), [0.0, 0.0, 0.0, 3.0, 6.0]);
        assert_eq!(x.hardswish().to_vec()[1..], [0.0, 0.0, 3.0, inf]);
        assert!(x.hardswish().to_vec()[0].is_nan());
        assert_eq!(Tensor::scalar(f64::MAX).hardswish().item(), f64::MAX);
        assert_eq!(x.softplus(1.0, 20.0).to_vec()[4], inf);
        assert_eq!(x.elu(2.0).to_vec()[0], -2.0);
        let nan = Tensor::scalar(f64::NAN);
        assert!(nan.elu(1.0).item().is_nan() && nan.selu().item().is_nan() && nan.celu(0.5).item().is_nan());
        assert_eq!(x.logsigmoid().to_vec()[0], -inf);
        assert!(x.gelu().to_vec()[0].is_nan() && x.silu().to_vec()[0].is_nan() && x.mish().to_vec()[0].is_nan());
        assert_eq!(Tensor::from([-40.0f64]).gelu().to_vec()[0], -20.0 * libm::erfc(40.0 / 2f64.sqrt()));
    }

    #[test]
    fn the_bounds_of_hardtanh_are_ordered() {
        let x = Tensor::from([0.5, 2.0]);
        assert_eq!(x.try_hardtanh(1.0, -1.0).unwrap_err().sentence(), "min_val cannot be greater than max_val");
        assert_eq!(x.hardtanh(1.0, 1.0).to_vec(), [1.0, 1.0]);
    }

    #[test]
    fn glu_needs_an_even_size() {
        let error = Tensor::<f32>::ones([2, 3]).try_glu(-1).unwrap_err();
        assert_eq!(error.sentence(), "Halving dimension must be even, but dimension 1 is size 3");
    }
}
