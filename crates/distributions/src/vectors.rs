//! The categorical, multinomial and Dirichlet distributions, whose parameters have one element for each class.

use wengert_macros::twins;
use wengert_special::Array;
use wengert_tensor::ops::{
    Arithmetic, Clamp, Comparison, Cumulative, IntoArray, Operand, Reductions, Result, Softmax, Views, try_cat,
    try_where_,
};
use wengert_tensor::{Float, Generator, Scalar, Shape, Site, Tensor, View, check_list};

use crate::distribution::{Distribution, Noise, Validate, expand_to_batch, to_array};
use crate::expression::{Expr, expr, log_probabilities};
use crate::families::counts::{check_terms, counts_up_to, times_log};
use crate::families::trials::Binomial;
use crate::sampling::{Sampler, draw, smallest_normal};
use crate::support::{
    Parameter, ParameterRange, argument_error, broadcast_shape, check_parameters, check_values, fill_masked,
    is_fraction,
};

/// The categorical distribution over the classes 0 to K - 1: class k has the probability pₖ. The parameters have the shape `[…, K]`. Values
/// are class numbers, stored in the element type. The mean and the variance are NaN. PyTorch: `Categorical`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let die = Categorical::new(&Tensor::<f64>::ones([6])); // divided by their sum
/// assert!((die.log_prob(5.0).item() + 6f64.ln()).abs() < 1e-15);
/// assert!(die.sample([100], &mut Generator::new(0)).iter().all(|class| (0.0..6.0).contains(&class)));
/// ```
#[derive(Clone, Debug)]
pub struct Categorical<A> {
    probs: A,
    logits: A,
    validated: bool,
}

#[twins]
impl<A: Array> Categorical<A> {
    /// Returns the distribution with probabilities in proportion to `probs`, whose elements must not be negative. The derivative of the
    /// logarithm of a probability of 0 counts as 0, as in PyTorch.
    ///
    /// # Errors
    ///
    /// If `probs` has no dimension or no classes, or memory cannot hold the result.
    pub fn try_new(probs: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        let probs = probs.array();
        check_classes(&probs, "probs", Site::here("new"))?;
        let probs = probs.try_div(&probs.try_sum_keepdim(-1)?)?;
        let [logits, _] = log_probabilities(&probs)?;
        Ok(Categorical { logits, probs, validated: false })
    }

    /// Returns the distribution with the probabilities softmax(`logits`).
    ///
    /// # Errors
    ///
    /// If `logits` has no dimension or no classes, or memory cannot hold the result.
    pub fn try_from_logits(logits: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        let logits = logits.array();
        check_classes(&logits, "logits", Site::here("from_logits"))?;
        Ok(Categorical { probs: logits.try_softmax(-1)?, logits: logits.try_log_softmax(-1)?, validated: false })
    }
}

/// Returns an error if the parameter `name` has no dimension. The message is PyTorch's.
fn check_rank<A: Array>(x: &A, name: &str, at: Site) -> Result<(), A::Error> {
    match x.shape().rank() {
        0 => Err(argument_error(at, format!("`{name}` parameter must be at least one-dimensional."))),
        _ => Ok(()),
    }
}

/// Returns an error if the parameter `name` has no dimension, or its last dimension has the size 0.
fn check_classes<A: Array>(x: &A, name: &str, at: Site) -> Result<(), A::Error> {
    check_rank(x, name, at)?;
    match x.shape().last() {
        Some(0) => Err(argument_error(
            at,
            format!("`{name}` has the shape {}, but there must be at least one class", x.shape()),
        )),
        _ => Ok(()),
    }
}

impl<A: Array> Categorical<A> {
    /// Returns the probabilities, whose sum is 1.
    pub fn probs(&self) -> &A {
        &self.probs
    }

    /// Returns the logarithms of the probabilities.
    pub fn logits(&self) -> &A {
        &self.logits
    }

    /// Returns the mask of the shape `[…, K]` that is true at the class that `value` names.
    pub(crate) fn one_hot_mask(&self, value: &A) -> Result<A::Mask, A::Error> {
        let classes = Tensor::<i64>::try_arange(self.class_count())?.try_cast::<A::Elem>()?;
        let value = value.try_unsqueeze(-1)?;
        // `value` is expanded first, because a comparison of `[n, 1]` with `[n]` may cause a broadcast warning.
        let shape = broadcast_shape::<A::Error>(&[value.shape(), classes.shape().clone()], Site::here("log_prob"))?;
        value.try_expand(&*shape)?.try_eq(&value.try_constant(&classes)?)
    }

    /// Returns K, the number of classes.
    fn class_count(&self) -> usize {
        self.probs.shape().last().copied().unwrap_or(0)
    }

    fn parameters(&self) -> [Parameter<'_, A>; 1] {
        [("probs", ParameterRange::Probabilities, &self.probs)]
    }

    /// Returns a source of random arrays. Their shape is `shape`, followed by the batch shape and, if given, the size `last`.
    fn noise<'g>(&self, shape: Shape, generator: &'g mut Generator, last: Option<usize>, at: Site) -> Noise<'g, A> {
        let shape = shape.iter().chain(self.batch_shape().iter()).copied().chain(last).collect();
        Noise { shape, generator, reference: self.probs.clone(), at }
    }
}

impl<A: Array> Distribution<A> for Categorical<A> {
    fn name(&self) -> &'static str {
        "Categorical"
    }

    fn any_parameter(&self) -> A {
        self.probs.clone()
    }

    fn batch_shape(&self) -> Shape {
        let shape = self.probs.shape();
        Shape::from(&shape[..shape.rank() - 1])
    }

    fn is_discrete(&self) -> bool {
        true
    }

    #[track_caller]
    fn try_rsample(&self, _shape: impl Into<Shape>, _generator: &mut Generator) -> Result<A> {
        let message = "Categorical has no rsample: a discrete value has no derivative; use sample";
        Err(argument_error(Site::here("rsample"), message))
    }

    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let mut noise = self.noise(shape.into(), generator, Some(1), Site::here("sample"));
        let cumulative = self.probs.try_detach()?.try_cumsum(-1)?;
        // The last cumulative sum is 1 up to rounding. The uniform number is multiplied by this sum, so it stays below the sum.
        let total = cumulative.try_narrow(-1, self.class_count() - 1, 1)?;
        let uniform = (expr(&noise.uniform()?) * &total).get()?;
        let passed = cumulative.try_le(&uniform)?;
        let zeros = (expr(&uniform) * 0.0 + expr(&cumulative) * 0.0).get()?;
        Expr::from(fill_masked(zeros, &[passed], 1.0)).sum_last(1).get()
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let at = Site::here("log_prob");
        let x = expand_to_batch(to_array(value, &self.probs)?, &self.batch_shape(), at)?;
        if self.validated {
            let last = self.class_count() as f64 - 1.0;
            let outside = [x.try_lt(0.0)?, x.try_gt(last)?, is_fraction(&x)?];
            let constraint = format!("IntegerInterval(lower_bound=0, upper_bound={last})");
            check_values((self.name(), &constraint), &self.parameters(), &x, &outside, at)?;
        }
        let one_hot_mask = self.one_hot_mask(&x)?;
        let log_probability = Expr::from(try_where_(&one_hot_mask, &self.logits, 0.0)).sum_last(1).get()?;
        let count = (expr(&self.probs) * 0.0).masked(&one_hot_mask, 1.0).sum_last(1).get()?;
        let log_probability = fill_masked(log_probability, &[count.try_eq(0.0)?], f64::NEG_INFINITY)?;
        fill_masked(log_probability, &[x.try_ne(&x)?], f64::NAN)
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        (-times_log(&self.probs, &self.logits)?.sum_last(1)).get()
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        (expr(&self.probs).sum_last(1) * f64::NAN).get()
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        self.try_mean()
    }
}

impl<A: Array> Validate for Categorical<A> {
    type Arguments = A;

    #[track_caller]
    fn try_validate(self) -> Result<Self, A::Error> {
        check_parameters(self.name(), &self.parameters(), Site::here("validate"))?;
        Ok(Categorical { validated: true, ..self })
    }
}

/// The multinomial distribution: the counts xₖ of K classes in n = `total_count` draws have the probability n! Π pₖ^xₖ / xₖ!. The
/// probabilities pₖ or the logits have the shape `[…, K]`. `total_count` is one number for the whole batch. PyTorch: `Multinomial`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let counts = Multinomial::new(10, &Tensor::from([0.2, 0.3, 0.5])).sample([], &mut Generator::new(0));
/// assert_eq!((counts.shape(), counts.sum(..).item()), (&Shape::from([3]), 10.0));
/// ```
#[derive(Clone, Debug)]
pub struct Multinomial<A> {
    total_count: usize,
    classes: Categorical<A>,
}

#[twins]
impl<A: Array> Multinomial<A> {
    /// Returns the distribution with probabilities in proportion to `probs`, whose elements must not be negative.
    ///
    /// # Errors
    ///
    /// If `probs` has no dimension or no classes, or memory cannot hold the result.
    pub fn try_new(total_count: usize, probs: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        Ok(Multinomial { total_count, classes: Categorical::try_new(&probs.array())? })
    }

    /// Returns the distribution with the probabilities softmax(`logits`).
    ///
    /// # Errors
    ///
    /// If `logits` has no dimension or no classes, or memory cannot hold the result.
    pub fn try_from_logits(total_count: usize, logits: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        Ok(Multinomial { total_count, classes: Categorical::try_from_logits(&logits.array())? })
    }
}

impl<A: Array> Multinomial<A> {
    /// Returns the number of draws.
    pub fn total_count(&self) -> usize {
        self.total_count
    }

    /// Returns the probabilities, whose sum is 1.
    pub fn probs(&self) -> &A {
        self.classes.probs()
    }
}

impl<A: Array> Distribution<A> for Multinomial<A> {
    fn name(&self) -> &'static str {
        "Multinomial"
    }

    fn any_parameter(&self) -> A {
        self.probs().clone()
    }

    fn batch_shape(&self) -> Shape {
        self.classes.batch_shape()
    }

    fn event_shape(&self) -> Shape {
        Shape::from([self.classes.class_count()])
    }

    fn is_discrete(&self) -> bool {
        true
    }

    #[track_caller]
    fn try_rsample(&self, _shape: impl Into<Shape>, _generator: &mut Generator) -> Result<A> {
        let message = "Multinomial has no rsample: a discrete value has no derivative; use sample";
        Err(argument_error(Site::here("rsample"), message))
    }

    /// Draws each class's count from a binomial distribution over the draws that earlier classes have not taken.
    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let at = Site::here("sample");
        let probs = self.probs().try_detach()?;
        let noise = self.classes.noise(shape.into(), generator, None, at);
        let classes = self.classes.class_count();
        let total = probs.try_number(A::Elem::from_f64(self.total_count as f64))?;
        let mut remaining_draws = noise.expand(&total)?;
        check_list::<[A; 16]>(classes, at)?;
        let mut counts = Vec::with_capacity(classes);
        // For each class, the sum of its probability and the probabilities of all later classes.
        let remaining_probabilities = probs.try_flip(-1)?.try_cumsum(-1)?.try_flip(-1)?;
        for class in 0..classes {
            let remaining_probability = remaining_probabilities.try_select(-1, class)?;
            // If this sum is 0, no draws are left either, and any share gives the count 0.
            let share = (expr(&probs.try_select(-1, class)?) / &remaining_probability)
                .masked(remaining_probability.try_le(0.0)?, 1.0)
                .get()?;
            let share = if class + 1 == classes { (expr(&share) * 0.0 + 1.0).get()? } else { share };
            let share = noise.expand(&share.try_clamp_max(1.0)?)?;
            let count = draw(Sampler::Binomial, &[remaining_draws.clone(), share], &mut *noise.generator, at)?;
            remaining_draws = remaining_draws.try_sub(&count)?;
            counts.push(count.try_unsqueeze(-1)?);
        }
        try_cat(&counts, -1)
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let (probs, at) = (self.probs(), Site::here("log_prob"));
        let x = expand_to_batch(to_array(value, probs)?, &probs.shape(), at)?;
        let negative = [x.try_lt(0.0)?, is_fraction(&x)?];
        if self.classes.validated {
            let other_sum = x.try_sum_keepdim(-1)?.try_ne(self.total_count as f64)?;
            let outside = [negative[0].clone(), negative[1].clone(), other_sum];
            check_values((self.name(), "Multinomial()"), &self.classes.parameters(), &x, &outside, at)?;
        }
        let x = fill_masked(x, &negative, -1.0)?;
        let safe = fill_masked(x.clone(), &negative, 0.0)?;
        let n = self.total_count as f64;
        let terms = times_log(&safe, self.classes.logits())? - (expr(&safe) + 1.0).gammaln();
        let terms = Expr::from(fill_masked(terms.get()?, &negative, f64::NEG_INFINITY)).sum_last(1);
        let factorial = expr(&probs.try_number(A::Elem::from_f64(n + 1.0))?).gammaln();
        // If the sum is NaN, this mask is false, so the result is NaN.
        let has_other_sum = (expr(&x).sum_last(1) - n).abs().get()?.try_gt(0.0)?;
        (terms + factorial).masked(has_other_sum, f64::NEG_INFINITY).get()
    }

    /// Returns the entropy -ln n! - n Σ pₖ ln pₖ + Σ E ln xₖ!, for n draws, the probabilities pₖ and the counts xₖ of the classes. E is the
    /// mean. The distribution of a single count xₖ is binomial.
    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        let (probs, n) = (self.probs(), self.total_count as f64);
        check_terms(self.name(), n, Site::here("entropy"))?;
        let counts = counts_up_to(self.total_count, probs, probs.shape().rank())?;
        let weights = Expr::from(Binomial::try_new(n, probs)?.try_log_prob(&counts)).exp();
        let factorials = (weights * (expr(&counts) + 1.0).gammaln()).get()?.try_sum([0, -1])?;
        let factorial = expr(&probs.try_number(A::Elem::from_f64(n + 1.0))?).gammaln();
        (Expr::from(self.classes.try_entropy()) * n + &factorials - factorial).get()
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        (expr(self.probs()) * self.total_count as f64).get()
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        ((1.0 - expr(self.probs())) * self.probs() * self.total_count as f64).get()
    }
}

impl<A: Array> Validate for Multinomial<A> {
    type Arguments = A;

    #[track_caller]
    fn try_validate(self) -> Result<Self, A::Error> {
        check_parameters(self.name(), &self.classes.parameters(), Site::here("validate"))?;
        Ok(Multinomial { classes: Categorical { validated: true, ..self.classes }, ..self })
    }
}

/// The Dirichlet distribution over vectors x of K non-negative numbers with the sum 1. Its density is Γ(Σ aₖ) Π xₖ^(aₖ - 1) / Γ(aₖ).
/// a = `concentration` > 0 has the shape `[…, K]`. Gradients of `rsample` are implicit gradients of gamma draws. PyTorch: `Dirichlet`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let dirichlet = Dirichlet::new(&Tensor::from([1.0, 2.0, 5.0]));
/// assert_eq!(dirichlet.mean().to_vec(), [0.125, 0.25, 0.625]);
/// assert!((dirichlet.rsample([], &mut Generator::new(0)).sum(..).item() - 1.0f64).abs() < 1e-15);
/// ```
#[derive(Clone, Debug)]
pub struct Dirichlet<A> {
    pub(crate) concentration: A,
    validated: bool,
}

#[twins]
impl<A: Array> Dirichlet<A> {
    /// Returns the distribution with these concentrations.
    ///
    /// # Errors
    ///
    /// If `concentration` has no dimension.
    pub fn try_new(concentration: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        let concentration = concentration.array();
        check_rank(&concentration, "concentration", Site::here("new"))?;
        Ok(Dirichlet { concentration, validated: false })
    }
}

impl<A: Array> Dirichlet<A> {
    /// Returns the parameter `concentration`.
    pub fn concentration(&self) -> &A {
        &self.concentration
    }

    /// Returns the sum of the concentrations.
    pub(crate) fn total(&self) -> Expr<A> {
        expr(&self.concentration).sum_last(1)
    }

    fn parameters(&self) -> [Parameter<'_, A>; 1] {
        [("concentration", ParameterRange::Positives, &self.concentration)]
    }

    /// Returns the logarithm of the multivariate beta function of the concentrations.
    fn log_beta(&self) -> Expr<A> {
        expr(&self.concentration).gammaln().sum_last(1) - self.total().gammaln()
    }
}

impl<A: Array> Distribution<A> for Dirichlet<A> {
    fn name(&self) -> &'static str {
        "Dirichlet"
    }

    fn any_parameter(&self) -> A {
        self.concentration.clone()
    }

    fn batch_shape(&self) -> Shape {
        let shape = self.concentration.shape();
        Shape::from(&shape[..shape.rank() - 1])
    }

    fn event_shape(&self) -> Shape {
        let shape = self.concentration.shape();
        Shape::from(&shape[shape.rank() - 1..])
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let at = Site::here("rsample");
        let shape: Shape = shape.into().iter().chain(self.concentration.shape().iter()).copied().collect();
        let concentration = self.concentration.apply_view(View::Expand(shape), at)?;
        // Draws the logarithms of gamma numbers, because for small concentrations all gamma numbers of a vector may underflow.
        let logarithms = draw(Sampler::LogGamma, &[concentration], generator, at)?;
        logarithms.try_softmax(-1)?.try_clamp_min(smallest_normal::<A::Elem>())
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let a = &self.concentration;
        let at = Site::here("log_prob");
        let x = expand_to_batch(to_array(value, a)?, &a.shape(), at)?;
        let outside = [x.try_lt(0.0)?];
        let terms = (expr(a) - 1.0).xlogy(Expr::from(fill_masked(x.clone(), &outside, 1.0)));
        let terms = Expr::from(fill_masked(terms.get()?, &outside, f64::NEG_INFINITY)).sum_last(1);
        // The tolerance for the sum of a value's elements, which must be 1: PyTorch's tolerance, or the rounding error of the sum if it is
        // larger.
        let count = a.shape().last().copied().unwrap_or(0);
        let tolerance = (4.0 * count as f64 * A::Elem::EPSILON.to_f64()).max(1e-6);
        let other_sum = |sum: A| (expr(&sum) - 1.0).abs().get()?.try_gt(tolerance);
        if self.validated {
            let masks = [outside[0].clone(), other_sum(x.try_sum_keepdim(-1)?)?];
            check_values((self.name(), "Simplex()"), &self.parameters(), &x, &masks, at)?;
        }
        (terms - self.log_beta()).masked(other_sum(x.try_sum(-1)?)?, f64::NEG_INFINITY).get()
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        let a = || expr(&self.concentration);
        let count = self.concentration.shape().last().copied().unwrap_or(0) as f64;
        let slopes = ((a() - 1.0) * a().digamma()).sum_last(1);
        (self.log_beta() + (self.total() - count) * self.total().digamma() - slopes).get()
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        (expr(&self.concentration) / &self.concentration.try_sum_keepdim(-1)?).get()
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        let total = self.concentration.try_sum_keepdim(-1)?;
        let mean = (expr(&self.concentration) / &total).get()?;
        (expr(&mean) * (1.0 - expr(&mean)) / (expr(&total) + 1.0)).get()
    }
}

impl<A: Array> Validate for Dirichlet<A> {
    type Arguments = A;

    #[track_caller]
    fn try_validate(self) -> Result<Self, A::Error> {
        check_parameters(self.name(), &self.parameters(), Site::here("validate"))?;
        Ok(Dirichlet { validated: true, ..self })
    }
}
