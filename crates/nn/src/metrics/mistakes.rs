//! The samples with the largest loss among the wrong predictions.

use wengert_tensor::{Float, Tensor};

use super::probability::log_probability;
use super::{argmax, samples_as_rows};
use crate::{Error, Result};

/// A sample with a wrong prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mistake {
    /// The index of the sample.
    pub sample: usize,
    /// The class of the sample.
    pub target: usize,
    /// The predicted class.
    pub prediction: usize,
    /// The cross-entropy of the sample.
    pub loss: f64,
}

/// Returns the samples with a wrong prediction, with the largest cross-entropy first, and at most `most` of them. Samples of equal
/// cross-entropy keep their order. A NaN cross-entropy comes first if its sign bit is 0, and last if its sign bit is 1. Logits are `[n, c]`, targets
/// `[n]`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::worst_mistakes;
/// use wengert::prelude::*;
///
/// let logits = Tensor::from([[2.0, 1.0], [1.0, 5.0], [0.0, 3.0]]);
/// let worst = worst_mistakes(&logits, &Tensor::from([1, 0, 1]), 10)?;
/// assert_eq!(worst.iter().map(|mistake| mistake.sample).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the shapes do not fit, a target is not a class, or there is not enough memory. The target -100 is an error too.
pub fn worst_mistakes<T: Float>(logits: &Tensor<T>, targets: &Tensor<i64>, most: usize) -> Result<Vec<Mistake>> {
    let (classes, rows, kept) = samples_as_rows(logits, targets)?;
    if logits.rank() != 2 || kept.len() != targets.numel() {
        return Err(Error::Dataset("expected logits [n, c] and a class for each sample".to_owned()));
    }
    let rows = rows.chunks(classes.max(1)).zip(kept).enumerate();
    let mut mistakes: Vec<Mistake> = rows
        .map(|(sample, (row, target))| Mistake {
            sample,
            target,
            prediction: argmax(row),
            loss: -log_probability(row, target),
        })
        .filter(|mistake| mistake.prediction != mistake.target)
        .collect();
    mistakes.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    mistakes.truncate(most);
    Ok(mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_sorted_and_other_targets_are_errors() {
        let logits = Tensor::from([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [2.0, 0.0]]);
        let samples = |targets: [i64; 4], most| -> Vec<usize> {
            let mistakes = worst_mistakes(&logits, &Tensor::from(targets), most).unwrap();
            assert!(mistakes.iter().all(|mistake| mistake.target != mistake.prediction));
            mistakes.iter().map(|mistake| mistake.sample).collect()
        };
        // Samples 0 and 3 have equal losses.
        assert_eq!(samples([1, 0, 1, 1], 10), [2, 0, 3, 1]);
        assert_eq!(samples([1, 0, 1, 1], 2), [2, 0]);
        assert_eq!(samples([0, 1, 0, 0], 2), [0; 0]);
        for targets in [[1, 0, 2, 1], [1, 0, -1, 1], [1, 0, -100, 1]] {
            assert!(worst_mistakes(&logits, &Tensor::from(targets), 10).is_err());
        }
        assert!(worst_mistakes(&logits, &Tensor::from([0, 1]), 10).is_err());
        assert!(worst_mistakes(&Tensor::<f64>::zeros([2, 2, 3]), &Tensor::zeros([2, 3]), 10).is_err());
        assert!(worst_mistakes(&Tensor::<f64>::zeros([2]), &Tensor::scalar(1), 10).is_err());
    }
}
