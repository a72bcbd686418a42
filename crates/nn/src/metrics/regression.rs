//! Metrics of regression, which compare predicted numbers with targets.

use wengert_tensor::{Float, Shape, Site, Tensor, check_list};

use crate::{Error, Result};

/// The errors of predicted values: R², MAE and RMSE. scikit-learn: `r2_score`, `mean_absolute_error`, `root_mean_squared_error`.
///
/// For targets `[n, …]` of n samples, each score is computed for each feature (an element of a sample's target), and averaged over the
/// features. A NaN among the predictions or targets makes all scores NaN.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::RegressionErrors;
/// use wengert::prelude::*;
///
/// let mut errors = RegressionErrors::new();
/// errors.update(&Tensor::from([2.5, 0.0, 2.0]), &Tensor::from([3.0, 0.0, 1.0]))?;
/// assert_eq!(errors.mae(), 0.5);
/// assert_eq!(errors.rmse(), (1.25f64 / 3.0).sqrt());
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegressionErrors {
    n_samples: f64,
    features: Vec<FeatureSums>,
}

/// The sums of the errors, and the statistics of the targets, over all samples for one feature (an element of a target).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct FeatureSums {
    /// The sum over all samples of |prediction - target|.
    absolute_errors: f64,
    /// The sum over all samples of (prediction - target)².
    squared_errors: f64,
    /// The mean of the feature's targets over all samples.
    target_mean: f64,
    /// The sum over all samples of (target - `target_mean`)².
    target_variation: f64,
}

impl RegressionErrors {
    /// Returns a metric without samples.
    pub fn new() -> Self {
        RegressionErrors::default()
    }

    /// Adds predictions and targets of the same shape `[n, …]`.
    ///
    /// # Errors
    ///
    /// If the shapes differ (also `[n, 1]` and `[n]`) or have no dimensions, or the number of features differs from earlier batches. Also if there
    /// is not enough memory.
    pub fn update<T: Float>(&mut self, predictions: &Tensor<T>, targets: &Tensor<T>) -> Result<()> {
        let (shape, target_shape) = (predictions.shape(), targets.shape());
        let features = shape.iter().skip(1).copied().collect::<Shape>().numel();
        if shape != target_shape || shape.rank() == 0 || !(self.features.is_empty() || self.features.len() == features)
        {
            let before = self.features.len();
            let problem = format!(
                "expected predictions and targets of the same shape, with as many features as before, but got {shape} and {target_shape} after {before} features"
            );
            return Err(Error::Dataset(problem));
        }
        check_list::<FeatureSums>(features, Site::here("update"))?;
        let mut batch =
            RegressionErrors { n_samples: shape[0] as f64, features: vec![FeatureSums::default(); features] };
        let (predictions, targets) = (predictions.try_to_vec()?, targets.try_to_vec()?);
        let pairs: Vec<(f64, f64)> =
            predictions.into_iter().map(T::to_f64).zip(targets.into_iter().map(T::to_f64)).collect();
        for (position, feature) in batch.features.iter_mut().enumerate() {
            let of_feature = || pairs.iter().skip(position).step_by(features);
            // The mean of equal targets is their value without a rounding error.
            let first = of_feature().next().map_or(0.0, |&(_, target)| target);
            let above_first = of_feature().map(|(_, target)| target - first).sum::<f64>() / batch.n_samples;
            feature.target_mean = first + above_first;
            for (prediction, target) in of_feature() {
                feature.absolute_errors += (prediction - target).abs();
                feature.squared_errors += (prediction - target).powi(2);
                feature.target_variation += (target - feature.target_mean).powi(2);
            }
        }
        self.merge(&batch);
        Ok(())
    }

    /// Returns the mean absolute error; NaN without samples.
    pub fn mae(&self) -> f64 {
        self.mean_over_features(|feature| feature.absolute_errors / self.n_samples)
    }

    /// Returns the root of the mean squared error; NaN without samples.
    pub fn rmse(&self) -> f64 {
        self.mean_over_features(|feature| (feature.squared_errors / self.n_samples).sqrt())
    }

    /// Returns the coefficient of determination: 1 for perfect predictions, 0 for predictions as good as the mean of the targets, and
    /// negative for worse predictions. If all targets are equal, it is 1 for exact predictions and 0 otherwise. NaN with fewer than two
    /// samples.
    pub fn r2(&self) -> f64 {
        if self.n_samples < 2.0 {
            return f64::NAN;
        }
        self.mean_over_features(|feature| match (feature.squared_errors, feature.target_variation) {
            (0.0, 0.0) => 1.0,
            (errors, 0.0) if !errors.is_nan() => 0.0,
            (errors, variation) => 1.0 - errors / variation,
        })
    }

    /// Returns the [`rmse`](Self::rmse). [`by`](Self::by) makes a metric with another score as its value.
    pub fn value(&self) -> f64 {
        self.rmse()
    }

    /// Adds the samples of another metric (T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise
    /// algorithm for computing sample variances", 1979).
    ///
    /// # Panics
    ///
    /// If the numbers of features differ, and both metrics have samples.
    #[track_caller]
    pub fn merge(&mut self, other: &Self) {
        if self.n_samples == 0.0 {
            self.clone_from(other);
            return;
        }
        if other.n_samples == 0.0 {
            return;
        }
        assert_eq!(
            self.features.len(),
            other.features.len(),
            "the regression errors have different numbers of features"
        );
        let n_samples = self.n_samples + other.n_samples;
        for (feature, more) in self.features.iter_mut().zip(&other.features) {
            let distance = more.target_mean - feature.target_mean;
            feature.absolute_errors += more.absolute_errors;
            feature.squared_errors += more.squared_errors;
            feature.target_mean += distance * other.n_samples / n_samples;
            feature.target_variation +=
                more.target_variation + distance * distance * self.n_samples * other.n_samples / n_samples;
        }
        self.n_samples = n_samples;
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        *self = RegressionErrors::new();
    }

    /// Returns the mean over the features of the score that `score` computes; NaN without samples.
    fn mean_over_features(&self, score: impl Fn(&FeatureSums) -> f64) -> f64 {
        if self.n_samples == 0.0 {
            return f64::NAN;
        }
        self.features.iter().map(score).sum::<f64>() / self.features.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::Views as _;

    use super::*;

    fn close(x: f64, y: f64) {
        assert!((x - y).abs() <= 4.0 * f64::EPSILON, "{x} is not {y}");
    }

    /// The expected values come from scikit-learn 1.9.1.
    #[test]
    fn errors_are_scikit_learns() {
        let (targets, predictions) =
            (Tensor::from([3.0, -0.5, 2.0, 7.0, 4.25]), Tensor::from([2.5, 0.0, 2.0, 8.0, 5.0]));
        let mut whole = RegressionErrors::new();
        whole.update(&predictions, &targets).unwrap();
        close(whole.r2(), 0.9328175895765473);
        close(whole.mae(), 0.55);
        close(whole.rmse(), 0.6422616289332564);
        let mut parts = RegressionErrors::new();
        for (start, len) in [(0, 2), (2, 1), (3, 2)] {
            parts.update(&predictions.narrow(0, start, len), &targets.narrow(0, start, len)).unwrap();
        }
        close(parts.r2(), whole.r2());
        close(parts.rmse(), whole.rmse());
        let mut two = RegressionErrors::new();
        let targets = Tensor::from([[1.0, 2.0], [3.0, 4.5], [5.0, 6.0]]);
        two.update(&Tensor::from([[1.5, 2.0], [2.5, 4.0], [5.0, 7.0]]), &targets).unwrap();
        close(two.r2(), 0.892219387755102);
        close(two.mae(), 0.41666666666666663);
        close(two.rmse(), 0.5268727574158829);
    }

    #[test]
    fn empty_constant_and_nan_targets() {
        let of = |predictions: &[f64], targets: &[f64]| {
            let mut errors = RegressionErrors::new();
            errors.update(&Tensor::from(predictions), &Tensor::from(targets)).unwrap();
            errors
        };
        assert!(RegressionErrors::new().rmse().is_nan() && of(&[], &[]).mae().is_nan());
        assert!(of(&[1.0], &[2.0]).r2().is_nan());
        assert_eq!([of(&[2.0, 2.0], &[2.0, 2.0]).r2(), of(&[2.0, 1.0], &[2.0, 2.0]).r2()], [1.0, 0.0]);
        // The sum of three numbers 0.1, divided by 3, is not 0.1.
        let constant = of(&[0.1, 0.1, 0.2], &[0.1; 3]);
        let mut parts = of(&[0.1], &[0.1]);
        parts.merge(&of(&[0.1, 0.2], &[0.1, 0.1]));
        assert_eq!([constant.r2(), parts.r2(), of(&[0.1; 3], &[0.1; 3]).r2()], [0.0, 0.0, 1.0]);
        let nan = f64::NAN;
        for (predictions, targets) in [([nan, 1.0], [1.0, 2.0]), ([nan, 2.0], [2.0, 2.0]), ([1.0, 2.0], [2.0, nan])] {
            let errors = of(&predictions, &targets);
            assert!(errors.mae().is_nan() && errors.rmse().is_nan() && errors.r2().is_nan(), "{predictions:?}");
        }
        let mut errors = of(&[1.0], &[2.0]);
        assert!(errors.update(&Tensor::<f64>::zeros([3, 1]), &Tensor::zeros([3])).is_err());
        assert!(errors.update(&Tensor::<f64>::zeros([3, 2]), &Tensor::zeros([3, 2])).is_err());
        assert_eq!(errors, of(&[1.0], &[2.0]));
        errors.reset();
        assert_eq!(errors, RegressionErrors::new());
    }
}
