//! Losses, each with a reduction. `self` is the prediction; edge behaviour is PyTorch's.
//!
//! | file | losses |
//! |---|---|
//! | `regression` | distances between numbers: mse, l1, smooth l1, Huber |
//! | `likelihood` | negative log-likelihoods of distributions, and divergences: Poisson, Gaussian, KL, binary |
//! | `classes` | cross-entropy and negative log-likelihood of classes |
//! | `margins` | ranking, hinge, triplet |

mod classes;
mod likelihood;
mod margins;
mod reduction;
mod regression;
mod targets;

pub use classes::{ClassLosses, Classes};
pub use likelihood::LikelihoodLosses;
pub use margins::{MarginLosses, TripletOptions};
pub use reduction::LossReduction;
pub use regression::RegressionLosses;
pub use targets::ClassOptions;
