//! The accuracy of predicted classes.

use wengert_macros::twins;
use wengert_tensor::ops::{Reductions as _, TensorLike};
use wengert_tensor::{Error, Shape, Site, Tensor};

/// Returns the share of samples, from 0 to 1, whose target class has the largest logit. If several logits are equal, the first class is the
/// prediction. Without samples it is NaN. The shapes are the shapes of [`CrossEntropyLoss::of`](crate::CrossEntropyLoss::of).
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
/// If the shapes do not fit.
#[twins]
pub fn try_accuracy<A: TensorLike>(logits: &A, targets: &Tensor<i64>) -> Result<f64, A::Error> {
    let at = Site::here("accuracy");
    let axis = class_dim(&logits.shape(), targets.shape(), at)?;
    if targets.numel() == 0 {
        return Ok(f64::NAN);
    }
    let guesses = logits.try_argmax(axis)?;
    let right = guesses.iter().zip(targets.iter()).filter(|(guess, target)| guess == target).count();
    Ok(right as f64 / targets.numel() as f64)
}

/// Returns the position of the class dimension in `logits`, or an error if the shapes do not fit.
fn class_dim(logits: &Shape, targets: &Shape, at: Site) -> Result<usize, Error> {
    let refuse = |message: String| Err(Error::Argument { message, at });
    let axis = match logits.rank() {
        0 => return refuse("Expected 1 or more dimensions (got 0)".to_owned()),
        1 => 0,
        _ => 1,
    };
    let mut expected = logits.clone();
    expected.remove(axis);
    if *targets == expected {
        return Ok(axis);
    }
    if logits.rank() > 1 && targets.first().is_some_and(|&count| count != logits[0]) {
        let (samples, targets) = (logits[0], targets[0]);
        return refuse(format!("Expected input batch_size ({samples}) to match target batch_size ({targets})."));
    }
    if logits.rank() <= 2 {
        return refuse("0D or 1D target tensor expected, multi-target not supported".to_owned());
    }
    refuse(format!("Expected target size {expected}, got {targets}"))
}
