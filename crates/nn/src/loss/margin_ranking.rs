//! A loss for pairs of scores: the score that should be larger must exceed the other one by a margin.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, IntoArray, LossReduction, MarginLosses as _, TensorLike};
use wengert_tensor::{Float, Site};

use crate::loss::checks::check_shape;
use crate::loss::three::{FormulaOfThree, LossOfThree};

/// The name of this loss in errors.
const MARGIN_RANKING_LOSS: &str = "margin_ranking_loss";

/// The margin ranking loss. Where the target is 1, the first score should exceed the second by a margin. Where the target is -1, the second
/// score should exceed the first by the margin. The operation is
/// [`margin_ranking_loss`](wengert_tensor::ops::MarginLosses::margin_ranking_loss). PyTorch: `nn.MarginRankingLoss`.
///
/// [`of`](LossOfThree::of) takes the first scores, the second scores and the target, all of the same shape.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{MarginRankingLoss, margin_ranking_loss};
/// use wengert::prelude::*;
///
/// let (first, second, target) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 1.0]), Tensor::from([1.0, 1.0]));
/// assert_eq!(margin_ranking_loss(&first, &second, &target).item(), 1.0);
/// assert_eq!(MarginRankingLoss::new().margin(3.0).of(&first, &second, &target).item(), 3.5);
/// ```
pub type MarginRankingLoss = LossOfThree<MarginRanking>;

/// The options of a [`MarginRankingLoss`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MarginRanking {
    margin: f64,
}

impl MarginRankingLoss {
    /// Sets the margin by which one score should exceed the other; 0 by default.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: MarginRanking { margin }, ..self }
    }
}

impl FormulaOfThree for MarginRanking {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [first, second, target] = tensors;
        let at = Site::here(MARGIN_RANKING_LOSS);
        check_shape("the second tensor", &second.shape(), &first.shape(), at)?;
        check_shape("the target", &target.shape(), &first.shape(), at)?;
        first.try_margin_ranking_loss(second, target, self.margin, reduction)
    }
}

/// Returns the loss that [`MarginRankingLoss::of`] computes with the default options. PyTorch: `nn.functional.margin_ranking_loss`.
///
/// # Errors
///
/// If the shapes differ, or there is not enough memory.
#[twins]
pub fn try_margin_ranking_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    first: P,
    second: impl ArrayOperand<P::Array>,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MarginRankingLoss::new().try_of(first, second, target)
}
