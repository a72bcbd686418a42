//! The type of the classification losses that compare scores, one for each class, with targets. It has the weights of the classes, and the reduction
//! over the samples.

use wengert_tensor::ops::LossReduction;
use wengert_tensor::{Float, Tensor};

/// A classification loss, which compares scores, one for each class, with targets. `F` is the formula with its own options. The losses of this type
/// are [`CrossEntropyLoss`](super::CrossEntropyLoss), [`NllLoss`](super::NllLoss), [`MultiMarginLoss`](super::MultiMarginLoss),
/// [`MultilabelSoftMarginLoss`](super::MultilabelSoftMarginLoss).
#[derive(Clone, Debug)]
pub struct WeightedLoss<F, T: Float = f32> {
    pub(super) formula: F,
    pub(super) weight: Option<Tensor<T>>,
    pub(super) reduction: LossReduction,
}

impl<F: Default, T: Float> Default for WeightedLoss<F, T> {
    /// Returns the loss without class weights, with the mean over the samples as the reduction, and with the default options of the formula.
    fn default() -> Self {
        WeightedLoss { formula: F::default(), weight: None, reduction: LossReduction::Mean }
    }
}

impl<F: Default, T: Float> WeightedLoss<F, T> {
    /// Returns the loss without class weights, with the mean over the samples as the reduction, and with the default options of the formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a weight for each of the c classes, in a tensor `[c]`. The weight of a class multiplies the loss of the samples of the class. If a target
    /// spreads over several classes (as probabilities, by label smoothing, or as several labels), the weight multiplies the part of the loss that
    /// belongs to the class. [`reduction`](Self::reduction) says how the weights affect the mean.
    #[must_use]
    pub fn weight(self, weight: &Tensor<T>) -> Self {
        Self { weight: Some(weight.clone()), ..self }
    }

    /// Chooses the reduction of the losses of the samples: mean (the default), sum or none.
    ///
    /// The mean is the sum divided by a number, as in PyTorch:
    ///
    /// | loss | divisor of the mean |
    /// |---|---|
    /// | [`CrossEntropyLoss`](super::CrossEntropyLoss) of class indices, [`NllLoss`](super::NllLoss) | the sum of the weights of all targets that are not ignored |
    /// | [`CrossEntropyLoss`](super::CrossEntropyLoss) of probabilities | the number of samples, times the sizes of the dimensions after the classes |
    /// | [`MultiMarginLoss`](super::MultiMarginLoss), [`MultilabelSoftMarginLoss`](super::MultilabelSoftMarginLoss) | the number of samples |
    ///
    /// If all targets are ignored, or there are no samples, the mean is NaN.
    #[must_use]
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }
}
