//! Distributions with heavy tails: Student's t, Cauchy, half-Cauchy.

use std::f64::consts::{FRAC_1_PI, LN_2, PI};

use wengert_special::{Array, Special};
use wengert_tensor::Site;
use wengert_tensor::ops::{Clamp, Comparison, Functions, Result, Views, try_where_};

use super::{family, members};
use crate::distribution::{Family, Noise};
use crate::expression::{Expr, expr};
use crate::quantile::StudentFunction;
use crate::sampling::{Sampler, draw};
use crate::support::{Support, fill_masked};

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
    fn standard_log_density(&self, z: &A) -> Expr<A> {
        let df = || expr(&self.df);
        let logarithm = (expr(z) / df().sqrt()).get().and_then(|z| ln_1p_square(&z)?.get());
        (df() + 1.0) * -0.5 * Expr::from(logarithm) - df().ln() * 0.5 - (df() * 0.5).betaln(expr(&self.df) * 0.0 + 0.5)
    }

    /// Returns the distribution function of the standardised variable z = (x - loc) / scale. Callers use only its derivative with respect to
    /// df, and pass a detached z. [`StudentFunction`] computes the values that callers use, because the values of this function have few
    /// digits in the tails.
    fn standard_cdf(&self, z: &A) -> Result<A> {
        let square = expr(z).square().get()?;
        let half = (expr(&self.df) * 0.5).get()?;
        // The formulas below have no derivative at z = 0. Near 0, the Taylor polynomial of degree 3 has a relative error below 1e-12.
        let is_tiny = square.try_lt(&(Expr::from(self.df.try_clamp_max(1.0)) * 1e-6).get()?)?;
        let zero = try_where_(&is_tiny, z, 0.0)?;
        let curvature = (expr(&self.df) + 1.0) / &self.df * expr(&zero).square() / 6.0;
        let peak = (-(expr(&half).betaln(expr(&half) * 0.0 + 0.5)) - expr(&self.df).ln() * 0.5).exp();
        let near_zero = (peak * &zero * (1.0 - curvature) + 0.5).get()?;
        // One formula computes the distribution function for z² < df, and another formula for z² ≥ df. Each formula gets only arguments
        // of its own range, because its derivative is infinite at an end of the other range.
        let is_near = square.try_lt(&self.df)?;
        let near = try_where_(&is_tiny, &self.df, &try_where_(&is_near, &square, &self.df)?)?;
        let far = try_where_(&is_near, &self.df, &square)?;
        // The probability outside of ±z, and the probability between -z and z.
        let tails = half.try_betainc(0.5, &(expr(&self.df) / (expr(&far) + &self.df)).get()?)?;
        let centre = half
            .try_number(wengert_tensor::Scalar::from_f64(0.5))?
            .try_betainc(&half, &(expr(&near) / (expr(&near) + &self.df)).get()?)?;
        let sign = expr(z).sign().get()?;
        let inner = try_where_(&is_tiny, &near_zero, &(expr(&centre) * &sign * 0.5 + 0.5).get()?)?;
        let outer = (expr(&sign) * (expr(&tails) * -0.5 + 0.5) + 0.5).get()?;
        try_where_(&is_near, &inner, &outer)
    }
}

impl<A: Array> Family for StudentT<A> {
    members!("StudentT");

    fn support(&self) -> Support<A> {
        Support::Real
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        (self.standard_log_density(&z) - expr(&self.scale).ln()).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        let at = Site::here("cdf");
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        // The derivative with respect to z is the density.
        let values = StudentFunction::Cdf.apply(&self.df, &z, at)?;
        let slope = || self.standard_log_density(&z).exp().get();
        values
            .with_derivative(|| Ok(vec![(self.standard_cdf(&z.try_detach()?)?, None), (z.clone(), Some(slope()?))]), at)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        let at = Site::here("icdf");
        let z = StudentFunction::Icdf.apply(&self.df, p, at)?;
        // F(z, df) = p, where F is the distribution function, defines z as a function of p and df. So dz = (dp - ∂F/∂df · ddf) / density.
        let terms = || {
            let slope = (self.standard_log_density(&z).exp() * -1.0).get()?.try_reciprocal()?;
            let share = self.standard_cdf(&z)?;
            Ok(vec![(p.clone(), Some((-expr(&slope)).get()?)), (share, Some(slope))])
        };
        (Expr::from(z.with_derivative(terms, at)) * &self.scale + &self.loc).get()
    }

    fn reflection(&self) -> Option<Result<Self, A::Error>> {
        Some((-expr(&self.loc)).get().map(|loc| Self { loc, ..self.clone() }))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let df = &self.df;
        let mean =
            fill_masked((expr(df) * 0.0 + &self.loc + expr(&self.scale) * 0.0).get()?, &[df.try_le(1.0)?], f64::NAN)?;
        let safe = fill_masked(df.clone(), &[df.try_le(2.0)?], 3.0)?;
        let variance = (expr(&self.scale).square() * (expr(&safe) / (expr(&safe) - 2.0))).get()?;
        let variance = fill_masked(variance, &[df.try_le(2.0)?], f64::INFINITY)?;
        Ok([mean, fill_masked(variance, &[df.try_le(1.0)?], f64::NAN)?])
    }

    fn entropy_formula(&self) -> Result<A> {
        let df = || expr(&self.df);
        // The term (df + 1)/2 (ψ((df + 1)/2) - ψ(df/2)). For large df, the difference would have few digits, so its series in h = 1/df is
        // used.
        let is_large = self.df.try_gt(1e3)?;
        let h = (1.0 / Expr::from(try_where_(&is_large, &self.df, 1e3))).get()?;
        let series = (expr(&h) + 1.0) * (expr(&h) * 0.5 + 1.0 - expr(&h).square() * &h * 0.25) * 0.5;
        let small = fill_masked(self.df.clone(), std::slice::from_ref(&is_large), 1.0)?;
        let half = || (expr(&small) + 1.0) * 0.5;
        let direct = half() * (half().digamma() - (expr(&small) * 0.5).digamma());
        let term = try_where_(&is_large, &series.get()?, &direct.get()?)?;
        (expr(&term) + df().ln() * 0.5 + (df() * 0.5).betaln(df() * 0.0 + 0.5) + expr(&self.scale).ln()).get()
    }

    /// Draws loc + scale · y / √g, for a standard normal number y and a gamma draw g with mean 1.
    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        let half = noise.expand(&(expr(&self.df) * 0.5).get()?)?;
        let gamma = draw(Sampler::Gamma, std::slice::from_ref(&half), noise.generator, noise.at)?;
        let normal = noise.normal()?;
        (expr(&normal) / (expr(&gamma) / &half).sqrt() * &self.scale + &self.loc).get()
    }
}

/// Returns ln(1 + z²), also where z² overflows.
fn ln_1p_square<A: Array>(z: &A) -> Result<Expr<A>, A::Error> {
    // For |z| > 1e8, the 1 is below the rounding error.
    let size = expr(z).abs().get()?;
    let is_far = size.try_gt(1e8)?;
    let far: Expr<A> = Expr::from(try_where_(&is_far, &size, 1.0)).ln() * 2.0;
    let near = expr(z).masked(&is_far, 0.0).square().ln_1p();
    Ok(Expr::from(try_where_(is_far, &far.get()?, &near.get()?)))
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

    fn log_density(&self, x: &A) -> Result<A> {
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        (-ln_1p_square(&z)? - expr(&self.scale).ln() - PI.ln()).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        let z = ((expr(x) - &self.loc) / &self.scale).get()?;
        // In the lower tail, atan z + π/2 = atan(-1/z), which keeps its digits.
        let is_low = z.try_lt(-1.0)?;
        let low = -(1.0 / Expr::from(try_where_(&is_low, &z, -1.0))).atan() * FRAC_1_PI;
        let other = expr(&z).masked(&is_low, 0.0).atan() * FRAC_1_PI + 0.5;
        try_where_(is_low, &low.get()?, &other.get()?)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        // In the tails, tan(π (p - 1/2)) = -1 / tan(π p) = 1 / tan(π (1 - p)).
        let (is_low, is_high) = (p.try_lt(0.25)?, p.try_gt(0.75)?);
        let low = -1.0 / (Expr::from(try_where_(&is_low, p, 0.25)) * PI).tan();
        let high = 1.0 / ((1.0 - Expr::from(try_where_(&is_high, p, 0.75))) * PI).tan();
        let centre = ((expr(p) - 0.5).masked(&is_low, 0.0).masked(&is_high, 0.0) * PI).tan();
        let z = try_where_(is_low, &low.get()?, &try_where_(is_high, &high.get()?, &centre.get()?)?)?;
        (expr(&z) * &self.scale + &self.loc).get()
    }

    fn reflection(&self) -> Option<Result<Self, A::Error>> {
        Some((-expr(&self.loc)).get().map(|loc| Self { loc, ..self.clone() }))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([(expr(&self.loc) * f64::NAN).get()?, (expr(&self.scale) * f64::INFINITY).get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (4.0 * PI).ln()).get()
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

    fn log_density(&self, x: &A) -> Result<A> {
        let z = (expr(x) / &self.scale).get()?;
        (-ln_1p_square(&z)? - expr(&self.scale).ln() + (LN_2 - PI.ln())).get()
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        ((expr(x) / &self.scale).atan() * (2.0 * FRAC_1_PI)).get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        // Above the median, tan(π p/2) = 1 / tan(π (1 - p)/2), which is positive and keeps its digits.
        let is_high = p.try_gt(0.5)?;
        let high = 1.0 / ((1.0 - Expr::from(try_where_(&is_high, p, 0.5))) * (0.5 * PI)).tan();
        let low = (expr(p).masked(&is_high, 0.5) * (0.5 * PI)).tan();
        let z = try_where_(is_high, &high.get()?, &low.get()?)?;
        (expr(&z) * &self.scale).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let infinite = (expr(&self.scale) * f64::INFINITY).get()?;
        Ok([infinite.clone(), infinite])
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.scale).ln() + (2.0 * PI).ln()).get()
    }
}
