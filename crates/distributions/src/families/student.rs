//! Distributions with heavy tails: Student's t, Cauchy, half-Cauchy.

use std::f64::consts::{FRAC_1_PI, LN_2, PI};

use wengert_special::{Array, Special};
use wengert_tensor::ops::{Comparison, Functions, Result, Views, try_where_};

use super::{family, members};
use crate::distribution::{Family, Noise};
use crate::expression::{Expr, of};
use crate::sampling::{Kind, draw};
use crate::support::{Support, filled};

family! {
    /// Student's t-distribution. Its density is (1 + z²/df)^(-(df + 1)/2) / (scale √df B(1/2, df/2)) with z = (x - loc) / scale, for all x.
    /// `df` > 0, `scale` > 0. The mean is NaN for df ≤ 1. The variance is ∞ for 1 < df ≤ 2, and NaN for df ≤ 1. PyTorch: `StudentT`, which
    /// has no `cdf` and `icdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let t = StudentT::new(&Tensor::scalar(1.0), 0.0, 1.0);
    /// assert!((t.cdf(1.0).item() - 0.75f64).abs() < 1e-15);
    /// ```
    StudentT { df: Positive, loc: Real, scale: Positive }
}

impl<A: Array> StudentT<A> {
    /// Returns the logarithm of the density of the standardised variable z = (x - loc) / scale.
    fn standard_density(&self, z: &A) -> Expr<A> {
        let df = || of(&self.df);
        (df() + 1.0) * -0.5 * (of(z).square() / df()).ln_1p()
            - df().ln() * 0.5
            - (df() * 0.5).betaln(of(&self.df) * 0.0 + 0.5)
    }

    /// Returns the distribution function of the standardised variable z = (x - loc) / scale. The derivative of the result is with respect
    /// to df only. z may not be 0.
    fn standard_distribution(&self, z: &A) -> Result<A> {
        let square = of(z).square().get()?;
        let half = (of(&self.df) * 0.5).get()?;
        // One formula computes the distribution function for z² < df, and another formula for z² ≥ df. Each formula gets only arguments
        // of its own range, because its derivative is infinite at an end of the other range.
        let is_near = square.try_lt(&self.df)?;
        let near = try_where_(&is_near, &square, &self.df)?;
        let far = try_where_(&is_near, &self.df, &square)?;
        // The probability outside of ±z, and the probability between -z and z. Each is accurate where it is small.
        let tails = half.try_betainc(0.5, &(of(&self.df) / (of(&far) + &self.df)).get()?)?;
        let centre = half
            .number(wengert_tensor::Scalar::from_f64(0.5))
            .try_betainc(&half, &(of(&near) / (of(&near) + &self.df)).get()?)?;
        let sign = of(z).sign().get()?;
        let inner = (of(&centre) * &sign * 0.5 + 0.5).get()?;
        // The distribution function is tails / 2 for z < 0, and 1 - tails / 2 for z > 0.
        let outer = (of(&sign) * (of(&tails) * -0.5 + 0.5) + 0.5).get()?;
        let lower = (of(&tails) * 0.5).get()?;
        let outer = try_where_(z.try_lt(0.0)?, &lower, &outer)?;
        try_where_(&is_near, &inner, &outer)
    }
}

impl<A: Array> Family for StudentT<A> {
    members!("StudentT");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn density(&self, x: &A) -> Result<A> {
        let z = ((of(x) - &self.loc) / &self.scale).get()?;
        (self.standard_density(&z) - of(&self.scale).ln()).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        let at = wengert_tensor::Site::here("cdf");
        let z = ((of(x) - &self.loc) / &self.scale).get()?;
        // The formula of `standard_distribution` has no derivative at z = 0. So the derivative with respect to z is set separately: it is
        // the density.
        let zero = z.try_eq(0.0)?;
        let fixed = filled(z.try_detach()?, &[zero], 1e-150)?;
        let values = self.standard_distribution(&fixed)?;
        let slope = || self.standard_density(&z).exp().get();
        values.with_derivative(|| Ok(vec![(values.clone(), None), (z.clone(), Some(slope()?))]), at)
    }

    fn quantile(&self, p: &A) -> Result<A> {
        let at = wengert_tensor::Site::here("icdf");
        let (fixed, df) = (p.try_detach()?, self.df.try_detach()?);
        let distance = (of(&fixed) * 2.0 - 1.0).get()?;
        let half = (of(&df) * 0.5).get()?;
        let shape = half.number(wengert_tensor::Scalar::from_f64(0.5));
        // Inverts both formulas of `standard_distribution`: `centre` is for values near the centre, and `tails` for values in the tails.
        let centre = shape.try_betaincinv(&half, &of(&distance).abs().get()?)?;
        let tails = (of(&distance).abs() * -1.0 + 1.0).get()?;
        let lower = (of(&fixed) * 2.0).get()?;
        let tails = half.try_betaincinv(0.5, &try_where_(fixed.try_lt(0.5)?, &lower, &tails)?)?;
        let inner = (of(&centre) / (1.0 - of(&centre))).get()?;
        let outer = (1.0 / of(&tails) - 1.0).get()?;
        let near = of(&distance).abs().get()?.try_lt(0.5)?;
        let square = (Expr::from(try_where_(near, &inner, &outer)) * &df).get()?;
        let z = (of(&distance).sign() * of(&square).sqrt()).get()?;
        // z is a function of p and df by F(z, df) = p, where F is the distribution function. So dz = (dp - ∂F/∂df ddf) / density.
        let slope = (self.standard_density(&z).exp() * -1.0).get()?.try_reciprocal()?;
        let share = self.standard_distribution(&filled(z.clone(), &[z.try_eq(0.0)?], 1e-150)?)?;
        let terms = || Ok(vec![(p.clone(), Some((-of(&slope)).get()?)), (share.clone(), Some(slope.clone()))]);
        (Expr::from(z.with_derivative(terms, at)) * &self.scale + &self.loc).get()
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        let df = &self.df;
        let mean = filled((of(df) * 0.0 + &self.loc + of(&self.scale) * 0.0).get()?, &[df.try_le(1.0)?], f64::NAN)?;
        let safe = filled(df.clone(), &[df.try_le(2.0)?], 3.0)?;
        let variance = (of(&self.scale).square() * (of(&safe) / (of(&safe) - 2.0))).get()?;
        let variance = filled(variance, &[df.try_le(2.0)?], f64::INFINITY)?;
        Ok([mean, filled(variance, &[df.try_le(1.0)?], f64::NAN)?])
    }

    fn information(&self) -> Result<A> {
        let df = || of(&self.df);
        let above = (df() + 1.0) * 0.5;
        let slopes = ((df() + 1.0) * 0.5).digamma() - (df() * 0.5).digamma();
        (above * slopes + df().ln() * 0.5 + (df() * 0.5).betaln(df() * 0.0 + 0.5) + of(&self.scale).ln()).get()
    }

    /// Draws loc + scale · y / √g, for a standard normal number y and a gamma draw g with mean 1.
    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        let half = noise.expand(&(of(&self.df) * 0.5).get()?)?;
        let gamma = draw(Kind::Gamma, std::slice::from_ref(&half), noise.generator, noise.at)?;
        let normal = noise.normal()?;
        (of(&normal) / (of(&gamma) / &half).sqrt() * &self.scale + &self.loc).get()
    }
}

family! {
    /// The Cauchy distribution. Its density is 1 / (π scale (1 + z²)) with z = (x - loc) / scale, for all x. `scale` > 0. The mean is NaN,
    /// the variance is ∞. PyTorch: `Cauchy`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(Cauchy::new(&Tensor::scalar(2.0), 3.0).cdf(5.0).item(), 0.75);
    /// ```
    Cauchy { loc: Real, scale: Positive }
}

impl<A: Array> Family for Cauchy<A> {
    members!("Cauchy");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn density(&self, x: &A) -> Result<A> {
        let z = (of(x) - &self.loc) / &self.scale;
        (-z.square().ln_1p() - of(&self.scale).ln() - PI.ln()).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        (((of(x) - &self.loc) / &self.scale).atan() * FRAC_1_PI + 0.5).get()
    }

    fn quantile(&self, p: &A) -> Result<A> {
        (((of(p) - 0.5) * PI).tan() * &self.scale + &self.loc).get()
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        Ok([(of(&self.loc) * f64::NAN).get()?, (of(&self.scale) * f64::INFINITY).get()?])
    }

    fn information(&self) -> Result<A> {
        (of(&self.scale).ln() + (4.0 * PI).ln()).get()
    }
}

family! {
    /// The half-Cauchy distribution, which is the distribution of |y| for a Cauchy y around 0. Its density is 2 / (π scale
    /// (1 + (x / scale)²)) for x ≥ 0. `scale` > 0. The mean and the variance are ∞. PyTorch: `HalfCauchy`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(HalfCauchy::new(&Tensor::scalar(3.0)).cdf(3.0).item(), 0.5);
    /// ```
    HalfCauchy { scale: Positive }
}

impl<A: Array> Family for HalfCauchy<A> {
    members!("HalfCauchy");

    fn support(&self) -> Support<A> {
        Support::Nonnegative
    }

    fn density(&self, x: &A) -> Result<A> {
        (-(of(x) / &self.scale).square().ln_1p() - of(&self.scale).ln() + (LN_2 - PI.ln())).get()
    }

    fn distribution(&self, x: &A) -> Result<A> {
        ((of(x) / &self.scale).atan() * (2.0 * FRAC_1_PI)).get()
    }

    fn quantile(&self, p: &A) -> Result<A> {
        ((of(p) * (0.5 * PI)).tan() * &self.scale).get()
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        let infinite = (of(&self.scale) * f64::INFINITY).get()?;
        Ok([infinite.clone(), infinite])
    }

    fn information(&self) -> Result<A> {
        (of(&self.scale).ln() + (2.0 * PI).ln()).get()
    }
}
