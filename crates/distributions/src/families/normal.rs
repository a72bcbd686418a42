//! The normal, half-normal and log-normal distributions.

use std::f64::consts::{FRAC_2_PI, LN_2, PI, SQRT_2};

use wengert_special::Array;
use wengert_tensor::ops::Result;

use super::{LN_SQRT_2PI, family, members};
use crate::distribution::{Family, Noise};
use crate::expression::{Expr, of};
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
    fn standard(&self, x: &A) -> Expr<A> {
        (of(x) - &self.loc) / &self.scale
    }
}

impl<A: Array> Family for Normal<A> {
    members!("Normal");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn density(&self, x: &A) -> Result<A> {
        (self.standard(x).square() * -0.5 - of(&self.scale).ln() - LN_SQRT_2PI).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        self.standard(x).ndtr().get()
    }

    fn quantile(&self, p: &A) -> Result<A> {
        (of(p).ndtri() * &self.scale + &self.loc).get()
    }

    fn reflection(&self) -> Option<Result<Self, A::Error>> {
        Some((-of(&self.loc)).get().map(|loc| Self { loc, ..self.clone() }))
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        Ok([self.loc.clone(), of(&self.scale).square().get()?])
    }

    fn information(&self) -> Result<A> {
        (of(&self.scale).ln() + (0.5 + LN_SQRT_2PI)).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        (of(&noise.normal()?) * &self.scale + &self.loc).get()
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

    fn density(&self, x: &A) -> Result<A> {
        ((of(x) / &self.scale).square() * -0.5 - of(&self.scale).ln() + (LN_2 - LN_SQRT_2PI)).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        (of(x) / &self.scale / SQRT_2).erf().get()
    }

    fn quantile(&self, p: &A) -> Result<A> {
        (of(p).erfinv() * SQRT_2 * &self.scale).get()
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        Ok([(of(&self.scale) * FRAC_2_PI.sqrt()).get()?, (of(&self.scale).square() * (1.0 - FRAC_2_PI)).get()?])
    }

    fn information(&self) -> Result<A> {
        (of(&self.scale).ln() + (0.5 + 0.5 * (PI / 2.0).ln())).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        (of(&noise.normal()?).abs() * &self.scale).get()
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
    pub(crate) fn logarithm(&self) -> Normal<A> {
        Normal { loc: self.loc.clone(), scale: self.scale.clone(), validated: false }
    }
}

impl<A: Array> Family for LogNormal<A> {
    members!("LogNormal");

    fn support(&self) -> Support<A> {
        Support::Positive
    }

    fn density(&self, x: &A) -> Result<A> {
        let y = of(x).ln().get()?;
        (Expr::from(self.logarithm().density(&y)) - &y).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        self.logarithm().distribution(&of(x).ln().get()?)
    }

    fn quantile(&self, p: &A) -> Result<A> {
        Expr::from(self.logarithm().quantile(p)).exp().get()
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        let square = of(&self.scale).square().get()?;
        let mean = (of(&square) * 0.5 + &self.loc).exp().get()?;
        let variance = of(&square).expm1() * of(&mean).square();
        Ok([mean, variance.get()?])
    }

    fn information(&self) -> Result<A> {
        (Expr::from(self.logarithm().information()) + &self.loc).get()
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        Expr::from(self.logarithm().draw(noise)).exp().get()
    }
}
