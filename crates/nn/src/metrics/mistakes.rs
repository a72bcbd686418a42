//! The samples with the largest loss among the wrong predictions.

use wengert_tensor::{Float, Tensor};

use super::probability::log_probability;
use super::{argmax, samples};
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
/// cross-entropy keep their order. Samples whose cross-entropy is NaN come first or last. Logits are `[n, c]`, targets `[n]`.
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
    let (classes, rows, kept) = samples(logits, targets)?;
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
