//! Losses: functions with PyTorch's defaults, and a type for each whose methods give the options. All are of tensors and recorded
//! variables alike.
//!
//! Those of a prediction and a target of one shape, such as [`MseLoss`], are with the operations of the tensor crate. Here are those of
//! classes, of several labels for a sample, of pairs and triples, and of sequences.

mod classes;
mod ctc;
mod labels;
mod pairs;
mod weighted;

use wengert_tensor::ops::{LossReduction, Reductions, TensorLike, Views};
use wengert_tensor::{Error, Float, Shape, Site};

pub use classes::{
    CrossEntropy, CrossEntropyLoss, MultiMargin, MultiMarginLoss, NegativeLogLikelihood, NllLoss, accuracy,
    cross_entropy, multi_margin_loss, nll_loss, try_accuracy, try_cross_entropy, try_multi_margin_loss, try_nll_loss,
};
pub use ctc::{CtcLoss, ctc_loss, try_ctc_loss};
pub use labels::{
    MultilabelMarginLoss, MultilabelSoftMargin, MultilabelSoftMarginLoss, multilabel_margin_loss,
    multilabel_soft_margin_loss, try_multilabel_margin_loss, try_multilabel_soft_margin_loss,
};
pub use pairs::{
    CosineEmbedding, CosineEmbeddingLoss, FormulaOfThree, GaussianNll, GaussianNllLoss, LossOfThree, MarginRanking,
    MarginRankingLoss, TripletMarginLoss, cosine_embedding_loss, gaussian_nll_loss, margin_ranking_loss,
    triplet_margin_loss, try_cosine_embedding_loss, try_gaussian_nll_loss, try_margin_ranking_loss,
    try_triplet_margin_loss,
};
pub use weighted::WeightedLoss;

/// The losses of the samples, reduced.
#[track_caller]
fn reduced<A: TensorLike<Elem: Float>>(losses: A, reduction: LossReduction) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses),
        LossReduction::Sum => losses.try_sum(..),
        LossReduction::Mean => losses.try_mean(..),
    }
}

/// An error of the operation at `at`.
fn refuse<R>(at: Site, message: String) -> Result<R, Error> {
    Err(Error::Argument { message: format!("{}: {message}", at.operation), at })
}

/// An error where `found`, the shape of `what`, is not `expected`.
fn check_shape(what: &str, found: &Shape, expected: &Shape, at: Site) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let way_out = if found.numel() == expected.numel() { format!(": `reshape({expected})`") } else { String::new() };
    refuse(at, format!("{what} has shape {found}, expected {expected}{way_out}"))
}

/// Scores `[n, c]` or `[c]` as `[n, c]`.
#[track_caller]
fn as_batch<A: TensorLike>(scores: &A, at: Site) -> Result<A, A::Error> {
    match scores.shape().rank() {
        1 => scores.try_unsqueeze(0),
        2 => Ok(scores.clone()),
        _ => Ok(refuse(at, format!("scores are to be [n, c] or [c], not {}", scores.shape()))?),
    }
}

/// The losses `[n]` of what [`as_batch`] gave, `[]` where there was one sample without a dimension for it; reduced.
#[track_caller]
fn reduced_batch<A: TensorLike<Elem: Float>>(
    losses: A,
    scores: &Shape,
    reduction: LossReduction,
) -> Result<A, A::Error> {
    let losses = if scores.rank() == 1 { losses.try_squeeze(0)? } else { losses };
    reduced(losses, reduction)
}
