//! Convolutions over one to three dimensions, and their adjoints. As in PyTorch, a convolution is a cross-correlation: it does not flip
//! the weight.
//!
//! The convolution, the transposed convolution and the derivative with respect to the weight are three functions. The derivatives of each
//! are the other two: see [`ConvolutionForm`](crate::ops::ConvolutionForm). Layouts are PyTorch's: input `[n, c, …]` or `[c, …]`, weight
//! `[out, c / groups, …]`, transposed weight `[c, out / groups, …]`.

mod check;
mod forward;
mod options;
mod transposed;

pub use options::ConvOptions;

use wengert_macros::twins;

use crate::ops::window::convolution::forward::convolve;
use crate::ops::window::convolution::transposed::convolve_transposed;
use crate::ops::{ArrayOperand, OptionalOperand, Result, Windowed};
use crate::{Number, Site};

/// Convolutions over one to three dimensions, and transposed convolutions. Each method refuses operands with other ranks or channels, and
/// sizes that give a result without elements in a convolved dimension.
#[twins(blanket)]
pub trait Convolution: Windowed<Elem: Number> {
    /// Returns the convolution of `[n, c, l]` (or `[c, l]`) by `weight` `[out, c / groups, k]`, plus `bias` `[out]`.
    /// PyTorch: `nn.functional.conv1d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let signal = Tensor::from([[[1.0, 2.0, 4.0, 8.0]]]);
    /// let differences = Tensor::from([[[-1.0, 1.0]]]);
    /// let y = signal.conv1d(&differences, None, &ConvOptions::default());
    /// assert_eq!(y, Tensor::from([[[1.0, 2.0, 4.0]]]));
    /// ```
    fn try_conv1d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        convolve(self, &weight.into_array(self)?, bias.into_option(self)?.as_ref(), options, 1, Site::here("conv1d"))
    }

    /// Returns the convolution of `[n, c, h, w]` (or `[c, h, w]`) by `weight` `[out, c / groups, kh, kw]`, plus `bias`
    /// `[out]`. PyTorch: `nn.functional.conv2d`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let image = Tensor::<f64>::arange(9).reshape([1, 1, 3, 3]);
    /// let blur = Tensor::full([1, 1, 2, 2], 0.25);
    /// assert_eq!(image.conv2d(&blur, None, &ConvOptions::default()).to_vec(), [2.0, 3.0, 5.0, 6.0]);
    /// let half_size = image.conv2d(&blur, None, &ConvOptions::default().stride(2).padding(1));
    /// assert_eq!(half_size.shape(), &[1, 1, 2, 2]);
    /// ```
    fn try_conv2d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        convolve(self, &weight.into_array(self)?, bias.into_option(self)?.as_ref(), options, 2, Site::here("conv2d"))
    }

    /// Returns the convolution of `[n, c, d, h, w]` (or `[c, d, h, w]`) by `weight` `[out, c / groups, kd, kh, kw]`, plus
    /// `bias` `[out]`. PyTorch: `nn.functional.conv3d`.
    fn try_conv3d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        convolve(self, &weight.into_array(self)?, bias.into_option(self)?.as_ref(), options, 3, Site::here("conv3d"))
    }

    /// Returns the adjoint of [`conv1d`](Self::conv1d) applied to `[n, c, l]` with `weight` `[c, out / groups, k]`, plus
    /// `bias` `[out]`. PyTorch: `nn.functional.conv_transpose1d`.
    fn try_conv_transpose1d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        let (weight, bias) = (&weight.into_array(self)?, bias.into_option(self)?);
        convolve_transposed(self, weight, bias.as_ref(), options, 1, Site::here("conv_transpose1d"))
    }

    /// Returns the adjoint of [`conv2d`](Self::conv2d) applied to `[n, c, h, w]` with `weight` `[c, out / groups, kh, kw]`,
    /// plus `bias` `[out]`. PyTorch: `nn.functional.conv_transpose2d`.
    fn try_conv_transpose2d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        let (weight, bias) = (&weight.into_array(self)?, bias.into_option(self)?);
        convolve_transposed(self, weight, bias.as_ref(), options, 2, Site::here("conv_transpose2d"))
    }

    /// Returns the adjoint of [`conv3d`](Self::conv3d) applied to `[n, c, d, h, w]` with `weight`
    /// `[c, out / groups, kd, kh, kw]`, plus `bias` `[out]`. PyTorch: `nn.functional.conv_transpose3d`.
    fn try_conv_transpose3d(
        &self,
        weight: impl ArrayOperand<Self>,
        bias: impl OptionalOperand<Self>,
        options: &ConvOptions,
    ) -> Result<Self> {
        let (weight, bias) = (&weight.into_array(self)?, bias.into_option(self)?);
        convolve_transposed(self, weight, bias.as_ref(), options, 3, Site::here("conv_transpose3d"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::PadMode;
    use crate::ops::window::convolution::{ConvOptions, Convolution};
    use crate::prelude::*;

    /// Computes the convolution by its definition.
    fn by_definition(x: &Tensor<f64>, w: &Tensor<f64>, stride: isize, padding: isize, dilation: isize) -> Tensor<f64> {
        let size = |axis: usize| {
            let (n, k) = (x.shape()[axis] as isize, w.shape()[axis] as isize);
            ((n + 2 * padding - dilation * (k - 1) - 1) / stride + 1) as usize
        };
        Tensor::from_fn([x.shape()[0], w.shape()[0], size(2), size(3)], |i| {
            let mut sum = 0.0;
            for c in 0..w.shape()[1] {
                for kh in 0..w.shape()[2] {
                    for kw in 0..w.shape()[3] {
                        let h = i[2] as isize * stride - padding + kh as isize * dilation;
                        let l = i[3] as isize * stride - padding + kw as isize * dilation;
                        let value = (h >= 0 && l >= 0).then(|| x.get(&[i[0], c, h as usize, l as usize])).flatten();
                        sum += value.unwrap_or(0.0) * w.get(&[i[1], c, kh, kw]).unwrap();
                    }
                }
            }
            sum
        })
    }

    fn integers(shape: [usize; 4]) -> Tensor<f64> {
        let mut state = 7u64;
        Tensor::from_fn(shape, |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 7) as f64 - 3.0
        })
    }

    #[test]
    fn channels_in_the_last_dimension_get_a_hint() {
        let w = integers([4, 3, 2, 3]);
        let text = |x: &[usize]| Tensor::ones(x).try_conv2d(&w, None, &ConvOptions::default()).unwrap_err().to_string();
        let hint = "hint: if the channels are the last dimension, `x.movedim(-1, -3)` moves them";
        for x in [&[2, 6, 5, 3][..], &[6, 5, 3]] {
            assert!(text(x).ends_with(hint), "{x:?}");
            assert!(Tensor::<f64>::ones(x).movedim(-1, -3).try_conv2d(&w, None, &ConvOptions::default()).is_ok());
        }
        assert!(!text(&[2, 6, 5, 5]).contains("hint"));
    }

    #[test]
    fn convolutions_equal_the_definition_and_transposed_ones_are_the_adjoint() {
        let (x, w) = (integers([2, 3, 6, 5]), integers([4, 3, 2, 3]));
        for (stride, padding, dilation) in [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)] {
            let options = ConvOptions::default().stride(stride).padding(padding).dilation(dilation);
            let y = x.conv2d(&w, None, &options);
            assert_eq!(y, by_definition(&x, &w, stride as isize, padding as isize, dilation as isize));
            // Checks the adjoint identity <conv x, g> = <x, convᵀ g>. The elements of x that no window covers get zeros, by
            // `output_padding`.
            let g = integers([2, 4, y.shape()[2], y.shape()[3]]);
            let missing = |axis: usize| {
                let (n, k) = (x.shape()[axis] as i32, w.shape()[axis] as i32);
                (n + 2 * padding - dilation * (k - 1) - 1) % stride
            };
            let options = options.output_padding([missing(2), missing(3)]);
            let back = g.conv_transpose2d(&w, None, &options);
            assert_eq!(back.shape(), x.shape());
            assert_eq!((&y * &g).sum(..), (&x * &back).sum(..));
        }
    }

    #[test]
    fn groups_are_convolved_separately() {
        let (x, w) = (integers([1, 4, 3, 3]), integers([2, 2, 2, 2]));
        let bias = Tensor::from([10.0, 20.0]);
        let y = x.conv2d(&w, Some(&bias), &ConvOptions::default().groups(2));
        for group in 0..2 {
            let part = x.narrow(1, 2 * group, 2).conv2d(w.narrow(0, group, 1), None, &ConvOptions::default());
            assert_eq!(y.narrow(1, group, 1), &part + 10.0 * (group + 1) as f64);
        }
    }

    #[test]
    fn same_padding_keeps_the_size() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let pair = Tensor::from([[[10.0, 1.0]]]);
        let y = x.conv1d(&pair, None, &ConvOptions::default().same());
        assert_eq!(y, Tensor::from([[12.0, 23.0, 30.0]]));
        assert!(x.try_conv1d(&pair, None, &ConvOptions::default().same().stride(2)).is_err());
    }

    #[test]
    fn padding_modes_equal_pad_before_the_convolution() {
        let (x, w) = (integers([2, 3, 6, 5]), integers([4, 3, 3, 2]));
        for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular, PadMode::Constant(7.0)] {
            let options = ConvOptions::default().stride([2, 1]).padding([2, 1]).padding_mode(mode);
            let expected = x.pad(&[1, 1, 2, 2], mode).conv2d(&w, None, &ConvOptions::default().stride([2, 1]));
            assert_eq!(x.conv2d(&w, None, &options), expected, "{mode:?}");
            // A window of two elements with dilation 3 needs three elements of padding: one before and two after.
            let same = ConvOptions::default().dilation([1, 3]).same().padding_mode(mode);
            let expected = x.pad(&[1, 2, 1, 1], mode).conv2d(&w, None, &ConvOptions::default().dilation([1, 3]));
            assert_eq!(x.conv2d(&w, None, &same), expected, "{mode:?}");
        }
        let reflect = ConvOptions::default().padding(6).padding_mode(PadMode::Reflect);
        let text = x.try_conv2d(&w, None, &reflect).unwrap_err().sentence();
        assert!(text.contains("Padding size should be less than the corresponding input dimension"), "{text}");
        assert!(x.try_conv_transpose2d(w.narrow(0, 0, 3), None, &reflect.padding(1)).is_err());
    }

    #[test]
    fn refusals_have_pytorchs_sentences() {
        let sentence = |x: &[usize], w: &[usize], options: ConvOptions| {
            Tensor::<f64>::zeros(x).try_conv1d(Tensor::zeros(w), None, &options).unwrap_err().sentence()
        };
        assert_eq!(
            sentence(&[5], &[1, 1, 1], ConvOptions::default()),
            "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [5]"
        );
        assert_eq!(
            sentence(&[1, 2, 5], &[3, 1, 2], ConvOptions::default()),
            "Given groups=1, weight of size [3, 1, 2], expected input[1, 2, 5] to have 1 channels, but got 2 channels \
             instead"
        );
        assert_eq!(
            sentence(&[1, 1, 2], &[3, 1, 4], ConvOptions::default()),
            "Calculated padded input size per channel: (2). Kernel size: (4). Kernel size can't be greater than actual \
             input size"
        );
        assert_eq!(
            sentence(&[1, 2, 5], &[3, 1, 2], ConvOptions::default().groups(2)),
            "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size [[3, 1, 2]] instead"
        );
        assert_eq!(
            sentence(&[1, 1, 5], &[0, 1, 2], ConvOptions::default()),
            "Given groups=1, expected weight to be at least 1 at dimension 0, but got weight of size [0, 1, 2] instead"
        );
    }
}
