//! The Kullback-Leibler divergence between two distributions.

use wengert_macros::twins;
use wengert_special::Array;
use wengert_tensor::Site;
use wengert_tensor::ops::{Comparison, Result, try_where_};

use crate::combined::Independent;
use crate::distribution::Distribution;
use crate::expression::{Expr, expr};
use crate::families::counts::{Poisson, times_log};
use crate::families::exponential::{Exponential, Gumbel, Laplace};
use crate::families::gamma::{Beta, Gamma};
use crate::families::normal::{HalfNormal, LogNormal, Normal};
use crate::families::student::Cauchy;
use crate::families::trials::{Bernoulli, Binomial, Geometric};
use crate::families::uniform::Uniform;
use crate::families::{EULER, LN_SQRT_2PI};
use crate::support::{argument_error, fill_masked};
use crate::vectors::{Categorical, Dirichlet};

/// The pair of the distribution types `Self` and `Q`, for which a formula for the Kullback-Leibler divergence is known. A call with a pair
/// without a formula does not compile.
#[diagnostic::on_unimplemented(
    message = "no formula is known for the divergence of `{Self}` from `{Q}`",
    note = "the page of `kl_divergence` lists the pairs; for others, average `p.log_prob(x) - q.log_prob(x)` over samples x of p"
)]
pub trait Divergence<A: Array, Q> {
    /// Returns the divergence KL(self ‖ q) in nats.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, two [`Independent`] distributions have different numbers of dimensions, or memory
    /// cannot hold the result.
    #[doc(hidden)]
    fn divergence(&self, q: &Q) -> Result<A, A::Error>;
}

/// Returns the divergence KL(p ‖ q) in nats: the mean of `p.log_prob(x) - q.log_prob(x)` for x from p. PyTorch: `kl_divergence`.
///
/// Pairs of the same family: normal, half-normal, log-normal, Laplace, Cauchy, Gumbel, exponential, gamma, beta, Dirichlet, uniform,
/// Poisson, Bernoulli, binomial, geometric, categorical, and multivariate normal. Pairs of different families: exponential and gamma in
/// both orders, and a uniform or Laplace `p` with a normal `q`. Both distributions of a pair may also be [`Independent`] ones, with the
/// same number of dimensions. A binomial `p` with fewer trials than `q` gives NaN, and with more trials ∞. A call with any other pair does
/// not compile.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::{kl_divergence, prelude::*}, prelude::*};
///
/// let (p, q) = (Normal::new(&Tensor::scalar(1.0), 1.0), Normal::new(&Tensor::scalar(0.0), 1.0));
/// assert_eq!(kl_divergence(&p, &q).item(), 0.5);
/// ```
///
/// # Errors
///
/// If the shapes do not broadcast, two [`Independent`] distributions have different numbers of dimensions, or memory
/// cannot hold the result.
#[twins]
pub fn try_kl_divergence<A: Array, P: Divergence<A, Q>, Q>(p: &P, q: &Q) -> Result<A, A::Error> {
    p.divergence(q)
}

/// Implements [`Divergence`] for pairs of distributions. Each entry names a pair and its formula.
macro_rules! divergences {
    ($($p:ident, $q:ident: |$left:ident, $right:ident| $formula:expr;)*) => {$(
        impl<A: Array> Divergence<A, $q<A>> for $p<A> {
            fn divergence(&self, $right: &$q<A>) -> Result<A, A::Error> {
                let $left = self;
                $formula
            }
        }
    )*};
}

divergences! {
    Normal, Normal: |p, q| {
        let distance = ((expr(&p.loc) - &q.loc) / &q.scale).square();
        (normal_scale_divergence(&p.scale, &q.scale)? + distance * 0.5).get()
    };
    HalfNormal, HalfNormal: |p, q| normal_scale_divergence(&p.scale, &q.scale)?.get();
    LogNormal, LogNormal: |p, q| p.distribution_of_logarithm().divergence(&q.distribution_of_logarithm());
    Laplace, Laplace: |p, q| {
        let ratio = (expr(&p.scale) / &q.scale).get()?;
        let distance = (expr(&p.loc) - &q.loc).abs().get()?;
        let overlap = expr(&ratio) * (-expr(&distance) / &p.scale).exp();
        (expr(&distance) / &q.scale + overlap - expr(&ratio).ln() - 1.0).get()
    };
    Cauchy, Cauchy: |p, q| cauchy_divergence(p, q);
    Gumbel, Gumbel: |p, q| {
        let ratio = (expr(&p.scale) / &q.scale).get()?;
        let distance = ((expr(&q.loc) - &p.loc) / &q.scale).get()?;
        let exponential = (expr(&distance) + (expr(&ratio) + 1.0).gammaln()).exp();
        (expr(&ratio) * EULER - expr(&ratio).ln() - &distance + exponential - (1.0 + EULER)).get()
    };
    Exponential, Exponential: |p, q| {
        let ratio = (expr(&q.rate) / &p.rate).get()?;
        (expr(&ratio) - 1.0 - expr(&ratio).ln()).get()
    };
    Gamma, Gamma: |p, q| {
        let (a, b) = (|| expr(&p.concentration), || expr(&q.concentration));
        let ratio = (expr(&q.rate) / &p.rate).get()?;
        let shapes = (a() - b()) * a().digamma() - a().gammaln() + b().gammaln();
        (shapes - b() * expr(&ratio).ln() + a() * (expr(&ratio) - 1.0)).get()
    };
    Exponential, Gamma: |p, q| p.as_gamma()?.divergence(q);
    Gamma, Exponential: |p, q| p.divergence(&q.as_gamma()?);
    Beta, Beta: |p, q| {
        let (a, b) = (|| expr(&p.concentration1), || expr(&p.concentration0));
        let (c, d) = (|| expr(&q.concentration1), || expr(&q.concentration0));
        let total = (c() + d() - a() - b()) * (a() + b()).digamma();
        let parts = (a() - c()) * a().digamma() + (b() - d()) * b().digamma();
        (c().betaln(d()) - a().betaln(b()) + parts + total).get()
    };
    Dirichlet, Dirichlet: |p, q| {
        let (a, b) = (|| expr(&p.concentration), || expr(&q.concentration));
        let slopes = a().digamma() - &wengert_tensor::ops::Views::try_unsqueeze(&p.total().digamma().get()?, -1)?;
        let parts = b().gammaln() - a().gammaln() + (a() - b()) * slopes;
        (parts.sum_last(1) + p.total().gammaln() - q.total().gammaln()).get()
    };
    Uniform, Uniform: |p, q| {
        let ratio = (expr(&q.high) - &q.low) / (expr(&p.high) - &p.low);
        let wider = [p.low.try_lt(&q.low)?, p.high.try_gt(&q.high)?];
        fill_masked(ratio.ln().get()?, &wider, f64::INFINITY)
    };
    Poisson, Poisson: |p, q| {
        let logarithms = expr(&p.rate).xlogy(expr(&p.rate)) - expr(&p.rate).xlogy(expr(&q.rate));
        (logarithms - &p.rate + &q.rate).get()
    };
    Bernoulli, Bernoulli: |p, q| trial_divergence(&p.probs, &p.logarithms, &q.logarithms)?.get();
    Binomial, Binomial: |p, q| {
        let divergence = trial_divergence(&p.probs, &p.logarithms, &q.logarithms)? * &p.total_count;
        // If p has more trials than q, p has values with probability 0 under q: the divergence is ∞. If p has fewer trials, no formula is
        // known.
        let divergence = fill_masked(divergence.get()?, &[p.total_count.try_gt(&q.total_count)?], f64::INFINITY)?;
        fill_masked(divergence, &[p.total_count.try_lt(&q.total_count)?], f64::NAN)
    };
    Geometric, Geometric: |p, q| (trial_divergence(&p.probs, &p.logarithms, &q.logarithms)? / &p.probs).get();
    Categorical, Categorical: |p, q| {
        let difference = (expr(p.logits()) - q.logits()).get()?;
        times_log(p.probs(), &difference)?.sum_last(1).get()
    };
    Uniform, Normal: |p, q| {
        let width = (expr(&p.high) - &p.low).get()?;
        let distance = ((expr(&p.high) + &p.low) * 0.5 - &q.loc).square() + expr(&width).square() / 12.0;
        (distance / expr(&q.scale).square() * 0.5 + expr(&q.scale).ln() + LN_SQRT_2PI - expr(&width).ln()).get()
    };
    Laplace, Normal: |p, q| {
        let distance = (expr(&p.loc) - &q.loc).square() + expr(&p.scale).square() * 2.0;
        let normal = distance / expr(&q.scale).square() * 0.5 + expr(&q.scale).ln() + LN_SQRT_2PI;
        (normal - Expr::from(p.try_entropy())).get()
    };
}

/// Returns the divergence of two normal distributions with equal locations and the scales `p` and `q`. It is also the divergence of two
/// half-normal distributions.
fn normal_scale_divergence<A: Array>(p: &A, q: &A) -> Result<Expr<A>, A::Error> {
    // The quotient of the scales may underflow. The quotient of their square roots does not.
    let root = (expr(p).sqrt() / &expr(q).sqrt().get()?).get()?;
    Ok((expr(&root).square().square() - 1.0) * 0.5 - expr(&root).ln() * 2.0)
}

/// Returns the divergence of one Cauchy distribution from another. With the scales s and t and half the distance d of the locations, it is
/// ln(r² / st) for r² = ((s + t) / 2)² + d². It is also ln(1 + (w² + d²) / st) for w = (s - t) / 2.
fn cauchy_divergence<A: Array>(p: &Cauchy<A>, q: &Cauchy<A>) -> Result<A, A::Error> {
    // The parameters are halved first, because a sum or a difference of large parameters could overflow.
    let distance = (expr(&p.loc) * 0.5 - expr(&q.loc) * 0.5).get()?;
    let radius = (expr(&p.scale) * 0.5 + expr(&q.scale) * 0.5).hypot(expr(&distance)).get()?;
    // The second formula keeps the digits of nearly equal distributions. Its quotients w/s, w/t, d/s and d/t are at most 1e8 here.
    let is_near = (expr(&p.scale).minimum(expr(&q.scale)) * 1e8).get()?.try_ge(&radius)?;
    let (s, t) = (try_where_(&is_near, &p.scale, 1.0)?, try_where_(&is_near, &q.scale, 1.0)?);
    let product = |x: A| expr(&x) / &s * (expr(&x) / &t);
    let width = ((expr(&s) - &t) * 0.5).get()?;
    let near = (product(width) + product(try_where_(&is_near, &distance, 0.0)?)).ln_1p().get()?;
    let logarithm = |x: &A| expr(x).masked(&is_near, 1.0).ln();
    let far = (logarithm(&radius) * 2.0 - logarithm(&p.scale) - logarithm(&q.scale)).get()?;
    try_where_(is_near, &near, &far)
}

/// Returns the divergence of one trial from another: the sum of P (ln P - ln Q) over success and failure. P is the probability in the first
/// trial, and Q in the second. `probs` is the probability of a success. `p` and `q` have the logarithms of both probabilities of the first
/// and the second trial.
fn trial_divergence<A: Array>(probs: &A, p: &[A; 2], q: &[A; 2]) -> Result<Expr<A>, A::Error> {
    let difference = |k: usize| (expr(&p[k]) - &q[k]).get();
    Ok(times_log(probs, &difference(0)?)? + times_log(&(1.0 - expr(probs)).get()?, &difference(1)?)?)
}

impl<A: Array> Exponential<A> {
    /// Returns the gamma distribution with the concentration 1 and this rate, which is the same distribution.
    fn as_gamma(&self) -> Result<Gamma<A>, A::Error> {
        let concentration = (expr(&self.rate) * 0.0 + 1.0).get()?;
        Ok(Gamma { concentration, rate: self.rate.clone(), validated: false })
    }
}

impl<A: Array, P: Divergence<A, Q>, Q> Divergence<A, Independent<Q>> for Independent<P> {
    #[track_caller]
    fn divergence(&self, q: &Independent<Q>) -> Result<A, A::Error> {
        if self.dims != q.dims {
            let message = format!(
                "kl_divergence of an Independent with {} dims from one with {}: the numbers must be equal",
                self.dims, q.dims
            );
            return Err(argument_error(Site::here("kl_divergence"), message));
        }
        Expr::from(self.base.divergence(&q.base)).sum_last(self.dims).get()
    }
}
