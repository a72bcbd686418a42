//! Metrics of binary classification: each sample has a score, and belongs to the class or not. The curves have a point for each threshold of the
//! score.

use wengert_tensor::{Float, Number, Tensor};

use crate::{Error, Result};

/// A metric of scores for samples that belong to a class or do not. A larger score means that the class is more likely. scikit-learn:
/// `roc_curve`, `precision_recall_curve`.
///
/// All scores are stored, so that the curves are exact. Samples of equal score become one point of a curve.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::BinaryScores;
/// use wengert::prelude::*;
///
/// let mut scores = BinaryScores::new();
/// scores.update(&Tensor::from([0.1, 0.4, 0.35, 0.8]), &Tensor::from([0, 0, 1, 1]))?;
/// assert_eq!(scores.roc_auc(), 0.75);
/// assert_eq!(scores.roc().points[1], (0.0, 0.5)); // at a threshold of 0.8
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinaryScores {
    /// The score of each sample, and true if the sample belongs to the class.
    samples: Vec<(f64, bool)>,
}

/// The numbers of samples with at least the score `threshold`.
struct ThresholdCounts {
    threshold: f64,
    /// The number of these samples that belong to the class.
    true_positives: f64,
    /// The number of these samples that do not belong to the class.
    false_positives: f64,
}

/// A curve with a point for each threshold. Samples whose score is at least the threshold are predicted to belong to the class.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The coordinates of the points: false and true positive rate (ROC curve), or recall and precision.
    pub points: Vec<(f64, f64)>,
    /// The threshold of each point; infinite if no sample is predicted to belong to the class.
    pub thresholds: Vec<f64>,
}

impl BinaryScores {
    /// Returns a metric without samples.
    pub fn new() -> Self {
        BinaryScores::default()
    }

    /// Adds scores, such as probabilities or logits, and labels of the same shape: 1 for samples of the class, 0 for
    /// others. The labels are integers or, as [`BceLoss`](crate::BceLoss) takes them, floating-point numbers.
    ///
    /// # Errors
    ///
    /// If the shapes differ, a score is NaN, a label is neither 0 nor 1, or there is not enough memory.
    pub fn update<T: Float, L: Number>(&mut self, scores: &Tensor<T>, labels: &Tensor<L>) -> Result<()> {
        if scores.shape() != labels.shape() {
            let (scores, labels) = (scores.shape(), labels.shape());
            return Err(Error::Dataset(format!(
                "expected labels of the shape of the scores, {scores}, but got {labels}"
            )));
        }
        let (values, labels) = (scores.try_to_vec()?, labels.try_to_vec()?);
        if let Some(label) = labels.iter().find(|label| **label != L::ZERO && **label != L::ONE) {
            return Err(Error::Dataset(format!("expected labels of 0 or 1, but got {label}")));
        }
        if values.iter().any(|value| value.is_nan()) {
            return Err(Error::Dataset("a score is NaN: scores must be numbers, to sort them".to_owned()));
        }
        self.samples.extend(values.into_iter().map(T::to_f64).zip(labels.into_iter().map(|label| label == L::ONE)));
        Ok(())
    }

    /// Returns the ROC curve: the true positive rate against the false positive rate, from (0, 0) to (1, 1). The true positive rate is NaN if no
    /// label is 1. The false positive rate is NaN if no label is 0. Without any samples, the curve is a single point.
    pub fn roc(&self) -> Curve {
        let (counts, positives) = self.threshold_counts();
        let negatives = self.samples.len() as f64 - positives;
        let (mut points, mut thresholds) = (vec![(0.0 / negatives, 0.0 / positives)], vec![f64::INFINITY]);
        for ThresholdCounts { threshold, true_positives, false_positives } in counts {
            points.push((false_positives / negatives, true_positives / positives));
            thresholds.push(threshold);
        }
        Curve { points, thresholds }
    }

    /// Returns the area under [`roc`](Self::roc): the probability that a sample of the class has a larger score than
    /// another sample, where equal scores count as a half. NaN if all labels are equal. scikit-learn: `roc_auc_score`.
    pub fn roc_auc(&self) -> f64 {
        let points = self.roc().points;
        // The curve begins at (0, 0), so this sum of its coordinates is 0. It is NaN if one of the two rates is NaN.
        let zero_or_nan = points[0].0 + points[0].1;
        zero_or_nan + points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum::<f64>()
    }

    /// Returns the precision against the recall, from the largest threshold down, beginning with the point (0, 1). The
    /// recall is NaN without samples of the class. scikit-learn has the same points in the opposite order.
    pub fn precision_recall(&self) -> Curve {
        let (counts, positives) = self.threshold_counts();
        let (mut points, mut thresholds) = (vec![(0.0 / positives, 1.0)], vec![f64::INFINITY]);
        for ThresholdCounts { threshold, true_positives, false_positives } in counts {
            points.push((true_positives / positives, true_positives / (true_positives + false_positives)));
            thresholds.push(threshold);
        }
        Curve { points, thresholds }
    }

    /// Returns the average precision: the mean of the precisions at all thresholds, each weighted by the recall that its threshold adds.
    /// There is no interpolation. NaN without samples of the class. scikit-learn: `average_precision_score`.
    pub fn average_precision(&self) -> f64 {
        let points = self.precision_recall().points;
        points[0].0 + points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[1].1).sum::<f64>()
    }

    /// Returns the accuracy: the share of samples whose label equals the prediction, which is 1 for a score above `threshold` and 0 otherwise. The
    /// usual threshold is 0 for logits and 0.5 for probabilities. NaN without samples. torchmetrics: `BinaryAccuracy`; scikit-learn:
    /// `accuracy_score`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Fit;
    /// use wengert::nn::metrics::BinaryScores;
    /// use wengert::prelude::*;
    ///
    /// let mut scores = BinaryScores::new();
    /// scores.update(&Tensor::from([-1.5, 0.5, 2.0, 3.0]), &Tensor::from([0, 0, 1, 1]))?;
    /// assert_eq!(scores.accuracy(0.0), 0.75);
    /// // The metric of a training run whose targets are numbers.
    /// let fit: Fit<f32, Tensor, Tensor> = Fit::new(5).metric("accuracy", BinaryScores::new().by(|scores| scores.accuracy(0.0)));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    pub fn accuracy(&self, threshold: f64) -> f64 {
        let n_correct = self.samples.iter().filter(|(score, label)| (*score > threshold) == *label).count();
        n_correct as f64 / self.samples.len() as f64
    }

    /// Returns the [`roc_auc`](Self::roc_auc). [`by`](Self::by) makes a metric with another score as its value.
    pub fn value(&self) -> f64 {
        self.roc_auc()
    }

    /// Adds the samples of another metric.
    pub fn merge(&mut self, other: &Self) {
        self.samples.extend_from_slice(&other.samples);
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        self.samples.clear();
    }

    /// Returns the counts at each distinct score, from the largest down, and the number of samples of the class.
    fn threshold_counts(&self) -> (Vec<ThresholdCounts>, f64) {
        let mut samples = self.samples.clone();
        samples.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut counts, mut true_positives, mut false_positives) = (Vec::new(), 0.0, 0.0);
        for equal in samples.chunk_by(|a, b| a.0 == b.0) {
            let positives = equal.iter().filter(|(_, label)| *label).count();
            true_positives += positives as f64;
            false_positives += (equal.len() - positives) as f64;
            counts.push(ThresholdCounts { threshold: equal[0].0, true_positives, false_positives });
        }
        (counts, true_positives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores() -> BinaryScores {
        let mut scores = BinaryScores::new();
        let (x, labels) = ([0.1, 0.4, 0.35, 0.8, 0.4, 0.4, 0.9, 0.2, 0.4, 0.1], [0, 0, 1, 1, 1, 0, 1, 0, 1, 0]);
        scores.update(&Tensor::from(x), &Tensor::from(labels)).unwrap();
        scores
    }

    /// The expected values come from scikit-learn 1.9.1: `roc_curve(drop_intermediate=False)`, `roc_auc_score`,
    /// `precision_recall_curve`, `average_precision_score`.
    #[test]
    fn curves_and_areas_are_scikit_learns() {
        let scores = scores();
        let points = [(0.0, 0.0), (0.0, 0.2), (0.0, 0.4), (0.4, 0.8), (0.4, 1.0), (0.6, 1.0), (1.0, 1.0)];
        let thresholds = [f64::INFINITY, 0.9, 0.8, 0.4, 0.35, 0.2, 0.1];
        assert_eq!(scores.roc(), Curve { points: points.to_vec(), thresholds: thresholds.to_vec() });
        assert!((scores.roc_auc() - 0.84).abs() <= f64::EPSILON);
        let recall = [0.0, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0];
        let precision = [1.0, 1.0, 1.0, 2.0 / 3.0, 0.7142857142857143, 0.625, 0.5];
        assert_eq!(scores.precision_recall().points, Vec::from_iter(recall.into_iter().zip(precision)));
        assert!((scores.average_precision() - 0.8095238095238095).abs() <= f64::EPSILON);
    }

    #[test]
    fn ties_equal_labels_and_nan() {
        let of = |x: &[f64], labels: &[i64]| {
            let mut scores = BinaryScores::new();
            scores.update(&Tensor::from(x), &Tensor::from(labels)).map(|()| scores)
        };
        assert_eq!(of(&[0.5, 0.5], &[0, 1]).unwrap().roc_auc(), 0.5);
        assert_eq!(of(&[0.0, -0.0], &[0, 1]).unwrap().roc_auc(), 0.5);
        let ones = of(&[0.5, 0.7], &[1, 1]).unwrap();
        assert!(ones.roc_auc().is_nan() && ones.average_precision() == 1.0);
        let zeros = of(&[0.5, 0.7], &[0, 0]).unwrap();
        assert!(zeros.roc_auc().is_nan() && zeros.average_precision().is_nan());
        assert!(BinaryScores::new().roc_auc().is_nan() && BinaryScores::new().average_precision().is_nan());
        assert!(of(&[f64::NAN], &[0]).is_err() && of(&[0.5], &[2]).is_err() && of(&[0.5], &[0, 1]).is_err());
        let mut merged = of(&[0.1], &[0]).unwrap();
        merged.merge(&of(&[0.9], &[1]).unwrap());
        assert_eq!(merged.value(), 1.0);
        merged.reset();
        assert_eq!(merged, BinaryScores::new());
    }
}
