//! The cross-entropy loss.
//!
//! The operation [`ClassLosses::try_cross_entropy`] computes the loss. The formulas are the formulas of PyTorch's `CrossEntropyLoss`:
//! <https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, ClassLosses, ClassOptions, Classes, IntoArray, TensorLike};
use wengert_tensor::{Float, Tensor};

use crate::loss::weighted::WeightedLoss;

/// The cross-entropy between the softmax of logits and target classes (or their probabilities), with PyTorch's options. PyTorch:
/// `torch.nn.CrossEntropyLoss`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{CrossEntropyLoss, LossReduction};
///
/// let logits = Tensor::from([[0.0, 0.0], [3.0, 3.0f64]]);
/// let targets = Tensor::from([1, -100]); // the second sample is ignored
/// let loss = CrossEntropyLoss::new().reduction(LossReduction::None);
/// assert_eq!(loss.of(&logits, &targets).to_vec(), [2.0f64.ln(), 0.0]);
/// ```
pub type CrossEntropyLoss<T = f32> = WeightedLoss<CrossEntropy, T>;

/// The options of a [`CrossEntropyLoss`].
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    pub(super) ignore_index: i64,
    pub(super) label_smoothing: f64,
}

impl Default for CrossEntropy {
    /// Returns the default options: the class -100 is ignored, and there is no smoothing.
    fn default() -> Self {
        CrossEntropy { ignore_index: -100, label_smoothing: 0.0 }
    }
}

#[twins]
impl<T: Float> CrossEntropyLoss<T> {
    /// Sets the target whose samples are ignored; -100 by default.
    #[must_use]
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self { formula: CrossEntropy { ignore_index, ..self.formula }, ..self }
    }

    /// Sets the share of each target's probability, from 0 to 1, that is spread evenly over all classes; 0 by default.
    #[must_use]
    pub fn label_smoothing(self, label_smoothing: f64) -> Self {
        Self { formula: CrossEntropy { label_smoothing, ..self.formula }, ..self }
    }

    /// Returns the loss of `logits` (scores before the softmax) for targets that are class indices. The shapes, with n samples, c classes and
    /// other dimensions d1, …, are:
    ///
    /// | `logits` | `targets` |
    /// |---|---|
    /// | `[c]` | `[]` |
    /// | `[n, c]` | `[n]` |
    /// | `[n, c, d1, …]` | `[n, d1, …]` |
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or a target is neither a class nor ignored. Also if the number of weights is not the
    /// number of classes, the smoothing is outside its range, or there is not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let logits = &logits.array();
        let weight = self.weight.as_ref().map(|weight| logits.try_constant(weight)).transpose()?;
        logits.try_cross_entropy(Classes::Indices(targets), self.options(weight.as_ref()))
    }

    /// Returns the loss of `logits` (scores before the softmax) for targets that are probabilities of the classes, in the shape of the logits. The
    /// mean is over the samples and all other dimensions except the classes. No class is ignored.
    ///
    /// # Errors
    ///
    /// If the shapes differ or have no dimensions. Also if the number of weights is not the number of classes, the
    /// smoothing is outside its range, or there is not enough memory.
    pub fn try_of_probabilities<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        targets: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let logits = &logits.array();
        let targets = targets.into_array(logits)?;
        let weight = self.weight.as_ref().map(|weight| logits.try_constant(weight)).transpose()?;
        logits.try_cross_entropy(Classes::Probabilities(&targets), self.options(weight.as_ref()))
    }

    /// Returns the options of this loss in the form that the operation `try_cross_entropy` of the tensor crate takes.
    fn options<'w, A>(&self, weight: Option<&'w A>) -> ClassOptions<'w, A> {
        let CrossEntropy { ignore_index, label_smoothing } = self.formula;
        ClassOptions { weight, ignore_index, label_smoothing, reduction: self.reduction }
    }
}

/// Returns the loss that [`CrossEntropyLoss::of`] computes with the default options: the mean over all targets except -100, without weights and smoothing.
/// PyTorch: `torch.nn.functional.cross_entropy`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::cross_entropy;
///
/// let tape = Tape::<f64>::new();
/// let logits = tape.var(&Tensor::from([[0.0, 0.0], [0.0, 0.0]]));
/// let loss = cross_entropy(&logits, &Tensor::from([0, 1]));
/// assert_eq!(loss.item(), 2.0f64.ln());
/// assert_eq!(loss.backward().of(logits), &Tensor::from([[-0.25, 0.25], [0.25, -0.25]]));
/// ```
///
/// # Errors
///
/// If the shapes do not fit, a target is neither a class nor -100, or there is not enough memory.
#[twins]
pub fn try_cross_entropy<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    logits: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    CrossEntropyLoss::default().try_of(logits, targets)
}
