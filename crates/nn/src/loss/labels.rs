//! Losses of samples with several labels each.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, Comparison as _, IntoArray, LikelihoodLosses as _, LossReduction, Reductions as _,
    TensorLike, Views as _,
};
use wengert_tensor::{Error, Float, Site, Tensor};

use crate::loss::checks::{as_batch, check_classes, check_shape, margin_shortfall, reduce_batch, refuse};
use crate::loss::weighted::WeightedLoss;

/// The name of the loss in errors.
const MULTILABEL_MARGIN_LOSS: &str = "multilabel_margin_loss";
/// The name of the loss in errors.
const MULTILABEL_SOFT_MARGIN_LOSS: &str = "multilabel_soft_margin_loss";

/// The margin loss of several labels: the score of each label should exceed the score of each other class by 1. With the scores x, the loss of a
/// sample is the sum of max(0, 1 - (xⱼ - xᵢ)) divided by the number of classes. The sum is over the labels j and all classes i that are not
/// labels. The difference of two infinite scores of the same sign counts as no violation. PyTorch: `nn.MultiLabelMarginLoss`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::multilabel_margin_loss;
/// use wengert::prelude::*;
///
/// // Classes 3 and 0 are the labels. Numbers after -1 do not count.
/// let loss = multilabel_margin_loss(&Tensor::from([0.1, 0.2, 0.4, 0.8]), &Tensor::from([3, 0, -1, 1]));
/// assert!((loss.item() - 0.85f64).abs() < 1e-12);
/// ```
#[doc(alias = "MultiLabelMarginLoss")]
#[derive(Clone, Copy, Debug, Default)]
pub struct MultilabelMarginLoss {
    reduction: LossReduction,
}

#[twins]
impl MultilabelMarginLoss {
    /// Returns the loss whose reduction is the mean over the samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the reduction of the losses of the samples: mean (the default), sum or none.
    #[must_use]
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction }
    }

    /// Returns the loss of scores `[n, c]` (n samples, c classes) or `[c]`. `labels` has the same shape. Each row has
    /// the labels of a sample, then -1 if the labels do not fill the row. Numbers after the first -1 do not count.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, there are no classes, a label is neither a class nor -1, or there is not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        scores: P,
        labels: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (scores, at) = (scores.array(), Site::here(MULTILABEL_MARGIN_LOSS));
        let shape = scores.shape();
        let scores = as_batch(&scores, at)?;
        check_shape("the tensor of labels", labels.shape(), &shape, at)?;
        check_classes(&shape, at)?;
        let classes = scores.shape()[1];
        let counts = scores.try_constant(&label_counts(labels, classes, at)?)?;
        // Entry [n, j, i] of these tensors is for the label j and the other class i of sample n.
        let (label, other) = (counts.try_unsqueeze(2)?, counts.try_unsqueeze(1)?);
        let is_pair = label.try_gt(0.0)?.try_logical_and(&other.try_eq(0.0)?)?;
        let margin_shortfall = margin_shortfall(&scores.try_unsqueeze(2)?, &scores.try_unsqueeze(1)?, 1.0, &is_pair)?;
        let losses = margin_shortfall.try_mul(&label)?.try_sum([1, 2])?.try_div(classes as f64)?;
        reduce_batch(losses, &shape, self.reduction)
    }
}

/// Returns a tensor `[n, c]` that counts how often each class is a label of each sample, before the sample's first -1.
/// Other negative labels and labels that are no class are errors. `classes` is not 0.
fn label_counts<T: Float>(labels: &Tensor<i64>, classes: usize, at: Site) -> Result<Tensor<T>, Error> {
    let labels = labels.try_to_vec()?;
    let mut counts = Tensor::try_full([labels.len() / classes, classes], T::ZERO)?;
    for (labels, counts) in labels.chunks(classes).zip(counts.try_make_mut()?.chunks_mut(classes)) {
        for &label in labels.iter().take_while(|&&label| label != -1) {
            let Some(count) = usize::try_from(label).ok().and_then(|label| counts.get_mut(label)) else {
                return refuse(at, format!("label {label} is neither one of the {classes} classes nor -1"));
            };
            *count = *count + T::ONE;
        }
    }
    Ok(counts)
}

/// Returns the loss that [`MultilabelMarginLoss::of`] computes with the default options. PyTorch: `nn.functional.multilabel_margin_loss`.
///
/// # Errors
///
/// If the shapes do not fit, there are no classes, a label is neither a class nor -1, or there is not enough memory.
#[twins]
pub fn try_multilabel_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    scores: P,
    labels: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultilabelMarginLoss::new().try_of(scores, labels)
}

/// A loss for samples that may belong to several classes: the mean over the classes of the binary cross-entropy of each class. The
/// cross-entropy of a class is multiplied by the weight of the class. PyTorch: `nn.MultiLabelSoftMarginLoss`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::multilabel_soft_margin_loss;
/// use wengert::prelude::*;
///
/// let loss = multilabel_soft_margin_loss(&Tensor::from([[0.0, 0.0]]), &Tensor::from([[1.0, 0.0]]));
/// assert_eq!(loss.item(), 2.0f64.ln());
/// ```
#[doc(alias = "MultiLabelSoftMarginLoss")]
pub type MultilabelSoftMarginLoss<T = f32> = WeightedLoss<MultilabelSoftMargin, T>;

/// The formula of a [`MultilabelSoftMarginLoss`], which has no options of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct MultilabelSoftMargin;

#[twins]
impl<T: Float> MultilabelSoftMarginLoss<T> {
    /// Returns the loss of logits `[n, c]` (n samples, c classes) or `[c]`. `target` has the same shape, and holds the probability of each
    /// class, usually 0 or 1.
    ///
    /// # Errors
    ///
    /// If the shapes differ or are neither `[n, c]` nor `[c]`, the weights do not broadcast with the logits, or there is
    /// not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        target: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (logits, at) = (logits.array(), Site::here(MULTILABEL_SOFT_MARGIN_LOSS));
        let target = target.into_array(&logits)?;
        check_shape("the target", &target.shape(), &logits.shape(), at)?;
        let (shape, logits, target) = (logits.shape(), as_batch(&logits, at)?, as_batch(&target, at)?);
        let weight = self.weight.as_ref().map(|weight| logits.try_constant(weight)).transpose()?;
        let none = LossReduction::None;
        let losses = logits.try_binary_cross_entropy_with_logits(&target, weight.as_ref(), None, none)?;
        reduce_batch(losses.try_mean(1)?, &shape, self.reduction)
    }
}

/// Returns the loss that [`MultilabelSoftMarginLoss::of`] computes with the default options. PyTorch:
/// `nn.functional.multilabel_soft_margin_loss`.
///
/// # Errors
///
/// If the shapes differ or are neither `[n, c]` nor `[c]`, or there is not enough memory.
#[twins]
pub fn try_multilabel_soft_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    logits: P,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultilabelSoftMarginLoss::new().try_of(logits, target)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;

    use super::*;

    #[test]
    fn wrong_labels_and_shapes_are_errors() {
        let scores = Tensor::<f64>::zeros([2, 3]);
        let error = try_multilabel_margin_loss(&scores, &Tensor::from([[0, 3, -1], [-1, 9, 9]])).unwrap_err();
        assert_eq!(error.sentence(), "multilabel_margin_loss: label 3 is neither one of the 3 classes nor -1");
        assert!(try_multilabel_margin_loss(&scores, &Tensor::from([0, 1, 2])).is_err());
        assert!(try_multilabel_soft_margin_loss(&scores, &Tensor::zeros([3, 2])).is_err());
        assert!(try_multilabel_margin_loss(&Tensor::<f64>::zeros([2, 3, 1]), &Tensor::zeros([2, 3, 1])).is_err());
    }

    #[test]
    fn the_mean_of_no_samples_is_nan_and_a_single_sample_gives_a_number() {
        assert!(multilabel_margin_loss(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0, 3])).item().is_nan());
        let each = MultilabelMarginLoss::new().reduction(LossReduction::None);
        assert_eq!(each.of(&Tensor::<f64>::zeros([3]), &Tensor::from([1, -1, 0])).shape(), &[0usize; 0]);
    }

    /// The losses and gradients in the table are PyTorch's, multiplied by the number of classes.
    #[test]
    fn infinite_scores_have_pytorchs_losses() {
        let inf = f64::INFINITY;
        let table = [
            ([1.0, -inf, 2.0], [0, -1, -1], 2.0, [-1.0, 0.0, 1.0]),
            ([1.0, inf, 2.0], [0, -1, -1], inf, [-2.0, 1.0, 1.0]),
            ([inf, 1.0, 2.0], [0, -1, -1], 0.0, [0.0, 0.0, 0.0]),
            ([-inf, 1.0, 2.0], [0, -1, -1], inf, [-2.0, 1.0, 1.0]),
            ([inf, inf, 2.0], [0, -1, -1], 0.0, [0.0, 0.0, 0.0]),
            ([inf, inf, 2.0], [0, 1, -1], 0.0, [0.0, 0.0, 0.0]),
            ([-inf, -inf, 2.0], [0, -1, -1], inf, [-1.0, 0.0, 1.0]),
            ([1.0, 0.0, 2.0], [0, 0, -1], 4.0, [-2.0, 0.0, 2.0]),
        ];
        for (scores, labels, loss, gradient) in table {
            let tape = Tape::new();
            let x = tape.var(&Tensor::from([scores]));
            let found = multilabel_margin_loss(x, &Tensor::from([labels]));
            // The bound covers two roundings of numbers below 5: the loss divides by 3, and the test multiplies by 3.
            let close = |x: f64, y: f64| x == y || (x - y).abs() <= 10.0 * f64::EPSILON;
            assert!(close(3.0 * found.value().item(), loss), "{scores:?}: {}", found.value());
            let found = found.backward().of(x).clone();
            assert!(found.iter().zip(gradient).all(|(x, y)| close(3.0 * x, y)), "{scores:?}: {found}");
        }
        let nan = Tensor::from([[f64::NAN, 1.0, 2.0]]);
        assert!(multilabel_margin_loss(&nan, &Tensor::from([[0, -1, -1]])).item().is_nan());
    }

    #[test]
    fn scores_without_classes() {
        for shape in [&[2usize, 0][..], &[0, 0], &[0]] {
            let error = try_multilabel_margin_loss(&Tensor::<f64>::zeros(shape), &Tensor::zeros(shape)).unwrap_err();
            let start = "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [";
            assert!(error.sentence().starts_with(start), "{error}");
        }
        let each = MultilabelSoftMarginLoss::new().reduction(LossReduction::None);
        let losses = each.of(&Tensor::<f64>::zeros([2, 0]), &Tensor::zeros([2, 0])).to_vec();
        assert!(losses.len() == 2 && losses.iter().all(|loss| loss.is_nan()), "{losses:?}");
    }

    #[test]
    fn more_labels_than_memory_holds_are_an_error() {
        let scores = Tensor::scalar(0.0f64).expand([1usize << 50, 3]);
        let labels = Tensor::scalar(0i64).expand([1usize << 50, 3]);
        assert!(try_multilabel_margin_loss(Tape::new().constant(&scores), &labels).is_err());
    }
}
