//! Losses of three tensors: their type, and the trait of their formulas.

use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::{ArrayOperand, IntoArray, LossReduction, TensorLike};

/// A loss of three tensors. `F` is the formula with its own options: [`MarginRankingLoss`](crate::MarginRankingLoss),
/// [`CosineEmbeddingLoss`](crate::CosineEmbeddingLoss), [`TripletMarginLoss`](crate::TripletMarginLoss),
/// [`GaussianNllLoss`](crate::GaussianNllLoss).
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOfThree<F> {
    pub(super) formula: F,
    pub(super) reduction: LossReduction,
}

/// The formula of a [`LossOfThree`].
pub trait FormulaOfThree: Copy + Default {
    /// Computes the loss of three tensors, after a check of their shapes.
    #[track_caller]
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error>;
}

#[twins]
impl<F: FormulaOfThree> LossOfThree<F> {
    /// Returns the loss with the mean and with the default options of the formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the reduction of the losses of the samples: mean (the default), sum or none.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }

    /// Returns the loss of three tensors. The documentation of each loss type says their order and shapes.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        first: P,
        second: impl ArrayOperand<P::Array>,
        third: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let first = first.array();
        let (second, third) = (second.into_array(&first), third.into_array(&first));
        self.formula.apply([&first, &second, &third], self.reduction)
    }
}
