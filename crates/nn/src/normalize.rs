//! The normalization of a model's inputs to a common scale.

use wengert_autograd::{Buffer, Var};
use wengert_macros::precompiled;
use wengert_tensor::ops::{Arithmetic, Functions, Reductions, try_where_};
use wengert_tensor::{Dims, Float, Sizes, Tensor};

use crate::layers::Layer;
use crate::module::Module;
use crate::{Error, Result};

/// A shift and a scale for inputs: a mean is subtracted from the inputs, and the difference is divided by a deviation. The caller gives
/// both, or a method computes both from samples. torchvision: `Normalize`.
///
/// Compute the shift and the scale from the training samples only, because statistics of other samples would leak into the training. Both are
/// buffers, so a model with a field of this type saves them in its checkpoint. This type is also a [`Layer`](crate::Layer).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::Normalize;
/// use wengert::prelude::*;
///
/// let train = Tensor::from([[1.0, 5.0], [3.0, 5.0f64]]);
/// let normalize = Normalize::fit(&train)?;
/// assert_eq!(normalize.apply(&train)?, Tensor::from([[-1.0, 0.0], [1.0, 0.0]]));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Normalize<T: Float = f32> {
    /// The mean that is subtracted from the inputs, in a shape that broadcasts to them.
    pub mean: Buffer<T>,
    /// The deviation by which the difference of inputs and mean is divided, in a shape that broadcasts to the inputs.
    pub std: Buffer<T>,
}

impl<T: Float> Normalize<T> {
    /// Returns a normalization that subtracts `mean` and divides by `std`. Their shapes broadcast to the inputs.
    pub fn new(mean: Tensor<T>, std: Tensor<T>) -> Self {
        Normalize { mean: Buffer::new(mean), std: Buffer::new(std) }
    }

    /// Returns a normalization that changes nothing, with statistics of the given shape. A model starts with this normalization if a checkpoint with
    /// statistics of the same shape is loaded later. Panics if a size is negative, or there is not enough memory.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{Normalize, load, save};
    /// use wengert::prelude::*;
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

    /// Returns a normalization that maps the range from `low` to `high` to the range from -1 to 1. Use it if all features have the same
    /// known range, for example pixels. If `low` equals `high`, the normalized inputs are infinite or NaN.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Normalize;
    /// use wengert::prelude::*;
    ///
    /// let pixels = Tensor::from([0.0, 4.0, 16.0f32]);
    /// assert_eq!(Normalize::range(0.0, 16.0).apply(&pixels)?.to_vec(), [-1.0, -0.5, 1.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    pub fn range(low: f64, high: f64) -> Self {
        let scalar = |value: f64| Tensor::scalar(T::from_f64(value));
        Normalize::new(scalar(f64::midpoint(low, high)), scalar(high / 2.0 - low / 2.0))
    }

    /// Returns the [`range`](Self::range) from the smallest to the largest element of `inputs`, with one shift and one scale for all
    /// features. Use it if all features have the same kind of values, and their range is not known. If all elements are equal, they become
    /// 0. A NaN among the inputs makes all results NaN.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Normalize;
    /// use wengert::prelude::*;
    ///
    /// let train = Tensor::from([[0.0, 255.0], [51.0, 0.0f32]]);
    /// assert_eq!(Normalize::fit_range(&train)?.apply(&train)?.to_vec(), [-1.0, 1.0, -0.6, -1.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `inputs` has no elements or no dimensions, or there is not enough memory.
    pub fn fit_range(inputs: &Tensor<T>) -> Result<Self> {
        let (low, high) = min_and_max(inputs)?;
        let mut normalize = Normalize::range(low, high);
        normalize.std.value = replace_zeros_by_one(normalize.std.value)?;
        Ok(normalize)
    }

    /// Returns a normalization by the mean and the standard deviation of each feature of `inputs` `[n, …]`, both in the shape `[1, …]`. The
    /// variance is the sum of squares divided by n, not by n - 1. The deviation of a constant feature is replaced by 1, so that the feature
    /// becomes 0. scikit-learn: `StandardScaler`.
    ///
    /// # Errors
    ///
    /// If `inputs` has no elements or no dimensions, or there is not enough memory.
    pub fn fit(inputs: &Tensor<T>) -> Result<Self> {
        Normalize::fit_over(inputs, Dims::from(0))
    }

    /// Returns a normalization by the mean and the standard deviation of each channel of `inputs` `[n, c, …]`, both in the shape
    /// `[1, c, 1, …]`. Apart from this, the method does the same as [`fit`](Self::fit).
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Normalize;
    /// use wengert::prelude::*;
    ///
    /// let images = Tensor::from_fn([2, 3, 4, 4], |i| (10 * i[1] + i[2]) as f32);
    /// let normalize = Normalize::fit_channels(&images)?;
    /// assert_eq!(normalize.mean.value, Tensor::from([1.5, 11.5, 21.5]).reshape([1, 3, 1, 1]));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `inputs` has no elements or fewer than two dimensions, or there is not enough memory.
    pub fn fit_channels(inputs: &Tensor<T>) -> Result<Self> {
        if inputs.rank() < 2 {
            return Err(Error::Dataset(format!(
                "expected inputs [n, c, …] to normalize channels, but got shape {}",
                inputs.shape()
            )));
        }
        let others: Vec<isize> = (0..inputs.rank() as isize).filter(|&dim| dim != 1).collect();
        Normalize::fit_over(inputs, Dims::from(&others[..]))
    }

    /// Returns a normalization that maps the smallest value of each feature of `inputs` `[n, …]` to 0 and the largest to 1. A constant
    /// feature becomes 0. scikit-learn: `MinMaxScaler`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::Normalize;
    /// use wengert::prelude::*;
    ///
    /// let train = Tensor::from([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0f64]]);
    /// assert_eq!(Normalize::fit_min_max(&train)?.apply(&train)?.to_vec(), [0.0, 0.0, 1.0, 0.0, 0.5, 0.0]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `inputs` has no elements or no dimensions, the difference of a feature's extremes is too large for `T`, or
    /// there is not enough memory.
    pub fn fit_min_max(inputs: &Tensor<T>) -> Result<Self> {
        check_samples(inputs)?;
        let (low, high) = (inputs.try_amin_keepdim(0)?, inputs.try_amax_keepdim(0)?);
        let width = high.try_sub(&low)?;
        if low
            .iter()
            .zip(high.iter())
            .any(|(low, high)| low.is_finite() && high.is_finite() && !(high - low).is_finite())
        {
            return Err(Error::Dataset(format!(
                "fit_min_max: the difference of the largest and the smallest value of a feature is too large for {}",
                T::DTYPE
            )));
        }
        Ok(Normalize::new(low, replace_zeros_by_one(width)?))
    }

    /// Returns a normalization by the mean and the standard deviation of `inputs` over the dimensions `dims`.
    fn fit_over(inputs: &Tensor<T>, dims: Dims) -> Result<Self> {
        fit_over(inputs, dims)
    }

    /// Returns the normalized inputs, (`inputs` - `mean`) / `std`.
    ///
    /// # Errors
    ///
    /// If `mean` and `std` do not broadcast with `inputs`, or there is not enough memory.
    #[track_caller]
    pub fn apply(&self, inputs: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(inputs.try_sub(&self.mean.value)?.try_div(&self.std.value)?)
    }

    /// Returns `outputs` · `std` + `mean`, the inverse of the normalization. Use it for a model that predicts normalized targets. scikit-learn:
    /// `inverse_transform`.
    ///
    /// # Errors
    ///
    /// If `mean` and `std` do not broadcast with `outputs`, or there is not enough memory.
    #[track_caller]
    pub fn invert(&self, outputs: &Tensor<T>) -> Result<Tensor<T>> {
        Ok(outputs.try_mul(&self.std.value)?.try_add(&self.mean.value)?)
    }
}

impl<T: Float> Layer<T> for Normalize<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        let tape = x.tape();
        Ok(x.try_sub(&tape.try_constant(&self.mean.value)?)?.try_div(&tape.try_constant(&self.std.value)?)?)
    }
}

/// Returns the smallest and the largest element of `inputs`, or an error if `inputs` has no elements or no dimensions.
#[precompiled]
fn min_and_max<T: Float>(inputs: &Tensor<T>) -> Result<(f64, f64)> {
    check_samples(inputs)?;
    Ok((inputs.try_amin(..)?.item().to_f64(), inputs.try_amax(..)?.item().to_f64()))
}

/// Returns a normalization by the mean and the standard deviation of `inputs` over the dimensions `dims`. A deviation of 0 becomes 1.
///
/// If all elements of a feature are equal, rounding may make their mean differ from them, and then the deviation is not exactly 0. So these features
/// are recognized by their equal extremes, and their mean is set to this extreme.
#[precompiled]
fn fit_over<T: Float>(inputs: &Tensor<T>, dims: Dims) -> Result<Normalize<T>> {
    check_samples(inputs)?;
    let (low, high) = (inputs.try_amin_keepdim(dims.clone())?, inputs.try_amax_keepdim(dims.clone())?);
    let is_constant = low.try_eq(&high)?;
    let mean = try_where_(&is_constant, &low, &inputs.try_mean_keepdim(dims.clone())?)?;
    let std = inputs.try_sub(&mean)?.try_square()?.try_mean_keepdim(dims)?.try_sqrt()?;
    Ok(Normalize::new(mean, replace_zeros_by_one(std)?))
}

/// Returns `scale` with each 0 replaced by 1, so that it can be divided by.
fn replace_zeros_by_one<T: Float>(scale: Tensor<T>) -> Result<Tensor<T>> {
    Ok(try_where_(&scale.try_eq(0.0)?, &Tensor::scalar(T::ONE), &scale)?)
}

/// Returns an error unless `inputs` has at least one element and at least one dimension.
fn check_samples<T: Float>(inputs: &Tensor<T>) -> Result<()> {
    if inputs.numel() == 0 || inputs.shape().is_empty() {
        return Err(Error::Dataset(format!("expected samples [n, …] to normalize, but got shape {}", inputs.shape())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;

    use super::*;

    #[test]
    fn each_feature_gets_mean_0_and_deviation_1() {
        let inputs = Tensor::from_fn([50, 3], |i| [10.0, 0.1, 4.0][i[1]] * ((i[0] * 7) % 50) as f64 + 3.0);
        let normalized = Normalize::fit(&inputs).unwrap().apply(&inputs).unwrap();
        // A mean is a sum of 50 values below 2, and each value is rounded a few times. The tolerance allows for 100 rounding errors of values below
        // 4.
        let tolerance = 400.0 * f64::EPSILON;
        assert!(normalized.mean(0).iter().all(|mean| mean.abs() < tolerance), "{normalized:?}");
        assert!(normalized.square().mean(0).iter().all(|square| (square - 1.0).abs() < tolerance));
    }

    #[test]
    fn no_samples_and_other_features_are_errors() {
        assert!(Normalize::fit(&Tensor::<f32>::zeros([0, 3])).is_err());
        assert!(Normalize::fit(&Tensor::scalar(1.0)).is_err());
        let normalize = Normalize::fit(&Tensor::<f32>::zeros([2, 3])).unwrap();
        assert!(normalize.apply(&Tensor::zeros([2, 4])).is_err());
        assert!(Normalize::fit_channels(&Tensor::<f32>::zeros([3])).is_err());
        assert!(Normalize::fit_min_max(&Tensor::<f32>::zeros([0, 3])).is_err());
    }

    #[test]
    fn the_layer_and_the_inverse_agree_with_tensors() {
        let images = Tensor::from_fn([3, 2, 2, 2], |i| (7 * i[0] + 3 * i[1] * i[2] + i[3]) as f64);
        let normalize = Normalize::fit_channels(&images).unwrap();
        let applied = normalize.apply(&images).unwrap();
        assert_eq!(normalize.forward(Tape::new().constant(&images)).value(), applied);
        let back = normalize.invert(&applied).unwrap();
        // The bound covers a subtraction, a division, a product and a sum. These are four rounding errors of values below 20.
        assert!(back.iter().zip(images.iter()).all(|(x, y)| (x - y).abs() <= 80.0 * f64::EPSILON));
        let channel = |x: &Tensor<f64>, c: isize| wengert_tensor::ops::Views::select(x, 1, c);
        assert!((0..2).all(|c| channel(&applied, c).mean(..).item().abs() < 1e-14));
    }

    /// The mean of equal numbers is rounded, so the deviation of a constant feature is not always 0.
    #[test]
    fn a_constant_feature_becomes_0() {
        for constant in [0.1, -0.7, 1e17, 3e300, 5e-324] {
            for samples in [1, 3, 10, 1000] {
                let inputs = Tensor::from_fn([samples, 2, 3], |i| if i[1] == 0 { constant } else { i[0] as f64 });
                for normalize in [Normalize::fit(&inputs), Normalize::fit_channels(&inputs)] {
                    let normalized = normalize.unwrap().apply(&inputs).unwrap();
                    let first = wengert_tensor::ops::Views::select(&normalized, 1, 0);
                    assert!(first.iter().all(|x| x == 0.0), "{constant} {samples}: {first:?}");
                }
                let equal = Tensor::full([samples, 2], constant);
                let normalized = Normalize::fit_range(&equal).unwrap().apply(&equal).unwrap();
                assert!(normalized.iter().all(|x| x == 0.0), "{constant} {samples}: {normalized:?}");
            }
        }
        let inputs = Tensor::full([7], 0.1f32);
        assert_eq!(Normalize::fit(&inputs).unwrap().apply(&inputs).unwrap().to_vec(), [0.0; 7]);
        assert!(Normalize::fit(&Tensor::from([f64::NAN, 1.0])).unwrap().mean.value.item().is_nan());
    }

    #[test]
    fn ranges_of_extreme_numbers_become_minus_1_to_1() {
        for [low, high] in [[-f64::MAX, f64::MAX], [0.0, f64::MAX], [1e17, 1e17 + 32.0], [0.0, 1e-323]] {
            let inputs = Tensor::from([low, high]);
            let normalized = Normalize::fit_range(&inputs).unwrap().apply(&inputs).unwrap();
            assert_eq!(normalized.to_vec(), [-1.0, 1.0], "{low} {high}");
        }
    }

    #[test]
    fn a_range_that_is_too_large_for_the_type_is_an_error() {
        let inputs = Tensor::from([[-3e38f32, 0.0], [3e38, 1.0]]);
        let text = Normalize::fit_min_max(&inputs).unwrap_err().to_string();
        assert_eq!(
            text,
            "fit_min_max: the difference of the largest and the smallest value of a feature is too large for f32"
        );
        assert!(Normalize::fit_min_max(&Tensor::from([[f32::NAN], [1.0]])).is_ok());
        assert!(Normalize::fit_min_max(&Tensor::from([[f32::INFINITY], [1.0]])).is_ok());
    }
}
