//! Losses of samples with several labels each.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, IntoArray, LikelihoodLosses as _, LossReduction, Reductions as _, TensorLike,
    Views as _,
};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use crate::loss::checks::{as_batch, check_shape, reduce_batch, refuse};
use crate::loss::weighted::WeightedLoss;

/// The name of the loss in errors.
const MULTILABEL_MARGIN_LOSS: &str = "multilabel_margin_loss";
/// The name of the loss in errors.
const MULTILABEL_SOFT_MARGIN_LOSS: &str = "multilabel_soft_margin_loss";

/// The margin loss of several labels: the score of each label should exceed the score of each other class by 1. With the scores x, the loss of a
/// sample is the sum of max(0, 1 - (xⱼ - xᵢ)) divided by the number of classes. The sum is over the labels j and all classes i that are not
/// labels. PyTorch: `nn.MultiLabelMarginLoss`.
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
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction }
    }

    /// Returns the loss of scores `[n, c]` (n samples, c classes) or `[c]`. `labels` has the same shape. Each row has the labels of a sample,
    /// then -1; numbers after the first -1 do not count.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or a label is neither a class nor -1.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        scores: P,
        labels: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (scores, at) = (scores.array(), Site::here(MULTILABEL_MARGIN_LOSS));
        let shape = scores.shape();
        let scores = as_batch(&scores, at)?;
        check_shape("the tensor of labels", labels.shape(), &shape, at)?;
        let (is_label, is_other) = label_counts(labels, scores.shape()[1], at)?;
        // Entry [n, j, i] of this tensor is max(0, 1 - (xⱼ - xᵢ)), where x are the scores of sample n.
        let shortfall = scores.try_unsqueeze(1)?.try_sub(&scores.try_unsqueeze(2)?)?.try_add(1.0)?.try_relu()?;
        let pairs = is_label.try_unsqueeze(2)?.try_mul(&is_other.try_unsqueeze(1)?)?;
        let losses =
            shortfall.try_mul(&shortfall.constant(&pairs))?.try_sum([1, 2])?.try_div(shape[shape.rank() - 1] as f64)?;
        reduce_batch(losses, &shape, self.reduction)
    }
}

/// Returns two tensors `[n, c]`. The first counts how often each class is a label of each sample. The second is 1 where a class is not a label
/// of the sample, and 0 elsewhere.
fn label_counts<T: Float>(labels: &Tensor<i64>, classes: usize, at: Site) -> Result<(Tensor<T>, Tensor<T>), Error> {
    let mut counts = vec![T::ZERO; labels.numel()];
    let labels = labels.to_vec();
    for (labels, counts) in labels.chunks(classes.max(1)).zip(counts.chunks_mut(classes.max(1))) {
        for &label in labels.iter().take_while(|&&label| label != -1) {
            let Some(count) = usize::try_from(label).ok().and_then(|label| counts.get_mut(label)) else {
                return refuse(at, format!("label {label} is neither one of the {classes} classes nor -1"));
            };
            *count = *count + T::ONE;
        }
    }
    let other = counts.iter().map(|&count| if count == T::ZERO { T::ONE } else { T::ZERO }).collect();
    let sizes = Shape::from([labels.len() / classes.max(1), classes]);
    Ok((Tensor::from_vec(counts, sizes.clone()), Tensor::from_vec(other, sizes)))
}

/// Returns [`MultilabelMarginLoss::of`] with the default options. PyTorch: `nn.functional.multilabel_margin_loss`.
///
/// # Errors
///
/// If the shapes do not fit, or a label is neither a class nor -1.
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
    /// If the shapes differ or are neither `[n, c]` nor `[c]`, or the weights do not broadcast with the logits.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        target: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (logits, at) = (logits.array(), Site::here(MULTILABEL_SOFT_MARGIN_LOSS));
        let target = target.into_array(&logits);
        check_shape("the target", &target.shape(), &logits.shape(), at)?;
        let (shape, logits, target) = (logits.shape(), as_batch(&logits, at)?, as_batch(&target, at)?);
        let weight = self.weight.as_ref().map(|weight| logits.constant(weight));
        let none = LossReduction::None;
        let losses = logits.try_binary_cross_entropy_with_logits(&target, weight.as_ref(), None, none)?;
        reduce_batch(losses.try_mean(1)?, &shape, self.reduction)
    }
}

/// Returns [`MultilabelSoftMarginLoss::of`] with the default options. PyTorch:
/// `nn.functional.multilabel_soft_margin_loss`.
///
/// # Errors
///
/// If the shapes differ, or are neither `[n, c]` nor `[c]`.
#[twins]
pub fn try_multilabel_soft_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    logits: P,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultilabelSoftMarginLoss::new().try_of(logits, target)
}

#[cfg(test)]
mod tests {
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
}
