//! Normalizations. Most shift and scale elements to mean 0 and variance 1 over some dimensions, then apply a weight and a bias. RMS
//! normalization only scales, and batch normalization outside of training uses given statistics. Local response normalization divides by a
//! power of a mean square and has no parameters. The variance is computed in two passes: the mean, then the mean square of the differences
//! from the mean. The formula `E[x²] - E[x]²` would lose digits. The functions have no state: batch normalization in training returns its
//! statistics, and a layer can store them.

use wengert_macros::twins;

use crate::kernel::normalize::{self, Affine};
use crate::ops::shape::padding::{AxisPadding, pad_constant};
use crate::ops::shape::views::squeeze;
use crate::ops::{Compose, Composite, Result, TensorLike};
use crate::thresholds::ops::{MIN_FUSED_NORMALIZATION, NORMALIZED_ROWS};
use crate::{Binary, Error, Float, Shape, Site, Sizes, Tensor, Unary, View, ensure};

/// The result of batch normalization in training, and the statistics of this batch for a running average.
#[derive(Clone, Debug)]
pub struct BatchNormed<A> {
    /// The normalized input, in the shape of the input.
    pub output: A,
    /// The mean of each channel, `[c]`.
    pub mean: A,
    /// The unbiased variance of each channel, `[c]`: the sum of squared deviations, divided by the number of elements minus 1.
    pub variance: A,
}

/// Layer, RMS, group, instance, local response and batch normalization.
#[twins(blanket)]
pub trait Normalization: TensorLike<Elem: Float> {
    /// Normalizes over the last dimensions, which have the sizes `shape`. `weight` and `bias` have the same shape. If the normalized
    /// dimensions have only one element, which is finite, and `eps` is positive, the result is the bias, or 0 without a bias. Refuses an
    /// empty `shape`, and sizes that are not the last sizes of `self`. PyTorch: `nn.functional.layer_norm`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::Normalization;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::from([[1.0, 3.0], [10.0, 30.0]]);
    /// assert_eq!(x.layer_norm([2], None, None, 0.0), Tensor::from([[-1.0, 1.0], [-1.0, 1.0]]));
    /// ```
    fn try_layer_norm(
        &self,
        shape: impl Into<Sizes>,
        weight: Option<&Self>,
        bias: Option<&Self>,
        eps: f64,
    ) -> Result<Self> {
        let at = Site::here("layer_norm");
        let normalized = normalized_sizes(self, &shape.into(), at)?;
        let own = self.shape();
        check_parameters(&[(weight, "weight"), (bias, "bias")], &normalized, at)?;
        if let Some(kernel) = RowKernel::new(self, normalized.numel(), true, eps, 1) {
            return kernel.normalize(self, None, weight, bias, at);
        }
        let axes: Vec<usize> = (own.rank() - normalized.rank()..own.rank()).collect();
        match (weight, bias) {
            (Some(weight), Some(bias)) => {
                apply_fused_if_large([self, weight, bias], &Standardized { axes: &axes, eps }, at)
            }
            _ => affine(standardize(self, &axes, eps, at)?, weight, bias, at),
        }
    }

    /// Divides each element by the root of m + `eps`. Here m is the mean square over the last dimensions, which have the sizes `shape`.
    /// `weight` has the shape `shape`. `eps` is the machine epsilon of the element type if not given. Refuses an empty `shape`, and sizes
    /// that are not the last sizes of `self`. PyTorch: `nn.functional.rms_norm`.
    fn try_rms_norm(&self, shape: impl Into<Sizes>, weight: Option<&Self>, eps: Option<f64>) -> Result<Self> {
        let at = Site::here("rms_norm");
        let normalized = normalized_sizes(self, &shape.into(), at)?;
        let own = self.shape();
        check_parameters(&[(weight, "weight")], &normalized, at)?;
        let axes: Vec<usize> = (own.rank() - normalized.rank()..own.rank()).collect();
        let eps = eps.unwrap_or(crate::Scalar::to_f64(Self::Elem::EPSILON));
        if let Some(kernel) = RowKernel::new(self, normalized.numel(), false, eps, 1) {
            return kernel.normalize(self, None, weight, None, at);
        }
        let scaled = RootMeanSquared { axes: &axes, eps };
        match weight {
            Some(weight) => apply_fused_if_large([self, weight], &scaled, at),
            None => apply_fused_if_large([self], &scaled, at),
        }
    }

    /// Normalizes each of `groups` groups of channels of `[n, c, …]` over the channels of the group and all dimensions after `c`. `weight`
    /// and `bias` are `[c]`. Refuses a single example whose groups have one element, because the result would not depend on the input. Also
    /// refuses fewer than two dimensions, and a `groups` that does not divide c. PyTorch: `nn.functional.group_norm`.
    fn try_group_norm(&self, groups: usize, weight: Option<&Self>, bias: Option<&Self>, eps: f64) -> Result<Self> {
        let at = Site::here("group_norm");
        let own = self.shape();
        let rank = own.rank();
        ensure!(rank >= 2, at, "Expected at least 2 dimensions for input tensor but received {rank}");
        ensure!(
            groups > 0 && own[1].is_multiple_of(groups),
            at,
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {own} and \
             num_groups={groups}"
        );
        check_channels(&[(weight, "weight"), (bias, "bias")], own[1], at)?;
        let rest = Shape::from(&own[1..]).numel() / groups;
        ensure!(
            own[0].saturating_mul(rest) != 1,
            at,
            "Expected more than 1 value per channel when training, got input size {}",
            Shape::from([own[0] * own[1] / groups, groups]).iter().chain(&own[2..]).copied().collect::<Shape>()
        );
        if let Some(kernel) = RowKernel::new(self, rest, true, eps, Shape::from(&own[2..]).numel()) {
            return kernel.normalize(self, None, weight, bias, at);
        }
        let grouped = self.reshape_to([own[0], groups, rest], at)?;
        let z = standardize(&grouped, &[2], eps, at)?.reshape_to(own.clone(), at)?;
        affine_by_channel(z, weight, bias, at)
    }

    /// Normalizes each channel of each example of `[n, c, …]` over the dimensions after `c`. `weight` and `bias` are `[c]`. Refuses
    /// channels of one element, and inputs without dimensions after `c`. PyTorch: `nn.functional.instance_norm` with `use_input_stats`.
    fn try_instance_norm(&self, weight: Option<&Self>, bias: Option<&Self>, eps: f64) -> Result<Self> {
        let at = Site::here("instance_norm");
        let shape = self.shape();
        ensure!(
            shape.rank() >= 3 && Shape::from(&shape[2..]).numel() != 1,
            at,
            "Expected more than 1 spatial element when training, got input size {shape}"
        );
        check_channels(&[(weight, "weight"), (bias, "bias")], shape[1], at)?;
        let size = Shape::from(&shape[2..]).numel();
        if let Some(kernel) = RowKernel::new(self, size, true, eps, size) {
            return kernel.normalize(self, None, weight, bias, at);
        }
        let axes: Vec<usize> = (2..shape.rank()).collect();
        affine_by_channel(standardize(self, &axes, eps, at)?, weight, bias, at)
    }

    /// Divides each element of `[n, c, …]` by (k + `alpha` · m)^`beta`. Here m is the mean square of the elements at the same place in `size`
    /// channels: the element's own channel, `size / 2` channels before it, and `(size - 1) / 2` channels after it. Channels that do not exist
    /// count as 0 (Krizhevsky et al. 2012). Refuses fewer than three dimensions, and a `size` of 0. PyTorch:
    /// `nn.functional.local_response_norm`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[[1.0], [2.0], [3.0]]]);
    /// assert_eq!(x.local_response_norm(2, 2.0, 1.0, 1.0).to_vec(), [0.5, 2.0 / 6.0, 3.0 / 14.0]);
    /// ```
    fn try_local_response_norm(&self, size: usize, alpha: f64, beta: f64, k: f64) -> Result<Self> {
        let at = Site::here("local_response_norm");
        let shape = self.shape();
        ensure!(shape.rank() >= 3, at, "Expected 3D or higher dimensionality input (got {} dimensions)", shape.rank());
        ensure!(size > 0, at, "size should be greater than zero, but got 0");
        if shape.numel() == 0 {
            return Ok(self.clone());
        }
        let channel_padding = AxisPadding { axis: 1, left: (size / 2) as isize, right: ((size - 1) / 2) as isize };
        let squares = pad_constant(&self.apply_unary(Unary::Square, at)?, &[channel_padding], 0.0, at)?;
        let windows = squares.apply_view(View::Unfold { axis: 1, size, step: 1 }, at)?;
        let mean = squeeze(&windows.mean_over(&[shape.rank()], at)?, shape.rank(), at)?;
        self.divide_by(&mean.times(alpha, at)?.plus(k, at)?.combine(Binary::Pow, beta, at)?, at)
    }

    /// Normalizes each channel of `[n, c, …]` by a given mean and variance, as outside of training. All parameters are `[c]`. Refuses fewer
    /// than two dimensions. PyTorch: `nn.functional.batch_norm` with `training=False`.
    fn try_batch_norm(
        &self,
        mean: &Self,
        variance: &Self,
        weight: Option<&Self>,
        bias: Option<&Self>,
        eps: f64,
    ) -> Result<Self> {
        let at = Site::here("batch_norm");
        let shape = self.shape();
        let channels = channel_count(&shape, at)?;
        let all = [(Some(mean), "running_mean"), (Some(variance), "running_var"), (weight, "weight"), (bias, "bias")];
        check_channels(&all, channels, at)?;
        let size = Shape::from(&shape[2..]).numel();
        if let Some(kernel) = RowKernel::new(self, size, true, eps, size) {
            let statistics = Some((mean, inverse_root(variance, eps, at)?));
            return kernel.normalize(self, statistics, weight, bias, at);
        }
        match (weight, bias) {
            (Some(weight), Some(bias)) => {
                apply_fused_if_large([self, mean, variance, weight, bias], &StandardizedByStatistics { eps }, at)
            }
            _ => affine_by_channel(
                apply_fused_if_large([self, mean, variance], &StandardizedByStatistics { eps }, at)?,
                weight,
                bias,
                at,
            ),
        }
    }

    /// Normalizes each channel of `[n, c, …]` over the batch and all dimensions after `c`. Also returns the mean and variance of each
    /// channel. `weight` and `bias` are `[c]`. The normalization uses the biased variance, whose divisor is the number of values of a
    /// channel. The returned variance is unbiased: its divisor is that number minus 1. If the channels have no values, the output is empty,
    /// and the mean and the variance are NaN: leave them out of running statistics. Refuses channels with a single value, and fewer than
    /// two dimensions. PyTorch: `nn.functional.batch_norm` with `training=True`.
    fn try_batch_norm_training(
        &self,
        weight: Option<&Self>,
        bias: Option<&Self>,
        eps: f64,
    ) -> Result<BatchNormed<Self>, Self::Error> {
        let at = Site::here("batch_norm_training");
        let shape = self.shape();
        let channels = channel_count(&shape, at)?;
        let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| axis != 1).collect();
        let values = shape.numel_over(&axes);
        ensure!(
            values != 1,
            at,
            "Expected more than 1 value per channel when training, got input size torch.Size({shape})"
        );
        check_channels(&[(weight, "weight"), (bias, "bias")], channels, at)?;
        let mean = self.mean_over(&axes, at)?;
        let centred = self.minus(&mean, at)?;
        let variance = centred.apply_unary(Unary::Square, at)?.mean_over(&axes, at)?;
        let z = centred.times(&inverse_root(&variance, eps, at)?, at)?;
        let unbiased = variance.times(values as f64 / (values as f64 - 1.0), at)?;
        Ok(BatchNormed {
            output: affine_by_channel(z, weight, bias, at)?,
            mean: mean.reshape_to([channels], at)?,
            variance: unbiased.reshape_to([channels], at)?,
        })
    }
}

/// A normalization of the contiguous rows of a plain tensor, which a kernel computes in one pass.
struct RowKernel {
    /// The number of elements of a row.
    len: usize,
    /// True if the mean of a row is subtracted.
    centred: bool,
    eps: f64,
    /// The number of adjacent elements that share a weight and a bias.
    elements_per_parameter: usize,
}

impl RowKernel {
    /// Returns the kernel for `x`. Returns `None` if `x` is recorded or has no elements, or if the length of the rows is not in
    /// [`NORMALIZED_ROWS`].
    fn new<A: TensorLike>(x: &A, len: usize, centred: bool, eps: f64, elements_per_parameter: usize) -> Option<Self> {
        let own = RowKernel { len, centred, eps, elements_per_parameter };
        (x.is_plain() && NORMALIZED_ROWS.contains(&len) && x.shape().numel() > 0).then_some(own)
    }

    /// Normalizes `x` by the mean and the scale of each channel, if these `statistics` are given, or by the statistics of each row.
    fn normalize<A: TensorLike<Elem: Float>>(
        &self,
        x: &A,
        statistics: Option<(&A, A)>,
        weight: Option<&A>,
        bias: Option<&A>,
        at: Site,
    ) -> Result<A> {
        let to_tensor = |x: &A| x.to_tensor(at);
        let [weight, bias] = [weight, bias].map(|parameter| parameter.map(to_tensor).transpose());
        let statistics =
            statistics.map(|(mean, scale)| Ok::<_, A::Error>((to_tensor(mean)?, to_tensor(&scale)?))).transpose()?;
        Ok(x.constant(&self.normalize_tensor(&to_tensor(x)?, statistics, (weight?, bias?), at)?))
    }

    fn normalize_tensor<T: Float>(
        &self,
        x: &Tensor<T>,
        statistics: Option<(Tensor<T>, Tensor<T>)>,
        (weight, bias): (Option<Tensor<T>>, Option<Tensor<T>>),
        at: Site,
    ) -> Result<Tensor<T>, Error> {
        let (elements, weight, bias) = (x.row_major_elements(at)?, weight.as_ref(), bias.as_ref());
        let weight = weight.map(|weight| weight.row_major_elements(at)).transpose()?;
        let bias = bias.map(|bias| bias.row_major_elements(at)).transpose()?;
        let parameters = Affine {
            weight: weight.as_deref(),
            bias: bias.as_deref(),
            elements_per_parameter: self.elements_per_parameter,
        };
        match statistics {
            None => Tensor::build(x.shape(), at, |out| {
                normalize::normalize_rows(&elements, self.len, self.centred, T::from_f64(self.eps), parameters, out);
            }),
            Some((mean, scale)) => {
                let (mean, scale) = (mean.row_major_elements(at)?, scale.row_major_elements(at)?);
                Tensor::build(x.shape(), at, |out| {
                    normalize::normalize_rows_by_statistics(&elements, self.len, (&mean, &scale), parameters, out);
                })
            }
        }
    }
}

/// Returns (x - mean) / √(variance + eps), with the mean and the biased variance of x over `axes`.
fn standardize<A: TensorLike<Elem: Float>>(x: &A, axes: &[usize], eps: f64, at: Site) -> Result<A> {
    apply_fused_if_large([x], &Standardized { axes, eps }, at)
}

/// A composite operation: (x - mean) / √(variance + eps), with the mean and the biased variance of x over `axes`. The operands are x and,
/// if given, the weight and the bias.
struct Standardized<'a> {
    axes: &'a [usize],
    eps: f64,
}

impl<const N: usize> Composite<N> for Standardized<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, operands: [&A; N], at: Site) -> Result<A> {
        let x = operands[0];
        let centred = x.minus(&x.mean_over(self.axes, at)?, at)?;
        let variance = centred.apply_unary(Unary::Square, at)?.mean_over(self.axes, at)?;
        let z = centred.times(&inverse_root(&variance, self.eps, at)?, at)?;
        affine(z, operands.get(1).copied(), operands.get(2).copied(), at)
    }
}

/// A composite operation: x / √(m + eps), where m is the mean square of x over `axes`. The operands are x and, if given, the weight.
struct RootMeanSquared<'a> {
    axes: &'a [usize],
    eps: f64,
}

impl<const N: usize> Composite<N> for RootMeanSquared<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, operands: [&A; N], at: Site) -> Result<A> {
        let x = operands[0];
        let scale = inverse_root(&x.apply_unary(Unary::Square, at)?.mean_over(self.axes, at)?, self.eps, at)?;
        affine(x.times(&scale, at)?, operands.get(1).copied(), None, at)
    }
}

/// A composite operation: (x - mean) / √(variance + eps), with statistics of each channel. The operands are x, the mean, the variance and,
/// if given, the weight and the bias.
struct StandardizedByStatistics {
    eps: f64,
}

impl<const N: usize> Composite<N> for StandardizedByStatistics {
    fn apply<A: TensorLike<Elem: Float>>(&self, operands: [&A; N], at: Site) -> Result<A> {
        let (x, shape) = (operands[0], channel_shape(&operands[0].shape()));
        let reshaped = |parameter: usize| operands[parameter].reshape_to(shape.clone(), at);
        let z = x.minus(&reshaped(1)?, at)?.times(&inverse_root(&reshaped(2)?, self.eps, at)?, at)?;
        affine_by_channel(z, operands.get(3).copied(), operands.get(4).copied(), at)
    }
}

/// Applies a composite operation to an array (the first operand) and its parameters. If the array is large, the operation's passes over
/// memory are fused.
#[track_caller]
fn apply_fused_if_large<A: TensorLike<Elem: Float>, const N: usize>(
    operands: [&A; N],
    composite: &impl Composite<N>,
    at: Site,
) -> Result<A> {
    if operands[0].shape().numel() < MIN_FUSED_NORMALIZATION {
        return composite.apply(operands, at);
    }
    A::apply_composite(operands, composite, at)
}

fn inverse_root<A: TensorLike<Elem: Float>>(variance: &A, eps: f64, at: Site) -> Result<A> {
    variance.plus(eps, at)?.apply_unary(Unary::Sqrt, at)?.apply_unary(Unary::Reciprocal, at)
}

fn affine<A: TensorLike>(mut z: A, weight: Option<&A>, bias: Option<&A>, at: Site) -> Result<A> {
    if let Some(weight) = weight {
        z = z.times(weight, at)?;
    }
    if let Some(bias) = bias {
        z = z.plus(bias, at)?;
    }
    Ok(z)
}

fn affine_by_channel<A: TensorLike>(z: A, weight: Option<&A>, bias: Option<&A>, at: Site) -> Result<A> {
    let shape = channel_shape(&z.shape());
    let weight = weight.map(|weight| weight.reshape_to(shape.clone(), at)).transpose()?;
    let bias = bias.map(|bias| bias.reshape_to(shape.clone(), at)).transpose()?;
    affine(z, weight.as_ref(), bias.as_ref(), at)
}

/// Returns the shape to which a parameter `[c]` is reshaped, so that it broadcasts with an input of shape `shape`, `[n, c, …]`.
fn channel_shape(shape: &Shape) -> Shape {
    let mut own = Shape::ones(shape.rank());
    own[1] = shape[1];
    own
}

fn channel_count(shape: &Shape, at: Site) -> Result<usize, Error> {
    shape.get(1).copied().ok_or_else(|| {
        Error::argument(at, format_args!("Expected at least 2 dimensions [n, c, …] for input tensor, but got {shape}"))
    })
}

/// Returns the sizes of the normalized dimensions. Refuses an empty list, and sizes that are not the last sizes of `x`.
fn normalized_sizes<A: TensorLike>(x: &A, sizes: &Sizes, at: Site) -> Result<Shape, A::Error> {
    let (own, normalized) = (x.shape(), sizes.resolve_plain(at)?);
    ensure!(
        normalized.rank() > 0,
        at,
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = []"
    );
    ensure!(
        own.ends_with(&normalized),
        at,
        "Given normalized_shape={normalized}, expected input with shape [*, {}], but got input of size{own}",
        normalized.to_string().trim_matches(['[', ']'])
    );
    Ok(normalized)
}

/// Parameters of a normalization, each with its name in PyTorch's error messages.
type Parameters<'p, A> = [(Option<&'p A>, &'static str)];

/// Refuses parameters that do not have the shape of the normalized dimensions.
fn check_parameters<A: TensorLike>(parameters: &Parameters<'_, A>, normalized: &Shape, at: Site) -> Result<(), Error> {
    for (parameter, name) in parameters {
        let shape = parameter.map_or_else(|| normalized.clone(), A::shape);
        ensure!(
            shape == *normalized,
            at,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {shape} and \
             normalized_shape = {normalized}"
        );
    }
    Ok(())
}

/// Refuses parameters that do not have the shape `[channels]`.
fn check_channels<A: TensorLike>(parameters: &Parameters<'_, A>, channels: usize, at: Site) -> Result<(), Error> {
    for (parameter, name) in parameters {
        let shape = parameter.map_or_else(|| Shape::from([channels]), A::shape);
        ensure!(shape == [channels], at, "{name} should contain {channels} elements not {shape}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::reduce::normalization::Normalization;
    use crate::prelude::*;

    #[test]
    fn over_one_element_nothing_is_left() {
        assert_eq!(Tensor::from([[5.0], [7.0]]).layer_norm([1], None, None, 1e-5).to_vec(), [0.0, 0.0]);
        let bias = Tensor::from([2.0]);
        assert_eq!(Tensor::from([[5.0]]).layer_norm([1], None, Some(&bias), 1e-5).to_vec(), [2.0]);
    }

    /// Checks that large tensors, whose normalization is one fused pass, give the values of their rows, which are computed step by step.
    #[test]
    fn large_tensors_equal_their_rows() {
        let x = Tensor::<f64>::from_fn([7500, 70], |i| ((i[0] * 31 + i[1] * 17) % 101) as f64 * 0.1 - 5.0);
        let row = |scale: f64| Tensor::<f64>::from_fn([70], |i| (i[0] % 7) as f64 * scale + 0.5);
        let (weight, bias, mean, variance) = (row(0.5), row(-0.25), row(0.1), row(1.0));
        type Normalize<'a> = dyn Fn(&Tensor<f64>) -> Tensor<f64> + 'a;
        let all: [&Normalize; 7] = [
            &|x| x.layer_norm([70], Some(&weight), Some(&bias), 1e-5),
            &|x| x.layer_norm([70], Some(&weight), None, 1e-5),
            &|x| x.rms_norm([70], Some(&weight), Some(1e-5)),
            &|x| x.rms_norm([70], None, Some(1e-5)),
            &|x| x.group_norm(7, Some(&weight), Some(&bias), 1e-5),
            &|x| x.batch_norm(&mean, &variance, Some(&weight), Some(&bias), 1e-5),
            &|x| x.batch_norm(&mean, &variance, None, Some(&bias), 1e-5),
        ];
        for (number, normalize) in all.iter().enumerate() {
            let whole = normalize(&x);
            for first in [0, 41, 7498] {
                let expected = normalize(&x.narrow(0, first, 2));
                // The values are below 10. The bound allows for a few roundings of sums of 70 terms.
                let error = (whole.narrow(0, first, 2) - expected).abs().amax(..).item();
                assert!(error < 10.0 * 70.0 * f64::EPSILON, "{number}: {error}");
            }
        }
    }

    #[test]
    fn batch_statistics_and_their_two_variances() {
        let x = Tensor::from([[1.0, 10.0], [3.0, 30.0]]);
        let normed = x.batch_norm_training(None, None, 0.0);
        assert_eq!(normed.output, Tensor::from([[-1.0, -1.0], [1.0, 1.0]]));
        assert_eq!(normed.mean.to_vec(), [2.0, 20.0]);
        assert_eq!(normed.variance.to_vec(), [2.0, 200.0]);
        let weight = Tensor::from([1.0, 2.0]);
        let y = x.batch_norm(&normed.mean, &Tensor::from([1.0, 100.0]), Some(&weight), None, 0.0);
        assert_eq!(y, Tensor::from([[-1.0, -2.0], [1.0, 2.0]]));
        assert!(Tensor::<f64>::zeros([1, 2]).try_batch_norm_training(None, None, 0.0).is_err());
    }

    #[test]
    fn a_batch_without_values_has_no_statistics() {
        for shape in [&[0usize, 2][..], &[0, 2, 3], &[4, 2, 0]] {
            let normed = Tensor::<f64>::zeros(shape).batch_norm_training(None, None, 1e-5);
            assert_eq!(normed.output.shape(), shape);
            assert!(normed.mean.iter().chain(normed.variance.iter()).all(f64::is_nan));
            assert_eq!((normed.mean.shape(), normed.variance.shape()), (&[2].into(), &[2].into()));
        }
    }

    /// The values are PyTorch's.
    #[test]
    fn neighbouring_channels() {
        let x = Tensor::<f64>::arange(6).reshape([1, 3, 2]);
        let table = [
            (
                2,
                0.75,
                [0.0, 0.8458970107524513, 1.189207115002721, 1.1723849141720404, 1.0433897200488582, 0.924011338306951],
            ),
            (
                3,
                0.75,
                [
                    0.0,
                    0.47920732818470435,
                    0.6659067581404804,
                    0.7098176595685814,
                    1.3318135162809608,
                    1.2051426284169777,
                ],
            ),
            (
                9,
                0.75,
                [
                    0.0,
                    0.44488470657095586,
                    1.1419489171453814,
                    1.3346541197128676,
                    2.2838978342907628,
                    2.2244235328547792,
                ],
            ),
        ];
        for (size, beta, expected) in table {
            let got = x.local_response_norm(size, 0.5, beta, 1.0).to_vec();
            assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-14), "{size}: {got:?}");
        }
        assert_eq!(Tensor::<f64>::zeros([0, 3, 2]).local_response_norm(2, 1.0, 1.0, 1.0).shape(), &[0, 3, 2]);
        let sentence =
            |x: Tensor<f64>, size: usize| x.try_local_response_norm(size, 1.0, 1.0, 1.0).unwrap_err().sentence();
        assert_eq!(sentence(Tensor::zeros([3, 2]), 2), "Expected 3D or higher dimensionality input (got 2 dimensions)");
        assert_eq!(sentence(x, 0), "size should be greater than zero, but got 0");
    }

    #[test]
    fn groups_and_instances() {
        let x = Tensor::from([[[1.0, 3.0], [10.0, 30.0]]]);
        let unit = Tensor::from([[[-1.0, 1.0], [-1.0, 1.0]]]);
        assert_eq!(x.group_norm(2, None, None, 0.0), unit);
        assert_eq!(x.instance_norm(None, None, 0.0), unit);
        let scaled = x.group_norm(2, Some(&Tensor::from([1.0, 2.0])), Some(&Tensor::from([0.5, 0.0])), 0.0);
        assert_eq!(scaled, Tensor::from([[[-0.5, 1.5], [-2.0, 2.0]]]));
        assert_eq!(
            Tensor::from([[3.0, 4.0]]).rms_norm([2], None, Some(0.0)).to_vec(),
            [3.0, 4.0].map(|x| x / 12.5f64.sqrt())
        );
        assert!(x.try_group_norm(3, None, None, 0.0).is_err());
        // The error message is PyTorch's. As in PyTorch, two examples are not an error.
        let error = Tensor::<f64>::ones([1, 3, 1]).try_group_norm(3, None, None, 1e-5).unwrap_err();
        assert_eq!(error.sentence(), "Expected more than 1 value per channel when training, got input size [1, 3, 1]");
        assert_eq!(Tensor::<f64>::ones([2, 3]).group_norm(3, None, None, 1e-5), Tensor::zeros([2, 3]));
        assert_eq!(Tensor::<f64>::ones([1, 4]).group_norm(2, None, None, 1e-5), Tensor::zeros([1, 4]));
    }
}
