//! Losses of three tensors: of two with a target, of an anchor with two examples, of a mean with a target and a variance.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, Comparison as _, Functions as _, IntoArray, LikelihoodLosses as _, LossReduction,
    MarginLosses as _, Masking as _, Reductions as _, TensorLike, TripletOptions,
};
use wengert_tensor::{Error, Float, Shape, Site};

use crate::loss::{check_shape, reduced, refuse};

// What errors call the operations.
const MARGIN_RANKING_LOSS: &str = "margin_ranking_loss";
const COSINE_EMBEDDING_LOSS: &str = "cosine_embedding_loss";
const TRIPLET_MARGIN_LOSS: &str = "triplet_margin_loss";
const TRIPLET_MARGIN_WITH_DISTANCE_LOSS: &str = "triplet_margin_with_distance_loss";
const GAUSSIAN_NLL_LOSS: &str = "gaussian_nll_loss";

/// A loss of three tensors by the formula `F`, which has the other options: [`MarginRankingLoss`], [`CosineEmbeddingLoss`],
/// [`TripletMarginLoss`], [`GaussianNllLoss`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOfThree<F> {
    formula: F,
    reduction: LossReduction,
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

/// The first of two scores should be larger by a margin where the target is 1, smaller by as much where it is -1:
/// [`margin_ranking_loss`](wengert_tensor::ops::MarginLosses::margin_ranking_loss). PyTorch: `nn.MarginRankingLoss`.
///
/// [`of`](LossOfThree::of) takes the first scores, the second ones and the target, all of one shape.
///
/// ```
/// use wengert_nn::{MarginRankingLoss, margin_ranking_loss};
/// use wengert_tensor::prelude::*;
///
/// let (first, second, target) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 1.0]), Tensor::from([1.0, 1.0]));
/// assert_eq!(margin_ranking_loss(&first, &second, &target).item(), 1.0);
/// assert_eq!(MarginRankingLoss::new().margin(3.0).of(&first, &second, &target).item(), 3.5);
/// ```
pub type MarginRankingLoss = LossOfThree<MarginRanking>;

/// The options of a [`MarginRankingLoss`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MarginRanking {
    margin: f64,
}

impl MarginRankingLoss {
    /// How far apart the scores should be; 0 by default.
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: MarginRanking { margin }, ..self }
    }
}

impl FormulaOfThree for MarginRanking {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [first, second, target] = tensors;
        let at = Site::here(MARGIN_RANKING_LOSS);
        check_shape("the second tensor", &second.shape(), &first.shape(), at)?;
        check_shape("the target", &target.shape(), &first.shape(), at)?;
        first.try_margin_ranking_loss(second, target, self.margin, reduction)
    }
}

/// [`MarginRankingLoss::of`] with the default options. PyTorch: `nn.functional.margin_ranking_loss`.
///
/// # Errors
///
/// Where the shapes differ.
#[twins]
pub fn try_margin_ranking_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    first: P,
    second: impl ArrayOperand<P::Array>,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MarginRankingLoss::new().try_of(first, second, target)
}

/// 1 - cos of the angle between two vectors where the target is 1, max(0, cos - margin) where it is -1, 0 elsewhere. PyTorch:
/// `nn.CosineEmbeddingLoss`, whose cosine adds 1e-12 to each sum of squares.
///
/// [`of`](LossOfThree::of) takes the first vectors `[n, width]`, the second ones and targets `[n]`, or two vectors `[width]` and a
/// target `[]`.
///
/// ```
/// use wengert_nn::{LossReduction, CosineEmbeddingLoss};
/// use wengert_tensor::prelude::*;
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
    /// The cosine, from -1 to 1, below which vectors that do not belong together lose nothing; 0 by default.
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
            return Ok(refuse(at, format!("vectors are to be [n, width] or [width], not {shape}"))?);
        }
        check_shape("the second tensor", &second.shape(), &shape, at)?;
        check_shape("the target", &target.shape(), &Shape::from(&shape[..shape.rank() - 1]), at)?;
        let squares = (first.try_square()?.try_sum(-1)?.try_add(EPS)?, second.try_square()?.try_sum(-1)?.try_add(EPS)?);
        let cosine = first.try_mul(second)?.try_sum(-1)?.try_div(&squares.0.try_mul(&squares.1)?.try_sqrt()?)?;
        let near = cosine.try_neg()?.try_add(1.0)?.try_masked_fill(&target.try_ne(1.0)?, 0.0)?;
        let far = cosine.try_sub(self.margin)?.try_relu()?.try_masked_fill(&target.try_ne(-1.0)?, 0.0)?;
        reduced(near.try_add(&far)?, reduction)
    }
}

/// [`CosineEmbeddingLoss::of`] with the default options. PyTorch: `nn.functional.cosine_embedding_loss`.
///
/// # Errors
///
/// Where the shapes do not fit.
#[twins]
pub fn try_cosine_embedding_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    first: P,
    second: impl ArrayOperand<P::Array>,
    target: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    CosineEmbeddingLoss::new().try_of(first, second, target)
}

/// An anchor should be nearer to the positive example than to the negative one, by a margin:
/// [`triplet_margin_loss`](wengert_tensor::ops::MarginLosses::triplet_margin_loss). PyTorch: `nn.TripletMarginLoss` and, by
/// [`by_distance`](LossOfThree::by_distance), `nn.TripletMarginWithDistanceLoss`.
///
/// [`of`](LossOfThree::of) takes the anchor, the positive and the negative, vectors `[…, width]` of one shape. Margin 1, Euclidean
/// distances to which 1e-6 is added, no swap by default.
///
/// ```
/// use wengert_nn::{TripletMarginLoss, triplet_margin_loss};
/// use wengert_tensor::prelude::*;
///
/// let (anchor, positive, negative) = (Tensor::from([[0.0]]), Tensor::from([[1.0]]), Tensor::from([[-3.0f64]]));
/// assert_eq!(triplet_margin_loss(&anchor, &positive, &negative).item(), 0.0);
/// let loss = TripletMarginLoss::new().margin(3.0).by_distance(&anchor, &positive, &negative, |x, y| (x - y).abs().sum(1));
/// assert_eq!(loss.item(), 1.0);
/// ```
pub type TripletMarginLoss = LossOfThree<TripletOptions>;

#[twins]
impl TripletMarginLoss {
    /// How much nearer the positive should be; 1 by default.
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: TripletOptions { margin, ..self.formula }, ..self }
    }

    /// The norm of the distance; 2 by default.
    pub fn p(self, p: f64) -> Self {
        Self { formula: TripletOptions { p, ..self.formula }, ..self }
    }

    /// What is added to every difference; 1e-6 by default.
    pub fn eps(self, eps: f64) -> Self {
        Self { formula: TripletOptions { eps, ..self.formula }, ..self }
    }

    /// Whether the distance from positive to negative counts where it is the smaller one.
    pub fn swap(self, swap: bool) -> Self {
        Self { formula: TripletOptions { swap, ..self.formula }, ..self }
    }

    /// [`of`](LossOfThree::of) with a distance of one's own; `p` and `eps` are not used.
    ///
    /// # Errors
    ///
    /// Where the shapes differ.
    pub fn try_by_distance<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        anchor: P,
        positive: impl ArrayOperand<P::Array>,
        negative: impl ArrayOperand<P::Array>,
        distance: impl Fn(&P::Array, &P::Array) -> P::Array,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let anchor = anchor.array();
        let (positive, negative) = (positive.into_array(&anchor), negative.into_array(&anchor));
        check_triple(&anchor, &positive, &negative, Site::here(TRIPLET_MARGIN_WITH_DISTANCE_LOSS))?;
        let mut far = distance(&anchor, &negative);
        if self.formula.swap {
            far = far.try_minimum(&distance(&positive, &negative))?;
        }
        let short = distance(&anchor, &positive).try_sub(&far)?.try_add(self.formula.margin)?;
        reduced(short.try_relu()?, self.reduction)
    }
}

impl FormulaOfThree for TripletOptions {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [anchor, positive, negative] = tensors;
        check_triple(anchor, positive, negative, Site::here(TRIPLET_MARGIN_LOSS))?;
        anchor.try_triplet_margin_loss(positive, negative, self, reduction)
    }
}

fn check_triple<A: TensorLike>(anchor: &A, positive: &A, negative: &A, at: Site) -> Result<(), Error> {
    check_shape("the positive", &positive.shape(), &anchor.shape(), at)?;
    check_shape("the negative", &negative.shape(), &anchor.shape(), at)
}

/// [`TripletMarginLoss::of`] with the default options. PyTorch: `nn.functional.triplet_margin_loss`.
///
/// # Errors
///
/// Where the shapes differ, or they have no dimensions.
#[twins]
pub fn try_triplet_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    anchor: P,
    positive: impl ArrayOperand<P::Array>,
    negative: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    TripletMarginLoss::new().try_of(anchor, positive, negative)
}

/// Of numbers under normal distributions with a predicted mean and variance:
/// [`gaussian_nll_loss`](wengert_tensor::ops::LikelihoodLosses::gaussian_nll_loss). PyTorch: `nn.GaussianNLLLoss`.
///
/// [`of`](LossOfThree::of) takes the means, targets of the same shape, and variances of that shape too, or with 1 as their last
/// size, or without that dimension. It is an error too where a variance is negative.
///
/// ```
/// use wengert_nn::gaussian_nll_loss;
/// use wengert_tensor::prelude::*;
///
/// let (mean, target, variance) = (Tensor::from([1.0]), Tensor::from([3.0]), Tensor::from([1.0]));
/// assert_eq!(gaussian_nll_loss(&mean, &target, &variance).item(), 2.0);
/// ```
pub type GaussianNllLoss = LossOfThree<GaussianNll>;

/// The options of a [`GaussianNllLoss`].
#[derive(Clone, Copy, Debug)]
pub struct GaussianNll {
    full: bool,
    eps: f64,
}

impl Default for GaussianNll {
    /// Without the constant, variances of at least 1e-6.
    fn default() -> Self {
        GaussianNll { full: false, eps: 1e-6 }
    }
}

impl GaussianNllLoss {
    /// Whether ln(2π) / 2 is added to each loss; not by default.
    pub fn full(self, full: bool) -> Self {
        Self { formula: GaussianNll { full, ..self.formula }, ..self }
    }

    /// What a variance is at least; 1e-6 by default.
    pub fn eps(self, eps: f64) -> Self {
        Self { formula: GaussianNll { eps, ..self.formula }, ..self }
    }
}

impl FormulaOfThree for GaussianNll {
    fn apply<A: TensorLike<Elem: Float>>(self, tensors: [&A; 3], reduction: LossReduction) -> Result<A, A::Error> {
        let [mean, target, variance] = tensors;
        check_shape("the target", &target.shape(), &mean.shape(), Site::here(GAUSSIAN_NLL_LOSS))?;
        mean.try_gaussian_nll_loss(target, variance, self.full, self.eps, reduction)
    }
}

/// [`GaussianNllLoss::of`] with the default options. PyTorch: `nn.functional.gaussian_nll_loss`.
///
/// # Errors
///
/// Where the shapes do not fit, or a variance is negative.
#[twins]
pub fn try_gaussian_nll_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    mean: P,
    target: impl ArrayOperand<P::Array>,
    variance: impl ArrayOperand<P::Array>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    GaussianNllLoss::new().try_of(mean, target, variance)
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::*;

    #[test]
    fn shapes_that_differ_are_errors() {
        let (column, row) = (Tensor::from([[1.0], [2.0]]), Tensor::from([1.0, 2.0]));
        let error = try_margin_ranking_loss(&column, &row, &row).unwrap_err();
        let sentence = "margin_ranking_loss: the second tensor has shape [2], expected [2, 1]: `reshape([2, 1])`";
        assert_eq!(error.sentence(), sentence);
        assert!(try_gaussian_nll_loss(&column, &row, &column).is_err());
        assert!(try_triplet_margin_loss(&column, &column, &row).is_err());
        assert!(try_cosine_embedding_loss(&column, &column, &column).is_err());
        assert!(try_cosine_embedding_loss(&column, &column, &row).is_ok());
        assert!(TripletMarginLoss::new().try_by_distance(&column, &row, &column, |x, _| x.clone()).is_err());
    }
}
