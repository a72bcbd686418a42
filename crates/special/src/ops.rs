//! The special functions as methods of tensors and variables.

use std::f64::consts::PI;

use wengert_macros::twins;
use wengert_tensor::compat::BroadcastRule;
use wengert_tensor::ops::{Argument, Arithmetic, Comparison, Functions, Masking, Mixed, Operand, Result, Views};
use wengert_tensor::{Scalar, Site, Unary, View};

use crate::array::Array;
use crate::function::Function;
use crate::numeric::jet::factorial;

/// Special functions, computed for each element x of `self`. The shapes of several operands broadcast. All methods
/// return an error if the shapes do not broadcast, or memory cannot hold the result.
///
/// ```
/// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
/// use wengert::{prelude::*, special::prelude::*};
///
/// let x = Tensor::<f64>::from([-40.0, 0.0, 1.0]);
/// assert!((x.log_ndtr().get(&[0]).unwrap() + 804.608442013754).abs() < 1e-12); // ln Φ(-40), although Φ(-40) is 0
/// assert_eq!(Tensor::from([[1.0], [2.0]]).betaln(&Tensor::from([1.0, 2.0, 3.0])).shape(), &[2, 3]);
/// ```
#[twins(blanket)]
pub trait Special: Array {
    /// Returns Φ(x), the distribution function of the standard normal distribution. PyTorch: `special.ndtr`.
    fn try_ndtr(&self) -> Result<Self> {
        self.apply_unary(Unary::Ndtr, Site::here("ndtr"))
    }

    /// Returns ln Φ(x), accurate where Φ underflows; -∞ at -∞. PyTorch: `special.log_ndtr`.
    fn try_log_ndtr(&self) -> Result<Self> {
        apply(Function::LogNdtr, [self.clone()], Site::here("log_ndtr"))
    }

    /// Returns the inverse of the standard normal distribution function: ∓∞ at 0 and 1, NaN outside of [0, 1]. PyTorch: `special.ndtri`.
    fn try_ndtri(&self) -> Result<Self> {
        apply(Function::Ndtri, [self.clone()], Site::here("ndtri"))
    }

    /// Returns exp(x²) erfc x: 0 at ∞, and ∞ where it overflows (for x < -26.63 in f64, x < -9.39 in f32). Its derivative 2x erfcx x - 2/√π
    /// is a difference of nearly equal numbers for large x, so its relative error grows like x². PyTorch: `special.erfcx`.
    fn try_erfcx(&self) -> Result<Self> {
        apply(Function::Erfcx, [self.clone()], Site::here("erfcx"))
    }

    /// Returns ln(1 - eˣ), accurate near 0 and for large negative x: -∞ at 0, NaN for x > 0. If x is the logarithm of a probability, the
    /// result is the logarithm of the complementary probability.
    fn try_log1mexp(&self) -> Result<Self> {
        apply(Function::Log1mexp, [self.clone()], Site::here("log1mexp"))
    }

    /// Returns -x ln x, the terms of an entropy: 0 at 0, -∞ below. The derivative -1 - ln x is ∞ at 0 and NaN below. PyTorch:
    /// `special.entr`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
    /// use wengert::{prelude::*, special::prelude::*};
    ///
    /// let entropy = Tensor::<f64>::from([0.5, 0.5, 0.0]).entr().sum(..).item();
    /// assert!((entropy - 2f64.ln()).abs() < 1e-15);
    /// ```
    fn try_entr(&self) -> Result<Self> {
        let at = Site::here("entr");
        let x = self.try_detach()?;
        // The first operand is -x, because 0 · ln 0 must be 0 and not -0.
        let value = x.try_neg()?.try_xlogy(&x)?.try_masked_fill(x.try_lt(0.0)?, f64::NEG_INFINITY)?;
        value.with_derivative(|| Ok(vec![(self.clone(), Some(self.try_log()?.try_add(1.0)?.try_neg()?))]), at)
    }

    /// Returns the modified Bessel function of the first kind of order 0; ∞ at ±∞. PyTorch: `special.i0`, `special.modified_bessel_i0`.
    #[doc(alias("modified_bessel_i0"))]
    fn try_i0(&self) -> Result<Self> {
        apply(Function::Bessel { order: 0, scaled: false }, [self.clone()], Site::here("i0"))
    }

    /// Returns exp(-|x|) I₀(x), where I₀ is [`i0`](Self::i0). The derivative at 0 is 0, the mean of the one-sided derivatives. The second
    /// derivative at 0 is 1/2, as in PyTorch. PyTorch: `special.i0e`.
    fn try_i0e(&self) -> Result<Self> {
        apply(Function::Bessel { order: 0, scaled: true }, [self.clone()], Site::here("i0e"))
    }

    /// Returns the modified Bessel function of the first kind of order 1; ±∞ at ±∞. PyTorch: `special.i1`, `special.modified_bessel_i1`.
    #[doc(alias("modified_bessel_i1"))]
    fn try_i1(&self) -> Result<Self> {
        apply(Function::Bessel { order: 1, scaled: false }, [self.clone()], Site::here("i1"))
    }

    /// Returns exp(-|x|) I₁(x), where I₁ is [`i1`](Self::i1). PyTorch: `special.i1e`.
    fn try_i1e(&self) -> Result<Self> {
        apply(Function::Bessel { order: 1, scaled: true }, [self.clone()], Site::here("i1e"))
    }

    /// Returns the Bessel function of the first kind of order 0; 0 at ±∞, where PyTorch returns NaN. PyTorch: `special.bessel_j0`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
    /// use wengert::{prelude::*, special::prelude::*};
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([0.0, 2.404825557695773])); // the second number is a root
    /// let y = x.bessel_j0();
    /// assert!((y.value() - Tensor::from([1.0, 0.0])).abs().amax(..).item() < 1e-15);
    /// let [slope] = y.sum(..).grad([x]);
    /// assert!((slope.value() + x.value().bessel_j1()).abs().amax(..).item() < 1e-15); // the derivative is -J₁
    /// ```
    fn try_bessel_j0(&self) -> Result<Self> {
        apply(Function::BesselJ { order: 0 }, [self.clone()], Site::here("bessel_j0"))
    }

    /// Returns the Bessel function of the first kind of order 1; 0 at ±∞, where PyTorch returns NaN. PyTorch: `special.bessel_j1`.
    fn try_bessel_j1(&self) -> Result<Self> {
        apply(Function::BesselJ { order: 1 }, [self.clone()], Site::here("bessel_j1"))
    }

    /// Returns the Bessel function of the second kind of order 0: -∞ at 0, and NaN below 0. It is 0 at ∞; PyTorch
    /// returns NaN there. The derivative is ∞ at 0. PyTorch: `special.bessel_y0`.
    fn try_bessel_y0(&self) -> Result<Self> {
        apply(Function::BesselY { order: 0 }, [self.clone()], Site::here("bessel_y0"))
    }

    /// Returns the Bessel function of the second kind of order 1: -∞ at 0, and NaN below 0. It is 0 at ∞; PyTorch
    /// returns NaN there. The derivative is ∞ at 0. PyTorch: `special.bessel_y1`.
    fn try_bessel_y1(&self) -> Result<Self> {
        apply(Function::BesselY { order: 1 }, [self.clone()], Site::here("bessel_y1"))
    }

    /// Returns ln |Γ(x)|; the same as `lgamma`. PyTorch: `special.gammaln`.
    fn try_gammaln(&self) -> Result<Self> {
        self.apply_unary(Unary::Lgamma, Site::here("gammaln"))
    }

    /// Returns the logarithm of the multivariate gamma function of dimension `p`. It is the sum of ln Γ(x - i/2) for i from 0 to `p` - 1,
    /// plus p (p - 1)/4 ln π; ∞ at ∞, and 0 for `p` = 0. PyTorch: `special.multigammaln`, which refuses `p` = 0.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the result.
    #[doc(alias("mvlgamma"))]
    fn try_multigammaln(&self, p: usize) -> Result<Self> {
        let constant = self.try_number(Scalar::from_f64((p * p.saturating_sub(1)) as f64 / 4.0 * PI.ln()))?;
        let mut sum = constant.apply_view(View::Expand(self.shape()), Site::here("multigammaln"))?;
        for i in 0..p {
            sum = sum.try_add(&self.try_sub(i as f64 / 2.0)?.try_lgamma()?)?;
        }
        Ok(sum)
    }

    /// Returns the derivative of order `n` of the digamma function: (-1)ⁿ⁺¹ n! ζ(n + 1, x) for n > 0, and digamma itself for n = 0.
    /// PyTorch: `special.polygamma(n, x)`, which has only nine correct digits for n = 1.
    fn try_polygamma(&self, n: usize) -> Result<Self> {
        if n == 0 {
            return self.try_digamma();
        }
        let at = Site::here("polygamma");
        let order = self.try_number(Scalar::from_f64((n + 1) as f64))?;
        let order = order.apply_view(View::Expand(self.shape()), at)?;
        order.try_zeta(self)?.try_mul(if n % 2 == 1 { factorial(n) } else { -factorial(n) })
    }

    /// Returns ln B(`self`, `b`), the logarithm of the beta function: ∞ if an operand is 0, -∞ if one is ∞. NaN if an operand is negative,
    /// or one is 0 and the other ∞. SciPy: `special.betaln`.
    fn try_betaln(&self, b: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("betaln");
        apply(Function::Betaln, broadcast_pair(self, b, at)?, at)
    }

    /// Returns the regularised lower incomplete gamma function: the integral of tᵃ⁻¹ e⁻ᵗ from 0 to `x`, divided by Γ(a), where a is `self`.
    /// It is the distribution function of the gamma distribution. NaN where an operand is negative, both are 0, or both are ∞. Both
    /// operands have gradients. PyTorch: `special.gammainc`, which has no gradient for `self`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
    /// use wengert::{prelude::*, special::prelude::*};
    ///
    /// let share = Tensor::<f64>::from([1.0]).gammainc(2.0).item();
    /// assert!((share - (1.0 - (-2f64).exp())).abs() < 1e-15);
    /// ```
    fn try_gammainc(&self, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gammainc");
        apply(Function::Gammainc { order: 0, upper: false }, broadcast_pair(self, x, at)?, at)
    }

    /// Returns the regularised upper incomplete gamma function, which is 1 - [`gammainc`](Self::gammainc) and accurate where the result is
    /// small. NaN where an operand is negative, both are 0, or both are ∞. PyTorch: `special.gammaincc`.
    fn try_gammaincc(&self, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gammaincc");
        apply(Function::Gammainc { order: 0, upper: true }, broadcast_pair(self, x, at)?, at)
    }

    /// Returns the x at which [`gammainc`](Self::gammainc) equals `p`: 0 for p = 0, ∞ for p = 1, NaN outside of [0, 1]. NaN unless `self`
    /// (the parameter a) is positive and finite. SciPy: `special.gammaincinv`.
    fn try_gammaincinv(&self, p: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gammaincinv");
        apply(Function::GammaincInv { upper: false }, broadcast_pair(self, p, at)?, at)
    }

    /// Returns the x at which [`gammaincc`](Self::gammaincc) equals `p`: ∞ for p = 0, 0 for p = 1, NaN outside of [0, 1]. NaN unless `self`
    /// (the parameter a) is positive and finite. SciPy: `special.gammainccinv`.
    fn try_gammainccinv(&self, p: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gammainccinv");
        apply(Function::GammaincInv { upper: true }, broadcast_pair(self, p, at)?, at)
    }

    /// Returns xᵃ⁻¹ e⁻ˣ / Γ(a) with a = `self`: the density of the gamma distribution, accurate for large a. For a > 0, it is 0
    /// for negative x. For a = 0, it is 0, and NaN at x = 0. For a < 0, it is NaN.
    fn try_gamma_density(&self, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gamma_density");
        apply(Function::GammaDensity, broadcast_pair(self, x, at)?, at)
    }

    /// Returns the derivative of a draw `x` from the gamma distribution with respect to its parameter a = `self`, at a fixed value of
    /// [`gammainc`](Self::gammainc). PyTorch: `_standard_gamma_grad`.
    fn try_gamma_draw_slope(&self, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("gamma_draw_slope");
        let inputs = broadcast_pair(self, x, at)?;
        let density = apply(Function::GammaDensity, inputs.clone(), at)?;
        apply(Function::Gammainc { order: 1, upper: false }, inputs, at)?.try_neg()?.try_div(&density)
    }

    /// Returns the derivative of a draw `x` from the beta distribution, at a fixed value of [`betainc`](Self::betainc). The derivative is
    /// with respect to `self` if `input` is 0, and to `b` if `input` is 1. PyTorch: `_dirichlet_grad`.
    fn try_beta_draw_slope(&self, b: impl Operand<Self>, x: impl Operand<Self>, input: usize) -> Result<Self> {
        let at = Site::here("beta_draw_slope");
        let inputs = broadcast_triple(self, b, x, at)?;
        let density = apply(Function::BetaDensity, inputs.clone(), at)?;
        let orders = if input == 0 { [1, 0] } else { [0, 1] };
        apply(Function::Betainc { orders, upper: false }, inputs, at)?.try_neg()?.try_div(&density)
    }

    /// Returns the regularised incomplete beta function: the integral of tᵃ⁻¹ (1 - t)ᵇ⁻¹ from 0 to `x`, divided by B(a, b), where a is
    /// `self`. It is the distribution function of the beta distribution. NaN if a or b is negative, both are 0, both are ∞, or x is outside
    /// of [0, 1]. SciPy: `special.betainc`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
    /// use wengert::{prelude::*, special::prelude::*};
    ///
    /// let share = Tensor::<f64>::from([2.0]).betainc(1.0, 0.5).item(); // x²
    /// assert!((share - 0.25).abs() < 1e-15);
    /// ```
    fn try_betainc(&self, b: impl Operand<Self>, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("betainc");
        apply(Function::Betainc { orders: [0, 0], upper: false }, broadcast_triple(self, b, x, at)?, at)
    }

    /// Returns the regularised upper incomplete beta function, which is 1 - [`betainc`](Self::betainc) and accurate where the result is
    /// small. NaN if a or b is negative, both are 0, both are ∞, or x is outside of [0, 1]. SciPy: `special.betaincc`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_special as special; pub use wengert_autograd::prelude; }
    /// use wengert::{prelude::*, special::prelude::*};
    ///
    /// let share = Tensor::<f64>::from([1.0]).betaincc(40.0, 0.9).item(); // (1 - x)⁴⁰
    /// assert!((share / 1e-40 - 1.0).abs() < 1e-12);
    /// ```
    fn try_betaincc(&self, b: impl Operand<Self>, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("betaincc");
        apply(Function::Betainc { orders: [0, 0], upper: true }, broadcast_triple(self, b, x, at)?, at)
    }

    /// Returns the x at which [`betainc`](Self::betainc) equals `p`. NaN for p outside of [0, 1], and unless a and b are positive and
    /// finite. SciPy: `special.betaincinv`.
    fn try_betaincinv(&self, b: impl Operand<Self>, p: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("betaincinv");
        apply(Function::BetaincInv, broadcast_triple(self, b, p, at)?, at)
    }

    /// Returns xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) with a = `self`: the density of the beta distribution, accurate for large a and b. It is 0 for x
    /// outside of [0, 1], and NaN unless a, b > 0.
    fn try_beta_density(&self, b: impl Operand<Self>, x: impl Operand<Self>) -> Result<Self> {
        let at = Site::here("beta_density");
        apply(Function::BetaDensity, broadcast_triple(self, b, x, at)?, at)
    }
}

/// Computes or records `function` of `inputs`, which have equal shapes.
#[track_caller]
fn apply<A: Array, const N: usize>(function: Function, inputs: [A; N], at: Site) -> Result<A> {
    A::apply_elementwise(function, &inputs, at)
}

/// Returns both operands, expanded to the shape to which they broadcast, or an error if they do not broadcast.
fn broadcast_pair<A: Array>(x: &A, other: impl Operand<A>, at: Site) -> Result<[A; 2], A::Error> {
    let y = match other.into_argument(x)? {
        Argument::Array(y) => y,
        Argument::Number(value) => x.try_number(value)?.apply_view(View::Expand(x.shape()), at)?,
    };
    let (x, y) = x.broadcast_with(&y, BroadcastRule::Operation, at)?;
    Ok([x, y])
}

/// Returns the three operands, expanded to the shape to which they broadcast, or an error if they do not broadcast.
fn broadcast_triple<A: Array>(x: &A, y: impl Operand<A>, z: impl Operand<A>, at: Site) -> Result<[A; 3], A::Error> {
    let [x, y] = broadcast_pair(x, y, at)?;
    let [x, z] = broadcast_pair(&x, z, at)?;
    let [x, y] = broadcast_pair(&x, &y, at)?;
    Ok([x, y, z])
}
