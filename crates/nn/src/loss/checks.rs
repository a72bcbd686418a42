//! Checks of shapes and the reduction over samples, which several losses share.

use wengert_tensor::ops::{LossReduction, Reductions as _, TensorLike, Views as _};
use wengert_tensor::{Error, Float, Shape, Site};

/// Reduces the losses of the samples to their mean or sum, or returns them unchanged, as `reduction` says.
#[track_caller]
pub(super) fn reduce<A: TensorLike<Elem: Float>>(losses: A, reduction: LossReduction) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses),
        LossReduction::Sum => losses.try_sum(..),
        LossReduction::Mean => losses.try_mean(..),
    }
}

/// Returns an error of the operation at `at`.
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

/// Returns scores `[n, c]` or `[c]` as `[n, c]`.
#[track_caller]
pub(super) fn as_batch<A: TensorLike>(scores: &A, at: Site) -> Result<A, A::Error> {
    match scores.shape().rank() {
        1 => scores.try_unsqueeze(0),
        2 => Ok(scores.clone()),
        _ => Ok(refuse(at, format!("expected scores [n, c] or [c], but got {}", scores.shape()))?),
    }
}

/// Reduces the losses `[n]` of a batch that [`as_batch`] made. `scores` is the shape of the scores before [`as_batch`]. If the scores had
/// no batch dimension, the loss is `[]`.
#[track_caller]
pub(super) fn reduce_batch<A: TensorLike<Elem: Float>>(
    losses: A,
    scores: &Shape,
    reduction: LossReduction,
) -> Result<A, A::Error> {
    let losses = if scores.rank() == 1 { losses.try_squeeze(0)? } else { losses };
    reduce(losses, reduction)
}
