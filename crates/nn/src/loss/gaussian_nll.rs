//! The negative log-likelihood of a normal distribution.

use wengert_macros::twins;
use wengert_tensor::ops::{ArrayOperand, IntoArray, LikelihoodLosses as _, LossReduction, TensorLike};
use wengert_tensor::{Float, Site};

use crate::loss::checks::check_shape;
use crate::loss::three::{FormulaOfThree, LossOfThree};

/// The name of this loss in errors.
const GAUSSIAN_NLL_LOSS: &str = "gaussian_nll_loss";

/// The negative log-likelihood of targets under normal distributions with predicted means and variances. The operation
/// is [`gaussian_nll_loss`](wengert_tensor::ops::LikelihoodLosses::gaussian_nll_loss). PyTorch: `nn.GaussianNLLLoss`.
///
/// [`of`](LossOfThree::of) takes the means, the targets and the variances, all of the same shape. The last dimension of the variances may
/// also have the size 1 or be missing. A negative variance is an error. If the variance is a recorded variable, the error comes when values
/// are computed.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::gaussian_nll_loss;
/// use wengert::prelude::*;
///
/// let (mean, target, variance) = (Tensor::from([1.0]), Tensor::from([3.0]), Tensor::from([1.0]));
/// assert_eq!(gaussian_nll_loss(&mean, &target, &variance).item(), 2.0);
/// ```
#[doc(alias = "GaussianNLLLoss")]
pub type GaussianNllLoss = LossOfThree<GaussianNll>;

/// The options of a [`GaussianNllLoss`].
#[derive(Clone, Copy, Debug)]
pub struct GaussianNll {
    full: bool,
    eps: f64,
}

impl Default for GaussianNll {
    /// Returns the default options: without the constant ln(2π) / 2, and with variances of at least 1e-6.
    fn default() -> Self {
        GaussianNll { full: false, eps: 1e-6 }
    }
}

impl GaussianNllLoss {
    /// Sets whether the constant ln(2π) / 2 is added to each loss; false by default.
    #[must_use]
    pub fn full(self, full: bool) -> Self {
        Self { formula: GaussianNll { full, ..self.formula }, ..self }
    }

    /// Sets the smallest variance; 1e-6 by default. It replaces all smaller variances. The gradient ignores this bound.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Self { formula: GaussianNll { eps, ..self.formula }, ..self }
    }
}

impl FormulaOfThree for GaussianNll {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [mean, target, variance] = tensors;
        check_shape("the target", &target.shape(), &mean.shape(), Site::here(GAUSSIAN_NLL_LOSS))?;
        mean.try_gaussian_nll_loss(target, variance, self.full, self.eps, reduction)
    }
}

/// Returns the loss that [`GaussianNllLoss::of`] computes with the default options. PyTorch: `nn.functional.gaussian_nll_loss`.
///
/// # Errors
///
/// If the shapes do not fit, `variance` is a tensor with a negative element, or there is not enough memory.
#[twins]
pub fn try_gaussian_nll_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    mean: P,
    target: impl ArrayOperand<P::Array>,
    variance: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    GaussianNllLoss::new().try_of(mean, target, variance)
}
