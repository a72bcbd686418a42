//! Pooling: the largest element or the mean of each window, and the inverse of maximum pooling.
//!
//! A mean is a linear function, so the derivative rule applies the adjoint of this function. A maximum selects one element of the window:
//! the first of several equal elements, or the last NaN. The gradient flows to that element, as in PyTorch.

mod adaptive;
mod maximum;
mod mean;
mod options;
mod plan;
mod unpool;
mod volume;

pub use adaptive::AdaptivePooling;
pub(super) use adaptive::avg_pool as adaptive_avg_pool;
pub use options::PoolOptions;

use wengert_macros::twins;

use crate::ops::Result;
use crate::ops::window::pooling::maximum::{max_pool, max_pool_with_indices};
use crate::ops::window::pooling::mean::avg_pool;
use crate::ops::window::pooling::unpool::max_unpool;
use crate::ops::window::windowed::Windowed;
use crate::{Float, Site, Sizes, Tensor};

/// Pooling over one, two or three dimensions. The methods refuse other ranks, sizes of 0 except the batch size, and a result without windows.
#[twins(blanket)]
pub trait Pooling: Windowed<Elem: Float> {
    /// Returns the largest element of each window of `[n, c, l]` (or `[c, l]`). The gradient flows to the first of several equal elements, or
    /// to the last NaN. PyTorch: `nn.functional.max_pool1d`.
    fn try_max_pool1d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        max_pool(self, 1, &kernel.into(), options, Site::here("max_pool1d"))
    }

    /// Returns the largest element of each window of `[n, c, h, w]` (or `[c, h, w]`). The gradient flows to the
    /// first of several equal elements, or to the last NaN. PyTorch: `nn.functional.max_pool2d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let image = Tensor::<f64>::arange(16).reshape([1, 4, 4]);
    /// assert_eq!(image.max_pool2d(2, &PoolOptions::default()), Tensor::from([[[5.0, 7.0], [13.0, 15.0]]]));
    /// ```
    fn try_max_pool2d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        max_pool(self, 2, &kernel.into(), options, Site::here("max_pool2d"))
    }

    /// Returns the largest element of each window of `[n, c, d, h, w]` (or `[c, d, h, w]`): n volumes with c channels, depth d, height h and
    /// width w. The gradient flows to the first of several equal elements, or to the last NaN. PyTorch: `nn.functional.max_pool3d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let volume = Tensor::<f64>::arange(16).reshape([1, 2, 2, 4]);
    /// assert_eq!(volume.max_pool3d(2, &PoolOptions::default()), Tensor::from([[[[13.0, 15.0]]]]));
    /// ```
    fn try_max_pool3d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        max_pool(self, 3, &kernel.into(), options, Site::here("max_pool3d"))
    }

    /// Returns the result of [`max_pool1d`](Self::max_pool1d), and the position of each maximum along the last dimension of `self`. A
    /// window of padding alone has position 0. A variable on a tape is evaluated, because the positions are not recorded. PyTorch:
    /// `max_pool1d` with `return_indices`.
    fn try_max_pool1d_with_indices(
        &self,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
    ) -> Result<(Self, Tensor<i64>), Self::Error> {
        max_pool_with_indices(self, 1, &kernel.into(), options, Site::here("max_pool1d_with_indices"))
    }

    /// Returns the result of [`max_pool2d`](Self::max_pool2d), and the row-major position of each maximum in its plane `[h, w]` of `self`.
    /// A window of padding alone has position 0. A variable on a tape is evaluated, because the positions are not recorded. PyTorch:
    /// `max_pool2d` with `return_indices`.
    fn try_max_pool2d_with_indices(
        &self,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
    ) -> Result<(Self, Tensor<i64>), Self::Error> {
        max_pool_with_indices(self, 2, &kernel.into(), options, Site::here("max_pool2d_with_indices"))
    }

    /// Returns the result of [`max_pool3d`](Self::max_pool3d), and the row-major position of each maximum in its volume `[d, h, w]` of
    /// `self`. A window of padding alone has position 0. A variable on a tape is evaluated, because the positions are not recorded.
    /// PyTorch: `max_pool3d` with `return_indices`.
    fn try_max_pool3d_with_indices(
        &self,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
    ) -> Result<(Self, Tensor<i64>), Self::Error> {
        max_pool_with_indices(self, 3, &kernel.into(), options, Site::here("max_pool3d_with_indices"))
    }

    /// Returns zeros with each element of `[n, c, l]` (or `[c, l]`) at the position that `indices` gives. This is the inverse of
    /// [`max_pool1d_with_indices`](Self::max_pool1d_with_indices), except for elements that are no maximum. `output_size` is the length of
    /// the result: unless the stride is 1, arrays of several lengths have the same number of windows. By default, the windows cover the
    /// result and its padding exactly. If positions are equal, the last element wins. Has the errors of [`max_unpool2d`](Self::max_unpool2d). PyTorch:
    /// `nn.functional.max_unpool1d`.
    fn try_max_unpool1d(
        &self,
        indices: &Tensor<i64>,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
        output_size: Option<&[usize]>,
    ) -> Result<Self> {
        max_unpool(self, 1, indices, &kernel.into(), options, output_size, Site::here("max_unpool1d"))
    }

    /// Returns zeros with each element of `[n, c, h, w]` (or `[c, h, w]`) at the row-major position in its plane that `indices` gives. This
    /// is the inverse of [`max_pool2d_with_indices`](Self::max_pool2d_with_indices), except for elements that are no maximum. `output_size`
    /// is the height and the width of the result. By default, the windows cover the result and its padding exactly. If positions are equal, the last element
    /// wins. Refuses `indices` of another shape, positions outside of the result, and an `output_size` that differs from the default by the
    /// stride or more. The dilation is ignored. PyTorch: `nn.functional.max_unpool2d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let image = Tensor::from([[[1.0, 2.0], [4.0, 3.0]]]);
    /// let options = PoolOptions::default();
    /// let (maximum, indices) = image.max_pool2d_with_indices(2, &options);
    /// assert_eq!(maximum.max_unpool2d(&indices, 2, &options, None), Tensor::from([[[0.0, 0.0], [4.0, 0.0]]]));
    /// ```
    fn try_max_unpool2d(
        &self,
        indices: &Tensor<i64>,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
        output_size: Option<&[usize]>,
    ) -> Result<Self> {
        max_unpool(self, 2, indices, &kernel.into(), options, output_size, Site::here("max_unpool2d"))
    }

    /// Returns zeros with each element of `[n, c, d, h, w]` (or `[c, d, h, w]`) at the row-major position in its volume that `indices` gives.
    /// This is the inverse of [`max_pool3d_with_indices`](Self::max_pool3d_with_indices), except for elements that are no maximum.
    /// `output_size` is the depth, the height and the width of the result. By default, the windows cover the result and its padding exactly. If positions are
    /// equal, the last element wins. Has the errors of [`max_unpool2d`](Self::max_unpool2d). PyTorch: `nn.functional.max_unpool3d`.
    fn try_max_unpool3d(
        &self,
        indices: &Tensor<i64>,
        kernel: impl Into<Sizes>,
        options: &PoolOptions,
        output_size: Option<&[usize]>,
    ) -> Result<Self> {
        max_unpool(self, 3, indices, &kernel.into(), options, output_size, Site::here("max_unpool3d"))
    }

    /// Returns the mean of each window of `[n, c, l]` (or `[c, l]`). PyTorch: `nn.functional.avg_pool1d`.
    fn try_avg_pool1d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        avg_pool(self, 1, &kernel.into(), options, Site::here("avg_pool1d"))
    }

    /// Returns the mean of each window of `[n, c, h, w]` (or `[c, h, w]`). PyTorch: `nn.functional.avg_pool2d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let image = Tensor::<f64>::arange(16).reshape([1, 4, 4]);
    /// assert_eq!(image.avg_pool2d([2, 4], &PoolOptions::default()), Tensor::from([[[3.5], [11.5]]]));
    /// ```
    fn try_avg_pool2d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        avg_pool(self, 2, &kernel.into(), options, Site::here("avg_pool2d"))
    }

    /// Returns the mean of each window of `[n, c, d, h, w]` (or `[c, d, h, w]`). Refuses a kernel that is larger than the input without its
    /// padding, unlike [`avg_pool2d`](Self::avg_pool2d). PyTorch: `nn.functional.avg_pool3d`.
    fn try_avg_pool3d(&self, kernel: impl Into<Sizes>, options: &PoolOptions) -> Result<Self> {
        avg_pool(self, 3, &kernel.into(), options, Site::here("avg_pool3d"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::window::pooling::{PoolOptions, Pooling};
    use crate::prelude::*;

    #[test]
    fn maxima_with_and_without_indices_agree_and_the_first_of_equal_ones_wins() {
        let x = Tensor::from_fn([2, 2, 5, 4], |i| ((i[0] * 7 + i[1] * 5 + i[2] * 3 + i[3] * 2) % 4) as f64);
        for options in [
            PoolOptions::default(),
            PoolOptions::default().stride([1, 2]).padding(1),
            PoolOptions::default().stride(2).padding([1, 0]).ceil_mode(true),
            PoolOptions::default().stride(1).dilation(2),
        ] {
            let (values, indices) = x.max_pool2d_with_indices([3, 2], &options);
            assert_eq!(values, x.max_pool2d([3, 2], &options));
            let (outer, plane) = (values.flatten(0, 1).flatten(1, -1), x.flatten(0, 1).flatten(1, -1));
            assert_eq!(plane.gather(1, &indices.flatten(0, 1).flatten(1, -1)), outer);
        }
        let (_, first) = Tensor::from([[1.0, 1.0, 0.0]]).max_pool1d_with_indices(3, &PoolOptions::default());
        assert_eq!(first.to_vec(), [0]);
    }

    #[test]
    fn maxima_return_to_their_positions() {
        let x = Tensor::from_fn([2, 3, 5, 4], |i| ((i[0] * 7 + i[1] * 11 + i[2] * 3 + i[3] * 2) % 13) as f64 + 1.0);
        for options in
            [PoolOptions::default(), PoolOptions::default().stride(1), PoolOptions::default().stride([2, 1]).padding(1)]
        {
            for x in [x.clone(), x.select(0, 1)] {
                let (values, indices) = x.max_pool2d_with_indices(2, &options);
                let rank = x.shape().rank();
                let back = values.max_unpool2d(&indices, 2, &options, Some(&x.shape()[rank - 2..]));
                let planes = |x: &Tensor<f64>| x.flatten(-2, -1);
                let places = indices.flatten(-2, -1);
                assert_eq!(planes(&back).gather(-1, &places), values.flatten(-2, -1), "{options:?}");
                let is_maximum = planes(&(&x * 0.0)).scatter_value(-1, &places, 1.0);
                assert_eq!(planes(&back), planes(&x) * is_maximum, "{options:?}");
            }
        }
        let (values, indices) = x.select(0, 0).flatten(1, 2).max_pool1d_with_indices(3, &PoolOptions::default());
        assert_eq!(values.max_unpool1d(&indices, 3, &PoolOptions::default(), None).shape(), &[3, 18]);
        let twice =
            Tensor::from([[1.0, 2.0]]).max_unpool1d(&Tensor::from([[1i64, 1]]), 1, &PoolOptions::default(), None);
        assert_eq!(twice.to_vec(), [0.0, 2.0]);
    }

    /// Returns volumes with many equal elements.
    fn volumes() -> Tensor<f64> {
        Tensor::from_fn([2, 2, 3, 4, 5], |i| {
            let position = (((i[0] * 2 + i[1]) * 3 + i[2]) * 4 + i[3]) * 5 + i[4];
            ((position * 37 + 3) % 53 % 17) as f64 / 2.0
        })
    }

    /// The expected values come from PyTorch 2.15.
    #[test]
    fn pooled_volumes_are_pytorchs() {
        let x = volumes().select(0, 0);
        let options = PoolOptions::default().stride([2, 1, 2]).dilation([1, 2, 1]).ceil_mode(true);
        let (values, indices) = x.max_pool3d_with_indices(2, &options);
        assert_eq!(values.shape(), &[2, 2, 2, 3]);
        let expected = [
            3.0, 4.0, 5.5, 6.5, 8.0, 8.0, 1.0, 2.0, 3.5, 4.5, 6.5, 7.0, 8.0, 8.0, 2.5, 3.5, 5.5, 6.0, 6.5, 8.0, 0.5,
            1.5, 3.5, 4.0,
        ];
        assert_eq!(values.to_vec(), expected);
        let expected = [1, 3, 4, 6, 7, 29, 41, 43, 44, 46, 48, 49, 0, 22, 4, 6, 8, 9, 41, 53, 44, 46, 48, 49];
        assert_eq!(indices.to_vec(), expected);
        let options = PoolOptions::default().stride([1, 2, 2]);
        let means = x.avg_pool3d([2, 3, 2], &options.clone().divisor_override(5));
        let close = |got: &Tensor<f64>, expected: &[f64]| {
            assert_eq!(got.numel(), expected.len());
            assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-14), "{got:?}");
        };
        assert_eq!(means.shape(), &[2, 2, 1, 2]);
        close(&means, &[7.0, 9.3, 5.0, 8.6, 12.5, 7.4, 11.8, 10.5]);
        let padded = x.avg_pool3d([2, 3, 2], &options.padding([1, 1, 0]).ceil_mode(true).count_include_pad(false));
        assert_eq!(padded.shape(), &[2, 4, 3, 3]);
        let first = [
            4.25,
            3.875,
            3.0,
            4.583333333333333,
            5.0,
            1.8333333333333333,
            5.75,
            7.75,
            0.0,
            3.75,
            4.4375,
            4.625,
            4.083333333333333,
            5.208333333333333,
            4.166666666666667,
            5.25,
            7.25,
            3.75,
        ];
        close(&padded.flatten(0, -1).narrow(0, 0, 18), &first);
        let (means, maxima) = (x.adaptive_avg_pool3d([2, 3, 2]), x.adaptive_max_pool3d([2, 3, 2]));
        assert_eq!((means.shape(), maxima.shape()), (&[2, 2, 3, 2].into(), &[2, 2, 3, 2].into()));
        let expected = [4.25, 4.5, 4.0, 4.25, 3.75, 4.708333333333333, 3.3333333333333335, 4.916666666666667];
        close(&means.flatten(0, -1).narrow(0, 0, 8), &expected);
        assert_eq!(maxima.to_vec()[..12], [8.0, 8.0, 8.0, 8.0, 7.5, 8.0, 7.0, 8.0, 7.0, 8.0, 6.5, 7.5]);
        assert_eq!(x.adaptive_avg_pool3d([2, 0, 3]).shape(), &[2, 2, 0, 3]);
    }

    /// A maximum pooling of volumes has two steps: within planes, and along the depth. Together they choose the same element as a single
    /// step: the first of equal elements, or the last NaN.
    #[test]
    fn maxima_of_volumes_equal_their_definition() {
        let nans = [[0, 0, 1, 2, 3], [0, 0, 2, 2, 3], [1, 1, 0, 0, 0]];
        let numbers = volumes();
        let x = Tensor::from_fn(numbers.shape(), |i| {
            if nans.iter().any(|nan| nan == i) { f64::NAN } else { numbers.get(i).unwrap() }
        });
        let bits = |x: &Tensor<f64>| x.iter().map(f64::to_bits).collect::<Vec<_>>();
        for (kernel, stride, padding) in [([2, 2, 3], [1, 2, 2], [1, 0, 1]), ([3, 2, 2], [1, 1, 1], [1, 1, 1])] {
            let options = PoolOptions::default().stride(stride).padding(padding);
            let (values, indices) = x.max_pool3d_with_indices(kernel, &options);
            assert_eq!(bits(&values), bits(&x.max_pool3d(kernel, &options)));
            let sizes = values.shape().clone();
            let expected = Tensor::from_fn(&sizes, |i| {
                let mut best: Option<(f64, i64)> = None;
                for k in 0..kernel.iter().product() {
                    let offsets = [k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]];
                    let place: [isize; 3] =
                        std::array::from_fn(|axis| i[axis + 2] as isize * stride[axis] + offsets[axis] - padding[axis]);
                    let [d, h, w] = place.map(|place| place as usize);
                    let Some(value) = x.get(&[i[0], i[1], d, h, w]) else { continue };
                    if best.is_none_or(|(largest, _)| value > largest || value.is_nan()) {
                        best = Some((value, ((d * 4 + h) * 5 + w) as i64));
                    }
                }
                best.unwrap().1
            });
            assert_eq!(indices, expected, "{kernel:?}");
        }
    }

    /// PyTorch returns positions outside of the array for windows of only padding, and its gradients write there.
    #[test]
    fn windows_of_only_padding_have_the_position_0() {
        let x = Tensor::from_fn([1, 1, 3, 2, 2], |i| (i[2] * 4 + i[3] * 2 + i[4]) as f64);
        let pool = |x: &Tensor<f64>, kernel: [usize; 3], padding: [usize; 3], dilation: [usize; 3]| {
            let options = PoolOptions::default().stride(1).padding(padding).dilation(dilation);
            let (values, indices) = x.max_pool3d_with_indices(kernel, &options);
            (values.to_vec(), indices.to_vec())
        };
        let outside = f64::NEG_INFINITY;
        assert_eq!(pool(&x, [1, 2, 1], [0, 1, 0], [1, 3, 1]), (vec![outside; 6], vec![0; 6]));
        assert_eq!(pool(&x, [1, 2, 2], [0, 1, 0], [1, 3, 1]), (vec![outside; 3], vec![0; 3]));
        assert_eq!(pool(&x.narrow(2, 0, 2), [2, 2, 2], [1, 0, 0], [3, 1, 1]), (vec![outside], vec![0]));
        // A window of -∞ has the position of its first element.
        let below = Tensor::full(x.shape(), outside);
        assert_eq!(pool(&below, [2, 2, 2], [0; 3], [1; 3]), (vec![outside; 2], vec![0, 4]));
    }

    #[test]
    fn maxima_return_to_their_volumes() {
        let (x, options) = (volumes().narrow(0, 0, 1), PoolOptions::default());
        let (values, indices) = x.max_pool3d_with_indices(2, &options);
        let back = values.max_unpool3d(&indices, 2, &options, Some(&[3, 4, 5]));
        assert_eq!(back.shape(), x.shape());
        let mut expected = vec![0.0; 120];
        for (value, (window, index)) in values.iter().zip(indices.iter().enumerate()) {
            expected[window / 4 * 60 + index as usize] = value;
        }
        assert_eq!(back.to_vec(), expected);
        assert_eq!(back.get(&[0, 0, 0, 1, 1]), Some(6.5));
        let error = values.try_max_unpool3d(&(indices + 70), 2, &options, None).unwrap_err();
        assert!(error.sentence().ends_with("(output volumes are of size 2x4x4)"), "{error}");
        let error = values.select(0, 0).select(0, 0).try_max_unpool3d(&Tensor::zeros([1, 2, 2]), 2, &options, None);
        assert_eq!(
            error.unwrap_err().sentence(),
            "Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with 3 dimensions."
        );
    }

    /// Pools batches of 0 volumes. The result is empty, even if memory could not hold one volume. But a product of channels and depth that
    /// overflows is refused.
    #[test]
    fn no_volumes_have_no_results() {
        let x = Tensor::<f64>::zeros([0usize, 2, 1 << 40, 4, 4]);
        let options = PoolOptions::default();
        let shape = [0, 2, 1 << 39, 2, 2];
        assert_eq!(x.max_pool3d(2, &options).shape(), &shape);
        assert_eq!(x.max_pool3d_with_indices(2, &options).1.shape(), &shape);
        assert_eq!(x.avg_pool3d(2, &options).shape(), &shape);
        // The pooling of planes merges the channels and the depth into one dimension, whose size would be too large.
        let x = Tensor::<f64>::zeros([0usize, 1 << 40, 1 << 40, 4, 4]);
        assert!(x.try_max_pool3d(2, &options).is_err() && x.try_avg_pool3d(2, &options).is_err());
    }

    /// The error messages are PyTorch's, except for an empty dimension.
    #[test]
    fn positions_that_do_not_fit_are_refused() {
        let (x, options) = (Tensor::<f64>::ones([1, 2, 2]), PoolOptions::default());
        let sentence = |x: &Tensor<f64>, indices: &Tensor<i64>, size: Option<&[usize]>| {
            x.try_max_unpool2d(indices, 2, &options, size).unwrap_err().sentence()
        };
        let places = Tensor::from([[[0i64, 3], [9, 16]]]);
        assert_eq!(sentence(&x, &places, None), "Found an invalid max index: 16 (output volumes are of size 4x4)");
        assert_eq!(
            sentence(&x, &(places - 1), None),
            "Found an invalid max index: -1 (output volumes are of size 4x4)"
        );
        assert_eq!(
            sentence(&x, &Tensor::zeros([1, 2, 3]), None),
            "Expected shape of indices to be same as that of the input tensor ([1, 2, 2]) but got indices tensor with shape: \
             [1, 2, 3]"
        );
        let places = Tensor::zeros([1, 2, 2]);
        assert_eq!(
            sentence(&x, &places, Some(&[6, 5])),
            "invalid output_size \"[6, 5]\" (dim 0 must be between 2 and 6)"
        );
        assert_eq!(
            sentence(&x, &places, Some(&[5])),
            "output_size should be a sequence containing 2 elements, but it has a length of '1'"
        );
        assert_eq!(
            sentence(&x.select(0, 0), &places.select(0, 0), None),
            "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with 2 dimensions."
        );
        assert!(Tensor::<f64>::ones([1, 0, 2]).try_max_unpool2d(&Tensor::zeros([1, 0, 2]), 2, &options, None).is_err());
        assert_eq!(
            Tensor::<f64>::ones([0, 1, 2, 2]).max_unpool2d(&Tensor::zeros([0, 1, 2, 2]), 2, &options, None).shape(),
            &[0, 1, 4, 4]
        );
        let far = PoolOptions::default().stride(1).padding(1);
        let line = Tensor::<f64>::ones([1, 1]);
        assert_eq!(
            line.try_max_unpool1d(&Tensor::zeros([1, 1]), 2, &far, None).unwrap_err().sentence(),
            "Found an invalid max index: 0 (output volumes are of size 0x1)"
        );
        assert!(line.try_max_unpool1d(&Tensor::zeros([1, 1]), isize::MAX, &options, None).is_err());
    }

    #[test]
    fn padding_is_below_every_number_and_nan_above() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Tensor::from([[-inf, -inf, nan, 1.0]]);
        let y = x.max_pool1d(2, &PoolOptions::default().padding(1)).to_vec();
        assert_eq!(y[0], -inf);
        assert!(y[1].is_nan());
        assert_eq!(y[2], 1.0);
        // The elements of this window are three rows and columns apart, and all lie in the padding.
        let around = PoolOptions::default().dilation(3).padding(1);
        let x = Tensor::from([[[1.0, 2.0], [3.0, 4.0]]]);
        let (values, indices) = x.max_pool2d_with_indices(2, &around);
        assert_eq!((values.to_vec(), indices.to_vec()), (vec![-inf], vec![0]));
        assert_eq!(x.max_pool2d(2, &around), values);
    }

    #[test]
    fn a_divisor_of_zero_is_an_error() {
        let error =
            Tensor::<f64>::ones([1, 4]).try_avg_pool1d(2, &PoolOptions::default().divisor_override(0)).unwrap_err();
        assert_eq!(error.sentence(), "divisor must be not zero");
    }

    #[test]
    fn elements_beyond_the_padding_never_count() {
        let x = Tensor::<f64>::ones([1, 4]);
        let mean = |options: PoolOptions| x.avg_pool1d(3, &options.ceil_mode(true).padding(1)).to_vec();
        assert_eq!(mean(PoolOptions::default()), [2.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(mean(PoolOptions::default().stride(2)), [2.0 / 3.0, 1.0, 0.5]);
        assert_eq!(mean(PoolOptions::default().count_include_pad(false)), [1.0, 1.0]);
        assert_eq!(mean(PoolOptions::default().divisor_override(1)), [2.0, 2.0]);
    }

    /// Compares mean pooling with its definition. A mean is the sum over a window, with zeros as padding, divided by the given divisor or
    /// the number of elements of the window. This number includes the padding only if `count_include_pad` is true.
    #[test]
    fn means_equal_their_definition() {
        let shape = [2, 2, 9, 7];
        let x = Tensor::<f64>::from_fn(shape, |i| 36.0 * ((i[0] * 7 + i[1] * 5 + i[2] * 13 + i[3] * 2) % 11) as f64);
        for (kernel, stride, padding) in
            [(2isize, 2isize, 0isize), (2, 2, 1), (3, 1, 1), (3, 2, 1), (2, 3, 0), (4, 3, 2), (7, 7, 0)]
        {
            for [ceil_mode, count_include_pad, overridden] in
                [0, 1, 2, 3, 4, 5, 6, 7].map(|k| [1, 2, 4].map(|bit| k & bit > 0))
            {
                let mut options = PoolOptions::default().stride(stride).padding(padding).ceil_mode(ceil_mode);
                options = options.count_include_pad(count_include_pad);
                if overridden {
                    options = options.divisor_override(4);
                }
                let got = x.avg_pool2d(kernel, &options);
                let sizes = got.shape().clone();
                let (kernel, stride, padding) = (kernel as usize, stride as usize, padding as usize);
                let expected = Tensor::<f64>::from_fn(&sizes, |i| {
                    let (mut sum, mut count) = (0.0, 0);
                    for (kh, kw) in (0..kernel).flat_map(|kh| (0..kernel).map(move |kw| (kh, kw))) {
                        let (h, w) = (i[2] * stride + kh, i[3] * stride + kw);
                        let place = (h.wrapping_sub(padding), w.wrapping_sub(padding));
                        let value = x.get(&[i[0], i[1], place.0, place.1]);
                        let is_padding = h < shape[2] + 2 * padding && w < shape[3] + 2 * padding;
                        sum += value.unwrap_or(0.0);
                        count += usize::from(value.is_some() || count_include_pad && is_padding);
                    }
                    sum / if overridden { 4.0 } else { count as f64 }
                });
                assert_eq!(got, expected, "{kernel} {options:?}");
            }
        }
    }

    #[test]
    fn refusals_have_pytorchs_sentences() {
        let x = Tensor::<f64>::zeros([1, 2, 2]);
        let error = x.try_max_pool2d(4, &PoolOptions::default()).unwrap_err();
        assert_eq!(
            error.sentence(),
            "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small"
        );
        let error = x.try_max_pool1d(3, &PoolOptions::default().padding(2)).unwrap_err();
        assert_eq!(
            error.sentence(),
            "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=3"
        );
    }

    /// The error messages are PyTorch's, but name the public operation where PyTorch names an internal function.
    #[test]
    fn refused_volumes() {
        let ones = |shape: &[usize]| Tensor::<f64>::ones(shape);
        let options = PoolOptions::default;
        let empty = |operation, shape, axis| {
            format!(
                "{operation}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} with \
                 dimension {axis} being empty"
            )
        };
        let rank = "non-empty 4D or 5D (batch mode) tensor expected for input";
        let small = |sizes, kernel| format!("input image ({sizes}) smaller than kernel size ({kernel})");
        for (result, sentence) in [
            (ones(&[2, 2]).try_max_pool3d(2, &options()), rank.to_owned()),
            (ones(&[2, 2, 2]).try_avg_pool3d(2, &options()), rank.to_owned()),
            (ones(&[1, 0, 4, 4, 4]).try_max_pool3d(2, &options()), empty("max_pool3d", "[1, 0, 4, 4, 4]", 1)),
            (ones(&[1, 4, 4, 0]).try_avg_pool3d(2, &options()), empty("avg_pool3d", "[1, 4, 4, 0]", 3)),
            (ones(&[1, 4, 2, 3]).try_avg_pool3d([4, 2, 4], &options()), small("T: 4 H: 2 W: 3", "kT: 4 kH: 2 kW: 4")),
            // A kernel that is larger than the depth without padding is refused, even if every window would contain elements of the input.
            (
                ones(&[1, 2, 4, 4]).try_avg_pool3d(3, &options().padding(1)),
                small("T: 2 H: 4 W: 4", "kT: 3 kH: 3 kW: 3"),
            ),
            (
                ones(&[2, 2]).try_adaptive_avg_pool3d(2),
                "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got [2, 2]".to_owned(),
            ),
            (
                ones(&[2]).try_adaptive_max_pool2d(2),
                "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [2]".to_owned(),
            ),
            (ones(&[1, 1, 0, 2, 2]).try_adaptive_avg_pool3d(2), empty("adaptive_avg_pool3d", "[1, 1, 0, 2, 2]", 2)),
            (ones(&[1, 0, 2, 2, 2]).try_adaptive_max_pool3d(2), empty("adaptive_max_pool3d", "[1, 0, 2, 2, 2]", 1)),
        ] {
            assert_eq!(result.unwrap_err().sentence(), sentence);
        }
        assert_eq!(ones(&[1, 2, 2]).avg_pool2d(3, &options().padding(1)).shape(), &[1, 1, 1]);
        assert_eq!(ones(&[1, 2, 2, 2]).max_pool3d(3, &options().padding(1)).shape(), &[1, 1, 1, 1]);
    }
}
