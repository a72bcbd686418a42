//! Losses. `self` is the prediction, or the first of several inputs. Edge cases (empty batches, ignored targets, infinities) follow PyTorch.
//!
//! | file | losses |
//! |---|---|
//! | `regression` | distances between real values: mse, l1, smooth l1, Huber |
//! | `likelihood` | negative log-likelihoods of distributions, and divergences: Poisson, Gaussian, KL, binary cross-entropy |
//! | `classes` | cross-entropy and negative log-likelihood of classes |
//! | `margins` | ranking, hinge, soft margin, triplet |
//! | `functions` | losses of a prediction and a target, as functions with defaults and as types with options |

mod classes;
mod functions;
mod likelihood;
mod margins;
mod reduction;
mod regression;
mod targets;

pub use classes::{ClassLosses, Classes};
pub use functions::*;
pub use likelihood::LikelihoodLosses;
pub use margins::{MarginLosses, TripletOptions};
pub use reduction::LossReduction;
pub use regression::RegressionLosses;
pub use targets::ClassOptions;
