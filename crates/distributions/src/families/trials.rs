//! Distributions of repeated trials: Bernoulli, binomial, geometric, negative binomial.

use wengert_macros::twins;
use wengert_special::{Array, Special};
use wengert_tensor::ops::{Activations, Arithmetic, Comparison, Functions, IntoArray, Operand, Result};
use wengert_tensor::{Scalar, Site};

use super::accessor;
use super::counts::{sum_entropy_over_counts, times_log};
use crate::distribution::{Family, Noise, to_array};
use crate::expression::{Expr, expr, log_probabilities};
use crate::quantile::{CountFamily, count_quantile};
use crate::sampling::{Sampler, draw};
use crate::support::{Parameter, ParameterRange, Support, broadcast_shape, check_parameter, fill_masked};

/// Defines a distribution over the results of trials that succeed or fail, such as the binomial distribution. Its constructors take the
/// probability of a success or the logit of this probability, and other parameters.
macro_rules! trials {
    ($(#[$doc:meta])* $name:ident { $($rest:ident)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<A> {
            $(pub(crate) $rest: A,)?
            pub(crate) probs: A,
            /// The logarithms of the probabilities of a success and of a failure. The derivative of ln 0 counts as 0.
            pub(crate) logarithms: [A; 2],
            validated: bool,
        }

        #[twins]
        impl<A: Array> $name<A> {
            /// Returns the distribution whose trials succeed with the probability `probs`. The shapes of the parameters broadcast.
            ///
            /// # Errors
            ///
            /// If the shapes do not broadcast, or memory cannot hold the result.
            pub fn try_new($($rest: impl Operand<A>,)? probs: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
                let (at, probs) = (Site::here("new"), probs.array());
                $(let $rest = to_array($rest, &probs)?;)?
                let _ = broadcast_shape::<A::Error>(&[probs.shape() $(, $rest.shape())?], at)?;
                let logarithms = log_probabilities(&probs)?;
                Ok($name { $($rest,)? probs, logarithms, validated: false })
            }

            /// Returns the distribution whose trials succeed with the probability sigmoid(`logits`). The logarithms of probabilities near 0
            /// and 1 keep all their digits.
            ///
            /// # Errors
            ///
            /// If the shapes do not broadcast, or memory cannot hold the result.
            pub fn try_from_logits(
                $($rest: impl Operand<A>,)?
                logits: impl IntoArray<Array = A>,
            ) -> Result<Self, A::Error> {
                let (at, logits) = (Site::here("from_logits"), logits.array());
                $(let $rest = to_array($rest, &logits)?;)?
                let _ = broadcast_shape::<A::Error>(&[logits.shape() $(, $rest.shape())?], at)?;
                let logarithms = [logits.try_logsigmoid()?, logits.try_neg()?.try_logsigmoid()?];
                Ok($name { $($rest,)? probs: logits.try_sigmoid()?, logarithms, validated: false })
            }
        }

        impl<A: Array> $name<A> {
            accessor!(probs);
            $(accessor!($rest);)?

            /// Returns k ln p + n ln(1 - p) for k successes and n failures, where p is the probability of a success. For k = 0 or n = 0, the
            /// term with this factor is 0, even if the logarithm is -∞.
            fn logarithm(&self, successes: &A, failures: &A) -> Result<Expr<A>, A::Error> {
                let [p, q] = &self.logarithms;
                Ok(times_log(successes, p)? + times_log(failures, q)?)
            }
        }
    };
}

/// Defines the members of `Family` that are the same for all distributions of trials.
macro_rules! members {
    ($name:literal, $probs:ident $(, $rest:ident: $range:ident)?) => {
        type Array = A;

        const NAME: &'static str = $name;

        fn parameters(&self) -> Vec<Parameter<'_, A>> {
            vec![("probs", ParameterRange::$probs, &self.probs) $(, (stringify!($rest), ParameterRange::$range, &self.$rest))?]
        }

        fn is_validated(&self) -> bool {
            self.validated
        }

        fn validated(self) -> Self {
            Self { validated: true, ..self }
        }
    };
}

trials! {
    /// The Bernoulli distribution: 1 has the probability p and 0 has the probability 1 - p, with p = `probs` in [0, 1]. PyTorch:
    /// `Bernoulli`, which clamps `probs` to [ε, 1 - ε].
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let bernoulli = Bernoulli::from_logits(&Tensor::from([-100.0, 0.0]));
    /// assert_eq!(bernoulli.log_prob(1.0).to_vec(), [-100.0, 0.5f64.ln()]);
    /// ```
    Bernoulli {}
}

impl<A: Array> Family for Bernoulli<A> {
    members!("Bernoulli", Unit);

    fn support(&self) -> Support<A> {
        Support::Boolean
    }

    fn log_density(&self, k: &A) -> Result<A> {
        self.logarithm(k, &(1.0 - expr(k)).get()?)?.get()
    }

    fn distribution_function(&self, k: &A) -> Result<A> {
        fill_masked((expr(k) * 0.0 + (1.0 - expr(&self.probs))).get()?, &[k.try_ge(1.0)?], 1.0)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        let success = p.try_gt(&(1.0 - expr(&self.probs)).get()?)?;
        fill_masked((expr(p) * 0.0).get()?, &[success], 1.0)
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        Ok([self.probs.clone(), ((1.0 - expr(&self.probs)) * &self.probs).get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        (-self.logarithm(&self.probs, &(1.0 - expr(&self.probs)).get()?)?).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        let success = noise.uniform()?.try_lt(&self.probs)?;
        Expr::from(noise.expand(&self.probs.try_number(A::Elem::ZERO)?)).masked(success, 1.0).get()
    }
}

trials! {
    /// The binomial distribution: the count k = 0 to n of successes in n trials has the probability C(n, k) pᵏ (1 - p)ⁿ⁻ᵏ. n is
    /// `total_count`, and p = `probs` in [0, 1] is the probability of a success. PyTorch: `Binomial`, which has no `cdf` and
    /// `icdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let binomial = Binomial::new(4.0, &Tensor::scalar(0.5));
    /// assert!((binomial.log_prob(2.0).exp().item() - 6.0f64 / 16.0).abs() < 1e-15);
    /// ```
    Binomial { total_count }
}

impl<A: Array> Family for Binomial<A> {
    members!("Binomial", Unit, total_count: Count);

    fn support(&self) -> Support<A> {
        Support::CountsTo(self.total_count.clone())
    }

    fn log_density(&self, k: &A) -> Result<A> {
        let failures = (expr(&self.total_count) - k).get()?;
        // The binomial coefficient C(n, k) of n trials is 1 / ((n + 1) B(k + 1, n - k + 1)), where B is the beta function.
        let count = (expr(k) + 1.0).betaln(expr(&failures) + 1.0) + (expr(&self.total_count) + 1.0).ln();
        (self.logarithm(k, &failures)? - count).get()
    }

    fn distribution_function(&self, k: &A) -> Result<A> {
        // For k ≥ n, the probability of at most k successes is 1. The incomplete beta function has no derivative for n - k = 0 failures, so
        // there it is computed for 1 failure and not used.
        let all = k.try_ge(&self.total_count)?;
        let failures = (expr(&self.total_count) - k).masked(&all, 1.0).get()?;
        let share = k.try_add(1.0)?.try_betaincc(&failures, &self.probs)?;
        fill_masked(share, &[all], 1.0)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        count_quantile(CountFamily::Binomial, &[&self.total_count, &self.probs], p, Site::here("icdf"))
    }

    fn entropy_formula(&self) -> Result<A> {
        let at = Site::here("entropy");
        let max_count = self.total_count.to_tensor(at)?.iter().fold(0.0, |max_count: f64, n| max_count.max(n.to_f64()));
        sum_entropy_over_counts(self, max_count, at)
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = (expr(&self.total_count) * &self.probs).get()?;
        let variance = (1.0 - expr(&self.probs)) * &mean;
        Ok([mean, variance.get()?])
    }

    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        let parameters = [noise.expand(&self.total_count)?, noise.expand(&self.probs)?];
        draw(Sampler::Binomial, &parameters, noise.generator, noise.at)
    }
}

trials! {
    /// The geometric distribution: the number k = 0, 1, 2, … of failures before the first success has the probability p (1 - p)ᵏ, with
    /// p = `probs` in (0, 1]. PyTorch: `Geometric`, which has no `cdf` and `icdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// assert_eq!(Geometric::new(&Tensor::scalar(0.25)).mean().item(), 3.0);
    /// ```
    Geometric {}
}

impl<A: Array> Family for Geometric<A> {
    members!("Geometric", Unit);

    fn check_relations(&self, at: Site) -> Result<(), A::Error> {
        let probs = self.probs.to_tensor(at)?;
        let wrong: Vec<f64> = probs.iter().map(Scalar::to_f64).filter(|&p| p <= 0.0).collect();
        check_parameter((Self::NAME, &self.parameters()), ("probs", "be positive"), probs.shape(), &wrong, at)
    }

    fn support(&self) -> Support<A> {
        Support::Counts
    }

    fn log_density(&self, k: &A) -> Result<A> {
        (times_log(k, &self.logarithms[1])? + &self.logarithms[0]).get()
    }

    fn distribution_function(&self, k: &A) -> Result<A> {
        (-((expr(k) + 1.0) * &self.logarithms[1]).expm1()).get()
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        count_quantile(CountFamily::Geometric, &[&self.logarithms[1]], p, Site::here("icdf"))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let mean = ((1.0 - expr(&self.probs)) / &self.probs).get()?;
        let variance = expr(&mean) / &self.probs;
        Ok([mean, variance.get()?])
    }

    fn entropy_formula(&self) -> Result<A> {
        let total = self.logarithm(&self.probs, &(1.0 - expr(&self.probs)).get()?)?;
        (-total / &self.probs).get()
    }

    fn draw(&self, mut noise: Noise<'_, A>) -> Result<A> {
        (expr(&noise.uniform()?).ln() / &self.logarithms[1]).floor().get()
    }
}

trials! {
    /// The negative binomial distribution: the number k = 0, 1, 2, … of successes before failure number r has the probability Γ(k + r) /
    /// (Γ(r) k!) (1 - p)ʳ pᵏ. r is `total_count` ≥ 0, and p is `probs` in [0, 1). For r = 0, k is always 0. PyTorch: `NegativeBinomial`,
    /// which has no `cdf` and `icdf`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let failures = NegativeBinomial::new(1.0, &Tensor::scalar(0.75)); // geometric
    /// assert!((failures.log_prob(2.0).item() - (0.25 * 0.75f64 * 0.75).ln()).abs() < 1e-15);
    /// ```
    NegativeBinomial { total_count }
}

impl<A: Array> Family for NegativeBinomial<A> {
    members!("NegativeBinomial", BelowOne, total_count: Nonnegative);

    fn support(&self) -> Support<A> {
        Support::Counts
    }

    fn log_density(&self, k: &A) -> Result<A> {
        let r = &self.total_count;
        // Γ(k + r) / (Γ(r) k!) is 1 / ((k + r) B(r, k + 1)), where B is the beta function.
        let is_zero = (expr(k) + r).get()?.try_eq(0.0)?;
        let count = ((expr(k) + 1.0).betaln(expr(r)) + (expr(k) + r).ln()).masked(&is_zero, 0.0);
        (self.logarithm(k, r)? - count).get()
    }

    fn distribution_function(&self, k: &A) -> Result<A> {
        // For r = 0, the count is always 0.
        let none = self.total_count.try_eq(0.0)?;
        let r = fill_masked(self.total_count.clone(), std::slice::from_ref(&none), 1.0)?;
        fill_masked(k.try_add(1.0)?.try_betaincc(&r, &self.probs)?, &[none], 1.0)
    }

    fn quantile_function(&self, p: &A) -> Result<A> {
        count_quantile(CountFamily::NegativeBinomial, &[&self.total_count, &self.probs], p, Site::here("icdf"))
    }

    fn mean_and_variance(&self) -> Result<[A; 2], A::Error> {
        let failure = || 1.0 - expr(&self.probs);
        let mean = (expr(&self.total_count) * &self.probs / failure()).get()?;
        let variance = expr(&mean) / failure();
        Ok([mean, variance.get()?])
    }

    /// Draws a Poisson number whose rate is a gamma draw. For r = 0, which is not a valid parameter of the gamma distribution, the rate is 0.
    fn draw(&self, noise: Noise<'_, A>) -> Result<A> {
        let r = noise.expand(&self.total_count)?;
        let gamma = draw(Sampler::Gamma, std::slice::from_ref(&r), noise.generator, noise.at)?;
        let gamma = fill_masked(gamma, &[r.try_eq(0.0)?], 0.0)?;
        let rate = noise.expand(&(expr(&gamma) * &self.probs / (1.0 - expr(&self.probs))).get()?)?;
        draw(Sampler::Poisson, &[rate], noise.generator, noise.at)
    }
}
