mod distribution;
mod expression;
mod families;
mod sampling;
mod support;
pub use distribution::{Distribution, Family, Validate};
pub use families::counts::Poisson;
pub use families::exponential::{Exponential, Gumbel, Laplace, Weibull};
pub use families::gamma::{Beta, Gamma, InverseGamma};
pub use families::normal::{HalfNormal, LogNormal, Normal};
pub use families::student::{Cauchy, HalfCauchy, StudentT};
pub use families::trials::{Bernoulli, Binomial, Geometric, NegativeBinomial};
pub use families::uniform::Uniform;

/// Panics at the caller's line with the whole diagnostic.
#[track_caller]
#[cold]
pub(crate) fn raise(error: impl std::fmt::Display) -> ! {
    panic!("{error}")
}
