//! Connectionist temporal classification (Graves et al. 2006): the loss of a sequence of labels whose places in a longer sequence are
//! not known.

use wengert_macros::twins;
use wengert_tensor::ops::{
    Arithmetic as _, Comparison as _, Indexing as _, IntoArray, LossReduction, Masking as _, PadMode, Padding as _,
    Reductions as _, Softmax as _, TensorLike, Views as _, try_stack, try_where_,
};
use wengert_tensor::{Float, Scalar as _, Site, Tensor};

use crate::loss::checks::reduced;
use crate::loss::ctc_paths::{IMPOSSIBLE, Paths};

// What errors call the operations.
const CTC_LOSS: &str = "ctc_loss";

/// Minus the logarithm of the probability that a sequence of classes, with repetitions and blanks taken out, is the target. PyTorch:
/// `nn.CTCLoss`; the formula is that of Graves et al. 2006, equations 6 to 8.
///
/// The gradient is that with respect to the logarithms, whatever made them. PyTorch's is the gradient with respect to what
/// `log_softmax` was given; behind a `log_softmax` the two are one.
///
/// ```
/// use wengert_nn::ctc_loss;
/// use wengert_tensor::prelude::*;
///
/// // Two steps of "blank", "a": the paths "a a", "a blank" and "blank a" mean "a".
/// let logits = Tensor::<f64>::zeros([2, 1, 2]);
/// let loss = ctc_loss(&logits.log_softmax(2), &Tensor::from([[1]]), &[2], &[1]);
/// assert!((loss.item() + 0.75f64.ln()).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CtcLoss {
    blank: usize,
    zero_infinity: bool,
    reduction: LossReduction,
}

#[twins]
impl CtcLoss {
    /// Class 0 is the blank, losses may be infinite, and the mean is of the losses divided by the lengths of their targets.
    pub fn new() -> Self {
        Self::default()
    }

    /// The class that stands for no label; 0 by default.
    pub fn blank(self, blank: usize) -> Self {
        Self { blank, ..self }
    }

    /// Whether targets that are longer than their sequence allows lose nothing instead of infinitely much.
    pub fn zero_infinity(self, zero_infinity: bool) -> Self {
        Self { zero_infinity, ..self }
    }

    /// What becomes of the losses of the samples; the mean divides each by the length of its target (at least 1) first.
    pub fn reduction(self, reduction: LossReduction) -> Self {
        Self { reduction, ..self }
    }

    /// The loss of logarithms of probabilities `[t, n, c]` against `targets` `[n, s]`, whose rows count up to `target_lengths`, after
    /// the first `input_lengths` steps.
    ///
    /// # Errors
    ///
    /// Where the shapes do not fit, a length is larger than its dimension, or a target is the blank or no class.
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
        let (samples, states) = (target_lengths.len(), paths.states);
        let penalties = |values: Vec<f64>, width: usize| {
            let values = values.into_iter().map(<<P::Array as TensorLike>::Elem>::from_f64).collect();
            log_probs.constant(&Tensor::from_vec(values, [samples, width]))
        };
        let index = paths.classes.try_unsqueeze(0)?.try_expand([shape[0], samples, states])?;
        let emitted = log_probs.try_gather(2, &index)?;
        let (start, skip) = (penalties(paths.start, states), penalties(paths.skip, states));
        let mut alpha = penalties(paths.before, states);
        for step in 0..shape[0] {
            let ways = match step {
                0 => start.clone(),
                _ => {
                    let padded = alpha.try_pad(&[2, 0], PadMode::Constant(IMPOSSIBLE))?;
                    let skipped = padded.try_narrow(1, 0, states)?.try_add(&skip)?;
                    let moved = padded.try_narrow(1, 1, states)?;
                    try_stack(&[alpha.clone(), moved, skipped], 0)?.try_logsumexp(0)?
                }
            };
            let next = ways.try_add(&emitted.try_select(0, step)?)?;
            let over: Vec<bool> = input_lengths.iter().map(|&length| step >= length).collect();
            let over = log_probs.mask(&Tensor::from_vec(over, [samples, 1]));
            alpha = try_where_(&over, &alpha, &next)?;
        }
        let ends = alpha.try_gather(1, &paths.ends)?.try_add(&penalties(paths.end, 2))?;
        let losses = ends.try_logsumexp(1)?.try_neg()?;
        let infinite = losses.try_gt(-0.5 * IMPOSSIBLE)?;
        let losses = losses.try_masked_fill(&infinite, if self.zero_infinity { 0.0 } else { f64::INFINITY })?;
        if self.reduction != LossReduction::Mean {
            return reduced(losses, self.reduction);
        }
        let lengths: Vec<f64> = target_lengths.iter().map(|&length| length.max(1) as f64).collect();
        losses.try_div(&penalties(lengths, 1).try_squeeze(1)?)?.try_mean(..)
    }
}

/// [`CtcLoss::of`] with the default options. PyTorch: `nn.functional.ctc_loss`.
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

    /// The sum over all paths of `steps` classes that mean `target`, by trying each.
    fn naive(probabilities: &Tensor<f64>, steps: usize, target: &[i64]) -> f64 {
        let classes = probabilities.shape()[1];
        let mut total = 0.0;
        for code in 0..classes.pow(steps as u32) {
            let path: Vec<usize> = (0..steps).map(|step| code / classes.pow(step as u32) % classes).collect();
            let mut meaning: Vec<i64> = path.iter().map(|&class| class as i64).collect();
            meaning.dedup();
            meaning.retain(|&class| class != 0);
            if meaning == target {
                total += path.iter().enumerate().map(|(t, &c)| probabilities.get(&[t, c]).unwrap()).product::<f64>();
            }
        }
        total
    }

    #[test]
    fn every_path_counts_once() {
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
    fn a_target_that_does_not_fit_is_infinite_or_nothing() {
        let log_probs = Tensor::<f64>::zeros([2, 1, 3]).try_log_softmax(2).unwrap();
        let (targets, zero) = (Tensor::from([[1, 1]]), CtcLoss::new().zero_infinity(true));
        assert_eq!(ctc_loss(&log_probs, &targets, &[2], &[2]).item(), f64::INFINITY);
        assert_eq!(zero.of(&log_probs, &targets, &[2], &[2]).item(), 0.0);
        assert!(CtcLoss::new().of(&Tensor::<f64>::zeros([2, 0, 3]), &Tensor::zeros([0, 1]), &[], &[]).item().is_nan());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let log_probs = Tensor::<f64>::zeros([2, 1, 3]);
        let refused = |targets: [[i64; 2]; 1], input: usize, target: usize, blank: usize| {
            let loss = CtcLoss::new().blank(blank);
            loss.try_of(&log_probs, &Tensor::from(targets), &[input], &[target]).unwrap_err().sentence()
        };
        assert_eq!(refused([[1, 0]], 2, 2, 0), "ctc_loss: target 0 is the blank 0, or none of 3 classes");
        assert_eq!(refused([[1, 2]], 3, 1, 0), "ctc_loss: an input has length 3, of 2 steps");
        assert_eq!(refused([[1, 2]], 2, 3, 0), "ctc_loss: a target has length 3, of 2 places");
        assert_eq!(refused([[1, 2]], 2, 1, 3), "ctc_loss: the blank is class 3 of 3");
        let targets = Tensor::from([[1], [2]]);
        let error = try_ctc_loss(&log_probs, &targets, &[2], &[1]).unwrap_err();
        assert_eq!(error.sentence(), "ctc_loss: 1 samples have 2 targets, 1 input lengths and 1 target lengths");
    }
}
