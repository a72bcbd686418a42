//! Functions that several losses share: checks of shapes, violations of margins, and the reduction of the losses of all samples to one loss.

use wengert_tensor::ops::{
    Arithmetic as _, Comparison as _, LossReduction, Masking as _, Reductions as _, TensorLike, Views as _,
};
use wengert_tensor::{Error, Float, Shape, Site};

/// Returns the mean or the sum of the losses of all samples, or the losses unchanged, as `reduction` says.
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

/// Returns scores of shape `[n, c]` unchanged, and scores `[c]` of a single sample as `[1, c]`. Other ranks are an
/// error.
#[track_caller]
pub(super) fn as_batch<A: TensorLike>(scores: &A, at: Site) -> Result<A, A::Error> {
    match scores.shape().rank() {
        1 => scores.try_unsqueeze(0),
        2 => Ok(scores.clone()),
        _ => Ok(refuse(at, format!("expected scores [n, c] or [c], but got {}", scores.shape()))?),
    }
}

/// Reduces the losses `[n]` of the n samples of a batch. `scores` is the shape of the scores before [`as_batch`] gave them a batch
/// dimension. If the scores had no batch dimension, the result is a number of shape `[]`.
#[track_caller]
pub(super) fn reduce_batch<A: TensorLike<Elem: Float>>(
    losses: A,
    scores: &Shape,
    reduction: LossReduction,
) -> Result<A, A::Error> {
    let losses = if scores.rank() == 1 { losses.try_squeeze(0)? } else { losses };
    reduce(losses, reduction)
}

/// Returns an error if scores of shape `shape` have no classes. The text is PyTorch's.
pub(super) fn check_classes(shape: &Shape, at: Site) -> Result<(), Error> {
    if shape.ends_with(&[0]) {
        let message = format!("Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}");
        return Err(Error::Argument { message, at });
    }
    Ok(())
}

/// Returns max(0, `margin` - (`score` - `other_scores`)): the amount that `score` lacks to exceed `other_scores` by the margin. `score` and
/// `other_scores` broadcast to the shape of `is_pair`. The result is 0 with gradient 0 where `is_pair` is false, even if a score there is
/// infinite. As in PyTorch, this is also the result for two infinite scores of the same sign.
#[track_caller]
pub(super) fn margin_shortfall<A: TensorLike<Elem: Float>>(
    score: &A,
    other_scores: &A,
    margin: f64,
    is_pair: &A::Mask,
) -> Result<A, A::Error> {
    let same_infinity = other_scores.try_eq(score)?.try_logical_and(&score.try_isinf()?)?;
    let difference = other_scores.try_sub(score)?.try_add(margin)?;
    // The differences are replaced before the maximum is taken, because the derivatives of later steps at NaN or ∞ would be NaN.
    difference.try_masked_fill(&is_pair.try_logical_not()?.try_logical_or(&same_infinity)?, 0.0)?.try_relu()
}
