//! Connectionist temporal classification (Graves et al. 2006), a loss for targets that are sequences of labels. The position of each label in
//! the longer input sequence is not known.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, Comparison as _, Indexing as _, IntoArray, LossReduction, Masking as _, PadMode, Padding as _,
    Reductions as _, Softmax as _, TensorLike, Views as _, try_stack, try_where_,
};
use wengert_tensor::{Float, Scalar as _, Site, Tensor, check_list};

use crate::loss::checks::reduce;
use crate::loss::ctc_paths::{LOG_OF_ZERO, Paths};

/// The name of this loss in errors.
const CTC_LOSS: &str = "ctc_loss";

/// The approximate memory that a tape needs to record one step, in bytes: twenty nodes with their lines of code and their views. An input with more
/// steps than memory can record is an error.
const STEP_BYTES: usize = 1024;

/// The loss of connectionist temporal classification. It is minus the logarithm of the probability that the classes of the input steps become
/// the target when first repetitions and then blanks are removed. The formula is equations 6 to 8 of Graves et al. 2006. PyTorch: `nn.CTCLoss`.
///
/// The gradient of this loss is with respect to the log-probabilities. PyTorch's gradient is already with respect to the input of `log_softmax`. With
/// the derivative of `log_softmax`, the two gradients are equal.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::ctc_loss;
/// use wengert::prelude::*;
///
/// // Two steps with the classes blank and "a". The paths "a a", "a blank" and "blank a" give the target "a".
/// let logits = Tensor::<f64>::zeros([2, 1, 2]);
/// let loss = ctc_loss(&logits.log_softmax(2), &Tensor::from([[1]]), &[2], &[1]);
/// assert!((loss.item() + 0.75f64.ln()).abs() < 1e-12);
/// ```
#[doc(alias = "CTCLoss")]
#[derive(Clone, Copy, Debug, Default)]
pub struct CtcLoss {
    blank: usize,
    zero_infinity: bool,
    reduction: LossReduction,
}

#[twins]
impl CtcLoss {
    /// Returns the loss with the default options: class 0 is the blank, losses may be infinite, and the reduction is the mean.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the blank, the class that stands for no label; 0 by default.
    #[must_use]
    pub fn blank(self, blank: usize) -> Self {
        Self { blank, ..self }
    }

    /// Sets whether infinite losses are replaced by 0; false by default. The loss of a sample is infinite if its target has the probability
    /// 0, for example because it is too long for its input.
    #[must_use]
    pub fn zero_infinity(self, zero_infinity: bool) -> Self {
        Self { zero_infinity, ..self }
    }

    /// Chooses the reduction of the losses of the samples: mean (the default), sum or none. For the mean, the loss of each sample is first
    /// divided by the length of the sample's target, or by 1 if the target is empty.
    #[must_use]
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }

    /// Returns the loss of log-probabilities `[t, n, c]` (t steps, n samples, c classes) for `targets` `[n, s]`. Sample `i` uses the first
    /// `input_lengths[i]` steps, and the first `target_lengths[i]` labels of row `i` of `targets`.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or a length is larger than its dimension. Also if the blank is not a class, a label of
    /// a target is the blank or not a class, or there is not enough memory.
    pub fn try_of<P: IntoArray<Array: TensorLike<Elem: Float>>>(
        &self,
        log_probs: P,
        targets: &Tensor<i64>,
        input_lengths: &[usize],
        target_lengths: &[usize],
    ) -> Result<P::Array, <P::Array as TensorLike>::Error> {
        let (log_probs, at) = (log_probs.array(), Site::here(CTC_LOSS));
        let shape = log_probs.shape();
        let paths = Paths::new(&shape, targets, input_lengths, target_lengths, self.blank, at)?;
        let (samples, states) = (target_lengths.len(), paths.n_states);
        let penalties = |values: Vec<f64>, width: usize| {
            let values = values.into_iter().map(<<P::Array as TensorLike>::Elem>::from_f64).collect();
            log_probs.try_constant(&Tensor::from_vec(values, [samples, width]))
        };
        check_list::<[u8; STEP_BYTES]>(shape[0], at)?;
        let index = paths.classes.try_unsqueeze(0)?.try_expand([shape[0], samples, states])?;
        let emitted = log_probs.try_gather(2, &index)?;
        let (start, skip) = (penalties(paths.start_penalties, states)?, penalties(paths.skip_penalties, states)?);
        let mut alpha = penalties(paths.initial_log_probs, states)?;
        for step in 0..shape[0] {
            let arrivals = match step {
                0 => start.clone(),
                _ => {
                    let padded = alpha.try_pad(&[2, 0], PadMode::Constant(LOG_OF_ZERO))?;
                    let skipped = padded.try_narrow(1, 0, states)?.try_add(&skip)?;
                    let moved = padded.try_narrow(1, 1, states)?;
                    try_stack(&[alpha.clone(), moved, skipped], 0)?.try_logsumexp(0)?
                }
            };
            let next = arrivals.try_add(&emitted.try_select(0, step)?)?;
            let ended: Vec<bool> = input_lengths.iter().map(|&length| step >= length).collect();
            let ended = log_probs.constant_mask(&Tensor::from_vec(ended, [samples, 1]), at)?;
            alpha = try_where_(&ended, &alpha, &next)?;
        }
        let ends = alpha.try_gather(1, &paths.end_states)?.try_add(&penalties(paths.end_penalties, 2)?)?;
        let losses = ends.try_logsumexp(1)?.try_neg()?;
        let infinite = losses.try_gt(-0.5 * LOG_OF_ZERO)?;
        let losses = losses.try_masked_fill(&infinite, if self.zero_infinity { 0.0 } else { f64::INFINITY })?;
        if self.reduction != LossReduction::Mean {
            return reduce(losses, self.reduction);
        }
        let lengths: Vec<f64> = target_lengths.iter().map(|&length| length.max(1) as f64).collect();
        losses.try_div(&penalties(lengths, 1)?.try_squeeze(1)?)?.try_mean(..)
    }
}

/// Returns the loss that [`CtcLoss::of`] computes with the default options. PyTorch: `nn.functional.ctc_loss`.
///
/// # Errors
///
/// As for [`CtcLoss::of`].
#[twins]
pub fn try_ctc_loss<P: IntoArray<Array: TensorLike<Elem: Float>>>(
    log_probs: P,
    targets: &Tensor<i64>,
    input_lengths: &[usize],
    target_lengths: &[usize],
) -> Result<P::Array, <P::Array as TensorLike>::Error> {
    CtcLoss::new().try_of(log_probs, targets, input_lengths, target_lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probability of `target`, computed as a sum over all paths (sequences of one class per step). `probabilities` has the shape
    /// `[steps, classes]`.
    fn naive(probabilities: &Tensor<f64>, steps: usize, target: &[i64]) -> f64 {
        let classes = probabilities.shape()[1];
        let mut total = 0.0;
        for code in 0..classes.pow(steps as u32) {
            let path: Vec<usize> = (0..steps).map(|step| code / classes.pow(step as u32) % classes).collect();
            let mut labels: Vec<i64> = path.iter().map(|&class| class as i64).collect();
            labels.dedup();
            labels.retain(|&class| class != 0);
            if labels == target {
                total += path.iter().enumerate().map(|(t, &c)| probabilities.get(&[t, c]).unwrap()).product::<f64>();
            }
        }
        total
    }

    #[test]
    fn the_loss_is_the_sum_over_all_paths() {
        let logits = Tensor::from_fn([5, 3, 3], |i| ((7 * i[0] + 5 * i[1] + 3 * i[2]) % 11) as f64 * 0.3);
        let log_probs = logits.try_log_softmax(2).unwrap();
        let targets = Tensor::from([[1, 2, 1], [2, 2, 0], [0, 0, 0]]);
        let (inputs, lengths) = ([5, 4, 0], [3, 2, 0]);
        let losses = CtcLoss::new().reduction(LossReduction::None).of(&log_probs, &targets, &inputs, &lengths).to_vec();
        for sample in 0..3 {
            let probabilities = Tensor::from_fn([5, 3], |i| log_probs.get(&[i[0], sample, i[1]]).unwrap().exp());
            let target = &targets.to_vec()[3 * sample..][..lengths[sample]];
            let expected = -naive(&probabilities, inputs[sample], target).ln();
            assert!((losses[sample] - expected).abs() < 1e-12, "{sample}: {} is not {expected}", losses[sample]);
        }
    }

    #[test]
    fn a_target_that_is_too_long_has_an_infinite_loss_or_0() {
        let log_probs = Tensor::<f64>::zeros([2, 1, 3]).try_log_softmax(2).unwrap();
        let (targets, zero) = (Tensor::from([[1, 1]]), CtcLoss::new().zero_infinity(true));
        assert_eq!(ctc_loss(&log_probs, &targets, &[2], &[2]).item(), f64::INFINITY);
        assert_eq!(zero.of(&log_probs, &targets, &[2], &[2]).item(), 0.0);
        assert!(CtcLoss::new().of(&Tensor::<f64>::zeros([2, 0, 3]), &Tensor::zeros([0, 1]), &[], &[]).item().is_nan());
    }

    #[test]
    fn wrong_lengths_and_classes_are_errors() {
        let log_probs = Tensor::<f64>::zeros([2, 1, 3]);
        let sentence = |targets: [[i64; 2]; 1], input: usize, target: usize, blank: usize| {
            let loss = CtcLoss::new().blank(blank);
            loss.try_of(&log_probs, &Tensor::from(targets), &[input], &[target]).unwrap_err().sentence()
        };
        assert_eq!(sentence([[1, 0]], 2, 2, 0), "ctc_loss: target 0 is the blank 0 or not one of the 3 classes");
        assert_eq!(sentence([[1, 2]], 3, 1, 0), "ctc_loss: an input length is 3, but there are 2 steps");
        assert_eq!(sentence([[1, 2]], 2, 3, 0), "ctc_loss: a target length is 3, but targets have 2 places");
        assert_eq!(sentence([[1, 2]], 2, 1, 3), "ctc_loss: the blank is class 3, but there are 3 classes");
        let targets = Tensor::from([[1], [2]]);
        let error = try_ctc_loss(&log_probs, &targets, &[2], &[1]).unwrap_err();
        assert_eq!(
            error.sentence(),
            "ctc_loss: expected a target, an input length and a target length for each of 1 samples, but got 2, 1 and 1"
        );
    }

    #[test]
    fn more_places_than_memory_holds_are_an_error() {
        let targets = Tensor::scalar(1i64).expand([1, 1usize << 50]);
        assert!(try_ctc_loss(&Tensor::<f64>::zeros([2, 1, 3]), &targets, &[2], &[1]).is_err());
    }
}
