//! Losses of classification. Predictions are `[n, c, …]`, with the classes in the second dimension, or `[c]`.

use wengert_macros::twins;

use crate::ops::network::losses::reduction::reduce;
use crate::ops::network::losses::targets::{ClassOptions, ClassTargets, check_weight};
use crate::ops::shape::views::squeeze;
use crate::ops::{Compose, Result, Softmax, TensorLike};
use crate::{Float, Shape, Site, Tensor, Unary, ensure};

/// The true classes of the examples.
#[derive(Debug)]
pub enum Classes<'c, A> {
    /// The index of each example's class, `[n, …]`, or `[]` for a prediction `[c]`.
    Indices(&'c Tensor<i64>),
    /// A probability for each class, in the shape of the prediction.
    Probabilities(&'c A),
}

impl<A> Clone for Classes<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Classes<'_, A> {}

/// Losses of classification.
#[twins(blanket)]
pub trait ClassLosses: TensorLike<Elem: Float> {
    /// Returns the negative log-likelihood of the classes `target` `[n, …]` under the log-probabilities `self` `[n, c, …]`, multiplied by the
    /// class weights. `Mean` divides by the sum of the weights of all targets that are not ignored. If all targets are ignored, the mean is
    /// NaN with gradient 0. Refuses classes out of range, and a target of another shape. PyTorch: `nn.functional.nll_loss`.
    fn try_nll_loss(&self, target: &Tensor<i64>, options: ClassOptions<'_, Self>) -> Result<Self> {
        let at = Site::here("nll_loss");
        let targets = ClassTargets::new(&self.shape(), target, options.ignore_index, at)?;
        check_weight(options.weight, targets.classes, at)?;
        targets.nll(self, &options, at)
    }

    /// Returns the cross-entropy between `target` and the softmax of the logits `self` `[n, c, …]`. For class indices, `Mean` divides as in
    /// [`nll_loss`](Self::nll_loss). For probabilities, `Mean` divides by the number of elements of `[n, …]`, and no target is ignored.
    /// Refuses classes out of range, a target of another shape, and a label smoothing outside [0, 1]. PyTorch: `nn.functional.cross_entropy`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::Classes;
    /// use wengert::prelude::*;
    ///
    /// let logits = Tensor::from([[1000.0, 0.0], [0.0, 0.0]]);
    /// let target = Tensor::from([0i64, 1]);
    /// let loss = logits.cross_entropy(Classes::Indices(&target), Default::default());
    /// assert_eq!(loss.item(), 0.5 * 2f64.ln());
    /// ```
    fn try_cross_entropy(&self, target: Classes<'_, Self>, options: ClassOptions<'_, Self>) -> Result<Self> {
        let at = Site::here("cross_entropy");
        ensure!(
            (0.0..=1.0).contains(&options.label_smoothing),
            at,
            "label_smoothing must be between 0.0 and 1.0. Got: {}",
            options.label_smoothing
        );
        match target {
            Classes::Indices(target) => cross_entropy_of_classes(self, target, &options, at),
            Classes::Probabilities(target) => cross_entropy_of_probabilities(self, target, &options, at),
        }
    }
}

#[track_caller]
fn cross_entropy_of_classes<A: TensorLike<Elem: Float>>(
    x: &A,
    target: &Tensor<i64>,
    options: &ClassOptions<'_, A>,
    at: Site,
) -> Result<A> {
    let targets = ClassTargets::new(&x.shape(), target, options.ignore_index, at)?;
    check_weight(options.weight, targets.classes, at)?;
    let log = x.try_log_softmax(targets.axis as isize)?;
    let nll = targets.nll(&log, options, at)?;
    let smoothing = options.label_smoothing;
    if smoothing == 0.0 {
        return Ok(nll);
    }
    let weighted = match options.weight {
        Some(weight) => log.times(&align_weight(weight, targets.axis, log.shape().rank(), at)?, at)?,
        None => log,
    };
    let spread = weighted.sum_over(&[targets.axis], at)?.reshape_to(target.shape().clone(), at)?;
    let spread = targets.reduce(&targets.zero_ignored(&spread.apply_unary(Unary::Neg, at)?, at)?, options, at)?;
    nll.times(1.0 - smoothing, at)?.plus(&spread.times(smoothing / targets.classes as f64, at)?, at)
}

#[track_caller]
fn cross_entropy_of_probabilities<A: TensorLike<Elem: Float>>(
    x: &A,
    target: &A,
    options: &ClassOptions<'_, A>,
    at: Site,
) -> Result<A> {
    let shape = x.shape();
    ensure!(
        shape == target.shape() && shape.rank() > 0,
        at,
        "Expected class probabilities in the shape of the input {shape}, but got target of shape {}",
        target.shape()
    );
    let axis = usize::from(shape.rank() > 1);
    let classes = shape[axis];
    check_weight(options.weight, classes, at)?;
    let mut target = target.clone();
    if options.label_smoothing > 0.0 {
        let share = options.label_smoothing / classes as f64;
        target = target.times(1.0 - options.label_smoothing, at)?.plus(share, at)?;
    }
    let mut terms = x.try_log_softmax(axis as isize)?.times(&target, at)?;
    if let Some(weight) = options.weight {
        terms = terms.times(&align_weight(weight, axis, shape.rank(), at)?, at)?;
    }
    let losses = squeeze(&terms.sum_over(&[axis], at)?, axis, at)?.apply_unary(Unary::Neg, at)?;
    reduce(&losses, options.reduction, at)
}

/// Returns the weights `[c]` as a constant, reshaped so that they broadcast with `[n, c, …]`.
fn align_weight<A: TensorLike>(weight: &A, axis: usize, rank: usize, at: Site) -> Result<A> {
    weight.apply_detach(at)?.reshape_to(Shape::ones(rank).with_size(axis, weight.shape()[0]), at)
}

#[cfg(test)]
mod tests {
    use crate::ops::LossReduction;
    use crate::ops::network::losses::classes::{ClassLosses, ClassOptions, Classes};
    use crate::prelude::*;

    fn close(got: f64, want: f64) -> bool {
        (got - want).abs() <= 1e-14 * want.abs()
    }

    #[test]
    fn the_mean_is_weighted_and_skips_ignored_targets() {
        let x = Tensor::from([[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0]]);
        let (target, weight) = (Tensor::from([0i64, 1, -100]), Tensor::from([1.0, 3.0]));
        let options = ClassOptions { weight: Some(&weight), ..Default::default() };
        assert_eq!(x.nll_loss(&target, options).item(), 13.0 / 4.0);
        let each = ClassOptions { reduction: LossReduction::None, ..options };
        assert_eq!(x.nll_loss(&target, each).to_vec(), [1.0, 12.0, 0.0]);
        let ignored = Tensor::full([3], -100i64);
        assert!(x.nll_loss(&ignored, ClassOptions::default()).item().is_nan());
        let sum = ClassOptions { reduction: LossReduction::Sum, ..Default::default() };
        assert_eq!(x.nll_loss(&ignored, sum).item(), 0.0);
        assert_eq!(Tensor::from([-1.0, -2.0]).nll_loss(&Tensor::scalar(1), Default::default()).item(), 2.0);
    }

    #[test]
    fn without_classes_all_targets_are_ignored() {
        let (x, ignored, weight) = (Tensor::<f64>::zeros([2, 0]), Tensor::full([2], -100i64), Tensor::zeros([0]));
        for weight in [None, Some(&weight)] {
            let options = |reduction| ClassOptions { weight, reduction, ..Default::default() };
            let losses =
                |options| [x.nll_loss(&ignored, options), x.cross_entropy(Classes::Indices(&ignored), options)];
            assert!(losses(options(LossReduction::Mean)).iter().all(|mean| mean.item().is_nan()));
            assert!(losses(options(LossReduction::Sum)).iter().all(|sum| sum.item() == 0.0));
            assert!(losses(options(LossReduction::None)).iter().all(|each| each.to_vec() == [0.0, 0.0]));
            let smoothed = ClassOptions { label_smoothing: 0.1, ..options(LossReduction::Sum) };
            assert!(x.cross_entropy(Classes::Indices(&ignored), smoothed).item().is_nan());
        }
    }

    #[test]
    fn smoothed_class_numbers_equal_probabilities() {
        let x = Tensor::from([[[1.0, 2.0], [0.5, -1.0], [0.0, 0.0]]]);
        let (target, weight) = (Tensor::from([[2i64, 0]]), Tensor::from([1.0, 2.0, 0.5]));
        let spread = Tensor::from([[[0.1, 0.8], [0.1, 0.1], [0.8, 0.1]]]);
        let options = ClassOptions {
            weight: Some(&weight),
            label_smoothing: 0.3,
            reduction: LossReduction::Sum,
            ..Default::default()
        };
        let by_index = x.cross_entropy(Classes::Indices(&target), options).item();
        let plain = ClassOptions { label_smoothing: 0.0, ..options };
        assert!(close(by_index, x.cross_entropy(Classes::Probabilities(&spread), plain).item()));
        let mean = ClassOptions { reduction: LossReduction::Mean, ..options };
        assert!(close(x.cross_entropy(Classes::Indices(&target), mean).item(), by_index / 1.5));
    }

    #[test]
    fn refusals_have_pytorchs_sentences() {
        let x = Tensor::<f64>::zeros([2, 3]);
        let sentence = |target: Tensor<i64>| x.try_nll_loss(&target, ClassOptions::default()).unwrap_err().sentence();
        assert_eq!(sentence(Tensor::zeros([3])), "Expected input batch_size (2) to match target batch_size (3).");
        let outside = "Target 3 is out of bounds. (It is number 1 of the targets, from 0; there are 3 classes.)";
        assert_eq!(sentence(Tensor::from([0i64, 3])), outside);
        assert_eq!(sentence(Tensor::zeros([2, 3])), "0D or 1D target tensor expected, multi-target not supported");
    }

    #[test]
    fn targets_of_a_wrong_shape_get_a_hint() {
        let hint = |logits: &[usize], targets: &[usize]| {
            let (x, target) = (Tensor::<f64>::zeros(logits), Tensor::zeros(targets));
            let text = x.try_cross_entropy(Classes::Indices(&target), Default::default()).unwrap_err().to_string();
            text.lines().last().unwrap().to_owned()
        };
        assert!(hint(&[2, 3], &[2, 3]).ends_with(
            "the classes are dimension 1 of the prediction; targets of shape [2] fit it: one-hot targets become classes by \
             `targets.argmax(1)`, probabilities are passed as such"
        ));
        assert!(hint(&[2, 3], &[2, 1]).ends_with("targets of shape [2] fit it: `targets.squeeze(1)` has it"));
        assert!(
            hint(&[2, 5, 7], &[2, 5])
                .contains("targets of shape [2, 7] fit it: with the classes last, `logits.flatten(0, 1)`")
        );
        assert!(hint(&[2, 3], &[4]).ends_with("targets of shape [2] fit it"));
    }

    #[test]
    fn classes_that_are_counted_from_1_get_a_hint() {
        let x = Tensor::<f64>::zeros([2, 3]);
        let text = |target: Tensor<i64>| {
            x.try_cross_entropy(Classes::Indices(&target), Default::default()).unwrap_err().to_string()
        };
        let hint = "hint: classes are counted from 0; if the targets count from 1, subtract 1";
        assert!(text(Tensor::from([1i64, 3])).ends_with(hint));
        for other in [[0i64, 3], [1, 4], [-1, 3]] {
            assert!(!text(Tensor::from(other)).contains("hint"), "{other:?}");
        }
    }
}
