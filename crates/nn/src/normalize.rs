//! Inputs brought to a common scale before they are trained on.

use wengert_tensor::ops::{Arithmetic, Functions, Reductions, try_where_};
use wengert_tensor::{Float, Tensor};

use crate::{Error, Result};

/// A shift and a scale for inputs: given, or found on one set of samples, and applied to any. torchvision: `Normalize`.
///
/// ```
/// use wengert_nn::Normalize;
/// use wengert_tensor::prelude::*;
///
/// let train = Tensor::from([[1.0, 5.0], [3.0, 5.0f64]]);
/// let normalize = Normalize::fit(&train)?;
/// assert_eq!(normalize.apply(&train)?, Tensor::from([[-1.0, 0.0], [1.0, 0.0]]));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Normalize<T: Float> {
    /// What is subtracted, in a shape that expands to that of the inputs.
    pub mean: Tensor<T>,
    /// What the difference is divided by, in a shape that expands likewise.
    pub deviation: Tensor<T>,
}

impl<T: Float> Normalize<T> {
    /// Numbers from `low` to `high` become numbers from -1 to 1, whatever the samples are: for features of one known
    /// range, as pixels are.
    ///
    /// ```
    /// use wengert_nn::Normalize;
    /// use wengert_tensor::prelude::*;
    ///
    /// let pixels = Tensor::from([0.0, 4.0, 16.0f32]);
    /// assert_eq!(Normalize::range(0.0, 16.0).apply(&pixels)?.to_vec(), [-1.0, -0.5, 1.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    pub fn range(low: f64, high: f64) -> Self {
        let of = |value: f64| Tensor::scalar(T::from_f64(value));
        Normalize { mean: of((low + high) / 2.0), deviation: of((high - low) / 2.0) }
    }

    /// [`range`](Self::range) from the smallest to the largest number of `inputs`: one scale for all features, for features of one
    /// kind whose range is not known, as pixels are. Where all numbers are equal they become 0.
    ///
    /// ```
    /// use wengert_nn::Normalize;
    /// use wengert_tensor::prelude::*;
    ///
    /// let train = Tensor::from([[0.0, 255.0], [51.0, 0.0f32]]);
    /// assert_eq!(Normalize::fit_range(&train)?.apply(&train)?.to_vec(), [-1.0, 1.0, -0.6, -1.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there are no samples.
    pub fn fit_range(inputs: &Tensor<T>) -> Result<Self> {
        check_samples(inputs)?;
        let (low, high) = (inputs.try_amin(..)?.item().to_f64(), inputs.try_amax(..)?.item().to_f64());
        if low == high {
            return Ok(Normalize::range(low - 1.0, high + 1.0));
        }
        Ok(Normalize::range(low, high))
    }

    /// Mean and standard deviation (divided by n, not n - 1) of each feature of `inputs` `[n, …]`, in `[1, …]`. Where
    /// the deviation is 0 it is taken for 1, so that a feature that never changes becomes 0. scikit-learn:
    /// `StandardScaler`.
    ///
    /// Fit on the training samples alone: statistics of the others would leak into training.
    ///
    /// # Errors
    ///
    /// Where there are no samples, or `inputs` has no dimensions.
    pub fn fit(inputs: &Tensor<T>) -> Result<Self> {
        check_samples(inputs)?;
        let mean = inputs.try_mean_keepdim(0)?;
        let deviation = inputs.try_sub(&mean)?.try_square()?.try_mean_keepdim(0)?.try_sqrt()?;
        let constant = deviation.try_eq(0.0)?;
        let deviation = try_where_(&constant, &Tensor::scalar(T::ONE), &deviation)?;
        Ok(Normalize { mean, deviation })
    }

    /// (`inputs` - mean) / deviation.
    ///
    /// # Errors
    ///
    /// Where `mean` and `deviation` do not broadcast with `inputs`.
    #[track_caller]
    pub fn apply(&self, inputs: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(inputs.try_sub(&self.mean)?.try_div(&self.deviation)?)
    }
}

fn check_samples<T: Float>(inputs: &Tensor<T>) -> Result<()> {
    if inputs.numel() == 0 || inputs.shape().is_empty() {
        return Err(Error::Dataset(format!("no samples to normalise by: inputs of shape {}", inputs.shape())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_comes_to_mean_0_and_deviation_1() {
        let inputs = Tensor::from_fn([50, 3], |i| [10.0, 0.1, 4.0][i[1]] * ((i[0] * 7) % 50) as f64 + 3.0);
        let normalized = Normalize::fit(&inputs).unwrap().apply(&inputs).unwrap();
        // Sums of 50 numbers below 2, each rounded a few times: 100 roundings of numbers below 4 leave room.
        let tolerance = 400.0 * f64::EPSILON;
        assert!(normalized.mean(0).iter().all(|mean| mean.abs() < tolerance), "{normalized:?}");
        assert!(normalized.square().mean(0).iter().all(|square| (square - 1.0).abs() < tolerance));
    }

    #[test]
    fn nothing_to_normalise_by_and_other_features_are_errors() {
        assert!(Normalize::fit(&Tensor::<f32>::zeros([0, 3])).is_err());
        assert!(Normalize::fit(&Tensor::scalar(1.0)).is_err());
        let normalize = Normalize::fit(&Tensor::<f32>::zeros([2, 3])).unwrap();
        assert!(normalize.apply(&Tensor::zeros([2, 4])).is_err());
    }
}
