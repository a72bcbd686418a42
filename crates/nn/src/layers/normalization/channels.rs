//! The settings that batch and instance normalization share: weight and bias, and running statistics.

use wengert_autograd::{Buffer, Error as TapeError, Var};
use wengert_tensor::ops::Normalization as _;
use wengert_tensor::{Float, Tensor};

/// The running mean, the running variance, and the number of training batches.
type RunningStatistics<T> = (Option<Buffer<T>>, Option<Buffer<T>>, Option<Buffer<i64>>);

/// Returns the initial running statistics of `num_features` channels: means of 0, variances of 1, and 0 training batches. Returns `None`
/// for each if `track` is false.
#[track_caller]
pub(super) fn running_statistics<T: Float>(num_features: usize, track: bool) -> RunningStatistics<T> {
    if !track {
        return (None, None, None);
    }
    let (mean, variance) = (Tensor::zeros([num_features]), Tensor::ones([num_features]));
    (Some(Buffer::new(mean)), Some(Buffer::new(variance)), Some(Buffer::new(Tensor::scalar(0))))
}

/// Normalizes each channel of `x`, `[n, c, …]`, with its running mean and variance, then applies weight and bias.
#[track_caller]
pub(super) fn normalize_by_running_stats<'t, T: Float>(
    x: Var<'t, T>,
    (mean, variance): (&Buffer<T>, &Buffer<T>),
    weight: Option<&Var<'t, T>>,
    bias: Option<&Var<'t, T>>,
    eps: f64,
) -> Result<Var<'t, T>, TapeError> {
    let (mean, variance) = (x.tape().try_constant(&mean.value)?, x.tape().try_constant(&variance.value)?);
    x.try_batch_norm(&mean, &variance, weight, bias, eps)
}

/// Defines the builder methods that batch and instance normalization share. `$default` says whether parameters and
/// running statistics exist by default.
macro_rules! channel_norm_settings {
    ($default:literal) => {
        /// Sets the number that is added to the variance before its root is taken; 1e-5 by default.
        #[must_use]
        pub fn eps(mut self, eps: f64) -> Self {
            self.eps = eps;
            self
        }

        #[doc = concat!("Adds weight and bias, or removes them; ", $default, " by default.")]
        ///
        /// # Panics
        ///
        /// If there is not enough memory for weight and bias.
        #[must_use]
        #[track_caller]
        pub fn affine(mut self, affine: bool) -> Self {
            set_affine(&mut self.weight, &mut self.bias, &[self.num_features].into(), affine);
            self
        }

        #[doc = concat!("Adds new running statistics, or removes them; ", $default, " by default.")]
        ///
        /// # Panics
        ///
        /// If there is not enough memory for the statistics.
        #[must_use]
        #[track_caller]
        pub fn track_running_stats(mut self, track: bool) -> Self {
            (self.running_mean, self.running_var, self.num_batches_tracked) =
                running_statistics(self.num_features, track);
            self
        }
    };
}

pub(super) use channel_norm_settings;
