//! Checks of shapes, and the reduction of the losses of the samples, which several losses share.

use wengert_tensor::ops::{LossReduction, Reductions as _, TensorLike, Views as _};
use wengert_tensor::{Error, Float, Shape, Site};

/// The losses of the samples, reduced.
#[track_caller]
pub(super) fn reduced<A: TensorLike<Elem: Float>>(losses: A, reduction: LossReduction) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses),
        LossReduction::Sum => losses.try_sum(..),
        LossReduction::Mean => losses.try_mean(..),
    }
}

/// An error of the operation at `at`.
pub(super) fn refuse<R>(at: Site, message: String) -> Result<R, Error> {
    Err(Error::Argument { message: format!("{}: {message}", at.operation), at })
}

/// An error where `found`, the shape of `what`, is not `expected`.
pub(super) fn check_shape(what: &str, found: &Shape, expected: &Shape, at: Site) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let way_out = if found.numel() == expected.numel() { format!(": `reshape({expected})`") } else { String::new() };
    refuse(at, format!("{what} has shape {found}, expected {expected}{way_out}"))
}

/// Scores `[n, c]` or `[c]` as `[n, c]`.
#[track_caller]
pub(super) fn as_batch<A: TensorLike>(scores: &A, at: Site) -> Result<A, A::Error> {
    match scores.shape().rank() {
        1 => scores.try_unsqueeze(0),
        2 => Ok(scores.clone()),
        _ => Ok(refuse(at, format!("scores are to be [n, c] or [c], not {}", scores.shape()))?),
    }
}

/// The losses `[n]` of what [`as_batch`] gave, `[]` where there was one sample without a dimension for it; reduced.
#[track_caller]
pub(super) fn reduced_batch<A: TensorLike<Elem: Float>>(
    losses: A,
    scores: &Shape,
    reduction: LossReduction,
) -> Result<A, A::Error> {
    let losses = if scores.rank() == 1 { losses.try_squeeze(0)? } else { losses };
    reduced(losses, reduction)
}
