//! Losses of samples that have one class each, and the accuracy.
//!
//! The formulas are with the operations: [`ClassLosses::try_cross_entropy`]. They are those of PyTorch's `CrossEntropyLoss`:
//! <https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, ArrayOperand, ClassLosses, ClassOptions, Classes, Indexing as _, IntoArray, Reductions as _,
    TensorLike, Views as _, try_one_hot,
};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use crate::loss::weighted::WeightedLoss;
use crate::loss::{as_batch, check_shape, reduced_batch, refuse};

// What errors call the operations.
const MULTI_MARGIN_LOSS: &str = "multi_margin_loss";

/// Softmax cross-entropy against class indices, with PyTorch's options. PyTorch: `torch.nn.CrossEntropyLoss`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{CrossEntropyLoss, LossReduction};
///
/// let logits = Tensor::from([[0.0, 0.0], [3.0, 3.0f64]]);
/// let targets = Tensor::from([1, -100]); // the second sample is ignored
/// let loss = CrossEntropyLoss::new().reduction(LossReduction::None);
/// assert_eq!(loss.of(&logits, &targets).to_vec(), [2.0f64.ln(), 0.0]);
/// ```
pub type CrossEntropyLoss<T = f32> = WeightedLoss<CrossEntropy, T>;

/// The options of a [`CrossEntropyLoss`].
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    ignore_index: i64,
    label_smoothing: f64,
}

impl Default for CrossEntropy {
    /// -100 ignored, no smoothing.
    fn default() -> Self {
        CrossEntropy { ignore_index: -100, label_smoothing: 0.0 }
    }
}

#[twins]
impl<T: Float> CrossEntropyLoss<T> {
    /// With samples ignored that have this target; -100 by default.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self { formula: CrossEntropy { ignore_index, ..self.formula }, ..self }
    }

    /// With a share of the target, from 0 to 1, spread evenly over all classes; 0 by default.
    pub fn label_smoothing(self, label_smoothing: f64) -> Self {
        Self { formula: CrossEntropy { label_smoothing, ..self.formula }, ..self }
    }

    /// The loss of `logits` (not normalised) against class indices:
    ///
    /// | `logits` | `targets` |
    /// |---|---|
    /// | `[c]` | `[]` |
    /// | `[n, c]` | `[n]` |
    /// | `[n, c, d1, …]` | `[n, d1, …]` |
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit, a target is neither a class nor ignored, there is not one weight per class, or the
    /// smoothing is outside its range.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let logits = &logits.array();
        let weight = self.weight.as_ref().map(|weight| logits.constant(weight));
        logits.try_cross_entropy(Classes::Indices(targets), self.options(weight.as_ref()))
    }

    /// The loss of `logits` against a probability for each class, in the shape of the logits. The mean is over all positions, and no
    /// index is ignored.
    ///
    /// # Errors
    ///
    /// Where the shapes differ, there is not one weight per class, or the smoothing is outside its range.
    pub fn try_of_probabilities<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        logits: P,
        targets: impl ArrayOperand<P::Array>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let logits = &logits.array();
        let targets = targets.into_array(logits);
        let weight = self.weight.as_ref().map(|weight| logits.constant(weight));
        logits.try_cross_entropy(Classes::Probabilities(&targets), self.options(weight.as_ref()))
    }

    fn options<'w, A>(&self, weight: Option<&'w A>) -> ClassOptions<'w, A> {
        let CrossEntropy { ignore_index, label_smoothing } = self.formula;
        ClassOptions { weight, ignore_index, label_smoothing, reduction: self.reduction }
    }
}

/// [`CrossEntropyLoss::of`] with the default options: the mean over the samples. PyTorch:
/// `torch.nn.functional.cross_entropy`.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::cross_entropy;
///
/// let tape = Tape::<f64>::new();
/// let logits = tape.var(&Tensor::from([[0.0, 0.0], [0.0, 0.0]]));
/// let loss = cross_entropy(&logits, &Tensor::from([0, 1]));
/// assert_eq!(loss.item(), 2.0f64.ln());
/// assert_eq!(loss.backward().of(logits), &Tensor::from([[-0.25, 0.25], [0.25, -0.25]]));
/// ```
///
/// # Errors
///
/// Where the shapes do not fit, or a target is neither a class nor -100.
#[twins]
pub fn try_cross_entropy<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    logits: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    CrossEntropyLoss::default().try_of(logits, targets)
}

/// Minus the log-probability of the target class, with PyTorch's options. PyTorch: `torch.nn.NLLLoss`.
///
/// ```
/// use wengert_nn::nll_loss;
/// use wengert_tensor::prelude::*;
///
/// let log_probs = Tensor::from([[0.5f64, 0.5], [0.2, 0.8]]).log();
/// assert_eq!(nll_loss(&log_probs, &Tensor::from([0, -100])).item(), 2.0f64.ln());
/// ```
pub type NllLoss<T = f32> = WeightedLoss<NegativeLogLikelihood, T>;

/// The options of an [`NllLoss`].
#[derive(Clone, Copy, Debug)]
pub struct NegativeLogLikelihood {
    ignore_index: i64,
}

impl Default for NegativeLogLikelihood {
    /// -100 ignored.
    fn default() -> Self {
        NegativeLogLikelihood { ignore_index: -100 }
    }
}

#[twins]
impl<T: Float> NllLoss<T> {
    /// With samples ignored that have this target; -100 by default.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self { formula: NegativeLogLikelihood { ignore_index }, ..self }
    }

    /// The loss of log-probabilities in the shapes of [`CrossEntropyLoss::of`].
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit, a target is neither a class nor ignored, or there is not one weight per class.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        log_probs: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let log_probs = log_probs.array();
        let weight = self.weight.as_ref().map(|weight| log_probs.constant(weight));
        let (ignore_index, reduction) = (self.formula.ignore_index, self.reduction);
        let options = ClassOptions { weight: weight.as_ref(), ignore_index, label_smoothing: 0.0, reduction };
        log_probs.try_nll_loss(targets, options)
    }
}

/// [`NllLoss::of`] with the default options. PyTorch: `torch.nn.functional.nll_loss`.
///
/// # Errors
///
/// Where the shapes do not fit, or a target is neither a class nor -100.
#[twins]
pub fn try_nll_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    log_probs: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    NllLoss::default().try_of(log_probs, targets)
}

/// The target class y should have a score larger by a margin than each other class: the sum over these of
/// wᵧ max(0, margin - xᵧ + xᵢ)ᵖ, divided by the number of classes. PyTorch: `torch.nn.MultiMarginLoss`.
///
/// ```
/// use wengert_nn::{MultiMarginLoss, multi_margin_loss};
/// use wengert_tensor::prelude::*;
///
/// let (scores, target) = (Tensor::from([[0.5, 1.0, 0.0, 2.0]]), Tensor::from([1]));
/// assert_eq!(multi_margin_loss(&scores, &target).item(), 2.5 / 4.0);
/// assert_eq!(MultiMarginLoss::new().p(2).of(&scores, &target).item(), 4.25 / 4.0);
/// ```
pub type MultiMarginLoss<T = f32> = WeightedLoss<MultiMargin, T>;

/// The options of a [`MultiMarginLoss`].
#[derive(Clone, Copy, Debug)]
pub struct MultiMargin {
    p: i32,
    margin: f64,
}

impl Default for MultiMargin {
    /// p 1, margin 1.
    fn default() -> Self {
        MultiMargin { p: 1, margin: 1.0 }
    }
}

#[twins]
impl<T: Float> MultiMarginLoss<T> {
    /// The power of what is short of the margin, 1 or more; 1 by default.
    pub fn p(self, p: i32) -> Self {
        Self { formula: MultiMargin { p, ..self.formula }, ..self }
    }

    /// How much larger the score of the target should be; 1 by default.
    pub fn margin(self, margin: f64) -> Self {
        Self { formula: MultiMargin { margin, ..self.formula }, ..self }
    }

    /// The loss of scores `[n, c]` against classes `[n]`, or `[c]` against `[]`.
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit, a target is no class, there is not one weight per class, or p is below 1.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem = T>>>(
        &self,
        scores: P,
        targets: &Tensor<i64>,
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (scores, at) = (scores.array(), Site::here(MULTI_MARGIN_LOSS));
        let MultiMargin { p, margin } = self.formula;
        if p < 1 {
            return Ok(refuse(at, format!("p is {p}, and is to be 1 or more"))?);
        }
        let shape = scores.shape();
        let scores = as_batch(&scores, at)?;
        let classes = scores.shape()[1];
        check_shape("the target", targets.shape(), &Shape::from(&shape[..shape.rank() - 1]), at)?;
        let targets = targets.try_reshape([scores.shape()[0]])?;
        let own = scores.try_gather(1, &targets.try_unsqueeze(1)?)?;
        let short = scores.try_sub(&own)?.try_add(margin)?.try_relu()?;
        let short = if p == 1 { short } else { short.try_pow(p)? };
        // The target is not compared with itself.
        let others = 1 - try_one_hot(&targets, Some(classes))?;
        let mut share = others.cast::<T>();
        if let Some(weight) = &self.weight {
            check_shape("the weight", weight.shape(), &Shape::from([classes]), at)?;
            share = share.try_mul(&weight.try_index_select(0, &targets)?.try_unsqueeze(1)?)?;
        }
        reduced_batch(short.try_mul(&scores.constant(&share))?.try_mean(1)?, &shape, self.reduction)
    }
}

/// [`MultiMarginLoss::of`] with the default options. PyTorch: `torch.nn.functional.multi_margin_loss`.
///
/// # Errors
///
/// Where the shapes do not fit, or a target is no class.
#[twins]
pub fn try_multi_margin_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    scores: P,
    targets: &Tensor<i64>,
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    MultiMarginLoss::default().try_of(scores, targets)
}

/// The share of samples, from 0 to 1, whose largest logit is that of the target class (of several equal ones, the
/// first); NaN where there are no samples. The shapes are those of [`CrossEntropyLoss::of`].
///
/// ```
/// use wengert_nn::accuracy;
/// use wengert_tensor::prelude::*;
///
/// let logits = Tensor::from([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]);
/// assert_eq!(accuracy(&logits, &Tensor::from([1, 0, 0, 1])), 0.75);
/// ```
///
/// # Errors
///
/// Where the shapes do not fit.
#[twins]
pub fn try_accuracy<A: TensorLike>(logits: &A, targets: &Tensor<i64>) -> Result<f64, A::Error> {
    let at = Site::here("accuracy");
    let axis = class_dim(&logits.shape(), targets.shape(), at)?;
    if targets.numel() == 0 {
        return Ok(f64::NAN);
    }
    let guesses = logits.try_argmax(axis)?;
    let right = guesses.iter().zip(targets.iter()).filter(|(guess, target)| guess == target).count();
    Ok(right as f64 / targets.numel() as f64)
}

/// Position of the class dimension, where the shapes fit.
fn class_dim(logits: &Shape, targets: &Shape, at: Site) -> Result<usize, Error> {
    let refuse = |message: String| Err(Error::Argument { message, at });
    let axis = match logits.rank() {
        0 => return refuse("Expected 1 or more dimensions (got 0)".to_owned()),
        1 => 0,
        _ => 1,
    };
    let mut expected = logits.clone();
    expected.remove(axis);
    if *targets == expected {
        return Ok(axis);
    }
    if logits.rank() > 1 && targets.first().is_some_and(|&count| count != logits[0]) {
        let (samples, targets) = (logits[0], targets[0]);
        return refuse(format!("Expected input batch_size ({samples}) to match target batch_size ({targets})."));
    }
    if logits.rank() <= 2 {
        return refuse("0D or 1D target tensor expected, multi-target not supported".to_owned());
    }
    refuse(format!("Expected target size {expected}, got {targets}"))
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;
    use wengert_tensor::ops::LossReduction;

    use super::*;

    /// Σ of e^x in order: the formula of the documentation, one sample at a time, without any trick. `[n, c, d]` only.
    fn naive(loss: &CrossEntropyLoss<f64>, logits: &Tensor<f64>, targets: &Tensor<i64>) -> (Vec<f64>, f64) {
        let (classes, d) = (logits.shape()[1], logits.shape()[2]);
        let (mut losses, mut total) = (Vec::new(), 0.0);
        let weight = |class: usize| loss.weight.as_ref().map_or(1.0, |weight| weight.get(&[class]).unwrap());
        for (position, target) in targets.iter().enumerate() {
            if target == loss.formula.ignore_index {
                losses.push(0.0);
                continue;
            }
            let x = |class: usize| logits.get(&[position / d, class, position % d]).unwrap();
            let sum: f64 = (0..classes).map(|class| x(class).exp()).sum();
            let smoothing = loss.formula.label_smoothing;
            losses.push(
                (0..classes)
                    .map(|class| {
                        let hit = if class == target as usize { 1.0 - smoothing } else { 0.0 };
                        -(hit + smoothing / classes as f64) * weight(class) * (x(class).exp() / sum).ln()
                    })
                    .sum(),
            );
            total += weight(target as usize);
        }
        (losses, total)
    }

    #[test]
    fn every_option_is_the_documented_formula() {
        let logits = Tensor::from_fn([2, 3, 4], |i| ((7 * i[0] + 5 * i[1] + 3 * i[2]) % 11) as f64 * 0.3 - 1.0);
        let targets = Tensor::from([[0, 1, 2, -100], [2, 2, -100, 1]]);
        for weight in [None, Some(Tensor::from([0.5, 2.0, 1.0]))] {
            for label_smoothing in [0.0, 0.1, 1.0] {
                let formula = CrossEntropy { ignore_index: -100, label_smoothing };
                let loss = |reduction| CrossEntropyLoss { formula, weight: weight.clone(), reduction };
                let (expected, total) = naive(&loss(LossReduction::None), &logits, &targets);
                let sum: f64 = expected.iter().sum();
                // Some ten roundings of numbers below 10.
                let close = |x: f64, y: f64| assert!((x - y).abs() < 100.0 * f64::EPSILON, "{x} is not {y}");
                let losses = loss(LossReduction::None).of(&logits, &targets);
                assert_eq!(losses.shape(), targets.shape());
                losses.iter().zip(&expected).for_each(|(x, &y)| close(x, y));
                close(loss(LossReduction::Sum).of(&logits, &targets).item(), sum);
                close(loss(LossReduction::Mean).of(&logits, &targets).item(), sum / total);
                let tape = Tape::new();
                close(loss(LossReduction::Mean).of(&tape.var(&logits), &targets).item(), sum / total);
            }
        }
    }

    #[test]
    fn the_gradient_is_softmax_minus_target() {
        let tape = Tape::<f64>::new();
        let logits = tape.var(&Tensor::from([[0.0, 3.0f64.ln()], [5.0, 5.0]]));
        let loss = CrossEntropyLoss::new().reduction(LossReduction::Sum);
        let gradients = loss.of(&logits, &Tensor::from([0, -100])).backward();
        let expected = [0.25 - 1.0, 0.75, 0.0, 0.0];
        for (x, y) in gradients.of(logits).iter().zip(expected) {
            assert!((x - y).abs() < 4.0 * f64::EPSILON, "{x} is not {y}");
        }
    }

    #[test]
    fn extremes() {
        let loss = |logits: [f64; 2], target: i64| cross_entropy(&Tensor::from(logits), &Tensor::scalar(target)).item();
        assert_eq!(loss([1000.0, 0.0], 0), 0.0);
        assert_eq!(loss([1000.0, 0.0], 1), 1000.0);
        assert_eq!(loss([0.0, f64::NEG_INFINITY], 0), 0.0);
        assert_eq!(loss([0.0, f64::NEG_INFINITY], 1), f64::INFINITY);
        assert!(loss([0.0, 0.0], -100).is_nan(), "the mean of nothing");
        // An ignored sample counts for nothing, whatever it holds.
        let logits = Tensor::from([[f64::NAN, 1.0], [0.0, 0.0]]);
        assert_eq!(cross_entropy(&logits, &Tensor::from([-100, 1])).item(), 2.0f64.ln());
        assert!(cross_entropy(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0])).item().is_nan());
        let sum = CrossEntropyLoss::new().reduction(LossReduction::Sum);
        assert_eq!(sum.of(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0])).item(), 0.0);
        assert_eq!(sum.of(&Tensor::<f64>::zeros([1, 0]), &Tensor::from([-100])).item(), 0.0);
    }

    #[test]
    fn mistakes_are_pytorchs_sentences() {
        let logits = Tensor::<f64>::zeros([3, 4]);
        let error = |targets: &Tensor<i64>| try_cross_entropy(&logits, targets).unwrap_err().sentence();
        assert!(error(&Tensor::from([0, 4, 1])).starts_with("Target 4 is out of bounds."));
        assert!(error(&Tensor::from([0, 3, -1])).contains("(It is number 2 of the targets"));
        assert_eq!(error(&Tensor::zeros([2])), "Expected input batch_size (3) to match target batch_size (2).");
        assert!(error(&Tensor::zeros([3, 1])).starts_with("0D or 1D target tensor expected"));
        let loss = CrossEntropyLoss::new().weight(&Tensor::ones([3]));
        let error = loss.try_of(&logits, &Tensor::zeros([3])).unwrap_err();
        assert!(error.sentence().starts_with("weight tensor should be defined either for all 4 classes"), "{error}");
        assert!(error.to_string().contains(file!()), "{error}");
        let loss = CrossEntropyLoss::new().label_smoothing(f64::NAN);
        assert!(loss.try_of(&logits, &Tensor::zeros([3])).is_err());
        assert!(try_accuracy(&logits, &Tensor::zeros([2])).is_err());
        assert!(accuracy(&Tensor::<f64>::zeros([0, 4]), &Tensor::zeros([0])).is_nan());
    }
}
