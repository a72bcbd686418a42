//! Class indices as the targets of a loss: checks, weights, and ignored targets.

use crate::ops::index::replace::gather_along;
use crate::ops::network::losses::reduction::{LossReduction, reduce, total};
use crate::ops::shape::views::unsqueeze;
use crate::ops::{Argument, Compose, Result, TensorLike};
use crate::{Compare, Error, Float, Scalar, Shape, Site, Tensor, Unary, ensure};

/// Options of a loss over classes.
#[derive(Debug)]
pub struct ClassOptions<'w, A> {
    /// The weight of each class, `[c]`. No gradient flows to it.
    pub weight: Option<&'w A>,
    /// The class index that marks targets to ignore.
    pub ignore_index: i64,
    /// The probability, from 0 to 1, that is taken from each target and spread evenly over all classes. Only for cross-entropy.
    pub label_smoothing: f64,
    /// The reduction of the losses of the targets.
    pub reduction: LossReduction,
}

impl<A> Clone for ClassOptions<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for ClassOptions<'_, A> {}

impl<A> Default for ClassOptions<'_, A> {
    /// Returns the options without weights and smoothing, with `ignore_index` -100 and the reduction `Mean`.
    fn default() -> Self {
        ClassOptions { weight: None, ignore_index: -100, label_smoothing: 0.0, reduction: LossReduction::Mean }
    }
}

/// Class indices that were checked against the prediction.
pub(crate) struct ClassTargets {
    /// The dimension of the classes in the prediction.
    pub(crate) axis: usize,
    pub(crate) classes: usize,
    /// The class index of each target; 0 for ignored targets.
    index: Tensor<i64>,
    /// True for the targets that are not ignored; `None` if no target is ignored.
    kept: Option<Tensor<bool>>,
    /// The number of targets that are not ignored.
    n_kept: usize,
}

impl ClassTargets {
    /// Checks the classes `target` against a prediction of shape `x`. Targets that equal `ignore_index` are ignored.
    pub(crate) fn new(x: &Shape, target: &Tensor<i64>, ignore_index: i64, at: Site) -> Result<Self, Error> {
        ensure!(x.rank() > 0, at, "Expected 1 or more dimensions (got 0)");
        let axis = usize::from(x.rank() > 1);
        let shape = target.shape();
        let mut expected = x.clone();
        let classes = expected.remove(axis);
        if *shape != expected {
            let sentence = if x.rank() > 1 && shape.rank() > 0 && x[0] != shape[0] {
                format!("Expected input batch_size ({}) to match target batch_size ({}).", x[0], shape[0])
            } else if x.rank() <= 2 && shape.rank() > 1 {
                "0D or 1D target tensor expected, multi-target not supported".into()
            } else {
                format!("size mismatch (got input: {x}, target: {shape})")
            };
            return Err(Error::argument(at, sentence).with_hint(shape_hint(x, shape, axis, &expected)));
        }
        let n_kept = target.iter().filter(|&class| class != ignore_index).count();
        let (index, kept) = if n_kept == target.numel() {
            (target.clone(), None)
        } else {
            let kept = target.compare(Compare::Ne, ignore_index, at)?;
            (target.choose(&kept, 0, at)?, Some(kept))
        };
        for (position, class) in target.iter().enumerate() {
            if class != ignore_index && !(0..classes as i64).contains(&class) {
                let message = format!(
                    "Target {class} is out of bounds. (It is number {position} of the targets, from 0; there are {classes} \
                     classes.)"
                );
                let from_one = "classes are counted from 0; if the targets count from 1, subtract 1";
                let hint = (class == classes as i64 && target.iter().all(|class| class != 0)).then_some(from_one);
                return Err(Error::IndexRange { message, at }.with_hint_if_any(hint));
            }
        }
        Ok(ClassTargets { axis, classes, index, kept, n_kept })
    }

    /// Returns the losses, with 0 for ignored targets.
    pub(crate) fn zero_ignored<A: TensorLike>(&self, losses: &A, at: Site) -> Result<A> {
        match &self.kept {
            None => Ok(losses.clone()),
            Some(kept) => losses.choose(&losses.constant_mask(kept, at)?, Argument::Number(A::Elem::ZERO), at),
        }
    }

    /// Returns the weight of each target's class. If there are no classes, all targets must be ignored, and their weights are 0.
    fn weights<A: TensorLike>(&self, weight: &A, at: Site) -> Result<A> {
        if self.classes == 0 {
            return weight.fill_shape(0.0, self.index.shape(), at);
        }
        weight.apply_detach(at)?.apply_take(&self.index, at)
    }

    /// Returns the negative log-likelihoods of the targets under the log-probabilities `x`, weighted and reduced as `options` say.
    pub(crate) fn nll<A: TensorLike<Elem: Float>>(&self, x: &A, options: &ClassOptions<'_, A>, at: Site) -> Result<A> {
        // If there are no classes, all targets must be ignored, and there is no log-probability to read. The sum of no log-probabilities is
        // 0, and its gradient to them is empty.
        let picked = if self.classes == 0 {
            x.sum_over(&[self.axis], at)?.reshape_to(self.index.shape().clone(), at)?
        } else {
            let picked = gather_along(x, &x.shape(), self.axis, &unsqueeze(&self.index, self.axis, at)?, at)?;
            picked.reshape_to(self.index.shape().clone(), at)?
        };
        let mut losses = picked.apply_unary(Unary::Neg, at)?;
        if let Some(weight) = options.weight {
            losses = losses.times(&self.weights(weight, at)?, at)?;
        }
        self.reduce(&self.zero_ignored(&losses, at)?, options, at)
    }

    /// Reduces the losses. `Mean` divides by the sum of the weights of the targets that are not ignored. Without weights, it divides by the
    /// number of these targets.
    pub(crate) fn reduce<A: TensorLike<Elem: Float>>(
        &self,
        losses: &A,
        options: &ClassOptions<'_, A>,
        at: Site,
    ) -> Result<A> {
        match (options.reduction, options.weight) {
            (LossReduction::Mean, Some(weight)) => {
                let weights = self.zero_ignored(&self.weights(weight, at)?, at)?;
                total(losses, at)?.divide_by(&total(&weights, at)?, at)
            }
            (LossReduction::Mean, None) => total(losses, at)?.divide_by(self.n_kept as f64, at),
            _ => reduce(losses, options.reduction, at),
        }
    }
}

/// Returns the hint of the error message for targets of shape `own`, if a prediction of shape `x` needs targets of shape `expected`.
fn shape_hint(x: &Shape, own: &Shape, axis: usize, expected: &Shape) -> String {
    let column = expected.replaced(axis..axis, &[1]);
    let classes_last = x.rank() > 2 && x[..x.rank() - 1] == own[..];
    let change = if own == x {
        format!("one-hot targets become classes by `targets.argmax({axis})`, probabilities are passed as such")
    } else if *own == column {
        format!("`targets.squeeze({axis})` has it")
    } else if classes_last {
        let end = x.rank() - 2;
        format!(
            "with the classes last, `logits.flatten(0, {end})` and `targets.flatten(0, {end})` fit, or `logits.movedim(-1, 1)`"
        )
    } else {
        return format!("the classes are dimension {axis} of the prediction; targets of shape {expected} fit it");
    };
    format!("the classes are dimension {axis} of the prediction; targets of shape {expected} fit it: {change}")
}

/// Refuses weights that are not a vector with one weight per class.
pub(crate) fn check_weight<A: TensorLike>(weight: Option<&A>, classes: usize, at: Site) -> Result<(), Error> {
    if let Some(shape) = weight.map(A::shape) {
        ensure!(
            shape == [classes],
            at,
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: \
             {shape}"
        );
    }
    Ok(())
}
