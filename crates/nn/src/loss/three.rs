//! The type of all losses of three tensors, and the trait of the formulas of these losses.

use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::{ArrayOperand, IntoArray, LossReduction, TensorLike};

/// A loss of three tensors. `F` is the formula with its own options. The losses of this type are
/// [`MarginRankingLoss`](crate::MarginRankingLoss), [`CosineEmbeddingLoss`](crate::CosineEmbeddingLoss),
/// [`TripletMarginLoss`](crate::TripletMarginLoss), [`GaussianNllLoss`](crate::GaussianNllLoss).
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOfThree<F> {
    pub(super) formula: F,
    pub(super) reduction: LossReduction,
}

/// The formula of a [`LossOfThree`].
pub trait FormulaOfThree: Copy + Default {
    /// Checks the shapes of three tensors, then computes their loss and reduces it over the samples.
    #[track_caller]
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error>;
}

#[twins]
impl<F: FormulaOfThree> LossOfThree<F> {
    /// Returns the loss with the mean over the samples as the reduction, and with the default options of the formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the reduction of the losses of the samples: mean (the default), sum or none.
    #[must_use]
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }

    /// Returns the loss of three tensors. The documentation of each loss type says the order and the shapes of the tensors.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a variance of a [`GaussianNllLoss`](crate::GaussianNllLoss) is negative, or there is not enough memory. Also
    /// if the margin of a [`TripletMarginLoss`](crate::TripletMarginLoss) is not above 0.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        first: P,
        second: impl ArrayOperand<P::Array>,
        third: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let first = first.array();
        let (second, third) = (second.into_array(&first)?, third.into_array(&first)?);
        self.formula.apply([&first, &second, &third], self.reduction)
    }
}
