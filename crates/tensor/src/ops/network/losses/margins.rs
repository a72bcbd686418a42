//! Losses with a margin. The ranking and triplet losses are 0 if the prediction is right by at least the margin.

use wengert_macros::twins;

use crate::ops::network::losses::reduction::{LossReduction, reduce};
use crate::ops::primitive::pair::broadcast_shape;
use crate::ops::reduce::norms::norm;
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::{Binary, Compare, Dims, Float, Site, Unary, ensure};

/// Losses with a margin.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::prelude::*;
/// use wengert::tensor::ops::LossReduction;
///
/// let (first, second) = (Tensor::from([2.0, 0.0]), Tensor::from([1.0, 1.0]));
/// let loss = first.margin_ranking_loss(&second, &Tensor::from([1.0, 1.0]), 0.5, LossReduction::None);
/// assert_eq!(loss.to_vec(), [0.0, 1.5]); // `first` should be larger by 0.5
/// ```
#[twins(blanket)]
pub trait MarginLosses: TensorLike<Elem: Float> {
    /// Returns max(0, -y (x₁ - x₂) + margin) for `self` x₁, `other` x₂ and `target` y. x₁ should be larger where y is 1, and smaller where
    /// y is -1. The operands have the same number of dimensions, and their sizes broadcast. PyTorch:
    /// `nn.functional.margin_ranking_loss`.
    fn try_margin_ranking_loss(
        &self,
        other: impl ArrayOperand<Self>,
        target: impl ArrayOperand<Self>,
        margin: f64,
        reduction: LossReduction,
    ) -> Result<Self> {
        let (other, target) = (&other.into_array(self)?, &target.into_array(self)?);
        let at = Site::here("margin_ranking_loss");
        let ranks = [self.shape().rank(), other.shape().rank(), target.shape().rank()];
        ensure!(
            ranks[0] == ranks[1] && ranks[0] == ranks[2],
            at,
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {}, input2: \
                 {}, target: {} ",
            self.shape(),
            other.shape(),
            target.shape()
        );
        let wrong = target.apply_unary(Unary::Neg, at)?.times(&self.minus(other, at)?, at)?;
        reduce(&wrong.plus(margin, at)?.apply_unary(Unary::Relu, at)?, reduction, at)
    }

    /// Returns `self` where `target` is 1, and max(0, margin - `self`) where `target` is -1. For other targets, returns the sum of both
    /// terms. `self` and `target` broadcast. PyTorch: `nn.functional.hinge_embedding_loss`.
    fn try_hinge_embedding_loss(
        &self,
        target: impl ArrayOperand<Self>,
        margin: f64,
        reduction: LossReduction,
    ) -> Result<Self> {
        let target = &target.into_array(self)?;
        let at = Site::here("hinge_embedding_loss");
        let far = self.apply_unary(Unary::Neg, at)?.plus(margin, at)?.apply_unary(Unary::Relu, at)?;
        let shape = broadcast_shape(&self.shape(), &target.shape(), at)?;
        let part = |losses: &Self, class: f64| {
            losses.expand_to(&shape, at)?.choose(
                &target.expand_to(&shape, at)?.compare(Compare::Ne, class, at)?,
                0.0,
                at,
            )
        };
        reduce(&part(&far, 1.0)?.plus(&part(self, -1.0)?, at)?, reduction, at)
    }

    /// Returns ln(1 + e^(-y x)) for x (`self`) and targets y of 1 or -1. The loss is ∞ where the exponential overflows. PyTorch:
    /// `nn.functional.soft_margin_loss`.
    fn try_soft_margin_loss(&self, target: impl ArrayOperand<Self>, reduction: LossReduction) -> Result<Self> {
        let target = &target.into_array(self)?;
        let at = Site::here("soft_margin_loss");
        let wrong = target.apply_unary(Unary::Neg, at)?.times(self, at)?;
        reduce(&wrong.apply_unary(Unary::Exp, at)?.apply_unary(Unary::Log1p, at)?, reduction, at)
    }

    /// Returns max(0, |a - p| - |a - n| + margin) for the anchors a (`self`), the positives p and the negatives n, all `[…, width]`. The
    /// distances are norms along the last dimension, after `eps` is added to the difference. With `swap`, |a - n| is replaced by |p - n| if
    /// |p - n| is smaller (Balntas et al. 2016). A distance has the derivatives of [`vector_norm`](crate::ops::Norms::vector_norm): 0 between
    /// equal points if `eps` is 0. Refuses a margin of 0 or less, operands of rank 0, and operands of different ranks. PyTorch:
    /// `nn.functional.triplet_margin_loss`.
    fn try_triplet_margin_loss(
        &self,
        positive: impl ArrayOperand<Self>,
        negative: impl ArrayOperand<Self>,
        options: TripletOptions,
        reduction: LossReduction,
    ) -> Result<Self> {
        let (positive, negative) = (&positive.into_array(self)?, &negative.into_array(self)?);
        let at = Site::here("triplet_margin_loss");
        let ranks = [self.shape().rank(), positive.shape().rank(), negative.shape().rank()];
        ensure!(
            ranks[0] == ranks[1] && ranks[0] == ranks[2],
            at,
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: \
                 anchor {}D, positive {}D, and negative {}D inputs",
            ranks[0],
            ranks[1],
            ranks[2]
        );
        let margin = options.margin;
        ensure!(margin > 0.0 || margin.is_nan(), at, "margin must be greater than 0, got {margin}");
        ensure!(ranks[0] > 0, at, "triplet_margin_loss: vectors are expected, but got numbers");
        let near = distance(self, positive, options, at)?;
        let mut far = distance(self, negative, options, at)?;
        if options.swap {
            far = far.combine(Binary::Minimum, &distance(positive, negative, options, at)?, at)?;
        }
        let losses = near.minus(&far, at)?.plus(options.margin, at)?.apply_unary(Unary::Relu, at)?;
        reduce(&losses, reduction, at)
    }
}

/// Options of the triplet loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TripletOptions {
    /// The margin by which the anchor must be nearer to the positive than to the negative. It must be above 0.
    pub margin: f64,
    /// The order p of the norm that measures distances.
    pub p: f64,
    /// A constant added to every element of the difference between two points.
    pub eps: f64,
    /// Whether the distance from positive to negative is used if it is smaller than the distance from anchor to negative.
    pub swap: bool,
}

impl Default for TripletOptions {
    /// Returns margin 1, the Euclidean norm, eps 1e-6, and no swap.
    fn default() -> Self {
        TripletOptions { margin: 1.0, p: 2.0, eps: 1e-6, swap: false }
    }
}

/// Returns the p-norm of x - y + eps along the last dimension, without that dimension.
fn distance<A: TensorLike<Elem: Float>>(x: &A, y: &A, options: TripletOptions, at: Site) -> Result<A> {
    norm(&x.minus(y, at)?.plus(options.eps, at)?, options.p, &Dims::from(-1), false, at)
}

#[cfg(test)]
mod tests {
    use crate::ops::LossReduction::{Mean, None as Each};
    use crate::ops::network::losses::margins::{MarginLosses, TripletOptions};
    use crate::prelude::*;

    #[test]
    fn the_loss_is_zero_beyond_the_margin() {
        let (x, y) = (Tensor::from([3.0, 1.0]), Tensor::from([1.0, 1.0]));
        let target = Tensor::from([1.0, -1.0]);
        assert_eq!(x.margin_ranking_loss(&y, &target, 0.5, Each).to_vec(), [0.0, 0.5]);
        assert_eq!(x.hinge_embedding_loss(&target, 1.5, Each).to_vec(), [3.0, 0.5]);
        assert_eq!(x.hinge_embedding_loss(Tensor::scalar(0.0), 1.5, Each).to_vec(), [3.0, 1.5]);
        assert_eq!(Tensor::from([0.0]).soft_margin_loss(Tensor::from([1.0]), Mean).item(), 2f64.ln());
    }

    #[test]
    fn triplets() {
        let a = Tensor::from([[0.0, 0.0]]);
        let (p, n) = (Tensor::from([[3.0, 4.0]]), Tensor::from([[3.0, 0.0]]));
        let options = TripletOptions { eps: 0.0, ..Default::default() };
        assert_eq!(a.triplet_margin_loss(&p, &n, options, Each).to_vec(), [3.0]);
        let options = TripletOptions { p: 1.0, swap: true, ..options };
        assert_eq!(a.triplet_margin_loss(&n, &p, options, Each).to_vec(), [0.0]);
        let options = TripletOptions { p: f64::INFINITY, ..options };
        assert_eq!(a.triplet_margin_loss(&p, &n, options, Mean).item(), 2.0);
        for (margin, number) in [(0.0, "0"), (-1.5, "-1.5")] {
            let error = a.try_triplet_margin_loss(&p, &n, TripletOptions { margin, ..options }, Mean).unwrap_err();
            assert_eq!(error.sentence(), format!("margin must be greater than 0, got {number}"));
        }
    }

    /// The norm of order 0 counts the coordinates that differ, and the norm of order -∞ is the smallest difference. For the other orders,
    /// PyTorch gives the same losses.
    #[test]
    fn distances_of_any_order_are_norms() {
        let (a, n) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[1.0, 5.0]]));
        for (p, loss) in [(0.0, 9.0), (1.0, 7.0), (2.0, 7.0), (f64::INFINITY, 7.0), (f64::NEG_INFINITY, 10.0)] {
            let options = TripletOptions { margin: 10.0, p, eps: 0.0, swap: false };
            assert_eq!(a.triplet_margin_loss(&a, &n, options, Each).to_vec(), [loss], "{p}");
        }
    }
}
