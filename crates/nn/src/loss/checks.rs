//! Functions that several losses share: checks of shapes, and the reduction of the losses of all samples to one loss.

use wengert_tensor::ops::{LossReduction, Reductions as _, TensorLike, Views as _};
use wengert_tensor::{Error, Float, Shape, Site};

/// Returns the mean or the sum of the losses of all samples, or these losses themselves, as `reduction` says.
#[track_caller]
pub(super) fn reduce<A: TensorLike<Elem: Float>>(losses: A, reduction: LossReduction) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses),
        LossReduction::Sum => losses.try_sum(..),
        LossReduction::Mean => losses.try_mean(..),
    }
}

/// Returns an error with `message` after the name of the operation. `at` has this name and the caller's line.
pub(super) fn refuse<R>(at: Site, message: String) -> Result<R, Error> {
    Err(Error::Argument { message: format!("{}: {message}", at.operation), at })
}

/// Returns an error if `found`, the shape of the tensor `name`, is not `expected`.
pub(super) fn check_shape(name: &str, found: &Shape, expected: &Shape, at: Site) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let hint = if found.numel() == expected.numel() { format!(": `reshape({expected})`") } else { String::new() };
    refuse(at, format!("{name} has shape {found}, expected {expected}{hint}"))
}

/// Returns scores of shape `[n, c]` unchanged, and scores `[c]` of a single sample as `[1, c]`.
#[track_caller]
pub(super) fn as_batch<A: TensorLike>(scores: &A, at: Site) -> Result<A, A::Error> {
    match scores.shape().rank() {
        1 => scores.try_unsqueeze(0),
        2 => Ok(scores.clone()),
        _ => Ok(refuse(at, format!("expected scores [n, c] or [c], but got {}", scores.shape()))?),
    }
}

/// Reduces the losses `[n]` of the n samples of a batch. `scores` is the shape of the scores before [`as_batch`] gave them a batch
/// dimension. If they had none, the result is a number of shape `[]`.
#[track_caller]
pub(super) fn reduce_batch<A: TensorLike<Elem: Float>>(
    losses: A,
    scores: &Shape,
    reduction: LossReduction,
) -> Result<A, A::Error> {
    let losses = if scores.rank() == 1 { losses.try_squeeze(0)? } else { losses };
    reduce(losses, reduction)
}
