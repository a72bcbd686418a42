//! Metrics of predicted classes: accuracy and the confusion matrix.

use wengert_tensor::{Float, Tensor};

use super::{argmax, mean, samples_as_rows};
use crate::{Error, Result};

/// The accuracy: the share of samples, from 0 to 1, whose class is among the `k` largest logits. scikit-learn:
/// `accuracy_score`, `top_k_accuracy_score`.
///
/// If logits are equal, the smaller class index ranks first. NaN is larger than every number. A sample is wrong if the logit of its target
/// is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    k: usize,
    n_correct: u64,
    n_samples: u64,
}

impl Accuracy {
    /// Returns a metric without samples that counts a sample as correct if its class has the largest logit.
    pub fn new() -> Self {
        Accuracy::top_k(1)
    }

    /// Returns a metric without samples that counts a sample as correct if its class has one of the `k` largest logits. With `k` = 0 the
    /// accuracy is 0.
    pub fn top_k(k: usize) -> Self {
        Accuracy { k, n_correct: 0, n_samples: 0 }
    }

    /// Adds logits `[n, c, …]` and classes `[n, …]`. Logits `[c]` with a class `[]` are one sample. Samples with the class -100 are
    /// ignored.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a target is not a class, or there is not enough memory.
    pub fn update<T: Float>(&mut self, logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<()> {
        let (classes, rows, targets) = samples_as_rows(logits, targets)?;
        for (row, &target) in rows.chunks(classes.max(1)).zip(&targets) {
            let target_logit = row[target];
            let before = |(class, &value): (usize, &T)| {
                value.is_nan() || value > target_logit || value == target_logit && class < target
            };
            let rank =
                row.iter().enumerate().filter(|&(class, value)| class != target && before((class, value))).count();
            self.n_correct += u64::from(rank < self.k && !target_logit.is_nan());
        }
        self.n_samples += targets.len() as u64;
        Ok(())
    }

    /// Returns the accuracy; NaN without samples.
    pub fn value(&self) -> f64 {
        mean(self.n_correct as f64, self.n_samples)
    }

    /// Adds the samples of another accuracy with the same `k`.
    ///
    /// # Panics
    ///
    /// If the values of `k` differ.
    #[track_caller]
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.k, other.k, "the accuracies have different values of k");
        self.n_correct += other.n_correct;
        self.n_samples += other.n_samples;
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        *self = Accuracy::top_k(self.k);
    }
}

impl Default for Accuracy {
    fn default() -> Self {
        Accuracy::new()
    }
}

/// The way in which a score is averaged over the classes. scikit-learn: `average`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The mean over the classes that occur, as targets or as predictions.
    Macro,
    /// The score computed from the counts of all classes together. If each sample has one class, this score equals the accuracy.
    Micro,
    /// The mean over the classes, weighted by the number of samples of each class.
    Weighted,
}

/// The scores of one class. A division by 0 samples gives 0, as with scikit-learn's `zero_division=0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScores {
    /// The share of the predictions of this class that are correct.
    pub precision: f64,
    /// The share of the samples of this class that are predicted correctly.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
    /// The number of samples of this class.
    pub support: u64,
}

/// The confusion matrix: the number of samples for each pair of target and prediction. scikit-learn:
/// `confusion_matrix`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfusionMatrix {
    classes: usize,
    /// The counts of all pairs, row by row: rows are targets, columns are predictions.
    counts: Vec<u64>,
}

impl ConfusionMatrix {
    /// Returns an empty matrix of `classes` classes.
    pub fn new(classes: usize) -> Self {
        ConfusionMatrix { classes, counts: vec![0; classes * classes] }
    }

    /// Adds logits `[n, c, …]` and classes `[n, …]`. Logits `[c]` with a class `[]` are one sample. The prediction is the class with the
    /// largest logit. If several logits are equal, the first class is the prediction. NaN is larger than every number. Samples with the
    /// class -100 are ignored.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, or the number of logits is not the number of classes. Also if a target is not a class,
    /// or there is not enough memory.
    pub fn update<T: Float>(&mut self, logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<()> {
        let (classes, rows, targets) = samples_as_rows(logits, targets)?;
        if classes != self.classes {
            let expected = self.classes;
            return Err(Error::Dataset(format!("expected logits of {expected} classes, but got {classes}")));
        }
        for (row, target) in rows.chunks(classes.max(1)).zip(targets) {
            self.counts[target * classes + argmax(row)] += 1;
        }
        Ok(())
    }

    /// Returns the counts, `[classes, classes]`: rows are targets, columns are predictions.
    pub fn counts(&self) -> Tensor<i64> {
        Tensor::from_fn([self.classes; 2], |i| self.count(i[0], i[1]) as i64)
    }

    /// Returns the share of the samples that are predicted correctly; NaN without samples. A prediction from a NaN logit can be correct here. It
    /// is always wrong in [`Accuracy`].
    pub fn accuracy(&self) -> f64 {
        let n_correct: u64 = (0..self.classes).map(|class| self.count(class, class)).sum();
        mean(n_correct as f64, self.counts.iter().sum())
    }

    /// Returns the scores of each class.
    pub fn by_class(&self) -> Vec<ClassScores> {
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let scores = |class: usize| {
            let right = self.count(class, class);
            let (support, predicted) = self.totals(class);
            ClassScores {
                precision: share(right, predicted),
                recall: share(right, support),
                f1: share(2 * right, support + predicted),
                support,
            }
        };
        (0..self.classes).map(scores).collect()
    }

    /// Returns the precision; NaN without samples.
    pub fn precision(&self, average: Average) -> f64 {
        self.averaged(average, |scores| scores.precision)
    }

    /// Returns the recall; NaN without samples.
    pub fn recall(&self, average: Average) -> f64 {
        self.averaged(average, |scores| scores.recall)
    }

    /// Returns the F1 score; NaN without samples.
    pub fn f1(&self, average: Average) -> f64 {
        self.averaged(average, |scores| scores.f1)
    }

    /// Returns the [`accuracy`](Self::accuracy). [`by`](Self::by) makes a metric with another score as its value.
    pub fn value(&self) -> f64 {
        self.accuracy()
    }

    /// Adds the samples of another matrix.
    ///
    /// # Panics
    ///
    /// If the numbers of classes differ.
    #[track_caller]
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.classes, other.classes, "the confusion matrices have different numbers of classes");
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        self.counts.fill(0);
    }

    /// Returns the number of samples with this target and prediction.
    fn count(&self, target: usize, prediction: usize) -> u64 {
        self.counts[target * self.classes + prediction]
    }

    /// Returns the number of samples with the class as the target, and with the class as the prediction.
    fn totals(&self, class: usize) -> (u64, u64) {
        let all = 0..self.classes;
        (all.clone().map(|other| self.count(class, other)).sum(), all.map(|other| self.count(other, class)).sum())
    }

    /// Returns the average over the classes of the score that `score` reads from the scores of a class. `Macro` leaves out classes that do not
    /// occur. `Micro` returns the accuracy: each sample has one target and one prediction, so the micro averages of all scores equal the accuracy.
    fn averaged(&self, average: Average, score: fn(&ClassScores) -> f64) -> f64 {
        let occurs = |class: usize| self.totals(class) != (0, 0);
        let weight = |class: usize, scores: &ClassScores| match average {
            Average::Weighted => scores.support as f64,
            _ => f64::from(u8::from(occurs(class))),
        };
        if average == Average::Micro {
            return self.accuracy();
        }
        let (mut sum, mut total) = (0.0, 0.0);
        for (class, scores) in self.by_class().iter().enumerate() {
            let weight = weight(class, scores);
            (sum, total) = (sum + weight * score(scores), total + weight);
        }
        sum / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns logits `[n, of]` that predict the class `classes[i]` for sample i.
    fn predicting(classes: &[usize], of: usize) -> Tensor<f64> {
        Tensor::from_fn([classes.len(), of], |i| f64::from(u8::from(classes[i[0]] == i[1])))
    }

    fn close(x: f64, y: f64) {
        assert!((x - y).abs() <= 4.0 * f64::EPSILON, "{x} is not {y}");
    }

    /// The expected values come from scikit-learn 1.9.1: `confusion_matrix`, `precision_score`, `recall_score` and
    /// `f1_score` with `zero_division=0`. Class 3 is never predicted, class 4 does not occur.
    #[test]
    fn scores_are_scikit_learns() {
        let targets = Tensor::from([0, 1, 2, 2, 1, 0, 2, 1, 3, 0]);
        let logits = predicting(&[0, 2, 2, 2, 1, 0, 1, 1, 0, 1], 5);
        let mut confusion = ConfusionMatrix::new(5);
        confusion.update(&logits, &targets).unwrap();
        let expected = [[2, 1, 0, 0, 0], [0, 2, 1, 0, 0], [0, 1, 2, 0, 0], [1, 0, 0, 0, 0], [0; 5]];
        assert_eq!(confusion.counts(), Tensor::from(expected));
        for (average, expected) in [
            (Average::Macro, [0.45833333333333326, 0.5, 0.47619047619047616]),
            (Average::Micro, [0.6, 0.6, 0.6]),
            (Average::Weighted, [0.55, 0.6, 0.5714285714285714]),
        ] {
            let found = [confusion.precision(average), confusion.recall(average), confusion.f1(average)];
            found.into_iter().zip(expected).for_each(|(x, y)| close(x, y));
        }
        let scores = confusion.by_class();
        close(scores[0].precision, 2.0 / 3.0);
        close(scores[1].f1, 4.0 / 7.0);
        assert_eq!(scores[3], ClassScores { precision: 0.0, recall: 0.0, f1: 0.0, support: 1 });
        assert_eq!(scores[4], ClassScores { precision: 0.0, recall: 0.0, f1: 0.0, support: 0 });
    }

    /// Checks that the first of equal logits ranks first. scikit-learn ranks equal logits in the other order: its score
    /// for the targets [2, 1, 3, 0] and k = 2 is 0.75.
    #[test]
    fn the_first_of_equal_logits_is_the_largest() {
        let logits = Tensor::from([[0.1, 0.5, 0.3, 0.1], [0.4, 0.3, 0.2, 0.1], [0.25; 4], [0.1, 0.2, 0.3, 0.4]]);
        let of = |k: usize, targets: [i64; 4]| {
            let mut accuracy = Accuracy::top_k(k);
            accuracy.update(&logits, &Tensor::from(targets)).unwrap();
            accuracy.value()
        };
        assert_eq!([of(1, [1, 0, 0, 3]), of(1, [1, 0, 1, 3])], [1.0, 0.75]);
        assert_eq!(
            [of(2, [2, 1, 1, 0]), of(2, [2, 1, 2, 0]), of(4, [0, 1, 2, 3]), of(0, [1, 0, 0, 3])],
            [0.75, 0.5, 1.0, 0.0]
        );
        let nan = f64::NAN;
        let (mut accuracy, mut confusion) = (Accuracy::new(), ConfusionMatrix::new(2));
        let logits = Tensor::from([[nan, 1.0], [1.0, nan]]);
        accuracy.update(&logits, &Tensor::from([0, 0])).unwrap();
        confusion.update(&logits, &Tensor::from([0, 0])).unwrap();
        assert_eq!(accuracy.value(), 0.0);
        assert_eq!(confusion.counts(), Tensor::from([[1, 1], [0, 0]]));
    }

    #[test]
    fn merged_parts_equal_the_whole_and_no_samples_give_nan() {
        let (logits, targets) = (predicting(&[0, 1, 2, 1, 0], 3), Tensor::from([0, 1, 1, -100, 2]));
        let mut whole = ConfusionMatrix::new(3);
        assert!(whole.accuracy().is_nan() && whole.f1(Average::Macro).is_nan() && Accuracy::new().value().is_nan());
        whole.update(&logits, &targets).unwrap();
        assert_eq!(whole.accuracy(), 0.5); // One of the five samples is ignored.
        use wengert_tensor::ops::Views;
        let mut parts = [ConfusionMatrix::new(3), ConfusionMatrix::new(3)];
        for (part, (start, len)) in parts.iter_mut().zip([(0, 2), (2, 3)]) {
            part.update(&logits.narrow(0, start, len), &targets.narrow(0, start, len)).unwrap();
        }
        let [mut first, second] = parts;
        first.merge(&second);
        assert_eq!(first, whole);
        first.reset();
        assert_eq!(first, ConfusionMatrix::new(3));
        // These logits have one more dimension, [n, c, d].
        let mut points = Accuracy::new();
        points.update(&logits.reshape([1, 5, 3]).transpose(1, 2), &targets.reshape([1, 5])).unwrap();
        assert_eq!(points.value(), 0.5);
    }

    #[test]
    #[should_panic(expected = "the accuracies have different values of k")]
    fn accuracies_of_other_ranks_are_not_merged() {
        Accuracy::top_k(1).merge(&Accuracy::top_k(2));
    }

    #[test]
    fn wrong_shapes_and_targets_are_errors_that_change_nothing() {
        let mut accuracy = Accuracy::new();
        let text = accuracy.update(&Tensor::<f32>::zeros([2, 3]), &Tensor::zeros([3])).unwrap_err().to_string();
        assert_eq!(text, "Expected input batch_size (2) to match target batch_size (3).");
        let text = accuracy.update(&Tensor::<f32>::zeros([2, 3]), &Tensor::from([0, 3])).unwrap_err().to_string();
        assert_eq!(text, "Target 3 is out of bounds. (There are 3 classes, and -100 marks samples to ignore.)");
        assert_eq!(accuracy, Accuracy::new());
        assert!(ConfusionMatrix::new(2).update(&Tensor::<f32>::zeros([2, 3]), &Tensor::from([0, 1])).is_err());
    }
}
