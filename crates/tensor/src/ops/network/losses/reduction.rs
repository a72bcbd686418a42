//! The reduction of elementwise losses to their sum or mean.

use crate::ops::{Compose, Result, TensorLike};
use crate::{Shape, Site};

/// The reduction of elementwise losses to the result of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossReduction {
    /// No reduction: the result has the loss of each element.
    None,
    /// The mean of the losses; NaN if there are none. Some losses with weights divide by the sum of the weights instead.
    #[default]
    Mean,
    /// The sum of the losses; 0 if there are none.
    Sum,
}

/// Reduces elementwise losses.
pub(super) fn reduce<A: TensorLike>(losses: &A, reduction: LossReduction, at: Site) -> Result<A> {
    match reduction {
        LossReduction::None => Ok(losses.clone()),
        LossReduction::Sum => total(losses, at),
        LossReduction::Mean => total(losses, at)?.divide_by_count(losses.shape().numel(), at),
    }
}

/// Returns the sum of all elements, with rank 0.
pub(super) fn total<A: TensorLike>(x: &A, at: Site) -> Result<A> {
    let axes: Vec<usize> = (0..x.shape().rank()).collect();
    x.sum_over(&axes, at)?.reshape_to(Shape::scalar(), at)
}
