//! Inputs brought to a common scale before they are trained on.

use wengert_autograd::{Buffer, Var};
use wengert_tensor::ops::{Arithmetic, Functions, Reductions, try_where_};
use wengert_tensor::{Dims, Float, Sizes, Tensor};

use crate::layers::Layer;
use crate::module::Module;
use crate::{Error, Result};

/// A shift and a scale for inputs: given, or found on one set of samples, and applied to any. torchvision: `Normalize`.
///
/// Find them on the training samples alone: statistics of the others would leak into training. Both are buffers, so that a model with
/// such a field keeps them in its checkpoint; it is a [`Layer`](crate::Layer) too.
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
#[derive(Clone, Debug, Module)]
pub struct Normalize<T: Float = f32> {
    /// What is subtracted, in a shape that expands to that of the inputs.
    pub mean: Buffer<T>,
    /// What the difference is divided by, in a shape that expands likewise.
    pub std: Buffer<T>,
}

impl<T: Float> Normalize<T> {
    /// Subtracts `mean` and divides by `std`, of shapes that expand to that of the inputs.
    pub fn new(mean: Tensor<T>, std: Tensor<T>) -> Self {
        Normalize { mean: Buffer::new(mean), std: Buffer::new(std) }
    }

    /// Changes nothing: what a model has before a checkpoint with statistics of this shape is loaded.
    ///
    /// ```
    /// use wengert_nn::{Normalize, load, save};
    /// use wengert_tensor::prelude::*;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("scale.safetensors");
    /// save(&Normalize::fit(&Tensor::from([[1.0f32, 5.0], [3.0, 7.0]]))?, &path)?;
    /// let mut loaded = Normalize::<f32>::identity([1, 2]);
    /// load(&mut loaded, &path)?;
    /// assert_eq!(loaded.mean.value, Tensor::from([[2.0, 6.0]]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn identity(shape: impl Into<Sizes>) -> Self {
        let shape = shape.into();
        Normalize::new(Tensor::zeros(shape.clone()), Tensor::ones(shape))
    }

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
        Normalize::new(of((low + high) / 2.0), of((high - low) / 2.0))
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
    /// # Errors
    ///
    /// If there are no samples, or `inputs` has no dimensions.
    pub fn fit(inputs: &Tensor<T>) -> Result<Self> {
        Normalize::over(inputs, Dims::from(0))
    }

    /// Mean and standard deviation of each channel of `inputs` `[n, c, …]`, in `[1, c, 1, …]`; otherwise as [`fit`](Self::fit).
    ///
    /// ```
    /// use wengert_nn::Normalize;
    /// use wengert_tensor::prelude::*;
    ///
    /// let images = Tensor::from_fn([2, 3, 4, 4], |i| (10 * i[1] + i[2]) as f32);
    /// let normalize = Normalize::fit_channels(&images)?;
    /// assert_eq!(normalize.mean.value, Tensor::from([1.5, 11.5, 21.5]).reshape([1, 3, 1, 1]));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there are no samples, or `inputs` has fewer than two dimensions.
    pub fn fit_channels(inputs: &Tensor<T>) -> Result<Self> {
        if inputs.rank() < 2 {
            return Err(Error::Dataset(format!("no channels to normalise by: inputs of shape {}", inputs.shape())));
        }
        let others: Vec<isize> = (0..inputs.rank() as isize).filter(|&dim| dim != 1).collect();
        Normalize::over(inputs, Dims::from(&others[..]))
    }

    /// The smallest number of each feature of `inputs` `[n, …]` becomes 0, the largest 1. Where both are equal, all become 0.
    /// scikit-learn: `MinMaxScaler`.
    ///
    /// ```
    /// use wengert_nn::Normalize;
    /// use wengert_tensor::prelude::*;
    ///
    /// let train = Tensor::from([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0f64]]);
    /// assert_eq!(Normalize::fit_min_max(&train)?.apply(&train)?.to_vec(), [0.0, 0.0, 1.0, 0.0, 0.5, 0.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there are no samples, or `inputs` has no dimensions.
    pub fn fit_min_max(inputs: &Tensor<T>) -> Result<Self> {
        check_samples(inputs)?;
        let (low, high) = (inputs.try_amin_keepdim(0)?, inputs.try_amax_keepdim(0)?);
        let width = high.try_sub(&low)?;
        Ok(Normalize::new(low, one_for_zero(width)?))
    }

    fn over(inputs: &Tensor<T>, dims: Dims) -> Result<Self> {
        check_samples(inputs)?;
        let mean = inputs.try_mean_keepdim(dims.clone())?;
        let std = inputs.try_sub(&mean)?.try_square()?.try_mean_keepdim(dims)?.try_sqrt()?;
        Ok(Normalize::new(mean, one_for_zero(std)?))
    }

    /// (`inputs` - mean) / std.
    ///
    /// # Errors
    ///
    /// If `mean` and `std` do not broadcast with `inputs`.
    #[track_caller]
    pub fn apply(&self, inputs: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(inputs.try_sub(&self.mean.value)?.try_div(&self.std.value)?)
    }

    /// The inverse: `outputs` · std + mean. scikit-learn: `inverse_transform`. For a model that predicts normalised targets.
    ///
    /// # Errors
    ///
    /// If `mean` and `std` do not broadcast with `outputs`.
    #[track_caller]
    pub fn invert(&self, outputs: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(outputs.try_mul(&self.std.value)?.try_add(&self.mean.value)?)
    }
}

impl<T: Float> Layer<T> for Normalize<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        Ok(x.try_sub(&tape.constant(&self.mean.value))?.try_div(&tape.constant(&self.std.value))?)
    }
}

fn one_for_zero<T: Float>(scale: Tensor<T>) -> Result<Tensor<T>> {
    Ok(try_where_(&scale.try_eq(0.0)?, &Tensor::scalar(T::ONE), &scale)?)
}

fn check_samples<T: Float>(inputs: &Tensor<T>) -> Result<()> {
    if inputs.numel() == 0 || inputs.shape().is_empty() {
        return Err(Error::Dataset(format!("no samples to normalise by: inputs of shape {}", inputs.shape())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;

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
        assert!(Normalize::fit_channels(&Tensor::<f32>::zeros([3])).is_err());
        assert!(Normalize::fit_min_max(&Tensor::<f32>::zeros([0, 3])).is_err());
    }

    #[test]
    fn the_layer_and_the_inverse_are_those_of_tensors() {
        let images = Tensor::from_fn([3, 2, 2, 2], |i| (7 * i[0] + 3 * i[1] * i[2] + i[3]) as f64);
        let normalize = Normalize::fit_channels(&images).unwrap();
        let applied = normalize.apply(&images).unwrap();
        assert_eq!(normalize.forward(Tape::new().constant(&images)).value(), applied);
        let back = normalize.invert(&applied).unwrap();
        // A subtraction, a division, a product, a sum: four roundings of numbers below 20.
        assert!(back.iter().zip(images.iter()).all(|(x, y)| (x - y).abs() <= 80.0 * f64::EPSILON));
        let channel = |x: &Tensor<f64>, c: isize| wengert_tensor::ops::Views::select(x, 1, c);
        assert!((0..2).all(|c| channel(&applied, c).mean(..).item().abs() < 1e-14));
    }
}
