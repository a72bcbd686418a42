//! A loss with a margin between the target's score and every other score.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, Comparison as _, Indexing as _, IntoArray, Reductions as _, TensorLike, Views as _, try_one_hot,
};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::loss::checks::{as_batch, check_classes, check_shape, margin_shortfall, reduce_batch, refuse};
use crate::loss::weighted::WeightedLoss;

/// The name of this loss in errors.
const MULTI_MARGIN_LOSS: &str = "multi_margin_loss";

/// The margin loss of several classes: the score of the target class y should exceed every other score by a margin. The loss of a sample is the
/// sum of wᵧ max(0, margin - xᵧ + xᵢ)ᵖ divided by the number of classes. Here x are the scores, and w the class weights. The sum is over all
/// classes i except y. The difference of two infinite scores of the same sign counts as no violation. PyTorch: `torch.nn.MultiMarginLoss`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{MultiMarginLoss, multi_margin_loss};
/// use wengert::prelude::*;
///
/// let (scores, target) = (Tensor::from([[0.5, 1.0, 0.0, 2.0]]), Tensor::from([1]));
/// assert_eq!(multi_margin_loss(&scores, &target).item(), 2.5 / 4.0);
/// assert_eq!(MultiMarginLoss::new().p(2).of(&scores, &target).item(), 4.25 / 4.0);
/// ```
pub type MultiMarginLoss<T = f32> = WeightedLoss<MultiMargin, T>;

/// The options of a [`MultiMarginLoss`].
#[derive(Clone, Copy, Debug)]
pub struct MultiMargin {
    p: i32,
    margin: f64,
}

impl Default for MultiMargin {
    /// Returns the default options: p = 1 and a margin of 1.
    fn default() -> Self {
        MultiMargin { p: 1, margin: 1.0 }
    }
}

#[twins]
impl<T: Float> MultiMarginLoss<T> {
    /// Sets the power p to which each violation of the margin is raised, 1 or more; 1 by default.
    #[must_use]
    pub fn p(self, p: i32) -> Self {
        Self { formula: MultiMargin { p, ..self.formula }, ..self }
    }

    /// Sets the margin by which the target's score should exceed every other score; 1 by default.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: MultiMargin { margin, ..self.formula }, ..self }
    }

    /// Returns the loss of scores `[n, c]` (n samples, c classes) for targets `[n]`, or of scores `[c]` for a target `[]`.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, there are no classes, or a target is not a class. Also if the number of weights is not
    /// the number of classes, p is below 1, or there is not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        scores: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (scores, at) = (scores.array(), Site::here(MULTI_MARGIN_LOSS));
        let MultiMargin { p, margin } = self.formula;
        if p < 1 {
            return Ok(refuse(at, format!("expected a p of 1 or more, but got {p}"))?);
        }
        let shape = scores.shape();
        let scores = as_batch(&scores, at)?;
        check_classes(&shape, at)?;
        let classes = scores.shape()[1];
        check_shape("the target", targets.shape(), &Shape::from(&shape[..shape.rank() - 1]), at)?;
        let targets = targets.try_reshape([scores.shape()[0]])?;
        let own = scores.try_gather(1, &targets.try_unsqueeze(1)?)?;
        // The target's score is not compared with itself.
        let is_other = scores.try_constant(&try_one_hot(&targets, Some(classes))?.try_cast::<T>()?)?.try_eq(0.0)?;
        let mut margin_shortfall = margin_shortfall(&own, &scores, margin, &is_other)?;
        if p > 1 {
            margin_shortfall = margin_shortfall.try_pow(p)?;
        }
        if let Some(weight) = &self.weight {
            check_shape("the weight", weight.shape(), &Shape::from([classes]), at)?;
            let share = weight.try_index_select(0, &targets)?.try_unsqueeze(1)?;
            margin_shortfall = margin_shortfall.try_mul(&scores.try_constant(&share)?)?;
        }
        reduce_batch(margin_shortfall.try_mean(1)?, &shape, self.reduction)
    }
}

/// Returns the loss that [`MultiMarginLoss::of`] computes with the default options. PyTorch: `torch.nn.functional.multi_margin_loss`.
///
/// # Errors
///
/// If the shapes do not fit, there are no classes, a target is not a class, or there is not enough memory.
#[twins]
pub fn try_multi_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    scores: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultiMarginLoss::default().try_of(scores, targets)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;
    use wengert_tensor::ops::LossReduction;

    use super::*;

    /// The losses and gradients in the table are PyTorch's, multiplied by the number of classes.
    #[test]
    fn infinite_scores_have_pytorchs_losses() {
        let inf = f64::INFINITY;
        let table = [
            ([inf, 1.0, 2.0], [0.0, 0.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
            ([1.0, inf, 2.0], [inf, inf], [[-2.0, 1.0, 1.0], [-inf, inf, 4.0]]),
            ([-inf, 1.0, 2.0], [inf, inf], [[-2.0, 1.0, 1.0], [-inf, inf, inf]]),
            ([1.0, -inf, 2.0], [2.0, 4.0], [[-1.0, 0.0, 1.0], [-4.0, 0.0, 4.0]]),
            ([inf, inf, 2.0], [0.0, 0.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
            ([-inf, -inf, 2.0], [inf, inf], [[-1.0, 0.0, 1.0], [-inf, 0.0, inf]]),
        ];
        for (scores, losses, gradients) in table {
            for (p, loss, gradient) in [(1, losses[0], gradients[0]), (2, losses[1], gradients[1])] {
                let tape = Tape::new();
                let x = tape.var(&Tensor::from([scores]));
                let found = MultiMarginLoss::new().p(p).of(x, &Tensor::from([0]));
                // The bound covers two roundings of numbers below 5: the loss divides by 3, and the test multiplies by 3.
                let close = |x: f64, y: f64| x == y || (x - y).abs() <= 10.0 * f64::EPSILON;
                assert!(close(3.0 * found.value().item(), loss), "{scores:?} {p}: {}", found.value());
                let found = found.backward().of(x).clone();
                assert!(found.iter().zip(gradient).all(|(x, y)| close(3.0 * x, y)), "{scores:?} {p}: {found}");
            }
        }
        for scores in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            assert!(multi_margin_loss(&Tensor::from([scores]), &Tensor::from([0])).item().is_nan());
        }
    }

    #[test]
    fn scores_without_classes_are_an_error_and_no_samples_have_no_losses() {
        for shape in [&[2usize, 0][..], &[0, 0]] {
            let error = try_multi_margin_loss(&Tensor::<f64>::zeros(shape), &Tensor::zeros([shape[0]])).unwrap_err();
            let start = "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [";
            assert!(error.sentence().starts_with(start), "{error}");
        }
        let each = MultiMarginLoss::new().reduction(LossReduction::None);
        assert_eq!(each.of(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0])).shape(), &[0]);
    }
}
