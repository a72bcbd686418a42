//! Losses, each with a reduction. `self` is the prediction; edge behaviour is PyTorch's.
//!
//! | file | losses |
//! |---|---|
//! | `regression` | distances between numbers: mse, l1, smooth l1, Huber |
//! | `likelihood` | negative log-likelihoods of distributions, and divergences: Poisson, Gaussian, KL, binary |
//! | `classes` | cross-entropy and negative log-likelihood of classes |
//! | `margins` | ranking, hinge, triplet |
//! | `functions` | those of a prediction and a target as functions with defaults, and as types with options |

mod classes;
mod functions;
mod likelihood;
mod margins;
mod reduction;
mod regression;
mod targets;

pub use classes::{ClassLosses, Classes};
pub use functions::{
    BceLoss, BceWithLogitsLoss, HingeEmbeddingLoss, HuberLoss, KlDivLoss, L1Loss, MseLoss, PoissonNllLoss,
    SmoothL1Loss, SoftMarginLoss, binary_cross_entropy, binary_cross_entropy_with_logits, hinge_embedding_loss,
    huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss, soft_margin_loss,
    try_binary_cross_entropy, try_binary_cross_entropy_with_logits, try_hinge_embedding_loss, try_huber_loss,
    try_kl_div, try_l1_loss, try_mse_loss, try_poisson_nll_loss, try_smooth_l1_loss, try_soft_margin_loss,
};
pub use likelihood::LikelihoodLosses;
pub use margins::{MarginLosses, TripletOptions};
pub use reduction::LossReduction;
pub use regression::RegressionLosses;
pub use targets::ClassOptions;
