//! Metrics of the predicted probabilities of classes.

use wengert_tensor::{Float, Tensor};

use super::{argmax, mean, samples_as_rows};
use crate::Result;

/// The perplexity: e to the mean cross-entropy. A model that chooses among `k` equally likely tokens has the perplexity
/// `k`. torchmetrics: `Perplexity`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::Perplexity;
/// use wengert::prelude::*;
///
/// let mut perplexity = Perplexity::new();
/// perplexity.update(&Tensor::<f64>::zeros([2, 4, 5]), &Tensor::zeros([2, 5]))?; // each token has 4 equally likely classes
/// assert!((perplexity.value() - 4.0).abs() < 1e-12);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Perplexity {
    sum: f64,
    count: u64,
}

impl Perplexity {
    /// Returns a metric without tokens.
    pub fn new() -> Self {
        Perplexity::default()
    }

    /// Adds logits `[n, c, …]` and tokens `[n, …]`. Logits `[c]` with a token `[]` are one sample. Tokens of -100 are ignored.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a target is not a class, or there is not enough memory.
    pub fn update<T: Float>(&mut self, logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<()> {
        let (classes, rows, targets) = samples_as_rows(logits, targets)?;
        for (row, &target) in rows.chunks(classes.max(1)).zip(&targets) {
            self.sum -= log_probability(row, target);
        }
        self.count += targets.len() as u64;
        Ok(())
    }

    /// Returns the perplexity, 1 or more. It is NaN without tokens or if a logit of a token was NaN or ∞. It is infinite if a token had the
    /// probability 0.
    pub fn value(&self) -> f64 {
        libm::exp(mean(self.sum, self.count))
    }

    /// Adds the tokens of another perplexity.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Removes all tokens.
    pub fn reset(&mut self) {
        *self = Perplexity::new();
    }
}

/// The expected calibration error: the distance between confidence and accuracy (C. Guo et al., "On calibration of
/// modern neural networks", 2017). torchmetrics: `CalibrationError`.
///
/// The confidence of a sample is the probability of its predicted class. Samples are sorted by their confidence into bins of equal width.
/// The value is the mean of |accuracy - confidence| over the bins, weighted by the number of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationError {
    bins: Vec<BinSums>,
}

/// The sums over the samples of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct BinSums {
    n_samples: u64,
    confidence: f64,
    n_correct: u64,
}

/// A bin of a [`CalibrationError`], which is a point of a reliability diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationBin {
    /// The number of samples.
    pub count: u64,
    /// The mean confidence (probability of the predicted class); NaN without samples.
    pub confidence: f64,
    /// The share of the samples that are predicted correctly; NaN without samples.
    pub accuracy: f64,
}

impl CalibrationError {
    /// Returns a metric with `bins` bins. Guo et al. use 15.
    ///
    /// # Panics
    ///
    /// If `bins` is 0.
    #[track_caller]
    pub fn new(bins: usize) -> Self {
        assert!(bins > 0, "CalibrationError: expected at least 1 bin, but got 0");
        CalibrationError { bins: vec![BinSums::default(); bins] }
    }

    /// Adds logits `[n, c, …]` and classes `[n, …]`. Logits `[c]` with a class `[]` are one sample. Samples with the class -100 are
    /// ignored. A confidence on the border of two bins belongs to the lower one. A confidence of NaN belongs to the lowest bin and makes
    /// the value NaN.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a target is not a class, or there is not enough memory.
    pub fn update<T: Float>(&mut self, logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<()> {
        let (classes, rows, targets) = samples_as_rows(logits, targets)?;
        let count = self.bins.len();
        for (row, target) in rows.chunks(classes.max(1)).zip(targets) {
            let guess = argmax(row);
            let confidence = libm::exp(log_probability(row, guess));
            let bin = ((confidence * count as f64).ceil() as usize).clamp(1, count) - 1;
            let sums = &mut self.bins[bin];
            sums.n_samples += 1;
            sums.confidence += confidence;
            sums.n_correct += u64::from(guess == target);
        }
        Ok(())
    }

    /// Returns the bins, from confidence 0 to 1.
    pub fn bins(&self) -> Vec<CalibrationBin> {
        let bin = |sums: &BinSums| CalibrationBin {
            count: sums.n_samples,
            confidence: mean(sums.confidence, sums.n_samples),
            accuracy: mean(sums.n_correct as f64, sums.n_samples),
        };
        self.bins.iter().map(bin).collect()
    }

    /// Returns the expected calibration error, from 0 to 1; NaN without samples.
    pub fn value(&self) -> f64 {
        let total = self.bins.iter().map(|sums| sums.n_samples).sum();
        // In a bin with the sum `confidence`, uses n_samples · |n_correct / n_samples - confidence / n_samples| = |n_correct - confidence|.
        mean(self.bins.iter().map(|sums| (sums.n_correct as f64 - sums.confidence).abs()).sum(), total)
    }

    /// Adds the samples of another calibration error.
    ///
    /// # Panics
    ///
    /// If the numbers of bins differ.
    #[track_caller]
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.bins.len(), other.bins.len(), "the calibration errors have different numbers of bins");
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            bin.n_samples += more.n_samples;
            bin.confidence += more.confidence;
            bin.n_correct += more.n_correct;
        }
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        self.bins.fill(BinSums::default());
    }
}

/// Returns the logarithm of the softmax of `row` at `class`.
pub(super) fn log_probability<T: Float>(row: &[T], class: usize) -> f64 {
    let most = row.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| libm::exp(x.to_f64() - most)).sum();
    row[class].to_f64() - most - libm::log(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perplexity_is_e_to_the_cross_entropy() {
        let logits = Tensor::from([[1.0, 2.0, -1.0], [0.5, 0.5, 3.0], [9.0, 9.0, 9.0]]);
        let mut perplexity = Perplexity::new();
        perplexity.update(&logits, &Tensor::from([1, 0, -100])).unwrap();
        use wengert_tensor::ops::Views;
        let loss: f64 = crate::cross_entropy(&logits.narrow(0, 0, 2), &Tensor::from([1, 0])).item();
        assert!((perplexity.value() / loss.exp() - 1.0).abs() < 1e-14);
        let mut other = Perplexity::new();
        assert!(other.value().is_nan());
        other.update(&Tensor::from([[0.0, f64::NEG_INFINITY]]), &Tensor::from([1])).unwrap();
        assert_eq!(other.value(), f64::INFINITY);
        perplexity.merge(&other);
        assert_eq!(perplexity.value(), f64::INFINITY);
        perplexity.reset();
        assert_eq!(perplexity, Perplexity::new());
    }

    /// The six samples have the confidences 0.55, 0.65, 0.95, 0.78, 0.3 and 0.62, in five bins. The first, third, fourth and sixth samples are
    /// correct. Each bin contributes |number of correct samples - sum of confidences|: (|0 - 0.3| + |1 - 0.55| + |2 - 2.05| + |1 - 0.95|) / 6.
    #[test]
    fn the_calibration_error_follows_the_formula() {
        let probabilities = [
            [0.55, 0.15, 0.15, 0.15],
            [0.65, 0.35, 0.0, 0.0],
            [0.01, 0.95, 0.02, 0.02],
            [0.1, 0.1, 0.78, 0.02],
            [0.3, 0.25, 0.25, 0.2],
            [0.62, 0.38, 0.0, 0.0],
        ];
        let logits = Tensor::from(probabilities.map(|row| row.map(f64::ln)));
        let mut error = CalibrationError::new(5);
        error.update(&logits, &Tensor::from([0, 1, 1, 2, 1, 0])).unwrap();
        assert!((error.value() - 0.85 / 6.0).abs() < 1e-12, "{}", error.value());
        let bins = error.bins();
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [0, 1, 1, 3, 1]);
        assert!((bins[3].confidence - 2.05 / 3.0).abs() < 1e-12 && bins[3].accuracy == 2.0 / 3.0);
        assert!(bins[0].accuracy.is_nan() && CalibrationError::new(5).value().is_nan());
        let mut double = error.clone();
        double.merge(&error);
        assert!((double.value() - error.value()).abs() < 1e-12);
        double.reset();
        assert_eq!(double, CalibrationError::new(5));
        // A confidence of NaN makes the value NaN.
        error.update(&Tensor::from([[f64::NAN, 0.0]]), &Tensor::from([0])).unwrap();
        assert!(error.value().is_nan());
    }
}
