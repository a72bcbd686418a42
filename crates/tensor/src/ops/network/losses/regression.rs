//! Distances between numbers. The sizes of prediction and target broadcast, with [`compat`](crate::shape::compat)'s warning.

use wengert_macros::twins;

use crate::ops::compose::Compose;
use crate::ops::network::losses::reduction::{LossReduction, reduced, total};
use crate::ops::pair::pair;
use crate::ops::{ArrayOperand, TensorLike};
use crate::{Compare, Error, Float, Shape, Site, Unary};

/// Losses of regression. A `weight` has the shape of the prediction.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let (prediction, target) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 4.0]));
/// assert_eq!(mse_loss(&prediction, &target).item(), 2.0); // the functions have PyTorch's defaults
/// ```
#[twins]
pub trait RegressionLosses: TensorLike<Elem: Float> {
    /// (x - y)². With a weight, `Mean` divides by the sum of the weights. PyTorch: `nn.functional.mse_loss`.
    ///
    /// ```
    /// use wengert_tensor::ops::{LossReduction, RegressionLosses};
    /// use wengert_tensor::prelude::*;
    ///
    /// let (x, y) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 4.0]));
    /// assert_eq!(x.mse_loss(&y, None, LossReduction::Mean).item(), 2.0);
    /// ```
    fn try_mse_loss(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self, Self::Error> {
        let target = &target.into_array(self);
        let at = Site::here("mse_loss");
        let losses = difference(self, target, at)?.mapped(Unary::Square, at)?;
        weighted_mean(losses, &self.shape(), weight, reduction, at)
    }

    /// |x - y|; gradient 0 where they are equal. With a weight, `Mean` divides by the sum of the weights. PyTorch:
    /// `nn.functional.l1_loss`.
    fn try_l1_loss(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self, Self::Error> {
        let target = &target.into_array(self);
        let at = Site::here("l1_loss");
        let losses = difference(self, target, at)?.mapped(Unary::Abs, at)?;
        weighted_mean(losses, &self.shape(), weight, reduction, at)
    }

    /// (x - y)² / 2β where |x - y| < β, |x - y| - β/2 elsewhere (Girshick 2015); with β = 0 the same as
    /// [`l1_loss`](Self::l1_loss). PyTorch: `nn.functional.smooth_l1_loss`.
    fn try_smooth_l1_loss(
        &self,
        target: impl ArrayOperand<Self>,
        beta: f64,
        reduction: LossReduction,
    ) -> Result<Self, Self::Error> {
        let target = &target.into_array(self);
        let at = Site::here("smooth_l1_loss");
        if beta < 0.0 {
            let message = "smooth_l1_loss does not support negative values for beta.";
            return Err(Error::argument(at, message).into());
        }
        let d = difference(self, target, at)?;
        let losses = if beta == 0.0 { d.mapped(Unary::Abs, at)? } else { huber(&d, beta, at)?.divided(beta, at)? };
        reduced(&losses, reduction, at)
    }

    /// (x - y)² / 2 where |x - y| < δ, δ (|x - y| - δ/2) elsewhere (Huber 1964). A weight multiplies; `Mean` divides by
    /// the number of elements all the same. PyTorch: `nn.functional.huber_loss`.
    fn try_huber_loss(
        &self,
        target: impl ArrayOperand<Self>,
        delta: f64,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self, Self::Error> {
        let target = &target.into_array(self);
        let at = Site::here("huber_loss");
        if delta <= 0.0 {
            let message = "huber_loss does not support non-positive values for delta.";
            return Err(Error::argument(at, message).into());
        }
        let mut losses = huber(&difference(self, target, at)?, delta, at)?;
        if let Some(weight) = weight {
            check_weight(weight, &self.shape(), at)?;
            losses = losses.times(weight, at)?;
        }
        reduced(&losses, reduction, at)
    }
}

impl<A: TensorLike<Elem: Float>> RegressionLosses for A {}

fn difference<A: TensorLike>(x: &A, target: &A, at: Site) -> Result<A, A::Error> {
    let (x, y) = pair(x, target, at)?;
    x.minus(&y, at)
}

/// c (d - c/2) with c = d cut off at ±δ: the two branches of Huber's function in one formula, without the square of what may
/// be infinite.
fn huber<A: TensorLike<Elem: Float>>(d: &A, delta: f64, at: Site) -> Result<A, A::Error> {
    let beyond = d.mapped(Unary::Abs, at)?.compared(Compare::Ge, delta, at)?;
    let cut = d.mapped(Unary::Sign, at)?.times(delta, at)?.chosen(&beyond, d, at)?;
    cut.times(&d.minus(&cut.times(0.5, at)?, at)?, at)
}

fn weighted_mean<A: TensorLike>(
    losses: A,
    own: &Shape,
    weight: Option<&A>,
    reduction: LossReduction,
    at: Site,
) -> Result<A, A::Error> {
    let Some(weight) = weight else { return reduced(&losses, reduction, at) };
    check_weight(weight, own, at)?;
    let losses = losses.times(weight, at)?;
    match reduction {
        LossReduction::Mean => total(&losses, at)?.divided(&total(weight, at)?, at),
        _ => reduced(&losses, reduction, at),
    }
}

fn check_weight<A: TensorLike>(weight: &A, shape: &Shape, at: Site) -> Result<(), Error> {
    if weight.shape() == *shape {
        return Ok(());
    }
    Err(Error::argument(at, "Weights and input must have the same size."))
}

#[cfg(test)]
mod tests {
    use crate::ops::LossReduction::{Mean, None as Each, Sum};
    use crate::ops::network::losses::regression::RegressionLosses;
    use crate::prelude::*;

    #[test]
    fn the_two_branches_meet() {
        let d = Tensor::from([0.0, 0.25, 0.5, 2.0, -2.0, f64::INFINITY]);
        let zero = Tensor::scalar(0.0).expand([6]);
        let inf = f64::INFINITY;
        assert_eq!(d.smooth_l1_loss(&zero, 0.5, Each).to_vec(), [0.0, 0.0625, 0.25, 1.75, 1.75, inf]);
        assert_eq!(d.huber_loss(&zero, 0.5, None, Each).to_vec(), [0.0, 0.03125, 0.125, 0.875, 0.875, inf]);
        assert_eq!(d.smooth_l1_loss(&zero, 0.0, Each).to_vec(), d.l1_loss(&zero, None, Each).to_vec());
        assert!(d.try_huber_loss(&zero, 0.0, None, Each).is_err());
    }

    #[test]
    fn weights_and_reductions() {
        let (x, y, w) = (Tensor::from([1.0, 2.0]), Tensor::from([0.0, 0.0]), Tensor::from([3.0, 1.0]));
        assert_eq!(x.mse_loss(&y, Some(&w), Mean).item(), 7.0 / 4.0);
        assert_eq!(x.l1_loss(&y, Some(&w), Sum).item(), 5.0);
        assert_eq!(x.huber_loss(&y, 10.0, Some(&w), Mean).item(), 1.75);
        assert!(x.try_mse_loss(&y, Some(&Tensor::scalar(1.0)), Mean).is_err());
        let nothing = Tensor::<f64>::zeros([0]);
        assert!(nothing.mse_loss(&nothing, None, Mean).item().is_nan());
        assert_eq!(nothing.mse_loss(&nothing, None, Sum).item(), 0.0);
    }
}
