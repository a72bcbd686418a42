//! Losses: for each loss a function with PyTorch's default options, and a type with methods that set these options.
//!
//! Every loss works on tensors and on recorded variables. Most losses that compare prediction and target element by element, for example
//! [`MseLoss`], are in the tensor crate.
//!
//! [`MseLoss`]: wengert_tensor::ops::MseLoss

mod checks;
#[cfg(test)]
mod class_tests;
mod cosine_embedding;
mod cross_entropy;
mod ctc;
mod ctc_paths;
mod gaussian_nll;
mod labels;
mod margin_ranking;
mod multi_margin;
mod nll;
mod three;
#[cfg(test)]
mod three_tests;
mod triplet_margin;
mod weighted;

pub use cosine_embedding::{CosineEmbedding, CosineEmbeddingLoss, cosine_embedding_loss, try_cosine_embedding_loss};
pub use cross_entropy::{CrossEntropy, CrossEntropyLoss, cross_entropy, try_cross_entropy};
pub use ctc::{CtcLoss, ctc_loss, try_ctc_loss};
pub use gaussian_nll::{GaussianNll, GaussianNllLoss, gaussian_nll_loss, try_gaussian_nll_loss};
pub use labels::{
    MultilabelMarginLoss, MultilabelSoftMargin, MultilabelSoftMarginLoss, multilabel_margin_loss,
    multilabel_soft_margin_loss, try_multilabel_margin_loss, try_multilabel_soft_margin_loss,
};
pub use margin_ranking::{MarginRanking, MarginRankingLoss, margin_ranking_loss, try_margin_ranking_loss};
pub use multi_margin::{MultiMargin, MultiMarginLoss, multi_margin_loss, try_multi_margin_loss};
pub use nll::{NegativeLogLikelihood, NllLoss, nll_loss, try_nll_loss};
pub use three::{FormulaOfThree, LossOfThree};
pub use triplet_margin::{TripletMarginLoss, triplet_margin_loss, try_triplet_margin_loss};
pub use weighted::WeightedLoss;
