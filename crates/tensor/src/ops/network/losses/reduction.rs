//! The reduction of elementwise losses to their sum or mean.

use crate::ops::TensorLike;
use crate::ops::compose::Compose;
use crate::{Shape, Site};

/// The reduction of elementwise losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossReduction {
    /// They stay as they are.
    None,
    /// Their mean; NaN if empty.
    #[default]
    Mean,
    /// Their sum; 0 if empty.
    Sum,
}

/// Elementwise losses, reduced.
pub(super) fn reduced<A: TensorLike>(losses: &A, reduction: LossReduction, at: Site) -> Result<A, A::Error> {
    match reduction {
        LossReduction::None => Ok(losses.clone()),
        LossReduction::Sum => total(losses, at),
        LossReduction::Mean => total(losses, at)?.divided(losses.shape().numel() as f64, at),
    }
}

/// The sum of all elements, of rank 0.
pub(super) fn total<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let axes: Vec<usize> = (0..x.shape().rank()).collect();
    x.summed(&axes, at)?.reshaped(Shape::scalar(), at)
}
