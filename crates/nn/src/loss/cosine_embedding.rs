//! A loss of the cosine of the angle between two vectors.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, Comparison as _, Functions as _, IntoArray, LossReduction, Masking as _,
    Reductions as _, TensorLike,
};
use wengert_tensor::{Float, Shape, Site};

use crate::loss::checks::{check_shape, reduce, refuse};
use crate::loss::three::{FormulaOfThree, LossOfThree};

/// The name of this loss in errors.
const COSINE_EMBEDDING_LOSS: &str = "cosine_embedding_loss";

/// The cosine embedding loss: 1 - cos where the target is 1, max(0, cos - margin) where the target is -1, and 0 elsewhere. Here cos is the
/// cosine of the angle between two vectors. As in PyTorch's `nn.CosineEmbeddingLoss`, 1e-12 is added to the squared length of each vector.
///
/// [`of`](LossOfThree::of) takes the first vectors `[n, width]`, the second vectors of the same shape, and the targets `[n]`. Or it takes two
/// vectors `[width]` and a target `[]`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{LossReduction, CosineEmbeddingLoss};
/// use wengert::prelude::*;
///
/// let (x, y) = (Tensor::from([[1.0, 0.0], [1.0, 0.0f32]]), Tensor::from([[0.0, 2.0], [3.0, 0.0]]));
/// let each = CosineEmbeddingLoss::new().reduction(LossReduction::None);
/// assert_eq!(each.of(&x, &y, &Tensor::from([1.0, -1.0])).to_vec(), [1.0, 1.0]);
/// ```
pub type CosineEmbeddingLoss = LossOfThree<CosineEmbedding>;

/// The options of a [`CosineEmbeddingLoss`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CosineEmbedding {
    margin: f64,
}

impl CosineEmbeddingLoss {
    /// Sets the margin, from -1 to 1; 0 by default. Where the target is -1, the loss is 0 if the cosine is below the margin.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: CosineEmbedding { margin }, ..self }
    }
}

impl FormulaOfThree for CosineEmbedding {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        const EPS: f64 = 1e-12;
        let [first, second, target] = tensors;
        let at = Site::here(COSINE_EMBEDDING_LOSS);
        let shape = first.shape();
        if !matches!(shape.rank(), 1 | 2) {
            return Ok(refuse(at, format!("expected vectors [n, width] or [width], but got {shape}"))?);
        }
        check_shape("the second tensor", &second.shape(), &shape, at)?;
        check_shape("the target", &target.shape(), &Shape::from(&shape[..shape.rank() - 1]), at)?;
        let squares = (first.try_square()?.try_sum(-1)?.try_add(EPS)?, second.try_square()?.try_sum(-1)?.try_add(EPS)?);
        let cosine = first.try_mul(second)?.try_sum(-1)?.try_div(&squares.0.try_mul(&squares.1)?.try_sqrt()?)?;
        let near = cosine.try_neg()?.try_add(1.0)?.try_masked_fill(&target.try_ne(1.0)?, 0.0)?;
        let far = cosine.try_sub(self.margin)?.try_relu()?.try_masked_fill(&target.try_ne(-1.0)?, 0.0)?;
        reduce(near.try_add(&far)?, reduction)
    }
}

/// Returns the loss that [`CosineEmbeddingLoss::of`] computes with the default options. PyTorch: `nn.functional.cosine_embedding_loss`.
///
/// # Errors
///
/// If the shapes of the arguments do not fit, or there is not enough memory.
#[twins]
pub fn try_cosine_embedding_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    first: P,
    second: impl ArrayOperand<P::Array>,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    CosineEmbeddingLoss::new().try_of(first, second, target)
}
