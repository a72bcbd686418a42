//! Distributions made of other distributions: independent copies as one value, mixtures, truncation.

use wengert_macros::twins;
use wengert_special::Array;
use wengert_tensor::ops::{Argument, Clamp, Comparison, Operand, Result, Softmax, Views, try_where_};
use wengert_tensor::{Generator, Scalar, Shape, Site};

use crate::distribution::{Distribution, Noise, draw_for_batch, expand_to_batch, not_implemented, to_array};
use crate::expression::{Expr, expr};
use crate::support::{argument_error, broadcast_shape, fill_masked};
use crate::vectors::Categorical;

/// A distribution that moves the last batch dimensions of another distribution into the event. One value consists of the values of all
/// copies along these dimensions, and their `log_prob`s are added. PyTorch: `Independent`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let point = Independent::new(Normal::new(&Tensor::<f64>::zeros([3]), 1.0), 1);
/// assert_eq!((point.batch_shape(), point.event_shape()), (Shape::scalar(), Shape::from([3])));
/// assert_eq!(point.log_prob(&Tensor::ones([5, 3])).shape(), &[5]);
/// ```
#[derive(Clone, Debug)]
pub struct Independent<D> {
    pub(crate) base: D,
    pub(crate) dims: usize,
}

impl<D> Independent<D> {
    /// Returns the distribution in which the last `dims` batch dimensions of `base` are dimensions of the event. If `base` has fewer than
    /// `dims` batch dimensions, all of them become dimensions of the event.
    pub fn new<A: Array>(base: D, dims: usize) -> Self
    where
        D: Distribution<A>,
    {
        let dims = dims.min(base.batch_shape().rank());
        Independent { base, dims }
    }
}

impl<A: Array, D: Distribution<A>> Distribution<A> for Independent<D> {
    fn name(&self) -> &'static str {
        "Independent"
    }

    fn any_parameter(&self) -> A {
        self.base.any_parameter()
    }

    fn batch_shape(&self) -> Shape {
        let shape = self.base.batch_shape();
        Shape::from(&shape[..shape.rank() - self.dims])
    }

    fn event_shape(&self) -> Shape {
        let shape = self.base.batch_shape();
        shape[shape.rank() - self.dims..].iter().chain(self.base.event_shape().iter()).copied().collect()
    }

    fn is_discrete(&self) -> bool {
        self.base.is_discrete()
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        self.base.try_rsample(shape, generator)
    }

    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        self.base.try_sample(shape, generator)
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        Expr::from(self.base.try_log_prob(value)).sum_last(self.dims).get()
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        Expr::from(self.base.try_entropy()).sum_last(self.dims).get()
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        self.base.try_mean()
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        self.base.try_variance()
    }
}

/// A mixture of K distributions of one family. The last batch dimension of `components` has size K, and `mixture` has the probability of
/// each component. PyTorch: `MixtureSameFamily`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let weights = Categorical::new(&Tensor::from([0.25, 0.75]));
/// let mixture = MixtureSameFamily::new(weights, Normal::new(&Tensor::from([0.0, 4.0]), 1.0));
/// assert_eq!((mixture.mean().item(), mixture.variance().item()), (3.0, 4.0));
/// ```
#[derive(Clone, Debug)]
pub struct MixtureSameFamily<D, A> {
    mixture: Categorical<A>,
    components: D,
}

#[twins]
impl<A: Array, D: Distribution<A>> MixtureSameFamily<D, A> {
    /// Returns the mixture of `components` with the probabilities of `mixture`.
    ///
    /// # Errors
    ///
    /// If `components` has no batch dimension, or the size of its last batch dimension is not the number of classes of `mixture`. The
    /// message is PyTorch's. Also if the batch shapes do not broadcast.
    pub fn try_new(mixture: Categorical<A>, components: D) -> Result<Self, A::Error> {
        let (mixture_shape, component_shape) = (mixture.probs().shape(), components.batch_shape());
        let at = Site::here("new");
        if component_shape.last().is_none() || mixture_shape.last() != component_shape.last() {
            let (mixture_count, component_count) =
                (mixture_shape.last().copied().unwrap_or(0), component_shape.last().copied().unwrap_or(0));
            let message = format!(
                "`mixture_distribution component` ({mixture_count}) does not equal `component_distribution.batch_shape[-1]` ({component_count})"
            );
            return Err(argument_error(at, message));
        }
        let _ = broadcast_shape::<A::Error>(
            &[mixture.batch_shape(), Shape::from(&component_shape[..component_shape.rank() - 1])],
            at,
        )?;
        Ok(MixtureSameFamily { mixture, components })
    }
}

impl<A: Array, D: Distribution<A>> MixtureSameFamily<D, A> {
    /// Inserts a dimension of size 1 into `value`, at the position of the dimension of `components` that numbers its K
    /// distributions.
    fn unsqueeze_components(&self, value: impl Operand<A>) -> Result<A> {
        let value = to_array(value, self.mixture.probs())?;
        let rank = self.components.event_shape().rank() as isize;
        value.try_unsqueeze(-1 - rank)
    }

    /// Returns the sum Σ pₖ xₖ over the components. pₖ is the mixture's probability of component k, and xₖ are the elements of `x` for
    /// component k.
    fn weighted_sum(&self, x: &A) -> Result<A> {
        let rank = self.components.event_shape().rank();
        let mut probs = self.mixture.probs().clone();
        for _ in 0..rank {
            probs = probs.try_unsqueeze(-1)?;
        }
        let dim = -1 - rank as isize;
        wengert_tensor::ops::Reductions::try_sum(&(expr(x) * &probs).get()?, dim)
    }
}

impl<A: Array, D: Distribution<A>> Distribution<A> for MixtureSameFamily<D, A> {
    fn name(&self) -> &'static str {
        "MixtureSameFamily"
    }

    fn any_parameter(&self) -> A {
        self.mixture.any_parameter()
    }

    fn batch_shape(&self) -> Shape {
        let shape = self.components.batch_shape();
        let shapes = [Shape::from(&shape[..shape.rank() - 1]), self.mixture.batch_shape()];
        broadcast_shape::<wengert_tensor::Error>(&shapes, Site::here("batch_shape")).unwrap_or_default()
    }

    fn event_shape(&self) -> Shape {
        self.components.event_shape()
    }

    fn is_discrete(&self) -> bool {
        self.components.is_discrete()
    }

    #[track_caller]
    fn try_rsample(&self, _shape: impl Into<Shape>, _generator: &mut Generator) -> Result<A> {
        let message = "MixtureSameFamily has no rsample: the choice of a component has no derivative; use sample";
        Err(argument_error(Site::here("rsample"), message))
    }

    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let (shape, batch) = (shape.into(), self.batch_shape());
        let classes = |shape| self.mixture.try_sample(shape, generator);
        let mut mask =
            self.mixture.one_hot_mask(&draw_for_batch(classes, &shape, &self.mixture.batch_shape(), &batch)?)?;
        let (count, component_batch) = (self.mixture.probs().shape().last().copied(), self.components.batch_shape());
        let batch = batch.iter().copied().chain(count).collect();
        let values =
            draw_for_batch(|shape| self.components.try_sample(shape, generator), &shape, &component_batch, &batch)?;
        let rank = self.components.event_shape().rank();
        for _ in 0..rank {
            mask = mask.try_unsqueeze(-1)?;
        }
        let dim = -1 - rank as isize;
        wengert_tensor::ops::Reductions::try_sum(&try_where_(&mask, &values, 0.0)?, dim)
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let logarithms = self.components.try_log_prob(&self.unsqueeze_components(value)?)?;
        (expr(&logarithms) + self.mixture.logits()).get()?.try_logsumexp(-1)
    }

    #[track_caller]
    fn try_cdf(&self, value: impl Operand<A>) -> Result<A> {
        self.weighted_sum(&self.components.try_cdf(&self.unsqueeze_components(value)?)?)
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        self.weighted_sum(&self.components.try_mean()?)
    }

    /// Returns the mean of the components' variances plus the variance of the components' means, both weighted by the mixture's
    /// probabilities.
    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        let means = self.components.try_mean()?;
        let distance = (expr(&means) - &self.unsqueeze_components(&self.weighted_sum(&means)?)?).square();
        self.weighted_sum(&(distance + Expr::from(self.components.try_variance())).get()?)
    }
}

/// A distribution of one variable, restricted to the values between two bounds. Its density is the density of `base`, divided by the
/// probability between the bounds. `base` needs `cdf`, and `icdf` for samples. Gradients of `rsample` flow to the parameters of `base` and
/// to the bounds. The probability is a difference of two values of `cdf`. If both bounds are far above the median, it keeps its digits for
/// [`Normal`](crate::Normal), [`Laplace`](crate::Laplace), [`Cauchy`](crate::Cauchy) and [`StudentT`](crate::StudentT) only. If the computed
/// probability is 0, or the lower bound is above the upper bound, samples and `icdf` are NaN. With the computed probability 0, `log_prob` and
/// `cdf` are also NaN for values between the bounds.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let positive = Truncated::new(Normal::new(&Tensor::<f64>::scalar(0.0), 1.0), 0.0, f64::INFINITY);
/// let half = HalfNormal::new(&Tensor::scalar(1.0));
/// assert!((positive.log_prob(0.5).item() - half.log_prob(0.5).item()).abs() < 1e-15);
/// assert_eq!(positive.log_prob(-0.5).item(), f64::NEG_INFINITY);
/// ```
#[derive(Clone, Debug)]
pub struct Truncated<D, A> {
    base: D,
    /// The lower and the upper bound; `None` for the number -∞ as the lower bound, and for the number ∞ as the upper bound.
    bounds: [Option<A>; 2],
}

/// The probabilities from which the formulas of a truncated distribution are computed.
struct Probabilities<D, A: Array> {
    /// The probability of the values below the lower bound, under the base.
    low: A,
    /// The probability between the bounds, under the base; NaN if it is 0, or if the lower bound is above the upper bound.
    probability: A,
    upper: Option<UpperTail<D, A>>,
}

/// The quantities from which the formulas are computed where the lower bound is above the median. They come from the distribution of -x,
/// because the difference of two `cdf` values near 1 would lose digits.
struct UpperTail<D, A: Array> {
    reflected: D,
    /// True where the lower bound is above the median.
    is_above: A::Mask,
    /// The probability of the values above the lower bound.
    probability_above: A,
}

#[twins]
impl<A: Array, D: Distribution<A>> Truncated<D, A> {
    /// Returns `base`, restricted to the values between `low` and `high`. A lower bound of -∞ or an upper bound of ∞
    /// is no bound. A lower bound of ∞ or an upper bound of -∞ leaves no values.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, `base` is discrete, or its `cdf` returns an error.
    pub fn try_new(base: D, low: impl Operand<A>, high: impl Operand<A>) -> Result<Self, A::Error> {
        let at = Site::here("new");
        if base.is_discrete() {
            let message = format!("Truncated needs a distribution with a density, but {} is discrete", base.name());
            return Err(argument_error(at, message));
        }
        let reference = base.any_parameter();
        let bound = |argument: Argument<A>, no_bound: f64| match argument {
            Argument::Number(number) if number.to_f64() == no_bound => Ok(None),
            Argument::Number(number) => reference.try_number(number).map(Some),
            Argument::Array(array) => Ok(Some(array)),
        };
        let low = bound(low.into_argument(&reference)?, f64::NEG_INFINITY)?;
        let high = bound(high.into_argument(&reference)?, f64::INFINITY)?;
        let bounds = [low, high];
        let shapes: Vec<Shape> = bounds.iter().flatten().map(A::shape).chain([base.batch_shape()]).collect();
        broadcast_shape::<A::Error>(&shapes, at)?;
        let truncated = Truncated { base, bounds };
        truncated.cdf_at_bounds()?;
        Ok(truncated)
    }
}

impl<A: Array, D: Distribution<A>> Truncated<D, A> {
    /// Returns the probabilities of the values below each of the two bounds, under `base`.
    fn cdf_at_bounds(&self) -> Result<[A; 2], A::Error> {
        let probability_below = |bound: &Option<A>, infinite: f64| match bound {
            Some(bound) => self.base.try_cdf(bound),
            None => self.any_parameter().try_number(A::Elem::from_f64(infinite)),
        };
        Ok([probability_below(&self.bounds[0], 0.0)?, probability_below(&self.bounds[1], 1.0)?])
    }

    /// Returns the probability between the bounds, and the other probabilities of the formulas. A probability between the bounds that
    /// is not positive becomes NaN.
    fn probabilities(&self) -> Result<Probabilities<D, A>, A::Error> {
        let [low, high] = self.cdf_at_bounds()?;
        let mut probability = (expr(&high) - &low).get()?;
        let mut upper = None;
        if let (Some(bound), Some(reflected)) = (&self.bounds[0], self.base.reflected()) {
            let reflected = reflected?;
            let above = |bound: &A| reflected.try_cdf(&(-expr(bound)).get()?);
            let is_above = low.try_gt(0.5)?;
            let probability_above = above(bound)?;
            let between = match &self.bounds[1] {
                Some(bound) => (expr(&probability_above) - &above(bound)?).get()?,
                None => probability_above.clone(),
            };
            probability = try_where_(&is_above, &between, &probability)?;
            upper = Some(UpperTail { reflected, is_above, probability_above });
        }
        let none = probability.try_le(0.0)?;
        Ok(Probabilities { low, probability: fill_masked(probability, &[none], f64::NAN)?, upper })
    }

    /// Returns the masks of the values below the lower bound and above the upper bound; `None` for a bound that is `None`.
    fn outside(&self, x: &A) -> Result<[Option<A::Mask>; 2], A::Error> {
        let low = self.bounds[0].as_ref().map(|low| x.try_lt(low)).transpose()?;
        Ok([low, self.bounds[1].as_ref().map(|high| x.try_gt(high)).transpose()?])
    }
}

impl<A: Array, D: Distribution<A>> Distribution<A> for Truncated<D, A> {
    fn name(&self) -> &'static str {
        "Truncated"
    }

    fn any_parameter(&self) -> A {
        self.base.any_parameter()
    }

    fn batch_shape(&self) -> Shape {
        let shapes: Vec<Shape> = self.bounds.iter().flatten().map(A::shape).chain([self.base.batch_shape()]).collect();
        broadcast_shape::<wengert_tensor::Error>(&shapes, Site::here("batch_shape")).unwrap_or_default()
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let shape: Shape = shape.into().iter().chain(self.batch_shape().iter()).copied().collect();
        let at = Site::here("rsample");
        let uniform = Noise { shape, generator, reference: self.any_parameter(), at }.uniform()?;
        self.try_icdf(&uniform)
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let x = expand_to_batch(to_array(value, &self.any_parameter())?, &self.batch_shape(), Site::here("log_prob"))?;
        let masks: Vec<A::Mask> = self.outside(&x)?.into_iter().flatten().collect();
        let density = Expr::from(self.base.try_log_prob(&x)) - expr(&self.probabilities()?.probability).ln();
        fill_masked(density.get()?, &masks, f64::NEG_INFINITY)
    }

    #[track_caller]
    fn try_cdf(&self, value: impl Operand<A>) -> Result<A> {
        let x = expand_to_batch(to_array(value, &self.any_parameter())?, &self.batch_shape(), Site::here("cdf"))?;
        let Probabilities { low, probability, upper } = self.probabilities()?;
        let mut truncated_cdf = (Expr::from(self.base.try_cdf(&x)) - &low).get()?;
        if let Some(UpperTail { reflected, is_above, probability_above: above }) = upper {
            let from_above = expr(&above) - &reflected.try_cdf(&(-expr(&x)).get()?)?;
            truncated_cdf = try_where_(is_above, &from_above.get()?, &truncated_cdf)?;
        }
        let [below, above] = self.outside(&x)?;
        let truncated_cdf = fill_masked((expr(&truncated_cdf) / &probability).get()?, below.as_slice(), 0.0)?;
        fill_masked(truncated_cdf, above.as_slice(), 1.0)
    }

    #[track_caller]
    fn try_icdf(&self, value: impl Operand<A>) -> Result<A> {
        let p = expand_to_batch(to_array(value, &self.any_parameter())?, &self.batch_shape(), Site::here("icdf"))?;
        let Probabilities { low, probability, upper } = self.probabilities()?;
        let base_probability = expr(&probability) * &p + &low;
        let mut x = match upper {
            // Each quantile function gets 1/2 where the other one is used, so that all derivatives are finite.
            Some(UpperTail { reflected, is_above, probability_above: above }) => {
                let from_above = (expr(&above) - expr(&probability) * &p).get()?;
                let from_above = -Expr::from(reflected.try_icdf(&try_where_(&is_above, &from_above, 0.5)?));
                let from_below = self.base.try_icdf(&base_probability.masked(&is_above, 0.5).get()?)?;
                try_where_(is_above, &from_above.get()?, &from_below)?
            }
            None => self.base.try_icdf(&base_probability.get()?)?,
        };
        // Clamps the values, because rounding may move a value beyond a bound.
        if let Some(low) = &self.bounds[0] {
            x = x.try_clamp_min(&low.try_detach()?)?;
        }
        if let Some(high) = &self.bounds[1] {
            x = x.try_clamp_max(&high.try_detach()?)?;
        }
        let outside = [p.try_lt(0.0)?, p.try_gt(1.0)?];
        fill_masked(x, &outside, f64::NAN)
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        Err(not_implemented("Truncated", "entropy", Site::here("entropy")))
    }
}
