//! The uniform distribution.

use wengert_special::Array;
use wengert_tensor::ops::{Arithmetic, Clamp, Comparison, Result, Views, try_where_};
use wengert_tensor::{Scalar, Site};

use super::{family, members};
use crate::distribution::{Distribution, Family, Noise};
use crate::expression::expr;
use crate::support::{Support, bound_text, check_parameter, fill_masked};

family! {
    /// The uniform distribution. Its density is 1 / (high - low) for low ≤ x < high. PyTorch: `Uniform`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let uniform = Uniform::new(&Tensor::scalar(1.0), 3.0);
    /// assert_eq!(uniform.cdf(&Tensor::from([0.0, 1.5, 9.0])).to_vec(), [0.0, 0.25, 1.0]);
    /// ```
    Uniform { low: Real, high: Real }
}

impl<A: Array> Family for Uniform<A> {
    members!("Uniform");

    fn check_relations(&self, at: Site) -> Result<(), A::Error> {
        let shape = self.batch_shape();
        let ends = |x: &A| -> Result<_, A::Error> { x.try_expand(&shape)?.to_tensor(at) };
        let (low, high) = (ends(&self.low)?, ends(&self.high)?);
        let wrong = low.iter().zip(high.iter()).filter(|(low, high)| low >= high);
        let wrong: Vec<f64> = wrong.map(|(low, _)| low.to_f64()).collect();
        let requirement = format!("satisfy the constraint LessThan(upper_bound={}),", bound_text(&self.high, at)?);
        check_parameter((Self::NAME, &self.parameters()), ("low", &requirement), &shape, &wrong, at)
    }

    fn support(&self) -> Support<A> {
        Support::Interval(self.low.clone(), self.high.clone())
    }

    fn log_density(&self, x: &A) -> Result<A> {
        let density = (expr(x) * 0.0 - (expr(&self.high) - &self.low).ln()).get()?;
        fill_masked(density, &[x.try_ge(&self.high)?], f64::NEG_INFINITY)
    }

    fn distribution_function(&self, x: &A) -> Result<A> {
        // As in PyTorch, the derivative is 0 at both bounds.
        ((expr(x) - &self.low) / (expr(&self.high) - &self.low)).get()?.try_clamp(0.0, 1.0)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        ((expr(&self.high) - &self.low) * p + &self.low).get()
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = (expr(&self.low) + &self.high) * 0.5;
        Ok([mean.get()?, ((expr(&self.high) - &self.low).square() / 12.0).get()?])
    }

    /// Draws numbers below `high`, to which the quantile function may round.
    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        let x = self.quantile_function(&noise.uniform()?)?;
        let below = self.high.try_nextafter(&self.low)?;
        try_where_(x.try_lt(&self.high)?, &x, &below)
    }

    fn entropy_formula(&self) -> Result<A> {
        (expr(&self.high) - &self.low).ln().get()
    }
}
