//! The trait [`Distribution`], and the trait [`Family`] for the formulas of distributions of one variable.

use wengert_macros::twins;
use wengert_special::Array;
use wengert_tensor::ops::{Argument, Arithmetic, Clamp, Comparison, Functions, Operand, Result, TensorLike, Views};
use wengert_tensor::{Float, Generator, Scalar, Shape, Site, Tensor, View};

use crate::support::{
    Parameter, Support, argument_error, broadcast_shape, check_parameters, check_values, fill_masked,
};

/// A probability distribution over arrays of type `A`: tensors or recorded variables.
///
/// The parameters broadcast to the batch shape. A distribution consists of independent copies, one for each element of
/// an array with the batch shape. The copies' parameters may differ. A value of one copy has the event shape, which is empty if the
/// value is a single number. Each method that computes values also returns an error if memory cannot hold them.
/// PyTorch: `torch.distributions.Distribution`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let normal = Normal::new(&Tensor::from([0.0, 10.0]), 1.0);
/// assert_eq!((normal.batch_shape(), normal.event_shape()), (Shape::from([2]), Shape::scalar()));
/// assert_eq!(normal.sample([5], &mut Generator::new(0)).shape(), &[5, 2]);
/// assert_eq!(normal.cdf(&Tensor::from([0.0, 10.0])).to_vec(), [0.5, 0.5]);
/// ```
#[twins]
pub trait Distribution<A: Array> {
    /// Returns the distribution's name in PyTorch.
    fn name(&self) -> &'static str;

    /// Returns one of the parameters. The methods convert values that are numbers or tensors to arrays on the tape of this parameter.
    fn any_parameter(&self) -> A;

    /// Returns the batch shape, in which the independent copies are arranged.
    fn batch_shape(&self) -> Shape;

    /// Returns the event shape: the shape of one value of one copy.
    fn event_shape(&self) -> Shape {
        Shape::scalar()
    }

    /// Returns true if the values are discrete, so that `log_prob` returns the logarithm of a probability. PyTorch: `support.is_discrete`.
    fn is_discrete(&self) -> bool {
        false
    }

    /// Draws values. The shape of the result is `shape`, followed by the batch shape and the event shape. Gradients flow to the parameters:
    /// the draw is a differentiable function of the parameters and of noise. PyTorch: `rsample`.
    ///
    /// # Errors
    ///
    /// If no differentiable draw is known, as for discrete distributions and mixtures, or memory cannot hold the
    /// values.
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A>;

    /// Draws values like [`rsample`](Self::rsample). No gradient flows through them. PyTorch: `sample`.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the values. Also if the distribution needs the `icdf` of another distribution, as
    /// [`Truncated`](crate::Truncated) does, and this one has none.
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        self.try_rsample(shape, generator)?.try_detach()
    }

    /// Returns the logarithm of the density, or of the probability if the distribution is discrete; -∞ outside of the support, NaN for NaN.
    /// `value` broadcasts with the batch shape, followed by the event shape. PyTorch: `log_prob`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, or memory cannot hold the result. If [`validate`](Validate::validate) was called and a
    /// value is outside of the support.
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A>;

    /// Returns the probability of values up to `value`. PyTorch: `cdf`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, `cdf` is not implemented for this distribution, or memory cannot hold the result.
    /// If [`validate`](Validate::validate) was called and a value is outside of the support.
    fn try_cdf(&self, value: impl Operand<A>) -> Result<A> {
        let _ = value;
        Err(not_implemented(self.name(), "cdf", Site::here("cdf")))
    }

    /// Returns the x for which the probability of values up to x is `value`; NaN if `value` is outside of [0, 1]. For a discrete
    /// distribution, returns the smallest x for which this probability is at least `value`. The derivative of this x is 0.
    /// PyTorch: `icdf`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, `icdf` is not implemented for this distribution, or memory cannot hold the result.
    fn try_icdf(&self, value: impl Operand<A>) -> Result<A> {
        let _ = value;
        Err(not_implemented(self.name(), "icdf", Site::here("icdf")))
    }

    /// Returns the distribution of -x for values x of this distribution; `None` if it is not of the same type. The `cdf` of the returned
    /// distribution computes small probabilities of the upper tail accurately, where 1 - `cdf` of this distribution would lose all digits.
    #[doc(hidden)]
    fn reflected(&self) -> Option<Result<Self, A::Error>>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the entropy in nats: the mean of -[`log_prob`](Self::log_prob). PyTorch: `entropy`.
    ///
    /// # Errors
    ///
    /// If no formula for the entropy is known, the entropy is a sum over too many counts, or memory cannot hold the
    /// result.
    fn try_entropy(&self) -> Result<A> {
        Err(not_implemented(self.name(), "entropy", Site::here("entropy")))
    }

    /// Returns the mean; ∞ or NaN where it does not exist. PyTorch: `mean`.
    ///
    /// # Errors
    ///
    /// If no formula for the mean is known, or memory cannot hold the result.
    fn try_mean(&self) -> Result<A> {
        Err(not_implemented(self.name(), "mean", Site::here("mean")))
    }

    /// Returns the variance; ∞ or NaN where it does not exist. PyTorch: `variance`.
    ///
    /// # Errors
    ///
    /// If no formula for the variance is known, or memory cannot hold the result.
    fn try_variance(&self) -> Result<A> {
        Err(not_implemented(self.name(), "variance", Site::here("variance")))
    }

    /// Returns the standard deviation. PyTorch: `stddev`.
    ///
    /// # Errors
    ///
    /// If no formula for the variance is known, or memory cannot hold the result.
    fn try_stddev(&self) -> Result<A> {
        self.try_variance()?.try_sqrt()
    }
}

/// Returns the error for a function that the distribution `name` does not have.
pub(crate) fn not_implemented<E: From<wengert_tensor::Error>>(name: &str, function: &str, at: Site) -> E {
    argument_error(at, format!("{name} has no {function}"))
}

/// The formulas of a distribution of one variable. The formulas need to hold only for values inside of the support. The methods of
/// [`Distribution`] are computed from them.
pub trait Family: Clone {
    /// The type of the parameters: tensors or variables.
    type Array: Array;

    /// The distribution's name in PyTorch.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Returns the parameters.
    #[doc(hidden)]
    fn parameters(&self) -> Vec<Parameter<'_, Self::Array>>;

    /// Returns true if the methods check their arguments.
    #[doc(hidden)]
    fn is_validated(&self) -> bool;

    /// Returns the distribution, marked to check its arguments.
    #[doc(hidden)]
    fn validated(self) -> Self;

    /// Returns an error if the parameters fail a condition that their ranges do not express. By default, returns `Ok`.
    #[doc(hidden)]
    fn check_relations(&self, at: Site) -> Result<(), <Self::Array as TensorLike>::Error> {
        let _ = at;
        Ok(())
    }

    /// Returns the support.
    #[doc(hidden)]
    fn support(&self) -> Support<Self::Array>;

    /// Returns the logarithm of the density, or of the probability for a discrete distribution, at `x` inside of the support.
    #[doc(hidden)]
    fn log_density(&self, x: &Self::Array) -> Result<Self::Array>;

    /// Returns the distribution function at `x`: the probability of values up to `x`.
    #[doc(hidden)]
    fn distribution_function(&self, x: &Self::Array) -> Result<Self::Array>;

    /// Returns the quantile function at `p`, which is the inverse of the distribution function. By default, returns an
    /// error.
    #[doc(hidden)]
    fn quantile_function(&self, p: &Self::Array) -> Result<Self::Array> {
        let _ = p;
        Err(not_implemented(Self::NAME, "icdf", Site::here("icdf")))
    }

    /// Returns the distribution of -x for values x of this distribution; `None` if it is not in the family.
    #[doc(hidden)]
    fn reflection(&self) -> Option<Result<Self, <Self::Array as TensorLike>::Error>> {
        None
    }

    /// Returns the mean and the variance.
    #[doc(hidden)]
    fn mean_and_variance(&self) -> Result<[Self::Array; 2], <Self::Array as TensorLike>::Error>;

    /// Returns the entropy. By default, returns an error.
    #[doc(hidden)]
    fn entropy_formula(&self) -> Result<Self::Array> {
        Err(not_implemented(Self::NAME, "entropy", Site::here("entropy")))
    }

    /// Returns draws with the shape of `noise`, which supplies the random numbers. By default, computes the quantile function at uniform
    /// numbers.
    #[doc(hidden)]
    fn draw(&self, mut noise: Noise<'_, Self::Array>) -> Result<Self::Array> {
        self.quantile_function(&noise.uniform()?)
    }
}

/// A source of random arrays, which all have the same shape.
#[doc(hidden)]
pub struct Noise<'g, A> {
    pub(crate) shape: Shape,
    pub(crate) generator: &'g mut Generator,
    /// An array on the tape that records the random arrays. Its values are not used.
    pub(crate) reference: A,
    pub(crate) at: Site,
}

impl<A: Array> Noise<'_, A> {
    /// Returns independent standard normal numbers, in the shape of the random arrays.
    pub(crate) fn normal(&mut self) -> Result<A> {
        self.reference.try_constant(&Tensor::try_randn(&*self.shape, self.generator)?)
    }

    /// Returns independent uniform numbers in (0, 1), in the shape of the random arrays.
    pub(crate) fn uniform(&mut self) -> Result<A> {
        let min_uniform = 1.0 / (1u64 << if A::Elem::EPSILON.to_f64() > 1e-10 { 25 } else { 54 }) as f64;
        self.reference.try_constant(&Tensor::try_rand(&*self.shape, self.generator)?.try_clamp_min(min_uniform)?)
    }

    /// Returns `x`, expanded to the shape of the random arrays.
    pub(crate) fn expand(&self, x: &A) -> Result<A> {
        if x.shape() == self.shape { Ok(x.clone()) } else { x.apply_view(View::Expand(self.shape.clone()), self.at) }
    }
}

/// Returns `value` as an array. If `value` is a number, the array is on the tape of `x`.
pub(crate) fn to_array<A: Array>(value: impl Operand<A>, x: &A) -> Result<A> {
    match value.into_argument(x)? {
        Argument::Array(array) => Ok(array),
        Argument::Number(number) => x.try_number(number),
    }
}

/// Returns draws of a distribution with the batch shape `batch`. The shape of the result begins with `shape` and `target`, to which `batch`
/// broadcasts. The draws are independent for all positions of `target`, also where `batch` has a single copy for several positions. `shape`
/// is the shape of the samples (`sample_shape` in PyTorch). `draws` returns draws of the distribution for a given shape of samples.
pub(crate) fn draw_for_batch<A: Array>(
    draws: impl FnOnce(Shape) -> Result<A>,
    shape: &Shape,
    batch: &Shape,
    target: &Shape,
) -> Result<A> {
    let added_rank = target.rank() - batch.rank();
    let repeated: Vec<usize> = (0..batch.rank()).filter(|&dim| batch[dim] != target[added_rank + dim]).collect();
    // The samples get one more dimension for each dimension of the target that the batch lacks or has with size 1. In the
    // second case, the loop below puts the new dimension in place of the dimension of size 1.
    let added = target[..added_rank].iter().copied().chain(repeated.iter().map(|&dim| target[added_rank + dim]));
    let mut x = draws(shape.iter().copied().chain(added).collect())?;
    let first = shape.rank() + added_rank;
    for (done, dim) in repeated.iter().enumerate() {
        let place = first + repeated.len() - done + dim;
        x = x.try_movedim(first as isize, place as isize)?.try_squeeze(place as isize - 1)?;
    }
    Ok(x)
}

/// Returns `value`, expanded to the shape to which its shape and `batch` broadcast, or an error if they do not
/// broadcast.
pub(crate) fn expand_to_batch<A: Array>(value: A, batch: &Shape, at: Site) -> Result<A> {
    let shape = broadcast_shape::<A::Error>(&[value.shape(), batch.clone()], at)?;
    if value.shape() == shape { Ok(value) } else { value.apply_view(View::Expand(shape), at) }
}

impl<A: Array, D: Family<Array = A>> Distribution<A> for D {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn any_parameter(&self) -> A {
        self.parameters()[0].2.clone()
    }

    fn batch_shape(&self) -> Shape {
        let shapes: Vec<Shape> = self.parameters().iter().map(|(_, _, x)| x.shape()).collect();
        // The constructor has checked that the parameters' shapes broadcast, so this call does not fail.
        broadcast_shape::<wengert_tensor::Error>(&shapes, Site::here("batch_shape")).unwrap_or_default()
    }

    fn is_discrete(&self) -> bool {
        self.support().is_discrete()
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let at = Site::here("rsample");
        if self.is_discrete() {
            let name = D::NAME;
            return Err(argument_error(
                at,
                format!("{name} has no rsample: a discrete value has no derivative; use sample"),
            ));
        }
        draw_samples(self, shape.into(), generator, at)
    }

    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        draw_samples(self, shape.into(), generator, Site::here("sample"))?.try_detach()
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let (x, outside) = prepare_value(self, value, Site::here("log_prob"))?;
        log_density_on_support(self, &x, &outside)
    }

    #[track_caller]
    fn try_cdf(&self, value: impl Operand<A>) -> Result<A> {
        let (x, _) = prepare_value(self, value, Site::here("cdf"))?;
        let support = self.support();
        let x = if support.is_discrete() { x.try_floor()? } else { x };
        let (below, above) = (support.below(&x)?, support.above(&x)?);
        let outside: Vec<A::Mask> = below.iter().chain(&above).cloned().collect();
        let inside = support.moved_inside(&x, &outside)?;
        let values = fill_masked(self.distribution_function(&inside)?, below.as_slice(), 0.0)?;
        fill_masked(values, above.as_slice(), 1.0)
    }

    #[track_caller]
    fn try_icdf(&self, value: impl Operand<A>) -> Result<A> {
        let at = Site::here("icdf");
        let p = expand_to_batch(to_array(value, &self.any_parameter())?, &self.batch_shape(), at)?;
        let outside = [p.try_lt(0.0)?, p.try_gt(1.0)?];
        let inside = fill_masked(p, &outside, 0.5)?;
        fill_masked(self.quantile_function(&inside)?, &outside, f64::NAN)
    }

    #[doc(hidden)]
    fn reflected(&self) -> Option<Result<Self, A::Error>> {
        self.reflection()
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        expand_to_batch(self.entropy_formula()?, &self.batch_shape(), Site::here("entropy"))
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        let [mean, _] = self.mean_and_variance()?;
        expand_to_batch(mean, &self.batch_shape(), Site::here("mean"))
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        let [_, variance] = self.mean_and_variance()?;
        expand_to_batch(variance, &self.batch_shape(), Site::here("variance"))
    }
}

/// Returns the logarithm of the density at `x`. The masks `outside` mark the elements outside of the support. The result is -∞ where one of
/// them is true.
pub(crate) fn log_density_on_support<A: Array, D: Family<Array = A>>(
    family: &D,
    x: &A,
    outside: &[A::Mask],
) -> Result<A> {
    let inside = family.support().moved_inside(x, outside)?;
    fill_masked(family.log_density(&inside)?, outside, f64::NEG_INFINITY)
}

/// Returns samples of a distribution of one variable. The shape of the result is `shape`, followed by the batch shape.
fn draw_samples<A: Array, D: Family<Array = A>>(
    family: &D,
    shape: Shape,
    generator: &mut Generator,
    at: Site,
) -> Result<A> {
    let shape: Shape = shape.iter().chain(family.batch_shape().iter()).copied().collect();
    let reference = family.any_parameter();
    family.draw(Noise { shape, generator: &mut generator.fork(), reference, at })
}

/// Returns `value`, expanded to the shape to which it and the batch shape broadcast, and the masks of its elements
/// outside of the support. Returns an error if the shapes do not broadcast, or if the distribution is validated and an
/// element is outside of the support.
fn prepare_value<A: Array, D: Family<Array = A>>(
    family: &D,
    value: impl Operand<A>,
    at: Site,
) -> Result<(A, Vec<A::Mask>), A::Error> {
    let parameters = family.parameters();
    let x = expand_to_batch(to_array(value, parameters[0].2)?, &family.batch_shape(), at)?;
    let support = family.support();
    let outside = support.outside(&x)?;
    if family.is_validated() {
        check_values((D::NAME, &support.constraint(at)?), &parameters, &x, &outside, at)?;
    }
    Ok((x, outside))
}

/// Checks of parameters and values. They are off by default, because a check has to evaluate recorded variables.
#[twins]
pub trait Validate: Sized {
    /// The type of the parameters: tensors or variables.
    type Arguments: TensorLike;

    /// Checks the parameters, and returns a distribution whose `log_prob` and `cdf` check their values too. PyTorch: `validate_args=True`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
    /// use wengert::{distributions::prelude::*, prelude::*};
    ///
    /// let error = Normal::new(&Tensor::scalar(0.0), -1.0).try_validate().unwrap_err();
    /// assert!(error.sentence().starts_with(
    ///     "Expected parameter scale (Tensor of shape ()) of distribution Normal(loc: 0.0, scale: -1.0) to satisfy the constraint \
    ///      GreaterThan(lower_bound=0.0), but found invalid values:"
    /// ));
    /// ```
    ///
    /// # Errors
    ///
    /// If a parameter is outside of its range, or parameters contradict each other, as the bounds of a uniform
    /// distribution can. Also if memory cannot hold the results of the checks.
    fn try_validate(self) -> Result<Self, <Self::Arguments as TensorLike>::Error>;
}

impl<A: Array, D: Family<Array = A>> Validate for D {
    type Arguments = A;

    #[track_caller]
    fn try_validate(self) -> Result<Self, A::Error> {
        let at = Site::here("validate");
        check_parameters(D::NAME, &self.parameters(), at)?;
        self.check_relations(at)?;
        Ok(self.validated())
    }
}
