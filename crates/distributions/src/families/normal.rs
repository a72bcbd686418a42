//! The normal, half-normal and log-normal distributions.

use std::f64::consts::{FRAC_2_PI, LN_2, PI, SQRT_2};

use wengert_special::Array;
use wengert_tensor::ops::Result;

use super::{LN_SQRT_2PI, family, members};
use crate::distribution::{Family, Noise};
use crate::expression::{Expr, expr};
use crate::support::Support;

family! {
    /// The normal distribution. Its density is exp(-(x - loc)² / (2 scale²)) / (scale √(2π)) for all x. `scale` > 0. PyTorch: `Normal`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let tape = Tape::<f64>::new();
    /// let (loc, scale) = (tape.var(&Tensor::scalar(1.0)), tape.var(&Tensor::scalar(2.0)));
    /// let x = Normal::new(loc, scale).rsample([1000], &mut Generator::new(0));
    /// let [slope] = x.mean(..).grad([loc]);
    /// assert!((slope.item() - 1.0).abs() < 1e-12); // x = loc + scale · noise
    /// ```
    Normal { loc: Real, scale: Positive }
}

impl<A: Array> Normal<A> {
    fn standardize(&self, x: &A) -> Expr<A> {
        (expr(x) - &self.loc) / &self.scale
    }
}

impl<A: Array> Family for Normal<A> {
    members!("Normal");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn log_density(&self, x: &A) -> Result<A> {
        (self.standardize(x).square() * -0.5 - expr(&self.scale).ln() - LN_SQRT_2PI).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        self.standardize(x).ndtr().get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (expr(p).ndtri() * &self.scale + &self.loc).get()
    }

    fn reflection(&self) -> Option<Result<Self, A::Error>> {
        Some((-expr(&self.loc)).get().map(|loc| Self { loc, ..self.clone() }))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([self.loc.clone(), expr(&self.scale).square().get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (0.5 + LN_SQRT_2PI)).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        (expr(&noise.normal()?) * &self.scale + &self.loc).get()
    }
}

family! {
    /// The half-normal distribution, which is the distribution of |y| for a normal y with mean 0. Its density is √(2/π)
    /// exp(-x² / (2 scale²)) / scale for x ≥ 0. `scale` > 0. PyTorch: `HalfNormal`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let half = HalfNormal::new(&Tensor::scalar(1.0));
    /// assert_eq!(half.log_prob(-1.0).item(), f64::NEG_INFINITY);
    /// assert_eq!(half.cdf(0.0).item(), 0.0);
    /// ```
    HalfNormal { scale: Positive }
}

impl<A: Array> Family for HalfNormal<A> {
    members!("HalfNormal");

    fn support(&self) -> Support<A> {
        Support::Nonnegative
    }

    fn log_density(&self, x: &A) -> Result<A> {
        ((expr(x) / &self.scale).square() * -0.5 - expr(&self.scale).ln() + (LN_2 - LN_SQRT_2PI)).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        (expr(x) / &self.scale / SQRT_2).erf().get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        (expr(p).erfinv() * SQRT_2 * &self.scale).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([(expr(&self.scale) * FRAC_2_PI.sqrt()).get()?, (expr(&self.scale).square() * (1.0 - FRAC_2_PI)).get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (0.5 + 0.5 * (PI / 2.0).ln())).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        (expr(&noise.normal()?).abs() * &self.scale).get()
    }
}

family! {
    /// The log-normal distribution, which is the distribution of eʸ for a normal y. Its density is exp(-(ln x - loc)² / (2 scale²)) / (x
    /// scale √(2π)) for x > 0. `scale` > 0. PyTorch: `LogNormal`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let x = LogNormal::new(&Tensor::scalar(0.0), 0.5).icdf(0.5);
    /// assert_eq!(x.item(), 1.0); // the median is e to the power `loc`
    /// ```
    LogNormal { loc: Real, scale: Positive }
}

impl<A: Array> LogNormal<A> {
    pub(crate) fn distribution_of_logarithm(&self) -> Normal<A> {
        Normal { loc: self.loc.clone(), scale: self.scale.clone(), validated: false }
    }
}

impl<A: Array> Family for LogNormal<A> {
    members!("LogNormal");

    fn support(&self) -> Support<A> {
        Support::Positive
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let y = expr(x).ln().get()?;
        (Expr::from(self.distribution_of_logarithm().log_density(&y)) - &y).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        self.distribution_of_logarithm().distribution_function(&expr(x).ln().get()?)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        Expr::from(self.distribution_of_logarithm().quantile_function(p)).exp().get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let square = expr(&self.scale).square().get()?;
        let mean = (expr(&square) * 0.5 + &self.loc).exp().get()?;
        let variance = expr(&square).expm1() * expr(&mean).square();
        Ok([mean, variance.get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (Expr::from(self.distribution_of_logarithm().entropy_formula()) + &self.loc).get()
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        Expr::from(self.distribution_of_logarithm().draw(noise)).exp().get()
    }
}
