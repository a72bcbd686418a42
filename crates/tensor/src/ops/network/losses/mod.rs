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
mod regression;
mod targets;

pub use classes::{ClassLosses, ClassOptions, Classes};
pub use likelihood::LikelihoodLosses;
pub use margins::{MarginLosses, TripletOptions};
pub use regression::RegressionLosses;

use crate::Shape;
use crate::ops::TensorLike;
use crate::ops::formula::Formula;
use crate::shape::error::Site;

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossReduction {
    /// They stay as they are.
    None,
    /// Their mean; NaN of nothing.
    #[default]
    Mean,
    /// Their sum; 0 of nothing.
    Sum,
}

/// The losses of single elements, reduced.
fn reduced<A: TensorLike>(losses: &A, reduction: LossReduction, at: Site) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses.clone()),
        LossReduction::Sum => total(losses, at),
        LossReduction::Mean => total(losses, at)?.divided(losses.shape().numel() as f64, at),
    }
}

/// The sum of all elements, of rank 0.
fn total<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let axes: Vec<usize> = (0..x.shape().rank()).collect();
    x.summed(&axes, at)?.reshaped(Shape::scalar(), at)
}
