//! The negative log-likelihood of the target class.

use wengert_macros::twins;
use wengert_tensor::ops::{ClassLosses as _, ClassOptions, IntoArray, TensorLike};
use wengert_tensor::{Float, Tensor};

use crate::loss::weighted::WeightedLoss;

/// The negative log-likelihood: minus the log-probability of the target class, with PyTorch's options. PyTorch:
/// `torch.nn.NLLLoss`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::nll_loss;
/// use wengert::prelude::*;
///
/// let log_probs = Tensor::from([[0.5f64, 0.5], [0.2, 0.8]]).log();
/// assert_eq!(nll_loss(&log_probs, &Tensor::from([0, -100])).item(), 2.0f64.ln());
/// ```
#[doc(alias("NLLLoss", "NLLLoss2d"))]
pub type NllLoss<T = f32> = WeightedLoss<NegativeLogLikelihood, T>;

/// The options of an [`NllLoss`].
#[derive(Clone, Copy, Debug)]
pub struct NegativeLogLikelihood {
    ignore_index: i64,
}

impl Default for NegativeLogLikelihood {
    /// Returns the default option: the class -100 is ignored.
    fn default() -> Self {
        NegativeLogLikelihood { ignore_index: -100 }
    }
}

#[twins]
impl<T: Float> NllLoss<T> {
    /// Sets the target whose samples are ignored; -100 by default.
    #[must_use]
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self { formula: NegativeLogLikelihood { ignore_index }, ..self }
    }

    /// Returns the loss of log-probabilities. The shapes are the same as for [`CrossEntropyLoss::of`](crate::CrossEntropyLoss::of), with
    /// log-probabilities in place of logits.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or a target is neither a class nor ignored. Also if the number of weights is not the
    /// number of classes, or there is not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        log_probs: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let log_probs = log_probs.array();
        let weight = self.weight.as_ref().map(|weight| log_probs.try_constant(weight)).transpose()?;
        let (ignore_index, reduction) = (self.formula.ignore_index, self.reduction);
        let options = ClassOptions { weight: weight.as_ref(), ignore_index, label_smoothing: 0.0, reduction };
        log_probs.try_nll_loss(targets, options)
    }
}

/// Returns the loss that [`NllLoss::of`] computes with the default options. PyTorch: `torch.nn.functional.nll_loss`.
///
/// # Errors
///
/// If the shapes do not fit, a target is neither a class nor -100, or there is not enough memory.
#[twins]
pub fn try_nll_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    log_probs: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    NllLoss::default().try_of(log_probs, targets)
}
