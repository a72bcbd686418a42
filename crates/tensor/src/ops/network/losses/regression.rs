//! Losses for real-valued targets. Prediction and target broadcast under the rules of [`compat`](crate::shape::compat).

use wengert_macros::twins;

use crate::ops::network::losses::reduction::{LossReduction, reduce, total};
use crate::ops::primitive::pair::broadcast_two;
use crate::ops::primitive::tensor_like::Composite;
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::scalar::formula::Formula;
use crate::{Compare, Error, Float, Scalar, Shape, Site, Unary, ensure};

/// Losses of regression. In the formulas, x is the prediction (`self`) and y is the target. A `weight` has the shape of the prediction. The
/// functions [`mse_loss`](crate::ops::mse_loss), `l1_loss` and so on call these methods with PyTorch's defaults.
#[twins(blanket)]
pub trait RegressionLosses: TensorLike<Elem: Float> {
    /// Returns (x - y)² for x (`self`) and y (`target`). With a weight, `Mean` divides by the sum of the weights. PyTorch:
    /// `nn.functional.mse_loss`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::LossReduction;
    /// use wengert::prelude::*;
    ///
    /// let (x, y) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 4.0]));
    /// assert_eq!(x.mse_loss(&y, None, LossReduction::Mean).item(), 2.0);
    /// ```
    fn try_mse_loss(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self> {
        let at = Site::here("mse_loss");
        let losses = apply_to_difference(self, &target.into_array(self)?, Unary::Square, at)?;
        reduce_weighted(losses, &self.shape(), weight, reduction, at)
    }

    /// Returns |x - y| for x (`self`) and y (`target`), with gradient 0 where x = y. With a weight, `Mean` divides by the sum of the
    /// weights. PyTorch: `nn.functional.l1_loss`.
    fn try_l1_loss(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self> {
        let at = Site::here("l1_loss");
        let losses = apply_to_difference(self, &target.into_array(self)?, Unary::Abs, at)?;
        reduce_weighted(losses, &self.shape(), weight, reduction, at)
    }

    /// Returns (x - y)² / 2β where |x - y| < β, and |x - y| - β/2 elsewhere (Girshick 2015). x is `self`, y is `target`, and β is `beta`.
    /// A β that is 0 in the element type gives [`l1_loss`](Self::l1_loss). Refuses a negative or NaN β. PyTorch:
    /// `nn.functional.smooth_l1_loss`.
    fn try_smooth_l1_loss(&self, target: impl ArrayOperand<Self>, beta: f64, reduction: LossReduction) -> Result<Self> {
        let at = Site::here("smooth_l1_loss");
        ensure!(beta >= 0.0, at, "smooth_l1_loss does not support negative values for beta.");
        let (x, y) = broadcast_two(self, &target.into_array(self)?, at)?;
        let losses = match Self::Elem::from_f64(beta).to_f64() {
            0.0 => x.minus(&y, at)?.apply_unary(Unary::Abs, at)?,
            _ => Self::apply_elementwise_composite([&x, &y], &Huber { delta: beta, divisor: beta }, at)?,
        };
        reduce(&losses, reduction, at)
    }

    /// Returns (x - y)² / 2 where |x - y| < δ, and δ (|x - y| - δ/2) elsewhere (Huber 1964), times `weight`. x is `self`, y is `target`,
    /// and δ is `delta`. `Mean` divides by the number of elements, even with a weight. Refuses a δ that is not positive. PyTorch:
    /// `nn.functional.huber_loss`.
    fn try_huber_loss(
        &self,
        target: impl ArrayOperand<Self>,
        delta: f64,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self> {
        let at = Site::here("huber_loss");
        ensure!(delta > 0.0, at, "huber_loss does not support non-positive values for delta.");
        let (x, y) = broadcast_two(self, &target.into_array(self)?, at)?;
        let mut losses = Self::apply_elementwise_composite([&x, &y], &Huber { delta, divisor: 1.0 }, at)?;
        if let Some(weight) = weight {
            check_weight(weight, &self.shape(), at)?;
            losses = losses.times(weight, at)?;
        }
        reduce(&losses, reduction, at)
    }
}

/// Returns `magnitude` applied to `x - target`. `magnitude` is `Square` or `Abs`. The operands broadcast.
fn apply_to_difference<A: TensorLike<Elem: Float>>(x: &A, target: &A, magnitude: Unary, at: Site) -> Result<A> {
    let (x, y) = broadcast_two(x, target, at)?;
    A::apply_elementwise_composite([&x, &y], &Difference { magnitude }, at)
}

/// A composite operation: the square or the magnitude of the difference of two operands.
struct Difference {
    magnitude: Unary,
}

impl Composite<2> for Difference {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y]: [&A; 2], at: Site) -> Result<A> {
        x.minus(y, at)?.apply_unary(self.magnitude, at)
    }

    fn formula(&self) -> Option<Formula> {
        match self.magnitude {
            Unary::Square => Some(Formula::SquaredDifference),
            Unary::Abs => Some(Formula::Distance),
            _ => None,
        }
    }
}

/// A composite operation: c (d - c/2) / `divisor` for the difference d of two operands, where c is d clamped to ±`delta`. This one formula
/// covers both branches of Huber's function and does not square an infinite d.
struct Huber {
    delta: f64,
    divisor: f64,
}

impl Composite<2> for Huber {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y]: [&A; 2], at: Site) -> Result<A> {
        let d = x.minus(y, at)?;
        let beyond = d.apply_unary(Unary::Abs, at)?.compare(Compare::Ge, self.delta, at)?;
        let clamped = d.apply_unary(Unary::Sign, at)?.times(self.delta, at)?.choose(&beyond, &d, at)?;
        let losses = clamped.times(&d.minus(&clamped.times(0.5, at)?, at)?, at)?;
        if self.divisor == 1.0 { Ok(losses) } else { losses.divide_by(self.divisor, at) }
    }

    fn formula(&self) -> Option<Formula> {
        Some(Formula::Huber { delta: self.delta, divisor: self.divisor })
    }
}

/// Multiplies the losses by `weight`, which must have the shape `own`, and reduces them. A mean divides by the sum of the weights.
fn reduce_weighted<A: TensorLike>(
    losses: A,
    own: &Shape,
    weight: Option<&A>,
    reduction: LossReduction,
    at: Site,
) -> Result<A> {
    let Some(weight) = weight else { return reduce(&losses, reduction, at) };
    check_weight(weight, own, at)?;
    let losses = losses.times(weight, at)?;
    match reduction {
        LossReduction::Mean => total(&losses, at)?.divide_by(&total(weight, at)?, at),
        _ => reduce(&losses, reduction, at),
    }
}

fn check_weight<A: TensorLike>(weight: &A, shape: &Shape, at: Site) -> Result<(), Error> {
    ensure!(weight.shape() == *shape, at, "Weights and input must have the same size.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Unary;
    use crate::ops::LossReduction::{Mean, None as Each, Sum};
    use crate::ops::network::losses::regression::{Difference, Huber, RegressionLosses};
    use crate::ops::primitive::testing::check_formula;
    use crate::prelude::*;

    #[test]
    fn formulas_have_the_bits_of_separate_operations() {
        [(0.7, 1.0), (0.7, 0.7)].into_iter().for_each(|(delta, divisor)| check_formula(&Huber { delta, divisor }));
        [Unary::Square, Unary::Abs].into_iter().for_each(|magnitude| check_formula(&Difference { magnitude }));
    }

    #[test]
    fn the_two_branches_meet() {
        let d = Tensor::from([0.0, 0.25, 0.5, 2.0, -2.0, f64::INFINITY]);
        let zero = Tensor::scalar(0.0).expand([6]);
        let inf = f64::INFINITY;
        assert_eq!(d.smooth_l1_loss(&zero, 0.5, Each).to_vec(), [0.0, 0.0625, 0.25, 1.75, 1.75, inf]);
        assert_eq!(d.huber_loss(&zero, 0.5, None, Each).to_vec(), [0.0, 0.03125, 0.125, 0.875, 0.875, inf]);
        assert_eq!(d.smooth_l1_loss(&zero, 0.0, Each).to_vec(), d.l1_loss(&zero, None, Each).to_vec());
        // As f32, this β is 0.
        let small = Tensor::from([0.0f32, -3.0]).smooth_l1_loss(Tensor::scalar(0.0).expand([2]), 1e-60, Each);
        assert_eq!(small.to_vec(), [0.0, 3.0]);
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
