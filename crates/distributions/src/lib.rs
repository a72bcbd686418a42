//! Probability distributions of tensors and recorded variables, with the names and parameters of `torch.distributions`.
//!
//! The trait [`Distribution`] has the methods: samples, logarithms of densities, distribution functions, moments. The shapes of parameters
//! broadcast. If the parameters are recorded variables, the results have derivatives with respect to the parameters. Samples have
//! derivatives only if [`rsample`](Distribution::rsample) draws them. The derivative of the `icdf` of a discrete distribution is 0.
//!
//! ```
//! # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
//! use wengert::{distributions::prelude::*, prelude::*};
//!
//! let data = Tensor::from([1.2, 0.4, 2.2, 1.6]);
//! let tape = Tape::<f64>::new();
//! let rate = tape.var(&Tensor::scalar(1.0));
//! let likelihood = Gamma::new(tape.constant(2.0), rate).log_prob(&data).sum(..);
//! let [slope] = likelihood.grad([rate]);
//! assert!((slope.item() - (4.0 * 2.0 - 5.4)).abs() < 1e-12); // n a / rate - Σ x
//! ```
//!
//! | values | distributions |
//! |---|---|
//! | all numbers | [`Normal`], [`StudentT`], [`Cauchy`], [`Laplace`], [`Gumbel`] |
//! | positive numbers | [`Exponential`], [`Gamma`], [`InverseGamma`], [`LogNormal`], [`Weibull`], [`HalfNormal`], [`HalfCauchy`] |
//! | an interval | [`Uniform`], [`Beta`], [`Truncated`] |
//! | counts | [`Poisson`], [`NegativeBinomial`], [`Geometric`], [`Bernoulli`], [`Binomial`], [`Multinomial`] |
//! | vectors, correlations | [`MultivariateNormal`], [`LkjCholesky`] |
//! | classes, shares of classes | [`Categorical`], [`Dirichlet`] |
//! | made of other distributions | [`Independent`], [`MixtureSameFamily`], [`TransformedDistribution`] with [`Transform`] |
//!
//! PyTorch's other distributions are missing: `Chi2`, `ContinuousBernoulli`, `FisherSnedecor`, `GeneralizedPareto`, `Kumaraswamy`,
//! `LogisticNormal`, `LowRankMultivariateNormal`, `OneHotCategorical`, `OneHotCategoricalStraightThrough`, `Pareto`, `RelaxedBernoulli`,
//! `RelaxedOneHotCategorical`, `VonMises` and `Wishart`.
//!
//! # Conventions
//!
//! - Outside of the support, the logarithm of the density is -∞. Results for parameters outside of their range have no meaning; many are
//!   NaN. After [`validate`](Validate::validate), values and parameters that are not allowed are errors with PyTorch's message. In PyTorch
//!   these checks are on by default. Without the checks (`validate_args=False`), PyTorch often returns NaN or the formula's value for a
//!   value outside of the support.
//! - A sample is a function of a [`Generator`](wengert_tensor::Generator) and the parameters. It does not depend on the number of threads.
//! - Discrete values are whole numbers, stored in the floating-point element type.

mod combined;
mod distribution;
mod divergence;
mod expression;
mod families;
mod multivariate;
mod quantile;
mod sampling;
mod support;
mod transformed;
mod vectors;

pub use combined::{Independent, MixtureSameFamily, Truncated};
pub use distribution::{Distribution, Family, Validate};
pub use divergence::{Divergence, kl_divergence, try_kl_divergence};
pub use families::counts::Poisson;
pub use families::exponential::{Exponential, Gumbel, Laplace, Weibull};
pub use families::gamma::{Beta, Gamma, InverseGamma};
pub use families::normal::{HalfNormal, LogNormal, Normal};
pub use families::student::{Cauchy, HalfCauchy, StudentT};
pub use families::trials::{Bernoulli, Binomial, Geometric, NegativeBinomial};
pub use families::uniform::Uniform;
pub use multivariate::{LkjCholesky, MultivariateNormal};
pub use transformed::{Transform, TransformedDistribution};
pub use vectors::{Categorical, Dirichlet, Multinomial};

/// All distributions, [`Transform`], and the traits [`Distribution`] and [`Validate`].
pub mod prelude {
    pub use crate::{
        Bernoulli, Beta, Binomial, Categorical, Cauchy, Dirichlet, Distribution, Exponential, Gamma, Geometric, Gumbel,
        HalfCauchy, HalfNormal, Independent, InverseGamma, Laplace, LkjCholesky, LogNormal, MixtureSameFamily,
        Multinomial, MultivariateNormal, NegativeBinomial, Normal, Poisson, StudentT, Transform,
        TransformedDistribution, Truncated, Uniform, Validate, Weibull,
    };
}

/// Panics with the full text of `error`, at the caller's line.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
