//! A transposed convolution: the derivative of a convolution with respect to its input, as an operation.

use crate::ops::window::convolution::check::{add_bias, check_bias, check_channels, prepare};
use crate::ops::window::windows::{Window, per_dimension_at_least, remove_batch};
use crate::ops::{ConvOptions, ConvolutionForm, PadMode, Result, Slot, Windowed};
use crate::{Error, Number, Scalar as _, Shape, Site, ensure};

/// Computes a transposed convolution over the last `rank` dimensions of `x`.
pub(crate) fn convolve_transposed<A: Windowed<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A> {
    let (x, added, windows) = prepare(x, weight, options, rank, at)?;
    let (own, kernel) = (x.shape(), weight.shape());
    let Some(padding) = &options.padding else {
        return Err(Error::argument(at, "padding='same' is not supported for transposed convolutions").into());
    };
    let padding = per_dimension_at_least(padding, rank, ("padding", 0), at)?;
    let zeros = options.padding_mode == PadMode::Constant(0.0);
    ensure!(zeros, at, "Only \"zeros\" padding mode is supported for {}", at.operation);
    let more = per_dimension_at_least(&options.output_padding, rank, ("output_padding", 0), at)?;
    check_channels(&own, &kernel, kernel[0], "transposed=1", at)?;
    let out = kernel[1] * options.groups;
    check_bias(bias, &kernel, out, at)?;
    let mut result: Shape = [own[0], out].into();
    for (k, &window) in windows.iter().enumerate() {
        let Window { stride, dilation, .. } = window;
        ensure!(
            more[k] < stride.max(dilation),
            at,
            "output padding must be smaller than either stride or dilation, but got output_padding: {more:?}, stride: \
             {stride}, dilation: {dilation}"
        );
        let size = if own[2 + k] == 0 { 0 } else { window.extent(own[2 + k]).saturating_add(more[k]) };
        ensure!(
            size > padding[k].saturating_mul(2),
            at,
            "Given input size per channel: {:?}. The output would be empty at dimension {k}: padding {} is too large",
            &own[2..],
            padding[k]
        );
        if size > isize::MAX as usize {
            return Err(Error::TooLarge { shape: [size].into(), dtype: A::Elem::DTYPE, at }.into());
        }
        result.push(size - 2 * padding[k]);
    }
    let form = ConvolutionForm::new([result, kernel, own], &windows, &padding, options.groups);
    let z = weight.apply_convolution(&x, &form, Slot::Input, at)?;
    remove_batch(add_bias(z, bias, at)?, added, at)
}
