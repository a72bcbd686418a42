//! A loss that compares the distances of an anchor to a positive and to a negative example.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, IntoArray, LossReduction, MarginLosses as _, TensorLike, TripletOptions,
};
use wengert_tensor::{Error, Float, Site};

use crate::loss::checks::{check_shape, reduce};
use crate::loss::three::{FormulaOfThree, LossOfThree};

/// The name of the loss in errors.
const TRIPLET_MARGIN_LOSS: &str = "triplet_margin_loss";

/// The name of the loss in errors.
const TRIPLET_MARGIN_WITH_DISTANCE_LOSS: &str = "triplet_margin_with_distance_loss";

/// The triplet margin loss: the distance of an anchor to a positive example should be smaller by a margin than the anchor's distance to a
/// negative example. The operation is [`triplet_margin_loss`](wengert_tensor::ops::MarginLosses::triplet_margin_loss). PyTorch:
/// `nn.TripletMarginLoss` and, by [`by_distance`](LossOfThree::by_distance), `nn.TripletMarginWithDistanceLoss`.
///
/// [`of`](LossOfThree::of) takes the anchor, the positive and the negative example, all vectors `[…, width]` of the same shape. By default the
/// margin is 1, the distances are Euclidean with 1e-6 added to each difference of elements, and there is no [`swap`](LossOfThree::swap).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{TripletMarginLoss, triplet_margin_loss};
/// use wengert::prelude::*;
///
/// let (anchor, positive, negative) = (Tensor::from([[0.0]]), Tensor::from([[1.0]]), Tensor::from([[-3.0f64]]));
/// assert_eq!(triplet_margin_loss(&anchor, &positive, &negative).item(), 0.0);
/// let loss = TripletMarginLoss::new().margin(3.0).by_distance(&anchor, &positive, &negative, |x, y| (x - y).abs().sum(1));
/// assert_eq!(loss.item(), 1.0);
/// ```
#[doc(alias("TripletMarginWithDistanceLoss"))]
pub type TripletMarginLoss = LossOfThree<TripletOptions>;

#[twins]
impl TripletMarginLoss {
    /// Sets the margin between the two distances; 1 by default. It must be above 0.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: TripletOptions { margin, ..self.formula }, ..self }
    }

    /// Sets the order p of the p-norm; 2 by default. The distance of two vectors is the p-norm of their difference.
    #[must_use]
    pub fn p(self, p: f64) -> Self {
        Self { formula: TripletOptions { p, ..self.formula }, ..self }
    }

    /// Sets the constant that is added to every difference of two elements before the norm is taken; 1e-6 by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Self { formula: TripletOptions { eps, ..self.formula }, ..self }
    }

    /// Sets whether the loss uses the smaller of two distances to the negative example: the anchor's distance and the positive example's distance. By
    /// default the loss uses the anchor's distance.
    #[must_use]
    pub fn swap(self, swap: bool) -> Self {
        Self { formula: TripletOptions { swap, ..self.formula }, ..self }
    }

    /// Returns the loss with distances that the function `distance` computes from two tensors. The options `p` and
    /// `eps` are not used.
    ///
    /// # Errors
    ///
    /// If the margin is not above 0, the shapes differ, the results of `distance` do not broadcast, or there is not enough memory.
    pub fn try_by_distance<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        anchor: P,
        positive: impl ArrayOperand<P::Array>,
        negative: impl ArrayOperand<P::Array>,
        distance: impl Fn(&P::Array, &P::Array) -> P::Array,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let anchor = anchor.array();
        let (positive, negative) = (positive.into_array(&anchor)?, negative.into_array(&anchor)?);
        let at = Site::here(TRIPLET_MARGIN_WITH_DISTANCE_LOSS);
        check_triple(&anchor, &positive, &negative, at)?;
        let margin = self.formula.margin;
        if margin <= 0.0 {
            return Err(Error::Argument { message: format!("margin must be greater than 0, got {margin}"), at }.into());
        }
        let mut far = distance(&anchor, &negative);
        if self.formula.swap {
            far = far.try_minimum(&distance(&positive, &negative))?;
        }
        let shortfall = distance(&anchor, &positive).try_sub(&far)?.try_add(margin)?;
        reduce(shortfall.try_relu()?, self.reduction)
    }
}

impl FormulaOfThree for TripletOptions {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [anchor, positive, negative] = tensors;
        check_triple(anchor, positive, negative, Site::here(TRIPLET_MARGIN_LOSS))?;
        anchor.try_triplet_margin_loss(positive, negative, self, reduction)
    }
}

/// Returns an error unless the positive and the negative example have the shape of the anchor.
fn check_triple<A: TensorLike>(anchor: &A, positive: &A, negative: &A, at: Site) -> Result<(), Error> {
    check_shape("the positive", &positive.shape(), &anchor.shape(), at)?;
    check_shape("the negative", &negative.shape(), &anchor.shape(), at)
}

/// Returns the loss that [`TripletMarginLoss::of`] computes with the default options. PyTorch: `nn.functional.triplet_margin_loss`.
///
/// # Errors
///
/// If the shapes differ or have no dimensions, or there is not enough memory.
#[twins]
pub fn try_triplet_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    anchor: P,
    positive: impl ArrayOperand<P::Array>,
    negative: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    TripletMarginLoss::new().try_of(anchor, positive, negative)
}
