//! Invertible transforms of values, and the distributions of transformed values.

use std::f64::consts::LN_2;

use wengert_macros::twins;
use wengert_special::Array;
use wengert_tensor::ops::{
    Activations, Clamp, Comparison, Cumulative, Functions, IntoArray, Operand, Result, Views, try_cat, try_where_,
};
use wengert_tensor::{Float, Generator, Scalar, Shape, Site, Tensor};

use crate::distribution::{Distribution, draw_for_batch, not_implemented, to_array};
use crate::expression::{Expr, expr};
use crate::sampling::smallest_normal;
use crate::support::{argument_error, broadcast_shape, fill_masked};

/// An invertible function, with the logarithm of the magnitude of its derivative. PyTorch: `torch.distributions.transforms`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let x = Tensor::from([0.0, 1.0]);
/// let shares = Transform::StickBreaking.forward(&x); // [K - 1] numbers give [K] shares
/// assert!((shares.sum(..).item() - 1.0f64).abs() < 1e-15);
/// assert!((Transform::StickBreaking.inverse(&shares) - x).abs().amax(..).item() < 1e-14);
/// ```
#[derive(Clone, Debug)]
pub enum Transform<A> {
    /// Maps x to loc + scale x, where scale is not 0. PyTorch: `AffineTransform`.
    Affine {
        /// The constant.
        loc: A,
        /// The factor.
        scale: A,
    },
    /// Maps x to eˣ. PyTorch: `ExpTransform`.
    Exp,
    /// Maps x to 1 / (1 + e⁻ˣ). PyTorch: `SigmoidTransform`.
    Sigmoid,
    /// Maps x to ln(1 + eˣ). PyTorch: `SoftplusTransform`.
    Softplus,
    /// Maps x to its hyperbolic tangent. PyTorch: `TanhTransform`.
    Tanh,
    /// Maps K - 1 numbers in the last dimension to K positive numbers with the sum 1. Each input determines the share of the remaining sum
    /// that its output takes. PyTorch: `StickBreakingTransform`.
    StickBreaking,
}

#[twins]
impl<A: Array> Transform<A> {
    /// Returns the transform of `x`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, stick-breaking gets a number without dimensions, or memory cannot hold the result.
    pub fn try_forward(&self, x: impl IntoArray<Array = A>) -> Result<A, A::Error> {
        let x = &x.array();
        match self {
            Transform::Affine { loc, scale } => (expr(x) * scale + loc).get(),
            Transform::Exp => x.try_exp(),
            Transform::Sigmoid => x.try_sigmoid(),
            Transform::Softplus => (-(-expr(x)).logsigmoid()).get(),
            Transform::Tanh => x.try_tanh(),
            Transform::StickBreaking => {
                let z = (expr(x) - &logarithms_of_offsets(x, Site::here("forward"))?).get()?;
                let rest = (-expr(&z)).logsigmoid().get()?.try_cumsum(-1)?;
                let shares = (Expr::from(z.try_logsigmoid()) + &rest - (-expr(&z)).logsigmoid()).exp().get()?;
                // The logarithm of the sum that remains after all outputs but the last. An empty vector gives a single share of 1, whose
                // logarithm is 0.
                let last = match rest.shape().last() {
                    Some(0) => wengert_tensor::ops::Reductions::try_sum_keepdim(&rest, -1)?,
                    last => rest.try_narrow(-1, last.map_or(0, |&count| count - 1), 1)?,
                };
                try_cat(&[shares, last.try_exp()?], -1)
            }
        }
    }

    /// Returns the x whose transform is `y`: infinite at an end of the range of the transform, NaN outside. Stick-breaking does not check
    /// that the elements of `y` have the sum 1.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, stick-breaking gets a number without dimensions, or memory cannot hold the result.
    pub fn try_inverse(&self, y: impl IntoArray<Array = A>) -> Result<A, A::Error> {
        let y = &y.array();
        match self {
            Transform::Affine { loc, scale } => ((expr(y) - loc) / scale).get(),
            Transform::Exp => y.try_log(),
            Transform::Sigmoid => (expr(y).ln() - (-expr(y)).ln_1p()).get(),
            Transform::Softplus => (expr(y) + (-expr(y)).log1mexp()).get(),
            Transform::Tanh => y.try_atanh(),
            Transform::StickBreaking => {
                let count = y.shape().last().copied().unwrap_or(1);
                let first = y.try_narrow(-1, 0, count.saturating_sub(1))?;
                // The sum that remains after an output is the sum of the later outputs.
                let rest = y.try_flip(-1)?.try_cumsum(-1)?.try_flip(-1)?.try_narrow(-1, 1, count.saturating_sub(1))?;
                (expr(&first).ln() - expr(&rest).ln() + &logarithms_of_offsets(&first, Site::here("inverse"))?).get()
            }
        }
    }

    /// Returns ln |dy/dx| for y = forward(x). For stick-breaking, returns the logarithm of the magnitude of the Jacobian determinant.
    /// PyTorch: `log_abs_det_jacobian`.
    ///
    /// # Errors
    ///
    /// If the shapes do not broadcast, stick-breaking gets a number without dimensions, or memory cannot hold the result.
    pub fn try_log_abs_det(&self, x: impl IntoArray<Array = A>) -> Result<A, A::Error> {
        let x = &x.array();
        match self {
            Transform::Affine { scale, .. } => (expr(x) * 0.0 + expr(scale).abs().ln()).get(),
            Transform::Exp => Ok(x.clone()),
            Transform::Sigmoid => (expr(x).logsigmoid() + (-expr(x)).logsigmoid()).get(),
            Transform::Softplus => x.try_logsigmoid(),
            Transform::Tanh => (((expr(x) * 2.0).logsigmoid() - x + LN_2) * 2.0).get(),
            Transform::StickBreaking => {
                let z = (expr(x) - &logarithms_of_offsets(x, Site::here("log_abs_det"))?).get()?;
                let y = self.try_forward(x)?;
                let first = y.try_narrow(-1, 0, x.shape().last().copied().unwrap_or(0))?;
                ((-expr(&z)).logsigmoid() + expr(&first).ln()).sum_last(1).get()
            }
        }
    }
}

/// Returns the logarithms of K - 1, …, 2, 1 for the K - 1 numbers in the last dimension. Stick-breaking subtracts them, so inputs of 0 give
/// equal outputs. Returns an error if `x` has no dimensions.
fn logarithms_of_offsets<A: Array>(x: &A, at: Site) -> Result<A> {
    let shape = x.shape();
    let Some(&count) = shape.last() else {
        return Err(argument_error(at, "StickBreaking transforms vectors, but got a number without dimensions"));
    };
    x.try_constant(&Tensor::try_from_fn([count], |index| A::Elem::from_f64(((count - index[0]) as f64).ln()))?)
}

impl<A: Array> Transform<A> {
    /// Returns the number of last dimensions that the transform treats as one value: 1 for stick-breaking, else 0.
    fn event_rank(&self) -> usize {
        usize::from(matches!(self, Transform::StickBreaking))
    }

    /// Returns the shape of the transform of a value with the shape `event`.
    fn shape(&self, mut event: Shape) -> Shape {
        if let (Transform::StickBreaking, Some(last)) = (self, event.last_mut()) {
            *last = last.saturating_add(1);
        }
        event
    }

    /// Returns the bounds of the image: the set of values that the transform returns. The bounds are infinite for affine transforms and for
    /// transforms of vectors.
    fn image(&self) -> [f64; 2] {
        match self {
            Transform::Affine { .. } | Transform::StickBreaking => [f64::NEG_INFINITY, f64::INFINITY],
            Transform::Exp | Transform::Softplus => [0.0, f64::INFINITY],
            Transform::Sigmoid => [0.0, 1.0],
            Transform::Tanh => [-1.0, 1.0],
        }
    }

    /// Returns the masks of the elements of `y` below and above the image, which does not contain its bounds; `None` for an infinite bound.
    fn outside(&self, y: &A) -> Result<[Option<A::Mask>; 2], A::Error> {
        let [low, high] = self.image();
        let below = low.is_finite().then(|| y.try_le(low)).transpose()?;
        Ok([below, high.is_finite().then(|| y.try_ge(high)).transpose()?])
    }

    /// Returns the transform of `x`. A value that rounds to a finite end of the image, where the density is 0, is replaced by a number inside
    /// the image. For stick-breaking, a share that rounds to 0 is replaced by the smallest normal number.
    fn transform_sample(&self, x: &A) -> Result<A> {
        let y = self.try_forward(x)?;
        let half = 0.5 * A::Elem::EPSILON.to_f64();
        match self {
            Transform::Affine { .. } => Ok(y),
            Transform::Exp | Transform::Softplus | Transform::StickBreaking => {
                y.try_clamp_min(smallest_normal::<A::Elem>())
            }
            Transform::Sigmoid => y.try_clamp(smallest_normal::<A::Elem>(), 1.0 - half),
            Transform::Tanh => y.try_clamp(half - 1.0, 1.0 - half),
        }
    }

    /// Returns `y`, with a value inside of the image in place of the elements where one of the masks is true.
    fn moved_inside(&self, y: &A, outside: &[Option<A::Mask>; 2]) -> Result<A> {
        let [low, high] = self.image();
        let masks: Vec<A::Mask> = outside.iter().flatten().cloned().collect();
        fill_masked(y.clone(), &masks, 0.5 * (low + high.min(low + 2.0)))
    }
}

/// The distribution of transformed values of `base`. The transforms are applied one after the other. The batch shape of `base` broadcasts
/// with the parameters of affine transforms. Samples that round to a finite end of a transform's range are moved inside, where their
/// density is not 0. PyTorch: `TransformedDistribution`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let normal = Normal::new(&Tensor::<f64>::scalar(0.3), 0.5);
/// let transformed = TransformedDistribution::new(normal, vec![Transform::Exp]);
/// let log_normal = LogNormal::new(&Tensor::scalar(0.3), 0.5);
/// assert!((transformed.log_prob(2.0).item() - log_normal.log_prob(2.0).item()).abs() < 1e-15);
/// ```
#[derive(Clone, Debug)]
pub struct TransformedDistribution<D, A> {
    base: D,
    transforms: Vec<Transform<A>>,
}

impl<D, A> TransformedDistribution<D, A> {
    /// Returns the distribution of values of `base` to which `transforms` are applied in this order.
    pub fn new(base: D, transforms: Vec<Transform<A>>) -> Self {
        TransformedDistribution { base, transforms }
    }
}

impl<A: Array, D: Distribution<A>> TransformedDistribution<D, A> {
    /// Returns the number of dimensions of an event: the largest number among the base and the transforms.
    fn event_rank(&self) -> usize {
        let ranks = self.transforms.iter().map(Transform::event_rank);
        ranks.fold(self.base.event_shape().rank(), usize::max)
    }

    /// Returns the batch shape of `base`, expanded to the parameters of affine transforms.
    fn base_batch_shape(&self) -> Shape {
        let event = self.base.event_shape();
        let mut shape: Shape = self.base.batch_shape().iter().chain(event.iter()).copied().collect();
        let mut added_dims = 0;
        for transform in &self.transforms {
            match transform {
                Transform::Affine { loc, scale } => {
                    for mut other in [loc.shape(), scale.shape()] {
                        if let Some(last) = other.last_mut().filter(|last| **last > 1) {
                            *last = last.saturating_sub(added_dims);
                        }
                        // Shapes that do not broadcast give an error in `forward`.
                        let joined = broadcast_shape::<wengert_tensor::Error>(
                            &[shape.clone(), other],
                            Site::here("batch_shape"),
                        );
                        shape = joined.unwrap_or(shape);
                    }
                }
                Transform::StickBreaking => added_dims += 1,
                _ => {}
            }
        }
        Shape::from(&shape[..shape.rank() - event.rank()])
    }

    /// Returns draws of `base`, independent for each position of the expanded batch shape.
    fn draw_base(&self, draws: impl FnOnce(Shape) -> Result<A>, shape: &Shape) -> Result<A> {
        draw_for_batch(draws, shape, &self.base.batch_shape(), &self.base_batch_shape())
    }

    /// Returns the logarithm of the density at `y`, for the distribution of values of `base` after the first `count` transforms.
    fn log_density_after(&self, count: usize, y: &A) -> Result<A> {
        let Some(last) = count.checked_sub(1) else {
            let added = self.event_rank() - self.base.event_shape().rank();
            return Expr::from(self.base.try_log_prob(y)).sum_last(added).get();
        };
        let transform = &self.transforms[last];
        let outside = transform.outside(y)?;
        let y = transform.moved_inside(y, &outside)?;
        let x = transform.try_inverse(&y)?;
        let masks: Vec<A::Mask> = outside.into_iter().flatten().collect();
        let slope = fill_masked(transform.try_log_abs_det(&x)?, &masks, f64::INFINITY)?;
        let slope = expr(&slope).sum_last(self.event_rank() - transform.event_rank());
        (Expr::from(self.log_density_after(last, &x)) - slope).get()
    }

    /// Returns the distribution function at `y`, for the distribution of values of `base` after the first `count` transforms.
    fn cdf_after(&self, count: usize, y: &A) -> Result<A> {
        let Some(last) = count.checked_sub(1) else { return self.base.try_cdf(y) };
        let transform = &self.transforms[last];
        let outside = transform.outside(y)?;
        let y = transform.moved_inside(y, &outside)?;
        let [below, above] = outside;
        let cdf = self.cdf_after(last, &transform.try_inverse(&y)?)?;
        match transform {
            Transform::Affine { scale, .. } => try_where_(scale.try_lt(0.0)?, &(1.0 - expr(&cdf)).get()?, &cdf),
            _ => fill_masked(fill_masked(cdf, below.as_slice(), 0.0)?, above.as_slice(), 1.0),
        }
    }

    /// Returns the quantile function at `p`, for the distribution of values of `base` after the first `count` transforms.
    fn quantile_after(&self, count: usize, p: &A) -> Result<A> {
        let Some(last) = count.checked_sub(1) else { return self.base.try_icdf(p) };
        let transform = &self.transforms[last];
        let p = match transform {
            Transform::Affine { scale, .. } => try_where_(scale.try_lt(0.0)?, &(1.0 - expr(p)).get()?, p)?,
            _ => p.clone(),
        };
        transform.try_forward(&self.quantile_after(last, &p)?)
    }
}

impl<A: Array, D: Distribution<A>> Distribution<A> for TransformedDistribution<D, A> {
    fn name(&self) -> &'static str {
        "TransformedDistribution"
    }

    fn any_parameter(&self) -> A {
        self.base.any_parameter()
    }

    fn batch_shape(&self) -> Shape {
        let shape = self.base_batch_shape();
        let added = self.event_rank() - self.base.event_shape().rank();
        Shape::from(&shape[..shape.rank().saturating_sub(added)])
    }

    fn event_shape(&self) -> Shape {
        let (batch, event) = (self.base_batch_shape(), self.base.event_shape());
        let added = (self.event_rank() - event.rank()).min(batch.rank());
        let event: Shape = batch[batch.rank() - added..].iter().chain(event.iter()).copied().collect();
        self.transforms.iter().fold(event, |event, transform| transform.shape(event))
    }

    fn is_discrete(&self) -> bool {
        self.base.is_discrete()
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let x = self.draw_base(|shape| self.base.try_rsample(shape, generator), &shape.into())?;
        self.transforms.iter().try_fold(x, |x, transform| transform.transform_sample(&x))
    }

    #[track_caller]
    fn try_sample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let x = self.draw_base(|shape| self.base.try_sample(shape, generator), &shape.into())?;
        self.transforms.iter().try_fold(x, |x, transform| transform.transform_sample(&x))?.try_detach()
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        self.log_density_after(self.transforms.len(), &to_array(value, &self.any_parameter())?)
    }

    #[track_caller]
    fn try_cdf(&self, value: impl Operand<A>) -> Result<A> {
        if self.event_rank() > 0 {
            return Err(not_implemented("TransformedDistribution", "cdf", Site::here("cdf")));
        }
        self.cdf_after(self.transforms.len(), &to_array(value, &self.any_parameter())?)
    }

    #[track_caller]
    fn try_icdf(&self, value: impl Operand<A>) -> Result<A> {
        if self.event_rank() > 0 {
            return Err(not_implemented("TransformedDistribution", "icdf", Site::here("icdf")));
        }
        self.quantile_after(self.transforms.len(), &to_array(value, &self.any_parameter())?)
    }
}
