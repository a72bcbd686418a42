//! What losses of scores for classes have alike: a weight for each class, and what becomes of the losses of the samples.

use wengert_tensor::ops::LossReduction;
use wengert_tensor::{Float, Tensor};

/// A loss of scores for classes, by the formula `F`, which has the other options:
/// [`CrossEntropyLoss`](super::CrossEntropyLoss), [`NllLoss`](super::NllLoss), [`MultiMarginLoss`](super::MultiMarginLoss),
/// [`MultilabelSoftMarginLoss`](super::MultilabelSoftMarginLoss).
#[derive(Clone, Debug)]
pub struct WeightedLoss<F, T: Float = f32> {
    pub(super) formula: F,
    pub(super) weight: Option<Tensor<T>>,
    pub(super) reduction: LossReduction,
}

impl<F: Default, T: Float> Default for WeightedLoss<F, T> {
    /// No weights, the mean, the default options of the formula.
    fn default() -> Self {
        WeightedLoss { formula: F::default(), weight: None, reduction: LossReduction::Mean }
    }
}

impl<F: Default, T: Float> WeightedLoss<F, T> {
    /// No weights, the mean, the default options of the formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a weight for each class, `[c]`.
    pub fn weight(self, weight: &Tensor<T>) -> Self {
        Self { weight: Some(weight.clone()), ..self }
    }

    /// With the losses of the samples averaged, summed or returned as they are.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }
}
