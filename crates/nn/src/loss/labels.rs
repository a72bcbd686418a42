//! Losses of samples that have several labels at once.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, IntoArray, LikelihoodLosses as _, LossReduction, Reductions as _, TensorLike,
    Views as _,
};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use crate::loss::checks::{as_batch, check_shape, reduced_batch, refuse};
use crate::loss::weighted::WeightedLoss;

// What errors call the operations.
const MULTILABEL_MARGIN_LOSS: &str = "multilabel_margin_loss";
const MULTILABEL_SOFT_MARGIN_LOSS: &str = "multilabel_soft_margin_loss";

/// Each label should have a score larger by 1 than each class that is no label: the sum over labels j and other classes i of
/// max(0, 1 - (xⱼ - xᵢ)), divided by the number of classes. PyTorch: `nn.MultiLabelMarginLoss`.
///
/// ```
/// use wengert_nn::multilabel_margin_loss;
/// use wengert_tensor::prelude::*;
///
/// // Classes 3 and 0 are the labels; what stands after -1 does not count.
/// let loss = multilabel_margin_loss(&Tensor::from([0.1, 0.2, 0.4, 0.8]), &Tensor::from([3, 0, -1, 1]));
/// assert!((loss.item() - 0.85f64).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MultilabelMarginLoss {
    reduction: LossReduction,
}

#[twins]
impl MultilabelMarginLoss {
    /// The mean over the samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// What becomes of the losses of the samples.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction }
    }

    /// The loss of scores `[n, c]` or `[c]`. `labels`, of the same shape, has the labels of each sample first, then -1.
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit, or a label is neither a class nor -1.
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
        // `[n, label, other]`.
        let short = scores.try_unsqueeze(1)?.try_sub(&scores.try_unsqueeze(2)?)?.try_add(1.0)?.try_relu()?;
        let pairs = is_label.try_unsqueeze(2)?.try_mul(&is_other.try_unsqueeze(1)?)?;
        let losses =
            short.try_mul(&short.constant(&pairs))?.try_sum([1, 2])?.try_div(shape[shape.rank() - 1] as f64)?;
        reduced_batch(losses, &shape, self.reduction)
    }
}

/// How often each class is a label of each sample, and 1 where it is none: `[n, c]` both.
fn label_counts<T: Float>(labels: &Tensor<i64>, classes: usize, at: Site) -> Result<(Tensor<T>, Tensor<T>), Error> {
    let mut counts = vec![T::ZERO; labels.numel()];
    let labels = labels.to_vec();
    for (labels, counts) in labels.chunks(classes.max(1)).zip(counts.chunks_mut(classes.max(1))) {
        for &label in labels.iter().take_while(|&&label| label != -1) {
            let Some(count) = usize::try_from(label).ok().and_then(|label| counts.get_mut(label)) else {
                return refuse(at, format!("label {label} is none of {classes} classes and not -1"));
            };
            *count = *count + T::ONE;
        }
    }
    let other = counts.iter().map(|&count| if count == T::ZERO { T::ONE } else { T::ZERO }).collect();
    let sizes = Shape::from([labels.len() / classes.max(1), classes]);
    Ok((Tensor::from_vec(counts, sizes.clone()), Tensor::from_vec(other, sizes)))
}

/// [`MultilabelMarginLoss::of`] with the default options. PyTorch: `nn.functional.multilabel_margin_loss`.
///
/// # Errors
///
/// Where the shapes do not fit, or a label is neither a class nor -1.
#[twins]
pub fn try_multilabel_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    scores: P,
    labels: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultilabelMarginLoss::new().try_of(scores, labels)
}

/// Binary cross-entropy of each class by itself, averaged over the classes: several of them may be true of one sample. PyTorch:
/// `nn.MultiLabelSoftMarginLoss`.
///
/// ```
/// use wengert_nn::multilabel_soft_margin_loss;
/// use wengert_tensor::prelude::*;
///
/// let loss = multilabel_soft_margin_loss(&Tensor::from([[0.0, 0.0]]), &Tensor::from([[1.0, 0.0]]));
/// assert_eq!(loss.item(), 2.0f64.ln());
/// ```
pub type MultilabelSoftMarginLoss<T = f32> = WeightedLoss<MultilabelSoftMargin, T>;

/// What a [`MultilabelSoftMarginLoss`] computes; it has no other options.
#[derive(Clone, Copy, Debug, Default)]
pub struct MultilabelSoftMargin;

#[twins]
impl<T: Float> MultilabelSoftMarginLoss<T> {
    /// The loss of logits `[n, c]` or `[c]`; `target`, of the same shape, has the probability of each class, mostly 0 or 1.
    ///
    /// # Errors
    ///
    /// Where the shapes differ, or the weights do not fit.
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
        reduced_batch(losses.try_mean(1)?, &shape, self.reduction)
    }
}

/// [`MultilabelSoftMarginLoss::of`] with the default options. PyTorch: `nn.functional.multilabel_soft_margin_loss`.
///
/// # Errors
///
/// Where the shapes differ.
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
    fn labels_that_are_no_classes_and_other_shapes_are_errors() {
        let scores = Tensor::<f64>::zeros([2, 3]);
        let error = try_multilabel_margin_loss(&scores, &Tensor::from([[0, 3, -1], [-1, 9, 9]])).unwrap_err();
        assert_eq!(error.sentence(), "multilabel_margin_loss: label 3 is none of 3 classes and not -1");
        assert!(try_multilabel_margin_loss(&scores, &Tensor::from([0, 1, 2])).is_err());
        assert!(try_multilabel_soft_margin_loss(&scores, &Tensor::zeros([3, 2])).is_err());
        assert!(try_multilabel_margin_loss(&Tensor::<f64>::zeros([2, 3, 1]), &Tensor::zeros([2, 3, 1])).is_err());
    }

    #[test]
    fn no_samples_have_no_mean_and_one_without_a_batch_is_a_number() {
        assert!(multilabel_margin_loss(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0, 3])).item().is_nan());
        let each = MultilabelMarginLoss::new().reduction(LossReduction::None);
        assert_eq!(each.of(&Tensor::<f64>::zeros([3]), &Tensor::from([1, -1, 0])).shape(), &[0usize; 0]);
    }
}
