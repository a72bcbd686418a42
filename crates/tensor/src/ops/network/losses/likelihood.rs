//! Negative log-likelihoods of distributions of numbers, and divergences between distributions.

use std::f64::consts::TAU;

use wengert_macros::twins;

use crate::ops::elementwise::activations::log_sigmoid;
use crate::ops::network::losses::reduction::{LossReduction, reduce};
use crate::ops::primitive::pair::{broadcast_shape, broadcast_two};
use crate::ops::{ArrayOperand, Compose, Result, TensorLike};
use crate::{Binary, Compare, Error, Float, Scalar, Shape, Site, Unary, ensure};

/// Losses that are negative log-likelihoods or divergences.
#[twins(blanket)]
pub trait LikelihoodLosses: TensorLike<Elem: Float> {
    /// Returns y (ln y - x), the terms of the Kullback-Leibler divergence D(y ‖ eˣ), for log-probabilities x (`self`) and probabilities y
    /// (`target`). If `log_target` is true, `target` has log-probabilities too. A probability y of 0 with a finite x gives the loss 0, but
    /// the gradient NaN to y. A log-probability of -∞ in `target` gives the loss NaN. `self` and `target` broadcast under the rules of
    /// [`compat`](crate::shape::compat). The reduction `Mean` divides by the number of elements. For the mathematical divergence, divide a
    /// `Sum` by the batch size, or use [`KlDivLoss::batch_mean`](crate::ops::KlDivLoss::batch_mean). PyTorch: `nn.functional.kl_div`.
    fn try_kl_div(&self, target: impl ArrayOperand<Self>, log_target: bool, reduction: LossReduction) -> Result<Self> {
        let at = Site::here("kl_div");
        let (y, x) = broadcast_two(&target.into_array(self)?, self, at)?;
        let losses = if log_target {
            y.apply_unary(Unary::Exp, at)?.times(&y.minus(&x, at)?, at)?
        } else {
            entropy(&y, at)?.minus(&y.times(&x, at)?, at)?
        };
        reduce(&losses, reduction, at)
    }

    /// Returns the negative log-likelihood of the counts y (`target`) under Poisson distributions, where x is `self`. If `log_input` is
    /// true, `self` is the logarithm of the rate, and the loss is eˣ - y x. Otherwise `self` is the rate, and the loss is
    /// x - y ln(x + eps). `full` adds Stirling's approximation of ln y! where y > 1. `self` and `target` broadcast under the rules of
    /// [`compat`](crate::shape::compat). PyTorch: `nn.functional.poisson_nll_loss`.
    fn try_poisson_nll_loss(
        &self,
        target: impl ArrayOperand<Self>,
        log_input: bool,
        full: bool,
        eps: f64,
        reduction: LossReduction,
    ) -> Result<Self> {
        let at = Site::here("poisson_nll_loss");
        let (y, x) = broadcast_two(&target.into_array(self)?, self, at)?;
        let mut losses = if log_input {
            x.apply_unary(Unary::Exp, at)?.minus(&y.times(&x, at)?, at)?
        } else {
            x.minus(&y.times(&x.plus(eps, at)?.apply_unary(Unary::Log, at)?, at)?, at)?
        };
        if full {
            let log = y.apply_unary(Unary::Log, at)?;
            let tail = y.times(TAU, at)?.apply_unary(Unary::Log, at)?.times(0.5, at)?;
            let stirling = y.times(&log, at)?.minus(&y, at)?.plus(&tail, at)?;
            let small = y.compare(Compare::Le, 1.0, at)?;
            losses = losses.plus(&y.fill_shape(0.0, &y.shape(), at)?.choose(&small, &stirling, at)?, at)?;
        }
        reduce(&losses, reduction, at)
    }

    /// Returns (ln v + (x - y)² / v) / 2, the negative log-likelihood of y (`target`) under normal distributions with mean x (`self`) and
    /// variance v (`variance`). The variance is raised to at least `eps`; the gradient ignores this bound. The variance has the shape of
    /// `self`. The last dimension of the variance may also have size 1 or be missing. `full` adds ln(2π) / 2. Refuses negative variances, and
    /// other shapes of the variance. PyTorch: `nn.functional.gaussian_nll_loss`.
    fn try_gaussian_nll_loss(
        &self,
        target: impl ArrayOperand<Self>,
        variance: impl ArrayOperand<Self>,
        full: bool,
        eps: f64,
        reduction: LossReduction,
    ) -> Result<Self> {
        let (target, variance) = (&target.into_array(self)?, &variance.into_array(self)?);
        let at = Site::here("gaussian_nll_loss");
        let (own, given) = (self.shape(), variance.shape());
        let lead = own.split_last().map_or(&[][..], |(_, lead)| lead);
        let mut variance = variance.clone();
        if given != own {
            let mut column = given.clone();
            if given.sizes() == lead && own.rank() > 0 {
                column.push(1);
            } else if given.split_last() != Some((&1, lead)) {
                return Err(Error::argument(at, "var is of incorrect size").into());
            }
            variance = variance.reshape_to(column, at)?;
        }
        let variance = variance.check_elements(
            |value| value >= Self::Elem::ZERO || value.is_nan(),
            "var has negative entry/entries",
            at,
        )?;
        let floor = variance.combine(Binary::Maximum, eps, at)?;
        let v = floor.with_derivative(|| Ok(vec![(variance.clone(), None)]), at)?;
        let square = self.minus(target, at)?.apply_unary(Unary::Square, at)?;
        let mut losses = v.apply_unary(Unary::Log, at)?.plus(&square.divide_by(&v, at)?, at)?.times(0.5, at)?;
        if full {
            losses = losses.plus(0.5 * libm::log(TAU), at)?;
        }
        reduce(&losses, reduction, at)
    }

    /// Returns -(y ln x + (1 - y) ln(1 - x)) for the probabilities x (`self`) and y (`target`). The logarithms are raised to at least -100.
    /// The gradient to `self` is (x - y) / (x (1 - x)) with a divisor of at least 1e-12. The gradient to `target` is ln((1 - x) / x), which
    /// is unbounded. Both shapes must be equal. `weight` expands to this shape. Refuses elements of `self` and of `target` outside [0, 1].
    /// PyTorch refuses NaN too. Here NaN gives NaN, so that the search for the first NaN finds its origin. PyTorch:
    /// `nn.functional.binary_cross_entropy`.
    fn try_binary_cross_entropy(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self> {
        let target = &target.into_array(self)?;
        let at = Site::here("binary_cross_entropy");
        let (own, theirs) = (self.shape(), target.shape());
        ensure!(
            own == theirs,
            at,
            "Using a target size (torch.Size({theirs})) that is different to the input size (torch.Size({own})) is \
                 deprecated. Please ensure they have the same size."
        );
        let is_valid = |value: Self::Elem| value >= Self::Elem::ZERO && value <= Self::Elem::ONE || value.is_nan();
        let x = self.check_elements(is_valid, "all elements of input should be between 0 and 1", at)?;
        let y = target.check_elements(is_valid, "all elements of target should be between 0 and 1", at)?;
        reduce_weighted(cross_entropy(&x, &y, at)?, weight, reduction, at)
    }

    /// Returns the [`binary_cross_entropy`](Self::binary_cross_entropy) of the logistic function of `self`, without overflow for any finite
    /// logit, and without bounds on the logarithms and the divisor. `pos_weight` multiplies the losses of positive targets. `pos_weight`
    /// and `weight` expand to the shape of `self`. PyTorch: `nn.functional.binary_cross_entropy_with_logits`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::LossReduction;
    /// use wengert::prelude::*;
    ///
    /// let (x, y) = (Tensor::from([800.0, -800.0]), Tensor::from([1.0, 1.0]));
    /// let losses = x.binary_cross_entropy_with_logits(&y, None, None, LossReduction::None);
    /// assert_eq!(losses.to_vec(), [0.0, 800.0]);
    /// ```
    fn try_binary_cross_entropy_with_logits(
        &self,
        target: impl ArrayOperand<Self>,
        weight: Option<&Self>,
        pos_weight: Option<&Self>,
        reduction: LossReduction,
    ) -> Result<Self> {
        let target = &target.into_array(self)?;
        let at = Site::here("binary_cross_entropy_with_logits");
        let (own, theirs) = (self.shape(), target.shape());
        ensure!(
            own == theirs,
            at,
            "Target size (torch.Size({theirs})) must be the same as input size (torch.Size({own}))"
        );
        let mut log = log_sigmoid(self, at)?;
        if let Some(pos_weight) = pos_weight {
            check_weight("pos_weight", &pos_weight.shape(), &own, at)?;
            log = log.times(&pos_weight.minus(1.0, at)?.times(target, at)?.plus(1.0, at)?, at)?;
        }
        let negative = target.apply_unary(Unary::Neg, at)?.plus(1.0, at)?;
        reduce_weighted(negative.times(self, at)?.minus(&log, at)?, weight, reduction, at)
    }
}

/// Returns the binary cross-entropy of each element. The logarithms and the divisor of the derivative have the same bounds as in PyTorch.
fn cross_entropy<A: TensorLike<Elem: Float>>(x: &A, y: &A, at: Site) -> Result<A> {
    // PyTorch stores this constant as an f32, so its value is rounded to f32.
    const EPSILON: f64 = 1e-12f32 as f64;
    let hit = x.apply_unary(Unary::Log, at)?;
    let miss = x.apply_unary(Unary::Neg, at)?.apply_unary(Unary::Log1p, at)?;
    let clamped = |log: &A| log.combine(Binary::Maximum, -100.0, at);
    let value = y.minus(1.0, at)?.times(&clamped(&miss)?, at)?.minus(&y.times(&clamped(&hit)?, at)?, at)?;
    let terms = || {
        let other = x.apply_unary(Unary::Neg, at)?.plus(1.0, at)?;
        let bounded = x.times(&other, at)?.combine(Binary::Maximum, EPSILON, at)?;
        let to_x = x.minus(y, at)?.divide_by(&bounded, at)?;
        let to_x = to_x.with_derivative(|| cross_entropy_second(x, &other, y, at), at)?;
        Ok(vec![(x.clone(), Some(to_x)), (y.clone(), Some(miss.minus(&hit, at)?))])
    };
    value.with_derivative(terms, at)
}

/// Returns the second derivatives of the cross-entropy: pairs of an operand, x or y, and the derivative of (x - y) / (x (1 - x)) with
/// respect to this operand. `other` is 1 - x. As in PyTorch, 1e-12 is added to each factor of the divisor. In the first derivative, the
/// whole divisor has a lower bound instead.
#[allow(clippy::type_complexity)]
fn cross_entropy_second<A: TensorLike<Elem: Float>>(
    x: &A,
    other: &A,
    y: &A,
    at: Site,
) -> Result<Vec<(A, Option<A>)>, A::Error> {
    let divisor = x.plus(1e-12, at)?.times(&other.plus(1e-12, at)?, at)?;
    // The derivative with respect to x has the numerator x² - 2xy + y.
    let curve = x.minus(&y.times(2.0, at)?, at)?.times(x, at)?.plus(y, at)?;
    let to_x = curve.divide_by(&divisor.apply_unary(Unary::Square, at)?, at)?;
    let to_y = divisor.apply_unary(Unary::Reciprocal, at)?.apply_unary(Unary::Neg, at)?;
    Ok(vec![(x.clone(), Some(to_x)), (y.clone(), Some(to_y))])
}

/// Returns y ln y, and 0 at y = 0.
fn entropy<A: TensorLike<Elem: Float>>(y: &A, at: Site) -> Result<A> {
    let zero = y.compare(Compare::Eq, 0.0, at)?;
    let nothing = y.fill_shape(0.0, &y.shape(), at)?;
    let log = nothing.choose(&zero, &y.apply_unary(Unary::Log, at)?, at)?;
    let terms = || Ok(vec![(y.clone(), Some(log.clone())), (y.clone(), Some(y.divide_by(y, at)?))]);
    y.times(&log, at)?.with_derivative(terms, at)
}

/// Multiplies the losses by `weight`, which must expand to their shape, and reduces them.
fn reduce_weighted<A: TensorLike>(losses: A, weight: Option<&A>, reduction: LossReduction, at: Site) -> Result<A> {
    match weight {
        None => reduce(&losses, reduction, at),
        Some(weight) => {
            check_weight("weight", &weight.shape(), &losses.shape(), at)?;
            reduce(&losses.times(weight, at)?, reduction, at)
        }
    }
}

/// Refuses a weight whose shape does not broadcast with the shape `own` of the losses, or would enlarge the losses. `name` is the name of
/// the weight in errors.
fn check_weight(name: &str, weight: &Shape, own: &Shape, at: Site) -> Result<(), Error> {
    let joined = broadcast_shape(own, weight, at)?;
    if joined == *own {
        return Ok(());
    }
    let sentence = format_args!("output with shape {own} doesn't match the broadcast shape {joined}");
    Err(Error::argument(at, sentence)
        .with_hint(format_args!("the {name} {weight} does not expand to the losses {own}")))
}

#[cfg(test)]
mod tests {
    use crate::ops::LossReduction::{None as Each, Sum};
    use crate::ops::network::losses::likelihood::LikelihoodLosses;
    use crate::prelude::*;

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() <= 1e-14 * want.abs()
    }

    #[test]
    fn divergences_at_zero() {
        let (x, y) = (Tensor::from([-1.0, -2.0]), Tensor::from([0.0, 0.5]));
        assert_eq!(x.kl_div(&y, false, Each).to_vec(), [0.0, 0.5 * 0.5f64.ln() + 1.0]);
        assert_eq!(x.kl_div(&x, true, Sum).item(), 0.0);
    }

    #[test]
    fn counts() {
        let (x, y) = (Tensor::from([0.0, 0.0]), Tensor::from([1.0, 2.0]));
        assert_eq!(x.poisson_nll_loss(&y, true, false, 1e-8, Each).to_vec(), [1.0, 1.0]);
        let full = x.poisson_nll_loss(&y, true, true, 1e-8, Each).to_vec();
        assert!(close(full[1] - full[0], 2.0 * 2f64.ln() - 2.0 + 0.5 * (2.0 * std::f64::consts::TAU).ln()));
        let rates = Tensor::from([2.0, 2.0]).poisson_nll_loss(&y, false, false, 0.0, Each).to_vec();
        assert!(close(rates[0], 2.0 - 2f64.ln()));
    }

    #[test]
    fn variances_of_three_shapes() {
        let (x, y) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[0.0, 0.0]]));
        for shape in [&[1usize, 2][..], &[1, 1], &[1]] {
            let losses = x.gaussian_nll_loss(&y, Tensor::full(shape, 1.0), false, 1e-6, Each);
            assert_eq!(losses.to_vec(), [0.5, 2.0]);
        }
        assert!(x.try_gaussian_nll_loss(&y, Tensor::ones([2]), false, 1e-6, Each).is_err());
        assert!(x.try_gaussian_nll_loss(&y, Tensor::full([1], -1.0), false, 1e-6, Each).is_err());
    }

    #[test]
    fn logarithms_are_bounded() {
        let (x, y) = (Tensor::from([0.0, 1.0, 0.0, 0.25]), Tensor::from([1.0, 0.0, 0.0, 1.0]));
        let losses = x.binary_cross_entropy(&y, None, Each).to_vec();
        assert_eq!(losses[..3], [100.0, 100.0, 0.0]);
        assert!(close(losses[3], 4f64.ln()));
        let error = Tensor::from([1.5]).try_binary_cross_entropy(Tensor::from([1.0]), None, Each).unwrap_err();
        assert_eq!(error.sentence(), "all elements of input should be between 0 and 1");
        let error = Tensor::from([0.5]).try_binary_cross_entropy(Tensor::from([-0.5]), None, Each).unwrap_err();
        assert_eq!(error.sentence(), "all elements of target should be between 0 and 1");
        assert!(x.try_binary_cross_entropy(Tensor::scalar(1.0), None, Each).is_err());
    }

    /// PyTorch refuses the same shapes of weights.
    #[test]
    fn weights_never_enlarge_the_losses() {
        type Shapes = &'static [&'static [usize]];
        let table: [(&[usize], Shapes, Shapes); 3] = [
            (&[], &[&[]], &[&[1], &[2], &[1, 1], &[3, 2]]),
            (&[2], &[&[], &[1], &[2]], &[&[3], &[1, 1], &[1, 2], &[2, 1], &[3, 2]]),
            (&[2, 2], &[&[], &[1], &[2], &[1, 2], &[2, 1], &[1, 1], &[2, 2]], &[&[3], &[3, 2], &[1, 2, 2]]),
        ];
        for (shape, fitting, refused) in table {
            let x = Tensor::full(shape, 0.5);
            for &given in fitting.iter().chain(refused) {
                let weight = Tensor::ones(given);
                for reduction in [Each, Sum] {
                    let results = [
                        x.try_binary_cross_entropy(&x, Some(&weight), reduction),
                        x.try_binary_cross_entropy_with_logits(&x, Some(&weight), None, reduction),
                        x.try_binary_cross_entropy_with_logits(&x, None, Some(&weight), reduction),
                    ];
                    let expected = if reduction == Sum { &[] } else { shape };
                    let fits = |result: Result<Tensor<f64>, _>| result.is_ok_and(|losses| losses.shape() == expected);
                    assert_eq!(results.map(fits), [fitting.contains(&given); 3], "{shape:?} {given:?}");
                }
            }
        }
        let (x, weight) = (Tensor::full([2], 0.5), Tensor::ones([3, 2]));
        let error = x.try_binary_cross_entropy(&x, Some(&weight), Sum).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [2] doesn't match the broadcast shape [3, 2]");
    }

    #[test]
    fn logits_and_probabilities_agree() {
        let (x, y) = (Tensor::from([-3.0, 0.0, 2.0]), Tensor::from([0.25, 1.0, 0.0]));
        let (weight, positive) = (Tensor::from([2.0]), Tensor::scalar(1.0));
        let got = x.binary_cross_entropy_with_logits(&y, Some(&weight), Some(&positive), Sum).item();
        let want = x.sigmoid().binary_cross_entropy(&y, Some(&weight), Sum).item();
        assert!(close(got, want));
        let inf = Tensor::from([f64::INFINITY]);
        let loss = inf.binary_cross_entropy_with_logits(Tensor::from([1.0]), None, None, Each);
        assert!(loss.item().is_nan());
    }
}
