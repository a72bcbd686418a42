//! The Poisson distribution.

use wengert_special::{Array, Special};
use wengert_tensor::ops::{Arithmetic, Result};

use super::{family, members};
use crate::distribution::{Family, Noise};
use crate::expression::of;
use crate::sampling::{Kind, draw};
use crate::support::Support;

family! {
    /// The Poisson distribution: rateᵏ exp(-rate) / k! for k = 0, 1, 2, … `rate` ≥ 0. PyTorch: `Poisson`, without `cdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let poisson = Poisson::new(&Tensor::scalar(2.0));
    /// assert!((poisson.log_prob(1.0).item() - (2f64.ln() - 2.0)).abs() < 1e-15);
    /// assert_eq!(poisson.log_prob(1.5).item(), f64::NEG_INFINITY);
    /// ```
    Poisson { rate: Nonnegative }
}

impl<A: Array> Family for Poisson<A> {
    members!("Poisson");

    fn support(&self) -> Support<A> {
        Support::Counts
    }

    fn density(&self, k: &A) -> Result<A> {
        (of(k).xlogy(of(&self.rate)) - &self.rate - (of(k) + 1.0).gammaln()).get()
    }

    fn distribution(&self, k: &A) -> Result<A> {
        k.try_add(1.0)?.try_gammaincc(&self.rate)
    }

    fn moments(&self) -> Result<[A; 2], A::Error> {
        Ok([self.rate.clone(), self.rate.clone()])
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        draw(Kind::Poisson, &[noise.expand(&self.rate)?], noise.generator, noise.at)
    }
}
