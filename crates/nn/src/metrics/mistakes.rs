//! Which samples a model is most wrong about.

use wengert_tensor::{Float, Tensor};

use super::probability::log_probability;
use super::{argmax, samples};
use crate::{Error, Result};

/// A sample whose class was not found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mistake {
    /// The number of the sample.
    pub sample: usize,
    /// Its class.
    pub target: usize,
    /// The class that was predicted.
    pub prediction: usize,
    /// Its cross-entropy.
    pub loss: f64,
}

/// The samples whose class is not the largest logit, those of the largest cross-entropy first, up to `most`; of equal ones, in their
/// order. Logits are `[n, c]`, classes `[n]`.
///
/// ```
/// use wengert_nn::metrics::worst_mistakes;
/// use wengert_tensor::prelude::*;
///
/// let logits = Tensor::from([[2.0, 1.0], [1.0, 5.0], [0.0, 3.0]]);
/// let worst = worst_mistakes(&logits, &Tensor::from([1, 0, 1]), 10)?;
/// assert_eq!(worst.iter().map(|mistake| mistake.sample).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the shapes do not fit, or a target is no class.
pub fn worst_mistakes<T: Float>(logits: &Tensor<T>, targets: &Tensor<i64>, most: usize) -> Result<Vec<Mistake>> {
    let (classes, rows, kept) = samples(logits, targets)?;
    if logits.rank() != 2 || kept.len() != targets.numel() {
        return Err(Error::Dataset("mistakes are of logits [n, c], with a class for each".to_owned()));
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
