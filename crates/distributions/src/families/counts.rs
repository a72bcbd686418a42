//! The Poisson distribution, and the entropy of distributions over counts.

use wengert_special::{Array, Special};
use wengert_tensor::ops::{Arithmetic, Comparison, Functions, Reductions, Result};
use wengert_tensor::{Scalar, Site, Tensor};

use super::{family, members};
use crate::distribution::{Distribution, Family, Noise, expand_to_batch, log_density_on_support};
use crate::expression::{Expr, expr};
use crate::quantile::{CountFamily, count_quantile};
use crate::sampling::{Sampler, draw};
use crate::support::{Support, argument_error, fill_masked};

family! {
    /// The Poisson distribution: the count k = 0, 1, 2, … has the probability rateᵏ exp(-rate) / k!. `rate` ≥ 0. PyTorch: `Poisson`,
    /// which has no `cdf`, no `icdf` and no `entropy`.
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

    fn log_density(&self, k: &A) -> Result<A> {
        (expr(k).xlogy(expr(&self.rate)) - &self.rate - (expr(k) + 1.0).gammaln()).get()
    }

    fn distribution_function(&self, k: &A) -> Result<A> {
        k.try_add(1.0)?.try_gammaincc(&self.rate)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        count_quantile(CountFamily::Poisson, &[&self.rate], p, Site::here("icdf"))
    }

    /// Returns the entropy as a sum over counts. The counts above the last count of the sum have a total probability below 1e-20.
    fn entropy_formula(&self) -> Result<A> {
        let at = Site::here("entropy");
        let rate = self.rate.to_tensor(at)?.iter().fold(0.0, |max_rate: f64, rate| max_rate.max(rate.to_f64()));
        sum_entropy_over_counts(self, (rate + 12.0 * rate.sqrt() + 40.0).ceil(), at)
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([self.rate.clone(), self.rate.clone()])
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        draw(Sampler::Poisson, &[noise.expand(&self.rate)?], noise.generator, noise.at)
    }
}

/// The largest count up to which an entropy is summed. The sum evaluates each count for each distribution of the batch.
const MAX_ENTROPY_TERMS: f64 = 1e6;

/// Returns an error if the entropy of the distribution `name` is a sum over counts up to `max_count`, above [`MAX_ENTROPY_TERMS`].
pub(crate) fn check_terms<E: From<wengert_tensor::Error>>(name: &str, max_count: f64, at: Site) -> Result<(), E> {
    if max_count > MAX_ENTROPY_TERMS {
        let message = format!(
            "the entropy of {name} is a sum over {max_count} counts, but at most {MAX_ENTROPY_TERMS} are supported"
        );
        return Err(argument_error(at, message));
    }
    Ok(())
}

/// Returns the entropy of a distribution over counts: the sum of -p ln p over the counts from 0 to `max_count`. p is a count's probability.
///
/// # Errors
///
/// If `max_count` is above [`MAX_ENTROPY_TERMS`], or memory cannot hold the terms.
pub(crate) fn sum_entropy_over_counts<F: Family>(family: &F, max_count: f64, at: Site) -> Result<F::Array> {
    check_terms(F::NAME, max_count, at)?;
    let counts = counts_up_to(max_count as usize, family.parameters()[0].2, family.batch_shape().rank())?;
    let counts = expand_to_batch(counts, &family.batch_shape(), at)?;
    let log_probability = log_density_on_support(family, &counts, &family.support().outside(&counts)?)?;
    (-times_log(&log_probability.try_exp()?, &log_probability)?).get()?.try_sum(0)
}

/// Returns the counts from 0 to `max_count` along the first of `rank` + 1 dimensions, as an array on the tape of `x`. The other dimensions
/// have size 1.
pub(crate) fn counts_up_to<A: Array>(max_count: usize, x: &A, rank: usize) -> Result<A> {
    let mut sizes = vec![1; rank + 1];
    sizes[0] = max_count + 1;
    let counts = (0..=max_count).map(|count| A::Elem::from_f64(count as f64)).collect();
    x.try_constant(&Tensor::try_from_vec(counts, &sizes[..])?)
}

/// Returns count · logarithm, and 0 where the count is 0.
pub(crate) fn times_log<A: Array>(count: &A, logarithm: &A) -> Result<Expr<A>, A::Error> {
    let is_undefined = count.try_eq(0.0)?.try_logical_and(&logarithm.try_isfinite()?.try_logical_not()?)?;
    // For a count of 0, replaces a logarithm that is not finite by 0, because 0 · ∞ is NaN. Finite logarithms remain, because they are the
    // derivative with respect to the count.
    Ok(Expr::from(fill_masked((expr(count) * 0.0 + logarithm).get()?, &[is_undefined], 0.0)) * count)
}
