//! The accuracy of predicted classes.

use wengert_macros::twins;
use wengert_tensor::ops::{Comparison as _, Reductions as _, TensorLike};
use wengert_tensor::{Error, Shape, Site, Tensor};

/// Returns the share of samples, from 0 to 1, whose target class has the largest logit. If several classes have the largest logit, the first of
/// them is the prediction. A sample with a NaN among its logits is wrong. `logits` and `targets` have the shapes that
/// [`CrossEntropyLoss::of`](crate::CrossEntropyLoss::of) takes.
///
/// Samples with the target -100 are left out, as in [`cross_entropy`](crate::cross_entropy()). Returns NaN if no samples remain. The result for one
/// batch is the same as the value of [`metrics::Accuracy`](crate::metrics::Accuracy).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::accuracy;
/// use wengert::prelude::*;
///
/// let logits = Tensor::from([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]);
/// assert_eq!(accuracy(&logits, &Tensor::from([1, 0, 0, 1])), 0.75);
/// ```
///
/// # Errors
///
/// If the shapes of `logits` and `targets` do not fit, a target is neither a class nor -100, or there is not enough
/// memory.
#[twins]
pub fn try_accuracy<A: TensorLike>(logits: &A, targets: &Tensor<i64>) -> Result<f64, A::Error> {
    let at = Site::here("accuracy");
    let axis = class_dim(&logits.shape(), targets).map_err(|message| Error::Argument { message, at })?;
    let count = targets.iter().filter(|&target| target != IGNORE_INDEX).count();
    if count == 0 {
        return Ok(f64::NAN);
    }
    let logits = logits.to_tensor(at)?;
    let (guesses, with_nan) = (logits.try_argmax(axis)?, logits.try_isnan()?.try_any(axis)?);
    let right = guesses.iter().zip(with_nan.iter()).zip(targets.iter());
    let right = right.filter(|((guess, has_nan), target)| guess == target && !has_nan).count();
    Ok(right as f64 / count as f64)
}

/// The target that marks ignored samples, as in cross-entropy.
pub(super) const IGNORE_INDEX: i64 = -100;

/// Returns the position of the class dimension of logits with the shape `logits`.
///
/// # Errors
///
/// Returns the message of the error if the shapes do not fit, or a target is neither a class nor [`IGNORE_INDEX`].
pub(super) fn class_dim(logits: &Shape, targets: &Tensor<i64>) -> Result<usize, String> {
    let shape = targets.shape();
    let axis = match logits.rank() {
        0 => return Err("Expected 1 or more dimensions (got 0)".to_owned()),
        1 => 0,
        _ => 1,
    };
    let mut expected = logits.clone();
    let classes = expected.remove(axis);
    if *shape != expected {
        if logits.rank() > 1 && shape.first().is_some_and(|&count| count != logits[0]) {
            let (samples, targets) = (logits[0], shape[0]);
            return Err(format!("Expected input batch_size ({samples}) to match target batch_size ({targets})."));
        }
        if logits.rank() <= 2 {
            return Err("0D or 1D target tensor expected, multi-target not supported".to_owned());
        }
        return Err(format!("Expected target size {expected}, got {shape}"));
    }
    match targets.iter().find(|&target| target != IGNORE_INDEX && !(0..classes as i64).contains(&target)) {
        Some(target) => Err(format!(
            "Target {target} is out of bounds. (There are {classes} classes, and {IGNORE_INDEX} marks samples to ignore.)"
        )),
        None => Ok(axis),
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;

    use super::*;
    use crate::metrics::Accuracy;

    #[test]
    fn accuracy_leaves_out_ignored_samples_and_refuses_other_targets_outside_of_the_classes() {
        let nan = f64::NAN;
        let logits =
            Tensor::from([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [nan, 1.0, 0.0], [1.0, nan, 0.0], [0.5, 0.5, 0.0]]);
        for targets in [[0, 1, 0, 0, 0], [0, -100, -100, 1, 1], [-100, 0, 2, 1, -100], [1, 2, 1, -100, 0], [-100; 5]] {
            let targets = Tensor::from(targets);
            let mut metric = Accuracy::new();
            metric.update(&logits, &targets).unwrap();
            let found = [accuracy(&logits, &targets), accuracy(&Tape::new().constant(&logits), &targets)];
            assert!(
                found.iter().all(|share| format!("{share}") == format!("{}", metric.value())),
                "{targets} {found:?}"
            );
        }
        assert_eq!(accuracy(&logits, &Tensor::from([0, -100, -100, 1, 1])), 1.0 / 3.0);
        assert_eq!(accuracy(&Tensor::from([0.0, 1.0]), &Tensor::scalar(1)), 1.0);
        for target in [3, -1] {
            let targets = Tensor::from([0, 1, target, 0, 0]);
            let text = try_accuracy(&logits, &targets).unwrap_err().to_string();
            assert!(
                text.contains(&format!("Target {target} is out of bounds.")) && text.contains("metrics/accuracy.rs"),
                "{text}"
            );
            assert!(Accuracy::new().update(&logits, &targets).unwrap_err().to_string().contains("is out of bounds."));
        }
        for (logits, targets, sentence) in [
            (vec![], vec![], "Expected 1 or more dimensions (got 0)"),
            (vec![5, 3], vec![2], "Expected input batch_size (5) to match target batch_size (2)."),
            (vec![5, 3], vec![5, 1], "0D or 1D target tensor expected, multi-target not supported"),
            (vec![3], vec![3], "0D or 1D target tensor expected, multi-target not supported"),
            (vec![5, 3, 2], vec![5, 3], "Expected target size [5, 2], got [5, 3]"),
        ] {
            let error = try_accuracy(&Tensor::<f64>::zeros(logits), &Tensor::zeros(targets)).unwrap_err();
            assert!(error.to_string().contains(sentence), "{error}");
        }
        assert!(accuracy(&Tensor::<f64>::zeros([0, 4]), &Tensor::zeros([0])).is_nan());
    }
}
