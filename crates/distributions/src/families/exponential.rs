//! Distributions whose densities consist of exponentials: Laplace, Gumbel, exponential, Weibull.

use std::f64::consts::{LN_2, PI};

use wengert_special::Array;
use wengert_tensor::ops::{Clamp, Comparison, Result, try_where_};

use super::{EULER, family, members};
use crate::distribution::Family;
use crate::expression::{Expr, expr};
use crate::support::Support;

family! {
    /// The Laplace distribution. Its density is exp(-|x - loc| / scale) / (2 scale) for all x. `scale` > 0. PyTorch: `Laplace`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(Laplace::new(&Tensor::scalar(0.0), 1.0).variance().item(), 2.0);
    /// ```
    Laplace { loc: Real, scale: Positive }
}

impl<A: Array> Family for Laplace<A> {
    members!("Laplace");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn log_density(&self, x: &A) -> Result<A> {
        (-((expr(x) - &self.loc) / &self.scale).abs() - expr(&self.scale).ln() - LN_2).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        // One formula is accurate for z < 0, the other for z ≥ 0. Each gets only arguments of its own range. Both have the same derivative
        // at 0.
        let is_low = z.try_lt(0.0)?;
        let low = Expr::from(try_where_(&is_low, &z, 0.0)).exp() * 0.5;
        let high = 1.0 - (-expr(&z)).masked(&is_low, 0.0).exp() * 0.5;
        try_where_(is_low, &low.get()?, &high.get()?)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        let is_low = p.try_lt(0.5)?;
        let low = Expr::from(try_where_(&is_low, p, 0.5)) * 2.0;
        let high = (1.0 - expr(p)).masked(&is_low, 0.5) * 2.0;
        let distance = try_where_(is_low, &low.ln().get()?, &(-high.ln()).get()?)?;
        (expr(&distance) * &self.scale + &self.loc).get()
    }

    fn reflection(&self) -> Option<Result<Self, A::Error>> {
        Some((-expr(&self.loc)).get().map(|loc| Self { loc, ..self.clone() }))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([self.loc.clone(), (expr(&self.scale).square() * 2.0).get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (1.0 + LN_2)).get()
    }
}

family! {
    /// The Gumbel distribution. Its density is exp(-z - exp(-z)) / scale with z = (x - loc) / scale, for all x. `scale` > 0. PyTorch:
    /// `Gumbel`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let share = Gumbel::new(&Tensor::scalar(0.0), 1.0).cdf(0.0).item();
    /// assert!((share - (-1f64).exp()).abs() < 1e-15);
    /// ```
    Gumbel { loc: Real, scale: Positive }
}

impl<A: Array> Family for Gumbel<A> {
    members!("Gumbel");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        // At z = -∞, the two terms are infinite and have different signs, so their sum would be NaN.
        let infinite = z.try_eq(f64::NEG_INFINITY)?;
        let terms = (expr(&z) + (-expr(&z)).exp()).masked(infinite, f64::INFINITY);
        (-terms - expr(&self.scale).ln()).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        // Beyond the bound, the result is 0. Without the bound, the inner exponential could overflow, and the derivative would be NaN.
        let z = (-((expr(x) - &self.loc) / &self.scale)).get()?.try_clamp_max(80.0)?;
        (-expr(&z).exp()).exp().get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (expr(&self.loc) - (-expr(p).ln()).ln() * &self.scale).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = expr(&self.scale) * EULER + &self.loc;
        Ok([mean.get()?, (expr(&self.scale).square() * (PI * PI / 6.0)).get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (1.0 + EULER)).get()
    }
}

family! {
    /// The exponential distribution. Its density is rate exp(-rate x) for x ≥ 0. `rate` > 0. PyTorch: `Exponential`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(Exponential::new(&Tensor::from([2.0, 4.0])).mean().to_vec(), [0.5, 0.25]);
    /// ```
    Exponential { rate: Positive }
}

impl<A: Array> Family for Exponential<A> {
    members!("Exponential");

    fn support(&self) -> Support<A> {
        Support::Nonnegative
    }

    fn log_density(&self, x: &A) -> Result<A> {
        (expr(&self.rate).ln() - expr(x) * &self.rate).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        (-(-(expr(x) * &self.rate)).expm1()).get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (-(-expr(p)).ln_1p() / &self.rate).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = (1.0 / expr(&self.rate)).get()?;
        let variance = expr(&mean).square().get()?;
        Ok([mean, variance])
    }

    fn entropy_formula(&self) -> Result<A> {
        (1.0 - expr(&self.rate).ln()).get()
    }
}

/// The Taylor coefficients of (ln Γ(1 + 2h) - 2 ln Γ(1 + h)) / h²: (-1)ʲ ζ(j) (2ʲ - 2) / j for j = 2, 3, …, with the zeta function ζ. The
/// next term is below 1e-15 for h ≤ 1/20.
const LOG_MOMENT_SERIES: [f64; 15] = {
    const ZETA: [f64; 15] = [
        PI * PI / 6.0,
        1.202_056_903_159_594_3,
        1.082_323_233_711_138_2,
        1.036_927_755_143_37,
        1.017_343_061_984_449_2,
        1.008_349_277_381_923,
        1.004_077_356_197_944_4,
        1.002_008_392_826_082_2,
        1.000_994_575_127_818,
        1.000_494_188_604_119_4,
        1.000_246_086_553_308,
        1.000_122_713_347_578_5,
        1.000_061_248_135_058_7,
        1.000_030_588_236_307,
        1.000_015_282_259_408_7,
    ];
    let (mut coefficients, mut k, mut power) = ([0.0; 15], 0, 4.0);
    while k < 15 {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        coefficients[k] = sign * ZETA[k] * (power - 2.0) / (k + 2) as f64;
        (k, power) = (k + 1, 2.0 * power);
    }
    coefficients
};

family! {
    /// The Weibull distribution. Its density is (k / scale) (x / scale)ᵏ⁻¹ exp(-(x / scale)ᵏ) for x > 0, with k = `concentration`.
    /// `scale` > 0, k > 0. PyTorch: `Weibull`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let (weibull, exponential) = (Weibull::new(&Tensor::scalar(0.5), 1.0), Exponential::new(&Tensor::scalar(2.0)));
    /// assert_eq!(weibull.log_prob(3.0).item(), exponential.log_prob(3.0).item()); // the same for k = 1
    /// ```
    Weibull { scale: Positive, concentration: Positive }
}

impl<A: Array> Family for Weibull<A> {
    members!("Weibull");

    fn support(&self) -> Support<A> {
        Support::Positive
    }

    fn log_density(&self, x: &A) -> Result<A> {
        // At x = ∞ and k > 1, the terms are infinite and have different signs, so their sum would be NaN.
        let infinite = x.try_eq(f64::INFINITY)?;
        let (k, z) = (&self.concentration, (expr(x).masked(&infinite, 1.0) / &self.scale).get()?);
        let density = expr(k).ln() - expr(&self.scale).ln() + (expr(k) - 1.0) * expr(&z).ln() - expr(&z).pow(expr(k));
        density.masked(infinite, f64::NEG_INFINITY).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        // Where the power is at least e⁷, the result is 1. There the quotient or the power could be infinite, and derivatives would be NaN.
        let log_power = (expr(x).ln() - expr(&self.scale).ln()) * &self.concentration;
        let is_far = log_power.get()?.try_ge(7.0)?;
        let power = (expr(x).masked(&is_far, 1.0) / &self.scale).pow(expr(&self.concentration));
        (-(-power).expm1()).masked(is_far, 1.0).get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        ((-(-expr(p)).ln_1p()).pow(1.0 / expr(&self.concentration)) * &self.scale).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let raw = |order: f64| (1.0 / expr(&self.concentration) * order + 1.0).gammaln().exp();
        let mean = (raw(1.0) * &self.scale).get()?;
        // For scale 1, the variance is Γ(1 + 2/k) - Γ(1 + 1/k)², a difference that has few digits for large k. There it is computed as
        // Γ(1 + 1/k)² (eᵗ - 1). t = ln Γ(1 + 2/k) - 2 ln Γ(1 + 1/k) is a Taylor series in 1/k.
        let is_large = self.concentration.try_gt(20.0)?;
        let h = (1.0 / Expr::from(try_where_(&is_large, &self.concentration, 20.0))).get()?;
        let series = LOG_MOMENT_SERIES.iter().rev().fold(expr(&h) * 0.0, |sum, &c| sum * &h + c) * expr(&h).square();
        let near = (raw(1.0).square() * series.expm1()).get()?;
        // If Γ(1 + 2/k) overflows, the square may overflow too, and their difference would be NaN.
        let second = raw(2.0).get()?;
        let far = (expr(&second) - raw(1.0).masked(second.try_eq(f64::INFINITY)?, 0.0).square()).get()?;
        let variance = expr(&self.scale).square() * &try_where_(is_large, &near, &far)?;
        Ok([mean, variance.get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        let k = || expr(&self.concentration);
        ((1.0 - 1.0 / k()) * EULER + expr(&self.scale).ln() - k().ln() + 1.0).get()
    }
}
