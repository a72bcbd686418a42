//! The gamma distribution, the inverse gamma distribution and the beta distribution.

use wengert_special::{Array, Special};
use wengert_tensor::ops::{Comparison, Result};

use super::{family, members};
use crate::distribution::{Family, Noise};
use crate::expression::{Expr, expr};
use crate::sampling::{Sampler, draw};
use crate::support::{Support, fill_masked};

family! {
    /// The gamma distribution. Its density is rateᵃ xᵃ⁻¹ exp(-rate x) / Γ(a) for x ≥ 0, with a = `concentration`. a > 0, `rate` > 0.
    /// `rsample` has gradients by implicit differentiation of the distribution function. PyTorch: `Gamma`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let tape = Tape::<f64>::new();
    /// let a = tape.var(&Tensor::scalar(3.0));
    /// let mean = Gamma::new(a, 2.0).rsample([4000], &mut Generator::new(0)).mean(..);
    /// let [slope] = mean.grad([a]);
    /// assert!((slope.item() - 0.5).abs() < 0.05); // the mean is a / rate
    /// ```
    Gamma { concentration: Positive, rate: Positive }
}

impl<A: Array> Family for Gamma<A> {
    members!("Gamma");

    fn support(&self) -> Support<A> {
        Support::Nonnegative
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let (a, rate) = (|| expr(&self.concentration), || expr(&self.rate));
        // At x = ∞, the terms are infinite and may have different signs, so their sum would be NaN.
        let infinite = x.try_eq(f64::INFINITY)?;
        let x = expr(x).masked(&infinite, 1.0).get()?;
        let density = a() * rate().ln() + (a() - 1.0).xlogy(expr(&x)) - rate() * &x - a().gammaln();
        density.masked(infinite, f64::NEG_INFINITY).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        self.concentration.try_gammainc(&(expr(x) * &self.rate).get()?)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (Expr::from(self.concentration.try_gammaincinv(p)) / &self.rate).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = (expr(&self.concentration) / &self.rate).get()?;
        let variance = (expr(&mean) / &self.rate).get()?;
        Ok([mean, variance])
    }

    fn entropy_formula(&self) -> Result<A> {
        let a = || expr(&self.concentration);
        (a() - expr(&self.rate).ln() + a().gammaln() + (1.0 - a()) * a().digamma()).get()
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        let a = noise.expand(&self.concentration)?;
        (Expr::from(draw(Sampler::Gamma, &[a], noise.generator, noise.at)) / &self.rate).get()
    }
}

family! {
    /// The inverse gamma distribution, which is the distribution of 1 / y for a gamma draw y. Its density is rateᵃ x⁻ᵃ⁻¹
    /// exp(-rate / x) / Γ(a) for x > 0, with a = `concentration`. a > 0, `rate` > 0. The mean is ∞ for a ≤ 1, the variance is ∞ for a ≤ 2.
    /// PyTorch: `InverseGamma`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(InverseGamma::new(&Tensor::from([3.0, 0.5]), 4.0).mean().to_vec(), [2.0, f64::INFINITY]);
    /// ```
    InverseGamma { concentration: Positive, rate: Positive }
}

impl<A: Array> Family for InverseGamma<A> {
    members!("InverseGamma");

    fn support(&self) -> Support<A> {
        Support::Positive
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let (a, rate) = (|| expr(&self.concentration), || expr(&self.rate));
        (a() * rate().ln() - (a() + 1.0) * expr(x).ln() - rate() / x - a().gammaln()).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        self.concentration.try_gammaincc(&(expr(&self.rate) / x).get()?)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (expr(&self.rate) / Expr::from(self.concentration.try_gammainccinv(p))).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let a = &self.concentration;
        let above = |least: f64| fill_masked(a.clone(), &[a.try_le(least)?], 3.0);
        let mean = (expr(&self.rate) / (expr(&above(1.0)?) - 1.0)).get()?;
        let wide = above(2.0)?;
        let variance = ((expr(&self.rate) / (expr(&wide) - 1.0)).square() / (expr(&wide) - 2.0)).get()?;
        let infinite = |x: A, bound: f64| fill_masked(x, &[a.try_le(bound)?], f64::INFINITY);
        Ok([infinite(mean, 1.0)?, infinite(variance, 2.0)?])
    }

    fn entropy_formula(&self) -> Result<A> {
        let a = || expr(&self.concentration);
        (a() + expr(&self.rate).ln() + a().gammaln() - (a() + 1.0) * a().digamma()).get()
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        let a = noise.expand(&self.concentration)?;
        (expr(&self.rate) / Expr::from(draw(Sampler::Gamma, &[a], noise.generator, noise.at))).get()
    }
}

family! {
    /// The beta distribution. Its density is xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) for 0 ≤ x ≤ 1. The parameters are a = `concentration1` > 0 and b =
    /// `concentration0` > 0. `rsample` has gradients by implicit differentiation of the distribution function. PyTorch: `Beta`, which has
    /// no `cdf` and `icdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let beta = Beta::new(&Tensor::scalar(2.0), 2.0);
    /// assert!((beta.cdf(0.25).item() - 0.15625f64).abs() < 1e-15); // 3x² - 2x³
    /// ```
    Beta { concentration1: Positive, concentration0: Positive }
}

impl<A: Array> Family for Beta<A> {
    members!("Beta");

    fn support(&self) -> Support<A> {
        let zero = |x: &A| x.number(wengert_tensor::Scalar::from_i64(0));
        let one = |x: &A| x.number(wengert_tensor::Scalar::from_i64(1));
        Support::Interval(zero(&self.concentration1), one(&self.concentration1))
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let (a, b) = (|| expr(&self.concentration1), || expr(&self.concentration0));
        ((a() - 1.0).xlogy(expr(x)) + (b() - 1.0).xlog1py(-expr(x)) - a().betaln(b())).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        self.concentration1.try_betainc(&self.concentration0, x)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        self.concentration1.try_betaincinv(&self.concentration0, p)
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let (a, b) = (&self.concentration1, &self.concentration0);
        let total = (expr(a) + b).get()?;
        let mean = (expr(a) / &total).get()?;
        let variance = expr(b) / &total * &mean / (expr(&total) + 1.0);
        Ok([mean, variance.get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        let (a, b) = (|| expr(&self.concentration1), || expr(&self.concentration0));
        let total = (a() + b()).get()?;
        let slopes = (a() - 1.0) * a().digamma() + (b() - 1.0) * b().digamma();
        (a().betaln(b()) - slopes + (expr(&total) - 2.0) * expr(&total).digamma()).get()
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        let parameters = [noise.expand(&self.concentration1)?, noise.expand(&self.concentration0)?];
        draw(Sampler::Beta, &parameters, noise.generator, noise.at)
    }
}
