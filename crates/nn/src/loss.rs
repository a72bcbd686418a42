//! Losses: cross-entropy and accuracy of classes, and those of the operations, such as [`MseLoss`]. All are of tensors and
//! recorded variables alike.
//!
//! The formulas are with the operations: [`ClassLosses::try_cross_entropy`]. They are those of PyTorch's `CrossEntropyLoss`:
//! <https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>.

use wengert_macros::twins;
pub use wengert_tensor::ops::{
    BceLoss, BceWithLogitsLoss, HingeEmbeddingLoss, HuberLoss, KlDivLoss, L1Loss, LossReduction, MseLoss,
    PoissonNllLoss, SmoothL1Loss, SoftMarginLoss,
};
use wengert_tensor::ops::{ClassLosses, ClassOptions, Classes, IntoArray, Reductions, TensorLike};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

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
#[derive(Clone, Debug)]
pub struct CrossEntropyLoss<T: Float = f32> {
    /// A weight for each class, `[c]`.
    pub weight: Option<Tensor<T>>,
    /// Samples with this target are ignored.
    pub ignore_index: i64,
    /// Whether the losses of the samples are averaged, summed or returned as they are.
    pub reduction: LossReduction,
    /// The share of the target that is spread evenly over all classes, from 0 to 1.
    pub label_smoothing: f64,
}

impl<T: Float> Default for CrossEntropyLoss<T> {
    /// No weights, -100 ignored, the mean, no smoothing.
    fn default() -> Self {
        CrossEntropyLoss { weight: None, ignore_index: -100, reduction: LossReduction::Mean, label_smoothing: 0.0 }
    }
}

#[twins]
impl<T: Float> CrossEntropyLoss<T> {
    /// The default options: no weights, -100 ignored, the mean, no smoothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a weight for each class, `[c]`.
    pub fn weight(self, weight: &Tensor<T>) -> Self {
        CrossEntropyLoss { weight: Some(weight.clone()), ..self }
    }

    /// With samples ignored that have this target.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        CrossEntropyLoss { ignore_index, ..self }
    }

    /// With the losses of the samples averaged, summed or returned as they are.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        CrossEntropyLoss { reduction, ..self }
    }

    /// With a share of the target, from 0 to 1, spread evenly over all classes.
    pub fn label_smoothing(self, label_smoothing: f64) -> Self {
        CrossEntropyLoss { label_smoothing, ..self }
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
        let options = ClassOptions {
            weight: weight.as_ref(),
            ignore_index: self.ignore_index,
            label_smoothing: self.label_smoothing,
            reduction: self.reduction,
        };
        logits.try_cross_entropy(Classes::Indices(targets), options)
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
    let guesses = logits.try_argmax(axis as isize)?;
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

    use super::*;

    /// Σ of e^x in order: the formula of the documentation, one sample at a time, without any trick. `[n, c, d]` only.
    fn naive(loss: &CrossEntropyLoss<f64>, logits: &Tensor<f64>, targets: &Tensor<i64>) -> (Vec<f64>, f64) {
        let (classes, d) = (logits.shape()[1], logits.shape()[2]);
        let (mut losses, mut total) = (Vec::new(), 0.0);
        let weight = |class: usize| loss.weight.as_ref().map_or(1.0, |weight| weight.get(&[class]).unwrap());
        for (position, target) in targets.iter().enumerate() {
            if target == loss.ignore_index {
                losses.push(0.0);
                continue;
            }
            let x = |class: usize| logits.get(&[position / d, class, position % d]).unwrap();
            let sum: f64 = (0..classes).map(|class| x(class).exp()).sum();
            let smoothing = loss.label_smoothing;
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
                let loss = |reduction| CrossEntropyLoss {
                    weight: weight.clone(),
                    label_smoothing,
                    reduction,
                    ..Default::default()
                };
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
        let loss = CrossEntropyLoss { reduction: LossReduction::Sum, ..Default::default() };
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
        let sum = CrossEntropyLoss { reduction: LossReduction::Sum, ..Default::default() };
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
        let loss = CrossEntropyLoss { weight: Some(Tensor::ones([3])), ..Default::default() };
        let error = loss.try_of(&logits, &Tensor::zeros([3])).unwrap_err();
        assert!(error.sentence().starts_with("weight tensor should be defined either for all 4 classes"), "{error}");
        assert!(error.to_string().contains("loss.rs"), "{error}");
        let loss = CrossEntropyLoss { label_smoothing: f64::NAN, ..Default::default() };
        assert!(loss.try_of(&logits, &Tensor::zeros([3])).is_err());
        assert!(try_accuracy(&logits, &Tensor::zeros([2])).is_err());
        assert!(accuracy(&Tensor::<f64>::zeros([0, 4]), &Tensor::zeros([0])).is_nan());
    }
}
