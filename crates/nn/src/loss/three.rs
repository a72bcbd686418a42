//! Losses of three tensors: their type, and the trait of their formulas.

use wengert_macros::twins;
use wengert_tensor::Float;
use wengert_tensor::ops::{ArrayOperand, IntoArray, LossReduction, TensorLike};

/// A loss of three tensors by the formula `F`, which has the other options: [`MarginRankingLoss`], [`CosineEmbeddingLoss`],
/// [`TripletMarginLoss`], [`GaussianNllLoss`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOfThree<F> {
    pub(super) formula: F,
    pub(super) reduction: LossReduction,
}

/// The formula of a [`LossOfThree`].
pub trait FormulaOfThree: Copy + Default {
    /// The loss of three tensors whose shapes are not known to fit.
    #[track_caller]
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error>;
}

#[twins]
impl<F: FormulaOfThree> LossOfThree<F> {
    /// The mean, with the default options of the formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// What becomes of the single losses.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }

    /// The loss of three tensors; the formula says which, in which order and of which shapes.
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit.
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
